"""What a worked example may have in common with problems that must stay unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from kace.cards.card import Example
from kace.cards.store import open_tree
from kace.config import tree_path
from kace.learning.leakage import ContaminationHashes, Leaks
from kace.learning.settings import Settings
from kace.problems import BUNDLED, Problem, load_bundled
from tests.learning.sound_cards import PAYLOADS, sound_card
from tests.recorded import published_tree

TILES = Problem("A floor of 7 by 12 feet is laid with square tiles of one foot. How many tiles are there?", "84")
HASHES = ContaminationHashes.of((TILES,))
CUT_OFF = Settings().max_overlap
ROOT = Path(__file__).resolve().parents[2]


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
    words = frozenset().union(*HASHES.templates)
    assert len(words) == 6, "floor, feet, laid, square, tile, foot"
    assert all(len(mark) == 24 for mark in HASHES.worked | HASHES.ngrams | words)
    assert "tiles" not in repr(HASHES)


RETOLD = "Square tiles are laid on the floor of a hall, 30 feet by eleven. How many tiles does it take?"


@pytest.mark.parametrize(
    ("problem", "retold"),
    [
        (RETOLD, True),
        (RETOLD.replace("30", "8 hundred").replace("eleven", "6"), True),
        ("A hall has a floor of 11 by 30 metres. How many slabs of one metre cover it?", False),
        ("Square plates of one pound are stacked. How many plates weigh 30 pounds?", False),
    ],
)
def test_a_wording_is_retold_with_other_numbers_where_most_content_words_are_the_same(problem: str, retold: bool):
    example = Example(problem, "Multiply. \\boxed{330}")
    assert bool(HASHES.retold(example, CUT_OFF)) is retold
    assert not HASHES.retold(example), "unless the setting allows any wording"
    assert (HASHES.overlap(problem) > CUT_OFF) is retold


def test_a_wording_that_is_learned_from_may_be_retold_and_one_held_out_may_not():
    card = sound_card(next(iter(PAYLOADS))).illustrated((Example(RETOLD, "Multiply: 30 * 11 = 330.\n\\boxed{330}"),))
    assert Leaks((TILES,), max_overlap=CUT_OFF).find(card) is None
    leak = Leaks((), HASHES, CUT_OFF).find(card)
    assert leak and leak.rule == "answer_leak" and "another story" in leak.reason


@pytest.mark.parametrize(("solver", "refused"), [("0.5b", 7), ("1.5b", 4)])
def test_demonstrations_known_to_retell_a_test_wording_are_over_the_default_cut_off(solver: str, refused: int):
    tree = open_tree(tree_path("starter") if solver == "0.5b" else published_tree("starter-1.5b"))
    test = ContaminationHashes.of(load_bundled("starter-1000", "test"))
    texts = [example.problem for card in tree for example in card.examples]
    over = [text for text in texts if test.overlap(text) > CUT_OFF]
    assert len(over) == refused
    known = ("In a game every throw scores either 7 or 10", "A triangular sail has corners of")
    found = [start for start in known if any(text.startswith(start) for text in over)]
    assert found == ([*known] if solver == "0.5b" else [])


def test_no_training_problem_of_the_technique_set_reaches_the_default_cut_off():
    """Its splits share techniques and no story. Other wordings of other families come over it now and then."""
    held_out = ContaminationHashes.of(
        problem for split in BUNDLED["techniques"] if split != "train" for problem in load_bundled("techniques", split)
    )
    largest = max(held_out.overlap(problem.text) for problem in load_bundled("techniques", "train"))
    assert CUT_OFF - 0.02 < largest < CUT_OFF


def test_no_card_that_the_retest_may_show_retells_one_of_its_wordings():
    retest = ContaminationHashes.of(load_bundled("techniques", "retest"))
    tree = open_tree(published_tree("techniques"))
    texts = [text for card in tree.shown for text in (*(each.problem for each in card.examples), *card.wordings)]
    assert len(texts) == 2342
    assert max(map(retest.overlap, texts)) < CUT_OFF


def test_a_card_is_refused_for_an_example_that_tells_a_held_out_problem():
    told = Example("A choir stands in 12 rows of 7. How many sing?", "Rule: multiply.\n7 * 12 = 84.\n\\boxed{84}")
    card = sound_card(next(iter(PAYLOADS))).illustrated((told,))
    other = Problem("What is 2 + 2?", "4")
    assert Leaks((other,)).find(card) is None
    leak = Leaks((other,), HASHES).find(card)
    assert leak and leak.rule == "answer_leak"
