"""The interval is the bootstrap's limit, and holds the truth as often as it says, also for few problems."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from scipy import stats as reference

from kace.evaluation.bootstrap import cluster_interval
from kace.evaluation.stats import Interval

SHARE, CHANGE = Interval(0.0, 1.0), Interval(-1.0, 1.0)


def test_it_is_what_counting_every_resample_gives():
    values = [0, 0, 1, 2, 3, 3]
    means = sorted(sum(choice) / 18 for choice in itertools.product(values, repeat=6))
    tail = reference.norm.cdf(math.sqrt(6 / 5) * reference.t.ppf(0.025, 5))
    place = math.ceil(tail * len(means)) - 1
    found = cluster_interval([(value, 3) for value in values], SHARE)
    assert found == pytest.approx((means[place], means[-1 - place]))


def test_it_is_what_scipys_resampling_tends_to():
    chance = random.Random(2)
    clusters = [(sum(chance.random() < 0.6 for _ in range(3)), 3) for _ in range(400)]
    drawn = reference.bootstrap(
        (np.array([total / size for total, size in clusters]),),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    assert cluster_interval(clusters, SHARE) == pytest.approx(tuple(drawn.confidence_interval), abs=0.002)


def test_order_does_not_matter_and_nothing_is_drawn():
    clusters = [(number % 4, 3) for number in range(50)]
    assert cluster_interval(clusters, SHARE) == cluster_interval(reversed(clusters), SHARE)


def test_seeds_of_a_problem_are_no_new_problems():
    one = [(1, 1)] * 18 + [(0, 1)] * 12
    thrice = [(3 * right, 3) for right, _ in one]
    assert cluster_interval(thrice, SHARE) == pytest.approx(cluster_interval(one, SHARE))


def test_problems_that_are_all_alike_still_leave_room():
    low, high = cluster_interval([(1, 1)] * 30, SHARE)
    assert low == pytest.approx(reference.binomtest(30, 30).proportion_ci(0.95, "exact").low)
    assert high == 1.0
    low, high = cluster_interval([(0, 3)] * 30, CHANGE)
    assert -low == high == pytest.approx(0.1157, abs=1e-4)


def test_a_side_that_nothing_was_seen_on_is_not_closed():
    """Two lost of thirty, none gained: resampling alone could never reach above zero."""
    low, high = cluster_interval([(-1, 1)] * 2 + [(0, 1)] * 28, CHANGE)
    assert low < -0.06
    assert high > 0.03


def test_mirrored_changes_have_a_mirrored_interval():
    chance = random.Random(3)
    clusters = [(chance.randint(-3, 3), 3) for _ in range(40)]
    low, high = cluster_interval(clusters, CHANGE)
    assert cluster_interval([(-gain, n) for gain, n in clusters], CHANGE) == pytest.approx((-high, -low))


def test_one_problem_says_nothing():
    assert cluster_interval([(2, 3)], SHARE) == SHARE
    assert cluster_interval([], SHARE) == SHARE


def test_uneven_seeds_on_a_coarse_grid_stay_close_to_the_normal_limit():
    chance = random.Random(4)
    clusters = [(chance.randint(0, size), size) for size in (chance.randint(1, 13) for _ in range(3_000))]
    means = [total / size for total, size in clusters]
    low, high = cluster_interval(clusters, SHARE)
    half = 1.96 * float(np.std(means)) / math.sqrt(len(means))
    assert (low, high) == pytest.approx((np.mean(means) - half, np.mean(means) + half), abs=0.01 * half)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize("lift", [0.0, 0.1])
def test_it_holds_the_true_difference_93_to_97_times_in_a_hundred(n: int, seeds: int, lift: float):
    """Problems of every difficulty; the truth is the mean over the population they come from."""
    chance, held, times = random.Random(5), 0, 1_000
    population = [chance.betavariate(0.6, 0.6) for _ in range(20_000)]
    truth = math.fsum(min(1.0, rate + lift) - rate for rate in population) / len(population)
    for _ in range(times):
        clusters = []
        for rate in chance.choices(population, k=n):
            base = sum(chance.random() < rate for _ in range(seeds))
            clusters.append((sum(chance.random() < rate + lift for _ in range(seeds)) - base, seeds))
        low, high = cluster_interval(clusters, CHANGE)
        held += low <= truth <= high
    assert 0.93 <= held / times <= 0.97


@pytest.mark.parametrize("seeds", [1, 3])
def test_it_holds_the_true_accuracy_93_to_97_times_in_a_hundred(seeds: int):
    chance, held, times = random.Random(6), 0, 1_000
    for _ in range(times):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(50)]
        clusters = [(sum(chance.random() < rate for _ in range(seeds)), seeds) for rate in rates]
        low, high = cluster_interval(clusters, SHARE)
        held += low <= 0.5 <= high
    assert 0.93 <= held / times <= 0.97
