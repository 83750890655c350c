"""Statistics: what a reported number needs beside it."""

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
ENUMERATED = 200  # differences up to which signs are counted in whole numbers; beyond, a p is exact to about 1e-13
LATTICE = (
    1 << 17
)  # points of a resampled sum; only seeds or clusters of wildly different sizes need more
FARTHEST = 12  # standard deviations of a sum of more points than that, beyond which nothing matters

Terms = tuple[
    int, Mapping[int, float]
]  # of a sum, that are alike: how many, and the probability of every value


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


SHARES = Interval(0.0, 1.0)  # all that a share can be


class Table(NamedTuple):
    """Successes in two groups of the same stratum."""

    hits: int
    n: int
    other_hits: int
    other_n: int

    @property
    def weight(self) -> float:
        """How much the comparison of the two groups tells: the inverse of its variance, up to a factor."""
        return self.n * self.other_n / ((self.n + self.other_n) or 1)

    @property
    def excess(self) -> float:
        """Successes of the first group beyond its share: the weight times the difference of the two rates."""
        return (self.hits * self.other_n - self.other_hits * self.n) / (
            (self.n + self.other_n) or 1
        )


def wilson(successes: int, n: int) -> Interval:
    """The 95 % Wilson score interval of a proportion: honest at small n and near 0 or 1."""
    if n == 0:
        return SHARES
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share = successes / n
    z2 = z * z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def wilson_of_share(share: float, n: int) -> Interval:
    """Wilson's interval of a share that need not be a whole number of n: rounded outwards to one that is."""
    right = round(share * n, 9)
    return Interval(wilson(math.floor(right), n).low, wilson(math.ceil(right), n).high)


def effective(sizes: Iterable[int]) -> int:
    """How many observations clusters of these sizes are worth at the least: one each, less where some are larger."""
    total = squares = 0
    for size in sizes:
        total = total + size
        squares = squares + size * size
    return total**2 // (squares or 1)


def t_p_value(t: float, df: float) -> float:
    """The two-sided p-value of a t statistic."""
    return (
        0.0
        if math.isinf(t)
        else _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    )


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Where the t distribution's function reaches `p`, which must lie between 0 and 1."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs 0 < p < 1, not {p}")
    tail = 2 * min(p, 1 - p)
    low = 0.0
    high = 1.0
    while t_p_value(high, df) > tail:
        low = high
        high = high * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_p_value(middle, df) > tail else (low, middle)
    return high if p > 0.5 else -high


def sign_flip(differences: Iterable[int]) -> float:
    """How often random signs would give as large a sum. Exact, one-sided; a difference is a cluster flipped whole."""
    found = [d for d in differences if d]
    sizes = Counter(map(abs, found))
    room = (
        sum(sizes.elements()) - sum(found)
    ) // 2  # what may be negative of all sizes
    if len(found) > ENUMERATED:
        return sum_law(
            [(times, {0: 0.5, size: 0.5}) for size, times in sorted(sizes.items())]
        ).at_most(room)
    ways = Counter({0: 1})
    for size in sizes.elements():
        ways += Counter({negative + size: count for negative, count in ways.items()})
    return sum(count for negative, count in ways.items() if negative <= room) / (
        1 << len(found)
    )


def stratified_exact(tables: Iterable[Table]) -> float:
    """The exact two-sided p-value of "the group makes no difference in any stratum", at any size and any rate.

    Given sizes and successes, the first groups' successes are a sum of hypergeometric numbers; twice its smaller tail.
    """
    import numpy as np

    observed = 0
    spread = np.ones(1)
    for hits, n, other_hits, other_n in tables:
        right = hits + other_hits
        total = n + other_n
        least = max(0, right - other_n)
        most = min(n, right)
        observed += hits - least
        if most > least:
            ways = [
                math.comb(right, k) * math.comb(total - right, n - k)
                for k in range(least, most + 1)
            ]
            spread = np.convolve(spread, [way / math.comb(total, n) for way in ways])
    upper = math.fsum(spread[observed:])
    lower = math.fsum(spread[: observed + 1])
    return min(1.0, 2 * min(upper, lower))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: those at most alpha may be called, together, at level alpha."""
    adjusted = [0.0] * len(p_values)
    bar = 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(order):
        bar = max(bar, min(1.0, p_values[position] * (len(p_values) - rank)))
        adjusted[position] = bar
    return tuple(adjusted)


class SumLaw(NamedTuple):
    """The distribution of a sum; what lies outside has no weight that matters."""

    first: int
    reached: Sequence[
        float
    ]  # the probability that the sum is at most `first`, at most `first + 1`, and so on to one

    def at_most(self, value: int) -> float:
        """The probability that the sum is at most `value`."""
        place = value - self.first
        return (
            0.0 if place < 0 else float(self.reached[min(place, len(self.reached) - 1)])
        )

    def quantile(self, share: float) -> int:
        """The least value that the sum stays at or below with at least this probability."""
        return self.first + bisect_left(self.reached, share)


def sum_law(terms: Sequence[Terms]) -> SumLaw:
    """The distribution of a sum of independent whole numbers, exact to rounding: a product of Fourier transforms.

    Resampling draws from just such sums, and tends to this with ever more draws.
    """
    import numpy as np

    least = first = sum(number * min(law) for number, law in terms)
    size = sum(number * max(law) for number, law in terms) - first + 1
    if (
        size > LATTICE
    ):  # a period shorter than the sum: it wraps around where there is no weight
        mean = variance = 0.0
        for number, law in terms:
            centre = math.fsum(value * p for value, p in law.items())
            mean += number * centre
            variance += number * math.fsum(
                (value - centre) ** 2 * p for value, p in law.items()
            )
        reach = math.ceil(FARTHEST * math.sqrt(variance)) + 1
        first = max(least, round(mean) - reach)
        last = min(least + size - 1, round(mean) + reach)
        size = last - first + 1
    period = 1 << size.bit_length()
    waves = np.ones(period // 2 + 1, complex)
    for number, law in terms:
        one = np.bincount(
            [(value - min(law)) % period for value in law], [*law.values()]
        )
        waves *= np.fft.rfft(one, period) ** number
    found = np.roll(np.fft.irfft(waves, period), (least - first) % period)[:size]
    reached = np.cumsum(np.maximum(0.0, found)).clip(max=1.0)
    reached[-1] = 1.0
    return SumLaw(first, cast("Sequence[float]", reached))


def cluster_interval(
    clusters: Mapping[tuple[Fraction | int, int], int], span: Interval
) -> Interval:
    """The 95 % interval of a mean. `clusters` counts those with a sum and a number of values; `span` bounds a value.

    Clusters are resampled whole, since what is alike within one is no evidence about others; where their sizes differ,
    the mean is a ratio, linearised. The distribution is computed and not drawn: the same run always gives the same
    interval. Its tails are widened as for Student's t, without which it is too short for few clusters. On a side of the
    commonest cluster mean where no cluster lies it reaches as far as a share of 1 - 0.025^(1/N) of the N values, which
    seeing none still allows (Clopper and Pearson's bound).
    """
    if (n := sum(clusters.values())) < 2:
        return span
    values = sum(size * times for (_, size), times in clusters.items())
    centre = Fraction(
        sum(total * times for (total, _), times in clusters.items()), values
    )
    pulls: Counter[Fraction] = (
        Counter()
    )  # of every cluster on the mean; its own mean where all have the same size
    means: Counter[Fraction] = Counter()
    for (total, size), times in clusters.items():
        pulls[centre + (total - centre * size) * n / values] += times
        means[Fraction(total, size)] += times
    reach = math.ceil((max(pulls) - min(pulls)) / Fraction(span.high - span.low)) or 1
    room = LATTICE // (reach * min(n, FARTHEST * math.isqrt(n)))
    grid = min(math.lcm(*(value.denominator for value in pulls)), max(1, room))
    law: Counter[int] = Counter()
    for value, times in pulls.items():
        law[round(value * grid)] += times
    mean = float(centre)
    # Nothing but rounding, unless the grid is coarser than the means.
    shift = mean - math.fsum(place * (times / n) for place, times in law.items()) / grid
    tail = NormalDist().cdf(math.sqrt(n / (n - 1)) * t_quantile((1 - LEVEL) / 2, n - 1))
    low, high = (
        sign
        * sum_law(
            [(n, {sign * place: times / n for place, times in law.items()})]
        ).quantile(tail)
        / (n * grid)
        + shift
        for sign in (1, -1)
    )
    common = [value for value, times in means.items() if times == max(means.values())]
    unseen = 1 - ((1 - LEVEL) / 2) ** (1 / values)
    if common == [min(means)]:
        low = min(low, mean - unseen * (mean - span.low))
    if common == [max(means)]:
        high = max(high, mean + unseen * (span.high - mean))
    return Interval(max(span.low, low), min(span.high, high))


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function at x, with y = 1 - x given apart because the difference loses digits."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1.0 - _incomplete_beta(b, a, y, x)
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(y)
    )
    # the continued fraction, evaluated from the front (modified Lentz)
    tiny = 1e-300
    c = 1.0
    value = d = 1.0 / (1 - (a + b) * x / (a + 1) or tiny)
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return math.exp(log_front) * value / a
