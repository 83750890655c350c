r"""The screen of cards: every rule that code checks before the teacher judges a card.

What is covered: a card must fit its cell, have no talk of tests, no orders and not only
exhortations, and carry over nothing from the problems:

| a card is compared with | it is refused for |
|---|---|
| problems it was written from | their answer where it is called one, boxed or computed |
| | their answer anywhere, if it is telling |
| | all their numbers with the answer; all their telling numbers |
| other problems | several numbers of one, a telling one among them, and its answer |
| all problems | an n-gram of their words; a name that one or two of them have |
| held-out problems, by hashes | a demonstration with the numbers and answer of one, with |
| | an n-gram of its words, or too many of its content words |

A number is telling when it does not occur everywhere: 7 and 180 do, 142 does not.

What is not covered: an answer that a teacher hides on purpose (in base64, as a sum of
words), and a story told in other words. The screen catches accidents.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from kace.answers.exact import Number, Word
from kace.answers.extract import Answer, last_boxed
from kace.answers.normalize import NUMBER_WORDS, normal_form
from kace.cards.card import BODY_CAPS, UNIVERSAL, Card, Difficulty, Example, line_count
from kace.errors import one_line
from kace.learning.teacher import CardRefusal, TreeCell
from kace.problems import Problem

SMALL = (
    12  # whole numbers up to this occur in any formula; spelled out, they stay words
)
LARGE = 99
CUSTOMARY = frozenset(
    (24, 30, 45, 60, 90, 100, 120, 180, 270, 360, 365, 1_000, 10_000, 1_000_000)
)
MAX_FACTOR_DIGITS = 3  # longer numbers seldom belong to a formula with letters
RARE_NAME = 2  # a name in more problems than this belongs to the subject
MIN_COMMON = 4  # fewer content words in common are what any two problems may have
LONG_NGRAMS = ((8, 4), (12, 2))
"""So many words in a row, numbers aside, with so many content words, are a copy; with
fewer a phrase of the trade."""
SHORT_NGRAM = 5  # so are these many, with a telling number or a rare name

K = TypeVar("K")

_TABLES = tomllib.loads(
    Path(__file__).with_name("screen.toml").read_text(encoding="utf-8")
)
_COMMON_WORDS = frozenset(_TABLES["common"].split())
_FILLER = frozenset(_TABLES["filler"].split())
_KNOWN_NAMES = frozenset(_TABLES["names"].split())
_TALK = "it speaks of {!r}, which is about tests and not about mathematics"
_ORDER = "it orders its reader about: {!r}"
_BANNED = (
    ("benchmark_talk", re.compile("|".join(_TABLES["tests"])), _TALK),
    ("benchmark_talk", re.compile("|".join(_TABLES["benchmark"]), re.I), _TALK),
    ("orders", re.compile("|".join(_TABLES["orders"]), re.I), _ORDER),
)
_EXHORTATION = re.compile("|".join(_TABLES["exhortations"]), re.I)
_FORMULA = re.compile(
    r"[=<>^≤≥≠±√∑∏]|\\[A-Za-z]{2,}|\d|\b[a-zA-Z]\s*[-+*/]\s*[a-zA-Z\d]\b"
    r"|[a-z]\([a-z]|\b[a-zA-Z]_\w"
)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:,\d{3})*(?:\.\d+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")


def check_card(
    card: Card, cell: TreeCell, leaks: LeakScreen, domains: Sequence[str]
) -> CardRefusal | None:
    """Return the first rule of code that a card breaks at a cell, or `None`."""
    for rule, reason in _broken_rules(card, cell, domains):
        return CardRefusal.by_code(card.card_id, rule, reason)
    return leaks.find(card)


def _broken_rules(
    card: Card, cell: TreeCell, domains: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the rules that a card breaks by itself or by its place, with reasons."""
    given = card.difficulty_tag
    tags = card.domain_tags
    lines = line_count(card.body)
    cap = BODY_CAPS[given]
    if lines > cap:
        yield "body_cap", f"its body has {lines} lines, {given.value} allows {cap}"
    for tag in tags:
        if tag not in (UNIVERSAL, *domains):
            yield "wrong_domain", f"there is no domain {tag!r}"
    if cell.domain not in tags and UNIVERSAL not in tags:
        where = f"it belongs to {', '.join(tags)}"
        yield "wrong_domain", f"{where}, and was proposed for {cell.domain}"
    if given not in (cell.difficulty, Difficulty.UNIVERSAL):
        reads = f"{cell.tier.value} reads {cell.difficulty.value} and universal"
        yield "wrong_tier", f"its difficulty is {given.value}, and {reads}"
    examples = [example.text for example in card.examples]
    yield from banned_phrases(visible("\n".join((shown_text(card), *examples))))
    if is_vague(card.body):
        yield (
            "vague",
            "no sentence of its body can be acted on: no formula, number, object or "
            "rule",
        )


def banned_phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield the rules that words of a text break: talk of tests, orders."""
    for rule, pattern, reason in _BANNED:
        found = pattern.search(text)
        if found:
            yield rule, reason.format(found.group().strip())


def is_vague(body: str) -> bool:
    """Whether no sentence has a formula, or two words besides exhortations."""
    for sentence in _SENTENCE.split(body):
        rest = _EXHORTATION.sub(" ", sentence)
        if _FORMULA.search(rest) or len(content_words(rest) - _FILLER) >= 2:
            return False
    return True


def shown_text(card: Card) -> str:
    """Return what the solver reads of a card, its demonstrations aside."""
    name = card.card_id.replace("_", " ").lower()
    return "\n".join((name, card.rule, *card.routing_conditions))


class HeldOutHashes(NamedTuple):
    """Hashes of problems that must not be retold: no text of them is kept."""

    worked: frozenset[str] = frozenset()  # of the numbers with the answer
    ngrams: frozenset[str] = frozenset()
    templates: frozenset[frozenset[str]] = frozenset()  # of the content words of each

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Return the hashes of these problems."""
        worked: set[str] = set()
        ngrams: set[str] = set()
        templates: set[frozenset[str]] = set()
        for problem in problems:
            worked.update(_worked_hashes(problem.text, _keys_of(problem.answer or "")))
            ngrams.update(map(_hash, long_ngrams(visible(problem.text))))
            templates.add(_template(problem.text))
        return cls(frozenset(worked), frozenset(ngrams), frozenset(templates))

    def with_training(self, problems: Iterable[Problem]) -> Self:
        """Return these and the training problems', whose wordings may be retold."""
        ours = self.of(problems)
        worked = self.worked | ours.worked
        return self._replace(worked=worked, ngrams=self.ngrams | ours.ngrams)

    def retold(self, example: Example, max_overlap: float = 1.0) -> str:
        """Return what an example repeats of one of the problems, or the empty string.

        An example may end like any problem; it is retold if the numbers are the same.
        """
        answer = last_boxed(example.worked) or ""
        keys = {*_keys_of(answer), *find_numbers(example.worked).given}
        if not self.worked.isdisjoint(_worked_hashes(example.problem, keys)):
            return (
                "an example has the numbers and the answer of a problem that is learned "
                "from or held out"
            )
        for ngram in long_ngrams(visible(example.problem)):
            if _hash(ngram) in self.ngrams:
                return (
                    f"an example repeats {ngram[:60]!r} of a problem that is learned "
                    "from or held out"
                )
        overlap = self.overlap(example.problem) if max_overlap < 1 else 0.0
        if overlap > max_overlap:
            return (
                f"{overlap:.0%} of the words of an example are those of a problem held "
                "out: it needs another story"
            )
        return ""

    def retells(self, text: str, max_overlap: float) -> bool:
        """Whether a text shares more content words with a problem than it may."""
        return max_overlap < 1 and self.overlap(text) > max_overlap

    def overlap(self, text: str) -> float:
        """Return the largest share of content words in common with one problem (Dice)."""
        ours = _template(text)
        largest = 0.0
        for theirs in self.templates:
            common = len(ours & theirs)
            if common >= MIN_COMMON:
                largest = max(largest, 2 * common / (len(ours) + len(theirs)))
        return largest


NO_HASHES = HeldOutHashes()


class _KnownProblem(NamedTuple):
    """What the rules need of a problem."""

    name: str
    keys: tuple[str, ...]  # of the answer; of a percentage also the number before it
    telling: frozenset[str]  # those that are telling
    parts: frozenset[Fraction]  # the numbers of an answer that has several
    numbers: frozenset[Fraction]  # of the text, without 0, 1 and the answer
    telling_numbers: frozenset[Fraction]

    @classmethod
    def of(cls, problem: Problem) -> Self:
        answers = _read_answers(problem.answer or "")
        parts = find_numbers(problem.answer or "").literals
        numbers = find_numbers(problem.text).literals - {0, 1}
        rationals = set()
        for answer in answers:
            if isinstance(answer.value, Number) and answer.value.rational is not None:
                rationals.add(answer.value.rational)
        return cls(
            name=problem.name,
            keys=tuple(dict.fromkeys(answer.key for answer in answers)),
            telling=frozenset(a.key for a in answers if _answer_telling(a)),
            parts=parts
            if len(parts) > 1 and any(map(is_telling, parts))
            else frozenset(),
            numbers=frozenset(numbers - rationals),
            telling_numbers=frozenset(filter(is_telling, numbers)),
        )


class LeakScreen:
    """An index over problems that finds what a card carries over from them."""

    def __init__(
        self,
        problems: Iterable[Problem],
        held_out: HeldOutHashes = NO_HASHES,
        max_overlap: float = 1.0,
    ) -> None:
        problems = tuple(problems)
        texts = [problem.text for problem in problems]
        self.held_out = held_out
        self.max_overlap = max_overlap
        self._examples = held_out.with_training(problems)
        self._known = [_KnownProblem.of(problem) for problem in problems]
        self._named = _index([one_line(problem.name)] for problem in problems)
        self._by_number = _index(known.telling_numbers for known in self._known)
        self._names = _rare_names(texts)
        self._copies = _index(
            (*long_ngrams(text), *self._telling_ngrams(text)) for text in texts
        )

    def retells(self, text: str) -> bool:
        """Whether a text retells a problem held out."""
        return self.held_out.retells(text, self.max_overlap)

    def find(self, card: Card) -> CardRefusal | None:
        """Return the first thing that a card carries over, or `None`."""
        text = shown_text(card)
        numbers = find_numbers(text)
        own: dict[int, None] = {}
        for name in card.provenance.supporting_problems:
            own.update(dict.fromkeys(self._named.get(one_line(name), ())))
        for place in own:
            known = self._known[place]
            for rule, what in _own_leaks(known, numbers):
                return self._refusal(card, rule, what, place)
        for place in self._coinciding(numbers):
            what = "holds the numbers and the answer of"
            return self._refusal(card, "answer_leak", what, place)
        for what, place in self._copied(visible(text)):
            return self._refusal(card, "instance_overfit", what, place)
        for example in card.examples:
            retold = self._examples.retold(example, self.max_overlap)
            if retold:
                return CardRefusal.by_code(card.card_id, "answer_leak", retold)
        return None

    def _refusal(self, card: Card, rule: str, what: str, place: int) -> CardRefusal:
        reason = f"it {what} the problem {self._known[place].name}"
        return CardRefusal.by_code(card.card_id, rule, reason)

    def _coinciding(self, numbers: FoundNumbers) -> Iterator[int]:
        """Yield the problems whose several numbers and answer a text has."""
        places: set[int] = set()
        for value in numbers.standing:
            places.update(self._by_number.get(value, ()))
        for place in sorted(places):
            known = self._known[place]
            several = len(known.numbers) > 1 and known.numbers <= numbers.standing
            if several and not numbers.values.keys().isdisjoint(known.keys):
                yield place

    def _copied(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield n-grams of a problem's words, and names that few problems have."""
        short = map(" ".join, short_ngrams(text))
        for ngram in (*long_ngrams(text), *short):
            if ngram in self._copies:
                yield f"repeats {_shorten(ngram)} of", self._copies[ngram][0]
        for word in names(text):
            if word in self._names:
                yield f"speaks of {_shorten(word)}, as does", self._names[word]

    def _telling_ngrams(self, text: str) -> Iterator[str]:
        """Yield short n-grams with a telling number, or with a name and any number."""
        for ngram in short_ngrams(text):
            digits = [
                word.replace(",", "")[:40] for word in ngram if word[0].isdecimal()
            ]
            telling = any(is_telling(Fraction(each)) for each in digits)
            if telling or any(word.capitalize() in self._names for word in ngram):
                yield " ".join(ngram)


def _own_leaks(
    known: _KnownProblem, numbers: FoundNumbers
) -> Iterator[tuple[str, str]]:
    """Yield what a card carries over from a problem that it was written from."""
    for key in known.keys:
        text = _shorten(numbers.values.get(key, key.strip("=~")))
        if key in numbers.given and key not in ("=0", "=1"):
            yield "answer_leak", f"gives {text} as an answer: it is the answer of"
        if key in numbers.computed and not _is_small(key):
            yield "answer_leak", f"computes {text}: it is the answer of"
        if key in known.telling and key in numbers.values:
            yield "answer_leak", f"holds {text}: it is the answer of"
        if key in numbers.formulas and len(key) > 6 and re.search(r"\d", key):
            yield "answer_leak", "holds the formula that is the answer of"
        whole = known.numbers and known.numbers <= numbers.standing
        if whole and key in numbers.values:
            yield "answer_leak", "holds the numbers and the answer of"
    if known.parts and any(known.parts <= line for line in numbers.lines):
        yield "answer_leak", "holds the parts of the answer of"
    telling = known.telling_numbers
    several = len(telling) > 1 or any(abs(value) > LARGE for value in telling)
    if several and telling <= numbers.literals:
        yield "instance_overfit", "repeats the numbers of"


# Numbers of a text of prose and formulas. Nothing is ever evaluated as code.


class FoundNumbers(NamedTuple):
    """The numbers of a text, by what it does with them."""

    values: Mapping[str, str]  # by key, the numbers and expressions without letters
    computed: frozenset[str]  # keys of calculations in numbers alone
    formulas: frozenset[str]  # keys of expressions with letters
    given: frozenset[str]  # keys of what is boxed or called an answer
    literals: frozenset[Fraction]
    standing: frozenset[Fraction]  # literals outside of formulas with letters
    lines: tuple[frozenset[Fraction], ...]  # literals of each line


class _Piece(NamedTuple):
    text: str
    literals: tuple[str, ...]
    letters: bool


_LIST_MARK = re.compile(r"^\s*(?:[-*]\s+|\(?\d{1,2}[.)]\s+)")
_SEQUENCE = re.compile(r"(?<![\d.,(])\d{1,9}(?:, ?\d{1,9}){3,}(?![\d)])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?!\d)")
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:\s*\\?%|\s+percent\b)?)"
    r"|(?P<sign>\\(?:[dtc]?frac|[dt]?binom|sqrt|cdot|times|div)(?![A-Za-z])"
    r"|[-+*/^_!(){}])"
    r"|(?P<constant>\\pi(?![A-Za-z]))"
    r"|(?P<cut>\\(?:leq?|geq?|neq?|approx|equiv|to|in|mid|q?quad|pmod|bmod|mod|boxed|fbox"
    r"|begin|end|implies|iff|[lc]?dots)(?![A-Za-z]))"
    r"|(?P<letter>\\[A-Za-z]+|(?<![^\W\d_])[^\W\d_](?![^\W\d_]))"
    r"|(?P<space>\s+)"
    r"|(?P<word>[^\W\d_]+|.)"
)
_IN_PIECE = frozenset(("number", "sign", "constant", "letter"))
_PERCENT = re.compile(r"\s*(?:\\?%|percent)$")
_CALCULATION = re.compile(
    r"\d[\s)}]*(?:[-+*/^]|\\(?:cdot|times|div)(?![A-Za-z]))|\\[dt]?binom|\d!"
)
_FRACTION = re.compile(
    r"\s*-?\s*(?:\d+\s*/\s*\d+|\\[dtc]?frac\s*\{?-?\d+\}?\s*\{?\d+\}?)\s*"
)
_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*" + _GROUP)
_STATED = re.compile(
    r"\b(?:answers?|solutions?|results?)\b"
    r"(?:\s+(?:here|then|now|thus|always|therefore|must|should|will|would))*"
    r"\s*(?:(?:is|are|was|be|equals?|of|as)\b|[=:])?"
    r"\s*(?:(?:exactly|just|simply|only|therefore|always|indeed|equal\s+to)\b)?"
    r"\s*([^\n;]{1,80})",
    re.I,
)
_STATED_AFTER = re.compile(
    r"([^\n;]{1,40}?)\s+(?:is|are|was|as)\s+(?:the|our|its|your)\s+"
    r"(?:\w+\s+)?(?:answer|solution|result)\b",
    re.I,
)
_STATED_END = re.compile(
    r"\.(?=\s|$)|,\s+(?=[A-Za-z]{2})|\s(?:since|because|when|if|where|for|so)\b"
)
_CUSTOMARY_FORMS = r"""
    \sqrt2 \sqrt3 \sqrt5 \frac{\sqrt2}2 \frac{\sqrt3}2 \frac{\sqrt3}3 \frac{\sqrt3}4
    \frac{1+\sqrt5}2 \frac{1-\sqrt5}2 \pi 2\pi 4\pi \frac{\pi}2 \frac{\pi}3 \frac{\pi}4
    \frac{\pi}6 \frac43\pi \frac13\pi
"""
_CUSTOMARY_KEYS = frozenset(Answer.of(text).key for text in _CUSTOMARY_FORMS.split())
_answer = lru_cache(maxsize=16_384)(Answer.of)


def is_telling(value: Fraction | int) -> bool:
    """Whether a number does not occur everywhere: 7, 180 and 1/2 do, 142 does not."""
    top = abs(Fraction(value).numerator)
    below = Fraction(value).denominator
    if below == 1:
        return top > SMALL and top not in CUSTOMARY
    return max(top, below) > 4 and not (top == 1 and below <= SMALL)


def find_numbers(text: str) -> FoundNumbers:
    """Return the numbers of a text."""
    values: dict[str, str] = {}
    computed: set[str] = set()
    formulas: set[str] = set()
    standing: set[Fraction] = set()
    lines: list[frozenset[Fraction]] = []
    plain = normalise(text)
    for line in plain.split("\n"):
        line = _LIST_MARK.sub("", line)
        literals: set[Fraction] = set()
        for sequence in _SEQUENCE.findall(line):
            # A sequence such as the primes holds many numbers and is no result.
            numbers = [_fraction(digits) for digits in re.findall(r"\d+", sequence)]
            if numbers == sorted(numbers):
                literals.update(numbers)
                large = [value for value in numbers if value > LARGE]
                values.update((f"={Number.of(value)}", str(value)) for value in large)
                line = line.replace(sequence, ";")
        for piece in _pieces(line):
            keys = _piece_keys(piece)
            literals.update(map(_fraction, piece.literals))
            if piece.letters:
                formulas.update(keys)
                long = [n for n in piece.literals if len(n) > MAX_FACTOR_DIGITS]
                standing.update(map(_fraction, long))
                continue
            standing.update(map(_fraction, piece.literals))
            values.update(dict.fromkeys(keys, piece.text))
            if _is_calculation(piece.text, keys[0]):
                computed.update(keys)
            for literal in piece.literals:
                value = _fraction(literal)
                if value > LARGE:
                    values[f"={Number.of(value)}"] = literal
        for digits in _GROUPED.findall(line):
            value = _fraction(re.sub("[, ]", "", digits))
            literals.add(value)
            standing.add(value)
            values[f"={Number.of(value)}"] = digits
        lines.append(frozenset(literals))
    return FoundNumbers(
        values=values,
        computed=frozenset(computed),
        formulas=frozenset(formulas),
        given=frozenset(_given_keys(plain)),
        literals=frozenset().union(*lines),
        standing=frozenset(standing),
        lines=tuple(lines),
    )


def _given_keys(text: str) -> Iterator[str]:
    """Yield the keys of what a text gives as an answer: the whole, and its number."""
    stated = [match[1] for match in _BOXED.finditer(text)]
    for match in _STATED.finditer(text):
        stated.append(_STATED_END.split(match[1], maxsplit=1)[0])
    for match in _STATED_AFTER.finditer(text):
        pieces = list(_pieces(match[1]))
        stated += [piece.text for piece in pieces[-1:]]
    for each in stated:
        yield _answer(each.strip(" .")).key
        pieces = list(_pieces(each))
        if len(pieces) == 1 and not pieces[0].letters:
            yield from _piece_keys(pieces[0])


def _piece_keys(piece: _Piece) -> list[str]:
    """Return the key of a piece; of a percentage also the number before the sign."""
    keys = [_answer(piece.text).key]
    if piece.text.endswith(("%", "percent")):
        keys.append(_answer(_PERCENT.sub("", piece.text)).key)
    return keys


def _is_calculation(text: str, key: str) -> bool:
    """Whether a text is more than a fraction, or a fraction of whole value."""
    if _FRACTION.fullmatch(text):
        return key.removeprefix("=-").removeprefix("=").isdigit()
    return _CALCULATION.search(text) is not None


def _pieces(line: str) -> Iterator[_Piece]:
    """Yield the numbers and formulas of a line that have a number in them."""
    tokens: list[re.Match[str]] = []
    spaced = False
    for token in (*_TOKEN.finditer(line), None):
        kind = token.lastgroup if token else None
        if kind == "space":
            spaced = True
            continue
        if token and kind in _IN_PIECE:
            signs = "sign" in (kind, tokens[-1].lastgroup if tokens else "sign")
            if signs or not spaced:
                tokens.append(token)
                spaced = False
                continue
        piece = _make_piece(line, tokens)
        if piece.literals:
            yield piece
        tokens = [token] if token and kind in _IN_PIECE else []
        spaced = False


def _make_piece(line: str, tokens: Sequence[re.Match[str]]) -> _Piece:
    literals = []
    for token in tokens:
        if token.lastgroup == "number":
            literals.append(_PERCENT.sub("", token[0]))
    if not literals:
        return _Piece("", (), letters=False)
    letters = any(token.lastgroup == "letter" for token in tokens)
    raw = line[tokens[0].start() : tokens[-1].end()]
    return _Piece(_trim(raw), tuple(literals), letters)


def _trim(text: str) -> str:
    """Return the text without operators at its ends and unpaired brackets."""
    text = text.strip().rstrip("+-*/^_({| ").lstrip("+*/^_)}!| ").removeprefix("- ")
    for opening, closing in ("()", "{}"):
        while text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:].strip()
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].strip()
    return text


def _fraction(digits: str) -> Fraction:
    return Fraction(digits[:200])


def _is_small(key: str) -> bool:
    """Whether a key is that of a whole number up to 12, or of a simple fraction."""
    value = _answer(key.removeprefix("=")).value
    rational = value.rational if isinstance(value, Number) else None
    return rational is not None and abs(rational) <= SMALL and not is_telling(rational)


def _answer_telling(answer: Answer) -> bool:
    value = answer.value
    if not isinstance(value, Number):
        return False
    if value.rational is not None:
        return is_telling(value.rational)
    return value.constant and answer.key not in _CUSTOMARY_KEYS


def _read_answers(text: str) -> list[Answer]:
    """Return the readings of an answer; words that are only letters give none."""
    texts = [text]
    if "%" in text:
        texts.append(text.replace(r"\%", "").replace("%", ""))
    found = []
    for each in texts:
        answer = _answer(each)
        plain_word = isinstance(answer.value, Word) and not re.search(r"\d", each)
        if any(char.isalnum() for char in each) and not plain_word:
            found.append(answer)
    return found


def _keys_of(text: str) -> list[str]:
    return [answer.key for answer in _read_answers(text)]


def _worked_hashes(text: str, keys: Iterable[str]) -> set[str]:
    literals = find_numbers(text).literals
    numbers = " ".join(map(str, sorted(literals - {0, 1} or literals)))
    return {_hash(f"{numbers} = {key}") for key in keys}


# Words of a text.

_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_NUMBER = "|".join((*NUMBER_WORDS, *_SCALES))
_SPELLED = re.compile(
    rf"\b(?:{_NUMBER})(?:(?:\s+and\s+|[\s-]+)(?:{_NUMBER}))*\b(?!')", re.I
)
_TYPOGRAPHY = (
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!|\\,)(?=\d{3}(?!\d))"), ""),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))"), " "),
    (re.compile(r"\\(?:left|right|displaystyle|degrees?)(?![A-Za-z])|\\[!,;:]"), " "),
    (re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\?\$|\\[()\[\]]|[*_]{2}|~"), " "),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)"), " * "),
)


def visible(text: str) -> str:
    """Return the text without invisible characters, with one form of each letter."""
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", text)
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


def normalise(text: str) -> str:
    """Return the text in ASCII and LaTeX, with numbers above twelve in digits."""
    text = visible(text)
    if not text.isascii():
        text = "".join(map(_ascii_form, text))
    for pattern, new in _TYPOGRAPHY:
        text = pattern.sub(new, text)
    return _SPELLED.sub(_spelled_digits, text)


@lru_cache(maxsize=4_096)
def _ascii_form(char: str) -> str:
    """Return how ASCII and LaTeX write a character; a dash between clauses cuts."""
    if char.isascii():
        return char
    form = " ; " if char in "—―" else normal_form(char)
    return f"{form} " if form.startswith("\\") and form[-1].isalpha() else form


def _spelled_digits(match: re.Match[str]) -> str:
    total = current = 0
    for word in re.findall(r"[a-z]+", match[0].lower()):
        scale = _SCALES.get(word, 0)
        if scale:
            current = max(1, current) * scale
            if scale > 100:
                total += current
                current = 0
        elif word != "and":
            current += NUMBER_WORDS[word]
    value = total + current
    return str(value) if value > SMALL else match[0]


def _tokens(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, LaTeX commands aside."""
    return [token.lower() for token in _WORD.findall(_COMMAND.sub(" ", text))]


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _has_content(token: str) -> bool:
    long = len(token) > 3 and not token[0].isdigit()
    return long and _stem(token) not in _COMMON_WORDS


def content_words(text: str) -> frozenset[str]:
    """Return the words that say what a text is about, without plural endings."""
    return frozenset(_stem(token) for token in _tokens(text) if _has_content(token))


def ngrams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Yield every run of that many words."""
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def long_ngrams(text: str) -> Iterator[str]:
    """Yield the n-grams that are long enough for a copy, all numbers alike."""
    words = ["#" if token[0].isdigit() else token for token in _tokens(text)]
    for length, content in LONG_NGRAMS:
        for run in ngrams(words, length):
            if sum(map(_has_content, run)) >= content:
                yield " ".join(run)


def short_ngrams(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of `SHORT_NGRAM` words with a number and some content."""
    for run in ngrams(_tokens(text), SHORT_NGRAM):
        if any(word[0].isdigit() for word in run) and any(map(_has_content, run)):
            yield run


def names(text: str, *, inside: bool = False) -> list[str]:
    """Return capitalised words (or those inside sentences) but mathematicians'."""
    found = (_NAME_INSIDE if inside else _CAPITALISED).findall(text)
    return [word for word in dict.fromkeys(found) if word not in _KNOWN_NAMES]


def _rare_names(texts: Sequence[str]) -> dict[str, int]:
    """Return the names that one or two problems have, written no other way anywhere."""
    plain = {word for text in texts for word in re.findall(r"\b[a-z]+\b", text)}
    rare = {}
    for name, places in _index(names(text, inside=True) for text in texts).items():
        if len(places) <= RARE_NAME and name.lower() not in plain:
            rare[name] = places[0]
    return rare


def _template(text: str) -> frozenset[str]:
    """Return the hashes of the content words, numbers aside."""
    words = content_words(_SPELLED.sub(" ", visible(text)))
    return frozenset(map(_hash, words))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _index(keys: Iterable[Iterable[K]]) -> dict[K, tuple[int, ...]]:
    found: defaultdict[K, list[int]] = defaultdict(list)
    for place, held in enumerate(keys):
        for key in held:
            found[key].append(place)
    return {key: tuple(places) for key, places in found.items()}


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
