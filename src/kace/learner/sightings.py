r"""The numbers a text of prose and formulas speaks of, each with its exact value and the part it plays.

A line is cut into pieces at words, punctuation and relation signs. A piece with a letter in it is a formula; a piece
without is closed, and `kace.answers` reads its exact value, so that `1/2`, `0.5`, `\frac12` and `50%` are one.
Nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from kace.answers.exact import Collection, Number
from kace.answers.extract import Answer
from kace.learner.plain import plain
from kace.learner.weight import Weight, rational_weight, weight_of

MAX_FACTOR_DIGITS = 3
LIST_LENGTH = 4
"""That many growing numbers in a row are a sequence, none of them a result."""


class Role(Enum):
    """What a text does with a value."""

    ANSWER = "given as an answer"
    RESULT = "computed from numbers alone"
    STATED = "what a formula or a total is said to equal"
    ALONE = "standing in prose"
    PART = "inside a calculation or a sequence, or large inside a formula"
    FACTOR = "inside a formula with letters"


class Figure(NamedTuple):
    """A value where it stands."""

    text: str
    key: str
    role: Role
    weight: Weight


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything numeric in a text."""

    marks: tuple[Figure, ...]
    """Values in order."""
    sums: frozenset[frozenset[Fraction]]
    """The numbers of each calculation without letters."""
    standing: frozenset[Fraction]
    """Number literals outside of formulas with letters and of sequences."""
    literals: frozenset[Fraction]
    """Number literals outside of sequences."""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    text: str
    literals: tuple[str, ...]
    letters: bool
    worked: bool
    """Whether something is calculated in it."""
    equals: bool
    """Whether an equals sign stands before it."""


_LIST_MARK = re.compile(r"^\s*(?:[-*]\s+|\(?\d{1,2}[.)]\s+)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?![\d])")
_COLLECTION = re.compile(r"(?<![\w}])(?:[(\[]|\\\{)\s*-?[\d\\][^()\[\]=\n]{0,120}?,[^()\[\]=\n]{0,120}?(?:[)\]]|\\\})")
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
_IN_PIECE = frozenset(("number", "structure", "command", "product", "letter", "sign"))
_LETTERED = frozenset(("command", "product", "letter"))
_BINARY = re.compile(r"\d[\s)}]*(?:[-+*/]|\\(?:cdot|times|div)(?![A-Za-z]))|\\[dt]?binom|\d!")
_SIMPLE = re.compile(r"\s*-?\s*(?:\d+\s*/\s*\d+|\\[dtc]?frac\s*\{?-?\d+\}?\s*\{?\d+\}?)\s*")
_DIGIT_SUM = re.compile(r"\d(?:\s*\+\s*\d){2,}")
_GAP = re.compile(r"\s*(?:,?\s*(?:and|or)\s|,)\s*")
_ADVERB = r"(?:\s+(?:here|then|now|thus|always|therefore|must|should|will|would))*"
_LINK = rf"{_ADVERB}\s*(?:(?:is|are|was|be|equals?|of|as)\b|[=:])?"
_HEDGE = r"\s*(?:(?:exactly|just|simply|only|therefore|always|indeed|equal\s+to)\s*)?[-\s({]*"
_ANSWER_BEFORE = re.compile(rf"(?:\banswers?\b{_LINK}{_HEDGE}|\\(?:boxed|fbox)\s*\{{?\s*)$", re.IGNORECASE)
_ANSWER_AFTER = re.compile(r"\s*(?:is|are|was|as)\s+(?:the|our|its|your)\s+(?:\w+\s+)?answer", re.IGNORECASE)
_TOTAL_BEFORE = re.compile(rf"\b(?:results?|total|value|sum|count|number)\b{_LINK}(?<=[\w=:]){_HEDGE}$", re.IGNORECASE)


def figures_in(text: str) -> Figures:
    """All figures of a text."""
    marks: list[Figure] = []
    standing: set[Fraction] = set()
    literals: set[Fraction] = set()
    sums: set[frozenset[Fraction]] = set()
    for line in plain(text).split("\n"):
        line = _LIST_MARK.sub("", line)
        pieces = tuple(_pieces(line))
        sequences = _sequences(line, pieces)
        marks += _marks(line, pieces, sequences)
        for piece in (piece for index, piece in enumerate(pieces) if index not in sequences):
            values = {_fraction(literal) for literal in piece.literals}
            literals |= values
            standing |= set() if piece.letters else values
            if piece.worked and not piece.letters:
                sums.add(frozenset(values))
            if _DIGIT_SUM.fullmatch(piece.text):  # the digits of a number, added up, give the number away
                standing.add(_fraction("".join(piece.literals)))
        for match in _GROUPED.finditer(line):
            standing.add(_fraction(re.sub("[, ]", "", match[0])))
    return Figures(tuple(marks), frozenset(sums), frozenset(standing), frozenset(literals | standing))


def literals_in(text: str) -> frozenset[Fraction]:
    """The number literals of a text, whatever they do there."""
    pieces = (piece for line in plain(text).split("\n") for piece in _pieces(line))
    return frozenset(_fraction(literal) for piece in pieces for literal in piece.literals)


def _marks(line: str, pieces: tuple[_Piece, ...], sequences: frozenset[int]) -> Iterator[Figure]:
    for index, piece in enumerate(pieces):
        for reading in _readings(piece.text) if piece.text else ():
            role = Role.PART if index in sequences else _role(line, pieces, index)
            yield Figure(piece.text, reading.key, role, weight_of(reading.value, reading.form))
        if len(piece.literals) > 1 or piece.letters:
            for literal in piece.literals:
                yield _literal(literal, Role.FACTOR if piece.letters and _is_factor(literal) else Role.PART)
        if piece.equals and (piece.letters or pieces[index - 1].letters):
            equation = f"{pieces[index - 1].text}={piece.text}"
            yield Figure(equation, (whole := _answer(equation)).key, Role.ALONE, weight_of(whole.value, whole.form))
    for match in _GROUPED.finditer(line):
        yield _literal(re.sub("[, ]", "", match[0]), Role.ALONE)
    several = [match[0] for pattern in (_COLLECTION, _MATRIX) for match in pattern.finditer(line)]
    for text in (*several, *_lists(line, pieces)):
        answer = _answer(text)
        if isinstance(answer.value, Collection):
            yield Figure(text, answer.key, Role.ALONE, weight_of(answer.value))


def _is_factor(literal: str) -> bool:
    """Whether a number may well belong to a formula; larger ones seldom do."""
    return literal.isdigit() and len(literal) <= MAX_FACTOR_DIGITS


def _readings(text: str) -> Iterator[Answer]:
    """The values of a piece: a percentage is also the number before the sign."""
    yield _answer(text)
    if text.endswith(("%", "percent")):
        yield _answer(re.sub(r"\s*(?:\\?%|percent)$", "", text))


def _role(line: str, pieces: tuple[_Piece, ...], index: int) -> Role:
    piece = pieces[index]
    before = line[max(0, piece.start - 80) : piece.start]
    if _ANSWER_BEFORE.search(before) or _ANSWER_AFTER.match(line, piece.end):
        return Role.ANSWER
    if piece.letters:
        return Role.ALONE
    chain = _chain(pieces, index)
    closed = [other for other in chain if not other.letters]
    if any(other.worked and (len(closed) > 1 or not _SIMPLE.fullmatch(other.text)) for other in closed):
        return Role.RESULT
    if any(other.letters for other in chain) or _TOTAL_BEFORE.search(before):
        return Role.STATED
    return Role.ALONE


def _chain(pieces: tuple[_Piece, ...], index: int) -> tuple[_Piece, ...]:
    """The pieces that equals signs connect with one, itself included."""
    first = last = index
    while first > 0 and pieces[first].equals:
        first -= 1
    while last + 1 < len(pieces) and pieces[last + 1].equals:
        last += 1
    return pieces[first : last + 1]


def _sequences(line: str, pieces: tuple[_Piece, ...]) -> frozenset[int]:
    """Where pieces are members of a growing sequence of numbers."""
    return frozenset(
        index
        for run in _runs(line, pieces)
        if len(run) >= LIST_LENGTH and _growing([_fraction(pieces[index].literals[0]) for index in run])
        for index in run
    )


def _growing(values: list[Fraction]) -> bool:
    return all(left < right for left, right in pairwise(values))


def _lists(line: str, pieces: tuple[_Piece, ...]) -> Iterator[str]:
    for run in _runs(line, pieces):
        if len(run) > 1:
            yield ", ".join(pieces[index].text for index in run)


def _runs(line: str, pieces: tuple[_Piece, ...]) -> Iterator[list[int]]:
    """Indices of single numbers with only commas, `and` or `or` between them."""
    run: list[int] = []
    for index, piece in enumerate(pieces):
        single = len(piece.literals) == 1 and not piece.letters and re.fullmatch(r"-?[\d.]+", piece.text)
        if run and not (single and _GAP.fullmatch(line, pieces[run[-1]].end, piece.start)):
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
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        apart = tokens and kind == "number" and tokens[-1].lastgroup == "letter" and tokens[-1].end() < token.start()
        if kind in _IN_PIECE and not apart:
            tokens.append(token)
            continue
        if tokens:
            yield _piece(line, tokens, equals=equals, open_left=after_word, open_right=kind == "word")
        equals = kind == "equals" and bool(tokens)  # what stands before the sign in words is no side of an equation
        tokens, after_word = [token] if apart else [], kind == "word"
    if tokens:
        yield _piece(line, tokens, equals=equals, open_left=after_word, open_right=False)


def _piece(line: str, tokens: list[re.Match[str]], *, equals: bool, open_left: bool, open_right: bool) -> _Piece:
    start, end = tokens[0].start(), tokens[-1].end()
    raw = line[start:end]
    text = _trimmed(raw)
    dangling = (open_left and re.match(r"[*/^]|[-+]\s", raw)) or (open_right and raw[-1] in "+-*/")
    return _Piece(
        start=start,
        end=end,
        text=text,
        literals=tuple(re.sub(r"\s*(?:\\?%|percent)$", "", t[0]) for t in tokens if t.lastgroup == "number"),
        letters=bool(dangling) or any(t.lastgroup in _LETTERED for t in tokens),
        worked=bool(_BINARY.search(text) or _SIMPLE.fullmatch(text)),
        equals=equals,
    )


def _trimmed(text: str) -> str:
    """The text without operators at its ends and without brackets whose partners a comma cut off."""
    text = text.strip().rstrip("+-*/^_({| ").lstrip("+*/^_)}!| ")
    for opening, closing in ("()", "{}"):
        while text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:].strip()
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].strip()
    return text


def _literal(text: str, role: Role) -> Figure:
    value = _fraction(text)
    return Figure(text, _rational_key(value), role, rational_weight(value))


@lru_cache(maxsize=16_384)
def _answer(text: str) -> Answer:
    return Answer.of(text)


@lru_cache(maxsize=16_384)
def _rational_key(value: Fraction) -> str:
    return f"={Number.of(value)}"


def _fraction(digits: str) -> Fraction:
    return Fraction(digits[:200])
