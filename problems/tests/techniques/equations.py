"""Brute-force checks of the equations families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from math import sqrt


def cubes(s: int, p: int) -> int:
    """Solve for the two numbers and cube them."""
    u = (s + sqrt(s * s - 4 * p)) / 2
    return round(u**3 + (s - u) ** 3)


def both_powers(k: int, n: int) -> int:
    """Solve for the number and raise it and its reciprocal."""
    x = (k + sqrt(k * k - 4)) / 2
    return round(x**n + x**-n)


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "two_kinds_one_total": lambda n, t, p, q: next(y for y in range(n + 1) if p * (n - y) + q * y == t),
    "pairwise_sums": lambda a, b, c: next(x for x in range(a) if (a - x) + (c - x) == b),
    "cubes_from_sum_and_product": cubes,
    "powers_of_number_and_reciprocal": both_powers,
    "best_product": lambda p, q, k: max((p + Fraction(i, 4)) * (q - k * Fraction(i, 4)) for i in range(-4 * p, 4 * q)),
    "least_sum_for_fixed_product": lambda a, b, n: min(
        a * Fraction(i, 4) + Fraction(4 * b * n, i) for i in range(1, 100)
    ),
    "integers_within_tolerance": lambda a, b, c: sum(abs(a * x - b) <= c for x in range(-b, b + c)),
    "least_total_distance": lambda *places: min(sum(abs(x - place) for place in places) for x in range(80)),
    "rate_of_the_other": lambda a, c: next(x for x in count(1) if Fraction(1, a) + Fraction(1, x) == Fraction(1, c)),
    "first_time_ahead": lambda a, b, c, d: next(n for n in count(1) if a + b * n > c + d * n),
    "difference_of_two_squares": lambda n, d: next(x for x in count(d) if x * x - (x - d) ** 2 == n),
    "equal_powers": lambda u, e, v: next(x for x in count(1) if v**x == u**e),
    "digits_of_power": lambda a, n: len(str(a**n)),
    "number_and_its_root": lambda k, m: next(r * r for r in count(1) if r * r - k * r == m),
    "multiple_shrinks_by_equal_gain": lambda a, b, n: next(x for x in count(1) if a * x + n == b * (x + n)),
}
