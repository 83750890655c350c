"""What a worked example may have in common with problems that must stay unknown."""

from __future__ import annotations

import pytest

from kace.learner.leakage import ContaminationHashes, Leaks
from kace.problem import Problem
from kace.tree.card_text import Example
from tests.learner.sound_cards import PAYLOADS, sound_card

TILES = Problem("A floor of 7 by 12 feet is laid with square tiles of one foot. How many tiles are there?", "84")
HASHES = ContaminationHashes.of((TILES,))


@pytest.mark.parametrize(
    ("problem", "answer"),
    [
        ("A choir stands in 12 rows of 7. How many sing?", "84"),
        ("7 crates hold 12 eggs each, in 1 cart. How many eggs?", "84.0"),
        ("A floor of 3 by 5 feet is laid with square tiles of one foot. How many?", "15"),
    ],
)
def test_the_numbers_with_the_answer_and_the_wording_are_retold(problem: str, answer: str):
    assert HASHES.retold(Example(problem, f"Multiply. \\boxed{{{answer}}}"))


@pytest.mark.parametrize(
    ("problem", "answer"),
    [
        ("A choir stands in 4 rows of 21. How many sing?", "84"),
        ("A choir of 12 meets 7 others. How many are they?", "19"),
        ("7 and 12 and 3 are multiplied, then divided by 3.", "84"),
    ],
)
def test_an_answer_alone_and_numbers_alone_are_free(problem: str, answer: str):
    assert not HASHES.retold(Example(problem, f"Work. \\boxed{{{answer}}}"))


def test_only_hashes_are_kept():
    assert "84" not in repr(HASHES) or all(len(mark) == 24 for mark in HASHES.worked | HASHES.ngrams)
    assert "tiles" not in repr(HASHES)


def test_a_card_is_refused_for_an_example_that_tells_a_held_out_problem():
    told = Example("A choir stands in 12 rows of 7. How many sing?", "Rule: multiply.\n7 * 12 = 84.\n\\boxed{84}")
    card = sound_card(next(iter(PAYLOADS))).illustrated((told,))
    other = Problem("What is 2 + 2?", "4")
    assert Leaks((other,)).find(card) is None
    leak = Leaks((other,), HASHES).find(card)
    assert leak and leak.rule == "answer_leak"
