"""Ranking cards inside a block."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.cards.card import Card
from kace.config import RetrievalConfig
from kace.ladder.relevance import words
from kace.ladder.retrieve import Retriever, rank
from tests.card_samples import card as sample


def card(card_id: str, *triggers: str, routing: tuple[str, ...] = ()) -> Card:
    header = "\n".join(("Useful when:", *(f"- {trigger}" for trigger in triggers)))
    return sample(card_id, payload=f"{header}\n\nWork it out.", routing_conditions=routing)


REMAINDER = card("EXACT_POWER_REMAINDER", "remainder of large power")
TRIANGLE = card("RUBRIC_TRIANGLE_AREA", "triangle with known sides")
PAIRS = card("MICRO_HANDSHAKE_PAIRS", "everybody meets everybody once")
BLOCK = (REMAINDER, TRIANGLE, PAIRS)


def ids(cards: Sequence[Card]) -> list[str]:
    return [c.card_id for c in cards]


def test_words_are_lower_case_without_plurals_numbers_or_single_letters():
    assert words("The 3 Triangles of side x = 12 cm") == ["triangle", "side", "cm"]
    assert words("mass of a class") == ["mass", "class"]
    assert words(r"$\binom{n}{k} + \sqrt{2}$") == ["binom", "sqrt"]


def test_the_card_that_speaks_of_the_problem_comes_first():
    assert rank("Find the remainder of 7^{100} divided by 13.", BLOCK)[0] is REMAINDER
    assert rank("Two triangles have equal sides.", BLOCK)[0] is TRIANGLE


def test_the_words_of_an_id_and_of_routing_conditions_count():
    assert rank("How many handshakes?", BLOCK)[0] is PAIRS
    routed = card("MICRO_PLAIN_RULE", "something else", routing=("the problem has a hexagon",))
    assert rank("A hexagon.", (*BLOCK, routed))[0] is routed


def test_a_rare_word_outweighs_a_common_one():
    common = [card(f"MICRO_COMMON_NO{n}", "integer") for n in range(9)]
    rare = card("MICRO_RARE_CARD", "parabola")
    assert rank("an integer point of the parabola", (*common, rare))[0] is rare


def test_cards_without_a_word_in_common_stay_in_their_order():
    assert rank("nothing of the sort", BLOCK) == BLOCK
    assert rank("", BLOCK) == BLOCK
    assert rank("any", ()) == rank("any", (), "meaning") == ()


@given(st.text(max_size=200), st.permutations(BLOCK))
def test_ranking_loses_and_invents_no_card(problem: str, cards: list[Card]):
    assert sorted(ids(rank(problem, cards))) == sorted(ids(cards))


class Sized(Retriever):
    """Fits cards of given sizes."""

    def __init__(self, limit: int, sizes: Sequence[int]) -> None:
        self.config = RetrievalConfig.model_construct(max_card_tokens=limit)
        self.sizes = dict(zip(ids(BLOCK), sizes, strict=True))

    def size(self, cards: Sequence[Card]) -> int:
        return sum(self.sizes[card.card_id] for card in cards)


def fit(problem: str, limit: int, sizes: Sequence[int] = (10, 10, 10)) -> tuple[Card, ...]:
    return Sized(limit, sizes).fit(problem, BLOCK)


def test_a_block_that_fits_is_left_as_it_is():
    assert fit("triangle", 30) == BLOCK


def test_of_a_block_too_large_the_best_are_kept_in_the_blocks_order():
    assert fit("triangle sides and handshakes", 29) == (TRIANGLE, PAIRS)
    assert fit("remainder, or handshakes", 25) == (REMAINDER, PAIRS)
    assert fit("triangle", 0) == ()


def test_a_card_too_large_for_what_is_left_is_passed_over():
    assert fit("triangle sides", 14, (6, 100, 6)) == (REMAINDER, PAIRS)


@given(st.integers(0, 60), st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_what_is_shown_never_exceeds_the_limit(limit: int, sizes: list[int]):
    shown = fit("triangle remainder", limit, sizes)
    size = dict(zip(ids(BLOCK), sizes, strict=True))
    assert sum(size[c.card_id] for c in shown) <= limit
    assert list(shown) == [c for c in BLOCK if c in shown]


# By meaning

CARDS = [
    card("EXACT_POLYGON_RULE", "angles of a polygon"),
    card("EXACT_SPEED_RULE", "speed over equal distances"),
    card("EXACT_COINS_RULE", "coins and change"),
]


@pytest.mark.parametrize(
    ("problem", "best"),
    [
        ("A cyclist rides out at 10 km/h and back at 15 km/h.", "EXACT_SPEED_RULE"),
        ("How many ways to pay one euro with 20 and 50 cent pieces?", "EXACT_COINS_RULE"),
        ("The corners of a pentagon add up to how many degrees?", "EXACT_POLYGON_RULE"),
    ],
)
def test_the_nearest_card_comes_first_without_a_shared_word(problem: str, best: str):
    ranked = rank(problem, CARDS, "meaning")
    assert ranked[0].card_id == best and set(ranked) == set(CARDS)


def test_it_leaves_everybodys_log_as_it_was():
    script = "import logging\nfrom kace.ladder.relevance import embed\nembed(['a'])\n"
    script += "print(logging.getLogger().handlers, logging.getLogger().level)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "30"]
