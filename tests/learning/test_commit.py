"""Only evidence changes the tree: a revision that a rerun bears out, a card whose lift is beyond chance."""

from __future__ import annotations

import random

import pytest

from kace.cards.card import Card, Provenance, Status
from kace.cards.tree import Batch, Edit, EpistemicTree, applied
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.learning.commit import CommitRule, InterimAnalysis, analyse, credit
from kace.learning.effects import Fire, Impact, Lift, lift_of, paired
from tests.card_examples import DOMAINS, a_card
from tests.learning.solve_records import a_solve, a_try

RULE = CommitRule(threshold=0.05, alpha=0.1, analyses=2)
BARE = CommitRule(threshold=0.05, alpha=1.0, analyses=2)


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


def seen(base: str, rerun: str, rule: CommitRule = RULE, *, removes_only: bool = False) -> InterimAnalysis:
    return analyse(run(base), run(rerun), domain="algebra", number=1, rule=rule, removes_only=removes_only)


def test_a_gain_that_chance_would_not_give_is_accepted():
    found = seen("------++++", "++++++++++")
    assert found.accepted
    assert (found.n, found.lift) == (10, 0.6)
    assert found.p == 1 / 64
    assert found.gained == tuple(f"P{n}" for n in range(6))
    assert found.lost == ()
    assert found.reason == "lift +60.0 points on 10 solves, p = 0.0156, at most 0.05"


def test_a_gain_that_chance_gives_often_is_not():
    found = seen("---+++", "+++--+")
    assert not found.accepted
    assert found.gained == ("P0", "P1", "P2")
    assert found.lost == ("P3", "P4")
    assert "may be chance" in found.reason


def test_the_threshold_comes_first_and_the_bare_rule_asks_for_nothing_else():
    assert seen("-" * 30 + "+" * 70, "++++" + "-" * 26 + "+" * 70).reason.endswith("below the threshold of +5.0")
    assert seen("-+++++++++", "++++++++++", BARE).accepted
    assert not seen("-+++++++++", "++++++++++").accepted
    assert not seen("+++++", "+++++", BARE).accepted


def test_alpha_is_shared_by_the_interim_analyses():
    base, rerun = "----+", "+++++"
    assert seen(base, rerun, CommitRule(0.05, 0.1, 1)).accepted
    assert not seen(base, rerun, CommitRule(0.05, 0.1, 2)).accepted


def test_a_removal_claims_nothing_and_must_lose_nothing():
    assert seen("+-+-", "+-+-", removes_only=True).accepted
    assert seen("+-+-", "-++-", removes_only=True).accepted
    assert not seen("+-+-", "--+-", removes_only=True).accepted


def test_solves_that_the_provider_failed_and_unlabelled_ones_are_left_out():
    found = seen("x-+?-", "++x?-")
    assert (found.n, found.gained, found.lost) == (2, ("P1",), ())


@pytest.mark.parametrize("removes_only", [True, False])
def test_without_a_pair_nothing_is_accepted(removes_only: bool):
    found = seen("x", "+", BARE, removes_only=removes_only)
    assert not found.accepted
    assert (found.n, found.lift, found.p) == (0, 0.0, 1.0)
    assert found.reason == "no problem could be compared"


def test_pairs_match_problem_and_seed_and_flip_by_problem():
    base = [*run("---"), *run("---", seed=1)]
    rerun = [*run("+++", seed=1), *run("+++")]
    found = analyse(base, rerun[::-1], domain="algebra", number=2, rule=RULE, removes_only=False)
    assert (found.n, found.lift) == (6, 1.0)
    assert found.p == 1 / 8, "three problems are three pieces of evidence, not six"
    assert found.gained == ("P0", "P1", "P2")


def test_a_candidate_like_the_base_is_rarely_committed_over_all_analyses():
    chance = random.Random(5)
    committed = 0
    for _ in range(600):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(30)]
        base, *reruns = (run("".join("-+"[chance.random() < rate] for rate in rates)) for _ in range(3))
        analyses = (analyse(base, rerun, domain="d", number=1, rule=RULE, removes_only=False) for rerun in reruns)
        committed += any(found.accepted for found in analyses)
    assert committed <= RULE.alpha * 600


# What is measured is written on the cards


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
        lifts = [lift_of(f"EXACT_{name}_CARD", "leave_one_out", paired(base, arm())) for name in names]
        after = credited(tree, *(lift for lift in lifts if lift))
        runs += 1
        called += any(card.status is not Status.EXPERIMENTAL for card in after)
    assert called <= ALPHA * runs
