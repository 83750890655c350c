"""Exact numbers, polynomials, and the structures made of them.

A number is a sum of terms `q * b1^e1 * b2^e2 * ...`. The factor `q` is rational. A base
is a prime or -1 with an exponent between 0 and 1, pi with a rational exponent, or the
name of an unknown with a whole exponent; the imaginary unit is -1 to the power 1/2.
Such products are linearly independent over the rationals, so equal values have equal
terms. Every size is bounded, and what does not fit raises `NoExactValue`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from itertools import chain
from typing import NamedTuple

MAX_BITS = 8_192  # of all coefficients of a number together
MAX_TERMS = 32
MAX_EXPONENT = 1 << 31
MAX_ROOT = 12
MAX_FACTORIAL = 1_000
MAX_RADICAND_BITS = 256
SIEVE = 100_000  # radicands are divided by the numbers below this

PI_NAME = r"\pi"
HALF = Fraction(1, 2)

Base = int | str
Monomial = tuple[tuple[Base, Fraction], ...]
"""Bases with their exponents, sorted."""
ONE: Monomial = ()
IMAGINARY: Monomial = ((-1, HALF),)


class NoExactValue(ArithmeticError):
    """A value outside the numbers above, too big, or undefined."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number or polynomial, in its only form."""

    terms: tuple[tuple[Monomial, Fraction], ...]  # sorted; no coefficient is zero

    @classmethod
    def of(cls, value: int | Fraction) -> Number:
        """Return a rational number."""
        return _number({ONE: Fraction(value)})

    @classmethod
    def letter(cls, name: str) -> Number:
        """Return the imaginary unit, pi or an unknown."""
        if name in ("e", r"\infty"):
            raise NoExactValue("no number with an exact value")
        monomial = IMAGINARY if name == "i" else ((name, Fraction(1)),)
        return Number(((monomial, Fraction(1)),))

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, if it is one."""
        if not self.terms:
            return Fraction(0)
        monomial, coefficient = self.terms[0]
        return coefficient if monomial == ONE and len(self.terms) == 1 else None

    @property
    def constant(self) -> bool:
        """Whether it has no unknown but pi."""
        for monomial, _ in self.terms:
            for base, _ in monomial:
                if isinstance(base, str) and base != PI_NAME:
                    return False
        return True

    def __add__(self, other: Number) -> Number:
        total = defaultdict(Fraction, self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] += coefficient
        return _number(total)

    def __neg__(self) -> Number:
        return Number(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __mul__(self, other: Number) -> Number:
        total: defaultdict[Monomial, Fraction] = defaultdict(Fraction)
        for left, a in self.terms:
            for right, b in other.terms:
                factor, monomial = _product(left, right)
                total[monomial] += a * b * factor
        return _number(total)

    def __truediv__(self, other: Number) -> Number:
        return self * other.inverse()

    def inverse(self) -> Number:
        """Return one over the number. Conjugates clear sums of square roots."""
        denominator = self
        result = Number.of(1)
        while len(denominator.terms) > 1:
            conjugate = denominator._conjugate()
            denominator = denominator * conjugate
            result = result * conjugate
        if not denominator.terms:
            raise NoExactValue("division by zero")
        monomial, coefficient = denominator.terms[0]
        factor, inverse = _monomial({base: -power for base, power in monomial})
        return result * _number({inverse: factor / coefficient})

    def _conjugate(self) -> Number:
        """Return the same sum with one of its square roots (or `i`) negated."""
        first = self.terms[0][0]
        second = self.terms[1][0]
        for monomial, _ in self.terms:
            if _unknowns(monomial) != _unknowns(first):
                raise NoExactValue("a sum with pi or unknowns in a denominator")
            for base, power in monomial:
                if isinstance(base, int) and power != HALF:
                    raise NoExactValue("a sum with higher roots in a denominator")
        root = min(set(first) ^ set(second))
        terms = [
            (each, -factor if root in each else factor) for each, factor in self.terms
        ]
        return Number(tuple(terms))

    def __pow__(self, exponent: int) -> Number:
        if abs(exponent) >= MAX_EXPONENT:
            raise NoExactValue("exponent too large")
        if exponent <= 0 and not self.terms:
            raise NoExactValue("0 to a power that is not positive")
        base = self if exponent >= 0 else self.inverse()
        result = Number.of(1)
        for bit in f"{abs(exponent):b}":
            result = result * result
            if bit == "1":
                result = result * base
        return result

    def root(self, degree: int) -> Number:
        """Return a root of a product of a rational number, roots and powers of pi.

        A negative number has its odd roots, and `i` times the square root.
        """
        if not 2 <= degree <= MAX_ROOT:
            raise NoExactValue("a root of too high a degree")
        if not self.terms:
            return self
        monomial, coefficient = self.terms[0]
        if len(self.terms) > 1 or not self.constant or (-1, HALF) in monomial:
            raise NoExactValue("a root of a sum, an unknown or an imaginary number")
        exponents: defaultdict[Base, Fraction] = defaultdict(Fraction)
        for base, power in monomial:
            exponents[base] = power / degree
        sign = 1
        if coefficient < 0 and degree == 2:
            exponents[-1] = HALF
        elif coefficient < 0 and degree % 2:
            sign = -1
        elif coefficient < 0:
            raise NoExactValue("an even root of a negative number")
        above, primes_above = root_of_integer(abs(coefficient.numerator), degree)
        below, primes_below = root_of_integer(coefficient.denominator, degree)
        for prime, times in primes_above:
            exponents[prime] += Fraction(times, degree)
        for prime, times in primes_below:
            exponents[prime] -= Fraction(times, degree)
        factor, root = _monomial(exponents)
        return _number({root: factor * Fraction(sign * above, below)})

    def power(self, exponent: Number) -> Number:
        """Return a rational power; a negative number has whole powers only."""
        rational = exponent.rational
        if rational is None:
            raise NoExactValue("an exponent that is not rational")
        if rational.denominator == 1:
            return self**rational.numerator
        if self.terms and self.terms[0][1] < 0:
            raise NoExactValue("a broken power of a negative number")
        return self.root(rational.denominator) ** rational.numerator

    def factorial(self) -> Number:
        """Return a small factorial."""
        return Number.of(math.factorial(self._small()))

    def choose(self, lower: Number) -> Number:
        """Return a small binomial coefficient."""
        return Number.of(math.comb(self._small(), lower._small()))

    def _small(self) -> int:
        value = self.rational
        if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
            raise NoExactValue("not a small natural number")
        return value.numerator

    def approximate(self) -> float:
        """Return the value of a real number; raise where rounding hides its sign."""
        total = 0.0
        largest = 0.0
        for monomial, coefficient in self.terms:
            term = float(coefficient)
            for base, power in monomial:
                size = math.pi if base == PI_NAME else base
                if isinstance(size, str) or size < 0:
                    raise NoExactValue("not a real number")
                term *= size ** float(power)
            total += term
            largest = max(largest, abs(term))
        if total and abs(total) < 1e-9 * largest:
            raise NoExactValue("too close to zero")
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            if coefficient < 0:
                text += "-"
            elif text:
                text += "+"
            size = abs(coefficient)
            factors = [_latex(base, power) for base, power in monomial]
            if size.denominator > 1:
                factors.insert(0, rf"\frac{{{size.numerator}}}{{{size.denominator}}}")
            elif size != 1 or not factors:
                factors.insert(0, str(size))
            text += r"\cdot ".join(factors)
        return text or "0"


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words (`no solution`, a choice letter) or an infinite end."""

    text: str

    def __str__(self) -> str:
        if self.text.startswith(("\\", "-\\")):
            return self.text
        return rf"\text{{{self.text}}}"


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values.

    The delimiters are those of an ordered collection (`()`, `[]`, `(]`, `[)`, `matrix`,
    `row`, `union`), of a set (`{}`) or of a list that counts repeats (`,`). The items
    of the last two are sorted.
    """

    delimiters: str
    items: tuple[Value, ...]

    @classmethod
    def of(cls, delimiters: str, items: Iterable[Value]) -> Collection:
        """Return a collection in its only form."""
        if delimiters == "{}":
            items = set(items)
        if delimiters in ("{}", ","):
            items = sorted(items, key=str)
        return cls(delimiters, tuple(items))

    def __str__(self) -> str:
        ordered = (self.delimiters[0], ", ", self.delimiters[-1])
        before, between, after = _WRITTEN.get(self.delimiters, ordered)
        return before + between.join(map(str, self.items)) + after


Value = Number | Word | Collection

INTERVALS = ("()", "[]", "(]", "[)")
INFINITY = Word(r"\infty")
MINUS_INFINITY = Word(r"-\infty")
_WRITTEN = {
    "matrix": (r"\begin{pmatrix}", r"\\", r"\end{pmatrix}"),
    "union": ("", r"\cup ", ""),
    "row": ("", "&", ""),
    ",": ("", ", ", ""),
    "{}": (r"\{", ", ", r"\}"),
}


def _sort_key(monomial: Monomial) -> list[tuple[bool, bool, Base, Fraction]]:
    """Return what orders monomials: numbers, names, then the imaginary unit."""
    return [(base == -1, isinstance(base, str), base, e) for base, e in monomial]


def _unknowns(monomial: Monomial) -> Monomial:
    return tuple(pair for pair in monomial if isinstance(pair[0], str))


def _number(terms: Mapping[Monomial, Fraction]) -> Number:
    """Return the number of some terms, sorted and without zeros."""
    bits = 0
    kept = []
    for monomial, factor in terms.items():
        if factor:
            kept.append((monomial, factor))
            bits += factor.numerator.bit_length() + factor.denominator.bit_length()
    if len(kept) > MAX_TERMS or bits > MAX_BITS:
        raise NoExactValue("too big")
    kept.sort(key=lambda term: _sort_key(term[0]))
    return Number(tuple(kept))


def _monomial(exponents: Mapping[Base, Fraction]) -> tuple[Fraction, Monomial]:
    """Return a product of powers as a rational factor and a monomial."""
    factor = Fraction(1)
    kept = []
    for base, power in exponents.items():
        if isinstance(base, int):
            whole = math.floor(power)
            factor *= Fraction(base) ** whole
            power -= whole
        elif abs(power) > MAX_BITS:
            raise NoExactValue("too high a power")
        if power:
            kept.append((base, power))
    return factor, tuple(sorted(kept, key=lambda pair: _sort_key((pair,))))


def _product(left: Monomial, right: Monomial) -> tuple[Fraction, Monomial]:
    if not left or not right:
        return Fraction(1), left or right
    exponents = defaultdict(Fraction, left)
    for base, power in right:
        exponents[base] += power
    return _monomial(exponents)


def _latex(base: Base, power: Fraction) -> str:
    if base == -1:
        return "i"
    if isinstance(base, str):
        return base if power == 1 else f"{base}^{{{power}}}"
    if power == HALF:
        return rf"\sqrt{{{base}}}"
    return rf"{base}^{{\frac{{{power.numerator}}}{{{power.denominator}}}}}"


@lru_cache(maxsize=4_096)
def root_of_integer(value: int, degree: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return a root as a whole part and the primes left under it with their powers."""
    if value == 0:
        return 0, ()
    whole = 1
    primes = []
    if value.bit_length() <= MAX_RADICAND_BITS:
        for divisor in chain((2,), range(3, SIEVE, 2)):
            if divisor * divisor > value:
                break
            power = 0
            while value % divisor == 0:
                value = value // divisor
                power = power + 1
            whole *= divisor ** (power // degree)
            if power % degree:
                primes.append((divisor, power % degree))
    exact = integer_root(value, degree)
    if exact**degree == value:
        return whole * exact, tuple(primes)
    if value >= SIEVE * SIEVE:
        raise NoExactValue("a radicand that is too hard to factor")
    return whole, (*primes, (value, 1))


def integer_root(value: int, degree: int) -> int:
    """Return the largest integer whose power does not exceed `value`."""
    root = 0
    for bit in reversed(range(value.bit_length() // degree + 1)):
        if (root | 1 << bit) ** degree <= value:
            root |= 1 << bit
    return root


def interval(low: Value, high: Value, with_low: bool, with_high: bool) -> Collection:
    """Return an interval by its ends, and whether these belong to it."""
    return Collection("(["[with_low] + ")]"[with_high], (low, high))


class _Interval(NamedTuple):
    low: Value
    high: Value
    with_low: bool
    with_high: bool


def union(parts: Iterable[Value]) -> Value:
    """Return the union of intervals, finite sets and numbers.

    Intervals that end before they start are empty.
    """
    intervals = []
    for part in parts:
        intervals += _intervals(part)
    if not intervals:
        raise NoExactValue("empty")
    intervals.sort(key=cmp_to_key(_by_start))
    merged = intervals[:1]
    for following in intervals[1:]:
        last = merged[-1]
        gap = compare(following.low, last.high)
        if gap > 0 or (gap == 0 and not (last.with_high or following.with_low)):
            merged.append(following)
            continue
        order = compare(following.high, last.high)
        if order == 0:
            closed = last.with_high or following.with_high
            merged[-1] = last._replace(with_high=closed)
        elif order > 0:
            merged[-1] = last._replace(
                high=following.high, with_high=following.with_high
            )
    values = [each.low if each.low == each.high else interval(*each) for each in merged]
    if len(values) == 1:
        return values[0]
    points = all(isinstance(value, Number) for value in values)
    return Collection.of("{}" if points else "union", values)


def _by_start(left: _Interval, right: _Interval) -> int:
    return compare(left.low, right.low) or right.with_low - left.with_low


def _intervals(part: Value) -> list[_Interval]:
    """Return the intervals a value consists of; a number is a closed one."""
    if isinstance(part, Number):
        return [_Interval(part, part, True, True)]
    if not isinstance(part, Collection):
        raise NoExactValue("not an interval")
    if part.delimiters == "{}":
        return [each for item in part.items for each in _intervals(item)]
    if part.delimiters not in INTERVALS or len(part.items) != 2:
        raise NoExactValue("not an interval")
    low, high = part.items
    found = _Interval(low, high, part.delimiters[0] == "[", part.delimiters[1] == "]")
    order = compare(low, high)
    point = order == 0 and found.with_low and found.with_high
    return [found] if order < 0 or point else []


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1, as `left` is below, at or above `right` on the real line."""
    if left == right:
        return 0
    if isinstance(left, Number) and isinstance(right, Number):
        return 1 if (left - right).approximate() > 0 else -1
    below = left == MINUS_INFINITY or right == INFINITY
    above = left == INFINITY or right == MINUS_INFINITY
    if below == above:
        raise NoExactValue("not on the real line")
    return -1 if below else 1
