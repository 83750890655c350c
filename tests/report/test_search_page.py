"""Search in a tree finds cards by the beginnings of words, and marks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.cards.card import Card
from kace.cards.tree import EpistemicTree
from kace.report.trees import find_cards
from tests.card_examples import DOMAINS, a_card
from tests.report.samples import a_tree
from tests.report.tree_views import Shown, grown, ids, page_of, said, workspace_of

CARDS = (
    a_card("EXACT_PRIME_FACTORS", payload="Useful when:\n- many divisors\n\nSplit it: $\\frac{n}{p}$."),
    a_card("RUBRIC_ONE_TWO", payload="Useful when:\n- a prime is given\n\nTry each.\nComprise nothing."),
    a_card("RUBRIC_THREE_FOUR", payload="Useful when:\n- a square\n\nIs it PRIME? Ask <b>twice</b> & “again”."),
    a_card("RUBRIC_FIVE_SIX", payload="Useful when:\n- a comprised sum\n\nNothing else."),
)


def found_in(folder: Path, asked: str, cards: Iterable[Card] = CARDS) -> list[Card]:
    """The cards of a tree of these that a search finds, best first."""
    return find_cards(cards, asked.lower().split())


@pytest.fixture
def found(tmp_path: Path) -> Callable[..., list[str]]:
    """The ids of the cards that a search finds."""
    return lambda asked, cards=CARDS: [card.card_id for card in found_in(tmp_path, asked, cards)]


def search(tmp_path: Path, asked: str, **query: str) -> Shown:
    a_tree(tmp_path / "oak", CARDS)
    return page_of(workspace_of(tmp_path / "oak"), "/tree/oak/search", q=asked, **query)


def test_an_id_counts_more_than_a_trigger_and_a_trigger_more_than_a_body(found: Callable[..., list[str]]) -> None:
    assert found("prime") == ["EXACT_PRIME_FACTORS", "RUBRIC_ONE_TWO", "RUBRIC_THREE_FOUR"]


def test_a_word_matches_where_a_word_begins_in_any_case(found: Callable[..., list[str]]) -> None:
    assert found("PRIM") == found("prim") == found("prime")
    assert found("rime") == []
    assert found("compris") == ["RUBRIC_FIVE_SIX", "RUBRIC_ONE_TWO"]


def test_all_words_must_be_there_wherever_they_stand(found: Callable[..., list[str]]) -> None:
    assert found("prime divisors") == ["EXACT_PRIME_FACTORS"]
    assert found("divisors prime split") == ["EXACT_PRIME_FACTORS"]
    assert found("prime square zebra") == []


def test_tex_routing_and_marks_around_words_are_found(found: Callable[..., list[str]]) -> None:
    assert found("\\frac") == ["EXACT_PRIME_FACTORS"]
    assert found("frac") == ["EXACT_PRIME_FACTORS"]
    assert found("“again”") == ["RUBRIC_THREE_FOUR"]
    assert len(found("squares added")) == len(CARDS)  # their routing condition
    assert found("EXACT_PRIME_FACTORS") == ["EXACT_PRIME_FACTORS"]


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60), st.lists(st.text("ab é_\\<&\n", max_size=30), max_size=4))
def test_whatever_is_asked_every_card_found_holds_every_word(asked: str, bodies: list[str]) -> None:
    cards = [
        a_card().model_copy(update={"card_id": f"EXACT_N_{n}", "payload": f"Useful when:\n- x\n\n{body}"})
        for n, body in enumerate(bodies)
    ]
    words = asked.lower().split()
    with TemporaryDirectory() as folder:
        shown = found_in(Path(folder), asked, cards)
    for card in shown:
        text = "\n".join((card.card_id, card.payload, *card.routing_conditions)).lower()
        assert all(word in text for word in words)


def test_results_have_the_words_marked_and_the_rest_escaped(tmp_path: Path) -> None:
    page = search(tmp_path, "prime twice")
    assert ids(page.body) == ["RUBRIC_THREE_FOUR"]
    assert "Is it <mark>PRIME</mark>? Ask &lt;b&gt;<mark>twice</mark>&lt;/b&gt; &amp;" in page.body
    assert "1 card of 4" in said(page)
    assert "EXACT_<wbr><mark>PRIME</mark>_<wbr>FACTORS" in search_again(tmp_path, "prime").body


def search_again(tmp_path: Path, asked: str) -> Shown:
    return page_of(workspace_of(tmp_path / "oak"), "/tree/oak/search", q=asked)


def test_a_hostile_query_is_only_text(tmp_path: Path) -> None:
    bad = '"><script>alert(1)</script> (((([[[*+?{ \\'
    page = search(tmp_path, bad)
    assert page.status == 200
    assert "<script" not in page.body
    assert "&#34;&gt;&lt;script&gt;" in page.body


def test_nothing_found_says_which_word_is_nowhere(tmp_path: Path) -> None:
    words = said(search(tmp_path, "prime zebra"))
    assert "No card holds a word that begins with zebra ." in words
    assert "no card holds all of" in said(search_again(tmp_path, "divisors twice"))


def test_without_words_the_page_says_how_to_search(tmp_path: Path) -> None:
    for asked in ("", "   "):
        a_tree(tmp_path / f"t{len(asked)}", CARDS)
        page = page_of(workspace_of(tmp_path / f"t{len(asked)}"), f"/tree/t{len(asked)}/search", q=asked)
        assert "The beginning of a word is enough" in said(page)
        assert "<form" in page.body


def test_a_long_line_is_cut_around_what_was_found(tmp_path: Path) -> None:
    body = "word " * 200 + "needle " + "more " * 200
    a_tree(tmp_path / "oak", [a_card(payload=f"Useful when:\n- x\n\n{body}")])
    page = page_of(workspace_of(tmp_path / "oak"), "/tree/oak/search", q="needle")
    assert "<mark>needle</mark>" in page.body
    assert "…" in page.body
    assert len(page.body) < 4_000


def test_an_empty_tree_can_be_searched(tmp_path: Path) -> None:
    workspace = grown(EpistemicTree.of(DOMAINS, ()), tmp_path)
    assert "Nothing found" in said(page_of(workspace, "/tree/large/search", q="prime"))
