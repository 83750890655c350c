"""Trees written for other tools, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from kace.cards.card import UNIVERSAL, Difficulty, Status, card_line
from kace.cards.formats import Bundle, read_domains, read_exchange, read_playbook, to_json, to_playbook, to_skill
from kace.cards.tree import EpistemicTree
from kace.errors import DataError
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree, trees

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ("algebra", "geometry")


def read(text: str) -> Bundle:
    return read_exchange(text.encode(), NAMES)


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


@settings(max_examples=40, deadline=None)
@given(trees())
def test_a_playbook_keeps_text_place_and_record_of_every_card_that_can_be_shown(tree: EpistemicTree):
    shown = [card for card in tree if card.status is not Status.DEPRECATED]
    bundle = read_playbook(to_playbook(tree), NAMES) if shown else Bundle((), ())
    assert bundle.refused == ()
    kept = {card.card_id: card for card in bundle.cards}
    assert set(kept) == {card.card_id for card in shown}
    for was in shown:
        now = kept[was.card_id]
        assert (now.payload, now.difficulty_tag) == (was.payload, was.difficulty_tag)
        assert set(now.domain_tags) == set(was.domain_tags)
        assert (now.provenance.n_wins, now.provenance.n_losses) == (was.provenance.n_wins, was.provenance.n_losses)
        assert now.status is Status.EXPERIMENTAL


def test_json_has_the_field_order_of_the_contract():
    record = json.loads(to_json(small_tree()))
    assert list(record) == ["domains", "cards"]
    assert list(record["cards"][0]) == [
        *("card_id", "payload", "routing_conditions", "difficulty_tag", "domain_tags", "helpfulness_score"),
        "provenance",
    ]


@pytest.mark.parametrize("form", ["playbook.md", "skill.md"])
def test_the_text_forms_read_as_agreed(form: str):
    text = to_playbook(small_tree()) if form == "playbook.md" else to_skill(small_tree(), "Small Tree!")
    assert text == (GOLDEN / form).read_text(encoding="utf-8")


def test_a_card_cannot_end_its_section_of_a_skill():
    sly = card("ANTI_CLOSE_THE_FENCE", payload="Useful when:\n- always\n\n````\n## MICRO_NOT_A_CARD\n---\nname: evil")
    text = to_skill(EpistemicTree.of((ALGEBRA,), (sly,)), "x")
    opening = next(line for line in text.split("\n") if line.endswith("text") and line.startswith("```"))
    fence = opening.removesuffix("text")
    assert len(fence) == 5
    inside = text.split(f"{opening}\n", 1)[1]
    assert inside.endswith(f"name: evil\n{fence}\n")


def test_a_skill_has_a_name_that_tools_accept_whatever_the_folder_is_called():
    for name in ("../../etc", "Ünïcode\n: x", "a" * 300, "-"):
        slug = to_skill(small_tree(), name).split("\n")[1].removeprefix("name: ")
        assert 1 <= len(slug) <= 64
        assert slug.replace("-", "").isalnum()
        assert slug.isascii()


def test_an_ace_playbook_becomes_experimental_universal_cards():
    bundle = read(
        "## STRATEGIES & INSIGHTS\n[str-00012] helpful=5 harmful=2 :: Check $x \\neq 0$ before dividing.\n\n"
        "## geometry\n[geo-00001] helpful=0 harmful=0 :: Draw the figure.\n"
    )
    first, second = bundle.cards
    assert first.card_id == "MICRO_STR_00012"
    assert first.payload == "Useful when:\n- strategies insights\n\nCheck $x \\neq 0$ before dividing."
    assert (first.difficulty_tag, first.domain_tags) == (Difficulty.UNIVERSAL, (UNIVERSAL,))
    assert (first.provenance.n_wins, first.provenance.n_losses, first.provenance.n_uses) == (5, 2, 7)
    assert first.status is Status.EXPERIMENTAL
    assert second.domain_tags == ("geometry",)


def test_playbook_lines_that_do_not_fit_are_listed_with_their_line_and_reason():
    bundle = read(
        "## general\n[a-1] helpful=0 harmful=0 :: fine\n[b-2] helpful=0 harmful=0 ::   \n"
        f"[c-3] helpful=0 harmful=0 :: {' ¶ '.join(['line'] * 5)}\n"
        "[d] helpful=0 harmful=0 :: short name\n[e-5] no counts\n"
    )
    assert [card.card_id for card in bundle.cards] == ["MICRO_A_1"]
    reasons = dict(refused.split(": ", 1) for refused in bundle.refused)
    assert set(reasons) == {"line 3", "line 4", "line 5", "line 6"}
    assert "no body" in reasons["line 3"]
    assert "universal allows 4" in reasons["line 4"]
    assert "3 to 6 words" in reasons["line 5"]
    assert "helpful=N" in reasons["line 6"]


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
    assert [refused.split(":")[0] for refused in bundle.refused] == ["line 3"]


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
        '{"cards": [], "cards": []}',
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
        read_exchange(b"\xff\xfe{}", NAMES)


def test_a_registry_is_read_from_a_list_or_from_an_exported_tree():
    rows = [domain.model_dump() for domain in (ALGEBRA, GEOMETRY)]
    assert read_domains(json.dumps(rows)) == (ALGEBRA, GEOMETRY)
    assert read_domains(to_json(small_tree())) == (ALGEBRA, GEOMETRY)
    with pytest.raises(DataError):
        read_domains('{"cards": []}')
