r"""The arithmetic of written numbers and polynomials: recursive descent over a normal form, and nothing else.

* A whole number before a proper fraction is a mixed number: `3\frac{1}{2}` and `3 1/2` are 7/2. `2\frac{\pi}{3}` is a
  product.
* `a/bc` has two readings and no exact value. A decimal is exact: 0.333 is not 1/3; `0.\overline{3}` is.
* `50%` is 1/2. `1103_{6}` is the number with these digits in base 6. `i` is the imaginary unit.
* Letters are unknowns, so `(x-1)(x+1)` is `x^{2}-1`; `e`, functions and `f(x)` have no exact value.

The same grammar serves two arithmetics: the exact one here, and the estimates of `kace.answers.estimate`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeVar

from kace.answers import exact
from kace.answers.exact import IMAGINARY_UNIT, Number
from kace.answers.radicals import NoExactValue

MAX_DEPTH = 24
MAX_TOKENS = 256

_TOKEN = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+(?!\d))?|\.\d+|\\[A-Za-z]+ ?|\\.|.", re.DOTALL)
_FACTORS = (
    "(",
    "{",
    r"\pi",
    r"\frac",
    r"\sqrt",
    r"\binom",
    r"\ln",
    r"\sin",
    r"\cos",
    r"\tan",
    r"\cot",
    r"\sec",
    r"\csc",
)
_GREEK = frozenset(
    re.findall(r"\\\w+", r"\alpha\beta\gamma\delta\theta\lambda\mu\nu\rho\sigma\tau\phi\varphi\psi\omega")
)
_FUNCTIONS = frozenset("fghABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FUNCTION = frozenset((r"\ln", r"\sin", r"\cos", r"\tan", r"\cot", r"\sec", r"\csc"))


class Quantity(Protocol):
    """What can be calculated with."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __mul__(self, other: Self, /) -> Self: ...
    def __truediv__(self, other: Self, /) -> Self: ...
    def power(self, exponent: Self, /) -> Self:
        """The quantity to a power."""
        ...

    def root(self, degree: int, /) -> Self:
        """A root of the quantity."""
        ...


Q = TypeVar("Q", bound=Quantity)


class Arithmetic(Protocol[Q]):
    """Where quantities come from. What it cannot give raises `NoExactValue`."""

    def of(self, value: Fraction) -> Q:
        """A rational number."""
        ...

    def unknown(self, name: str) -> Q:
        """What a letter stands for; pi, `e` and `i` among them."""
        ...

    def factorial(self, number: Q) -> Q:
        """A factorial."""
        ...

    def binomial(self, upper: Q, lower: Q) -> Q:
        """A binomial coefficient."""
        ...

    def function(self, name: str, argument: Q) -> Q:
        """A named function of a quantity."""
        ...


class Exact:
    """The arithmetic of exact numbers."""

    def of(self, value: Fraction) -> Number:
        """A rational number."""
        return Number.of(value)

    def unknown(self, name: str) -> Number:
        """A letter; `e` and infinity are none."""
        if name in ("e", r"\infty"):
            raise NoExactValue("no number with an exact value")
        return IMAGINARY_UNIT if name == "i" else exact.unknown(name)

    def factorial(self, number: Number) -> Number:
        """A small factorial."""
        return exact.factorial(number)

    def binomial(self, upper: Number, lower: Number) -> Number:
        """A small binomial coefficient."""
        return exact.binomial(upper, lower)

    def function(self, name: str, argument: Number) -> Number:
        """Functions are left to algebra."""
        raise NoExactValue(f"a value of {name}")


def calculate(text: str, arithmetic: Arithmetic[Q]) -> Q:
    """The value of a number or polynomial; `NoExactValue` where the text is not one, or has none."""
    return _Calculator(text, arithmetic).value()


class _Calculator(Generic[Q]):
    """Recursive descent over one number; every way out but a number is `NoExactValue`."""

    def __init__(self, text: str, arithmetic: Arithmetic[Q]) -> None:
        self.arithmetic = arithmetic
        self.tokens = [token.strip() or token for token in _TOKEN.findall(text)]
        self.position = 0
        self.depth = 0
        if len(self.tokens) > MAX_TOKENS:
            raise NoExactValue("too long")

    def value(self) -> Q:
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
            if token == r"\cdot":
                self.take()
                result = result * self.signed_power()
            elif token == "/":
                self.take()
                result = result / self.signed_power()
                if self.starts_factor():
                    raise NoExactValue("a/bc has two readings")
            elif self.starts_factor() and not (token[0].isdigit() and self.peek(-1)[-1:].isdigit()):
                result = result * self.power()
            else:
                break
        return -result if negative else result

    def signed_power(self) -> Q:
        return -self.power() if self.skip("-") else self.power()

    def starts_factor(self) -> bool:
        token = self.peek()
        return token[:1].isalnum() or token in _FACTORS or token in _GREEK

    def power(self) -> Q:
        base = self.factor()
        while self.peek() in ("!", "%"):
            base = self.arithmetic.factorial(base) if self.take() == "!" else base / self.arithmetic.of(Fraction(100))
            if self.peek() == "!":
                raise NoExactValue("a double factorial is another function")
        if self.skip("^"):
            return base.power(self.group())
        return base

    def factor(self) -> Q:
        token = self.take()
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return self.numeral(token)
        match token:
            case "(" | "{":
                inner = self.sum()
                self.take(")" if token == "(" else "}")
                return inner
            case r"\frac":
                return self.group() / self.group()
            case r"\binom":
                return self.arithmetic.binomial(self.group(), self.group())
            case r"\sqrt":
                return self.root()
        return self.function(token) if token in _FUNCTION else self.unknown(token)

    def function(self, name: str) -> Q:
        """A function, its power before its argument; without brackets the argument is `x`, `2x` or a fraction."""
        self.deeper()
        power = self.group() if self.skip("^") else None
        first = self.peek()
        argument = self.factor() if first in ("(", "{") else self.power()
        if first.isdigit() and (self.peek().isalpha() or self.peek() == exact.PI_NAME):
            argument = argument * self.power()
        if (self.starts_factor() and self.peek() not in _FUNCTION) or self.peek() == "^":
            raise NoExactValue("an argument that may end in two places")
        self.depth -= 1
        value = self.arithmetic.function(name, argument)
        return value.power(power) if power is not None else value

    def unknown(self, name: str) -> Q:
        """A letter, but not one that is applied to something."""
        if (
            name not in _GREEK
            and name not in (exact.PI_NAME, r"\infty")
            and not (len(name) == 1 and name.isascii() and name.isalpha())
        ):
            raise NoExactValue("not a number")
        if self.peek() == "(" and name in _FUNCTIONS:
            raise NoExactValue("a function")
        if self.skip("_"):
            self.take("{")
            name += f"_{{{self.take()}}}"
            self.take("}")
        return self.arithmetic.unknown(name)

    def group(self) -> Q:
        self.take("{")
        inner = self.sum()
        self.take("}")
        return inner

    def root(self) -> Q:
        degree = 2
        if self.skip("["):
            token = self.take()
            degree = int(token) if token.isdigit() and len(token) < 3 else 0
            self.take("]")
        return self.group().root(degree)

    def numeral(self, token: str) -> Q:
        """A literal and what may hang on it: a base, a repeating tail, the fraction of a mixed number."""
        if self.peek() == "_":
            return self.based(token)
        if self.peek() == r"\overline" and "." in token:
            return self.repeating(token)
        mixed = self.fraction_after(token)
        return self.arithmetic.of(_decimal(token)) + mixed if mixed else self.arithmetic.of(_decimal(token))

    def based(self, token: str) -> Q:
        self.take("_")
        self.take("{")
        base = self.take()
        self.take("}")
        if not base.isdigit() or len(base) > 2 or not 2 <= int(base) <= 36:
            raise NoExactValue("no such base")
        try:
            return self.arithmetic.of(Fraction(int(token, int(base))))
        except ValueError:
            raise NoExactValue("a digit that the base does not have") from None

    def repeating(self, token: str) -> Q:
        self.take(r"\overline")
        self.take("{")
        tail = self.take()
        self.take("}")
        if not tail.isdigit():
            raise NoExactValue("not digits")
        places = len(token.partition(".")[2])
        period = Fraction(int(tail), (10 ** len(tail) - 1) * 10**places)
        return self.arithmetic.of(_decimal(token)) + self.arithmetic.of(period)

    def fraction_after(self, token: str) -> Q | None:
        if not token.isdigit():
            return None
        spaced = self.peek() == " "
        pattern = (" ", "", "/", "") if spaced else (r"\frac", "{", "", "}", "{", "", "}")
        found = [self.peek(index) for index in range(len(pattern))]
        if any(want and want != got for want, got in zip(pattern, found, strict=True)):
            return None
        above, below = (got for want, got in zip(pattern, found, strict=True) if not want)
        if not (above.isdigit() and below.isdigit() and 0 < int(above) < int(below)):
            return None
        self.position += len(pattern)
        if self.peek() in ("^", "!", "_"):
            raise NoExactValue("a power of a mixed number has two readings")
        return self.arithmetic.of(Fraction(int(above), int(below)))


def _decimal(token: str) -> Fraction:
    mantissa, _, exponent = token.lower().partition("e")
    if len(exponent) > 4:
        raise NoExactValue("exponent too large")
    whole, _, places = mantissa.partition(".")
    return Fraction(int(whole + places or "0"), 10 ** len(places)) * Fraction(10) ** int(exponent or 0)
