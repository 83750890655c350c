"""Recorded runs of real models and published trees, unpacked once per process and only to be read.

`learning_run` is a whole learning run of the embedded 0.5B model on 16 starter problems, with every reply of solver and
teacher. `runs` holds 47 problems of three systems on the starter test.
"""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

GOLDEN = Path(__file__).parent / "golden"
TREES = Path(__file__).parents[1] / "results" / "trees"
_KEPT: list[TemporaryDirectory[str]] = []


def recorded(name: str) -> Path:
    """Return the folder of a recording."""
    return _unpack(GOLDEN / f"{name}.tar.xz")


def published_tree(name: str) -> Path:
    """Return the folder of a tree that was published with the results."""
    return _unpack(TREES / f"{name}.tar.xz") / name


@cache
def _unpack(path: Path) -> Path:
    folder = TemporaryDirectory(prefix="kace-recorded-")
    _KEPT.append(folder)  # removed when the process ends
    with tarfile.open(path) as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)
