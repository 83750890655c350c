r"""Number mentions: the numbers of a text of prose and formulas, each with its exact value, salience and role.

A line is cut into pieces at words, punctuation and relation signs. A piece with a letter in it is a formula; a piece
without is closed, and `kace.answers` reads its exact value, so that `1/2`, `0.5`, `\frac12` and `50%` are one.
Nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, IntEnum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from kace.answers.exact import INFINITY, MINUS_INFINITY, Collection, Number, Value
from kace.answers.extract import Answer
from kace.learning.text import SMALL, normalised, other_writings

MAX_PLAIN = 99
CUSTOMARY = frozenset(
    (24, 30, 45, 60, 90, 100, 120, 180, 270, 360, 365, 1_000, 10_000, 1_000_000)
)
MAX_FACTOR_DIGITS = 3  # larger numbers seldom belong to a formula
LIST_LENGTH = (
    4  # that many growing numbers in a row are a sequence, none of them a result
)


class Salience(IntEnum):
    """How much a value says by itself: 3 is everywhere, 180 in every text on geometry, 142 hardly anywhere."""

    SMALL = 0  # a whole number up to 12, a simple fraction
    CUSTOMARY = 1  # what mathematics and units use all the time: 180, 60, the sine of 45 degrees
    PLAIN = (
        2  # any other whole number of two digits, and any longer formula with letters
    )
    DISTINCT = 3


class MentionRole(Enum):
    """What a text does with a value."""

    ANSWER = "given as an answer"
    RESULT = "computed from numbers alone"
    STATED = "what a formula or a total is said to equal"
    ALONE = "standing in prose"
    PART = "inside a calculation or a sequence, or large inside a formula"
    FACTOR = "inside a formula with letters"


class Mention(NamedTuple):
    """A value where it stands."""

    text: str
    key: str
    role: MentionRole
    salience: Salience


class NumberMentions(NamedTuple):
    """Everything numeric in a text."""

    mentions: list[Mention]
    sums: set[frozenset[Fraction]]  # the numbers of each calculation without letters
    standing: set[
        Fraction
    ]  # number literals outside of formulas with letters and of sequences
    literals: set[Fraction]  # number literals outside of sequences


class _Piece(NamedTuple):
    start: int
    end: int
    text: str
    literals: tuple[str, ...]
    letters: bool
    equals: bool  # whether an equals sign stands before it

    @property
    def worked(self) -> bool:
        """Whether something is calculated in it."""
        return bool(_BINARY.search(self.text) or _SIMPLE.fullmatch(self.text))


_CUSTOMARY_FORMS = r"""
    \sqrt2 \sqrt3 \sqrt5 \frac{\sqrt2}2 \frac{\sqrt3}2 \frac{\sqrt3}3 \frac{\sqrt3}4 \frac{1+\sqrt5}2 \frac{1-\sqrt5}2
    \pi 2\pi 4\pi \frac{\pi}2 \frac{\pi}3 \frac{\pi}4 \frac{\pi}6 \frac43\pi \frac13\pi i
"""
_CUSTOMARY_KEYS = frozenset(Answer.of(text).key for text in _CUSTOMARY_FORMS.split())
_DULL: frozenset[Value] = frozenset(
    (INFINITY, MINUS_INFINITY, *(Number.of(n) for n in (-1, 0, 1)))
)

_LIST_MARK = re.compile(r"^\s*(?:[-*]\s+|\(?\d{1,2}[.)]\s+)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?![\d])")
_COLLECTION = re.compile(
    r"(?<![\w}])(?:[(\[]|\\\{)\s*-?[\d\\][^()\[\]=\n]{0,120}?,[^()\[\]=\n]{0,120}?(?:[)\]]|\\\})"
)
_MATRIX = re.compile(r"\\begin\{([pbB]?matrix)\}.{1,400}?\\end\{\1\}")
_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d+)?|(?<!\d)\.\d+)(?:\s*\\?%|\s+percent\b)?)"
    r"|(?P<equals>=|\\(?:approx|equiv|simeq)(?![A-Za-z]))"
    r"|(?P<structure>\\(?:[dtc]?frac|[dt]?binom|sqrt|pi|cdot|times|div|overline)(?![A-Za-z]))"
    r"|(?P<cut>\\(?:leq?|geq?|neq?|leqslant|geqslant|to|in|mid|nmid|[Rr]ightarrow|implies|iff|quad|qquad|pmod|bmod|mod"
    r"|boxed|fbox|begin|end|item|ldots|cdots|dots)(?![A-Za-z]))"
    r"|(?P<command>\\[A-Za-z]+)"
    r"|(?P<call>[^\W\d_]+(?=\(\s*-?\d[\d\s,.+*/-]*\)))"
    r"|(?P<product>(?<=[\d)}^/])[^\W\d_]{2,4}(?![^\W\d_])|(?<![^\W\d_])[^\W\d_]{2}(?=[\^_(]))"
    r"|(?P<word>[^\W\d_]{2,}(?:['-][^\W\d_]+)*|(?<![^\W_])[aAI](?=\s+[\w\\]))"
    r"|(?P<letter>[^\W\d_])"
    r"|(?P<sign>[-+*/^_!(){}|])"
    r"|(?P<other>\\.|[^\s])"
)
_LETTERED = frozenset(("command", "product", "letter"))
_IN_PIECE = _LETTERED | {"number", "structure", "sign"}
_PERCENT = re.compile(r"\s*(?:\\?%|percent)$")
_BINARY = re.compile(
    r"\d[\s)}]*(?:[-+*/]|\\(?:cdot|times|div)(?![A-Za-z]))|\\[dt]?binom|\d!"
)
_SIMPLE = re.compile(
    r"\s*-?\s*(?:\d+\s*/\s*\d+|\\[dtc]?frac\s*\{?-?\d+\}?\s*\{?\d+\}?)\s*"
)
_DIGIT_SUM = re.compile(r"\d(?:\s*\+\s*\d){2,}")
_GAP = re.compile(r"\s*(?:,?\s*(?:and|or)\s|,)\s*")
_ADVERB = r"(?:\s+(?:here|then|now|thus|always|therefore|must|should|will|would))*"
_LINK = rf"{_ADVERB}\s*(?:(?:is|are|was|be|equals?|of|as)\b|[=:])?"
_HEDGE = r"\s*(?:(?:exactly|just|simply|only|therefore|always|indeed|equal\s+to)\s*)?[-\s({]*"
_ANSWER_BEFORE = re.compile(
    rf"(?:\banswers?\b{_LINK}{_HEDGE}|\\(?:boxed|fbox)\s*\{{?\s*)$", re.IGNORECASE
)
_ANSWER_AFTER = re.compile(
    r"\s*(?:is|are|was|as)\s+(?:the|our|its|your)\s+(?:\w+\s+)?answer", re.IGNORECASE
)
_TOTAL_BEFORE = re.compile(
    rf"\b(?:results?|total|value|sum|count|number)\b{_LINK}(?<=[\w=:]){_HEDGE}$",
    re.IGNORECASE,
)
_answer = lru_cache(maxsize=16_384)(Answer.of)


def salience_of(value: Value | Fraction | None, form: str = "") -> Salience:
    """How much a value says by itself; `form` is what is known where there is no exact value."""
    match value:
        case Fraction(numerator=top, denominator=1):
            size = abs(top)
            if size <= SMALL or size in CUSTOMARY:
                return Salience.SMALL if size <= SMALL else Salience.CUSTOMARY
            return Salience.PLAIN if size <= MAX_PLAIN else Salience.DISTINCT
        case Fraction(numerator=top, denominator=below):
            simple = max(abs(top), below) <= 4 or (abs(top) == 1 and below <= SMALL)
            return Salience.SMALL if simple else Salience.DISTINCT
        case Number() if value.rational is not None:
            return salience_of(value.rational)
        case Number() if value.constant:
            return (
                Salience.CUSTOMARY
                if f"={value}" in _CUSTOMARY_KEYS
                else Salience.DISTINCT
            )
        case Number(
            terms=terms
        ):  # a formula may be both an answer and the rule to be learnt
            telling = len(terms) > 2 or any(
                salience_of(factor) > Salience.CUSTOMARY for _, factor in terms
            )
            return Salience.PLAIN if telling else Salience.SMALL
        case Collection(delimiters="{}", items=items):
            highest = max(map(salience_of, items), default=Salience.SMALL)
            return Salience.DISTINCT if highest > Salience.CUSTOMARY else highest
        case Collection(items=items):
            return (
                Salience.SMALL
                if all(item in _DULL for item in items)
                else Salience.DISTINCT
            )
    return (
        Salience.PLAIN if len(form) > 5 and re.search(r"\d", form) else Salience.SMALL
    )


def number_mentions(text: str) -> NumberMentions:
    """All number mentions of a text."""
    found = NumberMentions([], set(), set(), set())
    for line in normalised(text).split("\n"):
        line = _LIST_MARK.sub("", line)
        pieces = tuple(_pieces(line))
        runs = tuple(_runs(line, pieces))
        growing = (
            run
            for run in runs
            if all(_value(pieces[a]) < _value(pieces[b]) for a, b in pairwise(run))
        )
        sequences = frozenset(
            index for run in growing if len(run) >= LIST_LENGTH for index in run
        )
        found.mentions.extend(_mentions(line, pieces, runs, sequences))
        for piece in (
            piece for index, piece in enumerate(pieces) if index not in sequences
        ):
            values = frozenset(map(_fraction, piece.literals))
            found.literals.update(values)
            found.standing.update(() if piece.letters else values)
            if piece.worked and not piece.letters:
                found.sums.add(values)
            if _DIGIT_SUM.fullmatch(
                piece.text
            ):  # the digits of a number, added up, give the number away
                found.standing.add(_fraction("".join(piece.literals)))
        found.standing.update(map(_fraction, _grouped(line)))
    found.mentions.extend(
        _literal(str(value), MentionRole.ALONE) for value in other_writings(text)
    )
    found.literals.update(found.standing)
    return found


def literals_in(text: str) -> frozenset[Fraction]:
    """The number literals of a text, whatever they do there."""
    pieces = (piece for line in normalised(text).split("\n") for piece in _pieces(line))
    return frozenset(
        _fraction(literal) for piece in pieces for literal in piece.literals
    )


def _mentions(
    line: str,
    pieces: Sequence[_Piece],
    runs: Sequence[list[int]],
    sequences: frozenset[int],
) -> Iterator[Mention]:
    for index, piece in enumerate(pieces):
        if piece.text:
            role = (
                MentionRole.PART if index in sequences else _role(line, pieces, index)
            )
            yield _mention(piece.text, role)
            if piece.text.endswith(
                ("%", "percent")
            ):  # a percentage is also the number before the sign
                yield _mention(_PERCENT.sub("", piece.text), role)._replace(
                    text=piece.text
                )
        # Also of a single one: a sign before it, or a line over it, hides nothing.
        for literal in piece.literals if piece.literals != (piece.text,) else ():
            factor = (
                piece.letters
                and literal.isdigit()
                and len(literal) <= MAX_FACTOR_DIGITS
            )
            yield _literal(literal, MentionRole.FACTOR if factor else MentionRole.PART)
        if piece.equals and (piece.letters or pieces[index - 1].letters):
            yield _mention(f"{pieces[index - 1].text}={piece.text}", MentionRole.ALONE)
    yield from (_literal(digits, MentionRole.ALONE) for digits in _grouped(line))
    several = [
        match[0]
        for pattern in (_COLLECTION, _MATRIX)
        for match in pattern.finditer(line)
    ]
    several += [
        ", ".join(pieces[index].text for index in run) for run in runs if len(run) > 1
    ]
    yield from (
        _mention(text, MentionRole.ALONE)
        for text in several
        if isinstance(_answer(text).value, Collection)
    )


def _role(line: str, pieces: Sequence[_Piece], index: int) -> MentionRole:
    piece = pieces[index]
    before = line[max(0, piece.start - 80) : piece.start]
    if _ANSWER_BEFORE.search(before) or _ANSWER_AFTER.match(line, piece.end):
        return MentionRole.ANSWER
    if piece.letters:
        return MentionRole.ALONE
    # the pieces that equals signs connect with this one
    first = index
    last = index + 1
    while first > 0 and pieces[first].equals:
        first -= 1
    while last < len(pieces) and pieces[last].equals:
        last += 1
    closed = [other for other in pieces[first:last] if not other.letters]
    if any(
        other.worked and (len(closed) > 1 or not _SIMPLE.fullmatch(other.text))
        for other in closed
    ):
        return MentionRole.RESULT
    stated = len(closed) < last - first or _TOTAL_BEFORE.search(before)
    return MentionRole.STATED if stated else MentionRole.ALONE


def _runs(line: str, pieces: Sequence[_Piece]) -> Iterator[list[int]]:
    """Indices of single numbers with only commas, `and` or `or` between them."""
    run: list[int] = []
    for index, piece in enumerate(pieces):
        single = (
            len(piece.literals) == 1
            and not piece.letters
            and re.fullmatch(r"-?[\d.]+", piece.text)
        )
        if run and not (
            single and _GAP.fullmatch(line, pieces[run[-1]].end, piece.start)
        ):
            yield run
            run = []
        if single:
            run.append(index)
    if run:
        yield run


def _pieces(line: str) -> Iterator[_Piece]:
    """The formulas and numbers of a line. Pieces without a number are kept: they are sides of equations."""
    tokens: list[re.Match[str]] = []
    equals = after_word = False
    for token in (*_TOKEN.finditer(line), None):
        kind = token.lastgroup if token else None
        apart = (
            kind == "number"
            and tokens
            and tokens[-1].lastgroup == "letter"
            and line[tokens[-1].end()].isspace()
        )
        if token and kind in _IN_PIECE and not apart:
            tokens.append(token)
            continue
        if tokens:
            start = tokens[0].start()
            end = tokens[-1].end()
            raw = line[start:end]
            dangling = (after_word and re.match(r"[*/^]|[-+]\s", raw)) or (
                kind == "word" and raw[-1] in "+-*/"
            )
            literals = tuple(
                _PERCENT.sub("", t[0]) for t in tokens if t.lastgroup == "number"
            )
            letters = bool(dangling) or any(t.lastgroup in _LETTERED for t in tokens)
            yield _Piece(start, end, _trimmed(raw), literals, letters, equals)
        equals = kind == "equals" and bool(
            tokens
        )  # what stands before the sign in words is no side of an equation
        tokens = [token] if token and apart else []
        after_word = kind == "word"


def _trimmed(text: str) -> str:
    """The text without operators at its ends and without brackets whose partners a comma cut off."""
    text = text.strip().rstrip("+-*/^_({| ").lstrip("+*/^_)}!| ")
    for opening, closing in ("()", "{}"):
        while text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:].strip()
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].strip()
    return text


def _grouped(line: str) -> list[str]:
    """Numbers whose digits a comma or a space groups, as plain digits."""
    return [re.sub("[, ]", "", match) for match in _GROUPED.findall(line)]


def _mention(text: str, role: MentionRole) -> Mention:
    answer = _answer(text)
    return Mention(text, answer.key, role, salience_of(answer.value, answer.form))


def _literal(text: str, role: MentionRole) -> Mention:
    value = _fraction(text)
    return Mention(text, f"={Number.of(value)}", role, salience_of(value))


def _value(piece: _Piece) -> Fraction:
    return _fraction(piece.literals[0])


def _fraction(digits: str) -> Fraction:
    return Fraction(digits[:200])
