"""Ranking by meaning finds what shares no word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kace.cards.card import Card, Difficulty, Provenance
from kace.ladder.retrieve import rank


def card(name: str, trigger: str) -> Card:
    return Card(
        card_id=f"EXACT_{name}_RULE",
        payload=f"Useful when:\n- {trigger}\n\nDo.",
        routing_conditions=(),
        difficulty_tag=Difficulty.MEDIUM,
        domain_tags=("all",),
        helpfulness_score=0.0,
        provenance=Provenance(source="test"),
    )


CARDS = [
    card("POLYGON", "angles of a polygon"),
    card("SPEED", "speed over equal distances"),
    card("COINS", "coins and change"),
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
    assert rank(problem, CARDS, "meaning")[0].card_id == best


def test_every_card_is_ranked_once_and_an_empty_block_is_empty():
    assert set(rank("anything", CARDS, "meaning")) == set(CARDS) == set(rank("anything", CARDS))
    assert rank("anything", (), "meaning") == ()


def test_it_leaves_everybodys_log_as_it_was():
    script = "import logging\nfrom kace.ladder.relevance import embed\nembed(['a'])\n"
    script += "print(logging.getLogger().handlers, logging.getLogger().level)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "30"]
