"""Reading the exact value out of a normal form: what numbers can be put together to. docs/answers.md has the rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from itertools import accumulate, product
from typing import NamedTuple

from kace.answers.calculator import CONTEXT, MAX_DEPTH, calculate, estimate
from kace.answers.exact import (
    HALF,
    INFINITY,
    MINUS_INFINITY,
    Collection,
    NoExactValue,
    Number,
    Value,
    Word,
)
from kace.answers.normalize import NUMBER_WORDS, depth

_NAMED = re.compile(
    r"(\((?:[A-Za-z], )*[A-Za-z]\)|[A-Za-z](?:_\{\w+\})?|(?:m?\\angle ?)?[A-Z]{1,3}|\\[a-z]+(?:_\{\w+\})?|"
    r"\\text\{[^{}]*\})(?:=|\\in(?![A-Za-z]))(.+)",
    re.DOTALL,
)
_LONE = re.compile(  # the name of an unknown where a relation says something of it
    r"(?<![A-Za-z_{\\])([A-Za-z]|\\(?:alpha|beta|theta|lambda|mu|phi|omega))(?:_\{\w+\})?(?=[=<>]|\\(?:in|[lg]eq|equiv)(?![A-Za-z]))|"
    r"(?:[<>]|\\[lg]eq ?)[\d.]*([A-Za-z])(?![A-Za-z(])|(\((?:[A-Za-z], )+[A-Za-z]\))="
)
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_MATRIX = re.compile(r"\\begin\{[pbB]?matrix\}(.+)\\end\{[pbB]?matrix\}", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z](?:_\{\w+\})?|\\(?:alpha|beta|theta|lambda|mu|phi|omega)")
_RELATION = re.compile(r"(<|>|\\[lg]eq) ?")
_BELOW = ("<", r"\leq")
_TIME = re.compile(
    r"(\d{1,2})(?::([0-5]\d(?::[0-5]\d)?))?(?:(?:\\text\{)?([ap])\.?m\.?\}?)?",
    re.IGNORECASE,
)
_CLASS = re.compile(r"(?:[A-Za-z]\\equiv ?)?(.+)\\pmod\{(\d{1,99})\}")
INTERVALS = ("()", "[]", "(]", "[)")
_OPEN = {"(": "(", "[": "[", r"\{": "{"}
_CLOSE = {")": ")", "]": "]", r"\}": "}"}


def _spelled() -> dict[str, Value]:
    """What may be given in words: whole numbers below a hundred, a half, infinity."""
    sizes = {word: Fraction(n) for word, n in NUMBER_WORDS.items()} | {
        "half": HALF,
        "one half": HALF,
    }
    for (ten, n), (one, k) in product(NUMBER_WORDS.items(), repeat=2):
        if n >= 20 and 1 <= k <= 9:
            sizes[f"{ten} {one}"] = Fraction(n + k)
    values: dict[str, Value] = {word: Number.of(size) for word, size in sizes.items()}
    values["infinity"] = INFINITY
    for minus in ("minus", "negative"):
        values |= {f"{minus} {word}": Number.of(-size) for word, size in sizes.items()}
        values[f"{minus} infinity"] = MINUS_INFINITY
    return values


_SPELLED = _spelled()


@lru_cache(maxsize=4_096)
def exact_value(form: str) -> Value | None:
    """The exact value of a normal form, where it has one. Never raises, never takes long."""
    try:
        return _answer(form) if depth(form) <= MAX_DEPTH else None
    except ArithmeticError:
        return None


@lru_cache(maxsize=4_096)
def equation(form: str) -> Number | None:
    """What a polynomial equation sets to zero, scaled so that every multiple of the equation gives the same."""
    sides = form.split("=")
    if len(sides) != 2 or "," in form:
        return None
    try:
        zero = calculate(sides[0]) - calculate(sides[1])
        if zero.constant:
            return None
        for name, power in {
            name: power
            for m, _ in zero.terms
            for name, power in m.unknowns
            if power < 0
        }.items():
            zero = zero * Number.letter(name).power(Number.of(-power))
        return zero / Number.of(zero.terms[0][1])
    except NoExactValue:
        return None


def _answer(form: str) -> Value:
    names: set[str] = set()
    values: list[Value] = []
    for item in _split(form):
        named = _NAMED.fullmatch(item)
        if named:
            names.add(re.sub(r"\d", "", named[1]))
        chain = item.count("=") > 1
        found = _alternatives(
            item.rpartition("=")[2] if chain else named[2] if named else item
        )
        if (chain or named) and any(
            isinstance(value, Number) and not value.constant for value in found
        ):
            raise NoExactValue("an equation")
        values += found
    if len(names) > 1:
        raise NoExactValue("several unknowns")
    if len(values) > 1:
        return Collection.of("," if len(set(values)) < len(values) else "{}", values)
    match values[0]:
        case Collection(delimiters="{}", items=(only,)) if (
            getattr(only, "delimiters", "") != "{}"
        ):
            return only
    return values[0]


def unknown(form: str) -> str:
    """The one unknown that a form speaks of, as `x` in `x=5`, `2x<6` and `x=1, x=2`; empty where it names none."""
    names = {"".join(found) for found in _LONE.findall(form)}
    return names.pop() if len(names) == 1 else ""


def _alternatives(item: str) -> list[Value]:
    """The values one item of an answer means."""
    if words := _WORDS.fullmatch(item):
        return [_spoken(words[1])]
    if (time := _TIME.fullmatch(item)) and (time[2] or time[3]):
        return [
            Word(
                f"{int(time[1])}:{time[2] or '00'}{f' {time[3]}m'.lower() if time[3] else ''}"
            )
        ]
    if residue := _CLASS.fullmatch(item):
        rest = calculate(residue[1]).rational
        modulus = int(residue[2])
        if rest is None or rest.denominator != 1 or not modulus:
            raise NoExactValue("no class of whole numbers")
        return [Word(f"{rest.numerator % modulus} mod {modulus}")]
    if "=" in item:
        values = [_value(side) for side in item.split("=")]
        if (
            len(set(values)) > 1
            or not isinstance(values[0], Number)
            or not values[0].constant
        ):
            raise NoExactValue("an equation")
        return values[:1]
    if len(re.findall(r"\\pm(?![A-Za-z])", item)) == 1:
        both = (_value(item.replace(r"\pm", sign).removeprefix("+")) for sign in "+-")
        return list(dict.fromkeys(both))
    return [_value(item)]


def _spoken(text: str) -> Value:
    """Words without case and punctuation; what calculates or compares stays. A small number may be spelled out."""
    kept = re.sub(
        r"(?<=[A-Za-z])[-'](?=[A-Za-z])|(?<!\d)[.:]|[.:](?!\d)|[^A-Za-z0-9<>=+*/%^.: -]",
        "",
        text,
    )
    kept = " ".join(kept.casefold().split())
    if not re.search(r"[a-z0-9]", kept):
        raise NoExactValue("no words")
    return _SPELLED.get(
        " ".join(re.sub(r"[-.]", " ", text.casefold()).split())
    ) or Word(kept)


def _value(text: str) -> Value:
    infinite = {
        r"\infty": INFINITY,
        r"+\infty": INFINITY,
        r"-\infty": MINUS_INFINITY,
    }.get(text)
    if infinite:
        return infinite
    if r"\cup" in text:
        return union([_value(part) for part in re.split(r"\\cup ?", text)])
    if len(sides := _RELATION.split(text)) > 1:
        return _inequality(sides)
    if matrix := _MATRIX.fullmatch(text):
        rows = [
            [calculate(cell) for cell in row.split("&")]
            for row in matrix[1].split(r"\\")
            if row
        ]
        return Collection.of("matrix", [Collection.of("row", row) for row in rows])
    opening = re.match(r"\(|\[|\\\{", text)
    closing = re.search(r"\)|\]|\\\}$", text[-2:])
    if opening and closing:
        inner = text[opening.end() : len(text) - len(closing[0])]
        items = _split(inner) if _balanced(inner) else []
        braces = _OPEN[opening[0]] + _CLOSE[closing[0]]
        if braces == "{}" and items:
            return Collection.of(
                "{}", [value for item in items for value in _alternatives(item)]
            )
        if len(items) > 1 and braces in INTERVALS:
            return Collection.of(braces, [_value(item) for item in items])
    return calculate(text)


def _inequality(sides: list[str]) -> Value:
    """The interval of a linear inequality, or of `a<x<b`; `sides` alternates between expressions and signs."""
    if len(sides) == 3:
        low_end, bound = _solved(
            calculate(sides[0]) - calculate(sides[2]), sides[1] in _BELOW
        )
        ends: tuple[Value, Value] = (
            (bound, INFINITY) if low_end else (MINUS_INFINITY, bound)
        )
        closed = len(sides[1]) > 1
        return _between(*ends, closed and low_end, closed and not low_end)
    if (
        len(sides) != 5
        or not _NAME.fullmatch(sides[2])
        or (sides[1] in _BELOW) != (sides[3] in _BELOW)
    ):
        raise NoExactValue("not the range of one unknown")
    if sides[1] not in _BELOW:
        sides.reverse()
    low = calculate(sides[0])
    high = calculate(sides[4])
    return union([_between(low, high, len(sides[1]) > 1, len(sides[3]) > 1)])


def _solved(difference: Number, below: bool) -> tuple[bool, Number]:
    """Where a linear polynomial in one unknown changes sign, and whether that bounds the unknown from below."""
    unknowns = [term for term in difference.terms if not Number((term,)).constant]
    if len(unknowns) != 1:
        raise NoExactValue("not in one unknown")
    monomial, slope = unknowns[0]
    if (
        monomial.imaginary
        or monomial.roots
        or len(monomial.unknowns) != 1
        or monomial.unknowns[0][1] != 1
    ):
        raise NoExactValue("not linear in one unknown")
    rest = difference - Number((unknowns[0],))
    return (slope < 0) == below, rest / Number.of(-slope)


def _split(text: str) -> list[str]:
    """Split at the commas outside all brackets."""
    items = []
    depth = 0
    start = 0
    for match in re.finditer(r"\\[{}]|[()\[\]{},]", text):
        if match[0] != ",":
            depth += 1 if match[0] in ("(", "[", "{", r"\{") else -1
        elif depth == 0:
            items.append(text[start : match.start()].strip())
            start = match.end()
    return [*items, text[start:].strip()]


def _balanced(text: str) -> bool:
    steps = (
        1 if match[0] in _OPEN else -1
        for match in re.finditer(r"\\[{}]|[()\[\]]", text)
    )
    depths = list(accumulate(steps, initial=0))
    return min(depths) >= 0 == depths[-1]


class _Interval(NamedTuple):
    low: Value
    high: Value
    with_low: bool
    with_high: bool


def union(parts: Sequence[Value]) -> Value:
    """The union of intervals, finite sets and numbers; intervals that end before they start are empty."""
    intervals = [interval for part in parts for interval in _intervals(part)]
    if not intervals:
        raise NoExactValue("empty")
    intervals.sort(key=cmp_to_key(_by_start))
    merged: list[_Interval] = []
    for interval in intervals:
        gap = _order(interval.low, merged[-1].high) if merged else 1
        if gap > 0 or (gap == 0 and not (merged[-1].with_high or interval.with_low)):
            merged.append(interval)
            continue
        last = merged[-1]
        order = _order(merged[-1].high, interval.high)
        with_high = (last.with_high and order >= 0) or (
            interval.with_high and order <= 0
        )
        merged[-1] = last._replace(
            high=last.high if order >= 0 else interval.high, with_high=with_high
        )
    values = [
        i.low if i.low == i.high else _between(i.low, i.high, i.with_low, i.with_high)
        for i in merged
    ]
    if len(values) == 1:
        return values[0]
    return Collection.of(
        "union" if any(isinstance(value, Collection) for value in values) else "{}",
        values,
    )


def _by_start(a: _Interval, b: _Interval) -> int:
    return _order(a.low, b.low) or b.with_low - a.with_low


def _between(low: Value, high: Value, with_low: bool, with_high: bool) -> Collection:
    return Collection.of("(["[with_low] + ")]"[with_high], (low, high))


def _intervals(part: Value) -> list[_Interval]:
    if isinstance(part, Number):
        return [_Interval(part, part, True, True)]
    if isinstance(part, Collection) and part.delimiters == "{}":
        return [interval for item in part.items for interval in _intervals(item)]
    if (
        not isinstance(part, Collection)
        or part.delimiters not in INTERVALS
        or len(part.items) != 2
    ):
        raise NoExactValue("not an interval")
    low, high = part.items
    closed = part.delimiters[0] == "[", part.delimiters[1] == "]"
    order = _order(low, high)
    return (
        [_Interval(low, high, *closed)]
        if order < 0 or (order == 0 and all(closed))
        else []
    )


def _order(left: Value, right: Value) -> int:
    """Negative, zero or positive, as `left` is below, at or above `right`."""
    if left == right:
        return 0
    if isinstance(left, Number) and isinstance(right, Number):
        return _sign(left - right)
    below = left == MINUS_INFINITY or right == INFINITY
    above = left == INFINITY or right == MINUS_INFINITY
    if below == above:
        raise NoExactValue("not on the real line")
    return -1 if below else 1


def _sign(number: Number) -> int:
    """The sign of a real number that is not zero, by its estimate."""
    parts = [
        estimate(str(Number((term,)))) if number.constant else None
        for term in number.terms
    ]
    with localcontext(CONTEXT):
        found = [part for part in parts if part is not None]
        total = sum(found, Decimal(0))
        size = sum(map(abs, found), Decimal(0))
        if len(found) < len(parts) or abs(total) * 10**38 <= size:
            raise NoExactValue("not a real number, or too close to tell")
    return 1 if total > 0 else -1
