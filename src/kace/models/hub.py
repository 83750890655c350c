"""Files of a hub: downloads that resume and are bounded, and the cached files of published data sets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kace.errors import KaceError, one_line, public_url
from kace.files import cannot_write, write_atomic

MAX_FILE_BYTES = 64_000_000  # many times the largest file of a data set: what is longer is not the one asked for
BLOCK = 1 << 16
# the first is short, so that another source is tried at once
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
TRIES = 5
PARQUET = b"PAR1"  # how a Parquet file begins and ends


class Unavailable(Exception):
    """A source that could not give the bytes; the message says why."""


def download(
    url: str,
    part: Path,
    most: int,
    watch: Callable[[int], object] = bool,
    *,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Fetch a file of at most so many bytes, from where `part` ends; `watch` is told how many there are.

    A connection that drops part way is tried again, one that brings nothing is not. Raises `Unavailable`. A token among
    the headers goes to no other server that this one redirects to.
    """
    import httpx2

    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    # Compressed transfer would make byte ranges and lengths speak of other bytes than the file's.
    headers = {**(headers or {}), "Accept-Encoding": "identity"}
    with (
        httpx2.Client(
            timeout=timeout, headers=headers, follow_redirects=True
        ) as client,
        part.open("ab") as stream,
    ):
        tries_left = TRIES
        while (size := stream.tell()) < most:
            came = False
            tries_left = tries_left - 1
            try:
                with client.stream(
                    "GET", url, headers={"Range": f"bytes={size}-"} if size else {}
                ) as response:
                    if response.status_code not in (200, 206):
                        raise Unavailable(f"HTTP {response.status_code}")
                    stream.seek(
                        stream.truncate(size if response.status_code == 206 else 0)
                    )
                    for block in response.iter_raw(BLOCK):
                        came = True
                        if stream.tell() + len(block) > most:
                            stream.truncate(0)
                            raise Unavailable(f"the file is longer than {most:,} bytes")
                        stream.write(block)
                        watch(stream.tell())
                return
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                if not (
                    came and tries_left and isinstance(error, httpx2.TransportError)
                ):
                    raise Unavailable(str(error) or type(error).__name__) from None


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a data set repository."""

    repo: str
    revision: str  # a commit, so that the file cannot change under its name
    path: str
    sha256: str | None = None  # None where only the revision vouches for the bytes


Watch = Callable[[HubFile], None]  # told of each file before it is downloaded


def path_of(file: HubFile, cache: Path) -> Path:
    """Where a file lies, or would lie, in this cache."""
    return cache / file.repo.replace("/", "--") / file.revision / file.path


def is_present(file: HubFile, cache: Path) -> bool:
    """Whether the cache holds the file, with the bytes it should have where these are known."""
    try:
        with path_of(file, cache).open("rb") as stream:
            return file.sha256 in (
                None,
                hashlib.file_digest(stream, "sha256").hexdigest(),
            )
    except OSError:
        return False


def fetch(
    file: HubFile, *, cache: Path, hub: str, watch: Watch = lambda file: None
) -> Path:
    """The path of a file in the cache, downloaded first where it is not there. It appears whole or not at all."""
    target = path_of(file, cache)
    if is_present(file, cache):
        return target
    watch(file)
    address = f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"
    try:
        with TemporaryDirectory() as folder:
            part = Path(folder) / "part"
            download(hub.rstrip("/") + address, part, MAX_FILE_BYTES)
            data = part.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if file.sha256 not in (None, digest):
            raise Unavailable(
                f"refused: sha256 is {digest[:12]}..., not {(file.sha256 or '')[:12]}..."
            )
        # A proxy before the hub may answer with a page of its own.
        if file.path.endswith(".parquet") and not (
            data.startswith(PARQUET) and data.endswith(PARQUET)
        ):
            raise Unavailable("refused: not a Parquet file")
    except Unavailable as reason:
        raise KaceError(
            f"could not get {public_url(hub)}{address}: {one_line(str(reason))}",
            fix="check the connection, set HF_ENDPOINT to a mirror, or name a folder with the data: --set data_dir=DIR",
        ) from None
    except OSError as error:
        raise cannot_write(target, error) from None
    write_atomic(target, data)
    return target
