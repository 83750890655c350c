"""Cards are found by wordings in other stories: the teacher writes them, code reads them, and no solver does."""

from __future__ import annotations

import json

import pytest

from kace.cards.card import card_line, read_card
from kace.ladder.prompt import card_text
from kace.learning.revise import wordings
from kace.learning.teacher import read_by_card
from tests.learning.sound_cards import sound_card

SPEED = sound_card("EXACT_HARMONIC_MEAN_SPEED")
KNOWN = [SPEED]
FOUR = "A boat rows 3 km up.\nA kite flies 4 m.\nA snail climbs 5 cm.\nA train runs 6 miles."


def block(text: str, card_id: str = SPEED.card_id) -> str:
    return f"<wordings>\nid: {card_id}\ntext:\n{text}\n</wordings>"


def test_wordings_are_read_by_card_each_once_and_no_more_than_asked_for():
    writing = wordings(4, lambda line: "snail" in line)
    reply = block(f"{FOUR}\n\nA kite flies 4 m.\nA fifth of 7.")
    found = read_by_card(reply, writing.grammar, KNOWN, writing.add)
    told = tuple(line for line in FOUR.split("\n") if "snail" not in line)
    assert found.found == {SPEED.card_id: SPEED.revised(wordings=told)}, "without what retells a problem held out"
    assert not found.bad


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (block("A boat rows 3 km up."), "it holds 1 wordings, and 4 are asked for"),
        (block(f"{FOUR}\n{'x' * 301}").replace("A kite flies 4 m.\n", ""), "at most 300 characters"),
        (block(FOUR, "EXACT_ANOTHER"), "no card of that id was shown"),
        (block(FOUR.replace("kite", "ki\u202ete")), "U+202E"),
        ("nothing", "there is no block wordings for this card"),
    ],
)
def test_what_cannot_be_wordings_is_refused_with_its_reason(reply: str, reason: str):
    writing = wordings(4, lambda line: False)
    found = read_by_card(reply, writing.grammar, KNOWN, writing.add)
    assert not found.found
    assert any(reason in bad.reason for bad in found.bad), found.bad


def test_a_card_without_wordings_is_written_as_before_and_one_with_them_comes_back():
    worded = SPEED.revised(wordings=tuple(FOUR.split("\n")))
    assert "wordings" not in json.loads(card_line(SPEED))
    assert read_card(card_line(worded)) == worded != SPEED
    assert card_text(worded) == card_text(SPEED), "no solver reads them"
