r"""Leakage: what a card must not carry over from the problems it was learnt from: answers, numbers, wording.

A number is a leak when it gives an answer away, not when it merely equals one: of five thousand answers some is 180,
and yet angles add up to 180. What counts is its salience and its role in the card (`kace.learning.numbers`):

| the value is an answer, and it is    | small                   | customary | two digits | any other |
|---|---|---|---|---|
| given as an answer, boxed            | leak (0 and 1: if near) | leak      | leak       | leak      |
| computed from numbers, `7 * 20 + 2`  | if near                 | leak      | leak       | leak      |
| what letters or a total equal, `x =` | no                      | no        | leak       | leak      |
| standing in prose, `a brade is 20`   | no                      | no        | if near    | leak      |
| in a sum or a sequence               | no                      | no        | no         | leak      |
| in a formula with letters            | no                      | no        | no         | if near; leak from 1000 on |

"Near" means that the card shares uncommon words with that problem, more than with all but a few others, or names it as
supporting. An answer of any size leaks together with all numbers of its problem, if one of them is salient, or the card
is near, or a calculation leads from them to it. The numbers or names of one problem, or an n-gram of its words, make a
card an instance. Formulas with letters, their constants, and examples in small numbers pass.
A number counts in every writing that `kace.learning.text` reads, of an answer in a worked example too.

A worked example is held against held-out problems too, by hashes alone: it must not have the numbers and the answer of
one, nor an n-gram of its words, nor more than `max_overlap` of its content words, numbers aside. The last is what shows
a wording retold with other numbers. It counts words and knows no synonyms: a story told in other words passes, and a
short problem in the terms of its subject may be refused by chance. The hash of a word can be guessed with a dictionary;
what hashes promise is that no text of a held-out problem can reach a prompt, a card or a file.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import NamedTuple, Self, TypeVar

from kace.answers.exact import Number, Word
from kace.answers.extract import Answer, last_boxed
from kace.cards.card import Card, Example
from kace.errors import one_line
from kace.learning.blocks import CardRefusal
from kace.learning.numbers import (
    MentionRole,
    NumberMentions,
    Salience,
    literals_in,
    number_mentions,
    salience_of,
)
from kace.learning.text import (
    content_words,
    long_ngrams,
    names,
    short_ngrams,
    template_words,
    visible,
)
from kace.problems import Problem

MAX_NEAR = 8  # more problems than this are a field, not what a card is about: then more words must be shared
MIN_SHARED = 2
# a word is uncommon in at most this share, or this number, of the problems
UNCOMMON_SHARE = 0.02
UNCOMMON_COUNT = 5
RARE_NAME = (
    2  # a name in more problems than this belongs to the subject, not to one of them
)
MAX_ALIKE = 50
"""With more problems than this that have a small answer and small numbers, a small calculation fits one by chance."""

MIN_ALIKE = 4
"""Fewer content words in common are what any two problems of a technique may have."""

K = TypeVar("K")
_Leak = tuple[
    str, str, int
]  # the rule, what the card does, and the problem it does it with

_NEVER = Salience.DISTINCT + 1
_LEAST = {
    MentionRole.ANSWER: (Salience.SMALL, Salience.SMALL),
    MentionRole.RESULT: (Salience.CUSTOMARY, Salience.SMALL),
    MentionRole.STATED: (Salience.PLAIN, _NEVER),
    MentionRole.ALONE: (Salience.DISTINCT, Salience.PLAIN),
    MentionRole.PART: (Salience.DISTINCT, _NEVER),
    MentionRole.FACTOR: (_NEVER, Salience.DISTINCT),
}
"""The least salience that is a leak in each role: whatever the card is about, and where it is near the problem."""


class ContaminationHashes(NamedTuple):
    """Hashes of each problem's numbers with its answer, of the n-grams of its words, and of each of its content words.

    Nothing but hashes is kept: a learner that must not know a held-out problem can still be kept from telling it.
    """

    worked: frozenset[str] = frozenset()
    ngrams: frozenset[str] = frozenset()
    templates: frozenset[frozenset[str]] = frozenset()
    """The content words of each problem, numbers aside: one set for all problems of a wording."""

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """The hashes of these problems."""
        problems = tuple(problems)
        worked = frozenset(
            found
            for each in problems
            for found in _worked(each.text, each.answer or "")
        )
        ngrams = frozenset(
            _hash(n) for each in problems for n in long_ngrams(visible(each.text))
        )
        return cls(worked, ngrams, frozenset(_template(each.text) for each in problems))

    def with_training(self, problems: Iterable[Problem]) -> Self:
        """These and what must not be told of problems that are learned from, whose wordings may be retold."""
        ours = self.of(problems)
        return self._replace(
            worked=self.worked | ours.worked, ngrams=self.ngrams | ours.ngrams
        )

    def retold(self, example: Example, max_overlap: float = 1.0) -> str:
        """What an example has of one of the problems; empty where it is one of its own.

        An example may end like any problem, as every number does: it is retold where the numbers are the same too.
        """
        answer = last_boxed(example.worked) or ""
        if not self.worked.isdisjoint(
            _worked(example.problem, answer, _told(answer, example.worked))
        ):
            return "an example has the numbers and the answer of a problem that is learned from or held out"
        copied = (
            n for n in long_ngrams(visible(example.problem)) if _hash(n) in self.ngrams
        )
        repeats = (
            f"an example repeats {n[:60]!r} of a problem that is learned from or held out"
            for n in copied
        )
        overlap = self.overlap(example.problem) if max_overlap < 1 else 0.0
        alike = f"{overlap:.0%} of the words of an example are those of a problem held out: it needs another story"
        return next(repeats, alike if overlap > max_overlap else "")

    def retells(self, text: str, max_overlap: float) -> bool:
        """Whether a text has more of its content words in common with one of the problems than it may."""
        return max_overlap < 1 and self.overlap(text) > max_overlap

    def overlap(self, text: str) -> float:
        """The largest share of content words, numbers aside, that a text has in common with one of the problems.

        Twice the common words over the words of both (Dice).
        """
        ours = _template(text)
        shared = (
            (len(ours & theirs), len(ours) + len(theirs)) for theirs in self.templates
        )
        return max(
            (2 * common / both for common, both in shared if common >= MIN_ALIKE),
            default=0.0,
        )


NO_HASHES = ContaminationHashes()


class _Known(NamedTuple):
    """What the rules need of a problem."""

    name: str
    numbers: frozenset[
        Fraction
    ]  # its number literals; 0 and 1 only where there are no others
    others: frozenset[Fraction]  # those that are not the answer itself
    salient: frozenset[Fraction]  # those that are neither small nor customary
    answers: tuple[str, ...]  # the keys under which the answer may be found
    small: bool  # whether neither its numbers nor its answer are salient

    @classmethod
    def of(cls, problem: Problem) -> Self:
        numbers = _numbers_of(problem.text)
        answers = _answers_in(problem.answer or "")
        salient = frozenset(
            value for value in numbers if salience_of(value) > Salience.CUSTOMARY
        )
        rationals = (
            answer.value.rational
            for answer in answers
            if isinstance(answer.value, Number)
        )
        others = numbers.difference(value for value in rationals if value is not None)
        small = not salient and any(
            salience_of(answer.value) is Salience.SMALL for answer in answers
        )
        return cls(
            problem.name,
            numbers,
            others,
            salient,
            tuple(dict.fromkeys(a.key for a in answers)),
            small,
        )


class Leaks:
    """An index over problems that finds what a card gives away of them; made once, asked in about a millisecond.

    Examples are held against the problems held out too.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        held_out: ContaminationHashes = NO_HASHES,
        max_overlap: float = 1.0,
    ) -> None:
        problems = tuple(problems)
        texts = [problem.text for problem in problems]
        self.retells = partial(held_out.retells, max_overlap=max_overlap)
        self._retold = partial(
            held_out.with_training(problems).retold, max_overlap=max_overlap
        )
        self._known = [_Known.of(problem) for problem in problems]
        self._named = _index((one_line(problem.name),) for problem in problems)
        self._answers = _index(known.answers for known in self._known)
        self._by_number = _index(known.salient for known in self._known)
        self._few_alike = sum(known.small for known in self._known) <= MAX_ALIKE
        limit = max(UNCOMMON_COUNT, UNCOMMON_SHARE * len(texts))
        words = _index(map(content_words, texts))
        self._words = {
            word: having for word, having in words.items() if len(having) <= limit
        }
        # Names inside sentences that few problems have, and that are written no other way anywhere.
        plain = {word for text in texts for word in re.findall(r"\b[a-z]+\b", text)}
        inside = _index(names(text, inside=True) for text in texts)
        rare = {
            name: having[0]
            for name, having in inside.items()
            if len(having) <= RARE_NAME
        }
        self._names = {
            name: number for name, number in rare.items() if name.lower() not in plain
        }
        self._copies = _index(
            (*long_ngrams(text), *self._salient_ngrams(text)) for text in texts
        )

    def find(self, card: Card) -> CardRefusal | None:
        """The first thing a card gives away, in what the solver reads of it; None where it gives nothing away."""
        text = visible(said_by(card))
        numbers = number_mentions(said_by(card))
        near = self._near(
            text
        )  # shares its words; a card is also about the problems that it says it came from
        named = map(one_line, card.provenance.supporting_problems)
        about = near.union(
            number for name in named for number in self._named.get(name, ())
        )
        numeric = chain(
            self._answer(numbers, near, about),
            self._worked(numbers, about),
            self._instance(numbers, about),
        )
        for rule, what, number in chain(numeric, self._copied(text)):
            return CardRefusal.by_code(
                card.card_id, rule, f"it {what} the problem {self._known[number].name}"
            )
        retold = next(filter(None, map(self._retold, card.examples)), "")
        return (
            CardRefusal.by_code(card.card_id, "answer_leak", retold) if retold else None
        )

    def _answer(
        self, numbers: NumberMentions, near: Set[int], about: Set[int]
    ) -> Iterator[_Leak]:
        """An answer, by its salience and role."""
        for mention in numbers.mentions:
            always, if_near = _LEAST[mention.role]
            trivial = mention.role is MentionRole.ANSWER and mention.key in ("=0", "=1")
            # What a card shows in small numbers may end like a problem it came from: that alone is chance.
            close = about if mention.salience > Salience.SMALL else near
            for number in self._answers.get(mention.key, ()):
                if (mention.salience >= always and not trivial) or (
                    number in close and mention.salience >= if_near
                ):
                    what = f"holds {_short(mention.text)}, {mention.role.value}: it is the answer of"
                    yield "answer_leak", what, number

    def _worked(self, numbers: NumberMentions, about: Set[int]) -> Iterator[_Leak]:
        """An answer of any size with all numbers of its problem."""
        results = {
            mention.key
            for mention in numbers.mentions
            if mention.role is MentionRole.RESULT
        }
        inside = (MentionRole.PART, MentionRole.FACTOR)
        for key in sorted(
            {mention.key for mention in numbers.mentions if mention.role not in inside}
        ):
            for number in self._answers.get(key, ()):
                known = self._known[number]
                near = number in about
                whole = known.others and known.others <= numbers.standing
                worked = self._few_alike and (
                    key in results or known.numbers in numbers.sums
                )
                core = (
                    known.others & known.salient and known.salient <= numbers.standing
                )
                if (whole and (core or near or worked)) or (core and near):
                    yield "answer_leak", "holds the numbers and the answer of", number

    def _instance(self, numbers: NumberMentions, about: Set[int]) -> Iterator[_Leak]:
        """The salient numbers of one problem."""
        literals = numbers.literals
        for number in (
            number
            for value in sorted(literals)
            for number in self._by_number.get(value, ())
        ):
            salient = self._known[number].salient
            large = sum(salience_of(each) is Salience.DISTINCT for each in salient)
            many = len(salient) > 2 or large > 1
            if salient <= literals and (
                many or (number in about and (large or len(salient) > 1))
            ):
                yield "instance_overfit", "repeats the numbers of", number

    def _copied(self, text: str) -> Iterator[_Leak]:
        """An n-gram of a problem's words, or a name that only one or two problems have."""
        for ngram in (*long_ngrams(text), *map(" ".join, short_ngrams(text))):
            if ngram in self._copies:
                yield (
                    "instance_overfit",
                    f"repeats {_short(ngram)} of",
                    self._copies[ngram][0],
                )
        for word in names(text):
            if word in self._names:
                yield (
                    "instance_overfit",
                    f"speaks of {_short(word)}, as does",
                    self._names[word],
                )

    def _near(self, text: str) -> frozenset[int]:
        """The few problems that share most uncommon words with a text, at least `MIN_SHARED`."""
        shared = Counter(
            number
            for word in content_words(text)
            for number in self._words.get(word, ())
        )
        counts = sorted(shared.values(), reverse=True)
        least = max(MIN_SHARED, counts[MAX_NEAR] + 1 if len(counts) > MAX_NEAR else 0)
        return frozenset(number for number, count in shared.items() if count >= least)

    def _salient_ngrams(self, text: str) -> Iterator[str]:
        """Short n-grams with a salient number, or with a name and any number."""
        for ngram in short_ngrams(text):
            values = (
                Fraction(word.replace(",", "")[:40])
                for word in ngram
                if word[0].isdecimal()
            )
            salient = any(salience_of(value) > Salience.CUSTOMARY for value in values)
            if salient or any(word.capitalize() in self._names for word in ngram):
                yield " ".join(ngram)


def said_by(card: Card) -> str:
    """What the solver reads of a card, its examples aside."""
    return "\n".join(
        (card.card_id.replace("_", " ").lower(), card.rule, *card.routing_conditions)
    )


def _answers_in(text: str) -> list[Answer]:
    """The readings of an answer: of a percentage also the number before the sign. Words are none."""
    texts = (text, text.replace(r"\%", "").replace("%", "")) if "%" in text else (text,)
    answers = [
        Answer.of(each) for each in texts if any(char.isalnum() for char in each)
    ]
    return [answer for answer in answers if not isinstance(answer.value, Word)]


def _numbers_of(text: str) -> frozenset[Fraction]:
    """The number literals of a problem; 0 and 1 only where there are no others."""
    literals = literals_in(text)
    return frozenset(literals.difference((Fraction(0), Fraction(1))) or literals)


def _worked(text: str, answer: str, told: Iterable[str] = ()) -> Iterator[str]:
    numbers = " ".join(map(str, sorted(_numbers_of(text))))
    return (
        _hash(f"{numbers} = {key}")
        for key in (*(each.key for each in _answers_in(answer)), *told)
    )


def _told(answer: str, text: str) -> Iterator[str]:
    """The keys of what an answer says, or a text gives as one, in any writing."""
    given = (
        mention
        for mention in number_mentions(text).mentions
        if mention.role is MentionRole.ANSWER
    )
    said = chain(number_mentions(answer).mentions, given)
    return (mention.key for mention in said if mention.salience is Salience.DISTINCT)


def _template(text: str) -> frozenset[str]:
    return frozenset(map(_hash, template_words(text)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _index(keys: Iterable[Iterable[K]]) -> dict[K, tuple[int, ...]]:
    found: defaultdict[K, list[int]] = defaultdict(list)
    for number, held in enumerate(keys):
        for key in held:
            found[key].append(number)
    return {key: tuple(numbers) for key, numbers in found.items()}


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
