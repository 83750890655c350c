"""Every figure agrees with scipy, or with counting all cases."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kace.runs.stats import cluster_interval, holm, sign_flip, wilson


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 10), (999, 1_000)])
def test_wilson_is_scipys(hits: int, n: int):
    expected = reference.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_flipping_single_pairs_is_mcnemars_test_the_binomial_one_of_discordant_pairs(gained: int, lost: int):
    n = gained + lost
    two = reference.binomtest(gained, n).pvalue if n else 1.0
    assert sign_flip([1] * gained + [-1] * lost + [0]) == pytest.approx(two, rel=1e-9)


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_flipping_clusters_counts_every_choice_of_signs(differences: list[int]):
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    as_far = sum(s >= abs(sum(differences)) for s in sums) / len(sums)
    assert sign_flip(differences) == pytest.approx(min(1.0, 2 * as_far))


def test_holm_on_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.5))
def test_holm_calls_what_the_step_down_rule_calls(p_values: list[float], alpha: float):
    called: set[int] = set()
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[position] * (len(p_values) - rank) > alpha:
            break
        called.add(position)
    assert {i for i, p in enumerate(holm(p_values)) if p <= alpha} == called


# The bootstrap


def test_a_resampled_interval_is_near_scipys():
    chance = random.Random(2)
    clusters = [(sum(chance.random() < 0.6 for _ in range(3)), 3) for _ in range(400)]
    means = np.array([total / size for total, size in clusters])
    drawn = reference.bootstrap(
        (means,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    )
    assert cluster_interval(clusters) == pytest.approx(tuple(drawn.confidence_interval), abs=0.003)


def test_a_side_on_which_nothing_moved_is_not_widened():
    assert cluster_interval([(0, 1)] * 30) == (0.0, 0.0)
    low, high = cluster_interval([(-1, 1)] * 2 + [(0, 1)] * 28)
    assert low < -0.1 and high == 0.0
    assert cluster_interval([(1, 1)]) is None


@pytest.mark.parametrize("lift", [0.0, 0.1])
def test_a_resampled_interval_holds_the_true_difference_about_95_times_in_a_hundred(lift: float):
    """Problems of every difficulty; the truth is the mean over the population they come from."""
    chance, held, times = random.Random(5), 0, 300
    population = [chance.betavariate(0.6, 0.6) for _ in range(20_000)]
    truth = sum(min(1.0, rate + lift) - rate for rate in population) / len(population)
    for _ in range(times):
        clusters = []
        for rate in chance.choices(population, k=100):
            gain = sum(chance.random() < rate + lift for _ in range(3)) - sum(chance.random() < rate for _ in range(3))
            clusters.append((gain, 3))
        low, high = cluster_interval(clusters)
        held += low <= truth <= high
    assert 0.91 <= held / times <= 0.98
