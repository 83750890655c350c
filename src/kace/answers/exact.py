"""Exact values of normal forms: numbers, polynomials, and the structures made of them.

A number is a sum of terms `q * b1^e1 * b2^e2 * ...`. The factor `q` is rational. A base
is a prime or -1 with an exponent between 0 and 1, pi with a rational exponent, or the
name of an unknown with a whole exponent; the imaginary unit is -1 to the power 1/2.
Such products are linearly independent over the rationals, so equal values have equal
terms. Every size is bounded, and what does not fit raises `NoExactValue`.

docs/answers.md has the rules by which a normal form is read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from itertools import chain
from typing import NamedTuple

from kace.answers.normalize import NUMBER_WORDS, balanced, depth

MAX_DEPTH = 24  # of nested brackets
MAX_TOKENS = 256
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

    terms: tuple[
        tuple[Monomial, Fraction], ...
    ]  # sorted; no coefficient is zero

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
        return Number(
            tuple((monomial, -factor) for monomial, factor in self.terms)
        )

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
                    raise NoExactValue(
                        "a sum with higher roots in a denominator"
                    )
        root = min(set(first) ^ set(second))
        terms = [
            (each, -factor if root in each else factor)
            for each, factor in self.terms
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
            raise NoExactValue(
                "a root of a sum, an unknown or an imaginary number"
            )
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
        above, primes_above = root_of_integer(
            abs(coefficient.numerator), degree
        )
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
        if (
            value is None
            or value.denominator != 1
            or not 0 <= value <= MAX_FACTORIAL
        ):
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
                factors.insert(
                    0, rf"\frac{{{size.numerator}}}{{{size.denominator}}}"
                )
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
    return [
        (base == -1, isinstance(base, str), base, e) for base, e in monomial
    ]


def _unknowns(monomial: Monomial) -> Monomial:
    return tuple(pair for pair in monomial if isinstance(pair[0], str))


def _number(terms: Mapping[Monomial, Fraction]) -> Number:
    """Return the number of some terms, sorted and without zeros."""
    bits = 0
    kept = []
    for monomial, factor in terms.items():
        if factor:
            kept.append((monomial, factor))
            bits += (
                factor.numerator.bit_length() + factor.denominator.bit_length()
            )
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
def root_of_integer(
    value: int, degree: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
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


def interval(
    low: Value, high: Value, with_low: bool, with_high: bool
) -> Collection:
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
    values = [
        each.low if each.low == each.high else interval(*each)
        for each in merged
    ]
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
    found = _Interval(
        low, high, part.delimiters[0] == "[", part.delimiters[1] == "]"
    )
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


# Reading


_NAMED = re.compile(
    r"""(
        \((?:[A-Za-z],\ )*[A-Za-z]\)         # (x, y)
      | [A-Za-z](?:_\{\w+\})?                # x_{1}
      | (?:m?\\angle\ ?)?[A-Z]{1,3}          # \angle ABC
      | \\[a-z]+(?:_\{\w+\})?                # \theta
      | \\text\{[^{}]*\}
    )(?:=|\\in(?![A-Za-z]))(.+)""",
    re.DOTALL | re.VERBOSE,
)
_GREEK_NAME = r"\\(?:alpha|beta|theta|lambda|mu|phi|omega)"
_STATED = re.compile(  # the name of an unknown that a relation is about
    rf"""(?<![A-Za-z_{{\\])([A-Za-z]|{_GREEK_NAME})(?:_\{{\w+\}})?
        (?=[=<>]|\\(?:in|[lg]eq|equiv)(?![A-Za-z]))
      | (?:[<>]|\\[lg]eq\ ?)[\d.]*([A-Za-z])(?![A-Za-z(])
      | (\((?:[A-Za-z],\ )+[A-Za-z]\))=""",
    re.VERBOSE,
)
_NAME = re.compile(rf"[a-zA-Z](?:_\{{\w+\}})?|{_GREEK_NAME}")
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_MATRIX = re.compile(
    r"\\begin\{[pbB]?matrix\}(.+)\\end\{[pbB]?matrix\}", re.DOTALL
)
_BRACKETED = re.compile(r"(\(|\[|\\\{)(.*)(\)|\]|\\\})", re.DOTALL)
_OPENING = ("(", "[", r"\{")
_CLOSING = (")", "]", r"\}")
_RELATION = re.compile(r"(<|>|\\[lg]eq) ?")
_BELOW = ("<", r"\leq")
_SIGNS = re.compile(r"\\pm(?![A-Za-z])")
_TIME = re.compile(
    r"(\d{1,2})(?::([0-5]\d(?::[0-5]\d)?))?(?:(?:\\text\{)?([ap])\.?m\.?\}?)?",
    re.IGNORECASE,
)
_CLASS = re.compile(r"(?:[A-Za-z]\\equiv ?)?(.+)\\pmod\{(\d{1,99})\}")
_INFINITIES = {
    r"\infty": INFINITY,
    r"+\infty": INFINITY,
    r"-\infty": MINUS_INFINITY,
}


@lru_cache(maxsize=4_096)
def exact_value(form: str) -> Value | None:
    """Return the exact value of a normal form, where it has one. Never raises."""
    try:
        return _answer(form) if depth(form) <= MAX_DEPTH else None
    except ArithmeticError:
        return None


def stated_unknown(form: str) -> str:
    """Return the one unknown that a form is about, as `x` in `x=5` and `2x<6`."""
    names = {"".join(found) for found in _STATED.findall(form)}
    return names.pop() if len(names) == 1 else ""


def _answer(form: str) -> Value:
    names: set[str] = set()
    values: list[Value] = []
    for item in _split(form):
        named = _NAMED.fullmatch(item)
        if named:
            names.add(re.sub(r"\d", "", named[1]))
        equation = named is not None or item.count("=") > 1
        if item.count("=") > 1:
            item = item.rpartition("=")[2]
        elif named:
            item = named[2]
        found = _alternatives(item)
        for value in found:
            if equation and isinstance(value, Number) and not value.constant:
                raise NoExactValue("an equation")
        values += found
    if len(names) > 1:
        raise NoExactValue("several unknowns")
    if len(values) > 1:
        return Collection.of(
            "," if len(set(values)) < len(values) else "{}", values
        )
    match values[0]:
        case Collection("{}", (Collection("{}"),)):
            return values[0]
        case Collection("{}", (only,)):
            return only
    return values[0]


def _alternatives(item: str) -> list[Value]:
    """Return the values that one item of an answer means."""
    words = _WORDS.fullmatch(item)
    if words:
        return [_phrase(words[1])]
    time = _TIME.fullmatch(item)
    if time and (time[2] or time[3]):
        half = f" {time[3].lower()}m" if time[3] else ""
        return [Word(f"{int(time[1])}:{time[2] or '00'}{half}")]
    residue = _CLASS.fullmatch(item)
    if residue:
        rest = calculate(residue[1]).rational
        modulus = int(residue[2])
        if rest is None or rest.denominator != 1 or not modulus:
            raise NoExactValue("no class of whole numbers")
        return [Word(f"{rest.numerator % modulus} mod {modulus}")]
    if "=" in item:
        left, right = item.split("=")
        value = calculate(left)
        if value != calculate(right) or not value.constant:
            raise NoExactValue("an equation")
        return [value]
    if len(_SIGNS.findall(item)) == 1:
        plus = _value(item.replace(r"\pm", "+").removeprefix("+"))
        minus = _value(item.replace(r"\pm", "-"))
        return [plus] if plus == minus else [plus, minus]
    return [_value(item)]


def _phrase(text: str) -> Value:
    """Return words without case and punctuation, or the number that they spell."""
    kept = re.sub(
        r"(?<=[A-Za-z])[-'](?=[A-Za-z])|(?<!\d)[.:]|[.:](?!\d)", "", text
    )
    kept = re.sub(r"[^A-Za-z0-9<>=+*/%^.: -]", "", kept)
    kept = " ".join(kept.casefold().split())
    if not re.search(r"[a-z0-9]", kept):
        raise NoExactValue("no words")
    return _spelled_number(text) or Word(kept)


def _spelled_sizes() -> dict[str, Fraction]:
    """Return a half and the whole numbers below a hundred by their words."""
    sizes = {"half": HALF, "one half": HALF}
    ones = list(NUMBER_WORDS)[1:10]
    for word, number in NUMBER_WORDS.items():
        sizes[word] = Fraction(number)
        if number >= 20:
            for size, one in enumerate(ones, start=1):
                sizes[f"{word} {one}"] = Fraction(number + size)
    return sizes


_SIZES = _spelled_sizes()


def _spelled_number(text: str) -> Value | None:
    """Return a small number or infinity given in words."""
    words = " ".join(re.sub(r"[-.]", " ", text.casefold()).split())
    size, negative = re.subn(r"^(?:minus|negative) ", "", words)
    if size == "infinity":
        return MINUS_INFINITY if negative else INFINITY
    if size not in _SIZES:
        return None
    return Number.of(-_SIZES[size] if negative else _SIZES[size])


def _value(text: str) -> Value:
    """Return one value: a number, an interval, a union, a matrix or a collection."""
    if text in _INFINITIES:
        return _INFINITIES[text]
    if r"\cup" in text:
        return union([_value(part) for part in re.split(r"\\cup ?", text)])
    sides = _RELATION.split(text)
    if len(sides) > 1:
        return _inequality(sides)
    matrix = _MATRIX.fullmatch(text)
    if matrix:
        rows = []
        for row in filter(None, matrix[1].split(r"\\")):
            rows.append(Collection.of("row", map(calculate, row.split("&"))))
        return Collection.of("matrix", rows)
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed and balanced(bracketed[2], _OPENING, _CLOSING):
        delimiters = (bracketed[1] + bracketed[3]).replace("\\", "")
        items = _split(bracketed[2])
        if delimiters == "{}":
            values = [value for item in items for value in _alternatives(item)]
            return Collection.of("{}", values)
        if len(items) > 1 and delimiters in INTERVALS:
            return Collection.of(delimiters, map(_value, items))
    return calculate(text)


def _inequality(sides: list[str]) -> Value:
    """Return the interval of a linear inequality, or of `a<x<b`.

    `sides` alternates between expressions and signs.
    """
    below = sides[1] in _BELOW
    closed = len(sides[1]) > 1
    if len(sides) == 3:
        bound, slope = _root(calculate(sides[0]) - calculate(sides[2]))
        if (slope < 0) == below:
            return interval(bound, INFINITY, closed, False)
        return interval(MINUS_INFINITY, bound, False, closed)
    if len(sides) != 5 or not _NAME.fullmatch(sides[2]):
        raise NoExactValue("not the range of one unknown")
    if (sides[3] in _BELOW) != below:
        raise NoExactValue("two relations that point apart")
    if not below:
        sides.reverse()
    low = calculate(sides[0])
    high = calculate(sides[4])
    return union([interval(low, high, len(sides[1]) > 1, len(sides[3]) > 1)])


def _root(polynomial: Number) -> tuple[Number, Fraction]:
    """Return the root and the slope of a linear polynomial in one unknown."""
    terms = [term for term in polynomial.terms if not Number((term,)).constant]
    if len(terms) != 1:
        raise NoExactValue("not in one unknown")
    monomial, slope = terms[0]
    if len(monomial) != 1 or monomial[0][1] != 1:
        raise NoExactValue("not linear in one unknown")
    rest = polynomial - Number((terms[0],))
    return rest / Number.of(-slope), slope


def _split(text: str) -> list[str]:
    """Split at the commas outside all brackets."""
    items = []
    level = 0
    start = 0
    for match in re.finditer(r"\\[{}]|[()\[\]{},]", text):
        if match[0] == "{" or match[0] in _OPENING:
            level += 1
        elif match[0] != ",":
            level -= 1
        elif level == 0:
            items.append(text[start : match.start()].strip())
            start = match.end()
    items.append(text[start:].strip())
    return items


# Arithmetic: one number or polynomial


_TOKEN = re.compile(
    r"""
    0x[0-9A-Fa-f]+ | 0b[01]+
  | \d+_\{[^{}]*\}                                               # a base
  | (?<![0-9A-Za-z])[0-9A-Z]{2,}_\{(?:1[1-9]|[23]\d)\}           # its digits may be letters
  | \d+(?:\ \d+/\d+|\\frac\{\d+\}\{\d+\})                        # a mixed number
  | \d*\.\d*\\overline\{\d+\}                                    # repeating digits
  | \d+\.\d+[eE][+-]?\d+ | \d+(?:E[+-]?|e(?=\d)|e[+-](?=0))\d+   # `2e-1` is twice e, less one
  | \d+(?:\.\d*)? | \.\d+
  | \\[A-Za-z]+\ ? | \\. | .
    """,
    re.DOTALL | re.VERBOSE,
)
_FACTORS = frozenset(("(", "{", PI_NAME, r"\frac", r"\sqrt", r"\binom"))
_GREEK = frozenset(
    (
        r"\alpha",
        r"\beta",
        r"\gamma",
        r"\delta",
        r"\theta",
        r"\lambda",
        r"\mu",
        r"\nu",
        r"\rho",
        r"\sigma",
        r"\tau",
        r"\phi",
        r"\varphi",
        r"\psi",
        r"\omega",
    )
)
_FUNCTION_LETTERS = frozenset("fghABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Letters that name a function when a bracket follows."""


def calculate(text: str) -> Number:
    """Return the value of a number or polynomial; raise `NoExactValue` without one."""
    arithmetic = _Arithmetic(text)
    result = arithmetic.sum()
    if arithmetic.peek():
        raise NoExactValue("something is left over")
    return result


class _Arithmetic:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = [
            token.strip() or token for token in _TOKEN.findall(text)
        ]
        self.tokens.append("")  # the end
        self.position = 0
        if len(self.tokens) > MAX_TOKENS:
            raise NoExactValue("too long")

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

    def sum(self) -> Number:
        total = self.product()
        while self.peek() in ("+", "-"):
            sign = self.take()
            term = self.product()
            total = total + term if sign == "+" else total - term
        return total

    def product(self) -> Number:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        result = self.power()
        while True:
            if self.skip(r"\cdot"):
                negative ^= self.skip("-")
                result = result * self.power()
            elif self.skip("/"):
                negative ^= self.skip("-")
                result = result / self.power()
                if self.starts_factor():
                    raise NoExactValue("a/bc has two readings")
            elif self.starts_factor() and not self.between_digits():
                result = result * self.power()
            else:
                return -result if negative else result

    def starts_factor(self) -> bool:
        token = self.peek()
        return token[:1].isalnum() or token in _FACTORS or token in _GREEK

    def between_digits(self) -> bool:
        before = self.tokens[self.position - 1]
        return before[-1].isdigit() and self.peek()[0].isdigit()

    def power(self) -> Number:
        base = self.factor()
        while self.peek() in ("!", "%"):
            mark = self.take()
            base = base.factorial() if mark == "!" else base / Number.of(100)
            if self.peek() == "!":
                raise NoExactValue("a double factorial is another function")
        return base.power(self.group()) if self.skip("^") else base

    def factor(self) -> Number:
        token = self.take()
        match token:
            case "(":
                return self.inside(")")
            case "{":
                return self.inside("}")
            case r"\frac":
                return self.group() / self.group()
            case r"\binom":
                return self.group().choose(self.group())
            case r"\sqrt":
                degree = "2"
                if self.skip("["):
                    degree = self.take()
                    self.take("]")
                if not re.fullmatch(r"\d\d?", degree):
                    raise NoExactValue("a root of no whole degree")
                return self.group().root(int(degree))
        if token.isdecimal() or (len(token) > 1 and token[0] != "\\"):
            return Number.of(self.literal(token))
        return self.unknown(token)

    def group(self) -> Number:
        self.take("{")
        return self.inside("}")

    def inside(self, closing: str) -> Number:
        inner = self.sum()
        self.take(closing)
        return inner

    def unknown(self, name: str) -> Number:
        """Return a letter, unless it is applied to something."""
        letter = len(name) == 1 and name.isascii() and name.isalpha()
        if not letter and name not in _GREEK and name != PI_NAME:
            raise NoExactValue("not a number")
        if self.peek() == "(" and name in _FUNCTION_LETTERS:
            raise NoExactValue("a function")
        if self.skip("_"):
            self.take("{")
            name = f"{name}_{{{self.take()}}}"
            self.take("}")
        return Number.letter(name)

    def literal(self, token: str) -> Fraction:
        """Return the value of a written number."""
        following = self.peek()[:1]
        if token[:2] in ("0x", "0b"):
            return Fraction(int(token, 0))
        if "_" in token:
            return Fraction(_in_base(*token[:-1].split("_{")))
        if r"\overline" in token:
            if following.isdigit() or following == "(":
                raise NoExactValue("digits after what has no end")
            return _repeating(*token[:-1].split(r"\overline{"))
        if "/" in token or r"\frac" in token:
            if following and following in "^!_":
                raise NoExactValue("a power of a mixed number has two readings")
            return _mixed(token)
        return _decimal(token)


def _in_base(digits: str, base: str) -> int:
    if not re.fullmatch(r"\d\d?", base) or not 2 <= int(base) <= 36:
        raise NoExactValue("no such base")
    try:
        return int(digits, int(base))
    except ValueError:
        raise NoExactValue("a digit that the base does not have") from None


def _repeating(start: str, period: str) -> Fraction:
    places = len(start.partition(".")[2])
    tail = Fraction(int(period), (10 ** len(period) - 1) * 10**places)
    return _decimal(start) + tail


def _mixed(token: str) -> Fraction:
    whole, above, below = map(int, re.findall(r"\d+", token))
    if 0 < above < below:
        return whole + Fraction(above, below)
    if " " in token or not below:
        raise NoExactValue("two numbers side by side")
    return whole * Fraction(above, below)


def _decimal(token: str) -> Fraction:
    exponent = token.lower().partition("e")[2]
    if len(exponent) > 4:
        raise NoExactValue("exponent too large")
    return Fraction(token)
