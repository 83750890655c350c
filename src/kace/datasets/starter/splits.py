"""The bundled splits, as files in this package."""

from __future__ import annotations

from pathlib import Path

from kace.datasets.starter.family import SPLITS, Split
from kace.errors import UsageError
from kace.problem import Problem, load_problems

FOLDER = Path(__file__).parent / "bundled"


def split_path(split: Split, folder: Path = FOLDER) -> Path:
    """Where a split lies."""
    return folder / f"{split}.jsonl"


def load_split(split: Split) -> tuple[Problem, ...]:
    """The fixed problems of a split: 100 to train on, 100 to validate, 200 to test."""
    if split not in SPLITS:
        raise UsageError(f"no starter split '{split}'", fix=f"use one of {', '.join(SPLITS)}")
    return load_problems(split_path(split))
