"""Arms drawn from a simple model of a solver: a problem has a rate, attempts agree by chance, the ladder is climbed."""

from __future__ import annotations

import random

from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.runs.table import SolveRow, Table
from tests.exits import PAPER_CALLS

SIZES = (2, 3, 5)
GATES = (ExitPath.ES_UNANIMOUS, ExitPath.MS_MAJORITY, ExitPath.HS_PLURALITY)


def manifest(system: str, *, model: str = "openai/solver", tree: bool = False) -> dict[str, object]:
    return {
        "v": 1,
        "kace": "0.1.0",
        "config": {"model": model},
        "system": {"name": system, "artefact": None},
        "data": {"name": "starter", "split": "test", "problems": 40, "hash": "d" * 64},
        "tree": {"hash": "a" * 64, "cards": 31} if tree else None,
    }


def an_arm(name: str, *, skill: float = 0.0, fixed: int = 0, tree: bool = False, labelled: bool = True) -> Table:
    """`fixed` attempts without a ladder, or the ladder where it is 0; `skill` shifts every problem's rate."""
    draw = random.Random(f"{name} 40 3")
    rows = []
    for number in range(40):
        hardness = random.Random(number).betavariate(0.6, 0.5)
        rate = min(0.98, max(0.0, 1 - hardness + (skill if hardness < 0.9 else 0)))
        for seed in range(3):
            rows.append(_row(number, seed, rate, draw, fixed=fixed, tree=tree, labelled=labelled))
    return Table.of(rows, name=name, manifest=manifest(name, tree=tree))


def _row(
    number: int, seed: int, rate: float, draw: random.Random, *, fixed: int, tree: bool, labelled: bool
) -> SolveRow:
    right = wrong = 0
    exit_ = None
    for size, gate in ((fixed, None),) if fixed else zip(SIZES, GATES, strict=True):
        tier_right = sum(draw.random() < rate for _ in range(size))
        tier_wrong = sum(draw.random() < 0.45 for _ in range(size - tier_right))
        right, wrong = right + tier_right, wrong + size - tier_right
        if gate and max(tier_right, tier_wrong) >= 2:
            exit_ = gate
            break
    calls = right + wrong
    if not fixed and exit_ is None:
        exit_ = ExitPath.FALLBACK_PLURALITY if right >= 2 else ExitPath.FALLBACK_LAST_HS
    reads = tree and exit_ is not ExitPath.ES_UNANIMOUS
    return SolveRow(
        problem=f"{number:064x}",
        label=f"P{number}",
        family=None,
        domain=None,
        seed=seed,
        correct=right * 2 > wrong if labelled else None,
        exit=exit_,
        paper_calls=fixed or PAPER_CALLS[exit_ or ExitPath.ES_UNANIMOUS],
        real_calls=calls,
        attempts=calls,
        right_attempts=right if labelled else 0,
        usage=Usage(calls * 310 + (calls - 2) * 400 * reads, calls * 120, calls * 640),
        classifier_calls=int(reads),
        classifier=Usage(420 * reads, 300 * reads, 12 * reads),
        card_tokens=640 * reads,
        estimated=True,
        cards=("EXACT_IT_HELPS",) if reads else (),
        seconds=4.0 * calls,
    )
