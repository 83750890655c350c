"""The page of a card: what it says, what it is worth, where it was read, what it went through."""

from __future__ import annotations

import json
from pathlib import Path

from kace.cards.card import Card, Difficulty, Example
from kace.cards.store import TreeStore
from kace.cards.tree import Deprecate, Edit, EpistemicTree
from kace.ladder.record import Solution
from tests.card_samples import DOMAINS, a_card
from tests.report.samples import a_recall, a_run, a_solve, a_tree
from tests.report.tree_views import Shown, grown, measured, page_of, said, workspace_of

NAME = "EXACT_SUM_OF_SQUARES"


def page_with(tmp_path: Path, card: Card, *, static: bool = False) -> Shown:
    """The page of a card that is alone in its tree."""
    a_tree(tmp_path / "oak", [card])
    return page_of(workspace_of(tmp_path / "oak"), f"/tree/oak/card/{card.card_id}", static=static)


def test_a_card_shows_its_triggers_its_body_and_its_routing(tmp_path: Path) -> None:
    page = page_with(tmp_path, a_card())
    words = said(page)
    assert "Useful when sum of two squares" in words
    assert "Do not apply if the terms are not squares" in words
    assert "Choose by pick when two squares are added" in words
    assert '<span class="math">a^2+b^2=(a+b)^2-2ab</span>' in page.body
    assert "As a solver reads it system You solve mathematics problems." in words
    assert "[EXACT_SUM_OF_SQUARES] Useful when:" in words


def test_a_measured_lift_is_drawn_told_and_judged(tmp_path: Path) -> None:
    page = page_with(tmp_path, measured(NAME, 12, 3, 21))
    words = said(page)
    assert "+12.0 points" in words
    assert "95 % interval +3.0 to +21.0. It helps: the interval lies above zero." in words
    assert "Measured by leave-one-out, in epoch 2: 12 attempts with the card, 9 without, on 5 problems." in words
    assert 'class="lift-mark good"' in page.body
    assert "When it was measured, 8 solves read it: 6 gained , 2 broken against the ladder without cards." in words
    assert "It breaks more than it gains" not in words and "Supported by P1, P2" in words


def test_a_card_with_examples_is_shown_as_it_is_sent(tmp_path: Path) -> None:
    card = a_card().illustrated((Example("What is 2 + 3?", "2 + 3 = 5. \\boxed{5}"),))
    words = said(page_with(tmp_path, card))
    sent = words[words.index("As a solver reads it") :]
    assert "user What is 2 + 3? End with the final answer" in sent
    assert "assistant 2 + 3 = 5." in sent
    assert "[EXACT_SUM_OF_SQUARES]" not in sent, "its rule is not sent"


def test_a_payload_that_breaks_the_rules_is_shown_as_it_is(tmp_path: Path) -> None:
    old = a_card().model_copy(update={"payload": "no header at all"})
    workspace = grown(EpistemicTree.of(DOMAINS, [old]), tmp_path)
    assert "no header at all" in said(page_of(workspace, f"/tree/large/card/{NAME}"))


# History


def test_history_tells_every_change_of_the_card_newest_first(tmp_path: Path) -> None:
    card = a_card()
    store = TreeStore.create(tmp_path / "oak", DOMAINS, [card, a_card("EXACT_OTHER_CARD")], author="planter")
    edited = card.revised(payload=card.payload.replace("Check with small numbers.", "Check with very small numbers."))
    store.apply(Edit(edited), author="editor", note="be exact")
    store.apply(
        Edit(store.load().card(NAME).revised(difficulty_tag=Difficulty.HARD, domain_tags=("geometry",))), author="mover"
    )
    credited = measured(NAME, 5, -1, 11).provenance
    store.apply(Edit(store.load().card(NAME).model_copy(update={"provenance": credited})), author="learner")
    store.apply(Edit(a_card("EXACT_OTHER_CARD", routing_conditions=())), author="editor")
    store.apply(Deprecate(NAME), author="gardener", note="never helped")
    page = page_of(workspace_of(tmp_path / "oak"), f"/tree/oak/card/{NAME}")
    words = said(page).split(" History ")[1]
    order = ["deprecate never helped", "learner", "mover", "edit be exact", "create"]
    assert [words.index(each) for each in order] == sorted(words.index(each) for each in order)
    assert "planter" in words


def test_a_tree_without_a_journal_and_a_file_have_no_history(tmp_path: Path) -> None:
    store = TreeStore.create(tmp_path / "oak", DOMAINS, [a_card()])
    store.journal_path.unlink()
    assert "The journal holds no change of this card." in said(
        page_of(workspace_of(tmp_path / "oak"), f"/tree/oak/card/{NAME}")
    )
    file = tmp_path / "pack.json"
    file.write_text(json.dumps([a_card().model_dump(mode="json")]), encoding="utf-8")
    assert "a single file, which keeps no history" in said(page_of(workspace_of(file), f"/tree/pack.json/card/{NAME}"))


# Where it was shown


def solves(right: str, *, card: str = NAME, seed: int = 0) -> list[Solution]:
    """One solve a letter: `r` right, `w` wrong, `?` not checked; all read the card."""
    known = {"r": True, "w": False, "?": None}
    return [
        a_solve(
            f"{n:016x}",
            label=f"problem-{n}",
            seed=seed,
            correct=known[letter],
            recalls=(a_recall(cards=(card,)),) if card else (),
        )
        for n, letter in enumerate(right)
    ]


def opened(tmp_path: Path, **runs: list[Solution]) -> Shown:
    """The card's page with these runs open."""
    tree = a_tree(tmp_path / "oak", [a_card()])
    digest = TreeStore(tree).load().content_hash()
    paths = []
    for name, records in runs.items():
        system = {"name": "tiered" if name == "bare" else "kace"}
        read = {"hash": digest, "cards": 1} if name != "bare" else None
        paths.append(a_run(tmp_path / name, records, system=system, tree=read))
    return page_of(workspace_of(tmp_path / "oak", *paths), f"/tree/oak/card/{NAME}")


def test_a_run_that_read_the_card_is_named_with_its_counts(tmp_path: Path) -> None:
    page = opened(tmp_path, with_cards=solves("rrrw?"))
    assert "with_cards 5 of 5 3 of 4" in said(page)
    assert 'href="/run/with_cards"' in page.body


def test_problems_gained_and_broken_are_told_beside_the_ladder_without_cards(tmp_path: Path) -> None:
    page = opened(tmp_path, kace=solves("rrwwr?"), bare=solves("wrrwrr", card=""))
    assert "1 gained 1 broken Compare" in said(page)
    assert "change=lost" in page.body and 'href="/run/kace/against/bare"' in page.body


def test_runs_of_other_seeds_are_not_set_beside(tmp_path: Path) -> None:
    page = opened(tmp_path, kace=solves("rr"), bare=solves("ww", card="", seed=1))
    assert "kace 2 of 2 2 of 2 none is open" in said(page)
