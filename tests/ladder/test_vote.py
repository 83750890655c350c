"""Votes are over classes, in attempt order, and ties have one answer."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kace.answers.extract import Answer
from kace.ladder.tiers import AnswerClass, count, group


def classes(texts: list[str | None], pairs: set[frozenset[str]] = frozenset()) -> tuple[AnswerClass, ...]:  # type: ignore[assignment]
    async def same(left: Answer, right: Answer) -> bool:
        assert not (left.exact and right.exact), "two exact values are never compared loosely"
        return frozenset((left.text, right.text)) in pairs

    return asyncio.run(group([None if t is None else Answer.of(t) for t in texts], same))


def positions(texts: list[str | None], pairs: set[frozenset[str]] = frozenset()) -> list[tuple[int, ...]]:  # type: ignore[assignment]
    return [c.positions for c in classes(texts, pairs)]


def test_equal_values_written_differently_are_one_class():
    assert positions(["1/2", r"\frac12", "0.5", "50\\%", "50"]) == [(0, 1, 2, 3), (4,)]


def test_a_loose_match_never_chains_two_exact_classes():
    pairs = {frozenset(("0.5", r"\ln 2")), frozenset(("50", r"\ln 2"))}
    assert positions(["0.5", r"\ln 2", "50"], pairs) == [(0, 1), (2,)]
    assert positions([r"\ln 2", "50", "0.5"], pairs) == [(0, 2), (1,)]


def test_loose_answers_join_the_representative_only():
    pairs = {frozenset((r"\ln 2", r"\ln 3")), frozenset((r"\ln 3", r"\ln 5"))}
    assert positions([r"\ln 2", r"\ln 3", r"\ln 5"], pairs) == [(0, 1), (2,)]


def test_answers_that_state_different_things_meet_only_in_the_bare_value():
    pairs = {frozenset(("5", "x=5")), frozenset(("5", "y=5"))}
    assert positions(["x=5", "y=5", "x = 5"], pairs) == [(0, 2), (1,)]
    assert positions(["x=5", "y=5", "5"], pairs) == positions(["5", "y=5", "x=5"], pairs) == [(0, 1, 2)]


def test_what_is_stated_goes_before_what_has_no_value():
    pairs = {frozenset((r"\ln 2", "x=5")), frozenset((r"\ln 2", "y=5"))}
    assert positions([r"\ln 2", "x=5", "y=5"], pairs) == [(0, 1), (2,)]


def test_ties_go_to_support_over_all_attempts_then_to_the_lowest_index():
    # Tier is positions 2..4. Both 5 and 6 have one vote there; 6 was also given earlier.
    vote = count(classes(["6", "9", "5", "6", None]), 2, 5)
    assert vote.leader and vote.leader.answer.text == "6"
    vote = count(classes(["8", "9", "5", "6", None]), 2, 5)
    assert vote.leader and vote.leader.answer.text == "5"
    assert count(classes(["6", "6", None, None]), 2, 4).leader is None, "without votes in the tier"


@given(st.lists(st.sampled_from(["1", "2", "2/2", "0.5", "1/2", None]), max_size=10))
def test_every_answer_is_in_exactly_one_class(texts):
    found = sorted(p for positions_ in positions(texts) for p in positions_)
    assert found == [i for i, text in enumerate(texts) if text is not None]
