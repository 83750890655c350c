"""Intervals and exact tests for the figures of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
DRAWS = 10_000  # resamples of a bootstrap
SEED = 2606  # the same run always gives the same interval


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def wilson(successes: float, n: int) -> Interval:
    """Return the 95 % Wilson score interval of a proportion."""
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(1 - TAIL)
    centre = successes + z * z / 2
    half = z * math.sqrt(successes * (n - successes) / n + z * z / 4)
    size = n + z * z
    low = max(0.0, centre - half)
    return Interval(low / size, min(1.0, (centre + half) / size))


def cluster_wilson(share: float, sizes: Iterable[int]) -> Interval:
    """Return the Wilson interval of a share of values in clusters of these sizes.

    A cluster counts as one observation, less if some are larger than others.
    """
    counts = list(sizes)
    squares = sum(size * size for size in counts)
    n = sum(counts) ** 2 // squares
    return wilson(share * n, n)


def sign_flip(differences: Iterable[int]) -> float:
    """Return the two-sided exact sign-flip p-value of a sum of differences.

    Each difference is a cluster, whose sign flips as a whole. For differences of one
    this is McNemar's exact test.
    """
    import numpy as np

    changes = [change for change in differences if change]
    total = sum(map(abs, changes))
    room = (total - abs(sum(changes))) // 2
    # The probability of each sum of the sizes whose signs are negative.
    law = np.ones(1)
    for size in map(abs, changes):
        coin = np.zeros(size + 1)
        coin[[0, size]] = 0.5
        law = np.convolve(law, coin)
    return min(1.0, 2 * float(law[: room + 1].sum()))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given."""
    left = len(p_values)
    adjusted = [0.0] * left
    floor = 0.0
    for position in sorted(range(left), key=p_values.__getitem__):
        floor = max(floor, min(1.0, p_values[position] * left))
        adjusted[position] = floor
        left -= 1
    return tuple(adjusted)


def cluster_interval(clusters: Iterable[tuple[float, int]]) -> Interval | None:
    """Return the 95 % percentile bootstrap of a mean over clusters; `None` below two.

    A cluster is a sum and a number of values, and is resampled whole, since what is
    alike within one is no evidence about others. Clusters that are all alike leave
    no width.
    """
    import numpy as np

    found = list(clusters)
    if len(found) < 2:
        return None
    pairs, counts = np.unique(found, axis=0, return_counts=True)
    n = counts.sum()
    drawn = np.random.default_rng(SEED).multinomial(n, counts / n, size=DRAWS)
    totals = drawn @ pairs[:, 0].copy()
    sizes = drawn @ pairs[:, 1]
    low, high = np.quantile(totals / sizes, [TAIL, 1 - TAIL])
    return Interval(float(low), float(high))
