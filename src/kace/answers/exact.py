r"""Values of answers: exact numbers, words, formulas for algebra, and collections.

Rational numbers are exact. Any other expression is a `Formula`, which has a value at
one point of its unknowns: values that are far apart are different, and where they are
near algebra has to decide.
"""

from __future__ import annotations

import cmath
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

MAX_BITS = 16_384  # of a number

Point = Fraction | complex
"""The value of an expression, exact or at one point of its unknowns."""


class NoExactValue(ArithmeticError):
    """Not an expression of numbers and letters, or one too big."""


class Ambiguous(NoExactValue):
    """A notation with several readings, or none. Algebra must not guess either."""


_KNOWN = re.compile(
    r"(?:\\(?:pi|sqrt|frac|cdot|sin|cos|tan|exp|ln)|[ei]|[^A-Za-z])*"
)


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
    """Notation that is no rational number, in its normal form."""

    latex: str
    algebra: str = ""
    """What algebra compares it with: `number`, `set` or `relation`; else only itself."""
    point: complex | None = field(default=None, compare=False)
    """The value at one point of its unknowns."""

    @property
    def constant(self) -> bool:
        """Whether it has a value, and no unknowns."""
        return (
            self.point is not None and _KNOWN.fullmatch(self.latex) is not None
        )

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


Value = Fraction | Word | Formula | Collection

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


# Arithmetic over the tokens of a normal form

_GREEK = r"""\alpha \beta \gamma \delta \epsilon \eta \theta \kappa \lambda \mu \nu \xi \rho
\sigma \tau \phi \chi \psi \omega"""
GREEK = frozenset(_GREEK.split())
LETTER = rf"(?:[A-Za-z]|{'|'.join(map(re.escape, GREEK))})"
UNKNOWN = rf"{LETTER}(?:_\{{.*\}})?"
_FUNCTIONS = frozenset("fghABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Letters that name a function when a bracket follows."""
_CONSTANTS = {r"\pi": complex(math.pi), "e": complex(math.e), "i": 1j}


_APPLIED = {
    r"\sin": cmath.sin,
    r"\cos": cmath.cos,
    r"\tan": cmath.tan,
    r"\exp": cmath.exp,
    r"\ln": cmath.log,
}
_FACTOR = re.compile(
    rf"\(|\\(?:frac|sqrt|pi|sin|cos|tan|exp|ln)|\d.*|{UNKNOWN}", re.DOTALL
)


def is_letter(token: str) -> bool:
    """Whether a token is an unknown, with its index, or a constant of one letter."""
    return re.fullmatch(UNKNOWN, token) is not None


def evaluate(tokens: Sequence[str]) -> Point:
    """Return the value of an expression; raise `NoExactValue` where it has none here."""
    arithmetic = _Arithmetic(tokens)
    result = arithmetic.sum()
    if arithmetic.peek():
        raise NoExactValue("something is left over")
    return result


def are_far(left: Point | None, right: Point | None) -> bool:
    """Whether two values differ by more than rounding; exact ones must be equal."""
    if left is None or right is None:
        return False
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left != right
    try:
        one = complex(left)
        other = complex(right)
    except OverflowError:
        return False  # too large for a float: algebra compares them
    return abs(one - other) > 1e-9 * max(abs(one), abs(other), 1e-3)


def _power(base: Point, exponent: Point) -> Point:
    """Return a power, which is exact for a whole exponent and for a square root of a square."""
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        root = base
        degree = exponent.denominator
        if degree > 1:
            nearly = float(abs(base)) ** (1 / degree)
            root = Fraction(nearly).limit_denominator()
        if root**degree == base:
            times = exponent.numerator
            if not base and not times:
                raise ZeroDivisionError("0^0")
            size = max(abs(root.numerator), root.denominator).bit_length()
            if size * abs(times) > MAX_BITS:
                raise NoExactValue("too high a power")
            return root**times
    return complex(base) ** complex(exponent)


class _Arithmetic:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = [*tokens, ""]  # the end
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if expected not in ("", token):
            raise NoExactValue("not a number")
        self.position += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.position += found
        return found

    def sum(self) -> Point:
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product()
        return total

    def product(self) -> Point:
        result = self.signed()
        while self.starts_factor() or self.peek() in (r"\cdot", "/"):
            if self.skip("/"):
                result = result / self.signed()
                if self.starts_factor():
                    raise Ambiguous("a/bc has two readings")
            else:
                self.skip(r"\cdot")
                result = result * self.signed()
        return result

    def signed(self) -> Point:
        sign = 1
        while self.peek() in ("-", "+"):
            sign *= -1 if self.take() == "-" else 1
        return sign * self.power()

    def starts_factor(self) -> bool:
        return _FACTOR.fullmatch(self.peek()) is not None

    def power(self) -> Point:
        base = self.factor()
        while self.skip("%"):
            base = base / 100
        return _power(base, self.group()) if self.skip("^") else base

    def factor(self) -> Point:
        if self.peek() == "(":
            return self.group("()")
        token = self.take()
        if token == r"\frac":
            above = self.group()
            return above / self.group()
        if token == r"\sqrt":
            degree = self.group("[]") if self.peek() == "[" else Fraction(2)
            return _power(self.group(), 1 / degree)
        if token in _APPLIED:
            return self.applied(token)
        if token[:1].isdigit():
            return literal(token)
        if token not in _CONSTANTS and not is_letter(token):
            raise NoExactValue("not a number")
        if self.peek() == "(" and token[0] in _FUNCTIONS:
            raise Ambiguous("a function, or a product")
        point = complex(0.5 + zlib.crc32(token.encode()) / 2**32)
        return _CONSTANTS.get(token, point)

    def applied(self, name: str) -> Point:
        """Return the value of a function whose argument has a clear end."""
        exponent = self.group() if self.skip("^") else Fraction(1)
        argument = self.factor() if self.peek() == "(" else self.power()
        clear = self.peek() in _APPLIED or not self.starts_factor()
        if not clear or not argument or exponent == -1:
            raise NoExactValue("an argument without an end, or an inverse")
        return _power(_APPLIED[name](complex(argument)), exponent)

    def group(self, brackets: str = "{}") -> Point:
        self.take(brackets[0])
        inner = self.sum()
        self.take(brackets[1])
        return inner


def literal(token: str) -> Fraction:
    r"""Return the value of a number as written: `1.5`, `0.\overline{3}`, `3\frac{1}{2}`, `101_{2}`."""
    digits, kind, *numbers = [*re.findall(r"[\d.]+|\\[a-z]+|_", token), ""]
    try:
        if kind == "_":
            return Fraction(int(digits, int(numbers[0]) or 1))
        value = Fraction(digits)
        if kind == r"\overline":
            places = len(digits) - digits.index(".") - 1
            nines = 10 ** len(numbers[0]) - 1
            value += Fraction(int(numbers[0]), nines * 10**places)
        elif kind:
            part = Fraction(int(numbers[0]), int(numbers[1]))
            if not 0 < part < 1 or "." in digits:
                raise ValueError
            value += part
    except ValueError:
        raise Ambiguous("a number with several readings, or none") from None
    return value
