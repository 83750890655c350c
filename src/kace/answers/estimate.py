r"""Sixty digits of an expression, to tell at once that two answers differ. Never a reason to call them the same.

Unknowns are given fixed arbitrary values, so that expressions in letters can be told apart as well. What has no
estimate here (logarithms to an unsaid base, complex numbers, sets) has none: None, and algebra has to decide.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from kace.answers import exact
from kace.answers.calculator import calculate
from kace.answers.exact import PI_NAME, Number
from kace.answers.radicals import NoExactValue

DIGITS = 60
MARGIN = Decimal(10) ** -20
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
MAX_ARGUMENT = 1_000
_CONTEXT = Context(prec=DIGITS, Emax=99_999, Emin=-99_999)


def apart(left: str, right: str) -> bool:
    """Whether two normal forms certainly have different values."""
    first, second = estimate(left), estimate(right)
    if first is None or second is None:
        return False
    if first.is_infinite() or second.is_infinite():
        return first != second
    return abs(first - second) > MARGIN * max(Decimal(1), abs(first), abs(second))


@lru_cache(maxsize=4_096)
def estimate(form: str) -> Decimal | None:
    """The value of a normal form to about sixty digits, where it has one."""
    try:
        with localcontext(_CONTEXT):
            return calculate(form, Estimates()).value
    except ArithmeticError:
        return None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A real number, rounded."""

    value: Decimal

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.value + other.value)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value)

    def __neg__(self) -> Estimate:
        return Estimate(-self.value)

    def __mul__(self, other: Estimate) -> Estimate:
        return Estimate(self.value * other.value)

    def __truediv__(self, other: Estimate) -> Estimate:
        if abs(other.value) < MARGIN:
            raise NoExactValue("close to a division by zero")
        return Estimate(self.value / other.value)

    def power(self, exponent: Estimate) -> Estimate:
        """A power; of a negative number only a whole one."""
        whole = exponent.value == exponent.value.to_integral_value()
        if (not whole and self.value <= 0) or abs(self.value) < MARGIN:
            raise NoExactValue("a power that may not be real")
        return Estimate(self.value**exponent.value)

    def root(self, degree: int) -> Estimate:
        """The root of a positive number."""
        if self.value <= 0 or degree < 2:
            raise NoExactValue("a root that may not be real")
        return Estimate(self.value ** (Decimal(1) / degree))


class Estimates:
    """The arithmetic of `Estimate` for the calculator."""

    def of(self, value: Fraction) -> Estimate:
        """A rational number."""
        return Estimate(Decimal(value.numerator) / Decimal(value.denominator))

    def unknown(self, name: str) -> Estimate:
        """Pi, e, infinity, or some number between 1 and 2 that the name decides."""
        if name == PI_NAME:
            return Estimate(PI)
        if name == "e":
            return Estimate(Decimal(1).exp())
        if name == r"\infty":
            return Estimate(Decimal("Infinity"))
        if name == "i":
            raise NoExactValue("not real")
        return Estimate(1 + Decimal(zlib.crc32(name.encode()) % 99_991) / 99_991)

    def factorial(self, number: Estimate) -> Estimate:
        """A small factorial."""
        return self._exactly(exact.factorial(_whole(number)))

    def binomial(self, upper: Estimate, lower: Estimate) -> Estimate:
        """A small binomial coefficient."""
        return self._exactly(exact.binomial(_whole(upper), _whole(lower)))

    def function(self, name: str, argument: Estimate) -> Estimate:
        """A logarithm or a trigonometric function."""
        x = argument.value
        if name == r"\ln" and x > 0:
            return Estimate(x.ln())
        one, sine, cosine = Estimate(Decimal(1)), Estimate(_sine(x)), Estimate(_sine(x + PI / 2))
        match name:
            case r"\sin":
                return sine
            case r"\cos":
                return cosine
            case r"\tan":
                return sine / cosine
            case r"\cot":
                return cosine / sine
            case r"\sec":
                return one / cosine
            case r"\csc":
                return one / sine
        raise NoExactValue("no such function")

    def _exactly(self, number: Number) -> Estimate:
        value = number.rational
        if value is None:
            raise NoExactValue("not rational")
        return self.of(value)


def _whole(number: Estimate) -> Number:
    if number.value != number.value.to_integral_value() or abs(number.value) > exact.MAX_FACTORIAL:
        raise NoExactValue("not a small whole number")
    return Number.of(int(number.value))


def _sine(x: Decimal) -> Decimal:
    """The sine by its series, after full turns are taken off."""
    if abs(x) > MAX_ARGUMENT:
        raise NoExactValue("too many turns to be exact")
    x -= (x / (2 * PI)).to_integral_value() * 2 * PI
    term = total = x
    for n in range(2, 120, 2):
        term *= -x * x / (n * (n + 1))
        total += term
        if abs(term) < Decimal(10) ** -DIGITS:
            break
    return total
