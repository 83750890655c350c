"""Statistics without a dependency: what a reported number needs beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

_TINY = 1e-300
_TERMS = 10_000


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Table(NamedTuple):
    """Successes in two groups of the same stratum."""

    hits: int
    n: int
    other_hits: int
    other_n: int

    @property
    def weight(self) -> float:
        """How much the comparison of the two groups tells: the inverse of its variance, up to a factor."""
        total = self.n + self.other_n
        return self.n * self.other_n / total if total else 0.0

    @property
    def excess(self) -> float:
        """Successes of the first group beyond its share: the weight times the difference of the two rates."""
        total = self.n + self.other_n
        return (self.hits * self.other_n - self.other_hits * self.n) / total if total else 0.0


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """The Wilson score interval of a proportion: honest at small n and near 0 or 1."""
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, z2 = successes / n, z * z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def wilson_of_share(share: float, n: int) -> Interval:
    """Wilson's interval of a share that need not be a whole number of n: rounded outwards to one that is."""
    right = round(share * n, 9)
    return Interval(wilson(math.floor(right), n).low, wilson(math.ceil(right), n).high)


def t_p_value(t: float, df: float) -> float:
    """The two-sided p-value of a t statistic."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Where the t distribution's function reaches `p`, which must lie between 0 and 1."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs 0 < p < 1, not {p}")
    tail = 2 * min(p, 1 - p)
    low, high = 0.0, 1.0
    while t_p_value(high, df) > tail:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_p_value(middle, df) > tail else (low, middle)
    return high if p > 0.5 else -high


def mcnemar(gained: int, lost: int, *, two_sided: bool = True) -> float:
    """The exact McNemar p-value of discordant pairs; one-sided, how often chance alone would gain as much."""
    n = gained + lost
    extreme = max(gained, lost) if two_sided else gained
    tail = sum(math.comb(n, k) for k in range(extreme, n + 1)) / (1 << n)
    return min(1.0, 2 * tail) if two_sided else tail


def sign_flip(differences: Iterable[int]) -> float:
    """The exact one-sided p-value of a sum of paired differences: how often random signs would give as much.

    With differences of one it is McNemar's test; a larger one is a cluster whose pairs flip together.
    """
    found = [d for d in differences if d]
    ways = {0: 1}
    for d in found:
        after: dict[int, int] = {}
        for total, count in ways.items():
            after[total + d] = after.get(total + d, 0) + count
            after[total - d] = after.get(total - d, 0) + count
        ways = after
    observed = sum(found)
    return sum(count for total, count in ways.items() if total >= observed) / (1 << len(found))


def stratified_exact(tables: Iterable[Table]) -> float:
    """The exact two-sided p-value of "the group makes no difference in any stratum".

    Given each stratum's sizes and successes, which of its members form the first group is a draw without
    replacement, so the first groups' successes add up to a sum of hypergeometric numbers. The p-value is twice the
    smaller tail of that sum: valid at any size and any rate.
    """
    observed, spread = 0, [1.0]
    for hits, n, other_hits, other_n in tables:
        right, total = hits + other_hits, n + other_n
        least, most = max(0, right - other_n), min(n, right)
        observed += hits - least
        if most > least:
            ways = [math.comb(right, k) * math.comb(total - right, n - k) for k in range(least, most + 1)]
            spread = _convolved(spread, [way / math.comb(total, n) for way in ways])
    upper, lower = math.fsum(spread[observed:]), math.fsum(spread[: observed + 1])
    return min(1.0, 2 * min(upper, lower))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: those at most alpha may be called, together, at level alpha."""
    adjusted, bar = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in enumerate(order):
        bar = max(bar, min(1.0, p_values[position] * (len(p_values) - rank)))
        adjusted[position] = bar
    return tuple(adjusted)


def _convolved(left: Sequence[float], right: Sequence[float]) -> list[float]:
    found = [0.0] * (len(left) + len(right) - 1)
    for shift, factor in enumerate(right):
        for place, value in enumerate(left, shift):
            found[place] += factor * value
    return found


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function at x, with y = 1 - x given apart because the difference loses digits."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1.0 - _incomplete_beta(b, a, y, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, evaluated from the front (modified Lentz)."""
    c, d = 1.0, 1.0 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
