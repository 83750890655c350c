"""Ladders without the knowledge: another domain's cards, or none where cards would stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kace.baselines.controls import other_domains
from kace.cards.card import Example
from kace.cards.tree import EpistemicTree
from kace.ladder.prompt import card_block, template
from tests.baselines.arena import EVERYWHERE, TREE, Solver, ids, reading, solve


@pytest.mark.parametrize(
    ("classified", "medium", "hard"),
    [
        ("counting", ids("MEDGEO"), ids("HARDGEO")),
        ("geometry", ids("MEDRATE"), ids("HARDRATE")),
        ("rates", ids("MEDCOUNT", "MEDSHARED"), ids("HARDCOUNT")),
        ("counting, geometry", ids("MEDRATE"), ids("HARDRATE")),
        ("cooking", set(), set()),
    ],
)
def test_a_placebo_is_the_next_domains_block_less_what_is_the_classified_ones_too(
    classified: str, medium: set[str], hard: set[str]
):
    model = Solver(domain=classified)
    solve("kace-placebo", model)
    assert model.shown["MS"] == {*medium, EVERYWHERE}
    assert model.shown["HS"] == {*hard, EVERYWHERE}


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1), st.data())
def test_other_domains_are_other_domains_each_once(registry: list[str], data: st.DataObject):
    placed = data.draw(st.lists(st.sampled_from(registry), unique=True, max_size=2))
    others = other_domains(placed, registry)
    assert set(others) <= set(registry) - set(placed)
    assert len(set(others)) == len(others) == min(len(placed), len(registry) - len(placed))


def test_the_scaffold_is_the_prompt_of_a_block_without_its_cards():
    model, real = Solver(), Solver()
    solution = solve("kace-empty-prompt", model, tree=None)
    solve("kace", real)
    for tier in ("MS", "HS"):
        for sham, text in zip(sorted(model.texts[tier]), sorted(real.texts[tier]), strict=True):
            assert template("knowledge") in sham
            before, _, after = text.partition("<cards>")
            assert sham.startswith(before + card_block(()))
            assert sham.endswith(after.partition("</cards>")[2])
    assert [(r.cards, r.tokens, r.classifier_calls) for r in solution.recalls] == [((), 0, 0)] * 2
    assert model.calls == 10


def test_a_placebo_shows_as_many_cards_as_the_method_would():
    real, sham = Solver(), Solver()
    theirs, ours = (
        solve("kace", real, config=reading(max_cards=1)),
        solve("kace-placebo", sham, config=reading(max_cards=1)),
    )
    assert [len(recall.cards) for recall in ours.recalls] == [len(recall.cards) for recall in theirs.recalls] == [1, 1]
    told = (Example("Ferries join nine islands.", "\\boxed{36}"),)
    worked = EpistemicTree.of(TREE.domains, [card.illustrated(told) for card in TREE])
    nothing = solve("kace-placebo", Solver(), tree=worked, config=reading(relevance_threshold=50.0))
    assert [recall.cards for recall in nothing.recalls] == [(), ()], "where the method is silent, so is its sham"
