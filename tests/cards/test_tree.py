"""The tree: strict visibility, a stable order, and changes that leave the old value alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.cards.card import UNIVERSAL, Card, Difficulty, Status
from kace.cards.tree import Add, Deprecate, Domain, Edit, EpistemicTree, SetDomains, applied, domains_of
from kace.errors import DataError
from kace.ladder.tiers import TierName
from tests.card_samples import DOMAINS, NAMES, a_card, cards, forests

branches = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


@settings(deadline=None, max_examples=60)
@given(forests(8), st.sampled_from(TierName), branches)
def test_a_tier_reads_exactly_its_difficulty_and_domain(found: list[Card], tier: TierName, names: list[str]):
    tree = EpistemicTree.of(DOMAINS, found)
    own = {TierName.MS: Difficulty.MEDIUM, TierName.HS: Difficulty.HARD}.get(tier)
    allowed = {
        card.card_id
        for card in found
        if own is not None
        and card.difficulty_tag in (own, Difficulty.UNIVERSAL)
        and set(card.domain_tags) & {*names, UNIVERSAL}
        and card.status is not Status.DEPRECATED
    }
    read = [card.card_id for card in tree.project(tier, names)]
    assert set(read) == allowed
    assert len(read) == len(allowed), "each card once, though two branches hold it"


@settings(deadline=None, max_examples=60)
@given(forests(8), st.data())
def test_order_and_hash_do_not_depend_on_how_the_tree_came_about(found: list[Card], data: st.DataObject):
    shuffled = data.draw(st.permutations(found))
    tree = EpistemicTree.of(DOMAINS, found)
    grown = EpistemicTree.of(DOMAINS, ())
    for card in shuffled:
        grown = applied(grown, Add(a_card(card.card_id)), Edit(card))
    assert grown == tree
    assert grown.content_hash() == tree.content_hash()
    assert list(grown.cards) == list(tree.cards) == sorted(tree.cards)
    for tier in TierName:
        for names in ([], ["algebra"], ["geometry", "algebra"], ["algebra", "geometry"]):
            assert grown.project(tier, names) == tree.project(tier, sorted(names))


@settings(deadline=None, max_examples=60)
@given(forests(8), cards(), st.booleans())
def test_a_change_leaves_the_tree_it_began_from_as_it_was(found: list[Card], card: Card, known: bool):
    found = [other for other in found if other.card_id != card.card_id]
    old = card.model_copy(update={"helpfulness_score": -1.0})
    tree = EpistemicTree.of(DOMAINS, [*found, old] if known else found)
    before = tree.content_hash(), tree.project(TierName.MS, NAMES[:1]), dict(tree.cards)
    later = applied(tree, Edit(card) if card.card_id in tree else Add(card))
    applied(later, Deprecate(card.card_id))
    assert (tree.content_hash(), tree.project(TierName.MS, NAMES[:1]), dict(tree.cards)) == before


def test_universal_cards_come_first_so_that_prompts_share_their_front():
    everywhere = a_card("MICRO_Z_Z", difficulty_tag=Difficulty.UNIVERSAL, domain_tags=(UNIVERSAL,))
    here = a_card("MICRO_A_A", difficulty_tag=Difficulty.UNIVERSAL)
    medium, hard = a_card("EXACT_A_A"), a_card("EXACT_B_B", difficulty_tag=Difficulty.HARD)
    tree = EpistemicTree.of(DOMAINS, [medium, hard, here, everywhere])
    assert tree.project(TierName.MS, ["algebra"]) == (everywhere, here, medium)
    assert tree.project(TierName.HS, ["algebra"]) == (everywhere, here, hard)
    assert tree.project(TierName.HS, []) == tree.project(TierName.HS, ["nowhere"]) == (everywhere,)


def test_what_breaks_a_rule_is_refused_with_one_line():
    tree = EpistemicTree.of(DOMAINS, [a_card()])
    refused = {
        "two cards are called": lambda: EpistemicTree.of(DOMAINS, [a_card(), a_card(helpfulness_score=1.0)]),
        "no domain 'topology'": lambda: applied(tree, Edit(a_card(domain_tags=("topology",)))),
        "no domain 'algebra'": lambda: applied(tree, SetDomains(DOMAINS[1:])),
        "already has a card": lambda: applied(tree, Add(a_card())),
        "no card 'EXACT_B_C'": lambda: applied(tree, Deprecate("EXACT_B_C")),
        "another domain": lambda: EpistemicTree.of([*DOMAINS, DOMAINS[0]], []),
        "another domain 'mixed'": lambda: EpistemicTree.of([Domain(name="mixed", description="x")], []),
        "wrong form": lambda: domains_of([{"name": "Number Theory", "description": "x"}]),
        "description": lambda: domains_of([{"name": "algebra", "description": ""}]),
        "share": lambda: domains_of([{"name": "algebra", "description": "x", "share": 2}]),
    }
    for words, change in refused.items():
        with pytest.raises(DataError, match=words) as caught:
            change()
        assert "\n" not in str(caught.value)
        assert caught.value.fix
