"""The cluster bootstrap by problem, computed instead of drawn.

Problems are what an evaluation samples, and the seeds of one problem are no independent evidence about others. So
problems are resampled whole: a resample's figure is the mean of n problem means drawn with replacement. The
distribution of that mean is known exactly, hence nothing is drawn and the same run always gives the same interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from statistics import NormalDist

from kace.evaluation.lattice import LatticeSum, Terms, support
from kace.evaluation.stats import Interval, t_quantile

LEVEL = 0.95
MAX_PERIOD = 20_000
"""Lattice points of the sum. Only seeds that differ wildly from problem to problem need more; see `_grid`."""


def cluster_interval(clusters: Iterable[tuple[int, int]], span: Interval) -> Interval:
    """The 95 % interval of the mean of cluster means, each cluster given as its sum and size; `span` bounds a mean.

    The percentile interval, its tails widened as for Student's t: as such it is too short for few problems, since it
    uses the observed spread as if it were the true one. Nor can it reach a side of the commonest mean on which no
    cluster lies. That none was seen there still allows for a share of 1 - 0.025^(1/n) (Clopper and Pearson's bound),
    so it reaches at least that far; clusters that are all alike get this bound on both sides.
    """
    counts = _means(clusters)
    n = counts.total()
    if n < 2:
        return span
    mean = float(sum(value * count for value, count in counts.items()) / n)
    low, high = _percentiles(counts, n)
    common = min(counts, key=lambda value: (-counts[value], value))
    unseen = 1 - ((1 - LEVEL) / 2) ** (1 / n)
    if common == min(counts):
        low = min(low, mean - unseen * (mean - span.low))
    if common == max(counts):
        high = max(high, mean + unseen * (span.high - mean))
    return Interval(max(span.low, low), min(span.high, high))


def _percentiles(counts: Counter[Fraction], n: int) -> Interval:
    grid = _grid(counts, n)
    terms = _terms(counts, n, grid)
    mirrored = Terms(n, {-value: share for value, share in terms.law.items()})
    tail = NormalDist().cdf(math.sqrt(n / (n - 1)) * t_quantile((1 - LEVEL) / 2, n - 1))
    mean = sum(value * count for value, count in counts.items()) / n
    shift = float(mean) - terms.mean / grid  # nothing, unless the grid is coarser than the means
    low = LatticeSum.of([terms]).quantile(tail)
    high = -LatticeSum.of([mirrored]).quantile(tail)
    return Interval(low / (n * grid) + shift, high / (n * grid) + shift)


def _means(clusters: Iterable[tuple[int, int]]) -> Counter[Fraction]:
    found: Counter[Fraction] = Counter()
    for (total, size), times in Counter(clusters).items():
        found[Fraction(total, size)] += times
    return found


def _grid(counts: Counter[Fraction], n: int) -> int:
    """Lattice points to a unit: as many as hold every mean exactly, or as many as can be computed.

    A coarser grid rounds each mean by at most half a step, which at the sizes where it happens changes the spread by
    less than one part in a hundred.
    """
    grid = math.lcm(*(value.denominator for value in counts))
    while grid > 1:
        first, last = support([_terms(counts, n, grid)])
        if last - first < MAX_PERIOD:
            break
        grid = max(1, min(grid - 1, grid * MAX_PERIOD // (last - first + 1)))
    return grid


def _terms(counts: Counter[Fraction], n: int, grid: int) -> Terms:
    law: dict[int, float] = {}
    for value, count in sorted(counts.items()):
        place = round(value * grid)
        law[place] = law.get(place, 0.0) + count / n
    return Terms(n, law)
