"""Figures of one arm: the paper's own, scipy's, and none that hides a failure."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from scipy import stats as reference

from kace.config import Price
from kace.ladder.record import Damage
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.runs.metrics import RunCost, metrics_of
from kace.runs.table import SolveRow
from tests.runs.few_rows import a_row, an_arm, answered, changed

AIME = (38, 22, 19, 6, 5)
MATH = (98, 41, 8, 3, 0)
MILLION = 1_000_000


@pytest.mark.parametrize(("cells", "problems", "calls"), [(AIME, 30, "5.40"), (MATH, 50, "3.41")])
def test_the_papers_exit_cells_give_the_papers_calls(cells: tuple[int, ...], problems: int, calls: str):
    exits = [path for path, n in zip(ExitPath, cells, strict=True) for _ in range(n)]
    rows = (a_row(f"p{place // 3}", seed=place % 3, exit=path) for place, path in enumerate(exits))
    found = metrics_of(an_arm("kace", rows))
    assert (found.problems, found.solves, found.complete) == (problems, 3 * problems, True)
    assert f"{found.paper_calls:.2f}" == calls
    assert found.exits == dict(zip(ExitPath, cells, strict=True))


def test_accuracy_is_told_by_seed_and_as_the_mean():
    found = metrics_of(answered("a", [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]]))
    assert list(found.seeds) == [(0, 3, 4), (1, 2, 4), (2, 1, 4)]
    assert found.accuracy == pytest.approx(0.5) == sum(seed.accuracy for seed in found.seeds) / 3


def test_wilson_counts_each_problem_once():
    one = metrics_of(answered("a", [[1]] * 18 + [[0]] * 12))
    known = reference.binomtest(18, 30).proportion_ci(0.95, "wilson")
    assert one.wilson == pytest.approx((known.low, known.high), abs=1e-9)
    assert metrics_of(answered("a", [[1] * 3] * 18 + [[0] * 3] * 12)).wilson == pytest.approx(one.wilson)
    between = metrics_of(answered("a", [[1] * 3] * 18 + [[1, 0, 0]] + [[0] * 3] * 11)).wilson
    assert known.low < between.low and known.high < between.high


def test_a_failed_call_is_a_wrong_answer_and_counted():
    rows = [a_row("a"), a_row("b"), a_row("c", False, failed=True), a_row("d", False)]
    found = metrics_of(an_arm("a", rows))
    assert found.accuracy == 0.5
    assert found.failed == 1


def test_unlabelled_solves_count_for_calls_and_not_for_accuracy():
    found = metrics_of(an_arm("a", [a_row("a"), a_row("b", None, exit=ExitPath.MS_MAJORITY)]))
    assert (found.solves, found.labelled, found.accuracy, found.paper_calls) == (2, 1, 1.0, 3.5)
    nothing = metrics_of(an_arm("a", [a_row("b", None)]))
    assert (nothing.accuracy, nothing.wilson, nothing.interval, nothing.concordance) == (None, None, None, None)
    assert (nothing.seeds, nothing.buckets) == ((), ())


def test_an_empty_arm_is_no_crash():
    found = metrics_of(an_arm("a", []))
    assert (found.solves, found.accuracy, found.paper_calls, found.card_tokens, found.exits) == (0, None, 0, None, {})


def test_active_tokens_are_those_of_the_fullest_prompt():
    rows = [a_row("a"), replace(a_row("b"), card_tokens=400), replace(a_row("c"), card_tokens=800, estimated=True)]
    found = metrics_of(an_arm("a", rows)).card_tokens
    assert found is not None
    assert (found.mean, found.most, found.estimated) == (400, 800, True)


def test_tokens_and_cost_are_those_of_all_solves():
    arm = an_arm("a", [a_row("a", usage=(1_000, 500, 100)), a_row("b", usage=(3_000, 500, 300))])
    found = metrics_of(arm, Price(1.0, 10.0, cached=0.0))
    assert (found.input, found.cached, found.output) == (2_000, 500, 200)
    assert found.cost.usd == pytest.approx((3_000 + 4_000) / 1e6)
    assert metrics_of(arm).cost.usd == 0.0, "a scripted model costs nothing"


def test_a_system_without_a_ladder_has_accuracy_and_calls_but_no_exits():
    found = metrics_of(an_arm("best-of-5", [a_row("a", exit=None, attempts=5, right=3)]))
    assert (found.exits, found.concordance, found.paper_calls, found.accuracy) == ({}, None, 5, 1.0)
    assert [row.problems for row in found.buckets] == [0, 1, 0, 0, 0]


def test_damage_and_retries_are_part_of_the_figures():
    arm = changed(an_arm("a", []), [a_row("a"), a_row("b")] * 2, damage=(Damage(3, "torn"),))
    found = metrics_of(arm)
    assert (found.damaged, found.retried) == (1, 2)
    assert asdict(found)["name"] == "a", "figures can be written as JSON"


# What tokens cost, to the cent of the paper's two tables


def cost_of(rows: list[SolveRow], price: Price | None, model: str = "openai/solver") -> RunCost:
    return metrics_of(an_arm("a", rows, {"config": {"model": model}}), price).cost


def test_360_runs_of_the_papers_solver_cost_5_28_cached_and_6_84_uncached():
    """The paper gives totals and rates only. Their difference fixes the cached input at 5.2 million tokens; the rest,
    8.1 million of input in all and 2.25 million of output, is one choice that gives both totals.
    """
    rows = [a_row(f"p{n}", seed=s, usage=(22_500, 0, 6_250)) for n in range(120) for s in range(3)]
    cached = [a_row(f"p{n}", seed=s, usage=(22_500, 14_444, 6_250)) for n in range(120) for s in range(3)]
    price = Price(0.40, 1.60, cached=0.10)
    assert f"{cost_of(rows, price).usd:.2f}" == "6.84"
    assert f"{cost_of(cached, price).usd:.2f}" == "5.28"
    assert sum(row.usage.cached for row in cached) == pytest.approx(MILLION * (6.84 - 5.28) / (0.40 - 0.10), rel=1e-4)


def test_the_classifier_is_a_role_of_its_own():
    row = replace(a_row("a", usage=(1_000, 400, 200)), classifier_calls=1, classifier=Usage(500, 300, 4))
    found = cost_of([row, a_row("b")], Price(1.0, 10.0, cached=0.5))
    solver, classifier = found.roles
    assert (solver.role, solver.calls, solver.usage) == ("solver", 4, Usage(1_000, 400, 200))
    assert (classifier.role, classifier.calls, classifier.usage) == ("classifier", 1, Usage(500, 300, 4))
    assert solver.usd == pytest.approx((600 + 200 + 2_000) / MILLION)
    assert found.usd == pytest.approx(solver.usd + (200 + 150 + 40) / MILLION), "cached input is priced as cached"


def test_without_a_price_tokens_are_counted_and_money_is_unknown():
    found = cost_of([a_row("a", usage=(10, 0, 5))], None)
    assert found.roles[0].usage.output == 5
    assert found.usd is None
