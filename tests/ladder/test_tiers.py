"""The ladder's shape and its exits."""

from __future__ import annotations

import asyncio

import pytest

from kace.answers.extract import Answer
from kace.ladder.tiers import LOCKED, PAPER_CALLS, ExitPath, Gate, Lens, TierName, Vote, count, group


async def never(left: Answer, right: Answer) -> bool:
    return False


def vote_of(texts: list[str | None], start: int = 0) -> Vote:
    answers = [None if text is None else Answer.of(text) for text in texts]
    return count(asyncio.run(group(answers, never)), start, len(answers))


def test_the_ladder_is_two_then_three_then_five():
    assert [(tier.name, tier.attempts, tier.gate.votes) for tier in LOCKED] == [
        (TierName.ES, 2, 2),
        (TierName.MS, 3, 2),
        (TierName.HS, 5, 2),
    ]
    assert LOCKED[0].lenses == (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN)
    assert LOCKED[1].lenses == (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN, Lens.PROBLEM_SETUP)
    assert set(LOCKED[2].lenses) == {None}


def test_exits_rank_from_easy_to_hard():
    assert [path.rank for path in ExitPath] == [4, 3, 2, 1, 0]
    assert ExitPath.ES_UNANIMOUS.rank == 4
    assert ExitPath.FALLBACK_LAST_HS.rank == 0


@pytest.mark.parametrize(
    ("exits", "calls"),
    [((38, 22, 19, 6, 5), 5.40), ((98, 41, 8, 3, 0), 3.41)],
    ids=["AIME25 tiered, 90 cells", "MATH-HARD KACE, 150 cells"],
)
def test_the_papers_exit_cells_give_the_papers_calls(exits: tuple[int, ...], calls: float):
    counted = dict(zip(ExitPath, exits, strict=True))
    assert round(sum(PAPER_CALLS[path] * n for path, n in counted.items()) / sum(counted.values()), 2) == calls


def test_attempts_without_an_answer_never_agree():
    assert not Gate(2).opens(vote_of([None, None]))
    assert not Gate(2).opens(vote_of([None, "5"]))


def test_two_equal_values_open_the_first_gate():
    assert LOCKED[0].gate.opens(vote_of(["1/2", "0.5"]))
