"""`kace learn --demo`: solve, learn, evaluate and report, with nothing but the embedded model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from kace.baselines.trial import Trial
from kace.cards.store import open_tree
from kace.cli.data import load_data
from kace.cli.eval import finish_trial
from kace.cli.report import comparison_lines
from kace.cli.streams import note
from kace.config import Config
from kace.datasets.loader import Dataset, set_hash
from kace.datasets.starter import load_split
from kace.files import write_atomic
from kace.problems import Problem
from kace.report.evaluation import evaluation_of
from kace.report.evaluation_page import page
from kace.runs.table import open_tables

HARD = ("through_ticket", "factorial_zeros")
EASY = ("equal_sides", "sum_of_tens", "twice")
"""Technique families of the starter set: two that the published runs could learn, and three that need no card."""
OF_EACH = 2


def slices(config: Config) -> tuple[tuple[Problem, ...], Dataset]:
    """What is learned from, and what it is evaluated on: other problems of the same families."""
    found = load_data("starter", "validation", config)
    held_out = _few(found.problems)
    return _few(load_split("train")), replace(
        found, problems=held_out, hash=set_hash(held_out)
    )


def _few(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    each = (
        [p for p in problems if p.family == family][:OF_EACH]
        for family in (*HARD, *EASY)
    )
    return tuple(chain.from_iterable(each))


def intro(
    train: tuple[Problem, ...], held_out: Dataset, config: Config
) -> Iterator[str]:
    """What will happen."""
    hard = sum(problem.family in HARD for problem in train)
    yield f"1. {config.model} solves {len(train)} problems, {hard} of them of two kinds that a small model gets wrong."
    yield f"2. Its failures become cards (teacher: {config.teacher}). Reruns that hide cards at random measure them."
    yield f"3. Tiered (the ladder alone) and KACE (with the cards) solve {len(held_out.problems)} problems held out."
    yield "About ten minutes on two cores. Stop it at any time: the same command goes on.\n"


def compared(held_out: Dataset, config: Config, out: Path) -> Iterator[str]:
    """Evaluate both systems, write the page, and tell the difference with its intervals."""
    tree = open_tree(out / "tree")
    alone = out / "tiered"
    with_cards = out / "kace"
    note(f"kace: tiered: {len(held_out.problems)} problems held out")
    finish_trial(Trial("tiered", held_out, config, 1), alone, [])
    note(f"kace: kace: the same {len(held_out.problems)} problems")
    finish_trial(Trial("kace", held_out, config, 1, tree), with_cards, [alone])
    found = evaluation_of(
        open_tables([alone, with_cards]), tree=tree, prices=config.prices
    )
    write_atomic(out / "report.html", page(found))
    yield from ("", *comparison_lines(found), "")
    yield f"{len(held_out.problems)} problems are few, and were chosen to show how it works: two kinds that can be"
    yield "learned, three that need no card. What it is worth: docs/results.md, on 1,000 problems."
    note(f"report       {out / 'report.html'}")
