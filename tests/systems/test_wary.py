"""A system that doubts what ES is sure of, where the tree knows better."""

from __future__ import annotations

from kace.problem import Problem
from kace.tiers import ExitPath
from tests.systems.arena import Solver, ids, solve

KNOWN = Problem("How many pairs of people can be formed?", "2", "known")
STRANGE = Problem("What is any answer?", "2", "strange")


def test_a_problem_that_a_card_speaks_of_climbs_past_an_agreed_es():
    sure = Solver(answers=["1"] * 10)
    solution = solve("kace-wary", sure, KNOWN)
    assert solution.exit is ExitPath.MS_MAJORITY
    assert sure.shown["ES"] == set() and ids("MEDCOUNT") <= sure.shown["MS"]


def test_any_other_problem_leaves_where_it_always_did():
    solution = solve("kace-wary", Solver(answers=["1"] * 10), STRANGE)
    assert solution.exit is ExitPath.ES_UNANIMOUS
    assert len(solution.attempts) == 2


def test_the_method_itself_trusts_es_as_ever():
    assert solve("kace", Solver(answers=["1"] * 10), KNOWN).exit is ExitPath.ES_UNANIMOUS


def test_a_control_climbs_at_the_same_problem_and_reads_nothing():
    sure = Solver(answers=["1"] * 10)
    assert solve("kace-wary-bare", sure, KNOWN).exit is ExitPath.MS_MAJORITY
    assert sure.shown["MS"] == set()
    assert solve("kace-wary-bare", Solver(answers=["1"] * 10), STRANGE).exit is ExitPath.ES_UNANIMOUS


def test_another_control_climbs_at_the_same_problem_and_reads_cards_of_another_domain():
    sure = Solver(answers=["1"] * 10)
    assert solve("kace-wary-placebo", sure, KNOWN).exit is ExitPath.MS_MAJORITY
    assert sure.shown["MS"] and not ids("MEDCOUNT") & sure.shown["MS"]
    assert solve("kace-wary-placebo", Solver(answers=["1"] * 10), STRANGE).exit is ExitPath.ES_UNANIMOUS
