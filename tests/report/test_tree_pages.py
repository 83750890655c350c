"""The pages of a tree: its map and the cards of a place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kace.cards.card import UNIVERSAL, Card, Difficulty, Status
from kace.cards.store import TreeStore
from kace.ladder.retrieve import estimate
from kace.report.trees import PER_PAGE
from kace.report.workspace import Workspace
from tests.card_samples import DOMAINS, a_card
from tests.report.samples import a_learner, a_recall, a_run, a_solve, a_tree
from tests.report.tree_views import grown, ids, many, measured, page_of, said, workspace_of


def cards() -> list[Card]:
    """Two measured cards, one not measured, a deprecated one and a universal one."""
    return [
        measured("EXACT_HELPS_MUCH", 12, 3, 21, promotion_status=Status.VALIDATED, n_uses=20),
        measured("EXACT_MAY_HARM", -4, -11, 3),
        a_card("EXACT_NEVER_MEASURED"),
        measured("EXACT_WAS_HARMFUL", -30, -40, -20, promotion_status=Status.DEPRECATED),
        a_card("READING_UNITS_FIRST", difficulty_tag=Difficulty.UNIVERSAL, domain_tags=(UNIVERSAL,)),
        a_card("RUBRIC_IN_TWO_DOMAINS", difficulty_tag=Difficulty.HARD, domain_tags=("algebra", "geometry")),
    ]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    a_tree(tmp_path / "oak", cards())
    return workspace_of(tmp_path / "oak")


def test_the_map_has_every_domain_at_every_difficulty(workspace: Workspace) -> None:
    page = page_of(workspace, "/tree/oak")
    links = re.findall(r'href="/tree/oak\?domain=(\w+)&amp;difficulty=(\w+)#cards"', page.body)
    assert links == [("algebra", "medium"), ("algebra", "hard"), ("geometry", "hard"), ("universal", "universal")]
    assert page.body.count("empty-cell") == 4 * 3 - len(links)
    assert all(domain.description in said(page) for domain in DOMAINS)


def test_a_place_says_its_cards_tokens_mean_lift_and_deprecated_ones(workspace: Workspace) -> None:
    words = said(page_of(workspace, "/tree/oak"))
    shown = sum(map(estimate, cards()[:3]))
    assert f"3 cards +4.0 points 2 measured ~{shown:,} tokens 1 deprecated" in words


def test_the_tree_page_lists_its_cards_with_their_rules_and_deprecated_ones_last(workspace: Workspace) -> None:
    page = page_of(workspace, "/tree/oak")
    assert ids(page.body)[:2] == ["EXACT_HELPS_MUCH", "EXACT_MAY_HARM"] and ids(page.body)[-1] == "EXACT_WAS_HARMFUL"
    assert "1 helping, 0 harming" in said(page), "of those that can be shown"
    assert "+12.0 [+3.0, +21.0] 5 problems" in said(page)
    assert a_card().body.split("\n")[0] in said(page)
    place = page_of(workspace, "/tree/oak", domain="algebra", difficulty="medium")
    assert ids(place.body) == ["EXACT_HELPS_MUCH", "EXACT_MAY_HARM", "EXACT_NEVER_MEASURED", "EXACT_WAS_HARMFUL"]
    assert "not measured" in said(place) and "6 2 of 8" in said(place), "gained and broken"


def test_the_tree_page_leads_with_what_runs_that_read_it_came_to(tmp_path: Path) -> None:
    tree = {"hash": TreeStore(a_tree(tmp_path / "oak")).load().content_hash(), "cards": 2}
    for name, right in (("kace", True), ("tiered", False)):
        solves = [a_solve(f"{n:016x}", correct=right or n > 5) for n in range(9)]
        about = {"system": {"name": name}, "data": {"hash": "d" * 16, "problems": 9}}
        a_run(tmp_path / name, solves, tree=tree if right else None, **about)
    page = page_of(Workspace([tmp_path]), "/tree/oak", static=True)
    assert "kace and tiered are indistinguishable" in said(page) and "+66.7 points" in said(page)


def test_cards_that_broke_most_in_the_open_runs_come_first(tmp_path: Path) -> None:
    good, bad = "EXACT_HELPS_MUCH", "EXACT_NEVER_MEASURED"
    tree = {"hash": TreeStore(a_tree(tmp_path / "oak", cards())).load().content_hash(), "cards": 6}
    about = {"data": {"hash": "d" * 16, "problems": 6}}
    base = [a_solve(f"{n:016x}", correct=n > 3, recalls=()) for n in range(6)]
    arm = [a_solve(f"{n:016x}", correct=n < 3, recalls=(a_recall(cards=(good if n < 4 else bad,)),)) for n in range(6)]
    a_run(tmp_path / "tiered", base, system={"name": "tiered"}, **about)
    a_run(tmp_path / "kace", arm, tree=tree, system={"name": "kace"}, **about)
    shelf = Workspace([tmp_path])
    page = page_of(shelf, "/tree/oak")
    assert ids(page.body)[:2] == [bad, good]
    assert "1 card broke more than it gained." in said(page)
    card = said(page_of(shelf, f"/tree/oak/card/{bad}"))
    assert "In the open runs, 2 solves read it: 0 gained , 2 broken against the ladder without cards." in card
    assert f"It breaks more than it gains. To stop showing it: kace tree edit oak {bad} --deprecate" in card


def test_a_tree_in_a_json_file_has_pages_and_no_history(tmp_path: Path) -> None:
    file = tmp_path / "pack.json"
    file.write_text(json.dumps([card.model_dump(mode="json") for card in cards()]), encoding="utf-8")
    page = page_of(workspace_of(file), "/tree/pack.json")
    assert "a file, without history" in said(page)
    assert "Latest changes" not in said(page)
    assert "EXACT_HELPS_MUCH" in said(page_of(workspace_of(file), "/tree/pack.json", domain="algebra"))


def test_the_tree_page_names_its_latest_changes_and_its_learner(tmp_path: Path) -> None:
    a_learner(tmp_path / "oak")
    TreeStore.open(tmp_path / "oak").freeze(author="somebody", note="done with it")
    page = page_of(workspace_of(tmp_path / "oak"), "/tree/oak")
    words = said(page)
    assert "2 changes in all" in words
    assert words.index("freeze done with it") < words.index("create")
    assert "frozen at" in words
    assert 'href="/learner/oak"' in page.body


def test_pages_of_a_list_follow_one_another(tmp_path: Path) -> None:
    tree = many(2 * PER_PAGE + 1)
    workspace = grown(tree, tmp_path)
    place = {"domain": "algebra"}
    seen = [
        card for page in ("1", "2", "3") for card in ids(page_of(workspace, "/tree/large", page=page, **place).body)
    ]
    assert len(seen) == len(set(seen)) == len(tree.cards)
    second = page_of(workspace, "/tree/large", page="2", **place).body
    assert 'rel="prev"' in second and 'rel="next"' in second
    assert f"51 to 100 of {2 * PER_PAGE + 1}" in second
    for strange in ("0", "-1", "999999999999", "two", "²"):
        assert page_of(workspace, "/tree/large", page=strange).status == 200
    assert ids(page_of(workspace, "/tree/large", page="77", **place).body) == seen[-1:]


def test_cards_are_found_by_their_words(workspace: Workspace) -> None:
    assert ids(page_of(workspace, "/tree/oak", q="two DOMAINS").body) == ["RUBRIC_IN_TWO_DOMAINS"]
    assert "No card is like that" in said(page_of(workspace, "/tree/oak", q="zeppelin"))


def test_a_file_holds_a_whole_place(tmp_path: Path) -> None:
    page = page_of(grown(many(3 * PER_PAGE), tmp_path), "/tree/large", static=True)
    assert len(ids(page.body)) == 3 * PER_PAGE
    assert "?" not in "".join(re.findall(r'href="([^"]*)"', page.body))
