"""Exact values: numbers and polynomials over rationals, roots, `i` and pi, and the small structures made of them.

A number is a sum of terms `q * i^a * p1^e1 * p2^e2 ... * x^k ...` with `q` rational, `a` 0 or 1, `p` primes,
`0 < e < 1`, and `x` an unknown with a whole power, or pi with a rational one. Such products are linearly independent
over the rationals, so that a number has one form only: equal values compare equal. No floating point anywhere. Every
size is bounded; what does not fit raises `NoExactValue`, never takes long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kace.answers.radicals import NoExactValue, root_of_integer

MAX_BITS = 8_192
"""Bits of all coefficients of a number together; its digits stay printable."""
MAX_TERMS = 32
MAX_EXPONENT = 1 << 31
MAX_ROOT = 12
MAX_FACTORIAL = 1_000

HALF = Fraction(1, 2)
Power = int | Fraction


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
        exponents = dict(self.roots)
        for prime, exponent in other.roots:
            exponents[prime] = exponents.get(prime, Fraction(0)) + exponent
        powers: dict[str, Power] = dict(self.unknowns)
        for name, power in other.unknowns:
            powers[name] = powers.get(name, 0) + power
        factor, monomial = _monomial(exponents, powers, self.imaginary != other.imaginary)
        return (-factor if self.imaginary and other.imaginary else factor), monomial

    def inverse(self) -> tuple[Fraction, Monomial]:
        """One over it, as a rational factor and a monomial."""
        factor, monomial = _monomial(
            {prime: -exponent for prime, exponent in self.roots},
            {name: -power for name, power in self.unknowns},
            self.imaginary,
        )
        return (-factor if self.imaginary else factor), monomial

    def latex(self) -> str:
        """How to write it; empty for 1."""
        parts = []
        for prime, e in self.roots:
            power = rf"{prime}^{{\frac{{{e.numerator}}}{{{e.denominator}}}}}"
            parts.append(rf"\sqrt{{{prime}}}" if e == HALF else power)
        parts += [name if power == 1 else f"{name}^{{{power}}}" for name, power in self.unknowns]
        parts += ["i"] if self.imaginary else []
        return r"\cdot ".join(parts)


ONE = Monomial()


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number, or polynomial, in its only form."""

    terms: tuple[tuple[Monomial, Fraction], ...]
    """In order of the monomials; no coefficient is zero."""

    @classmethod
    def of(cls, value: int | Fraction) -> Number:
        """A rational number."""
        return _number({ONE: Fraction(value)})

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, if it is one."""
        if not self.terms:
            return Fraction(0)
        monomial, coefficient = self.terms[0]
        return coefficient if len(self.terms) == 1 and monomial == ONE else None

    @property
    def constant(self) -> bool:
        """Whether it has no unknown but pi."""
        return all(name == PI_NAME for monomial, _ in self.terms for name, _ in monomial.unknowns)

    def __add__(self, other: Number) -> Number:
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
        return _number(total)

    def __neg__(self) -> Number:
        return Number(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __mul__(self, other: Number) -> Number:
        total: dict[Monomial, Fraction] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                factor, monomial = left.times(right)
                total[monomial] = total.get(monomial, Fraction(0)) + a * b * factor
        return _number(total)

    def __truediv__(self, other: Number) -> Number:
        return self * other.inverse()

    def inverse(self) -> Number:
        """One over it; sums are cleared of square roots by their conjugates."""
        denominator, result = self, Number.of(1)
        while len(denominator.terms) > 1:
            conjugate = denominator._conjugate()
            denominator, result = denominator * conjugate, result * conjugate
        if not denominator.terms:
            raise NoExactValue("division by zero")
        monomial, coefficient = denominator.terms[0]
        factor, inverse = monomial.inverse()
        return result * _number({inverse: factor / coefficient})

    def _conjugate(self) -> Number:
        """The same sum with one of its square roots (or `i`) negated."""
        first, second = self.terms[0][0], self.terms[1][0]
        if any(monomial.unknowns != first.unknowns for monomial, _ in self.terms):
            raise NoExactValue("a sum with pi or unknowns in a denominator")
        if any(exponent != HALF for monomial, _ in self.terms for _, exponent in monomial.roots):
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
        base = self if exponent >= 0 else self.inverse()
        result, left = Number.of(1), abs(exponent)
        while left:
            if left & 1:
                result = result * base
            left >>= 1
            if left:
                base = base * base
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
                exponents[prime] = exponents.get(prime, Fraction(0)) + Fraction(sign * power, degree)
        if value < 0 and degree % 2:
            factor = -factor
        carry, monomial = _monomial(exponents, {PI_NAME: pi / degree}, value < 0 and degree == 2)
        return _number({monomial: factor * carry})

    def _rational_and_pi(self) -> tuple[Fraction, Fraction]:
        """The factor and the power of pi of a number that is no more than that."""
        if not self.terms:
            return Fraction(0), Fraction(0)
        monomial, coefficient = self.terms[0]
        if len(self.terms) > 1 or monomial.imaginary or monomial.roots or not self.constant:
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

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+" if text else ""
            text += sign + _term(abs(coefficient), monomial.latex())
        return text


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words (`no solution`, a choice letter) or an infinite end of an interval."""

    text: str

    def __str__(self) -> str:
        return self.text if self.text.startswith(("\\", "-\\")) else rf"\text{{{self.text}}}"


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values: ordered (`()`, `[]`, `(]`, `[)`, `matrix`, `row`, `union`), or a set (`{}`), which is sorted."""

    delimiters: str
    items: tuple[Value, ...]

    @classmethod
    def of(cls, delimiters: str, items: Iterable[Value]) -> Collection:
        """A collection in its only form."""
        if delimiters == "{}":
            return cls(delimiters, tuple(sorted(set(items), key=str)))
        return cls(delimiters, tuple(items))

    def __str__(self) -> str:
        items = [str(item) for item in self.items]
        match self.delimiters:
            case "matrix":
                return r"\begin{pmatrix}" + r"\\".join(items) + r"\end{pmatrix}"
            case "union":
                return r"\cup ".join(items)
            case "row":
                return "&".join(items)
            case "{}":
                return r"\{" + ", ".join(items) + r"\}"
        return self.delimiters[0] + ", ".join(items) + self.delimiters[1]


Value = Number | Word | Collection

PI_NAME = r"\pi"
IMAGINARY_UNIT = Number(((Monomial(imaginary=True), Fraction(1)),))
INFINITY = Word(r"\infty")
MINUS_INFINITY = Word(r"-\infty")


def unknown(name: str) -> Number:
    """A number that is only known by name."""
    return Number(((Monomial(unknowns=((name, 1),)), Fraction(1)),))


PI = unknown(PI_NAME)


def factorial(number: Number) -> Number:
    """A small factorial."""
    return Number.of(_product(1, _small(number)))


def binomial(upper: Number, lower: Number) -> Number:
    """A small binomial coefficient."""
    n, k = _small(upper), _small(lower)
    if k > n:
        return Number.of(0)
    return Number.of(_product(n - k + 1, n) // _product(1, k))


def _small(number: Number) -> int:
    value = number.rational
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        raise NoExactValue("not a small natural number")
    return value.numerator


def _product(first: int, last: int) -> int:
    result = 1
    for factor in range(first, last + 1):
        result *= factor
    return result


def _number(terms: Mapping[Monomial, Fraction]) -> Number:
    kept = tuple(sorted((m, c) for m, c in terms.items() if c))
    bits = sum(c.numerator.bit_length() + c.denominator.bit_length() for _, c in kept)
    if len(kept) > MAX_TERMS or bits > MAX_BITS:
        raise NoExactValue("too big")
    return Number(kept)


def _monomial(
    exponents: Mapping[int, Fraction], powers: Mapping[str, Power], imaginary: bool
) -> tuple[Fraction, Monomial]:
    """Carry whole powers of primes into a rational factor."""
    factor = Fraction(1)
    roots = []
    for prime, exponent in sorted(exponents.items()):
        whole = exponent.numerator // exponent.denominator
        factor *= Fraction(prime) ** whole
        if exponent != whole:
            roots.append((prime, exponent - whole))
    unknowns = tuple(sorted((name, _plain(power)) for name, power in powers.items() if power))
    if any(abs(Fraction(power)) > MAX_BITS for _, power in unknowns):
        raise NoExactValue("too high a power")
    return factor, Monomial(unknowns, imaginary, tuple(roots)) if unknowns or imaginary or roots else ONE


def _plain(power: Power) -> Power:
    return power.numerator if power.denominator == 1 else power


def _term(coefficient: Fraction, monomial: str) -> str:
    if coefficient == 1 and monomial:
        return monomial
    number = str(coefficient.numerator)
    if coefficient.denominator != 1:
        number = rf"\frac{{{number}}}{{{coefficient.denominator}}}"
    return rf"{number}\cdot {monomial}" if monomial else number
