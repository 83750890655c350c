"""Cards as papers and other stores write them are made to fit, and it is said what was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from kace.cards.card import CardError, Difficulty, card_line, card_of
from kace.cards.formats import SOURCE, loosened, read_exchange, tree_from_json
from kace.cards.store import TreeStore
from kace.errors import DataError
from tests.card_samples import cards, small_tree
from tests.command import run_kace

COINS = {
    "card_id": "EXACT_COINS_LARGEST_GAP",
    "payload": "Useful when: two coprime coin values; largest amount out of reach\nDo not apply if: three coins\n\n"
    "For coprime a and b the largest amount that cannot be paid is ab - a - b.",
    "difficulty_tag": "medium",
    "scope": "Number-Theory",
    "tier_eligibility": ["MS"],
    "tag": "formula",
}
ANGLES = {
    "card_id": "RUBRIC_CHASE_EQUAL_ANGLES",
    "payload": "Useful when:\n* four points lie on one circle and angles between chords are asked for\n\n"
    "Do not apply if:\n* only lengths are known\n\n1. Mark equal arcs.\n2. Write each angle by its arc.\n\n3. Solve.",
    "routing_conditions": None,
    "difficulty_tag": "hard",
    "domain_tags": ["geometry"],
    "provenance": {"supporting_problems": ["P7"]},
}
ASKED = {
    "card_id": "READING_WHAT_IS_ASKED",
    "payload": "useful when\nthe unknown is defined late\n\nReread the last sentence before you answer.",
    "routing_conditions": [],
    "difficulty_tag": "universal",
    "domain_tags": ["universal"],
    "helpfulness_score": 1,
    "provenance": {"source": "hand"},
}


def read(*given: object) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    bundle = read_exchange(json.dumps(given).encode(), ())
    assert not bundle.refused
    return {card.card_id: card for card in bundle.cards}, dict(bundle.changed)


def test_three_cards_in_a_looser_form_are_read_and_what_changed_is_said():
    found, changed = read(COINS, ANGLES, ASKED)
    coins, angles, asked = found.values()
    assert coins.triggers == ("two coprime coin values", "largest amount out of reach")
    assert coins.header.endswith("Do not apply if:\n- three coins")
    assert (coins.domain_tags, coins.provenance.source, coins.helpfulness_score) == (("number_theory",), SOURCE, 0.0)
    assert changed["EXACT_COINS_LARGEST_GAP"] == (
        *("added routing_conditions", "added helpfulness_score", "added provenance", "read scope as domain tags"),
        *("left out tier_eligibility", "left out tag", "wrote the header as bullets"),
    )
    long = "four points lie on one circle and angles between chords are asked for"
    assert angles.triggers == ("four points lie on one",) and angles.routing_conditions == (long,)
    assert angles.body == "1. Mark equal arcs.\n2. Write each angle by its arc.\n\n3. Solve."
    assert angles.provenance.supporting_problems == ("P7",) and angles.provenance.source == SOURCE
    assert changed["RUBRIC_CHASE_EQUAL_ANGLES"][-3:] == (
        "added provenance.source",
        "wrote the header as bullets",
        "cut a trigger to 5 words, whole among the routing conditions",
    )
    assert asked.triggers == ("the unknown is defined late",) and asked.difficulty_tag is Difficulty.UNIVERSAL
    assert changed["READING_WHAT_IS_ASKED"] == ("wrote the header as bullets",)


@given(cards())
def test_a_card_that_fits_comes_back_as_it_is(card):
    record = json.loads(card_line(card))
    assert loosened(record) == (record, ())


@pytest.mark.parametrize("card", [COINS, ANGLES, ASKED])
def test_what_was_loosened_needs_no_more(card: dict[str, object]):
    again = json.loads(card_line(card_of(loosened(card)[0])))
    assert loosened(again) == (again, ())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"card_id": "coins"}, "card_id"),
        ({"difficulty_tag": "impossible"}, "difficulty_tag"),
        ({"difficulty_tag": None}, "difficulty_tag"),
        ({"colour": "red"}, "colour"),
        ({"payload": "Pay with coins.\n\nSum them."}, "does not begin with a trigger header"),
        ({"payload": "Useful when: coins\nDo not apply if: notes"}, "no body"),
        ({"payload": "Useful when:\n\nSum them."}, "Useful when"),
        ({"payload": "Useful when: coins\n\n" + "line\n" * 7}, "7 non-blank lines"),
        ({"provenance": "a paper"}, "provenance"),
        ({"routing_conditions": "coins"}, "routing_conditions"),
    ],
)
def test_every_other_rule_stays(changes: dict[str, object], said: str):
    bundle = read_exchange(json.dumps([{**COINS, **changes}, ASKED]).encode(), ())
    assert [card.card_id for card in bundle.cards] == ["READING_WHAT_IS_ASKED"]
    assert len(bundle.refused) == 1 and said in bundle.refused[0]
    assert set(bundle.changed) == {"READING_WHAT_IS_ASKED"}


def test_a_tree_file_and_one_card_stay_strict():
    with pytest.raises(DataError, match="EXACT_COINS_LARGEST_GAP"):
        tree_from_json(json.dumps([COINS]).encode())
    with pytest.raises(CardError, match="EXACT_COINS_LARGEST_GAP"):
        card_of(COINS)


@pytest.mark.parametrize("form", ["list", "lines"])
def test_kace_tree_add_warns_of_each_card_it_changed(tmp_path: Path, form: str):
    store = TreeStore.create(tmp_path / "small", small_tree().domains, small_tree())
    given = [ANGLES, ASKED, {**COINS, "scope": "no such domain"}]
    text = json.dumps(given) if form == "list" else "\n".join(map(json.dumps, given))
    done = run_kace(tmp_path, "tree", "add", "small", "-", stdin=text)
    assert done.returncode == 1, "a domain the tree has not is refused as ever"
    assert done.stdout.split() == ["RUBRIC_CHASE_EQUAL_ANGLES", "READING_WHAT_IS_ASKED"]
    assert "changed READING_WHAT_IS_ASKED: wrote the header as bullets\n" in done.stderr
    assert "changed RUBRIC_CHASE_EQUAL_ANGLES: added routing_conditions; " in done.stderr
    assert "changed EXACT_COINS" not in done.stderr and "refused EXACT_COINS_LARGEST_GAP" in done.stderr
    assert store.load().card("READING_WHAT_IS_ASKED").triggers == ("the unknown is defined late",)
