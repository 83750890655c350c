"""Recorded runs of the real model, unpacked once per process.

`learning_run` is a whole learning run of the embedded 0.5B model on 16 starter problems, with every reply of solver and
teacher. `runs` holds 50 problems of three systems on the starter test.
"""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

GOLDEN = Path(__file__).parent / "golden"
_KEPT: list[TemporaryDirectory[str]] = []


@cache
def recorded(name: str) -> Path:
    """Return the folder of a recording, to be read only."""
    folder = TemporaryDirectory(prefix=f"kace-{name}-")
    _KEPT.append(folder)  # removed when the process ends
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)
