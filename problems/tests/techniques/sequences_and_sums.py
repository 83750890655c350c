"""Brute-force checks of the sequences_and_sums families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count, product
from math import fsum


def on_line(p: int, u: int, q: int, v: int, r: int) -> int:
    """Try every whole step that leads from one given term to the other and walk on."""
    step = next(d for d in range(100) if u + sum(d for _ in range(p, q)) == v)
    return u + sum(step for _ in range(p, r))


def grown(v: int, a: int, b: int) -> Fraction:
    """Grow step by step."""
    value = Fraction(v)
    for k in range(a, b + 1):
        value += value / k
    return value


def fed_back(x: int, p: int, q: int, n: int) -> int:
    """Run the rule."""
    for _ in range(n):
        x = p * x + q
    return x


def start_of(r: int, k: int, n: int) -> int:
    """Try all starts forwards."""

    def end(x: Fraction) -> Fraction:
        for _ in range(n):
            x = x / 2 - k
        return x

    return next(x for x in count(1) if end(Fraction(x)) == r)


def extended(a: int, b: int, c: int, n: int) -> int:
    """Extend the table of differences."""
    terms, step = [a, b, c], c - b
    while len(terms) < n:
        step += (c - b) - (b - a)
        terms.append(terms[-1] + step)
    return terms[n - 1]


def rows_laid(s: int) -> int:
    """Take off rows of growing length while some coins would be left."""
    row = 1
    while s > row:
        s, row = s - row, row + 1
    return s


def last_term(a: int, b: int, m: int) -> int:
    """Find one term after the other so that all the totals come out right."""
    terms: list[int] = []
    for n in range(1, m + 1):
        terms.append(a * n * n + b * n - sum(terms))
    return terms[-1]


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "sum_of_multiples": lambda k, a, b: sum(x for x in range(a, b + 1) if x % k == 0),
    "term_from_two_terms": on_line,
    "geometric_total": lambda a, r, n: sum(a * r**i for i in range(n)),
    "endless_sum": lambda a, p, q: Fraction(round(fsum(a * (p / q) ** i for i in range(500)), 6)),
    "telescoping_product": grown,
    "telescoping_sum": lambda n, a, b: sum(Fraction(n, k * (k + 1)) for k in range(a, b + 1)),
    "squares_from_to": lambda a, n: sum(1 for k in range(a, n + 1) for _ in product(range(k), repeat=2)),
    "cubes_from_to": lambda a, n: sum(k * k * k for k in range(a, n + 1)),
    "multiply_and_add": fed_back,
    "undo_the_halving": start_of,
    "second_differences": extended,
    "rings_around_a_centre": lambda k, n: 1 + sum(k * ring for ring in range(1, n + 1)),
    "beyond_triangular": rows_laid,
    "term_from_totals": last_term,
    "alternating_squares": lambda n, k: sum((-1) ** (n - j) * (k * j) ** 2 for j in range(1, n + 1)),
}
