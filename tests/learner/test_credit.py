"""A measured impact is written on the cards, and only what is significant changes their rank."""

from __future__ import annotations

import random

import pytest

from kace.learner.credit import credit
from kace.learner.effects import paired_lift
from kace.learner.lift import Fire, Impact, Lift
from kace.solver.tiers import TierName
from kace.tree.card import Card, Provenance, Status
from kace.tree.changes import Batch, Edit, applied
from kace.tree.tree import EpistemicTree
from tests.card_examples import DOMAINS, a_card

ALPHA = 0.1


def a_tree(**statuses: Status) -> EpistemicTree:
    return EpistemicTree.of(DOMAINS, [a_card(f"EXACT_{name}_CARD", status=s) for name, s in statuses.items()])


def a_lift(name: str, effect: float, p: float, problems: int = 9, **fields: float) -> Lift:
    low, high = fields.get("low", effect - 0.1), fields.get("high", effect + 0.1)
    return Lift(
        card_id=f"EXACT_{name}_CARD",
        method="dropout",
        effect=effect,
        low=low,
        high=high,
        p=p,
        shown=48,
        hidden=52,
        problems=problems,
    )


def a_fire(name: str) -> Fire:
    return Fire(
        card_id=f"EXACT_{name}_CARD",
        n_shown=5,
        shown_correct=3,
        shown_wrong=2,
        tiers={TierName.MS: 5},
        problems=("P1",),
    )


def credited(tree: EpistemicTree, *lifts: Lift, fires: tuple[Fire, ...] = (), epoch: int = 1) -> EpistemicTree:
    changes = credit(tree, Impact(lifts=lifts, fires=fires), epoch=epoch, alpha=ALPHA)
    return applied(tree, Batch(changes))


def the(tree: EpistemicTree, name: str) -> Card:
    return tree.card(f"EXACT_{name}_CARD")


def test_a_card_carries_its_figures():
    lift = a_lift("A", 0.125, 0.5, low=0.031, high=0.219)
    card = the(credited(a_tree(A=Status.EXPERIMENTAL), lift, fires=(a_fire("A"),)), "A")
    assert card.helpfulness_score == 0.125
    assert (card.provenance.n_uses, card.provenance.n_wins, card.provenance.n_losses) == (5, 3, 2)
    assert (
        card.provenance.validated_lift
        == "+12.5 points [+3.1, +21.9], 48 attempts with, 52 without, 9 problems, dropout, epoch 1"
    )
    assert card.status is Status.EXPERIMENTAL


def test_counters_add_up_over_epochs_and_the_rest_of_the_card_stays():
    tree = a_tree(A=Status.EXPERIMENTAL, B=Status.EXPERIMENTAL)
    twice = credited(credited(tree, fires=(a_fire("A"),)), fires=(a_fire("A"),), epoch=2)
    assert the(twice, "A").provenance.n_uses == 10
    assert the(twice, "A").provenance.validated_lift == ""
    assert the(twice, "A").payload == the(tree, "A").payload
    assert the(twice, "B") == the(tree, "B")


def test_a_card_that_was_neither_shown_nor_measured_is_not_edited():
    changes = credit(a_tree(A=Status.EXPERIMENTAL), Impact(), epoch=1, alpha=ALPHA)
    assert changes == ()


def test_edits_come_in_order_of_id_and_cards_that_are_gone_are_passed_over():
    tree = a_tree(B=Status.EXPERIMENTAL, A=Status.EXPERIMENTAL)
    impact = Impact(lifts=(a_lift("B", 0.1, 0.5), a_lift("GONE", 0.1, 0.5), a_lift("A", 0.1, 0.5)))
    changes = credit(tree, impact, epoch=1, alpha=ALPHA)
    assert [c.card.card_id for c in changes if isinstance(c, Edit)] == ["EXACT_A_CARD", "EXACT_B_CARD"]


def test_significant_help_validates_and_significant_harm_deprecates():
    tree = a_tree(A=Status.EXPERIMENTAL, B=Status.EXPERIMENTAL, C=Status.EXPERIMENTAL)
    after = credited(tree, a_lift("A", 0.4, 0.001), a_lift("B", -0.4, 0.001), a_lift("C", 0.4, 0.2))
    assert [card.status for card in after] == [Status.VALIDATED, Status.DEPRECATED, Status.EXPERIMENTAL]


def test_many_cards_raise_the_bar_for_each():
    names = {f"N{n}": Status.EXPERIMENTAL for n in range(5)}
    alone = credited(a_tree(**names), a_lift("N0", 0.4, 0.03))
    assert the(alone, "N0").status is Status.VALIDATED
    others = [a_lift(f"N{n}", 0.1, 0.9) for n in range(1, 5)]
    assert the(credited(a_tree(**names), a_lift("N0", 0.4, 0.03), *others), "N0").status is Status.EXPERIMENTAL
    silent = [a_lift(f"N{n}", 0.1, 1.0, problems=4) for n in range(1, 5)]
    assert the(credited(a_tree(**names), a_lift("N0", 0.4, 0.03), *silent), "N0").status is Status.VALIDATED


@pytest.mark.parametrize(
    ("before", "lift", "after"),
    [
        (Status.VALIDATED, a_lift("A", 0.0, 1.0), Status.VALIDATED),
        (Status.VALIDATED, a_lift("A", -0.05, 0.6), Status.VALIDATED),
        (Status.VALIDATED, a_lift("A", -0.3, 0.11, low=-0.5, high=-0.01), Status.EXPERIMENTAL),
        (Status.VALIDATED, a_lift("A", -0.3, 0.01), Status.DEPRECATED),
        (Status.DEPRECATED, a_lift("A", 0.3, 0.01), Status.DEPRECATED),
    ],
)
def test_what_a_second_measurement_does(before: Status, lift: Lift, after: Status):
    assert the(credited(a_tree(A=before), lift), "A").status is after


def test_tiny_effects_are_not_written_as_minus_zero():
    card = the(credited(a_tree(A=Status.EXPERIMENTAL), a_lift("A", -0.000001, 1.0)), "A")
    assert str(card.helpfulness_score) == "0.0"
    assert card.provenance.validated_lift.startswith("+0.0 points")


def test_the_longest_figures_fit_into_a_card():
    lift = a_lift("A", -1.0, 0.0, low=-1.0, high=-1.0).model_copy(
        update={"shown": 10**9, "hidden": 10**9, "problems": 10**9, "method": "leave_one_out"}
    )
    text = the(credited(a_tree(A=Status.EXPERIMENTAL), lift, epoch=20), "A").provenance.validated_lift
    assert Provenance(source="x", validated_lift=text).validated_lift.endswith("leave-one-out, epoch 20")


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_cards_without_effect_are_called_in_few_runs(rate: float):
    chance = random.Random(7)
    names = [f"N{n}" for n in range(6)]
    runs = called = 0
    for _ in range(150):
        tree = a_tree(**dict.fromkeys(names, Status.EXPERIMENTAL))

        def arm() -> list[list[bool]]:
            return [[chance.random() < rate for _ in range(3)] for _ in range(10)]

        base = arm()
        lifts = [paired_lift(f"EXACT_{name}_CARD", base, arm()) for name in names]
        after = credited(tree, *(lift for lift in lifts if lift))
        runs += 1
        called += any(card.status is not Status.EXPERIMENTAL for card in after)
    assert called <= ALPHA * runs
