r"""Text as the rules on numbers read it: ASCII and LaTeX, no typography, numbers above twelve in digits.

`13{,}000`, `½`, `5 x 4`, `90^\circ`, Unicode digits, invisible characters and spelled numbers are all seen through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from kace.answers.normalize import normal_form
from kace.learner.weight import SMALL

_ONES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: value for value, word in enumerate(_ONES.split())}
_WORDS |= {word: 10 * ten for ten, word in enumerate(_TENS.split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_NUMBER_WORD = "|".join((*_WORDS, *_SCALES))
_SPELLED = re.compile(rf"\b(?:{_NUMBER_WORD})(?:(?:\s+and\s+|[\s-]+)(?:{_NUMBER_WORD}))*\b(?!')", re.IGNORECASE)

_TYPOGRAPHY: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!|\\,)(?=\d{3}(?!\d))"), ""),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\\degrees?(?![A-Za-z])"), " "),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])|\\[!,;:]"), " "),
    (re.compile(r"\\(?:text|mathrm|textbf|mbox|operatorname)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\?\$|\\[()\[\]]|[*_]{2}|~"), " "),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)"), " * "),
    (re.compile(r"(?<=\d) (?:m|s|h|g|l)(?![\w^(])(?!\s*[-+*/=])"), " "),  # a unit, not a factor
    (re.compile(r"//"), "/"),
    (re.compile(r"(?<![\w.-])\d+(?:-\d+){2,}(?![\w.-])"), lambda match: match[0].replace("-", ", ")),  # 30-60-90
)


def visible(text: str) -> str:
    """The text without characters that nobody sees, and with one form of each letter."""
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")


def plain(text: str) -> str:
    """The text in ASCII and LaTeX, without typography, with numbers above ten in digits."""
    if not text.isascii():
        text = "".join(char if char.isascii() else _spelling(char) for char in text)
    for pattern, new in _TYPOGRAPHY:
        text = pattern.sub(new, text)
    return _SPELLED.sub(_digits, text)


@lru_cache(maxsize=4_096)
def _spelling(char: str) -> str:
    """How ASCII and LaTeX write a character; a dash between clauses is none of their signs."""
    if char in "—―":
        return " ; "
    form = normal_form(char)
    return f"{form} " if form.startswith("\\") and form[-1].isalpha() else form


def _digits(match: re.Match[str]) -> str:
    total = current = 0
    for word in re.findall(r"[a-z]+", match[0].lower()):
        if word in _WORDS:
            current += _WORDS[word]
        elif word == "hundred":
            current = max(1, current) * 100
        elif word in _SCALES:
            total, current = total + max(1, current) * _SCALES[word], 0
    return str(total + current) if total + current > SMALL else match[0]
