"""Search in a tree finds cards by the beginnings of words, and marks them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.tree.card import Card
from kace.tree.tree import EpistemicTree
from kace.view import card_rows, search_page
from kace.view.card_index import MAX_WORDS, CardIndex, Query
from kace.view.card_rows import PER_PAGE
from kace.view.page import Page
from tests.card_examples import DOMAINS, a_card
from tests.view.samples import a_tree
from tests.view.tree_views import Grown, ids, many, page_of, said, shelf_of

CARDS = (
    a_card("EXACT_PRIME_FACTORS", payload="Useful when:\n- many divisors\n\nSplit it: $\\frac{n}{p}$."),
    a_card("RUBRIC_ONE_TWO", payload="Useful when:\n- a prime is given\n\nTry each.\nComprise nothing."),
    a_card("RUBRIC_THREE_FOUR", payload="Useful when:\n- a square\n\nIs it PRIME? Ask <b>twice</b> & “again”."),
    a_card("RUBRIC_FIVE_SIX", payload="Useful when:\n- a comprised sum\n\nNothing else."),
)


def found(asked: str, cards: tuple[Card, ...] = CARDS) -> list[str]:
    return [card.card_id for card in CardIndex(cards).find(Query.of(asked))]


def search(tmp_path: Path, asked: str, **query: str) -> Page:
    a_tree(tmp_path / "oak", CARDS)
    return page_of(shelf_of(tmp_path / "oak"), "/tree/oak/search", q=asked, **query)


def test_an_id_counts_more_than_a_trigger_and_a_trigger_more_than_a_body() -> None:
    assert found("prime") == ["EXACT_PRIME_FACTORS", "RUBRIC_ONE_TWO", "RUBRIC_THREE_FOUR"]


def test_a_word_matches_where_a_word_begins_in_any_case() -> None:
    assert found("PRIM") == found("prim") == found("prime")
    assert found("rime") == []
    assert found("compris") == ["RUBRIC_FIVE_SIX", "RUBRIC_ONE_TWO"]


def test_all_words_must_be_there_wherever_they_stand() -> None:
    assert found("prime divisors") == ["EXACT_PRIME_FACTORS"]
    assert found("divisors prime split") == ["EXACT_PRIME_FACTORS"]
    assert found("prime square zebra") == []


def test_tex_routing_and_marks_around_words_are_found() -> None:
    assert found("\\frac") == ["EXACT_PRIME_FACTORS"]
    assert found("frac") == ["EXACT_PRIME_FACTORS"]
    assert found("“again”,") == ["RUBRIC_THREE_FOUR"]
    assert len(found("squares added")) == len(CARDS)  # their routing condition
    assert found("EXACT_PRIME_FACTORS") == ["EXACT_PRIME_FACTORS"]


def test_no_word_is_found_across_two_cards_or_fields() -> None:
    one = a_card("EXACT_ENDS_IN_AB", payload="Useful when:\n- x\n\nends in ab", routing_conditions=())
    two = a_card("EXACT_FOLLOWS_IT_C", payload="Useful when:\n- x\n\nc", routing_conditions=())
    assert found("ab exact_follows", (one, two)) == []
    assert found("abexact", (one, two)) == []


def test_a_query_is_cut_to_what_can_be_looked_for() -> None:
    query = Query.of(" ".join(f"word{n}" for n in range(20)))
    assert len(query.words) == MAX_WORDS
    assert query.cut
    assert Query.of("x" * 500).cut
    assert Query.of("a A a").words == ("a",)
    assert not Query.of("  ").words


@settings(deadline=None)
@given(st.text(max_size=60), st.lists(st.text("ab é_\\<&\n", max_size=30), max_size=4))
def test_whatever_is_asked_every_card_found_holds_every_word(asked: str, bodies: list[str]) -> None:
    cards = [
        a_card().model_copy(update={"card_id": f"EXACT_N_{n}", "payload": f"Useful when:\n- x\n\n{body}"})
        for n, body in enumerate(bodies)
    ]
    query = Query.of(asked)
    for card in CardIndex(cards).find(query):
        text = "\n".join((card.card_id, card.payload, *card.routing_conditions)).lower()
        assert all(word in text for word in query.words)


def test_results_have_the_words_marked_and_the_rest_escaped(tmp_path: Path) -> None:
    page = search(tmp_path, "prime twice")
    assert ids(page.body) == ["RUBRIC_THREE_FOUR"]
    assert "Is it <mark>PRIME</mark>? Ask &lt;b&gt;<mark>twice</mark>&lt;/b&gt; &amp;" in page.body
    assert "1 card of 4" in said(page)
    assert "EXACT_<wbr><mark>PRIME</mark>_<wbr>FACTORS" in search_again(tmp_path, "prime").body


def search_again(tmp_path: Path, asked: str) -> Page:
    return page_of(shelf_of(tmp_path / "oak"), "/tree/oak/search", q=asked)


def test_a_hostile_query_is_only_text(tmp_path: Path) -> None:
    bad = '"><script>alert(1)</script> (((([[[*+?{ \\'
    page = search(tmp_path, bad)
    assert page.status == 200
    assert "<script" not in page.body
    assert "&quot;&gt;&lt;script&gt;" in page.body


def test_nothing_found_says_which_word_is_nowhere(tmp_path: Path) -> None:
    words = said(search(tmp_path, "prime zebra"))
    assert "No card holds a word that begins with zebra ." in words
    assert "no card holds all of" in said(search_again(tmp_path, "divisors twice"))


def test_without_words_the_page_says_how_to_search(tmp_path: Path) -> None:
    for asked in ("", "   "):
        a_tree(tmp_path / f"t{len(asked)}", CARDS)
        page = page_of(shelf_of(tmp_path / f"t{len(asked)}"), f"/tree/t{len(asked)}/search", q=asked)
        assert "The beginning of a word is enough" in said(page)
        assert "<form" in page.body


def test_a_long_line_is_cut_around_what_was_found(tmp_path: Path) -> None:
    body = "word " * 200 + "needle " + "more " * 200
    a_tree(tmp_path / "oak", [a_card(payload=f"Useful when:\n- x\n\n{body}")])
    page = page_of(shelf_of(tmp_path / "oak"), "/tree/oak/search", q="needle")
    assert "<mark>needle</mark>" in page.body
    assert "…" in page.body
    assert len(page.body) < 4_000


def test_an_empty_tree_can_be_searched(tmp_path: Path) -> None:
    shelf = Grown(EpistemicTree.of(DOMAINS, ()), tmp_path)
    assert "Nothing found" in said(page_of(shelf, "/tree/large/search", q="prime"))


def test_a_search_of_a_hundred_thousand_cards_draws_only_the_cards_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Grown(many(100_000), tmp_path)
    told: list[str] = []
    drawn: list[str] = []
    tell, row = search_page._told, card_rows._row
    monkeypatch.setattr(search_page, "_told", lambda card, pattern: (told.append(card.card_id), tell(card, pattern))[1])
    monkeypatch.setattr(card_rows, "_row", lambda card, *rest: (drawn.append(card.card_id), row(card, *rest))[1])
    page = page_of(shelf, "/tree/large/search", q="squares", page="1999")
    assert "100,000 cards of 100,000" in said(page)
    assert told == drawn == ids(page.body)
    assert len(drawn) == PER_PAGE
    assert drawn[0] == f"EXACT_CARD_N{1998 * PER_PAGE:06}"
    monkeypatch.setattr("kace.view.card_index._fields", lambda card: pytest.fail("indexed again"))
    assert ids(page_of(shelf, "/tree/large/search", q="N012345").body) == ["EXACT_CARD_N012345"]
