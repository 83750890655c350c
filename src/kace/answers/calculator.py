"""The arithmetic of written numbers and polynomials: recursive descent over a normal form (rules: docs/answers.md).

One grammar serves exact numbers and estimates to sixty digits. An estimate only ever tells that two answers differ.
"""

from __future__ import annotations

import re
import zlib
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kace.answers.exact import MAX_FACTORIAL, PI_NAME, NoExactValue, Number

MAX_DEPTH = 24
MAX_TOKENS = 256
DIGITS = 60
MARGIN = Decimal(10) ** -20
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)
MAX_ARGUMENT = 1_000
CONTEXT = Context(prec=DIGITS, Emax=99_999, Emin=-99_999)

_TOKEN = re.compile(
    r"0x[0-9A-Fa-f]+|0b[01]+|(?<![0-9A-Za-z])[0-9A-Z]{2,}(?=_\{(?:1[1-9]|[23]\d)\})|"  # also letters are digits
    r"\d+\.\d+[eE][+-]?\d+|\d+(?:E[+-]?|e(?=\d)|e[+-](?=0))\d+|"  # `2e-1` is twice e, less one
    r"\d+(?:\.\d*)?|\.\d+|\\[A-Za-z]+ ?|\\.|.",
    re.DOTALL,
)
_FUNCTIONS = frozenset((r"\ln", r"\sin", r"\cos", r"\tan", r"\cot", r"\sec", r"\csc"))
_FACTORS = frozenset(("(", "{", PI_NAME, r"\frac", r"\sqrt", r"\binom")) | _FUNCTIONS
_GREEK = frozenset(
    re.findall(
        r"\\\w+",
        r"\alpha\beta\gamma\delta\theta\lambda\mu\nu\rho\sigma\tau\phi\varphi\psi\omega",
    )
)
_APPLIED = frozenset(
    "fghABCDEFGHIJKLMNOPQRSTUVWXYZ"
)  # letters that name a function when a bracket follows


class _Reals:
    """What `Number` does, for rounded numbers. An unknown has a fixed arbitrary value: expressions in it differ too."""

    def of(self, value: Fraction) -> Decimal:
        return Decimal(value.numerator) / Decimal(value.denominator)

    def letter(self, name: str) -> Decimal:
        if name == "i":
            raise NoExactValue("not real")
        known = {PI_NAME: PI, "e": Decimal(1).exp(), r"\infty": Decimal("Infinity")}
        return (
            known.get(name) or 1 + Decimal(zlib.crc32(name.encode()) % 99_991) / 99_991
        )

    def divide(self, above: Decimal, below: Decimal) -> Decimal:
        if abs(below) < MARGIN:
            raise NoExactValue("close to a division by zero")
        return above / below

    def power(self, base: Decimal, exponent: Decimal) -> Decimal:
        if (exponent != exponent.to_integral_value() and base <= 0) or abs(
            base
        ) < MARGIN:
            raise NoExactValue("a power that may not be real")
        return base**exponent

    def root(self, value: Decimal, degree: int) -> Decimal:
        if value <= 0 or degree < 2:
            raise NoExactValue("a root that may not be real")
        return value ** (Decimal(1) / degree)

    def factorial(self, value: Decimal) -> Decimal:
        return self.of(_whole(value).factorial().rational or Fraction(0))

    def choose(self, upper: Decimal, lower: Decimal) -> Decimal:
        return self.of(_whole(upper).choose(_whole(lower)).rational or Fraction(0))

    def function(self, value: Decimal, name: str) -> Decimal:
        if name == r"\ln" and value > 0:
            return value.ln()
        sine = _sine(value)
        cosine = _sine(value + PI / 2)
        one = Decimal(1)
        above = {r"\sin": sine, r"\cos": cosine, r"\tan": sine, r"\cot": cosine}.get(
            name, one
        )
        below = {
            r"\tan": cosine,
            r"\cot": sine,
            r"\sec": cosine,
            r"\csc": sine,
            r"\ln": Decimal(0),
        }.get(name, one)
        return self.divide(above, below)


def _whole(value: Decimal) -> Number:
    if value != value.to_integral_value() or abs(value) > MAX_FACTORIAL:
        raise NoExactValue("not a small whole number")
    return Number.of(int(value))


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


def calculate(text: str) -> Number:
    """The value of a number or polynomial; `NoExactValue` where the text is not one, or has none."""
    value: Number = _Calculator(text, Number).whole()
    return value


@lru_cache(maxsize=4_096)
def estimate(form: str) -> Decimal | None:
    """The value of a normal form to about sixty digits, where it has one."""
    try:
        with localcontext(CONTEXT):
            value: Decimal = _Calculator(form, _Reals()).whole()
            return value
    except ArithmeticError:
        return None


def apart(left: str, right: str) -> bool:
    """Whether two normal forms certainly have different values."""
    first = estimate(left)
    second = estimate(right)
    if first is None or second is None:
        return False
    if first.is_infinite() or second.is_infinite():
        return first != second
    return abs(first - second) > MARGIN * max(Decimal(1), abs(first), abs(second))


class _Calculator:
    """Recursive descent over one number of a kind; every way out but a number is `NoExactValue`."""

    def __init__(self, text: str, kind: type[Number] | _Reals) -> None:
        self.kind: Any = kind
        self.tokens = [token.strip() or token for token in _TOKEN.findall(text)]
        self.position = self.depth = 0
        if len(self.tokens) > MAX_TOKENS:
            raise NoExactValue("too long")

    def whole(self) -> Any:
        result = self.sum()
        if self.peek():
            raise NoExactValue("something is left over")
        return result

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

    def sum(self) -> Any:
        self.deeper()
        total = self.product()
        while self.peek() in ("+", "-"):
            total = (
                total + self.product() if self.take() == "+" else total - self.product()
            )
        self.depth -= 1
        return total

    def product(self) -> Any:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        result = self.power()
        while token := self.peek():
            if token in (r"\cdot", "/"):
                self.take()
                other = -self.power() if self.skip("-") else self.power()
                result = (
                    self.kind.divide(result, other) if token == "/" else result * other
                )
                if token == "/" and self.starts_factor():
                    raise NoExactValue("a/bc has two readings")
            elif self.starts_factor() and not (
                token[0].isdigit() and self.peek(-1)[-1:].isdigit()
            ):
                result = result * self.power()
            else:
                break
        return -result if negative else result

    def starts_factor(self) -> bool:
        token = self.peek()
        return token[:1].isalnum() or token in _FACTORS or token in _GREEK

    def power(self) -> Any:
        base = self.factor()
        while self.peek() in ("!", "%"):
            base = (
                self.kind.factorial(base)
                if self.take() == "!"
                else self.kind.divide(base, self.kind.of(Fraction(100)))
            )
            if self.peek() == "!":
                raise NoExactValue("a double factorial is another function")
        return self.kind.power(base, self.group()) if self.skip("^") else base

    def factor(self) -> Any:
        token = self.take()
        if (len(token) > 1 and token[0] != "\\") or token.isdecimal():
            return self.numeral(token)
        match token:
            case "(" | "{":
                self.position -= 1
                return self.group("()" if token == "(" else "{}")
            case r"\frac":
                return self.kind.divide(self.group(), self.group())
            case r"\binom":
                return self.kind.choose(self.group(), self.group())
            case r"\sqrt":
                degree = self.enclosed("[]") if self.peek() == "[" else "2"
                return self.kind.root(
                    self.group(),
                    int(degree) if degree.isdigit() and len(degree) < 3 else 0,
                )
        return self.function(token) if token in _FUNCTIONS else self.unknown(token)

    def function(self, name: str) -> Any:
        """A function, its power before its argument; without brackets the argument is `x`, `2x` or a fraction."""
        self.deeper()
        power = self.group() if self.skip("^") else None
        first = self.peek()
        argument = self.factor() if first in ("(", "{") else self.power()
        if first.isdigit() and (self.peek().isalpha() or self.peek() == PI_NAME):
            argument = argument * self.power()
        if (
            self.starts_factor() and self.peek() not in _FUNCTIONS
        ) or self.peek() == "^":
            raise NoExactValue("an argument that may end in two places")
        self.depth -= 1
        value = self.kind.function(argument, name)
        return self.kind.power(value, power) if power is not None else value

    def unknown(self, name: str) -> Any:
        """A letter, but not one that is applied to something."""
        letter = len(name) == 1 and name.isascii() and name.isalpha()
        if not letter and name not in _GREEK and name not in (PI_NAME, r"\infty"):
            raise NoExactValue("not a number")
        if self.peek() == "(" and name in _APPLIED:
            raise NoExactValue("a function")
        if self.skip("_"):
            name += f"_{{{self.enclosed()}}}"
        return self.kind.letter(name)

    def group(self, braces: str = "{}") -> Any:
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

    def numeral(self, token: str) -> Any:
        """A literal and what may hang on it: a base, a repeating tail, the fraction of a mixed number."""
        if token[:2] in ("0x", "0b"):
            return self.kind.of(Fraction(int(token, 0)))
        if self.skip("_"):
            base = self.enclosed()
            if not base.isdigit() or len(base) > 2 or not 2 <= int(base) <= 36:
                raise NoExactValue("no such base")
            try:
                return self.kind.of(Fraction(int(token, int(base))))
            except ValueError:
                raise NoExactValue("a digit that the base does not have") from None
        if "." in token and self.skip(r"\overline"):
            tail = self.enclosed()
            places = len(token.partition(".")[2])
            if not tail.isdigit():
                raise NoExactValue("not digits")
            if self.peek()[:1].isdigit() or self.peek() == "(":
                raise NoExactValue("digits after what has no end")
            period = Fraction(int(tail), (10 ** len(tail) - 1) * 10**places)
            return self.kind.of(_decimal(token)) + self.kind.of(period)
        mixed = self.fraction_after(token)
        return (
            self.kind.of(_decimal(token)) + mixed
            if mixed
            else self.kind.of(_decimal(token))
        )

    def fraction_after(self, token: str) -> Any:
        if not token.isdigit():
            return None
        pattern = (
            (" ", "", "/", "")
            if self.peek() == " "
            else (r"\frac", "{", "", "}", "{", "", "}")
        )
        found = [self.peek(index) for index in range(len(pattern))]
        if any(want and want != got for want, got in zip(pattern, found, strict=True)):
            return None
        above, below = (
            got for want, got in zip(pattern, found, strict=True) if not want
        )
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
    return Fraction(int(whole + places or "0"), 10 ** len(places)) * Fraction(
        10
    ) ** int(exponent or 0)
