"""Characters that count as digits and are no numbers."""

from kace.learning.leakage import Leaks
from kace.problems import Problem
from tests.card_examples import a_card


def test_a_problem_with_superscript_digits_can_be_learned_from():
    train = (Problem("A tile of 25 cm² and ² others, ④ in all: how many?", "41"),)
    assert Leaks(train).find(a_card()) is None
