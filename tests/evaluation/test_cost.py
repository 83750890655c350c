"""What tokens cost, to the cent of the paper's two tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kace.evaluation.cost import cost_of, role_cost
from kace.models.base import Usage
from kace.models.budget import Price, free_price
from tests.evaluation.few_rows import a_row

MILLION = 1_000_000


def test_an_epoch_of_the_papers_teacher_costs_6_dollars_and_8_cents():
    usage = Usage(input=1_300_000, cached=MILLION, output=320_000, written=100_000)
    assert usage.input + usage.output == 1_620_000
    found = role_cost("teacher", 1, usage, Price(3.00, 15.00, cached=0.30, written=3.75))
    assert found.usd == pytest.approx(6.075, abs=1e-9)
    assert f"{found.usd:.2f}" == "6.08"


def test_360_runs_of_the_papers_solver_cost_5_28_cached_and_6_84_uncached():
    """The paper gives totals and rates only. Their difference fixes the cached input at 5.2 million tokens; the rest,
    8.1 million of input in all and 2.25 million of output, is one choice that gives both totals.
    """
    rows = [a_row(f"p{n}", seed=s, usage=(22_500, 0, 6_250)) for n in range(120) for s in range(3)]
    cached = [a_row(f"p{n}", seed=s, usage=(22_500, 14_444, 6_250)) for n in range(120) for s in range(3)]
    price = Price(0.40, 1.60, cached=0.10)
    assert f"{cost_of(rows, price).usd:.2f}" == "6.84"
    assert f"{cost_of(cached, price).usd:.2f}" == "5.28"
    assert sum(row.cached for row in cached) == pytest.approx(MILLION * (6.84 - 5.28) / (0.40 - 0.10), rel=1e-4)


def test_the_classifier_is_a_role_of_its_own():
    row = replace(a_row("a", usage=(1_000, 400, 200)), classifier_calls=1, classifier_input=500, classifier_output=4)
    found = cost_of([row, a_row("b")], Price(1.0, 10.0, cached=0.5))
    solver, classifier = found.roles
    assert (solver.role, solver.calls, solver.usage) == ("solver", 4, Usage(1_000, 400, 200))
    assert (classifier.role, classifier.calls, classifier.usage) == ("classifier", 1, Usage(500, 0, 4))
    assert solver.usd == pytest.approx((600 + 200 + 2_000) / MILLION)
    assert found.usd == pytest.approx(solver.usd + (500 + 40) / MILLION)


def test_without_a_price_tokens_are_counted_and_money_is_unknown():
    found = cost_of([a_row("a", usage=(10, 0, 5))], None)
    assert found.roles[0].usage.output == 5
    assert found.usd is None


def test_embedded_and_recorded_models_cost_nothing_and_others_need_a_price():
    assert cost_of([a_row("a", usage=(10, 0, 5))], free_price("local/tiny")).usd == 0.0
    assert free_price("openai/gpt-4.1-mini") is None
