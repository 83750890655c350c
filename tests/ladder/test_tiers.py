"""The ladder's shape and its exits."""

from __future__ import annotations

import pytest

from kace.ladder.tiers import LOCKED, ExitPath, Lens, TierName
from tests.exits import PAPER_CALLS


def test_the_ladder_is_two_then_three_then_five():
    assert [(tier.name, tier.attempts, tier.gate) for tier in LOCKED] == [
        (TierName.ES, 2, 2),
        (TierName.MS, 3, 2),
        (TierName.HS, 5, 2),
    ]
    assert LOCKED[0].lenses == (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN)
    assert LOCKED[1].lenses == (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN, Lens.PROBLEM_SETUP)
    assert set(LOCKED[2].lenses) == {None}


def test_exits_rank_from_easy_to_hard():
    assert [path.rank for path in ExitPath] == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("exits", "calls"),
    [((38, 22, 19, 6, 5), 5.40), ((98, 41, 8, 3, 0), 3.41)],
    ids=["AIME25 tiered, 90 cells", "MATH-HARD KACE, 150 cells"],
)
def test_the_papers_exit_cells_give_the_papers_calls(exits: tuple[int, ...], calls: float):
    counted = dict(zip(ExitPath, exits, strict=True))
    assert round(sum(PAPER_CALLS[path] * n for path, n in counted.items()) / sum(counted.values()), 2) == calls
