"""Brute-force checks of the data_and_sets families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from statistics import median


def middle(n: int, k: int, a: int, b: int, c: int) -> int:
    """Give the middle one each value and fill up both sides to the right totals."""
    assert n == 2 * k - 1
    return next(x for x in range(200) if (k * a - x) + x + (k * b - x) == n * c)


def largest(n: int, m: int, d: int) -> int:
    """Try all lists; above the median only values near it can leave much for the largest."""
    half, best = n // 2, 0
    for below, above in product(combinations(range(1, d), half), combinations(range(d + 1, d + half + 3), half - 1)):
        top = n * m - sum(below) - sum(above) - d
        if top > max(above):
            best = max(best, top)
    return best


def least(n: int, a: int, b: int, c: int) -> int:
    """Deal out the misses one after the other to different members."""
    misses = [0] * n
    for place in range(3 * n - a - b - c):
        misses[place % n] += 1
    return misses.count(0)


def none(n: int, a: int, b: int, c: int, x: int, y: int, z: int, t: int) -> int:
    """Build the regions and count what is outside."""
    regions = (a - x - z + t, b - x - y + t, c - y - z + t, x - t, y - t, z - t, t)
    assert min(regions) >= 0
    return len(range(sum(regions), n))


def two(n: int, a: int, b: int, c: int, t: int) -> int:
    """Try all numbers of members in exactly two sets."""
    return next(p for p in range(n) if (one := n - t - p) >= 0 and one + 2 * p + 3 * t == a + b + c)


def tournament(n: int, k: int, w: int) -> int:
    """Play until one is left, who loses as often as told."""
    losses, games = [0] * n, 0
    while (alive := [i for i in range(n) if losses[i] < k])[1:]:
        loser = 0 if losses[0] < w else alive[-1 - games % (len(alive) - 1)]
        losses[loser] += 1
        games += 1
    assert losses[0] == w
    return games


def draws(n: int, t: int) -> int:
    """Try all numbers of draws."""
    games = len(list(combinations(range(n), 2)))
    return next(d for d in range(games + 1) if 2 * d + 3 * (games - d) == t)


def certain(stock: tuple[int, ...], fails: Callable[[tuple[int, ...]], bool]) -> int:
    """One more than the largest draw that fails."""
    return 1 + max(sum(drawn) for drawn in product(*(range(x + 1) for x in stock)) if fails(drawn))


def medians(*known: int) -> int:
    """Try many pairs of unknowns."""
    span = range(min(known) - 2, max(known) + 3)
    return len({median((*known, x, y)) for x, y in product(span, repeat=2)})


def first_kind(n: int, a: int, b: int) -> int:
    """The numbers of the first kind that meet both conditions."""
    (only,) = (x for x in range(n + 1) if n - x < a and x < b)
    return only


def joined(a: int, p: int, b: int, q: int) -> int:
    """Join the one with most free ends to those that come next, until no end is free."""
    free, links = [p] * a + [q] * b, 0
    while any(free := sorted(free, reverse=True)):
        most, *others = free
        assert len(others) >= most and all(others[:most])
        links += most
        free = [ends - (place < most) for place, ends in enumerate(others)]
    return links


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "value_that_moved_the_mean": lambda n, m, e: next(x for x in range(200) if sum([m] * n + [x]) == e * (n + 1)),
    "mean_of_two_groups": lambda a, x, b, y: Fraction(sum([x] * a + [y] * b), len([x] * a + [y] * b)),
    "middle_of_overlapping_means": middle,
    "largest_for_mean_and_median": largest,
    "least_common_to_three": least,
    "none_of_three": none,
    "exactly_two_of_three": two,
    "games_until_champion": tournament,
    "drawn_games": draws,
    "guarantee_of_every_kind": lambda *stock: certain(stock, lambda drawn: min(drawn) == 0),
    "guarantee_with_short_stock": lambda *stock: certain(stock[:-1], lambda drawn: max(drawn) < stock[-1]),
    "possible_medians": medians,
    "any_group_contains": first_kind,
    "pairs_from_both_sides": lambda n, a, b: next(x for x in range(1, n) if x * a == (n - x) * b),
    "links_from_degrees": joined,
    "shortest_first": lambda *times: min(sum(map(sum, (p[: i + 1] for i in range(4)))) for p in permutations(times)),
}
