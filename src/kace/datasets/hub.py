"""Fetch the files of published data sets: from a hub, at a fixed revision, into a cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kace.errors import KaceError
from kace.io import write_atomic
from kace.redact import one_line, public_url

MAX_FILE_BYTES = 64_000_000
"""Many times the largest file of the catalogue: what is longer is not the file that was asked for."""
BLOCK = 1 << 16
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
TRIES = 3
PARQUET = b"PAR1"
"""How a Parquet file begins and ends."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a data set repository."""

    repo: str
    revision: str
    """A commit, so that the file cannot change under its name."""
    path: str
    sha256: str | None = None
    """None where only the revision vouches for the bytes."""


Watch = Callable[[HubFile], None]
"""Told of each file before it is downloaded."""


class _Unavailable(Exception):
    """The hub did not give the file; the message says why."""


def path_of(file: HubFile, cache: Path) -> Path:
    """Where a file lies, or would lie, in this cache."""
    return cache / file.repo.replace("/", "--") / file.revision / file.path


def is_present(file: HubFile, cache: Path) -> bool:
    """Whether the cache holds the file, with the bytes it should have where these are known."""
    try:
        with path_of(file, cache).open("rb") as stream:
            return file.sha256 in (None, hashlib.file_digest(stream, "sha256").hexdigest())
    except OSError:
        return False


def fetch(file: HubFile, *, cache: Path, hub: str, watch: Watch | None = None) -> Path:
    """The path of a file in the cache, downloaded first where it is not there.

    A file appears whole or not at all; one whose download broke off is downloaded again. Raises `KaceError` that
    names the address and the reason.
    """
    target = path_of(file, cache)
    if is_present(file, cache):
        return target
    if watch is not None:
        watch(file)
    address = f"/datasets/{file.repo}/resolve/{file.revision}/{file.path}"
    try:
        data = _download(f"{hub.rstrip('/')}{address}")
        digest = hashlib.sha256(data).hexdigest()
        if file.sha256 not in (None, digest):
            raise _Unavailable(f"refused: sha256 is {digest[:12]}..., not {(file.sha256 or '')[:12]}...")
        # A proxy before the hub may answer with a page of its own.
        if file.path.endswith(".parquet") and not (data.startswith(PARQUET) and data.endswith(PARQUET)):
            raise _Unavailable("refused: not a Parquet file")
    except _Unavailable as reason:
        raise KaceError(
            f"could not get {public_url(hub)}{address}: {one_line(str(reason))}",
            fix="check the connection, set HF_ENDPOINT to a mirror, or give a folder that has the data (--data-dir)",
        ) from None
    write_atomic(target, data)
    return target


def _download(url: str) -> bytes:
    """The file, held in memory: these are small, and a download that breaks off leaves nothing to clean up."""
    import httpx2

    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    headers = {"Accept-Encoding": "identity"}
    with httpx2.Client(timeout=timeout, headers=headers, follow_redirects=True) as client:
        for tries_left in reversed(range(TRIES)):
            try:
                with client.stream("GET", url) as response:
                    if response.status_code != 200:
                        raise _Unavailable(f"HTTP {response.status_code}")
                    return _bounded(response.iter_raw(BLOCK))
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                again = isinstance(error, httpx2.TransportError) and not isinstance(error, httpx2.ConnectError)
                if not (again and tries_left):
                    raise _Unavailable(str(error) or type(error).__name__) from None
    raise AssertionError("the loop returns or raises")


def _bounded(blocks: Iterable[bytes]) -> bytes:
    data = bytearray()
    for block in blocks:
        data += block
        if len(data) > MAX_FILE_BYTES:
            raise _Unavailable(f"the file is longer than {MAX_FILE_BYTES // 1_000_000} MB")
    return bytes(data)
