"""`kace learn --demo`: solve, learn, evaluate and report with the embedded model alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kace.baselines.evaluate import Trial
from kace.cards.store import open_tree
from kace.cli.data import load_data
from kace.cli.eval import finish_trial
from kace.cli.report import comparison_lines
from kace.cli.terminal import note
from kace.config import Config
from kace.files import write_atomic
from kace.problems import Dataset, Problem, load_bundled, set_hash
from kace.report.evaluation import evaluation_of, page
from kace.runs.table import open_tables

HARD = ("through_ticket", "factorial_zeros")
EASY = ("equal_sides", "sum_of_tens", "twice")
"""Technique families of the starter set: two that a small model can learn from worked
solutions, and three that need no card."""
PER_FAMILY = 2


def load_slices(config: Config) -> tuple[tuple[Problem, ...], Dataset]:
    """Return problems to learn from, and others of the same families to evaluate on."""
    train = _first_per_family(load_bundled("starter", "train"))
    data = load_data("starter", "validation", config)
    held_out = _first_per_family(data.problems)
    return train, replace(data, problems=held_out, hash=set_hash(held_out))


def _first_per_family(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    chosen: list[Problem] = []
    for family in (*HARD, *EASY):
        found = [problem for problem in problems if problem.family == family]
        chosen += found[:PER_FAMILY]
    return tuple(chosen)


def intro_lines(
    train: Sequence[Problem], held_out: Dataset, config: Config
) -> Iterator[str]:
    """Yield what the command is about to do."""
    hard = sum(problem.family in HARD for problem in train)
    yield (
        f"1. {config.model} solves {len(train)} problems, {hard} of them of two kinds "
        "that a small model gets wrong."
    )
    yield (
        f"2. Its failures become cards (teacher: {config.teacher}). Reruns that hide "
        "cards at random measure them."
    )
    yield (
        "3. Tiered (the ladder alone) and KACE (with the cards) solve "
        f"{len(held_out.problems)} problems held out."
    )
    yield "About ten minutes on two cores. Stop it at any time: the same command resumes."
    yield ""


def compare_systems(
    held_out: Dataset, config: Config, out: Path
) -> Iterator[str]:
    """Evaluate both systems, write the page, and yield their difference."""
    tree = open_tree(out / "tree")
    without = out / "tiered"
    using = out / "kace"
    size = len(held_out.problems)
    note(f"kace: tiered: {size} problems held out")
    finish_trial(Trial("tiered", held_out, config, 1), without)
    note(f"kace: kace: the same {size} problems")
    finish_trial(Trial("kace", held_out, config, 1, tree), using, [without])
    found = evaluation_of(
        open_tables([without, using]), tree=tree, prices=config.prices
    )
    write_atomic(out / "report.html", page(found))
    yield ""
    yield from comparison_lines(found)
    yield ""
    yield (
        f"{size} problems are few, and were chosen to show how it works: two kinds that "
        "can be"
    )
    yield (
        "learned, three that need no card. For the measured gain on 1,000 problems see "
        "docs/results.md."
    )
    note(f"report       {out / 'report.html'}")
