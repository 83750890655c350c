"""Every figure agrees with scipy, or with counting all cases."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kace.runs.compare import flipped
from kace.runs.stats import (
    Interval,
    cluster_interval,
    holm,
    sign_flip,
    sum_law,
    t_p_value,
    t_quantile,
    wilson,
)

DEGREES = (1, 2, 3, 4, 7, 12, 29, 100, 1_000)
P_VALUES = st.lists(st.floats(0, 1), max_size=8)
VALUES = st.lists(st.integers(-4, 6), min_size=1, max_size=4)
SHARE, CHANGE = Interval(0.0, 1.0), Interval(-1.0, 1.0)


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
def test_flipping_single_pairs_is_mcnemars_test_the_binomial_one_of_discordant_pairs(gained: int, lost: int):
    n = gained + lost
    one = reference.binomtest(gained, n, alternative="greater").pvalue if n else 1.0
    two = reference.binomtest(gained, n).pvalue if n else 1.0
    assert sign_flip([1] * gained + [-1] * lost + [0]) == pytest.approx(one, rel=1e-9)
    assert flipped([1] * gained + [-1] * lost) == pytest.approx(two, rel=1e-9)


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_flipping_clusters_counts_every_choice_of_signs(differences: list[int]):
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    assert sign_flip(differences) == pytest.approx(sum(s >= sum(differences) for s in sums) / len(sums))


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


# Sums, and the bootstrap as their limit


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_a_sum_of_different_terms_is_what_counting_gives(terms: list[list[int]]):
    law = sum_law([(1, {v: values.count(v) / len(values) for v in values}) for values in terms])
    sums = [sum(choice) for choice in itertools.product(*terms)]
    for value in range(min(sums) - 1, max(sums) + 2):
        assert law.at_most(value) == pytest.approx(sum(s <= value for s in sums) / len(sums), abs=1e-12)


def test_many_like_terms_are_what_counting_gives():
    drawn = [0, 1, 1, 3, 7]
    law = sum_law([(5, {0: 0.2, 1: 0.4, 3: 0.2, 7: 0.2})])
    sums = [sum(choice) for choice in itertools.product(drawn, repeat=5)]
    for value in range(36):
        assert law.at_most(value) == pytest.approx(sum(s <= value for s in sums) / len(sums), abs=1e-13)


@pytest.mark.parametrize("n", [1, 30, 1_000, 100_000])
@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_coins_are_binomial_at_any_size(n: int, p: float):
    law = sum_law([(n, {0: 1 - p, 1: p})])
    known = reference.binom(n, p)
    for value in {int(known.ppf(share)) for share in (1e-6, 0.025, 0.3, 0.5, 0.975)}:
        assert law.at_most(value) == pytest.approx(known.cdf(value), abs=1e-10)
    for share in (0.0251, 0.5003, 0.9752):
        assert law.quantile(share) == known.ppf(share)


def test_outside_its_values_a_sum_has_no_weight():
    law = sum_law([(100_000, {-1: 0.5, 1: 0.5})])
    assert law.at_most(-100_001) == 0.0
    assert law.at_most(100_000) == law.at_most(100_001) == 1.0


def test_even_sums_never_give_weight_to_odd_ones():
    law = sum_law([(2_000, {0: 0.5, 2: 0.5})])
    for value in range(1_900, 2_100, 2):
        assert law.at_most(value) == pytest.approx(law.at_most(value + 1), abs=1e-12)


def test_a_resampled_interval_is_what_counting_every_resample_gives():
    values = [0, 0, 1, 2, 3, 3]
    means = sorted(sum(choice) / 18 for choice in itertools.product(values, repeat=6))
    tail = reference.norm.cdf(math.sqrt(6 / 5) * reference.t.ppf(0.025, 5))
    place = math.ceil(tail * len(means)) - 1
    found = cluster_interval(Counter((value, 3) for value in values), SHARE)
    assert found == pytest.approx((means[place], means[-1 - place]))


def test_a_resampled_interval_is_what_scipys_resampling_tends_to():
    chance = random.Random(2)
    clusters = [(sum(chance.random() < 0.6 for _ in range(3)), 3) for _ in range(400)]
    drawn = reference.bootstrap(
        (np.array([total / size for total, size in clusters]),),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    assert cluster_interval(Counter(clusters), SHARE) == pytest.approx(tuple(drawn.confidence_interval), abs=0.002)


def test_for_an_interval_order_does_not_matter_and_nothing_is_drawn():
    clusters = [(number % 4, 3) for number in range(50)]
    assert cluster_interval(Counter(clusters), SHARE) == cluster_interval(Counter(reversed(clusters)), SHARE)


def test_seeds_of_a_problem_are_no_new_problems():
    one = [(1, 1)] * 18 + [(0, 1)] * 12
    thrice = [(3 * right, 3) for right, _ in one]
    assert cluster_interval(Counter(thrice), SHARE) == pytest.approx(cluster_interval(Counter(one), SHARE))


def test_problems_that_are_all_alike_still_leave_room():
    low, high = cluster_interval({(1, 1): 30}, SHARE)
    assert low == pytest.approx(reference.binomtest(30, 30).proportion_ci(0.95, "exact").low)
    assert high == 1.0
    low, high = cluster_interval({(0, 1): 30}, CHANGE)
    assert -low == high == pytest.approx(0.1157, abs=1e-4)


def test_a_side_that_nothing_was_seen_on_is_not_closed():
    """Two lost of thirty, none gained: resampling alone could never reach above zero."""
    low, high = cluster_interval({(-1, 1): 2, (0, 1): 28}, CHANGE)
    assert low < -0.06
    assert high > 0.03


def test_mirrored_changes_have_a_mirrored_interval():
    chance = random.Random(3)
    clusters = [(chance.randint(-3, 3), 3) for _ in range(40)]
    low, high = cluster_interval(Counter(clusters), CHANGE)
    assert cluster_interval(Counter((-gain, n) for gain, n in clusters), CHANGE) == pytest.approx((-high, -low))


def test_an_interval_of_one_problem_says_nothing():
    assert cluster_interval({(2, 3): 1}, SHARE) == SHARE
    assert cluster_interval({}, SHARE) == SHARE


@pytest.mark.parametrize(("seeds", "n"), [(13, 3_000), (3, 400_000)])
def test_uneven_seeds_on_a_coarse_grid_stay_close_to_the_normal_limit(seeds: int, n: int):
    chance = random.Random(4)
    shares = [Fraction(chance.randint(0, size), size) for size in (chance.randint(1, seeds) for _ in range(n))]
    means = [float(share) for share in shares]
    low, high = cluster_interval(Counter((share, 1) for share in shares), SHARE)
    half = 1.96 * float(np.std(means)) / math.sqrt(len(means))
    assert (low, high) == pytest.approx((np.mean(means) - half, np.mean(means) + half), abs=0.01 * half)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize("lift", [0.0, 0.1])
def test_a_resampled_interval_holds_the_true_difference_93_to_97_times_in_a_hundred(n: int, seeds: int, lift: float):
    """Problems of every difficulty; the truth is the mean over the population they come from."""
    chance, held, times = random.Random(5), 0, 1_000
    population = [chance.betavariate(0.6, 0.6) for _ in range(20_000)]
    truth = math.fsum(min(1.0, rate + lift) - rate for rate in population) / len(population)
    for _ in range(times):
        clusters = []
        for rate in chance.choices(population, k=n):
            base = sum(chance.random() < rate for _ in range(seeds))
            clusters.append((sum(chance.random() < rate + lift for _ in range(seeds)) - base, seeds))
        low, high = cluster_interval(Counter(clusters), CHANGE)
        held += low <= truth <= high
    assert 0.93 <= held / times <= 0.97


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_resampled_interval_holds_the_true_accuracy_93_to_97_times_in_a_hundred(seeds: int):
    chance, held, times = random.Random(6), 0, 1_000
    for _ in range(times):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(50)]
        clusters = [(sum(chance.random() < rate for _ in range(seeds)), seeds) for rate in rates]
        low, high = cluster_interval(Counter(clusters), SHARE)
        held += low <= 0.5 <= high
    assert 0.93 <= held / times <= 0.97
