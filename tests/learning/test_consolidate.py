"""Admitted cards join the tree once each, whatever they are called and however they are worded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from kace.cards.card import MAX_CARD_BYTES, UNIVERSAL, Card, Difficulty, Provenance, Status, card_line
from kace.cards.tree import Add, Edit, EpistemicTree, applied
from kace.learning.admit import MAX_SUPPORTING, consolidate
from tests.card_samples import ALGEBRA, GEOMETRY, cards, trees
from tests.card_samples import card as sample

BODY = "Count unordered pairs: $\\frac{n(n-1)}{2}$.\nEvery pair is counted twice among the n(n-1) ordered ones."
REWORDED = BODY.replace("Count unordered", "Count the unordered").replace("among the", "among")


def card(card_id: str = "EXACT_PAIR_COUNT", body: str = BODY, **fields: object) -> Card:
    own = Provenance(source="teacher", supporting_problems=("p1",), epoch_introduced=1)
    payload = f"Useful when:\n- everybody with everybody\n\n{body}"
    return sample(card_id, **{"payload": payload, "provenance": own, **fields})


def tree(*held: Card) -> EpistemicTree:
    return EpistemicTree.of((ALGEBRA, GEOMETRY), held)


def test_cards_of_one_id_become_the_first_of_them():
    other = card(provenance=Provenance(source="other", supporting_problems=("p1", "p2")))
    held = card(provenance=Provenance(source="teacher", supporting_problems=("p0", "p1"), n_uses=4))
    changes, merges = consolidate(tree(held), [other])
    (change,) = changes
    assert isinstance(change, Edit) and change.card.payload == held.payload
    united = change.card.provenance
    assert united.source == "teacher" and united.supporting_problems == ("p0", "p1", "p2")
    assert united.n_uses == 4
    assert merges.merged == (("EXACT_PAIR_COUNT", "EXACT_PAIR_COUNT"),)


def test_the_same_in_other_words_is_one_card():
    other = card("RUBRIC_COUNT_ALL_PAIRS", REWORDED, provenance=Provenance(source="t", supporting_problems=("p2",)))
    changes, merges = consolidate(tree(), [card(), other])
    (change,) = changes
    assert change == Add(
        card(provenance=Provenance(source="teacher", supporting_problems=("p1", "p2"), epoch_introduced=1))
    )
    assert merges.merged == (("RUBRIC_COUNT_ALL_PAIRS", "EXACT_PAIR_COUNT"),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"$\sin(a+b) = \sin a \cos b + \cos a \sin b$", r"$\sin(a-b) = \sin a \cos b - \cos a \sin b$"),
        ("$a^3+b^3 = (a+b)(a^2-ab+b^2)$", "$a^3-b^3 = (a-b)(a^2+ab+b^2)$"),
        (
            "The first 3 hours of the stay are free of any charge.",
            "The first 5 hours of the stay are free of any charge.",
        ),
        ("For every real number x here the value is x > 0.", "For every real number x here the value is x < 0."),
    ],
)
def test_a_sign_or_a_number_makes_another_card(one, other):
    changes, merges = consolidate(tree(), [card(body=one), card("EXACT_PAIR_OTHER", other)])
    assert len(changes) == 2 and not merges.merged


@pytest.mark.parametrize(
    ("place", "merges"),
    [
        ({}, True),
        ({"difficulty_tag": Difficulty.UNIVERSAL}, True),
        ({"domain_tags": (UNIVERSAL,)}, True),
        ({"domain_tags": ("geometry", "algebra")}, True),
        ({"difficulty_tag": Difficulty.HARD}, False),
        ({"domain_tags": ("geometry",)}, False),
    ],
)
def test_likeness_counts_only_where_one_tier_reads_both(place, merges):
    _, found = consolidate(tree(card()), [card("RUBRIC_COUNT_ALL_PAIRS", REWORDED, **place)])
    assert bool(found.merged) is merges


@pytest.mark.parametrize(
    "proposal", [card(body="Something else: use $n^2$."), card("RUBRIC_COUNT_ALL_PAIRS", REWORDED)]
)
def test_a_deprecated_card_is_not_revived(proposal):
    held = tree(card(provenance=Provenance(source="teacher", promotion_status=Status.DEPRECATED)))
    changes, merges = consolidate(held, [proposal])
    assert changes == () and merges.merged[0][1] == "EXACT_PAIR_COUNT"


def test_merging_never_makes_a_card_too_large_to_keep():
    labels = [f"{number:04d}-{'x' * 200}" for number in range(MAX_SUPPORTING)]
    held = tree(card(provenance=Provenance(source="teacher", supporting_problems=tuple(labels[:40]))))
    more = card(provenance=Provenance(source="teacher", supporting_problems=tuple(labels[20:])))
    changes, _ = consolidate(held, [more])
    after = applied(held, *changes).card("EXACT_PAIR_COUNT")
    assert len(card_line(after).encode()) <= MAX_CARD_BYTES
    few = tuple(f"p{number}" for number in range(2 * MAX_SUPPORTING))
    (change,) = consolidate(tree(card()), [card(provenance=Provenance(source="t", supporting_problems=few))])[0]
    assert isinstance(change, Edit) and len(change.card.provenance.supporting_problems) == MAX_SUPPORTING


@given(trees(), cards(), cards())
@settings(max_examples=60, deadline=None)
def test_any_cards_can_join_any_tree_and_the_second_time_nothing_is_new(held, first, second):
    proposed = [first, second, first]
    changes, merges = consolidate(held, proposed)
    after = applied(held, *changes)
    added = sum(isinstance(change, Add) for change in changes)
    assert len(after) == len(held) + added and added + len(merges.merged) == len(proposed)
    assert not any(isinstance(change, Add) for change in consolidate(after, proposed)[0])
    assert consolidate(held, proposed) == (changes, merges)


def test_a_namesake_elsewhere_is_a_card_of_its_own():
    hard = card(body="1. List the ordered pairs.\n2. Halve them.", difficulty_tag=Difficulty.HARD)
    elsewhere = card(domain_tags=("geometry",))
    changes, merges = consolidate(tree(card()), [hard, elsewhere, hard])
    assert [change.card.card_id for change in changes] == ["EXACT_PAIR_COUNT_HARD", "EXACT_PAIR_COUNT_GEOMETRY"]
    assert [into for _, into in merges.merged] == ["EXACT_PAIR_COUNT_HARD"], "said twice, it is one card"
