"""Statistics: intervals and exact tests for the figures of runs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, cast

LEVEL = 0.95
ENUMERATED = (
    200  # differences up to which sign flips are counted in whole numbers;
)
# beyond, a p-value is exact to about 1e-13
LATTICE = (
    1 << 17
)  # points of a resampled sum; only wildly different sizes need more
FARTHEST = (
    12  # standard deviations of a larger sum, beyond which nothing matters
)

Terms = tuple[int, Mapping[int, float]]
"""Like terms of a sum: how many there are, and the probability of each value."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


SHARES = Interval(0.0, 1.0)  # all values of a share


def wilson(successes: int, n: int) -> Interval:
    """Return the 95 % Wilson score interval of a proportion."""
    if n == 0:
        return SHARES
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    z2 = z * z
    share = successes / n
    scale = 1 + z2 / n
    centre = (share + z2 / (2 * n)) / scale
    variance = share * (1 - share) / n
    half = z * math.sqrt(variance + z2 / (4 * n * n)) / scale
    low = max(0.0, centre - half)
    high = min(1.0, centre + half)
    return Interval(low, high)


def wilson_of_share(share: float, n: int) -> Interval:
    """Return Wilson's interval of a share, rounded outwards to whole successes."""
    right = round(share * n, 9)
    low = wilson(math.floor(right), n).low
    high = wilson(math.ceil(right), n).high
    return Interval(low, high)


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


# Student's t


def t_p_value(t: float, df: float) -> float:
    """Return the two-sided p-value of a t statistic."""
    if math.isinf(t):
        return 0.0
    below = df + t * t
    return _incomplete_beta(df / 2, 0.5, df / below, t * t / below)


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Return the value that the t distribution stays below with probability `p`."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs 0 < p < 1, not {p}")
    tail = 2 * min(p, 1 - p)
    low = 0.0
    high = 1.0
    while t_p_value(high, df) > tail:
        low = high
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        if t_p_value(middle, df) > tail:
            low = middle
        else:
            high = middle
    return high if p > 0.5 else -high


def _incomplete_beta(
    a: float,
    b: float,
    x: float,
    y: float,
) -> float:
    """Return the regularised incomplete beta function at x.

    `y` is 1 - x, given apart because the difference loses digits.
    """
    if x <= 0:
        return 0.0
    if y <= 0:
        return 1.0
    if x > (a + 1) / (
        a + b + 2
    ):  # the fraction converges fast on the other side only
        return 1.0 - _incomplete_beta(b, a, y, x)
    beta = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = beta + a * math.log(x) + b * math.log(y)
    # The continued fraction, evaluated from the front (modified Lentz).
    tiny = 1e-300
    first = (a + b) * x / (a + 1)
    c = 1.0
    d = 1.0 / (1 - first or tiny)
    value = d
    for m in range(1, 10_000):
        place = a + 2 * m
        even = m * (b - m) * x / ((place - 1) * place)
        odd = -(a + m) * (a + b + m) * x / (place * (place + 1))
        for term in (even, odd):
            d = 1.0 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            step = c * d
            value *= step
        if abs(step - 1) < 1e-16:
            break
    return math.exp(front) * value / a


# Exact tests


def sign_flip(differences: Iterable[int]) -> float:
    """Return how often random signs would give as large a sum: exact and one-sided.

    Each difference is a cluster, whose sign flips as a whole.
    """
    found = [change for change in differences if change]
    sizes = Counter(map(abs, found))
    total = sum(sizes.elements())
    room = (total - sum(found)) // 2  # the sum of sizes that may be negative
    if len(found) > ENUMERATED:
        terms = []
        for size, times in sorted(sizes.items()):
            terms.append((times, {0: 0.5, size: 0.5}))
        return sum_law(terms).at_most(room)
    ways = Counter({0: 1})  # by the sum of the sizes that are negative
    for size in sizes.elements():
        flipped: Counter[int] = Counter()
        for negative, count in ways.items():
            flipped[negative + size] = count
        ways += flipped
    below = 0
    for negative, count in ways.items():
        if negative <= room:
            below += count
    return below / (1 << len(found))


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


# The law of a sum, and the bootstrap as its limit


class SumLaw(NamedTuple):
    """The distribution of a sum; what lies outside has no weight that matters."""

    first: int
    reached: Sequence[
        float
    ]  # the probability of at most `first`, `first + 1`, ...

    def at_most(self, value: int) -> float:
        """Return the probability that the sum is at most `value`."""
        place = value - self.first
        if place < 0:
            return 0.0
        return float(self.reached[min(place, len(self.reached) - 1)])

    def quantile(self, share: float) -> int:
        """Return the least value that the sum stays at or below with this probability."""
        return self.first + bisect_left(self.reached, share)


def sum_law(terms: Sequence[Terms]) -> SumLaw:
    """Return the distribution of a sum of independent whole numbers.

    It is exact to rounding: a product of Fourier transforms. Resampling draws from such
    sums, and tends to this with ever more draws.
    """
    import numpy as np

    least = sum(number * min(law) for number, law in terms)
    most = sum(number * max(law) for number, law in terms)
    first = least
    size = most - least + 1
    if (
        size > LATTICE
    ):  # shorter than the sum: it wraps around where nothing weighs
        first, size = _main_part(terms, least, most)
    period = 1 << size.bit_length()
    waves = np.ones(period // 2 + 1, complex)
    for number, law in terms:
        places = [(value - min(law)) % period for value in law]
        one = np.bincount(places, [*law.values()])
        waves *= np.fft.rfft(one, period) ** number
    found = np.roll(np.fft.irfft(waves, period), (least - first) % period)[
        :size
    ]
    reached = np.cumsum(np.maximum(0.0, found)).clip(max=1.0)
    reached[-1] = 1.0
    return SumLaw(first, cast("Sequence[float]", reached))


def _main_part(
    terms: Sequence[Terms],
    least: int,
    most: int,
) -> tuple[int, int]:
    """Return the first value and the number of values around a sum's mean."""
    mean = 0.0
    variance = 0.0
    for number, law in terms:
        centre = math.fsum(value * p for value, p in law.items())
        spread = math.fsum(
            (value - centre) ** 2 * p for value, p in law.items()
        )
        mean += number * centre
        variance += number * spread
    reach = math.ceil(FARTHEST * math.sqrt(variance)) + 1
    first = max(least, round(mean) - reach)
    last = min(most, round(mean) + reach)
    return first, last - first + 1


def cluster_interval(
    clusters: Mapping[tuple[Fraction | int, int], int], span: Interval
) -> Interval:
    """Return the 95 % interval of a mean over clusters.

    `clusters` counts those with a sum and a number of values; `span` bounds a value.
    Clusters are resampled whole, since what is alike within one is no evidence about
    others; if their sizes differ, the mean is a ratio, linearised. The distribution is
    computed and not drawn, so the same run always gives the same interval. Its tails are
    widened as for Student's t, without which it is too short for few clusters. On a side
    of the commonest cluster mean where no cluster lies, it reaches as far as a share of
    1 - 0.025^(1/N) of the N values, which seeing none still allows (Clopper-Pearson).
    """
    n = sum(clusters.values())
    if n < 2:
        return span
    values = 0
    total: Fraction | int = 0
    for (sums, size), times in clusters.items():
        values += size * times
        total += sums * times
    centre = Fraction(total, values)
    pulls: Counter[Fraction] = Counter()  # of each cluster on the mean
    means: Counter[Fraction] = Counter()
    for (sums, size), times in clusters.items():
        pull = (sums - centre * size) * n / values
        pulls[centre + pull] += times
        means[Fraction(sums, size)] += times
    mean = float(centre)
    low, high = _resampled(pulls, n, mean, span)
    most = max(means.values())
    common = [value for value, times in means.items() if times == most]
    tail = (1 - LEVEL) / 2
    unseen = 1 - tail ** (1 / values)
    if common == [min(means)]:
        low = min(low, mean - unseen * (mean - span.low))
    if common == [max(means)]:
        high = max(high, mean + unseen * (span.high - mean))
    return Interval(max(span.low, low), min(span.high, high))


def _resampled(
    pulls: Counter[Fraction],
    n: int,
    mean: float,
    span: Interval,
) -> tuple[float, float]:
    """Return the interval of the mean of n clusters drawn from `pulls`."""
    width = Fraction(span.high - span.low)
    spread = max(pulls) - min(pulls)
    reach = math.ceil(spread / width) or 1
    points = reach * min(n, FARTHEST * math.isqrt(n))
    room = LATTICE // points
    exact = math.lcm(*(value.denominator for value in pulls))
    grid = min(exact, max(1, room))
    law: Counter[int] = Counter()
    for value, times in pulls.items():
        law[round(value * grid)] += times
    # Only rounding, unless the grid is coarser than the means.
    centre = math.fsum(place * (times / n) for place, times in law.items())
    shift = mean - centre / grid
    student = t_quantile((1 - LEVEL) / 2, n - 1)
    tail = NormalDist().cdf(math.sqrt(n / (n - 1)) * student)
    rising = {place: times / n for place, times in law.items()}
    falling = {-place: share for place, share in rising.items()}
    low = sum_law([(n, rising)]).quantile(tail)
    high = -sum_law([(n, falling)]).quantile(tail)
    scale = n * grid
    return low / scale + shift, high / scale + shift
