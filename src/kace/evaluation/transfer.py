"""The transfer matrix: every tree with every solver on every data set, each against the same ladder without a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kace.config import Config
from kace.datasets.registry import Dataset
from kace.evaluation.arm import read_arm
from kace.evaluation.compare import Comparison, compare
from kace.evaluation.trial import Trial
from kace.tree.tree import EpistemicTree


@dataclass(frozen=True, slots=True)
class Passage:
    """One cell of the matrix: a tree, or none, taken to a solver and a data set."""

    trial: Trial
    tree: str
    """The tree's name; empty for the ladder alone."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Journey:
    """Trees against the ladder alone, for one solver on one data set."""

    data: str
    model: str
    accuracy: float
    """Of the ladder alone."""
    trees: tuple[tuple[str, Comparison], ...]


def passages(
    trees: Sequence[tuple[str, EpistemicTree]],
    configs: Sequence[Config],
    data: Sequence[Dataset],
    *,
    seeds: int,
    out: Path,
) -> Iterator[Passage]:
    """Every run the matrix needs, the ladder alone first in each of its rows."""
    for each in data:
        for config in configs:
            place = out / slug(f"{each.name}-{each.split}") / slug(config.model)
            yield Passage(Trial("tiered", each, config, seeds), "", place / "tiered")
            for name, tree in trees:
                yield Passage(Trial("kace", each, config, seeds, tree), name, place / slug(name))


def journeys(done: Sequence[Passage]) -> tuple[Journey, ...]:
    """The finished matrix, row by row."""
    rows: dict[tuple[str, str], list[Passage]] = {}
    for passage in done:
        rows.setdefault((passage.trial.data.name, passage.trial.config.model), []).append(passage)
    found = []
    for (data, model), (alone, *others) in rows.items():
        base = read_arm(alone.folder)
        compared = [(other.tree, compare(base, read_arm(other.folder))) for other in others]
        right = [row.correct is True for row in base.rows]
        found.append(Journey(data, model, sum(right) / len(right), tuple(compared)))
    return tuple(found)


def slug(name: str) -> str:
    """A name as a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
