"""Every figure agrees with scipy, or with counting all cases."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kace.evaluation.stats import Table, holm, mcnemar, sign_flip, stratified_exact, t_p_value, t_quantile, wilson

DEGREES = (1, 2, 3, 4, 7, 12, 29, 100, 1_000)
SMALL = st.integers(0, 3)
TABLES = st.lists(
    st.tuples(SMALL, SMALL, SMALL, SMALL).map(lambda t: Table(min(t[0], t[1]), t[1], min(t[2], t[3]), t[3])),
    max_size=4,
)
P_VALUES = st.lists(st.floats(0, 1), max_size=8)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("t", [0.0, 1e-9, 0.3, -1.0, 2.5, 12.0, 300.0])
def test_the_p_value_of_t_is_scipys(t: float, df: int):
    assert t_p_value(t, df) == pytest.approx(2 * reference.t.sf(abs(t), df), rel=1e-9)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("p", [1e-6, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999])
def test_the_quantile_of_t_is_scipys(p: float, df: int):
    assert t_quantile(p, df) == pytest.approx(reference.t.ppf(p, df), rel=1e-9, abs=1e-9)


def test_an_infinite_t_has_no_chance_and_a_quantile_needs_a_probability():
    assert t_p_value(math.inf, 3) == 0.0
    with pytest.raises(ValueError, match="0 < p < 1"):
        t_quantile(1.0, 3)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 10), (999, 1_000)])
def test_wilson_is_scipys(hits: int, n: int):
    expected = reference.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_is_everything():
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_discordant_pairs(gained: int, lost: int):
    n = gained + lost
    one = reference.binomtest(gained, n, alternative="greater").pvalue if n else 1.0
    two = reference.binomtest(gained, n).pvalue if n else 1.0
    assert mcnemar(gained, lost, two_sided=False) == pytest.approx(one, rel=1e-9)
    assert mcnemar(gained, lost) == pytest.approx(two, rel=1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_flipping_single_pairs_is_mcnemar(gained: int, lost: int):
    assert sign_flip([1] * gained + [-1] * lost + [0]) == pytest.approx(mcnemar(gained, lost, two_sided=False))


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_flipping_clusters_counts_every_choice_of_signs(differences: list[int]):
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    assert sign_flip(differences) == pytest.approx(sum(s >= sum(differences) for s in sums) / len(sums))


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9), st.integers(1, 9))
def test_one_stratum_is_the_hypergeometric_test(a: int, n: int, b: int, m: int):
    a, b = min(a, n), min(b, m)
    law = reference.hypergeom(n + m, a + b, n)
    assert stratified_exact([Table(a, n, b, m)]) == pytest.approx(min(1, 2 * min(law.sf(a - 1), law.cdf(a))))


@given(TABLES)
def test_several_strata_count_every_way_to_form_the_groups(tables: list[Table]):
    sums = []
    members = [[1] * (t.hits + t.other_hits) + [0] * (t.n + t.other_n - t.hits - t.other_hits) for t in tables]
    groups = [list(itertools.combinations(m, t.n)) for m, t in zip(members, tables, strict=True)]
    for choice in itertools.islice(itertools.product(*groups), 200_001):
        sums.append(sum(map(sum, choice)))
    if len(sums) > 200_000:
        return
    observed = sum(t.hits for t in tables)
    upper = sum(s >= observed for s in sums) / len(sums)
    lower = sum(s <= observed for s in sums) / len(sums)
    assert stratified_exact(tables) == pytest.approx(min(1, 2 * min(upper, lower)))


@given(TABLES)
def test_the_excess_is_the_weight_times_the_difference(tables: list[Table]):
    for table in tables:
        if table.weight:
            difference = table.hits / table.n - table.other_hits / table.other_n
            assert table.excess == pytest.approx(table.weight * difference)
        else:
            assert table.excess == 0


def test_holm_on_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()


@given(P_VALUES, st.floats(0.001, 0.5))
def test_holm_calls_what_the_step_down_rule_calls(p_values: list[float], alpha: float):
    called: set[int] = set()
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[position] * (len(p_values) - rank) > alpha:
            break
        called.add(position)
    assert {i for i, p in enumerate(holm(p_values)) if p <= alpha} == called


@given(P_VALUES)
def test_holm_lies_between_the_raw_and_the_bonferroni_values(p_values: list[float]):
    for raw, adjusted in zip(p_values, holm(p_values), strict=True):
        assert raw <= adjusted <= 1
    if p_values:
        assert min(holm(p_values)) == pytest.approx(min(1, min(p_values) * len(p_values)))
