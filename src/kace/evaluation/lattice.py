"""The distribution of a sum of independent whole numbers, exact to rounding at any size and without a random draw.

A sum on a lattice has a characteristic function that is the product of its terms', and a finite Fourier sum turns that
back into probabilities. Resampling draws from just such sums, so this is what it would tend to with ever more draws.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_TINY = 42.0
"""What is below exp(-42), about 6e-19, is lost in rounding anyway."""


class Terms(NamedTuple):
    """Terms of a sum that are alike."""

    number: int
    law: Mapping[int, float]
    """The probability of every value a term takes."""

    @property
    def mean(self) -> float:
        """Of one term."""
        return math.fsum(value * share for value, share in self.law.items())

    @property
    def variance(self) -> float:
        """Of one term."""
        mean = self.mean
        return math.fsum((value - mean) ** 2 * share for value, share in self.law.items())


@dataclass(frozen=True, slots=True)
class LatticeSum:
    """A sum of independent terms; whatever lies outside `first` to `last` has no weight that a float could hold."""

    first: int
    last: int
    waves: tuple[tuple[float, complex], ...]

    @classmethod
    def of(cls, terms: Sequence[Terms]) -> LatticeSum:
        """The distribution of a sum."""
        first, last = support(terms)
        period = last - first + 1
        waves = []
        for k in range(1, period // 2 + 1):
            angle = 2 * math.pi * k / period
            height = _characteristic(terms, angle, first)
            if height:
                both = 1 if 2 * k == period else 2  # the conjugate frequency gives the same real part
                waves.append((angle, both * height / (1 - cmath.exp(-1j * angle))))
        return cls(first, last, tuple(waves))

    def at_most(self, value: int) -> float:
        """The probability that the sum is at most `value`."""
        if value >= self.last:
            return 1.0
        steps = value - self.first + 1
        if steps <= 0:
            return 0.0
        rest = math.fsum((height * (1 - cmath.exp(-1j * angle * steps))).real for angle, height in self.waves)
        return min(1.0, max(0.0, (steps + rest) / (self.last - self.first + 1)))

    def quantile(self, share: float) -> int:
        """The least value that the sum stays at or below with at least this probability."""
        low, high = self.first, self.last
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.at_most(middle) >= share else (middle + 1, high)
        return low


def support(terms: Sequence[Terms]) -> tuple[int, int]:
    """Where the sum can be: all of it while that is small, else where all but exp(-42) of it lies (Bernstein)."""
    least = sum(number * min(law) for number, law in terms)
    most = sum(number * max(law) for number, law in terms)
    mean = math.fsum(term.number * term.mean for term in terms)
    variance = math.fsum(term.number * term.variance for term in terms)
    reach = max((max(abs(value - term.mean) for value in term.law) for term in terms), default=0.0)
    slack = reach * _TINY / 3
    far = slack + math.sqrt(slack * slack + 2 * _TINY * variance)
    return max(least, math.floor(mean - far)), min(most, math.ceil(mean + far))


def _characteristic(terms: Sequence[Terms], angle: float, first: int) -> complex:
    """E exp(i angle (sum - first)), or 0 where it is too small to count."""
    size, turn = 0.0, -first * angle
    for number, law in terms:
        one = sum(share * cmath.exp(1j * angle * value) for value, share in law.items())
        if not one:
            return 0j
        size += number * math.log(abs(one))
        turn += number * cmath.phase(one)
        if size < -_TINY:
            return 0j
    return cmath.rect(math.exp(size), turn)
