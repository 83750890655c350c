"""Brute-force checks of the probability families."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import fsum


def share(cases: Iterable[bool]) -> Fraction:
    """The part of equally likely cases that are good."""
    listed = list(cases)
    return Fraction(sum(listed), len(listed))


def exact(value: float) -> Fraction:
    """The simple fraction that a long sum comes down to."""
    found = Fraction(value).limit_denominator(2000)
    assert abs(found - value) < 1e-9, value
    return found


def both_given_some(r: int, w: int) -> Fraction:
    """Both of a pair lie below r, among the pairs in which one does."""
    return share(max(pair) < r for pair in combinations(range(r + w), 2) if min(pair) < r)


def bayes(a: int, b: int, p: int, q: int) -> Fraction:
    """Count marked things among 100 * 100, source by source."""
    sources = [0] * a + [1] * b
    marked = [source for source in sources for x in range(100) if x < (p, q)[source]]
    return share(source == 0 for source in marked)


def mean_cost(a: int, b: int, c: int) -> Fraction:
    """The long sum over the number of tries."""
    return exact(fsum(c * k * (1 - a / b) ** (k - 1) * a / b for k in range(1, 1500)))


@cache
def changes(m: int, w: int, last: int = -1) -> Fraction:
    """The mean number of changes still to come, thing by thing."""
    mean = Fraction(0)
    if m:
        mean += Fraction(m, m + w) * ((last == 1) + changes(m - 1, w, 0))
    if w:
        mean += Fraction(w, m + w) * ((last == 0) + changes(m, w - 1, 1))
    return mean


@cache
def draw_is_red(r: int, w: int, k: int) -> Fraction:
    """The probability that draw k is red, draw by draw."""
    if k == 1 or not r * w:
        return Fraction(r, r + w)
    return Fraction(r, r + w) * draw_is_red(r - 1, w, k - 1) + Fraction(w, r + w) * draw_is_red(r, w - 1, k - 1)


def starter_wins(a: int, b: int) -> Fraction:
    """The long sum over the rounds."""
    return exact(fsum((1 - 1 / a) ** k * (1 - 1 / b) ** k / a for k in range(1000)))


def wait_for_two(n: int, j: int) -> Fraction:
    """Follow the probabilities of none, one and two new kinds, draw by draw."""
    none, one, mean = 1.0, 0.0, []
    for _ in range(1200):
        mean.append(none + one)
        none, one = none * j / n, none * (n - j) / n + one * (j + 1) / n
    return exact(fsum(mean))


def first_place(r: int, w: int) -> Fraction:
    """The mean place of the first special thing, draw by draw."""
    mean, unseen = Fraction(0), Fraction(1)
    for drawn in range(w + 1):
        mean += unseen
        unseen *= Fraction(w - drawn, r + w - drawn)
    return mean


def walk(k: int, m: int) -> int:
    """Go on until hardly any walk is still under way, and add up the shares of those that are."""
    shares, steps = [0.0] * (k + m + 1), 0.0
    shares[k] = 1.0
    while (under_way := sum(shares[1:-1])) > 1e-9:
        steps += under_way
        inner = [0.0, *shares[1:-1], 0.0]
        shares = [0.0, *((inner[i - 1] + inner[i + 1]) / 2 for i in range(1, k + m)), 0.0]
    return round(steps)


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "at_least_one_success": lambda a, b, n: share(min(tries) < a for tries in product(range(b), repeat=n)),
    "one_of_each": lambda r, w: share((x < r) != (y < r) for x, y in permutations(range(r + w), 2)),
    "given_at_least_one": both_given_some,
    "bayes_two_sources": bayes,
    "first_success_at": lambda a, b, n: share(
        t[-1] < a and all(x >= a for x in t[:-1]) for t in product(range(b), repeat=n)
    ),
    "expected_cost_until_success": mean_cost,
    "expected_changes": changes,
    "any_draw_is_like_the_first": draw_is_red,
    "exactly_so_many_heads": lambda n, k: share(sum(tosses) == k for tosses in product((0, 1), repeat=n)),
    "largest_of_several": lambda s, n, m: share(max(rolls) == m for rolls in product(range(1, s + 1), repeat=n)),
    "taking_turns": starter_wins,
    "two_new_kinds": wait_for_two,
    "first_special_position": first_place,
    "some_match": lambda n, k: share(len(set(picks)) < k for picks in product(range(n), repeat=k)),
    "fair_game_length": walk,
}
