"""Brute-force checks of the number properties families."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import gcd, isqrt, lcm


def only(found: list[int]) -> int:
    """The single solution."""
    assert len(found) == 1, found
    return found[0]


def is_prime(n: int) -> bool:
    """Trial division."""
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


def first(good: Callable[[int], bool]) -> int:
    """The least positive number that is good."""
    n = 1
    while not good(n):
        n += 1
    return n


@cache
def open_doors(most: int) -> list[int]:
    """The doors that are open after everybody has turned the multiples of their own number."""
    is_open = [False] * (most + 1)
    for k in range(1, most + 1):
        for door in range(k, most + 1, k):
            is_open[door] ^= True
    return [door for door, state in enumerate(is_open) if state]


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "divisor_count": lambda n: sum(n % d == 0 for d in range(1, n + 1)),
    "consecutive_sums": lambda n: sum(sum(range(p, q + 1)) == n for p in range(1, n) for q in range(p + 1, p + 40)),
    "divisor_sum": lambda n: sum(d for d in range(1, n + 1) if n % d == 0),
    "square_multiplier": lambda n: first(lambda k: isqrt(n * k) ** 2 == n * k),
    "common_divisor_count": lambda a, b: sum(a % d == b % d == 0 for d in range(1, a + 1)),
    "same_remainder_divisor": lambda a, b, c: max(d for d in range(1, c + 1) if a % d == b % d == c % d),
    "partner_from_gcd_and_lcm": lambda a, g, m: only([b for b in range(1, m + 1) if gcd(a, b) == g and lcm(a, b) == m]),
    "largest_square_tiles": lambda a, b: min(a * b // d**2 for d in range(1, a + 1) if a % d == b % d == 0),
    "coprime_count": lambda n: sum(gcd(k, n) == 1 for k in range(1, n + 1)),
    "missing_digit_for_eleven": lambda a, b, c: only([x for x in range(10) if int(f"{a}{b}{x}{c}") % 11 == 0]),
    "page_digits": lambda n: len("".join(map(str, range(1, n + 1)))),
    "digits_below_power_of_ten": lambda n, k: sum(map(int, str(10**n - k))),
    "primes_with_odd_sum": lambda n: only(
        [p * (n - p) for p in range(2, n // 2 + 1) if is_prime(p) and is_prime(n - p)]
    ),
    "reversed_digits": lambda m, s, d: only(
        [n for n in range(100, 1000) if (str(n)[1], int(str(n)[0]) + n % 10, int(str(n)[::-1]) - n) == (str(m), s, d)]
    ),
    "unit_fraction_pairs": lambda n: sum(n * x % (x - n) == 0 for x in range(n + 1, n * n + n + 1)),
    "odd_number_of_divisors": lambda a, b: sum(door >= a for door in open_doors(b)),
}
