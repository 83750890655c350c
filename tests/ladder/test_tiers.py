"""The ladder's shape, its exits, and when a tier can no longer change."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.answers.extract import Answer
from kace.ladder.tiers import LOCKED, PAPER_CALLS, ExitPath, Gate, Lens, TierName, is_decided
from kace.ladder.vote import Vote, count, group


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
    assert set(LOCKED[1].lenses) == set(Lens)
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


def test_nothing_is_decided_while_the_gate_is_closed():
    assert not is_decided(Gate(2), vote_of(["1", "2", None]), [2])


def test_two_equal_answers_of_three_decide_the_middle_tier():
    assert is_decided(Gate(2), vote_of(["7", "7", None]), [2])


def test_three_of_five_is_decided_but_two_one_one_is_not():
    assert is_decided(Gate(2), vote_of(["7", "7", "7", None, None]), [3, 4])
    assert not is_decided(Gate(2), vote_of(["7", "7", "8", None, None]), [3, 4])


def test_a_tie_that_the_attempt_order_settles_is_decided():
    # 8 can reach two votes at best, and then loses the tie because 7 came first.
    assert is_decided(Gate(2), vote_of(["7", "7", "8", "9", None]), [4])


def test_a_pending_earlier_attempt_may_still_win_a_tie():
    # Attempts 0 and 1 are missing and would come before both votes for 7.
    assert not is_decided(Gate(2), vote_of([None, None, "7", "7", "9"]), [0, 1])


def test_an_answer_without_an_exact_value_keeps_the_tier_open():
    assert not is_decided(Gate(2), vote_of(["7", "7", r"\ln 2", None, None]), [3, 4])


TOKENS = ["1", "2", "3", "2/2", None]


@given(
    before=st.lists(st.sampled_from(TOKENS), min_size=0, max_size=5),
    tier=st.lists(st.sampled_from(TOKENS), min_size=2, max_size=5),
    data=st.data(),
)
def test_a_decided_tier_keeps_its_answer_whatever_the_rest_say(before, tier, data):
    """For every subset that has arrived: if it is decided, every completion gives the same gate and class."""
    arrived = data.draw(st.sets(st.integers(0, len(tier) - 1)))
    partial = [text if i in arrived else None for i, text in enumerate(tier)]
    pending = [len(before) + i for i in range(len(tier)) if i not in arrived]
    vote = vote_of([*before, *partial], start=len(before))
    if not is_decided(Gate(2), vote, pending):
        return
    assert vote.leader is not None
    for fill in itertools.product(["1", "2", "3", "99", None], repeat=len(pending)):
        full = [*before, *partial]
        for position, text in zip(pending, fill, strict=True):
            full[position] = text
        whole = vote_of(full, start=len(before))
        assert Gate(2).opens(whole)
        assert whole.leader is not None
        assert whole.leader.answer.key == vote.leader.answer.key
