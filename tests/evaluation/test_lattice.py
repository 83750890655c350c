"""Distributions of sums agree with counting every case, and with scipy where there are too many to count."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kace.evaluation.lattice import LatticeSum, Terms

VALUES = st.lists(st.integers(-4, 6), min_size=1, max_size=4)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_a_sum_of_different_terms_is_what_counting_gives(terms: list[list[int]]):
    law = LatticeSum.of([Terms(1, {v: values.count(v) / len(values) for v in values}) for values in terms])
    sums = [sum(choice) for choice in itertools.product(*terms)]
    for value in range(min(sums) - 1, max(sums) + 2):
        assert law.at_most(value) == pytest.approx(sum(s <= value for s in sums) / len(sums), abs=1e-12)


def test_many_like_terms_are_what_counting_gives():
    drawn = [0, 1, 1, 3, 7]
    law = LatticeSum.of([Terms(5, {0: 0.2, 1: 0.4, 3: 0.2, 7: 0.2})])
    sums = [sum(choice) for choice in itertools.product(drawn, repeat=5)]
    for value in range(36):
        assert law.at_most(value) == pytest.approx(sum(s <= value for s in sums) / len(sums), abs=1e-13)


@pytest.mark.parametrize("n", [1, 30, 1_000, 100_000])
@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_coins_are_binomial_at_any_size(n: int, p: float):
    law = LatticeSum.of([Terms(n, {0: 1 - p, 1: p})])
    known = reference.binom(n, p)
    for value in {int(known.ppf(share)) for share in (1e-6, 0.025, 0.3, 0.5, 0.975)}:
        assert law.at_most(value) == pytest.approx(known.cdf(value), abs=1e-10)
    for share in (0.0251, 0.5003, 0.9752):
        assert law.quantile(share) == known.ppf(share)


def test_a_large_sum_is_computed_where_its_weight_lies():
    law = LatticeSum.of([Terms(100_000, {0: 0.5, 1: 0.5})])
    assert law.last - law.first < 6_000, "of 100,001 values, those within about eighteen standard deviations"
    assert law.at_most(law.first - 1) == 0.0
    assert law.at_most(law.last) == 1.0


def test_even_sums_never_give_weight_to_odd_ones():
    law = LatticeSum.of([Terms(2_000, {0: 0.5, 2: 0.5})])
    for value in range(1_900, 2_100, 2):
        assert law.at_most(value) == pytest.approx(law.at_most(value + 1), abs=1e-12)
