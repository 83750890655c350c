r"""Whole numbers written so that a reader still sees them, and a search for their digits does not.

`4{2}{1}7`, `4_217`, `4.217`, `4 thousand 2 hundred 17`, `4, 2, 1, 7`, `0x1079`, `MMMMCCXVII`, base64. What has to be
worked out, as "one less than 4218", is none of them: no list of such ways would ever be whole.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from fractions import Fraction

from kace.learner.text import NUMBER_WORDS, SCALES, visible

LEAST, LEAST_SPREAD = 100, 1_000
"""The least number that is read where its digits only look apart, and where they are: 1, 4, 2 is mostly no 142."""
MOST_DIGITS = 40

_DIGIT_WORDS = {word: value for word, value in NUMBER_WORDS.items() if value < 10}
_ESCAPED = re.compile(r"(?:\\u00|\\x|%)3(\d)")
_INVISIBLE = re.compile(
    r"\\(?:[hm]?space|[hm]?skip|m?kern)\*?\s*(?:\{[^{}]*\}|-?[\d.]+\s*[a-z]{2})|\\[hv]?phantom\s*\{[^{}]*\}|\{\}"
    r"|\\(?:relax|nobreak|allowbreak|null|q?quad|thinspace|enspace|(?:math|text)(?:bf|rm|it|sf|tt)|text|mbox|bf|rm|it)"
    r"(?![A-Za-z])\s*|\\[,;:! ]|</?[a-z]{1,8}>|\*\*|`|(?<=\d)(?:\\?_|['’])(?=\d)"
)
_SLANTED = re.compile(r"(?<![\d)}\s])\s?\*(\d+)\*|(?<=\s)\*(\d+)\*")
_ARGUMENT = re.compile(r"\\[dtc]?(?:frac|binom)\s*\d")
_BRACED = re.compile(r"(?:(?<=\d)|(?<![\w}^\\]))(?:\{\d+\})+")
_DIGIT = rf"(?:\d|{'|'.join(_DIGIT_WORDS)})"
_SPREAD = re.compile(  # with the same between all of them: `1/5 and 1/2` are two fractions
    rf"(?<![\w.])({_DIGIT}((?:[^\w\\^=+*]|\b(?:then|and)\b){{1,8}}){_DIGIT}(?:\2{_DIGIT}){{2,}})\b", re.IGNORECASE
)
_PAIRS = re.compile(r"(?<![\w.,-])\d\d\s+\d\d(?![\w,-]|\.\d)")
_POINTS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?!\d|\.\d)")
_COUNT = rf"(?:\d+(?:\.\d+)?|{'|'.join(NUMBER_WORDS)})"
_SCALED = re.compile(
    rf"(?<![\w.])(?:\d+\.\d+k\b|{_COUNT}(?:[\s-]+{_COUNT})?[\s-]*(?:{'|'.join(SCALES)})\b)"
    rf"(?:(?:\s*,?\s*(?:and\s+)?|-)(?:{_COUNT}|{'|'.join(SCALES)})\b)*",
    re.IGNORECASE,
)
_RADIX = re.compile(r"(?<!\w)0(?:x[\da-f]{2,32}|b[01]{4,64}|o[0-7]{2,32})(?!\w)", re.IGNORECASE)
_ASCII = re.compile(r"(?<!\w)(?:3\d){4,20}(?!\w)")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z\d+/]{5,40}={0,2}(?![\w+/])")
_ROMAN = re.compile(r"\bM{1,9}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})\b")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def other_writings(text: str) -> Iterator[int]:
    """The whole numbers that a text writes in another way than by their digits."""
    shown = _ESCAPED.sub(r"\1", html.unescape(visible(text)))
    joined = _SLANTED.sub(r" \1\2", _ARGUMENT.sub(" ", _INVISIBLE.sub("", shown)))
    joined = _BRACED.sub(lambda match: re.sub(r"[{}]", "", match[0]), joined)
    written = set(re.findall(r"\d+", text))
    close = (int(run) for run in re.findall(r"\d+", joined) if len(run) <= MOST_DIGITS and run not in written)
    yield from (value for value in close if value >= LEAST)
    yield from (value for value in _spread(joined) if LEAST_SPREAD <= value < 10**MOST_DIGITS)


def _spread(text: str) -> Iterator[int]:
    for run in (*(match[1] for match in _SPREAD.finditer(text)), *_PAIRS.findall(text), *_POINTS.findall(text)):
        digits = "".join(str(_DIGIT_WORDS.get(each.lower(), each)) for each in re.findall(r"\d|[A-Za-z]+", run))
        yield int("".join(filter(str.isdecimal, digits))[:MOST_DIGITS])
    for run in _SCALED.findall(text):
        value = _scaled(re.findall(r"[a-z]+|\d+(?:\.\d+)?", run.lower()))
        if value.denominator == 1:
            yield int(value)
    yield from (int(run, 0) for run in _RADIX.findall(text))
    yield from (int(run[1::2]) for run in _ASCII.findall(text))
    for run in _BASE64.findall(text):
        try:
            plain = base64.b64decode(run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4), validate=True)
        except binascii.Error:
            continue
        if plain.isdigit():
            yield int(plain)
    for run in _ROMAN.findall(text):
        values = [_ROMAN_VALUES[letter] for letter in run]
        yield sum(-one if one < after else one for one, after in zip(values, (*values[1:], 0), strict=True))


def _scaled(words: list[str]) -> Fraction:
    total = current = Fraction(0)
    for word in words:
        scale = 1_000 if word == "k" else SCALES.get(word, 0)
        if scale:
            current = max(Fraction(1), current) * scale
            total, current = (total + current, Fraction(0)) if scale > 100 else (total, current)
        elif word != "and":
            current += NUMBER_WORDS[word] if word in NUMBER_WORDS else Fraction(word[:MOST_DIGITS])
    return total + current
