"""The arithmetic of written numbers and polynomials: recursive descent over a normal form, and nothing else.

The same grammar serves two arithmetics: exact numbers, and estimates to sixty digits that tell at once that two
answers differ. An estimate is never a reason to call two answers the same. docs/answers.md has the rules.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from kace.answers.exact import MAX_FACTORIAL, PI_NAME, NoExactValue, Number

MAX_DEPTH = 24
MAX_TOKENS = 256
DIGITS = 60
MARGIN = Decimal(10) ** -20
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
MAX_ARGUMENT = 1_000
CONTEXT = Context(prec=DIGITS, Emax=99_999, Emin=-99_999)

_TOKEN = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+(?!\d))?|\.\d+|\\[A-Za-z]+ ?|\\.|.", re.DOTALL)
_FUNCTIONS = frozenset((r"\ln", r"\sin", r"\cos", r"\tan", r"\cot", r"\sec", r"\csc"))
_FACTORS = frozenset(("(", "{", PI_NAME, r"\frac", r"\sqrt", r"\binom")) | _FUNCTIONS
_GREEK = frozenset(
    re.findall(r"\\\w+", r"\alpha\beta\gamma\delta\theta\lambda\mu\nu\rho\sigma\tau\phi\varphi\psi\omega")
)
_APPLIED = frozenset("fghABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Letters that name a function when a bracket follows."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A real number, rounded. An unknown has a fixed arbitrary value, so that expressions in letters differ as well."""

    value: Decimal

    @classmethod
    def of(cls, value: Fraction) -> Estimate:
        """A rational number."""
        return Estimate(Decimal(value.numerator) / Decimal(value.denominator))

    @classmethod
    def letter(cls, name: str) -> Estimate:
        """Pi, e, infinity, or some number between 1 and 2 that the name decides."""
        if name == "i":
            raise NoExactValue("not real")
        known = {PI_NAME: PI, "e": Decimal(1).exp(), r"\infty": Decimal("Infinity")}
        return Estimate(known.get(name) or 1 + Decimal(zlib.crc32(name.encode()) % 99_991) / 99_991)

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

    def factorial(self) -> Estimate:
        """A small factorial."""
        return Estimate.of(self._whole().factorial().rational or Fraction(0))

    def choose(self, lower: Estimate) -> Estimate:
        """A small binomial coefficient."""
        return Estimate.of(self._whole().choose(lower._whole()).rational or Fraction(0))

    def function(self, name: str) -> Estimate:
        """A logarithm or a trigonometric function of it."""
        if name == r"\ln" and self.value > 0:
            return Estimate(self.value.ln())
        zero, one = Estimate(Decimal(0)), Estimate(Decimal(1))
        sine, cosine = Estimate(_sine(self.value)), Estimate(_sine(self.value + PI / 2))
        above = {r"\sin": sine, r"\cos": cosine, r"\tan": sine, r"\cot": cosine}.get(name, one)
        below = {r"\tan": cosine, r"\cot": sine, r"\sec": cosine, r"\csc": sine, r"\ln": zero}.get(name, one)
        return above / below

    def _whole(self) -> Number:
        if self.value != self.value.to_integral_value() or abs(self.value) > MAX_FACTORIAL:
            raise NoExactValue("not a small whole number")
        return Number.of(int(self.value))


Q = TypeVar("Q", Number, Estimate)


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


def calculate(text: str, kind: type[Q]) -> Q:
    """The value of a number or polynomial; `NoExactValue` where the text is not one, or has none."""
    calculator = _Calculator(text, kind)
    result = calculator.sum()
    if calculator.peek():
        raise NoExactValue("something is left over")
    return result


@lru_cache(maxsize=4_096)
def estimate(form: str) -> Decimal | None:
    """The value of a normal form to about sixty digits, where it has one."""
    try:
        with localcontext(CONTEXT):
            return calculate(form, Estimate).value
    except ArithmeticError:
        return None


def apart(left: str, right: str) -> bool:
    """Whether two normal forms certainly have different values."""
    first, second = estimate(left), estimate(right)
    if first is None or second is None:
        return False
    if first.is_infinite() or second.is_infinite():
        return first != second
    return abs(first - second) > MARGIN * max(Decimal(1), abs(first), abs(second))


class _Calculator(Generic[Q]):
    """Recursive descent over one number; every way out but a number is `NoExactValue`."""

    def __init__(self, text: str, kind: type[Q]) -> None:
        self.kind: type[Q] = kind
        self.tokens = [token.strip() or token for token in _TOKEN.findall(text)]
        self.position = self.depth = 0
        if len(self.tokens) > MAX_TOKENS:
            raise NoExactValue("too long")

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise NoExactValue("not a number")
        self.position += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.position += found
        return found

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NoExactValue("too deep")

    def sum(self) -> Q:
        self.deeper()
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        self.depth -= 1
        return total

    def product(self) -> Q:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        result = self.power()
        while token := self.peek():
            if token in (r"\cdot", "/"):
                self.take()
                other = -self.power() if self.skip("-") else self.power()
                result = result / other if token == "/" else result * other
                if token == "/" and self.starts_factor():
                    raise NoExactValue("a/bc has two readings")
            elif self.starts_factor() and not (token[0].isdigit() and self.peek(-1)[-1:].isdigit()):
                result = result * self.power()
            else:
                break
        return -result if negative else result

    def starts_factor(self) -> bool:
        token = self.peek()
        return token[:1].isalnum() or token in _FACTORS or token in _GREEK

    def power(self) -> Q:
        base = self.factor()
        while self.peek() in ("!", "%"):
            base = base.factorial() if self.take() == "!" else base / self.kind.of(Fraction(100))
            if self.peek() == "!":
                raise NoExactValue("a double factorial is another function")
        return base.power(self.group()) if self.skip("^") else base

    def factor(self) -> Q:
        token = self.take()
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return self.numeral(token)
        match token:
            case "(" | "{":
                self.position -= 1
                return self.group("()" if token == "(" else "{}")
            case r"\frac":
                return self.group() / self.group()
            case r"\binom":
                return self.group().choose(self.group())
            case r"\sqrt":
                degree = self.enclosed("[]") if self.peek() == "[" else "2"
                return self.group().root(int(degree) if degree.isdigit() and len(degree) < 3 else 0)
        return self.function(token) if token in _FUNCTIONS else self.unknown(token)

    def function(self, name: str) -> Q:
        """A function, its power before its argument; without brackets the argument is `x`, `2x` or a fraction."""
        self.deeper()
        power = self.group() if self.skip("^") else None
        first = self.peek()
        argument = self.factor() if first in ("(", "{") else self.power()
        if first.isdigit() and (self.peek().isalpha() or self.peek() == PI_NAME):
            argument = argument * self.power()
        if (self.starts_factor() and self.peek() not in _FUNCTIONS) or self.peek() == "^":
            raise NoExactValue("an argument that may end in two places")
        self.depth -= 1
        value = argument.function(name)
        return value.power(power) if power is not None else value

    def unknown(self, name: str) -> Q:
        """A letter, but not one that is applied to something."""
        letter = len(name) == 1 and name.isascii() and name.isalpha()
        if not letter and name not in _GREEK and name not in (PI_NAME, r"\infty"):
            raise NoExactValue("not a number")
        if self.peek() == "(" and name in _APPLIED:
            raise NoExactValue("a function")
        if self.skip("_"):
            name += f"_{{{self.enclosed()}}}"
        return self.kind.letter(name)

    def group(self, braces: str = "{}") -> Q:
        self.take(braces[0])
        inner = self.sum()
        self.take(braces[1])
        return inner

    def enclosed(self, braces: str = "{}") -> str:
        """The one token between braces."""
        self.take(braces[0])
        token = self.take()
        self.take(braces[1])
        return token

    def numeral(self, token: str) -> Q:
        """A literal and what may hang on it: a base, a repeating tail, the fraction of a mixed number."""
        if self.skip("_"):
            base = self.enclosed()
            if not base.isdigit() or len(base) > 2 or not 2 <= int(base) <= 36:
                raise NoExactValue("no such base")
            try:
                return self.kind.of(Fraction(int(token, int(base))))
            except ValueError:
                raise NoExactValue("a digit that the base does not have") from None
        if "." in token and self.skip(r"\overline"):
            tail, places = self.enclosed(), len(token.partition(".")[2])
            if not tail.isdigit():
                raise NoExactValue("not digits")
            period = Fraction(int(tail), (10 ** len(tail) - 1) * 10**places)
            return self.kind.of(_decimal(token)) + self.kind.of(period)
        mixed = self.fraction_after(token)
        return self.kind.of(_decimal(token)) + mixed if mixed else self.kind.of(_decimal(token))

    def fraction_after(self, token: str) -> Q | None:
        if not token.isdigit():
            return None
        pattern = (" ", "", "/", "") if self.peek() == " " else (r"\frac", "{", "", "}", "{", "", "}")
        found = [self.peek(index) for index in range(len(pattern))]
        if any(want and want != got for want, got in zip(pattern, found, strict=True)):
            return None
        above, below = (got for want, got in zip(pattern, found, strict=True) if not want)
        if not (above.isdigit() and below.isdigit() and 0 < int(above) < int(below)):
            return None
        self.position += len(pattern)
        if self.peek() in ("^", "!", "_"):
            raise NoExactValue("a power of a mixed number has two readings")
        return self.kind.of(Fraction(int(above), int(below)))


def _decimal(token: str) -> Fraction:
    mantissa, _, exponent = token.lower().partition("e")
    if len(exponent) > 4:
        raise NoExactValue("exponent too large")
    whole, _, places = mantissa.partition(".")
    return Fraction(int(whole + places or "0"), 10 ** len(places)) * Fraction(10) ** int(exponent or 0)
