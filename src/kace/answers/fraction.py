"""`Fraction` for programs in the sandbox, whose interpreter has none. Read there as text; never imported by kace.

The interpreter knows no properties, no `__lt__` and no `__bool__` of classes: compare by `float(x)`.
"""

from __future__ import annotations

import math
from typing import Any


class Fraction:
    """An exact ratio of integers, in lowest terms."""

    def __init__(self, above: Any = 0, below: Any = 1) -> None:
        if isinstance(above, str):
            parts = above.strip().split("/")
            places = len(parts[0]) - parts[0].find(".") - 1 if "." in parts[0] else 0
            above = int(parts[0].replace(".", ""))
            below = 10**places * int(parts[1] if len(parts) > 1 else 1)
        (a, b), (c, d) = _ratio(above), _ratio(below)
        top = a * d
        bottom = b * c
        if bottom == 0:
            raise ZeroDivisionError("Fraction(" + str(top) + ", 0)")
        shared = math.gcd(top, bottom) * (1 if bottom > 0 else -1)
        self.numerator = top // shared
        self.denominator = bottom // shared

    def __add__(self, other: Any) -> Any:
        if isinstance(other, float | complex):
            return float(self) + other
        a, b = _ratio(other)
        return Fraction(self.numerator * b + a * self.denominator, self.denominator * b)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float | complex):
            return float(self) * other
        a, b = _ratio(other)
        return Fraction(self.numerator * a, self.denominator * b)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, float | complex):
            return float(self) / other
        a, b = _ratio(other)
        return Fraction(self.numerator * b, self.denominator * a)

    def __pow__(self, power: Any) -> Any:
        power = Fraction(power)
        if power.denominator != 1:
            return float(self) ** float(power)
        n = abs(power.numerator)
        top = self.numerator**n
        bottom = self.denominator**n
        return Fraction(top, bottom) if power.numerator >= 0 else Fraction(bottom, top)

    def __neg__(self) -> Any:
        return Fraction(-self.numerator, self.denominator)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return Fraction(abs(self.numerator), self.denominator)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __rtruediv__(self, other: Any) -> Any:
        return (
            other / float(self)
            if isinstance(other, float | complex)
            else Fraction(other) / self
        )

    def __rpow__(self, other: Any) -> Any:
        return (
            Fraction(other) ** self
            if self.denominator == 1
            else float(other) ** float(self)
        )

    def __floordiv__(self, other: Any) -> Any:
        return math.floor(self / other)

    def __rfloordiv__(self, other: Any) -> Any:
        return math.floor(other / self)

    def __mod__(self, other: Any) -> Any:
        return self - math.floor(self / other) * other

    def __rmod__(self, other: Any) -> Any:
        return other - math.floor(other / self) * self

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, int):
            return self.denominator == 1 and self.numerator == other
        if isinstance(other, float):
            return float(self) == other
        return isinstance(other, Fraction) and (
            self.numerator,
            self.denominator,
        ) == _ratio(other)

    def __hash__(self) -> int:
        return (
            hash(self.numerator)
            if self.denominator == 1
            else hash((self.numerator, self.denominator))
        )

    def __floor__(self) -> int:
        return self.numerator // self.denominator

    def __ceil__(self) -> int:
        return -(-self.numerator // self.denominator)

    def __trunc__(self) -> int:
        return (
            self.numerator // self.denominator
            if self.numerator >= 0
            else -(-self.numerator // self.denominator)
        )

    def __int__(self) -> int:
        return self.__trunc__()

    def __float__(self) -> float:
        return self.numerator / self.denominator

    def __round__(self, digits: int = 0) -> Any:
        scale = Fraction(10) ** digits
        scaled = self * scale
        whole = scaled.numerator // scaled.denominator
        over = 2 * (scaled.numerator - whole * scaled.denominator) - scaled.denominator
        whole += 1 if over > 0 or (over == 0 and whole % 2) else 0
        return whole / scale if digits else whole

    def __str__(self) -> str:
        return (
            str(self.numerator)
            if self.denominator == 1
            else str(self.numerator) + "/" + str(self.denominator)
        )

    def __repr__(self) -> str:
        return str(self)

    def limit_denominator(self, most: int = 1_000_000) -> Any:
        """The nearest fraction whose denominator is at most this."""
        p0 = 0
        q0 = 1
        p1 = 1
        q1 = 0
        n = self.numerator
        d = self.denominator
        if d <= most:
            return self
        while q0 + n // d * q1 <= most:
            a = n // d
            p0, q0, p1, q1 = p1, q1, p0 + a * p1, q0 + a * q1
            n, d = d, n - a * d
        k = (most - q0) // q1
        near = Fraction(p1, q1)
        other = Fraction(p0 + k * p1, q0 + k * q1)
        return near if float(abs(near - self)) <= float(abs(other - self)) else other


def _ratio(x: Any) -> tuple[int, int]:
    """What a number is, as two integers."""
    if isinstance(x, Fraction):
        return x.numerator, x.denominator
    if isinstance(x, int):
        return int(x), 1
    if isinstance(x, float):
        below = 1
        while x != int(x):
            x = x * 2
            below = below * 2
        return int(x), below
    raise TypeError("a Fraction is made of integers, floats, Fractions or text")


class _Module:
    """What `import fractions` stands for."""


fractions = _Module()
fractions.Fraction = Fraction  # type: ignore[attr-defined]
