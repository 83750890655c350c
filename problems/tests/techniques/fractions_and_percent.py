"""Brute-force checks of the fractions_and_percent families."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import count


def start(value: Fraction | int, *factors: Fraction) -> int:
    """The whole number that becomes the value when it is multiplied by the factors."""
    scale = Fraction(1)
    for factor in factors:
        scale *= factor
    return next(x for x in count(1) if x * scale == value)


def unit_growth(v: int, a: int, b: int, n: int) -> Fraction:
    """Grow step by step."""
    assert b == a + 1
    value = Fraction(v)
    for k in range(a, n + 1):
        value += value / k
    return value


def moved(a: int, b: int, k: int, c: int, d: int) -> int:
    """Try all pairs in the first ratio."""
    return next(a * m for m in count(1) if (a * m - k) * d == (b * m + k) * c and a * m > k)


def back(a: int, b: int) -> Fraction:
    """Try all fractions of the rest, by growing denominators."""
    rest = 1 - Fraction(a, b)
    return next(Fraction(x, y) for y in count(1) for x in range(1, 20 * y) if rest + rest * x / y == 1)


@cache
def by_decimals() -> dict[str, Fraction]:
    """The fractions below one with small denominators by their first decimals, found by long division."""
    return {
        "".join(str(10**k * p // q % 10) for k in range(1, 9)): Fraction(p, q) for q in range(2, 100) for p in range(q)
    }


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "whole_from_last_rest": lambda a, b, c, r: start(r, 1 - Fraction(1, a), 1 - Fraction(b, c)),
    "before_two_changes": lambda p, q, x: start(x, 1 + Fraction(p, 100), 1 - Fraction(q, 100)),
    "growth_of_a_share": lambda p, q: next(x for x in count(1) if p + Fraction(p * x, 100) == q),
    "growing_by_unit_fractions": unit_growth,
    "telescoping_parts": lambda v, a, n: sum(Fraction(v, k * (k + 1)) for k in range(a, n + 1)),
    "ratio_after_transfer": moved,
    "chained_ratios": lambda a, b, c, d, n: next(
        z for z in range(1, n) if (y := Fraction(z * c, d)) + y * a / b + z == n
    ),
    "equal_parts_of_two": lambda a, b, c, d, n: next(
        x for x in range(n) if Fraction(a * x, b) == Fraction(c * (n - x), d)
    ),
    "equal_results_of_gain_and_loss": lambda s, p: (
        start(s, 1 + Fraction(p, 100)) + start(s, 1 - Fraction(p, 100)) - s - s
    ),
    "fractions_between": lambda a, b, c, d, n: sum(
        Fraction(a, b) < Fraction(k, n) < Fraction(c, d) for k in range(n + 1)
    ),
    "same_added_to_both": lambda a, b, c, d: next(x for x in count(1) if Fraction(a + x, b + x) == Fraction(c, d)),
    "two_reductions_in_one": lambda a, b: sum(i < a or j < b for i in range(100) for j in range(100)) // 100,
    "fraction_back": back,
    "repeating_block": lambda n: by_decimals()[str(n) * 4],
}
