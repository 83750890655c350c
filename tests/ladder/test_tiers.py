"""The ladder's shape and its exits."""

from __future__ import annotations

from kace.ladder.tiers import LOCKED, ExitPath, Lens, TierName


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
