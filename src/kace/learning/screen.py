r"""The screen of cards: every rule that code checks before the teacher judges a card.

What is covered: a card must fit its cell, have no talk of tests, no orders and not only
exhortations, and carry over nothing from the problems:

| a card is compared with | it is refused for |
|---|---|
| problems it was written from | their answer where it is boxed or called one |
| | their answer anywhere, if it is telling |
| | all their numbers with the answer; all their telling numbers |
| other problems | several numbers of one, a telling one among them, and its answer |
| all problems | an n-gram of their words |
| held-out problems, by hashes | a demonstration with the numbers and answer of one, with |
| | an n-gram of its words, or too many of its content words |

A number is telling when it does not occur everywhere: 7 and 180 do, 142 does not.

What is not covered: an answer that a teacher hides on purpose (in base64, as a sum), an
equal expression (the root of 68 for twice that of 17), and a retold story.
The screen catches accidents.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from kace.answers.extract import Answer
from kace.cards.card import UNIVERSAL, Card, Example
from kace.errors import one_line
from kace.learning.teacher import CardRefusal
from kace.problems import Problem

SMALL = 12  # whole numbers up to this occur in any formula; spelled out, they stay words
LARGE = 99
MIN_COMMON = 4
"""Fewer content words in common are what any two problems may have."""
NGRAM = 8
CONTENT = 4
"""So many words in a row, numbers aside, with so many content words, are a copy; with
fewer a phrase of the trade."""

_TABLES = tomllib.loads(
    Path(__file__).with_name("screen.toml").read_text(encoding="utf-8")
)
_FILLER = frozenset(_TABLES["filler"].split())


def _phrases(name: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile("|".join(_TABLES[name]), flags)


_TALK = "it mentions {!r}, which is about tests and not about mathematics"
_ORDER = "it orders its reader about: {!r}"
_BANNED = (
    ("benchmark_talk", _phrases("tests", re.NOFLAG), _TALK),
    ("benchmark_talk", _phrases("benchmark"), _TALK),
    ("orders", _phrases("orders"), _ORDER),
)
_EXHORTATION = _phrases("exhortations")
_FORMULA = re.compile(
    r"[=<>^≤≥≠±√∑∏]|\\[A-Za-z]{2,}|\d|\b[a-zA-Z]\s*[-+*/]\s*[a-zA-Z\d]\b"
    r"|[a-z]\([a-z]|\b[a-zA-Z]_\w"
)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")


def check_card(
    card: Card, leaks: LeakScreen, domains: Sequence[str]
) -> CardRefusal | None:
    """Return the first rule of code that a card breaks, or `None`."""
    for rule, reason in chain(_broken_rules(card, domains), leaks.find(card)):
        return CardRefusal(
            card_id=card.card_id, by="code", rule=rule, reason=reason
        )
    return None


def _broken_rules(
    card: Card, domains: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the rules that a card breaks by itself or by its place, with reasons."""
    for tag in card.domain_tags:
        if tag not in (UNIVERSAL, *domains):
            yield "wrong_domain", f"there is no domain {tag!r}"
    examples = [example.text for example in card.examples]
    yield from banned_phrases(visible("\n".join((shown_text(card), *examples))))
    if is_vague(card.body):
        yield "vague", "no sentence of its body can be acted on"


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
    templates: frozenset[frozenset[str]] = frozenset()
    """The hashes of the content words of each problem."""

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Return the hashes of these problems."""
        worked: set[str] = set()
        ngrams: set[str] = set()
        templates: set[frozenset[str]] = set()
        for problem in problems:
            keys = _answer_keys(problem.answer or "")
            worked.update(_worked_hashes(problem.text, keys))
            ngrams.update(map(_hash, copied_ngrams(problem.text)))
            templates.add(_template(problem.text))
        return cls(frozenset(worked), frozenset(ngrams), frozenset(templates))

    def retold(self, example: Example, max_overlap: float = 1.0) -> str:
        """Return what an example repeats of one of the problems, or the empty string.

        An example may end like any problem; it is retold if the numbers are the same.
        """
        keys = _given_keys(normalise(example.worked))
        if not self.worked.isdisjoint(_worked_hashes(example.problem, keys)):
            return "an example has the numbers and the answer of a problem"
        for ngram in copied_ngrams(example.problem):
            if _hash(ngram) in self.ngrams:
                return f"an example repeats {ngram[:60]!r} of a problem"
        overlap = self.overlap(example.problem)
        if overlap > max_overlap:
            return (
                f"an example has {overlap:.0%} of the words of a problem held out: "
                "it needs another story"
            )
        return ""

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


class LeakScreen:
    """Finds what a card carries over from problems."""

    def __init__(
        self,
        problems: Iterable[Problem],
        held_out: HeldOutHashes = NO_HASHES,
        max_overlap: float = 1.0,
    ) -> None:
        self.held_out = held_out
        self.max_overlap = max_overlap
        ours = tuple(problems)
        self._ours = HeldOutHashes.of(ours)
        self._numbers = [(each, _numbers_of(each)) for each in ours]
        self._copies: dict[str, str] = {}
        for problem in ours:
            for ngram in copied_ngrams(problem.text):
                self._copies.setdefault(ngram, problem.name)

    def retells(self, text: str) -> bool:
        """Whether a text retells a problem held out."""
        return self.held_out.overlap(text) > self.max_overlap

    def find(self, card: Card) -> Iterator[tuple[str, str]]:
        """Yield the rules that a card breaks by what it carries over, with reasons."""
        text = normalise(shown_text(card))
        numbers = numbers_in(text)
        values = set(_value_keys(text))
        own = set(map(one_line, card.provenance.supporting_problems))
        for problem, theirs in self._numbers:
            if one_line(problem.name) in own:
                for rule, what in _own_leaks(problem, theirs, text):
                    yield rule, f"it {what} the problem {problem.name}"
            elif (
                len(theirs) > 1
                and theirs <= numbers
                and any(map(is_telling, theirs))
                and not values.isdisjoint(_answer_keys(problem.answer or ""))
            ):
                what = "it has the numbers and the answer of the problem"
                yield "answer_leak", f"{what} {problem.name}"
        for ngram in copied_ngrams(text):
            if ngram in self._copies:
                what = (
                    f"it repeats {ngram!r} of the problem {self._copies[ngram]}"
                )
                yield "instance_overfit", what
        for example in card.examples:
            # Of training problems, the wordings may be retold.
            retold = self._ours.retold(example)
            retold = retold or self.held_out.retold(example, self.max_overlap)
            if retold:
                yield "answer_leak", f"it shows what is not its own: {retold}"


def _numbers_of(problem: Problem) -> frozenset[Fraction]:
    """Return the numbers of a problem's text without 0, 1 and its answer."""
    answer = numbers_in(problem.answer or "")
    numbers = numbers_in(problem.text) - {0, 1}
    return numbers - answer if len(answer) == 1 else numbers


def _own_leaks(
    problem: Problem, numbers: frozenset[Fraction], text: str
) -> Iterator[tuple[str, str]]:
    """Yield what a card written from a problem carries over, by rule."""
    answer = problem.answer or ""
    keys = _answer_keys(answer)
    found = numbers_in(text)
    if keys & set(_given_keys(text)) - {"=0", "=1"}:
        yield "answer_leak", "calls an answer what is the answer of"
    rare = any(map(is_telling, numbers_in(answer)))
    if (
        rare
        or (numbers and numbers <= found)
        or any(map(_is_telling_key, keys))
    ):
        if not keys.isdisjoint(_value_keys(text)):
            yield "answer_leak", "holds the answer of"
        parts = set(_tokens(answer))
        compound = not " ".join(parts).isdigit()
        for line in text.split("\n"):
            if compound and parts.issubset(_tokens(line)):
                yield "answer_leak", "holds the parts of the answer of"
    telling = frozenset(filter(is_telling, numbers))
    several = len(telling) > 1 or max(telling, default=0) > LARGE
    if several and telling <= found:
        yield "instance_overfit", "repeats the numbers of"


# Numbers of a text of prose and formulas. Nothing is ever evaluated as code.


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# No letter belongs to it, as in `20n`.
_VALUE = re.compile(
    r"(?<![\w.^{\\-])-?\d+(?:\.\d+)?(?:/\d+)?(?:\s*\\?%|\s+percent\b)?(?![\w^({!]|\.\d)"
)
_SEQUENCE = re.compile(
    r"(?<!\()\b(?:\d{1,9}, ?){5,}\d{1,9}"
)  # such as the primes
_PERCENT = re.compile(r"\s*(?:\\?%|percent)$")
_MEASURED = (
    re.compile(  # a number with its unit; a factor such as in 17x is none
        r"\$?(\d+(?:\.\d+)?)(?:\s+|(?=[A-Za-z]{2}))[A-Za-z][A-Za-z ./^\d]*"
    )
)
_BOXED = re.compile(
    r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
)
_STATED = re.compile(
    r"(?:\b(?:answer|ans|solution|result)s?\b|####)[\s:=]*"
    r"(?:(?:is|are|was|be|equals?|comes|to|of|here|then|now|thus|always|therefore|must"
    r"|should|will|would|exactly|just|simply|only|indeed|equal)\b[\s:=]*)*"
    r"([^\n;]{1,80})"
    r"|(\S+)\s+(?:is|are|was)\s+(?:the|our|its|your)\s+(?:final\s+)?"
    r"(?:answer|solution|result)\b",
    re.I,
)
_STATED_END = re.compile(
    r"\.(?=\s|$)|,\s+(?=[A-Za-z]{2})|\s(?:since|because|when|if|where|for|so)\b"
)


def is_telling(value: Fraction) -> bool:
    """Whether a number does not occur everywhere: 7, 180 and 1/2 do, 142 does not."""
    top = abs(value.numerator)
    below = value.denominator
    if below == 1:
        return top > SMALL and top not in _TABLES["customary"]
    return max(top, below) > 4 and not (top == 1 and below <= SMALL)


def _is_telling_key(key: str) -> bool:
    value = Answer.of(key.removeprefix("=")).value
    return isinstance(value, Fraction) and is_telling(value)


def _value_keys(text: str) -> Iterator[str]:
    """Yield the keys of the numbers of a text."""
    for value in _VALUE.findall(_SEQUENCE.sub("", text)):
        yield from _answer_keys(value)


def _given_keys(text: str) -> Iterator[str]:
    """Yield the keys of what a text gives as an answer: the whole, and its number."""
    stated = _BOXED.findall(text)
    for match in _STATED.finditer(text):
        stated.append(_STATED_END.split(match[1] or match[2], maxsplit=1)[0])
    for each in stated:
        yield from _answer_keys(each.strip(" .$"))
        only = _VALUE.findall(each)
        if len(only) == 1:
            yield from _answer_keys(only[0])


def _answer_keys(answer: str) -> frozenset[str]:
    """Return the keys of an answer, and of its number before a unit or percent sign."""
    answer = normalise(answer).strip()
    if not re.search(r"\w", answer):
        return frozenset()
    spellings = {answer, _PERCENT.sub("", answer)}
    measured = _MEASURED.fullmatch(answer)
    if measured:
        spellings.add(measured[1])
    return frozenset(Answer.of(spelling).key for spelling in spellings)


def numbers_in(text: str) -> frozenset[Fraction]:
    """Return every number of a text."""
    found = _NUMBER.findall(normalise(text))
    return frozenset(Fraction(digits[:200]) for digits in found)


def _worked_hashes(text: str, keys: Iterable[str]) -> set[str]:
    found = numbers_in(text)
    numbers = " ".join(map(str, sorted(found - {0, 1} or found)))
    return {_hash(f"{numbers} = {key}") for key in keys}


# Words of a text.

_NUMBER_WORDS = _TABLES["numbers"].split()
_SPELLED = re.compile(
    rf"\b(?:{'|'.join(reversed(_NUMBER_WORDS))})\b(?!')".replace(
        "-", r"[\s-]+"
    ),
    re.IGNORECASE,
)
_COMMON_WORDS = frozenset(
    (*_TABLES["common"].split(), *_NUMBER_WORDS, "hundred")
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:,\d{3})*(?:\.\d+)?!?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_SIGNS = str.maketrans("−–×·⋅÷⁄", "--***//")
_TYPOGRAPHY = [
    (re.compile(pattern), plain) for pattern, plain in _TABLES["typography"]
]
_GROUPED = re.compile(
    r"(?<![\d.,(])\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?![\d)])"
)


def visible(text: str) -> str:
    """Return the text without invisible characters, with one form of each letter."""
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", text)
    return "".join(
        char for char in normal if unicodedata.category(char) != "Cf"
    )


def normalise(text: str) -> str:
    """Return the text in ASCII and LaTeX, with numbers above twelve in digits."""
    text = visible(text).translate(_SIGNS)
    for pattern, new in _TYPOGRAPHY:
        text = pattern.sub(new, text)
    text = _GROUPED.sub(lambda match: re.sub("[, ]", "", match[0]), text)
    return _SPELLED.sub(_spelled_digits, text)


def _spelled_digits(match: re.Match[str]) -> str:
    word = re.sub(r"[\s-]+", "-", match[0].lower())
    value = _NUMBER_WORDS.index(word)
    return str(value) if value > SMALL else match[0]


def _tokens(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, LaTeX commands aside."""
    plain = _COMMAND.sub(" ", normalise(text))
    return [token.lower() for token in _WORD.findall(plain)]


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _has_content(token: str) -> bool:
    long = len(token) > 3 and not token[0].isdigit()
    return long and _stem(token) not in _COMMON_WORDS


def content_words(text: str) -> frozenset[str]:
    """Return the words that a text is about, without plural endings."""
    return frozenset(
        _stem(token) for token in _tokens(text) if _has_content(token)
    )


def ngrams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Yield every run of that many words."""
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def copied_ngrams(text: str) -> Iterator[str]:
    """Yield the n-grams that are long enough for a copy, all numbers alike."""
    words = []
    for token in _tokens(text):
        words.append("#" if token[0].isdigit() else token)
    for run in ngrams(words, NGRAM):
        if sum(map(_has_content, run)) >= CONTENT:
            yield " ".join(run)


def _template(text: str) -> frozenset[str]:
    """Return the hashes of the content words."""
    return frozenset(map(_hash, content_words(text)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[
        :24
    ]
