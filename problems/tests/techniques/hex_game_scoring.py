"""Brute-force checks of the hex_game_scoring families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product


def lurch(p: int, n: int) -> int:
    """Capture by capture."""
    worth = 1
    for _ in range(n):
        p, worth = p + worth, worth + worth
    return p


def drouth(p: int, n: int) -> int:
    """Turn by turn."""
    for turn in range(1, n + 1):
        p -= turn % 3 == 0
    return p


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "spurs_of_stones": lambda k, n: k * len(list(permutations(range(n), 2))),
    "value_of_corral": lambda e, s: sum([4] * e + [-1] * s),
    "points_for_graft": lambda p, a, b: p + len(list(product(range(a), range(b)))),
    "stones_in_the_mire": lambda n, m: sum(-1 if stone < m else 1 for stone in range(n)),
    "margin_with_komar": lambda a, b: len(range(a, b + 7)),
    "lurch_of_captures": lurch,
    "pay_of_a_hub": lambda t, a, b: sum(t for side in range(6) if side >= a + b),
    "points_after_drouth": drouth,
}
