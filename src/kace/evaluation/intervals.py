"""Unions of intervals of real numbers in their only form: in order, merged where they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from kace.answers.exact import INFINITY, MINUS_INFINITY, PI_NAME, Collection, Number, Value, Word
from kace.answers.radicals import NoExactValue, integer_root

PRECISION = 256
"""Bits to which irrational numbers are bracketed before they are ordered; equal ones are known to be equal anyway."""
PI_DIGITS = 31415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679
PI = Fraction(PI_DIGITS, 10**100)
INTERVALS = ("()", "[]", "(]", "[)")


@dataclass(frozen=True, slots=True)
class _Interval:
    low: Value
    high: Value
    with_low: bool
    with_high: bool


def union(parts: Sequence[Value]) -> Value:
    """The union of intervals, finite sets and numbers; intervals that end before they start are empty."""
    intervals = [interval for part in parts for interval in _intervals(part)]
    if not intervals:
        raise NoExactValue("empty")
    intervals.sort(key=cmp_to_key(lambda a, b: _order(a.low, b.low) or b.with_low - a.with_low))
    merged: list[_Interval] = []
    for interval in intervals:
        if merged and _meets(merged[-1], interval):
            merged[-1] = _joined(merged[-1], interval)
        else:
            merged.append(interval)
    values = [_value(interval) for interval in merged]
    return values[0] if len(values) == 1 else Collection.of("union", values)


def _intervals(part: Value) -> list[_Interval]:
    if isinstance(part, Number):
        return [_Interval(part, part, True, True)]
    if isinstance(part, Collection) and part.delimiters == "{}":
        return [interval for item in part.items for interval in _intervals(item)]
    if not isinstance(part, Collection) or part.delimiters not in INTERVALS or len(part.items) != 2:
        raise NoExactValue("not an interval")
    low, high = part.items
    closed = part.delimiters[0] == "[", part.delimiters[1] == "]"
    order = _order(low, high)
    return [_Interval(low, high, *closed)] if order < 0 or (order == 0 and all(closed)) else []


def _value(interval: _Interval) -> Value:
    if interval.low == interval.high:
        return interval.low
    delimiters = ("[" if interval.with_low else "(") + ("]" if interval.with_high else ")")
    return Collection.of(delimiters, (interval.low, interval.high))


def _meets(first: _Interval, second: _Interval) -> bool:
    order = _order(second.low, first.high)
    return order < 0 or (order == 0 and (first.with_high or second.with_low))


def _joined(first: _Interval, second: _Interval) -> _Interval:
    order = _order(first.high, second.high)
    high = first.high if order >= 0 else second.high
    with_high = (first.with_high and order >= 0) or (second.with_high and order <= 0)
    return _Interval(first.low, high, first.with_low, with_high)


def _order(left: Value, right: Value) -> int:
    """Negative, zero or positive, as `left` is below, at or above `right`."""
    if left == right:
        return 0
    if isinstance(left, Word) or isinstance(right, Word):
        below = left == MINUS_INFINITY or right == INFINITY
        above = left == INFINITY or right == MINUS_INFINITY
        if below == above:
            raise NoExactValue("not on the real line")
        return -1 if below else 1
    if isinstance(left, Number) and isinstance(right, Number):
        return _sign(left - right)
    raise NoExactValue("not on the real line")


def _sign(number: Number) -> int:
    """The sign of a real number that is not zero."""
    total = size = Fraction(0)
    for monomial, coefficient in number.terms:
        if monomial.imaginary or any(name != PI_NAME for name, _ in monomial.unknowns):
            raise NoExactValue("not a real number")
        term = coefficient
        for _, power in monomial.unknowns:
            if abs(Fraction(power)) > 8:
                raise NoExactValue("too high a power of pi")
            term *= _root(PI ** abs(power.numerator), power.denominator) ** (1 if power > 0 else -1)
        for prime, exponent in monomial.roots:
            term *= _root(Fraction(prime) ** exponent.numerator, exponent.denominator)
        total, size = total + term, size + abs(term)
    if abs(total) * (1 << (PRECISION // 2)) <= size:
        raise NoExactValue("too close to tell apart")
    return 1 if total > 0 else -1


def _root(value: Fraction, degree: int) -> Fraction:
    scaled = (value.numerator << (PRECISION * degree)) // value.denominator
    return Fraction(integer_root(scaled, degree), 1 << PRECISION)
