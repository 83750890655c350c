"""Only evidence changes the tree: a revision that a rerun confirms, and the figures on cards."""

from __future__ import annotations

import pytest

from kace.cards.card import Card, Provenance, Status
from kace.cards.tree import Batch, Edit, EpistemicTree, applied
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.learning.accept import AcceptanceRule, Comparison, PosteriorRule, ThresholdRule, compare
from kace.learning.measure import Fire, Impact, Lift
from tests.card_examples import DOMAINS, a_card
from tests.learning.solve_records import a_solve, a_try

RULE = ThresholdRule(0.05)
LIKELY = PosteriorRule(0.8, 0.2)


def run(marks: str, seed: int = 0) -> list[Solution]:
    """One solve a mark: `+` right, `-` wrong, `x` failed by the provider, `?` without an expected answer."""
    return [
        a_solve(
            f"p{n}",
            [a_try(False, outcome=Outcome.PROVIDER_ERROR)] if mark == "x" else [],
            correct=None if mark == "?" else mark == "+",
            seed=seed,
        )
        for n, mark in enumerate(marks)
    ]


def seen(base: str, rerun: str, rule: AcceptanceRule = RULE, *, removes_only: bool = False) -> Comparison:
    return compare(run(base), run(rerun), domain="algebra", number=1, rule=rule, removes_only=removes_only)


def test_a_gain_of_the_threshold_is_accepted():
    found = seen("------++++", "++++++++++")
    assert found.accepted
    assert (found.n, found.lift) == (10, 0.6)
    assert found.gained == tuple(f"P{n}" for n in range(6))
    assert found.lost == ()
    assert found.reason == "lift +60.0 points on 10 solves, at least the threshold of +5.0"


def test_a_lift_below_the_threshold_is_not():
    found = seen("-" * 30 + "+" * 70, "++++" + "-" * 26 + "+" * 70)
    assert not found.accepted and found.reason.endswith("below the threshold of +5.0")
    assert seen("-+++++++++", "++++++++++").accepted
    assert not seen("+++++", "+++++").accepted


def test_by_posterior_a_gain_must_be_likely():
    assert seen("--++++++++", "++++++++++", LIKELY).accepted
    found = seen("-+++++++++", "++++++++++", LIKELY)
    assert not found.accepted and found.reason.endswith("below 0.8")


def test_a_removal_claims_nothing_and_must_lose_nothing():
    assert seen("+-+-", "+-+-", removes_only=True).accepted
    assert seen("+-+-", "-++-", removes_only=True).accepted
    assert not seen("+-+-", "--+-", removes_only=True).accepted


def test_solves_that_the_provider_failed_and_unlabelled_ones_are_left_out():
    found = seen("x-+?-", "++x?-")
    assert (found.n, found.gained, found.lost) == (2, ("P1",), ())


@pytest.mark.parametrize("removes_only", [True, False])
def test_without_a_pair_nothing_is_accepted(removes_only: bool):
    found = seen("x", "+", RULE, removes_only=removes_only)
    assert not found.accepted
    assert (found.n, found.lift) == (0, 0.0)
    assert found.reason == "no problem could be compared"


def test_pairs_match_problem_and_seed_and_flip_by_problem():
    base = [*run("---"), *run("---", seed=1)]
    rerun = [*run("+++", seed=1), *run("+++")]
    found = compare(base, rerun[::-1], domain="algebra", number=2, rule=RULE, removes_only=False)
    assert (found.n, found.lift) == (6, 1.0)
    assert found.gained == ("P0", "P1", "P2")


# What is measured is written on the cards


def a_tree(**statuses: Status) -> EpistemicTree:
    return EpistemicTree.of(DOMAINS, [a_card(f"EXACT_{name}_CARD", status=s) for name, s in statuses.items()])


def a_lift(name: str, effect: float, problems: int = 9, **fields: float) -> Lift:
    low, high = fields.get("low", effect - 0.1), fields.get("high", effect + 0.1)
    return Lift(
        card_id=f"EXACT_{name}_CARD",
        method="dropout",
        effect=effect,
        low=low,
        high=high,
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
    changes = RULE.credit(tree, [Impact(lifts=lifts, fires=fires)], epoch)
    return applied(tree, Batch(changes))


def the(tree: EpistemicTree, name: str) -> Card:
    return tree.card(f"EXACT_{name}_CARD")


def test_a_card_carries_its_figures():
    lift = a_lift("A", 0.125, low=0.031, high=0.219)
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
    changes = RULE.credit(a_tree(A=Status.EXPERIMENTAL), [Impact()], 1)
    assert changes == ()


def test_edits_come_in_order_of_id_and_cards_that_are_gone_are_passed_over():
    tree = a_tree(B=Status.EXPERIMENTAL, A=Status.EXPERIMENTAL)
    impact = Impact(lifts=(a_lift("B", 0.1), a_lift("GONE", 0.1), a_lift("A", 0.1)))
    changes = RULE.credit(tree, [impact], 1)
    assert [c.card.card_id for c in changes if isinstance(c, Edit)] == ["EXACT_A_CARD", "EXACT_B_CARD"]


def test_tiny_effects_are_not_written_as_minus_zero():
    card = the(credited(a_tree(A=Status.EXPERIMENTAL), a_lift("A", -0.000001)), "A")
    assert str(card.helpfulness_score) == "0.0"
    assert card.provenance.validated_lift.startswith("+0.0 points")


def test_the_longest_figures_fit_into_a_card():
    lift = a_lift("A", -1.0, low=-1.0, high=-1.0).model_copy(
        update={"shown": 10**9, "hidden": 10**9, "problems": 10**9, "method": "leave_one_out"}
    )
    text = the(credited(a_tree(A=Status.EXPERIMENTAL), lift, epoch=20), "A").provenance.validated_lift
    assert Provenance(source="x", validated_lift=text).validated_lift.endswith("leave-one-out, epoch 20")
