r"""Values of answers: exact numbers, words, formulas for algebra, and collections.

A number is a sum of terms `q * sqrt(n) * pi^k` with a rational `q` and a square-free
`n`, which is negative for multiples of the imaginary unit. Such products are linearly
independent over the rationals, so equal values have equal terms. Every size is bounded,
and what does not fit raises `NoExactValue`; it is a `Formula`, for algebra to decide.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

MAX_TOKENS = 256
MAX_BITS = 16_384  # of a coefficient
MAX_TERMS = 32
SIEVE = 100_000  # radicands are divided by the squares of numbers below this
MAX_DIGITS = 1_000  # of one literal
HALF = Fraction(1, 2)

Root = tuple[int, int]
"""A square-free radicand, and a power of pi."""


class NoExactValue(ArithmeticError):
    """A value outside the numbers above, too big, or undefined."""


class Ambiguous(NoExactValue):
    """A notation with several readings, or none. Algebra must not guess either."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number, in its only form."""

    terms: tuple[tuple[Root, Fraction], ...]
    """Sorted; no coefficient is zero."""

    @classmethod
    def of(
        cls, value: int | Fraction, radicand: int = 1, power: int = 0
    ) -> Number:
        """Return a rational number, or its product with a root and a power of pi."""
        outside, inside = square_free(radicand)
        return _number({(inside, power): Fraction(value) * outside})

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, if it is one."""
        if not self.terms:
            return Fraction(0)
        root, factor = self.terms[0]
        return factor if root == (1, 0) and len(self.terms) == 1 else None

    def approximate(self) -> complex:
        """Return the value in floating point."""
        total = 0j
        for (radicand, power), factor in self.terms:
            total += float(factor) * complex(radicand) ** 0.5 * math.pi**power
        return total

    def __add__(self, other: Number) -> Number:
        total = defaultdict(Fraction, self.terms)
        for root, factor in other.terms:
            total[root] += factor
        return _number(total)

    def __sub__(self, other: Number) -> Number:
        return self + Number.of(-1) * other

    def __mul__(self, other: Number) -> Number:
        result = Number(())
        for (one, k), a in self.terms:
            for (two, m), b in other.terms:
                # The product of two imaginary roots is minus the root of the product.
                sign = -1 if one < 0 and two < 0 else 1
                result = result + Number.of(sign * a * b, one * two, k + m)
        return result

    def __truediv__(self, other: Number) -> Number:
        if len(other.terms) != 1:
            raise NoExactValue("division by zero or by a sum")
        (radicand, power), factor = other.terms[0]
        return self * Number.of(1 / (factor * radicand), radicand, -power)

    def __pow__(self, exponent: Number) -> Number:
        power = exponent.rational
        if power is None or (power <= 0 and not self.terms):
            raise NoExactValue("an exponent that is not rational, or 0^0")
        if power.denominator == 2 and self.rational is not None:
            root = Number.of(
                Fraction(1, self.rational.denominator),
                self.rational.numerator * self.rational.denominator,
            )
            if self.rational < 0 and power != HALF:
                raise NoExactValue("a broken power of a negative number")
            return root ** Number.of(power.numerator)
        if power.denominator > 1 or abs(power) > MAX_BITS:
            raise NoExactValue("a higher root, or too high a power")
        base = self if power > 0 else Number.of(1) / self
        result = Number.of(1)
        for bit in f"{abs(power.numerator):b}":
            result = result * result
            if bit == "1":
                result = result * base
        return result

    def __str__(self) -> str:
        text = ""
        for (radicand, power), factor in self.terms:
            factors = []
            if abs(factor) != 1 or (abs(radicand), power) == (1, 0):
                factors.append(_fraction(abs(factor)))
            if abs(radicand) > 1:
                factors.append(rf"\sqrt{{{abs(radicand)}}}")
            if power:
                factors.append(r"\pi" if power == 1 else rf"\pi^{{{power}}}")
            if radicand < 0:
                factors = [each for each in factors if each != "1"] + ["i"]
            sign = "-" if factor < 0 else "+" if text else ""
            text += sign + r"\cdot ".join(factors)
        return text or "0"


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words (`no solution`), a letter, or an infinite end."""

    text: str

    def __str__(self) -> str:
        if self.text.startswith(("\\", "-\\")):
            return self.text
        return rf"\text{{{self.text}}}"


@dataclass(frozen=True, slots=True)
class Formula:
    """Notation without an exact value, in its normal form."""

    latex: str
    algebra: str = ""
    """What algebra compares it with: `number`, `set` or `relation`; else only itself."""
    sample: complex | None = field(default=None, compare=False)
    """The value at one point of its unknowns."""

    def __str__(self) -> str:
        return self.latex


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values.

    The delimiters are those of an ordered collection (`()`, `[]`, `(]`, `[)`, `matrix`,
    `row`), of a set (`{}`) or of a list that counts repeats (`,`). The items of the
    last two are sorted.
    """

    delimiters: str
    items: tuple[Value, ...]

    @classmethod
    def of(cls, delimiters: str, items: Iterable[Value]) -> Collection:
        """Return a collection in its only form."""
        if delimiters == "{}":
            items = set(items)
        if delimiters in UNORDERED:
            items = sorted(items, key=str)
        return cls(delimiters, tuple(items))

    def __str__(self) -> str:
        ordered = (self.delimiters[0], ", ", self.delimiters[-1])
        before, between, after = _WRITTEN.get(self.delimiters, ordered)
        return before + between.join(map(str, self.items)) + after


Value = Number | Word | Formula | Collection

UNORDERED = ("{}", ",")
INTERVALS = ("()", "[]", "(]", "[)")
INFINITY = Word(r"\infty")
MINUS_INFINITY = Word(r"-\infty")
_WRITTEN = {
    "matrix": (r"\begin{pmatrix}", r"\\", r"\end{pmatrix}"),
    "row": ("", "&", ""),
    ",": ("", ", ", ""),
    "{}": (r"\{", ", ", r"\}"),
}


def is_exact(value: Value) -> bool:
    """Whether nothing in a value needs algebra."""
    if isinstance(value, Collection):
        return all(map(is_exact, value.items))
    return not isinstance(value, Formula)


def _number(terms: Mapping[Root, Fraction]) -> Number:
    """Return the number of some terms, sorted and without zeros."""
    kept = sorted((root, factor) for root, factor in terms.items() if factor)
    bits = 0
    for _, factor in kept:
        bits += factor.numerator.bit_length() + factor.denominator.bit_length()
    if len(kept) > MAX_TERMS or bits > MAX_BITS:
        raise NoExactValue("too big")
    return Number(tuple(kept))


def _fraction(size: Fraction) -> str:
    if size.denominator == 1:
        return str(size)
    return rf"\frac{{{size.numerator}}}{{{size.denominator}}}"


@lru_cache(maxsize=4_096)
def square_free(value: int) -> tuple[int, int]:
    """Return the largest factor whose square divides an integer, and what is left."""
    outside = 1
    divisor = 2
    while divisor * divisor <= abs(value) and divisor < SIEVE:
        while value % (divisor * divisor) == 0:
            value //= divisor * divisor
            outside *= divisor
        divisor += 1
    exact = math.isqrt(abs(value))
    if exact * exact == abs(value):
        return outside * exact, -1 if value < 0 else 1
    if divisor == SIEVE:
        raise NoExactValue("a radicand that is too hard to factor")
    return outside, value


# Arithmetic over the tokens of a normal form

GREEK = frozenset(
    rf"\{name}"
    for name in """alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi rho
    sigma tau phi chi psi omega""".split()
)
_INDEXED = re.compile(r"(?:([A-Za-z])|\\[a-z]+)(?:_\{.*\})?")
_FUNCTIONS = frozenset("fghABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Letters that name a function when a bracket follows."""


def is_letter(token: str) -> bool:
    """Whether a token is an unknown, with its index, or a constant of one letter."""
    named = _INDEXED.fullmatch(token)
    if named is None:
        return False
    return bool(named[1]) or token.partition("_")[0] in GREEK


def calculate(tokens: Sequence[str]) -> Number:
    """Return the exact value of a number; raise `NoExactValue` without one."""
    result = _Arithmetic(tokens, exact=True).whole()
    assert isinstance(result, Number)
    return result


def sample(tokens: Sequence[str]) -> complex | None:
    """Return the value of an expression at one point of its unknowns, if it is simple.

    Two values that are far apart show that two expressions differ.
    """
    try:
        result = _Arithmetic(tokens, exact=False).whole()
    except Ambiguous:
        raise
    except ArithmeticError:
        return None
    assert isinstance(result, complex)
    return result


class _Arithmetic:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: Sequence[str], exact: bool) -> None:
        if len(tokens) > MAX_TOKENS:
            raise NoExactValue("too long")
        self.tokens = [*tokens, ""]  # the end
        self.position = 0
        self.exact = exact

    def whole(self) -> Any:
        result = self.sum()
        if self.peek():
            raise NoExactValue("something is left over")
        return result

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise NoExactValue("not a number")
        self.position += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.position += found
        return found

    def number(self, value: int | Fraction) -> Any:
        return Number.of(value) if self.exact else complex(value)

    def sum(self) -> Any:
        total = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                total = total + self.product()
            else:
                total = total - self.product()
        return total

    def product(self) -> Any:
        sign = 1
        while self.peek() in ("-", "+"):
            sign *= -1 if self.take() == "-" else 1
        result = self.number(sign) * self.power()
        while True:
            if self.skip(r"\cdot"):
                result = result * self.signed()
            elif self.skip("/"):
                result = result / self.signed()
                if self.starts_factor():
                    raise Ambiguous("a/bc has two readings")
            elif self.starts_factor():
                result = result * self.power()
            else:
                return result

    def signed(self) -> Any:
        sign = self.number(-1 if self.skip("-") else 1)
        return sign * self.power()

    def starts_factor(self) -> bool:
        token = self.peek()
        known = token in ("(", r"\frac", r"\sqrt", r"\pi") or is_letter(token)
        return known or token[:1].isdigit()

    def power(self) -> Any:
        base = self.factor()
        while self.skip("%"):
            base = base / self.number(100)
        return base ** self.group() if self.skip("^") else base

    def factor(self) -> Any:
        token = self.take()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token == r"\frac":
            above = self.group()
            return above / self.group()
        if token == r"\sqrt":
            degree = "2"
            if self.skip("["):
                degree = self.take()
                self.take("]")
            if not re.fullmatch(r"[1-9]\d?", degree):
                raise NoExactValue("a root of no whole degree")
            return self.group() ** self.number(Fraction(1, int(degree)))
        if token[0].isdigit():
            return self.number(literal(token))
        return self.letter(token)

    def group(self) -> Any:
        self.take("{")
        inner = self.sum()
        self.take("}")
        return inner

    def letter(self, token: str) -> Any:
        if self.peek() == "(" and token[0] in _FUNCTIONS:
            raise Ambiguous("a function, or a product")
        if token == r"\pi":
            return Number.of(1, power=1) if self.exact else complex(math.pi)
        if token == "i":
            return Number.of(1, -1) if self.exact else 1j
        if self.exact or not is_letter(token):
            raise NoExactValue("not a number")
        if token == "e":
            return complex(math.e)
        return complex(0.5 + zlib.crc32(token.encode()) / 2**32)


def literal(token: str) -> Fraction:
    r"""Return the value of a number as written: `1.5`, `2E3`, `0.\overline{3}`, `3\frac{1}{2}`."""
    written = re.fullmatch(
        r"(\d+(?:\.(\d*))?)"
        r"(?:\\overline\{(\d+)\}|\\frac\{(\d+)\}\{(\d+)\}|_\{(\d\d?)\})?",
        token,
    )
    if not written or len(token) > MAX_DIGITS:
        raise NoExactValue("a number too long, or none")
    if written[6]:
        try:
            return Fraction(int(written[1], int(written[6])))
        except ValueError:
            raise Ambiguous("a digit that the base does not have") from None
    value = Fraction(written[1])
    if written[3]:
        nines = 10 ** len(written[3]) - 1
        value += Fraction(int(written[3]), nines * 10 ** len(written[2] or ""))
    if written[4]:
        value += Fraction(int(written[4]), int(written[5]))
    return value
