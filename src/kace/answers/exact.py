"""Exact values: numbers and polynomials over rationals, roots, `i` and pi, and the small structures made of them.

A number is a sum of terms `q * i^a * p1^e1 * p2^e2 ... * x^k ...`: `q` rational, `a` 0 or 1, `p` prime, `0 < e < 1`,
`x` an unknown with a whole power, or pi with a rational one. Such products are linearly independent over the rationals:
equal values compare equal. No floating point; every size is bounded, and what does not fit raises `NoExactValue`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

MAX_BITS = (
    8_192  # bits of all coefficients of a number together; its digits stay printable
)
MAX_TERMS = 32
MAX_EXPONENT = 1 << 31
MAX_ROOT = 12
MAX_FACTORIAL = 1_000
MAX_RADICAND_BITS = 256
SIEVE = 100_000  # radicands are factored by the primes below this, so a leftover below its square is prime

PI_NAME = r"\pi"
HALF = Fraction(1, 2)
Power = int | Fraction


class NoExactValue(ArithmeticError):
    """What was asked has no exact value here: outside the numbers above, too big, or undefined."""


@dataclass(frozen=True, slots=True, order=True)
class Monomial:
    """The irrational part of a term."""

    unknowns: tuple[tuple[str, Power], ...] = ()
    """Pi and the unknowns by name, with their powers, in order of the names."""
    imaginary: bool = False
    roots: tuple[tuple[int, Fraction], ...] = ()
    """Primes with their exponents, each strictly between 0 and 1, in order of the primes."""

    def times(self, other: Monomial) -> tuple[Fraction, Monomial]:
        """The product, as a rational factor and a monomial."""
        if self is ONE or other is ONE:
            return Fraction(1), other if self is ONE else self
        exponents = defaultdict(Fraction, self.roots)
        powers: defaultdict[str, Power] = defaultdict(int, self.unknowns)
        for prime, exponent in other.roots:
            exponents[prime] += exponent
        for name, power in other.unknowns:
            powers[name] += power
        factor, monomial = _monomial(
            exponents, powers, self.imaginary != other.imaginary
        )
        return (-factor if self.imaginary and other.imaginary else factor), monomial

    def inverse(self) -> tuple[Fraction, Monomial]:
        """One over it, as a rational factor and a monomial."""
        roots = {prime: -e for prime, e in self.roots}
        unknowns = {name: -power for name, power in self.unknowns}
        factor, monomial = _monomial(roots, unknowns, self.imaginary)
        return (-factor if self.imaginary else factor), monomial

    def latex(self) -> str:
        """How to write it; empty for 1."""
        higher = r"{}^{{\frac{{{}}}{{{}}}}}".format
        roots = (
            rf"\sqrt{{{p}}}" if e == HALF else higher(p, e.numerator, e.denominator)
            for p, e in self.roots
        )
        unknowns = (
            name if power == 1 else f"{name}^{{{power}}}"
            for name, power in self.unknowns
        )
        return r"\cdot ".join([*roots, *unknowns, *(["i"] if self.imaginary else [])])


ONE = Monomial()


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number, or polynomial, in its only form."""

    terms: tuple[
        tuple[Monomial, Fraction], ...
    ]  # in order of the monomials; no coefficient is zero

    @classmethod
    def of(cls, value: int | Fraction) -> Number:
        """A rational number."""
        return _number({ONE: Fraction(value)})

    @classmethod
    def letter(cls, name: str) -> Number:
        """The imaginary unit, or a number that is only known by name; `e` and infinity have no exact value."""
        if name in ("e", r"\infty"):
            raise NoExactValue("no number with an exact value")
        return Number(
            (
                (
                    Monomial(imaginary=True) if name == "i" else Monomial(((name, 1),)),
                    Fraction(1),
                ),
            )
        )

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, if it is one."""
        monomial, coefficient = self.terms[0] if self.terms else (ONE, Fraction(0))
        return coefficient if len(self.terms) < 2 and monomial == ONE else None

    @property
    def constant(self) -> bool:
        """Whether it has no unknown but pi."""
        return all(
            name == PI_NAME
            for monomial, _ in self.terms
            for name, _ in monomial.unknowns
        )

    def __add__(self, other: Number) -> Number:
        total = defaultdict(Fraction, self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] += coefficient
        return _number(total)

    def __neg__(self) -> Number:
        return Number(
            tuple((monomial, -coefficient) for monomial, coefficient in self.terms)
        )

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __mul__(self, other: Number) -> Number:
        total: defaultdict[Monomial, Fraction] = defaultdict(Fraction)
        for (left, a), (right, b) in product(self.terms, other.terms):
            factor, monomial = left.times(right)
            total[monomial] += a * b * factor
        return _number(total)

    def __truediv__(self, other: Number) -> Number:
        return self * other.inverse()

    divide = __truediv__

    def inverse(self) -> Number:
        """One over it; sums are cleared of square roots by their conjugates."""
        denominator = self
        result = Number.of(1)
        while len(denominator.terms) > 1:
            conjugate = denominator._conjugate()
            denominator = denominator * conjugate
            result = result * conjugate
        if not denominator.terms:
            raise NoExactValue("division by zero")
        monomial, coefficient = denominator.terms[0]
        factor, inverse = monomial.inverse()
        return result * _number({inverse: factor / coefficient})

    def _conjugate(self) -> Number:
        """The same sum with one of its square roots (or `i`) negated."""
        first = self.terms[0][0]
        second = self.terms[1][0]
        if any(monomial.unknowns != first.unknowns for monomial, _ in self.terms):
            raise NoExactValue("a sum with pi or unknowns in a denominator")
        if any(
            exponent != HALF
            for monomial, _ in self.terms
            for _, exponent in monomial.roots
        ):
            raise NoExactValue("a sum with higher roots in a denominator")
        if first.imaginary != second.imaginary:
            return Number(tuple((m, -c if m.imaginary else c) for m, c in self.terms))
        root = min(set(first.roots) ^ set(second.roots))
        return Number(tuple((m, -c if root in m.roots else c) for m, c in self.terms))

    def __pow__(self, exponent: int) -> Number:
        if abs(exponent) >= MAX_EXPONENT:
            raise NoExactValue("exponent too large")
        if exponent <= 0 and not self.terms:
            raise NoExactValue("0 to a power that is not positive")
        result = Number.of(1)
        base = self if exponent >= 0 else self.inverse()
        for place, bit in enumerate(reversed(f"{abs(exponent):b}")):
            base = base * base if place else base
            result = result * base if bit == "1" else result
        return result

    def root(self, degree: int) -> Number:
        """The real root of a rational times a power of pi; of a negative, the odd root or `i` times the square root."""
        value, pi = self._rational_and_pi()
        if not 2 <= degree <= MAX_ROOT:
            raise NoExactValue("a root of too high a degree")
        if value < 0 and degree != 2 and degree % 2 == 0:
            raise NoExactValue("an even root of a negative number")
        exponents: dict[int, Fraction] = {}
        factor = Fraction(1)
        for integer, sign in ((abs(value.numerator), 1), (value.denominator, -1)):
            whole, primes = root_of_integer(integer, degree)
            factor = factor * whole if sign == 1 else factor / whole
            for prime, power in primes:
                exponents[prime] = exponents.get(prime, Fraction(0)) + Fraction(
                    sign * power, degree
                )
        if value < 0 and degree % 2:
            factor = -factor
        carry, monomial = _monomial(
            exponents, {PI_NAME: pi / degree}, value < 0 and degree == 2
        )
        return _number({monomial: factor * carry})

    def _rational_and_pi(self) -> tuple[Fraction, Fraction]:
        """The factor and the power of pi of a number that is no more than that."""
        monomial, coefficient = self.terms[0] if self.terms else (ONE, Fraction(0))
        if (
            len(self.terms) > 1
            or monomial.imaginary
            or monomial.roots
            or not self.constant
        ):
            raise NoExactValue("a root of what is not rational")
        return coefficient, Fraction(sum(power for _, power in monomial.unknowns))

    def power(self, exponent: Number) -> Number:
        """A rational power. A broken power of a negative number has several readings and no value."""
        rational = exponent.rational
        if rational is None:
            raise NoExactValue("an exponent that is not rational")
        if rational.denominator == 1:
            return self**rational.numerator
        if self._rational_and_pi()[0] < 0:
            raise NoExactValue("a broken power of a negative number")
        return self.root(rational.denominator) ** rational.numerator

    def factorial(self) -> Number:
        """A small factorial."""
        return Number.of(math.factorial(_small(self)))

    def choose(self, lower: Number) -> Number:
        """A small binomial coefficient."""
        return Number.of(math.comb(_small(self), _small(lower)))

    def function(self, name: str) -> Number:
        """Functions are left to algebra."""
        raise NoExactValue(f"a value of {name}")

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            text += "-" if coefficient < 0 else "+" if text else ""
            above = abs(coefficient.numerator)
            below = coefficient.denominator
            unit = monomial.latex()
            number = str(above) if below == 1 else rf"\frac{{{above}}}{{{below}}}"
            text += (
                number
                if not unit
                else unit
                if number == "1"
                else rf"{number}\cdot {unit}"
            )
        return text or "0"


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words (`no solution`, a choice letter) or an infinite end of an interval."""

    text: str

    def __str__(self) -> str:
        return (
            self.text
            if self.text.startswith(("\\", "-\\"))
            else rf"\text{{{self.text}}}"
        )


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values: ordered (`()`, `[]`, `(]`, `[)`, `matrix`, `row`, `union`), a set (`{}`), or counted (`,`).

    The last two are sorted.
    """

    delimiters: str
    items: tuple[Value, ...]

    @classmethod
    def of(cls, delimiters: str, items: Iterable[Value]) -> Collection:
        """A collection in its only form."""
        if delimiters in ("{}", ","):
            items = sorted(set(items) if delimiters == "{}" else items, key=str)
        return cls(delimiters, tuple(items))

    def __str__(self) -> str:
        before, comma, after = _WRITTEN.get(self.delimiters) or (
            self.delimiters[0],
            ", ",
            self.delimiters[1],
        )
        return before + comma.join(map(str, self.items)) + after


Value = Number | Word | Collection

_WRITTEN = {
    "matrix": (r"\begin{pmatrix}", r"\\", r"\end{pmatrix}"),
    "union": ("", r"\cup ", ""),
    "row": ("", "&", ""),
    ",": ("", ", ", ""),
    "{}": (r"\{", ", ", r"\}"),
}
INFINITY = Word(r"\infty")
MINUS_INFINITY = Word(r"-\infty")


def _small(number: Number) -> int:
    value = number.rational
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        raise NoExactValue("not a small natural number")
    return value.numerator


def _number(terms: Mapping[Monomial, Fraction]) -> Number:
    kept = tuple(sorted((m, c) for m, c in terms.items() if c))
    bits = sum(c.numerator.bit_length() + c.denominator.bit_length() for _, c in kept)
    if len(kept) > MAX_TERMS or bits > MAX_BITS:
        raise NoExactValue("too big")
    return Number(kept)


def _monomial(
    exponents: Mapping[int, Fraction], powers: Mapping[str, Power], i: bool
) -> tuple[Fraction, Monomial]:
    """Carry whole powers of primes into a rational factor."""
    factor = math.prod(
        (Fraction(prime) ** math.floor(e) for prime, e in exponents.items()),
        start=Fraction(1),
    )
    roots = tuple(sorted((prime, e % 1) for prime, e in exponents.items() if e % 1))
    plain: Iterable[tuple[str, Power]]
    plain = (
        (name, power.numerator if power.denominator == 1 else power)
        for name, power in powers.items()
        if power
    )
    unknowns = tuple(sorted(plain))
    if any(abs(Fraction(power)) > MAX_BITS for _, power in unknowns):
        raise NoExactValue("too high a power")
    return factor, Monomial(unknowns, i, roots) if unknowns or i or roots else ONE


@lru_cache(maxsize=4_096)
def root_of_integer(value: int, degree: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """A root as a whole part and the primes left under it with their powers."""
    if value == 0:
        return 0, ()
    whole = 1
    primes = []
    if value.bit_length() <= MAX_RADICAND_BITS:
        for prime in _primes():
            if prime * prime > value:
                break
            power = 0
            while value % prime == 0:
                value = value // prime
                power = power + 1
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
    root = 0
    for bit in reversed(range(value.bit_length() // degree + 1)):
        if (root | 1 << bit) ** degree <= value:
            root |= 1 << bit
    return root


@lru_cache(maxsize=1)
def _primes() -> tuple[int, ...]:
    sieve = bytearray([1]) * SIEVE
    sieve[:2] = b"\0\0"
    for n in range(2, math.isqrt(SIEVE) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, SIEVE, n)))
    return tuple(n for n in range(SIEVE) if sieve[n])
