"""Brute-force checks of the archive_call_numbers families."""

from collections.abc import Callable
from fractions import Fraction


def rung(n: int) -> int:
    """Put up box after box."""
    number, room = 1, 12
    for _ in range(n - 1):
        room -= 1
        if room == 0:
            number, room = number + 1, 12
    return number


def twin(n: int) -> int:
    """Take the digits from the end."""
    result = 0
    while n:
        n, digit = divmod(n, 10)
        result = 10 * result + digit
    return result


def sarn(k: int, s: int) -> int:
    """Fill the places in order."""
    places = [name for volume in range(1, k + 1) for name in (volume, 0, 0)]
    return s + places.index(k)


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "tail_of_call_number": lambda a, b: sum([a, a, a, b]),
    "rung_of_box": rung,
    "end_of_seal": lambda y, g: y + sum(15 for _ in range(g)),
    "girth_of_volume": lambda f, p: sum([2] * f + [1] * p + [4]),
    "number_of_twin": twin,
    "end_of_lease": lambda d, v: d + sum(10 if volume == 0 else 3 for volume in range(v)),
    "items_in_blind_run": lambda a, b: sum(not str(number).endswith("0") for number in range(a, b + 1)),
    "place_in_sarn": sarn,
}
