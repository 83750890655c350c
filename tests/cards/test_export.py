"""Trees written for other tools, and read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from kace.cards.card import card_line
from kace.cards.formats import SOURCE, Bundle, read_domains, read_exchange, to_json
from kace.cards.tree import EpistemicTree
from kace.errors import DataError
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree, trees


def read(text: str) -> Bundle:
    return read_exchange(text.encode())


@settings(max_examples=40, deadline=None)
@given(trees())
def test_the_specs_json_round_trips_byte_for_byte(tree: EpistemicTree):
    text = to_json(tree)
    bundle = read(text)
    assert bundle.refused == ()
    again = EpistemicTree.of(bundle.domains, bundle.cards)
    assert again == tree
    assert to_json(again) == text
    assert again.content_hash() == tree.content_hash()


@settings(max_examples=40, deadline=None)
@given(trees())
def test_json_lines_hold_the_same_cards(tree: EpistemicTree):
    lines = "".join(f"{card_line(card)}\n" for card in tree)
    if lines:
        assert read(lines).cards == tuple(tree)


def test_json_has_the_field_order_of_the_contract():
    record = json.loads(to_json(small_tree()))
    assert list(record) == ["domains", "cards"]
    assert list(record["cards"][0]) == [
        *("card_id", "payload", "routing_conditions", "difficulty_tag", "domain_tags", "helpfulness_score"),
        "provenance",
    ]


def test_a_bad_card_is_refused_and_its_neighbours_are_kept():
    good = json.loads(card_line(card("MICRO_GOOD_ONE")))
    for bad in ({**good, "difficulty_tag": "extreme"}, {**good, "card_id": "../../x"}, {**good, "extra": 1}, 7, None):
        bundle = read(json.dumps([bad, good]))
        assert [kept.card_id for kept in bundle.cards] == ["MICRO_GOOD_ONE"]
        assert [refused.split(":")[0] for refused in bundle.refused] == ["card 1"]


def test_one_bad_line_of_many_is_refused_by_its_number():
    good = card_line(card("MICRO_GOOD_ONE"))
    bundle = read(f'{good}\n\n{{"card_id": "MICRO_B\n{card_line(card("MICRO_GOOD_TWO"))}\n')
    assert [kept.card_id for kept in bundle.cards] == ["MICRO_GOOD_ONE", "MICRO_GOOD_TWO"]
    assert [refused.split(":")[0] for refused in bundle.refused] == ["line 2"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "  \n",
            "hello",
            "[" * 100_000,
            '{"cards": 7}',
            '{"cards": [], "extra": 1}',
            '{"cards": [], "domains": {}}',
        ),
        '{"cards": [], "domains": [{"name": "No Good"}]}',
        '{"a": NaN}',
        '[{"a": 1' + "0" * 5_000,
    ],
)
def test_what_is_not_a_tree_is_one_clear_error(text: str):
    with pytest.raises(DataError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_bytes_that_are_not_utf8_are_one_clear_error():
    with pytest.raises(DataError, match="UTF-8"):
        read_exchange(b"\xff\xfe{}")


def test_a_registry_is_read_from_a_list_or_from_an_exported_tree():
    rows = [domain.model_dump() for domain in (ALGEBRA, GEOMETRY)]
    assert read_domains(json.dumps(rows)) == (ALGEBRA, GEOMETRY)
    assert read_domains(to_json(small_tree())) == (ALGEBRA, GEOMETRY)
    with pytest.raises(DataError):
        read_domains('{"cards": []}')


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
    assert read(f"{json.dumps(BARE)}\n{json.dumps(BARE)}").refused == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"card_id": "coins"}, "card_id"),
        ({"difficulty_tag": None}, "difficulty_tag"),
        ({"colour": "red"}, "colour"),
        ({"payload": "Useful when: coins\n\nSum them."}, "does not begin with a trigger header"),
        ({"payload": "Useful when:\n- coins\n\n" + "line\n" * 7}, "7 non-blank lines"),
        ({"provenance": "a paper"}, "provenance"),
        ({"routing_conditions": "coins"}, "routing_conditions"),
    ],
)
def test_every_other_rule_holds(changes: dict[str, object], words: str):
    bundle = read(json.dumps([BARE | changes, BARE]))
    assert [card.card_id for card in bundle.cards] == [BARE["card_id"]]
    assert len(bundle.refused) == 1 and words in bundle.refused[0]
