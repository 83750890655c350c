"""Writings of the answer 4217: each is refused in a card and in a worked example, or is listed as not read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kace.cards.card import Example
from kace.learning.leakage import ContaminationHashes, Leaks
from kace.learning.text import other_writings
from kace.problems import Problem
from tests.card_samples import card

ROWS = [tuple(line.split("\t")) for line in Path(__file__).with_name("encodings.tsv").read_text("utf-8").splitlines()]
READ = [text.replace("↵", "\n") for verdict, text in ROWS if verdict == "read"]
NOT_READ = [text for verdict, text in ROWS if verdict == "not read"]
LANTERNS = Problem(
    "Each of 61 bridges over the canal has 69 lanterns, and 8 more hang at the lock. How many hang?", "4217"
)
LEAKS = Leaks((LANTERNS,))


def refused(text: str, leaks: Leaks = LEAKS) -> bool:
    """Whether a card that says so is refused for an answer."""
    found = leaks.find(card("MICRO_SOME_RULE", payload=f"Useful when:\n- it fits\n\nIt is {text}."))
    return found is not None and found.rule == "answer_leak"


def test_the_table_repeats_nothing() -> None:
    assert {row[0] for row in ROWS} == {"read", "not read"}
    assert [row for row, times in Counter(ROWS).items() if times > 1] == []
    assert len(READ) >= 120


@pytest.mark.parametrize("text", READ)
def test_a_card_that_writes_the_answer_is_refused(text: str) -> None:
    assert refused(text)


@pytest.mark.parametrize("text", NOT_READ)
def test_what_has_to_be_worked_out_is_not_promised(text: str) -> None:
    assert not refused(text)


@pytest.mark.parametrize("text", READ)
def test_a_worked_example_is_held_to_the_same(text: str) -> None:
    hashes = ContaminationHashes.of((LANTERNS,))
    story = "In 61 rows stand 69 chairs each, and 8 more stand in front. How many chairs are there?"
    assert hashes.retold(Example(story, f"Multiply, then add.\nThe answer is \\boxed{{{text}}}."))
    assert not hashes.retold(Example(story.replace("69", "70"), f"The answer is \\boxed{{{text}}}."))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("1512", "1/5 and 1/2 of it"),
        ("4000", "4k + 1 for some k"),
        ("4217", r"\frac{42}{17} of it"),
        ("4217", r"\frac42{17}"),
        ("4217", "the 4th of 217 in all"),
        ("142", "1, 4, 2, as small numbers are"),
        ("1250", "a 12 by 50 grid"),
        ("210", r"2^{10}"),
        ("1001", "M, the midpoint, and I, the incentre"),
        ("1234", "steps 1. to 4. in order"),
    ],
)
def test_ordinary_writing_is_not_mistaken(answer: str, text: str) -> None:
    assert not refused(text, Leaks((Problem("How many lanterns hang along the canal in winter?", answer),)))


@pytest.mark.parametrize(
    "bomb",
    ["1 ", "{1}", "one ", "hundred ", "4 thousand ", r"\hspace{0", "%3", "M", "A", "1.000", "4-", "(", " ", "*1"],
)
def test_no_text_makes_reading_fail(bomb: str) -> None:
    text = (bomb * 8_000)[:8_000]
    assert all(100 <= value < 10**40 for value in other_writings(text))
