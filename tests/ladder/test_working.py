"""The winning attempt, and its working as it is returned with the answer."""

from __future__ import annotations

import pytest

import kace
from kace.ladder.record import Solution
from kace.models.scripted import Scripted
from tests.exits import place_of


def solved(*texts: str, **settings: object) -> Solution:
    """A solve whose attempts say these texts, in their order."""
    return kace.solve("What is it?", Scripted(lambda request: texts[place_of(request)]), **settings)


def boxes(*answers: str) -> list[str]:
    return [f"Attempt {at}: \\boxed{{{answer}}}" for at, answer in enumerate(answers)]


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        ("11", 0),
        ("12131", 2),  # 1 and 2 of ES, then 1, 3, 1 of MS: the first of MS that gave the answer
        ("1234567899", 8),
        ("1234516789", 5),  # all ten: the answer of ES, given again at HS
        ("123456789A", 9),  # no two agree: the last
    ],
)
def test_the_winner_is_the_first_of_the_last_tier_that_gave_the_answer(answers: str, winner: int):
    solution = solved(*boxes(*answers))
    assert solution.winner is solution.attempts[winner]
    assert solution.working == boxes(*answers)[winner]


def test_a_working_that_does_not_end_in_the_answer_gets_a_sentence():
    said = "It is \\boxed{7}, as 3 + 4 shows"
    assert solved(said, said).working == f"{said}\n\nThe answer is $\\boxed{{7}}$."
    for end in (".", "$.", "\\]\n", "**"):
        closed = f"3 + 4 is \\boxed{{\\text{{7}}}}{end}"
        assert solved(closed, closed).working == closed.strip()
    thought = "<think>Is it \\boxed{3}?</think>No: \\boxed{7}"
    assert solved(thought, thought).working == "No: \\boxed{7}"


def test_without_an_answer_or_a_text_there_is_no_working():
    empty = solved(*["none"] * 10)
    assert (empty.winner, empty.working) == (None, "")
    kept = Solution.model_validate_json(solved(*boxes(*"11")).model_dump_json())
    assert kept.winner == kept.attempts[0]
    assert kept.working == ""
