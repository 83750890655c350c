r"""Text as the screen of cards reads it: normalisation, numbers in other writings, words, n-grams, and barred phrases.

Normalised text is ASCII and LaTeX without typography, numbers above twelve in digits: `13{,}000`, `½`, `5 x 4`,
`90^\circ`, Unicode digits, invisible characters and spelled numbers are all seen through. Other writings are whole
numbers that a reader sees and a search for their digits does not: `4{2}{1}7`, `4_217`, `4.217`, `4 thousand 2 hundred
17`, `4, 2, 1, 7`, `0x1079`, `MMMMCCXVII`, base64. What has to be worked out, as "one less than 4218", is none of them:
no list of such ways would ever be whole.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from kace.answers.normalize import NUMBER_WORDS, normal_form

SMALL = 12  # whole numbers up to this occur in any formula and in any small example; spelled out, they stay words
LONG_NGRAMS = ((8, 4), (12, 2))
"""That many words in a row, numbers aside, with so many content words, are a copy; with fewer a phrase of the trade."""
SHORT_NGRAM = 5  # so are fewer words, where they hold a salient number or a name
LEAST = 100
LEAST_SPREAD = 1_000
"""The least number that is read where its digits only look apart, and where they are: 1, 4, 2 is mostly no 142."""
MOST_DIGITS = 40

_TABLES = tomllib.loads(
    Path(__file__).with_name("screen.toml").read_text(encoding="utf-8")
)
_STOP, _FILLER, _KNOWN_NAMES = (
    frozenset(_TABLES[name].split()) for name in ("common", "filler", "names")
)
_TALK = "it speaks of {!r}, which is about tests and not about mathematics"
_BANNED = (
    ("benchmark_talk", re.compile("|".join(_TABLES["tests"])), _TALK),
    (
        "benchmark_talk",
        re.compile("|".join(_TABLES["benchmark"]), re.IGNORECASE),
        _TALK,
    ),
    (
        "orders",
        re.compile("|".join(_TABLES["orders"]), re.IGNORECASE),
        "it orders its reader about: {!r}",
    ),
)
_EXHORTATION = re.compile("|".join(_TABLES["exhortations"]), re.IGNORECASE)
_FORMULA = re.compile(
    r"[=<>^≤≥≠±√∑∏]|\\[A-Za-z]{2,}|\d|\b[a-zA-Z]\s*[-+*/]\s*[a-zA-Z\d]\b|[a-z]\([a-z]|\b[a-zA-Z]_\w"
)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:,\d{3})*(?:\.\d+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")

_DIGITS = {word: value for word, value in NUMBER_WORDS.items() if value < 10}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_NUMBER = "|".join((*NUMBER_WORDS, *_SCALES))
_SPELLED = re.compile(
    rf"\b(?:{_NUMBER})(?:(?:\s+and\s+|[\s-]+)(?:{_NUMBER}))*\b(?!')", re.IGNORECASE
)
_TYPOGRAPHY: tuple[
    tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...
] = (
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!|\\,)(?=\d{3}(?!\d))"), ""),
    (
        re.compile(
            r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\\degrees?(?![A-Za-z])"
        ),
        " ",
    ),
    (
        re.compile(
            r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])|\\[!,;:]"
        ),
        " ",
    ),
    (re.compile(r"\\(?:text|mathrm|textbf|mbox|operatorname)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\?\$|\\[()\[\]]|[*_]{2}|~"), " "),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)"), " * "),
    (
        re.compile(r"(?<=\d) (?:m|s|h|g|l)(?![\w^(])(?!\s*[-+*/=])"),
        " ",
    ),  # a unit, not a factor
    (re.compile(r"//"), "/"),
    (
        re.compile(r"(?<![\w.-])\d+(?:-\d+){2,}(?![\w.-])"),
        lambda match: match[0].replace("-", ", "),
    ),  # 30-60-90
)

_ESCAPED = re.compile(r"(?:\\u00|\\x|%)3(\d)")
_INVISIBLE = re.compile(
    r"\\(?:[hm]?space|[hm]?skip|m?kern)\*?\s*(?:\{[^{}]*\}|-?[\d.]+\s*[a-z]{2})|\\[hv]?phantom\s*\{[^{}]*\}|\{\}"
    r"|\\(?:relax|nobreak|allowbreak|null|q?quad|thinspace|enspace|(?:math|text)(?:bf|rm|it|sf|tt)|text|mbox|bf|rm|it)"
    r"(?![A-Za-z])\s*|\\[,;:! ]|</?[a-z]{1,8}>|\*\*|`|(?<=\d)(?:\\?_|['’])(?=\d)"
)
_SLANTED = re.compile(r"(?<![\d)}\s])\s?\*(\d+)\*|(?<=\s)\*(\d+)\*")
_ARGUMENT = re.compile(r"\\[dtc]?(?:frac|binom)\s*\d")
_BRACED = re.compile(r"(?:(?<=\d)|(?<![\w}^\\]))(?:\{\d+\})+")
_DIGIT = rf"(?:\d|{'|'.join(_DIGITS)})"
_SPREAD = re.compile(  # with the same between all of them: `1/5 and 1/2` are two fractions
    rf"(?<![\w.])({_DIGIT}((?:[^\w\\^=+*]|\b(?:then|and)\b){{1,8}}){_DIGIT}(?:\2{_DIGIT}){{2,}})\b",
    re.IGNORECASE,
)
_PAIRS = re.compile(r"(?<![\w.,-])\d\d\s+\d\d(?![\w,-]|\.\d)")
_POINTS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?!\d|\.\d)")
_COUNT = rf"(?:\d+(?:\.\d+)?|{'|'.join(NUMBER_WORDS)})"
_SCALED = re.compile(
    rf"(?<![\w.])(?:\d+\.\d+k\b|{_COUNT}(?:[\s-]+{_COUNT})?[\s-]*(?:{'|'.join(_SCALES)})\b)"
    rf"(?:(?:\s*,?\s*(?:and\s+)?|-)(?:{_COUNT}|{'|'.join(_SCALES)})\b)*",
    re.IGNORECASE,
)
_RADIX = re.compile(
    r"(?<!\w)0(?:x[\da-f]{2,32}|b[01]{4,64}|o[0-7]{2,32})(?!\w)", re.IGNORECASE
)
_ASCII = re.compile(r"(?<!\w)(?:3\d){4,20}(?!\w)")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z\d+/]{5,40}={0,2}(?![\w+/])")
_ROMAN = re.compile(r"\bM{1,9}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})\b")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def visible(text: str) -> str:
    """The text without characters that nobody sees, and with one form of each letter."""
    if text.isascii():
        return text
    return "".join(
        char
        for char in unicodedata.normalize("NFKC", text)
        if unicodedata.category(char) != "Cf"
    )


def normalised(text: str) -> str:
    """The text in ASCII and LaTeX, without typography, with numbers above twelve in digits."""

    def digits(match: re.Match[str]) -> str:
        value = _spelled_value(re.findall(r"[a-z]+", match[0].lower()))
        return str(value) if value > SMALL else match[0]

    text = (
        text
        if text.isascii()
        else "".join(char if char.isascii() else _spelling(char) for char in text)
    )
    for pattern, new in _TYPOGRAPHY:
        text = pattern.sub(new, text)
    return _SPELLED.sub(digits, text)


@lru_cache(maxsize=4_096)
def _spelling(char: str) -> str:
    """How ASCII and LaTeX write a character; a dash between clauses is none of their signs."""
    form = " ; " if char in "—―" else normal_form(char)
    return f"{form} " if form.startswith("\\") and form[-1].isalpha() else form


def _spelled_value(words: Iterable[str]) -> Fraction:
    """What number words and numerals come to: `four thousand two hundred 17`."""
    total = current = Fraction(0)
    for word in words:
        scale = 1_000 if word == "k" else _SCALES.get(word, 0)
        if scale:
            current = max(Fraction(1), current) * scale
            total, current = (
                (total + current, Fraction(0)) if scale > 100 else (total, current)
            )
        elif word != "and":
            current += (
                NUMBER_WORDS[word]
                if word in NUMBER_WORDS
                else Fraction(word[:MOST_DIGITS])
            )
    return total + current


def other_writings(text: str) -> Iterator[int]:
    """The whole numbers that a text writes in another way than by their digits."""
    shown = _ESCAPED.sub(r"\1", html.unescape(visible(text)))
    joined = _SLANTED.sub(r" \1\2", _ARGUMENT.sub(" ", _INVISIBLE.sub("", shown)))
    joined = _BRACED.sub(lambda match: re.sub(r"[{}]", "", match[0]), joined)
    written = set(re.findall(r"\d+", text))
    close = (
        int(run)
        for run in re.findall(r"\d+", joined)
        if len(run) <= MOST_DIGITS and run not in written
    )
    yield from (value for value in close if value >= LEAST)
    yield from (
        value for value in _spread(joined) if LEAST_SPREAD <= value < 10**MOST_DIGITS
    )


def _spread(text: str) -> Iterator[int]:
    for run in (
        *(match[1] for match in _SPREAD.finditer(text)),
        *_PAIRS.findall(text),
        *_POINTS.findall(text),
    ):
        digits = "".join(
            str(_DIGITS.get(each.lower(), each))
            for each in re.findall(r"\d|[A-Za-z]+", run)
        )
        yield int("".join(filter(str.isdecimal, digits))[:MOST_DIGITS])
    scaled = (
        _spelled_value(re.findall(r"[a-z]+|\d+(?:\.\d+)?", run.lower()))
        for run in _SCALED.findall(text)
    )
    yield from (int(value) for value in scaled if value.denominator == 1)
    yield from (int(run, 0) for run in _RADIX.findall(text))
    yield from (int(run[1::2]) for run in _ASCII.findall(text))
    for run in _BASE64.findall(text):
        try:
            plain = base64.b64decode(
                run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4), validate=True
            )
        except binascii.Error:
            continue
        if plain.isdigit():
            yield int(plain)
    for run in _ROMAN.findall(text):
        values = [_ROMAN_VALUES[letter] for letter in run]
        yield sum(
            -one if one < after else one
            for one, after in zip(values, (*values[1:], 0), strict=True)
        )


def _tokens(text: str) -> list[str]:
    """The words and numbers of a text in lower case, LaTeX commands aside."""
    return [token.lower() for token in _TOKEN.findall(_COMMAND.sub(" ", text))]


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _has_content(token: str) -> bool:
    return len(token) > 3 and not token[0].isdigit() and _stem(token) not in _STOP


def content_words(text: str) -> frozenset[str]:
    """The words that say what a text is about, without plural endings."""
    return frozenset(_stem(token) for token in _tokens(text) if _has_content(token))


def template_words(text: str) -> frozenset[str]:
    """The content words without numbers, spelled ones too: what problems of one wording have in common."""
    return content_words(_SPELLED.sub(" ", visible(text)))


def ngrams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Every run of that many words."""
    return (
        tuple(words[start : start + length]) for start in range(len(words) - length + 1)
    )


def long_ngrams(text: str) -> Iterator[str]:
    """The n-grams that are long enough for a copy, all numbers alike."""
    words = ["#" if token[0].isdigit() else token for token in _tokens(text)]
    for length, content in LONG_NGRAMS:
        yield from (
            " ".join(run)
            for run in ngrams(words, length)
            if sum(map(_has_content, run)) >= content
        )


def short_ngrams(text: str) -> Iterator[tuple[str, ...]]:
    """The n-grams of `SHORT_NGRAM` words with a number and some content, numbers as they are."""
    for run in ngrams(_tokens(text), SHORT_NGRAM):
        if any(word[0].isdigit() for word in run) and any(map(_has_content, run)):
            yield run


def names(text: str, *, inside: bool = False) -> tuple[str, ...]:
    """Every capitalised word, or those inside sentences, each once, but for the names of mathematics."""
    found = (_NAME_INSIDE if inside else _CAPITALISED).findall(text)
    return tuple(dict.fromkeys(word for word in found if word not in _KNOWN_NAMES))


def banned_phrases(text: str) -> Iterator[tuple[str, str]]:
    """The rules that words of a text break, with reasons: talk of tests and of their answers, orders to the reader."""
    for rule, pattern, reason in _BANNED:
        if found := pattern.search(text):
            yield rule, reason.format(found.group().strip())


def is_vague(body: str) -> bool:
    """Whether no sentence of a body has a formula, or two words about something besides exhortations."""
    for sentence in _SENTENCE.split(body):
        rest = _EXHORTATION.sub(" ", sentence)
        if _FORMULA.search(rest) or len(content_words(rest) - _FILLER) >= 2:
            return False
    return True
