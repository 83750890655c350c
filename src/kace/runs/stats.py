"""Intervals and exact tests for the figures of runs."""

from __future__ import annotations

import math
from collections import Counter
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
    z2 = z * z
    share = successes / n
    scale = 1 + z2 / n
    centre = (share + z2 / (2 * n)) / scale
    variance = share * (1 - share) / n
    half = z * math.sqrt(variance + z2 / (4 * n * n)) / scale
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def effective(sizes: Iterable[int]) -> int:
    """Return how many observations clusters of these sizes are worth at least.

    One each, less if some are larger than others.
    """
    total = 0
    squares = 0
    for size in sizes:
        total += size
        squares += size * size
    return total**2 // (squares or 1)


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
    law = np.zeros(total + 1)
    law[0] = 1.0
    for size in map(abs, changes):
        flipped = np.zeros_like(law)
        flipped[size:] = law[:-size]
        law = (law + flipped) / 2
    return min(1.0, 2 * float(law[: room + 1].sum()))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given."""
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(order):
        corrected = min(1.0, p_values[position] * (len(p_values) - rank))
        floor = max(floor, corrected)
        adjusted[position] = floor
    return tuple(adjusted)


def cluster_interval(clusters: Iterable[tuple[float, int]]) -> Interval | None:
    """Return the 95 % percentile bootstrap of a mean over clusters; `None` below two.

    A cluster is a sum and a number of values, and is resampled whole, since what is
    alike within one is no evidence about others. Clusters that are all alike leave
    no width.
    """
    import numpy as np

    counts = Counter((float(total), size) for total, size in clusters)
    n = counts.total()
    if n < 2:
        return None
    pairs = sorted(counts)
    shares = [counts[pair] / n for pair in pairs]
    drawn = np.random.default_rng(SEED).multinomial(n, shares, size=DRAWS)
    totals = drawn @ np.array([total for total, _ in pairs])
    sizes = drawn @ np.array([size for _, size in pairs])
    low, high = np.quantile(totals / sizes, [TAIL, 1 - TAIL])
    return Interval(float(low), float(high))
