"""How much a value says by itself: 3 is everywhere, 180 in every text on geometry, 142 hardly anywhere."""

from __future__ import annotations

import re
from enum import IntEnum
from fractions import Fraction

from kace.answers.exact import INFINITY, MINUS_INFINITY, Collection, Number, Value
from kace.answers.extract import Answer

SMALL = 12
"""Whole numbers up to this, and simple fractions, occur in any formula and in any small example."""
PLAIN = 99
CUSTOMARY_WHOLE = frozenset((24, 30, 45, 60, 90, 100, 120, 180, 270, 360, 365, 1_000, 10_000, 1_000_000))


class Weight(IntEnum):
    """How much a value says by itself."""

    SMALL = 0
    CUSTOMARY = 1
    """A number that mathematics and units use all the time: 180, 60, the sine of 45 degrees."""
    PLAIN = 2
    """Any other whole number of two digits, and any longer formula with letters."""
    DISTINCT = 3


_VALUES = r"""
    \sqrt2 \sqrt3 \sqrt5 \frac{\sqrt2}2 \frac{\sqrt3}2 \frac{\sqrt3}3 \frac{\sqrt3}4 \frac{1+\sqrt5}2 \frac{1-\sqrt5}2
    \pi 2\pi 4\pi \frac{\pi}2 \frac{\pi}3 \frac{\pi}4 \frac{\pi}6 \frac43\pi \frac13\pi i
"""
_CUSTOMARY = frozenset(Answer.of(text).key for text in _VALUES.split())
_DULL: frozenset[Value] = frozenset((INFINITY, MINUS_INFINITY, *(Number.of(n) for n in (-1, 0, 1))))


def weight_of(value: Value | None, form: str = "") -> Weight:
    """How much a value says by itself; `form` is what is known where there is no exact value."""
    match value:
        case Number():
            return _weight_of_number(value)
        case Collection(delimiters="{}", items=items):
            heaviest = max(map(weight_of, items), default=Weight.SMALL)
            return Weight.DISTINCT if heaviest > Weight.CUSTOMARY else heaviest
        case Collection(items=items):
            return Weight.SMALL if all(item in _DULL for item in items) else Weight.DISTINCT
    return Weight.PLAIN if len(form) > 5 and re.search(r"\d", form) else Weight.SMALL


def rational_weight(value: Fraction) -> Weight:
    """How much a rational number says by itself."""
    size = abs(value)
    if size.denominator > 1:
        simple = max(size.numerator, size.denominator) <= 4 or (size.numerator == 1 and size.denominator <= SMALL)
        return Weight.SMALL if simple else Weight.DISTINCT
    if size <= SMALL:
        return Weight.SMALL
    if size in CUSTOMARY_WHOLE:
        return Weight.CUSTOMARY
    return Weight.PLAIN if size <= PLAIN else Weight.DISTINCT


def _weight_of_number(value: Number) -> Weight:
    if (rational := value.rational) is not None:
        return rational_weight(rational)
    if value.constant:
        return Weight.CUSTOMARY if f"={value}" in _CUSTOMARY else Weight.DISTINCT
    telling = len(value.terms) > 2 or any(rational_weight(factor) > Weight.CUSTOMARY for _, factor in value.terms)
    return Weight.PLAIN if telling else Weight.SMALL  # a formula may be both an answer and the rule to be learnt
