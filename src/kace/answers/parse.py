"""Read the exact value of a normal form. docs/answers.md has the rules."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from kace.answers.exact import (
    HALF,
    INFINITY,
    INTERVALS,
    MINUS_INFINITY,
    PI_NAME,
    Collection,
    NoExactValue,
    Number,
    Value,
    Word,
    interval,
    union,
)
from kace.answers.normalize import NUMBER_WORDS, balanced, depth

MAX_DEPTH = 24
MAX_TOKENS = 256

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
_MATRIX = re.compile(r"\\begin\{[pbB]?matrix\}(.+)\\end\{[pbB]?matrix\}", re.DOTALL)
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
        return Collection.of("," if len(set(values)) < len(values) else "{}", values)
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
    kept = re.sub(r"(?<=[A-Za-z])[-'](?=[A-Za-z])|(?<!\d)[.:]|[.:](?!\d)", "", text)
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
