"""Rows and arms in as few words as a test needs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kace.files import whole_lines
from kace.ladder.record import Damage, Solution
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.runs.table import SolveRow, Table
from tests.exits import PAPER_CALLS

MANIFEST = {"v": 1, "config": {"model": "scripted/made-up"}, "tree": None}


def a_row(
    problem: str,
    correct: bool | None = True,
    *,
    exit: ExitPath | None = ExitPath.ES_UNANIMOUS,
    attempts: int = 2,
    right: int | None = None,
    usage: tuple[int, int, int] = (0, 0, 0),
    family: str | None = None,
    seed: int = 0,
    **more: Any,
) -> SolveRow:
    """One solve; its attempts are as right as its answer unless said."""
    calls = PAPER_CALLS[exit] if exit else attempts
    right = attempts * bool(correct) if right is None else right
    sizes = {"paper_calls": calls, "real_calls": calls, "attempts": attempts, "right_attempts": right}
    row = SolveRow(problem, problem.upper(), family, None, seed, correct, exit=exit, usage=Usage(*usage), **sizes)
    return replace(row, seconds=1.0, **more)


def an_arm(name: str, rows: Iterable[SolveRow], manifest: Mapping[str, object] = MANIFEST) -> Table:
    """An arm with its rows in order."""
    return Table.of(rows, name=name, manifest=manifest)


def changed(
    table: Table,
    rows: Iterable[SolveRow] | None = None,
    *,
    name: str | None = None,
    manifest: Mapping[str, object] | None = None,
    folder: Path | None = None,
    damage: Sequence[Damage] = (),
) -> Table:
    """Another table, the same but for what is given."""
    found = Table.of(
        table if rows is None else rows,
        name=table.name if name is None else name,
        manifest=table.manifest.content if manifest is None else manifest,
    )
    found.folder = folder
    found.damage += damage
    return found


def answered(name: str, right: Sequence[Sequence[int]]) -> Table:
    """An arm from a table of ones and zeros, a row a problem and a column a seed."""
    return an_arm(
        name,
        (
            a_row(f"p{number:03}", bool(one), seed=seed)
            for number, line in enumerate(right)
            for seed, one in enumerate(line)
        ),
    )


def recorded(folder: Path) -> list[Solution]:
    """Every record in a trace that can be read, in the order written."""
    found = []
    for _, _, line in whole_lines(folder / "traces.jsonl"):
        with suppress(ValidationError):
            found.append(Solution.model_validate_json(line))
    return found


def drawn(chance: random.Random, rates: Sequence[float], seeds: int) -> list[list[int]]:
    """Such a table, at random."""
    return [[int(chance.random() < rate) for _ in range(seeds)] for rate in rates]
