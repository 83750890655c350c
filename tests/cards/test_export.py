"""Trees written for other tools, and read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from kace.cards.card import CardError, card_line
from kace.cards.formats import SOURCE, Bundle, read_exchange, to_json
from kace.cards.tree import EpistemicTree
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree, trees


def read(text: str) -> Bundle:
    return read_exchange(text.encode())


@settings(max_examples=40, deadline=None)
@given(trees())
def test_the_specs_json_round_trips_byte_for_byte_and_json_lines_hold_the_same_cards(tree: EpistemicTree):
    text = to_json(tree)
    bundle = read(text)
    again = EpistemicTree.of(bundle.domains, bundle.cards)
    assert again == tree
    assert to_json(again) == text
    assert again.content_hash() == tree.content_hash()
    lines = "".join(f"{card_line(card)}\n" for card in tree)
    if lines:
        assert read(lines).cards == tuple(tree)


def test_the_first_bad_card_is_named_by_its_place():
    good = json.loads(card_line(card("MICRO_GOOD_ONE")))
    for bad in ({**good, "difficulty_tag": "extreme"}, {**good, "card_id": "../../x"}, {**good, "extra": 1}, 7, None):
        with pytest.raises(CardError, match="card 2: "):
            read(json.dumps([good, bad]))
    with pytest.raises(CardError, match="at line 3 column"):
        read(f'{json.dumps(good)}\n\n{{"card_id": "MICRO_B\n{json.dumps(good)}\n')


def test_a_registry_is_read_alone_or_from_an_exported_tree():
    rows = {"domains": [domain.model_dump() for domain in (ALGEBRA, GEOMETRY)]}
    assert read(json.dumps(rows)).domains == (ALGEBRA, GEOMETRY)
    assert read(to_json(small_tree())).domains == (ALGEBRA, GEOMETRY)


BARE = {
    "card_id": "EXACT_COINS_LARGEST_GAP",
    "payload": "Useful when:\n- two coprime coin values\n\nThe largest gap is ab - a - b.",
    "difficulty_tag": "medium",
    "scope": "Number-Theory",
}


def test_fields_that_other_stores_leave_out_get_a_default():
    for more in ({}, {"routing_conditions": None, "provenance": {"supporting_problems": ["P7"]}}):
        (found,) = read(json.dumps([BARE | more])).cards
        assert (found.routing_conditions, found.helpfulness_score) == ((), 0.0)
        assert (found.domain_tags, found.provenance.source) == (("number_theory",), SOURCE)
    assert found.provenance.supporting_problems == ("P7",)
    old = {**BARE, "scope": ["general", "algebra"], "domain_tags": ["algebra"], "tier_eligibility": ["MS"], "tag": {}}
    assert read(json.dumps(old)).cards[0].domain_tags == ("algebra", "universal")
    assert len(read(f"{json.dumps(BARE)}\n{json.dumps(BARE)}").cards) == 2
