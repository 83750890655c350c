"""A revised tree is kept when the rerun shows that it helps, and chance rarely passes for help."""

from __future__ import annotations

import random

import pytest

from kace.evaluation.stats import mcnemar
from kace.learner.commit import CommitRule, Look, look
from kace.solver.attempt import Outcome
from kace.solver.trace import SolveRecord
from tests.learner.solve_records import a_solve, a_try

RULE = CommitRule(threshold=0.05, alpha=0.1, looks=2)
BARE = CommitRule(threshold=0.05, alpha=1.0, looks=2)


def run(marks: str, seed: int = 0) -> list[SolveRecord]:
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


def seen(base: str, rerun: str, rule: CommitRule = RULE, *, removes_only: bool = False) -> Look:
    return look(run(base), run(rerun), domain="algebra", number=1, rule=rule, removes_only=removes_only)


def test_a_gain_that_chance_would_not_give_is_accepted():
    found = seen("------++++", "++++++++++")
    assert found.accepted
    assert (found.n, found.lift) == (10, 0.6)
    assert found.p == mcnemar(6, 0, two_sided=False) == 1 / 64
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


def test_alpha_is_shared_by_the_looks():
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
    found = look(base, rerun[::-1], domain="algebra", number=2, rule=RULE, removes_only=False)
    assert (found.n, found.lift) == (6, 1.0)
    assert found.p == 1 / 8, "three problems are three pieces of evidence, not six"
    assert found.gained == ("P0", "P1", "P2")


def test_a_candidate_like_the_base_is_rarely_committed_over_all_looks():
    chance = random.Random(5)
    committed = 0
    for _ in range(600):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(30)]
        base, *reruns = (run("".join("-+"[chance.random() < rate] for rate in rates)) for _ in range(3))
        looks = (look(base, rerun, domain="d", number=1, rule=RULE, removes_only=False) for rerun in reruns)
        committed += any(found.accepted for found in looks)
    assert committed <= RULE.alpha * 600
