"""Brute-force checks of the lighthouse_log families."""

from collections.abc import Callable
from fractions import Fraction


def turned(a: int, b: int) -> int:
    """Turn from the first bearing degree by degree."""
    for _ in range(b):
        a = 0 if a == 359 else a + 1
    return a


def dealt(n: int, k: int) -> int:
    """Deal out in rounds of five: one to the Light; then what is left, one by one."""
    left = sum(place % 5 != 0 for place in range(n))
    shares = [0] * k
    for place in range(left):
        shares[place % k] += 1
    assert len(set(shares)) == 1
    return shares[0]


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "drells_of_oil": lambda a, b: sum([14] * a + [1] * b),
    "rung_by_the_swale": lambda f, m: sum(minute % 4 == 0 for _ in range(f) for minute in range(m + 1)),
    "kelter_of_ships": lambda a, b: sum([1] * a + [3] * b),
    "paid_on_hadder": lambda n, r: sum(r if night <= 6 else r + r for night in range(1, n + 1)),
    "brailed_height": lambda h, s: next(x for x in range(h) if 2 * (h - x) == s),
    "plimmer_of_bearings": turned,
    "parted_by_murrish": dealt,
    "flashes_in_tholes": lambda g, r: sum(len(range(group)) for _ in range(r) for group in range(1, g + 1)),
}
