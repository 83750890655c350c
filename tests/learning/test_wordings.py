"""Cards are found by wordings in other stories: the teacher writes them, code reads them, and no solver does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kace.cards.card import card_line, read_card
from kace.cards.store import TreeStore, open_tree
from kace.ladder.prompt import card_text
from kace.learning.revise import read_wordings
from kace.learning.screen import HeldOutHashes
from kace.problems import Problem
from tests.command import run_kace
from tests.learning.sound_cards import sound_card
from tests.learning.test_loop import learned, shown
from tests.learning.world import World

SPEED = sound_card("EXACT_HARMONIC_MEAN_SPEED")
KNOWN = {SPEED.card_id: SPEED}
FOUR = "A boat rows 3 km up.\nA kite flies 4 m.\nA snail climbs 5 cm.\nA train runs 6 miles."


def block(text: str, card_id: str = SPEED.card_id) -> str:
    return f"<wordings>\nid: {card_id}\ntext:\n{text}\n</wordings>"


def test_wordings_are_read_by_card_each_once_and_no_more_than_asked_for():
    found = read_wordings(block(f"{FOUR}\n\nA kite flies 4 m.\nA fifth of 7."), KNOWN, 4)
    assert found.found == {SPEED.card_id: tuple(FOUR.split("\n"))}
    assert not found.bad


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (block("A boat rows 3 km up."), "it holds 1 wordings, and 4 are asked for"),
        (block(f"{FOUR}\n{'x' * 301}").replace("A kite flies 4 m.\n", ""), "at most 300 characters"),
        (block(FOUR, "EXACT_ANOTHER"), "no card of that id was shown"),
        (block(FOUR.replace("kite", "ki\u202ete")), "U+202E"),
        ("nothing", "there are no wordings for this card"),
    ],
)
def test_what_cannot_be_wordings_is_refused_with_its_reason(reply: str, reason: str):
    found = read_wordings(reply, KNOWN, 4)
    assert not found.found
    assert any(reason in bad.reason for bad in found.bad), found.bad


def test_a_card_without_wordings_is_written_as_before_and_one_with_them_comes_back():
    worded = SPEED.worded(FOUR.split("\n"))
    assert "wordings" not in json.loads(card_line(SPEED))
    assert read_card(card_line(worded)) == worded != SPEED
    assert card_text(worded) == card_text(SPEED), "no solver reads them"


def test_the_learner_gives_every_card_that_it_keeps_its_wordings(tmp_path: Path):
    tree = learned(World(), tmp_path / "tree", wordings=6)
    kept = [card for card in tree if card.card_id in shown(tree)]
    assert kept and all(len(card.wordings) == 6 for card in kept)
    assert not any(card.wordings for card in tree if card.card_id not in shown(tree)), "nobody finds what is not shown"
    assert open_tree(tmp_path / "tree") == tree

    class Silent(World):
        def teach(self, request: object) -> str:
            raise AssertionError("asked again")

    assert learned(Silent(), tmp_path / "tree", wordings=6) == tree


def test_wordings_for_a_tree_by_files_leave_out_what_is_held_out(tmp_path: Path):
    TreeStore.create(tmp_path / "tree", (), [SPEED.at(SPEED.difficulty_tag, ("universal",))], author="test").freeze()
    (tmp_path / "test.jsonl").write_text(
        '{"problem": "A snail climbs up a garden wall by 5 cm each morning and slides down at night", "answer": "9"}\n'
    )
    asked = ("learn", "wordings", "tree", "--teacher", "exchange/desk", "--held-out", "test.jsonl")
    asked += ("--set", "wordings=4", "--set", "wait=false")
    done = run_kace(tmp_path, *asked)
    (letter,) = (tmp_path / "desk").glob("*.request.md")
    assert done.returncode == 0 and letter.name in done.stderr
    assert "Write 4 wordings for each of these cards." in letter.read_text()
    retold = FOUR.replace(
        "A snail climbs 5 cm.", "Each morning a snail climbs up a garden wall, and slides down at night."
    )
    letter.with_name(letter.name.replace("request", "reply")).write_text(block(retold))
    done = run_kace(tmp_path, *asked)
    assert done.returncode == 0, done.stderr
    assert "3 for 1 card" in done.stdout and "kace learn calibrate tree" in done.stderr
    store = TreeStore.open(tmp_path / "tree")
    (card,) = store.load()
    assert [line[:6] for line in card.wordings] == ["A boat", "A kite", "A trai"]
    assert store.frozen_hash == store.load().content_hash()
    assert run_kace(tmp_path, *asked).stdout.startswith("wordings     0 for 0 cards"), "each has its own now"


def test_a_reply_has_room_for_so_many_wordings_and_no_more_cards_are_asked_for_at_once(tmp_path: Path):
    cards = [SPEED.model_copy(update={"card_id": f"EXACT_SPEED_{letter}"}) for letter in "ABCDEFGHIJK"]
    universal = [card.at(card.difficulty_tag, ("universal",)) for card in cards]
    TreeStore.create(tmp_path / "tree", (), universal, author="test").freeze()
    asked = ("learn", "wordings", "tree", "--teacher", "exchange/desk", "--set", "wait=false")
    for count, requests in ((16, 1), (32, 3)):
        assert run_kace(tmp_path, *asked, "--set", f"wordings={count}").returncode == 0
        assert len(list((tmp_path / "desk").glob("*.request.md"))) == requests, "one, and then two more of other text"
    done = run_kace(tmp_path, *asked, "--set", "wordings=0")
    assert done.returncode == 2 and done.stderr.startswith("kace: wordings=0 asks for none. Fix: "), done.stderr


def test_how_alike_a_wording_is_to_what_is_held_out():
    held = HeldOutHashes.of(
        [Problem("A snail climbs up a garden wall by 5 cm each morning and slides down at night", "9")]
    )
    assert (
        held.overlap("Each morning a snail climbs up a garden wall, and slides down at night.")
        > 0.55
        > held.overlap("A train runs 6 miles.")
    )
