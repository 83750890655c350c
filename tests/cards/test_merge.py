"""Two trees into one."""

from __future__ import annotations

from hypothesis import given, settings

from kace.cards.card import Provenance, Status
from kace.cards.diff import Merged, Prefer, merge
from kace.cards.tree import Domain, EpistemicTree
from tests.card_samples import ALGEBRA, GEOMETRY, card, small_tree, trees


def tree(*cards, domains=(ALGEBRA, GEOMETRY)) -> EpistemicTree:
    return EpistemicTree.of(domains, cards)


@settings(max_examples=40, deadline=None)
@given(trees())
def test_merging_a_tree_with_itself_changes_nothing(ours: EpistemicTree):
    merged = merge(ours, ours)
    assert merged.tree == ours
    assert not (merged.added or merged.replaced or merged.domains or merged.conflicts)


@settings(max_examples=40, deadline=None)
@given(trees(3), trees(3))
def test_a_merge_loses_no_card_and_prefers_whole_sides(ours: EpistemicTree, theirs: EpistemicTree):
    for prefer in Prefer:
        merged = merge(ours, theirs, prefer).tree
        assert set(merged.cards) == set(ours.cards) | set(theirs.cards)
        winner = ours if prefer is Prefer.OURS else theirs
        for name, found in winner.cards.items():
            assert merged.cards[name].payload == found.payload


def test_a_card_from_elsewhere_arrives_experimental_and_a_deprecated_one_stays_so():
    merged = merge(tree(), small_tree())
    assert merged.conflicts == ()
    assert merged.added == tuple(small_tree().cards)
    assert merged.tree.cards["EXACT_SUM_OF_SQUARES"].status is Status.EXPERIMENTAL
    assert merged.tree.cards["MICRO_OLD_TRICK"].status is Status.DEPRECATED


def test_of_cards_with_equal_content_ours_is_kept():
    ours = tree(card("MICRO_SAME_TEXT", provenance=Provenance(source="run a", n_uses=3, n_wins=2)))
    theirs = tree(card("MICRO_SAME_TEXT", provenance=Provenance(source="run b", n_uses=1)))
    assert merge(ours, theirs) == Merged(ours)


def test_different_content_is_a_conflict_and_nothing_merges():
    ours, theirs = (
        tree(card("MICRO_ONE_NAME")),
        tree(card("MICRO_ONE_NAME", domain_tags=("geometry",)), card("MICRO_NEW_CARD")),
    )
    merged = merge(ours, theirs)
    assert merged.tree is ours
    (conflict,) = merged.conflicts
    assert (conflict.name, conflict.fields) == ("card MICRO_ONE_NAME", ("place",))
    assert conflict.lines == ("- medium: algebra", "+ medium: geometry")


def test_a_deprecation_is_content_because_it_decides_what_a_solve_reads():
    dead = card("MICRO_ONE_NAME", provenance=Provenance(source="by hand", promotion_status=Status.DEPRECATED))
    ours = tree(card("MICRO_ONE_NAME"))
    assert merge(ours, tree(dead)).conflicts[0].fields == ("status",)
    assert merge(ours, tree(dead), Prefer.THEIRS).tree.cards["MICRO_ONE_NAME"].status is Status.DEPRECATED


def test_the_order_of_domain_tags_is_no_conflict():
    ours = tree(card("MICRO_ONE_NAME", domain_tags=("algebra", "geometry")))
    theirs = tree(card("MICRO_ONE_NAME", domain_tags=("geometry", "algebra")))
    assert merge(ours, theirs).conflicts == ()


def test_new_domains_come_along_and_a_domain_told_differently_is_a_conflict():
    other = Domain(name="geometry", description="only circles", share=0.1, signals=())
    new = Domain(name="number_theory", description="remainders", share=0.3, signals=())
    assert merge(tree(), tree(domains=(ALGEBRA, new))).tree.domain_names == ("algebra", "geometry", "number_theory")
    merged = merge(tree(), tree(domains=(other,)))
    assert merged.conflicts[0].name == "domain geometry"
    assert "+ only circles" in merged.conflicts[0].lines
    assert merge(tree(), tree(domains=(other,)), Prefer.THEIRS).tree.domains == (ALGEBRA, other)
    assert merge(tree(), tree(domains=(other,)), Prefer.OURS).tree.domains == (ALGEBRA, GEOMETRY)


def test_another_share_of_the_corpus_is_no_conflict():
    other = GEOMETRY.model_copy(update={"share": 0.9})
    merged = merge(tree(), tree(domains=(other,)))
    assert (merged.conflicts, merged.domains) == ((), ())
