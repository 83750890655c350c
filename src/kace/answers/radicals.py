"""Roots of integers: what comes out whole, and which primes stay under the root."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

MAX_RADICAND_BITS = 256
SIEVE = 100_000
"""Radicands are factored by the primes below this, so a leftover below its square is prime."""


class NoExactValue(ArithmeticError):
    """What was asked has no exact value here: outside the numbers above, too big, or undefined."""


@lru_cache(maxsize=4_096)
def root_of_integer(value: int, degree: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """A root as a whole part and the primes left under it with their powers."""
    if value == 0:
        return 0, ()
    whole, primes = 1, []
    if value.bit_length() <= MAX_RADICAND_BITS:
        for prime in _primes():
            if prime * prime > value:
                break
            power = 0
            while value % prime == 0:
                value, power = value // prime, power + 1
            whole *= prime ** (power // degree)
            if power % degree:
                primes.append((prime, power % degree))
    exact = integer_root(value, degree)
    if exact**degree == value:
        return whole * exact, tuple(primes)
    if value >= SIEVE * SIEVE:
        raise NoExactValue("a radicand that is too hard to factor")
    return whole, (*primes, (value, 1))


def integer_root(value: int, degree: int) -> int:
    """The largest integer whose power does not exceed `value`."""
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**degree <= value:
            low = middle
        else:
            high = middle - 1
    return low


@lru_cache(maxsize=1)
def _primes() -> tuple[int, ...]:
    sieve = bytearray([1]) * SIEVE
    sieve[:2] = b"\0\0"
    for n in range(2, isqrt(SIEVE) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, SIEVE, n)))
    return tuple(n for n in range(SIEVE) if sieve[n])
