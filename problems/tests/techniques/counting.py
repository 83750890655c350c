"""Brute-force checks of the counting families."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product


@cache
def blocked(left: tuple[int, int, int], last: int) -> int:
    """Orders of what is left of two groups that must not be broken up and of the others, place by place."""
    if not sum(left):
        return 1
    if last < 2 and left[last]:
        return left[last] * blocked(less(left, last), last)
    return sum(left[kind] * blocked(less(left, kind), kind) for kind in range(3) if left[kind])


def less(left: tuple[int, int, int], kind: int) -> tuple[int, int, int]:
    """One thing of a kind is used up."""
    a, b, c = (amount - (place == kind) for place, amount in enumerate(left))
    return a, b, c


@cache
def shares(n: int, k: int, least: int) -> int:
    """Ways to share out n, taker by taker."""
    if k == 0:
        return int(n == 0)
    return sum(shares(n - own, k - 1, least) for own in range(least, n + 1))


@cache
def words(*left: int) -> int:
    """Orders of equal letters, letter by letter."""
    if not sum(left):
        return 1
    return sum(words(*(m - (i == j) for j, m in enumerate(left))) for i, m in enumerate(left) if m)


@cache
def climbs(n: int, m: int) -> int:
    """Ways by the first stride."""
    return 1 if n == 0 else sum(climbs(n - step, m) for step in (1, m) if step <= n)


def one_of_two(n: int, a: int, b: int, z: int) -> int:
    """Lay the second group over the first until the number outside is right."""
    for start in range(n):
        first, second = set(range(a)), set(range(start, start + b))
        if start + b <= n and n - len(first | second) == z:
            return len(first ^ second)
    raise AssertionError


def apart(m: int, k: int) -> int:
    """Choices of places with no neighbours."""
    return sum(all(y - x > 1 for x, y in pairwise(p)) for p in combinations(range(m + k), k))


def mixed(m: int, w: int, k: int) -> int:
    """Selections with something from both sides of m."""
    return sum(min(chosen) < m <= max(chosen) for chosen in combinations(range(m + w), k))


def marked(m: int, s: int, k: int) -> int:
    """Sequences in which a value below s occurs."""
    return sum(min(values) < s for values in product(range(m), repeat=k))


def rectangles(a: int, b: int) -> int:
    """Rectangles by their opposite corners."""
    return sum(x < u and y < v for x, u in product(range(a + 1), repeat=2) for y, v in product(range(b + 1), repeat=2))


@cache
def words_using(n: int, unused: int, used: int, k: int) -> int:
    """Words of n more letters, letter by letter, that have used k letters in the end."""
    if n == 0:
        return int(used == k)
    again = used * words_using(n - 1, unused, used, k) if used else 0
    return again + (unused * words_using(n - 1, unused - 1, used + 1, k) if unused else 0)


def pieces(n: int, k: int) -> int:
    """Draw the lines y = sx + c one by one: each cuts one piece more than it has crossings with the earlier ones."""
    lines = [(0, 3**i) for i in range(k)] + [(i, 7**i) for i in range(1, n - k + 1)]
    found: set[tuple[Fraction, Fraction]] = set()
    count = 1
    for i, (s, c) in enumerate(lines):
        xs = [Fraction(c - d, t - s) for t, d in lines[:i] if t != s]
        points = {(x, s * x + c) for x in xs}
        assert len(points) == len(xs) and not points & found
        found |= points
        count += 1 + len(points)
    return count


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "two_blocks": lambda a, b, c: blocked((a, b, c), 2),
    "none_adjacent": apart,
    "stars_and_bars": lambda n, k: shares(n, k, 0),
    "shares_with_minimum": shares,
    "divisible_by_either": lambda n, a, b: sum(x % a == 0 or x % b == 0 for x in range(1, n + 1)),
    "exactly_one_of_two": one_of_two,
    "paths_via_point": lambda a, b, c, d: words(a, b) * words(c, d),
    "both_groups_represented": mixed,
    "chosen_for_a_circle": lambda n, r: sum(order[0] == min(order) for order in permutations(range(n), r)),
    "repeated_letters": words,
    "at_least_one_special": marked,
    "derangement_and_choice": lambda a, c: (
        c * sum(all(x != i for i, x in enumerate(order)) for order in permutations(range(a)))
    ),
    "steps_of_one_or_more": climbs,
    "rectangles_in_grid": rectangles,
    "exactly_so_many_used": lambda n, m, k: words_using(n, m, 0, k),
    "pieces_by_lines": pieces,
}
