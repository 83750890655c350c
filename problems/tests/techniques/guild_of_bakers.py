"""Brute-force checks of the guild_of_bakers families."""

from collections.abc import Callable
from fractions import Fraction


def ovenings(n: int, c: int) -> int:
    """Bake until nothing is left."""
    fires = 0
    while n > 0:
        n, fires = n - (c - 2), fires + 1
    return fires


def ferment(s: int, d: int) -> int:
    """The dough after some days, from the day before."""
    return s if d == 0 else (before := ferment(s, d - 1)) + before - 1


def ambry(t: int, n: int) -> int:
    """Deal out one by one, the last place being the poor box."""
    shares = [0] * (n + 1)
    for place in range(t):
        shares[place % (n + 1)] += 1
    assert len(set(shares)) == 1
    return shares[0]


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "cossels_of_loaves": lambda a, p: sum(p for _ in range(a) for _ in range(16)),
    "weight_by_thrum": lambda k, d: sum(Fraction(7 * d, 8) for _ in range(k)),
    "sallow_price": lambda n, p, d: sum(p - sum(3 for _ in range(d)) for _ in range(n)),
    "tollen_of_apprentices": lambda k, y: sum(5 + sum(2 for _ in range(y)) for _ in range(k)),
    "number_of_ovenings": ovenings,
    "kept_in_gimmel": ferment,
    "quern_for_short_weight": lambda n, f: sum(f for _ in range(n) for _ in range(f)),
    "parted_by_ambry": ambry,
}
