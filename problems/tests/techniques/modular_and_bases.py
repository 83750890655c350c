"""Brute-force checks of the modular arithmetic and bases families."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count, islice, product


def numerals(b: int) -> list[str]:
    """All numerals of up to four digits in base b, in counting order and without zeros in front."""
    return ["".join(map(str, digits)).lstrip("0") or "0" for digits in product(range(b), repeat=4)]


def backwards(h: int, n: int) -> int:
    """Turn the clock back hour by hour."""
    for _ in range(n):
        h = 23 if h == 0 else h - 1
    return h


def fewest(n: int, b: int) -> int:
    """The least number of coins, found for every amount up to n."""
    least = [0]
    for amount in range(1, n + 1):
        least.append(1 + min(least[amount - coin] for coin in (1, b, b**2, b**3) if coin <= amount))
    return least[n]


def combination(m: int, r: int, k: int, c: int) -> int:
    """The one remainder that all numbers with remainder r give."""
    (found,) = {(k * n + c) % m for n in range(r, 50 * m, m)}
    return found


def decimals(a: int, q: int) -> list[int]:
    """Long division, digit by digit."""
    digits = []
    for _ in range(120):
        digits.append(10 * a // q)
        a = 10 * a % q
    return digits


def fibonacci(n: int) -> int:
    """The number itself, by plain addition."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


CHECKS: dict[str, Callable[..., int | Fraction]] = {
    "power_remainder": lambda a, n, m: a**n % m,
    "units_digit_of_power": lambda a, n: int(str(a**n)[-1]),
    "tens_digit_of_power": lambda a, n: int(str(a**n)[-2]),
    "clock_backwards": backwards,
    "to_base": lambda n, b: int(numerals(b)[n]),
    "from_base": lambda t, b: numerals(b).index(str(t)),
    "fewest_powers": fewest,
    "find_base": lambda t, n: next(x for x in range(max(map(int, str(t))) + 1, 40) if int(str(t), min(x, 36)) == n),
    "two_remainders": lambda a, r, b, s: next(x for x in count(1) if x % a == r and x % b == s),
    "circle_jumps": lambda a, m, c: next(k for k in count(1) if a * k % m == c),
    "common_shortfall": lambda a, b, c, k: next(n for n in count(1) if all((n + k) % d == 0 for d in (a, b, c))),
    "remainder_of_combination": combination,
    "decimal_cycle_digit": lambda a, q, k: next(islice(decimals(a, q), k - 1, None)),
    "base_addition": lambda x, y, b: int(numerals(b)[numerals(b).index(str(x)) + numerals(b).index(str(y))]),
    "fibonacci_remainder": lambda n, m: fibonacci(n) % m,
}
