r"""What a card must not carry over from the problems it was learnt from: their answers, their numbers, their wording.

A number is a leak when it gives an answer away, not when it merely equals one: of five thousand answers some is 180,
and yet angles add up to 180. What counts is the weight of the value and what the card does with it; both are read by
`kace.learner.sightings`. Small means up to 12 and simple fractions, customary 180, 60, \frac{\sqrt{2}}{2} and such:

| the value is an answer, and it is    | small                   | customary | two digits | any other |
|---|---|---|---|---|
| given as an answer, boxed            | leak (0 and 1: if near) | leak      | leak       | leak      |
| computed from numbers, `7 * 20 + 2`  | if near                 | leak      | leak       | leak      |
| what letters or a total equal, `x =` | no                      | no        | leak       | leak      |
| standing in prose, `a brade is 20`   | no                      | no        | if near    | leak      |
| in a sum or a sequence               | no                      | no        | no         | leak      |
| in a formula with letters            | no                      | no        | no         | if near; leak from 1000 on |

"Any other" is a whole number of three digits or more, a decimal or fraction, a surd, a pair, a set. An answer that is
itself a formula with letters counts as two digits: such a formula may be the very rule. "Near" means that the card is
about that problem: it shares uncommon words with it, more than with all but a few others, or it names it as supporting
(which a small result alone does not make a leak: a tiny example ends in some number).

Besides, whatever its size, an answer leaks together with all numbers of its problem, if one of them is telling, or the
card is near, or a calculation leads from them to it (the last only where few problems are so small that any small
calculation would fit one of them). And the numbers or names of one problem, or a run of its words, make a card an
instance, with or without the answer.

A rule of thumb for what passes: formulas with letters, their constants, and examples in numbers up to 12.

A worked example under `Example:` is an instance by nature, and has a rule of its own: see `kace.learner.guarded`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, TypeVar

from kace.answers.exact import Number
from kace.answers.extract import Answer
from kace.learner.guarded import NOTHING, Guarded, answers_in, numbers_of
from kace.learner.plain import visible
from kace.learner.sightings import Figure, Figures, Role, figures_in
from kace.learner.weight import Weight, rational_weight, weight_of
from kace.learner.wording import capitalised, content_words, long_runs, names_inside, short_runs
from kace.problem import Problem
from kace.redact import one_line
from kace.tree.card import Card

MAX_NEAR = 8
"""More problems than this are a field, not what a card is about: then more words must be shared."""
MIN_SHARED = 2
UNCOMMON_SHARE, UNCOMMON_COUNT = 0.02, 5
"""A word is uncommon in at most this share, or this number, of the problems."""
RARE_NAME = 2
"""A name in more problems than this belongs to the subject, not to one of them."""

MAX_ALIKE = 50
"""With more problems than this that have a small answer and small numbers, a small calculation fits one by chance."""

K = TypeVar("K")

_ALWAYS: Mapping[Role, Weight] = {
    Role.ANSWER: Weight.SMALL,
    Role.RESULT: Weight.CUSTOMARY,
    Role.STATED: Weight.PLAIN,
    Role.ALONE: Weight.DISTINCT,
    Role.PART: Weight.DISTINCT,
}
"""The least weight that is a leak in each role, whatever the card is about."""
_NEAR: Mapping[Role, Weight] = {
    Role.ANSWER: Weight.SMALL,
    Role.RESULT: Weight.SMALL,
    Role.ALONE: Weight.PLAIN,
    Role.FACTOR: Weight.DISTINCT,
}
"""The least weight that is one in a card near the problem."""


@dataclass(frozen=True, slots=True)
class Leak:
    """What a card gives away."""

    rule: Literal["answer_leak", "instance_overfit"]
    reason: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept of a problem."""

    name: str
    numbers: frozenset[Fraction]
    """Its number literals; 0 and 1 only where there are no others."""
    others: frozenset[Fraction]
    """Those that are not the answer itself."""
    telling: frozenset[Fraction]
    """Those that are neither small nor customary."""
    answers: tuple[str, ...]
    """The keys under which the answer may be found."""
    small: bool
    """Whether neither its numbers nor its answer tell anything."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A card as the rules see it."""

    text: str
    figures: Figures
    near: frozenset[int]
    """Problems that share its words."""
    supporting: frozenset[int]
    """Problems it says it came from."""


class Leaks:
    """An index over problems that finds what a card gives away of them; made once, asked in about a millisecond."""

    def __init__(self, problems: Sequence[Problem], held_out: Guarded = NOTHING) -> None:
        self._guarded = Guarded.of(problems) | held_out
        texts: list[str] = []
        self._known: list[_Known] = []
        self._named: defaultdict[str, set[int]] = defaultdict(set)
        for number, problem in enumerate(problems):
            self._known.append(_known(problem))
            self._named[one_line(problem.name)].add(number)
            texts.append(problem.text)
        self._answers = _index(known.answers for known in self._known)
        self._by_number = _index(known.telling for known in self._known)
        self._few_alike = sum(known.small for known in self._known) <= MAX_ALIKE
        self._words = _uncommon(texts)
        self._names = _rare_names(texts)
        self._long = _first(long_runs(text) for text in texts)
        self._short = _first(self._telling_runs(text) for text in texts)

    @classmethod
    def of(cls, problems: Iterable[Problem], held_out: Guarded = NOTHING) -> Self:
        """The index over these problems; examples are held against those held out too."""
        return cls(tuple(problems), held_out)

    def find(self, card: Card) -> Leak | None:
        """The first thing a card gives away, in what the solver reads of it; None where it gives nothing away."""
        text = visible(said_by(card))
        names = map(one_line, card.provenance.supporting_problems)
        supporting = frozenset(number for name in names for number in self._named.get(name, ()))
        look = _Look(text, figures_in(said_by(card)), self._near(text), supporting)
        for rule in (self._answer, self._worked, self._instance, self._copied, self._name):
            if leak := rule(look):
                return leak
        retold = next(filter(None, map(self._guarded.retold, card.examples)), "")
        return Leak("answer_leak", retold) if retold else None

    def _answer(self, look: _Look) -> Leak | None:
        """An answer, by its weight and role."""
        for mark in look.figures.marks:
            for number in self._answers.get(mark.key, ()):
                if _gives_away(mark) or _gives_away_near(mark, number, look):
                    return self._leak(number, f"holds {_short(mark.text)}, {mark.role.value}: it is the answer of")
        return None

    def _worked(self, look: _Look) -> Leak | None:
        """An answer of any size with all numbers of its problem."""
        figures = look.figures
        results = {mark.key for mark in figures.marks if mark.role is Role.RESULT}
        there = {mark.key for mark in figures.marks if mark.role not in (Role.PART, Role.FACTOR)}
        for key in sorted(there):
            for number in self._answers.get(key, ()):
                known = self._known[number]
                near = number in look.near or number in look.supporting
                whole = known.others and known.others <= figures.standing
                worked = self._few_alike and (key in results or known.numbers in figures.sums)
                core = known.others & known.telling and known.telling <= figures.standing
                if (whole and (core or near or worked)) or (core and near):
                    return self._leak(number, "holds the numbers and the answer of")
        return None

    def _instance(self, look: _Look) -> Leak | None:
        """The telling numbers of one problem."""
        literals = look.figures.literals
        for value in sorted(literals):
            for number in self._by_number.get(value, ()):
                telling = self._known[number].telling
                large = sum(rational_weight(each) is Weight.DISTINCT for each in telling)
                near = number in look.near or number in look.supporting
                many = len(telling) > 2 or large > 1
                if telling <= literals and (many or (near and (large or len(telling) > 1))):
                    return self._leak(number, "repeats the numbers of", "instance_overfit")
        return None

    def _copied(self, look: _Look) -> Leak | None:
        """A run of a problem's words."""
        for run in long_runs(look.text):
            if run in self._long:
                return self._leak(self._long[run], f"repeats {_short(run)} of", "instance_overfit")
        for words in short_runs(look.text):
            if (run := " ".join(words)) in self._short:
                return self._leak(self._short[run], f"repeats {_short(run)} of", "instance_overfit")
        return None

    def _name(self, look: _Look) -> Leak | None:
        """A name that only one or two problems have."""
        for word in capitalised(look.text):
            if word in self._names:
                return self._leak(self._names[word], f"speaks of {_short(word)}, as does", "instance_overfit")
        return None

    def _leak(self, number: int, what: str, rule: Literal["answer_leak", "instance_overfit"] = "answer_leak") -> Leak:
        return Leak(rule, f"it {what} the problem {self._known[number].name}")

    def _near(self, text: str) -> frozenset[int]:
        """The few problems that share most uncommon words with a text, at least `MIN_SHARED`."""
        shared = Counter(number for word in content_words(text) for number in self._words.get(word, ()))
        least = MIN_SHARED
        found = {number for number, count in shared.items() if count >= least}
        while len(found) > MAX_NEAR:
            least += 1
            found = {number for number in found if shared[number] >= least}
        return frozenset(found)

    def _telling_runs(self, text: str) -> Iterator[str]:
        """Short runs of words with a number that tells, or with a name and any number."""
        for run in short_runs(text):
            values = [Fraction(word.replace(",", "")[:40]) for word in run if word[0].isdigit()]
            if any(rational_weight(value) > Weight.CUSTOMARY for value in values) or any(
                word.capitalize() in self._names for word in run
            ):
                yield " ".join(run)


def said_by(card: Card) -> str:
    """What the solver reads of a card, its examples aside."""
    return "\n".join((card.card_id.replace("_", " ").lower(), card.rule, *card.routing_conditions))


def _gives_away(mark: Figure) -> bool:
    trivial = mark.role is Role.ANSWER and mark.key in ("=0", "=1")
    return mark.role in _ALWAYS and mark.weight >= _ALWAYS[mark.role] and not trivial


def _gives_away_near(mark: Figure, number: int, look: _Look) -> bool:
    # What a card shows in small numbers may end like a problem it came from: that alone is chance.
    near = number in look.near or (number in look.supporting and mark.weight > Weight.SMALL)
    return near and mark.role in _NEAR and mark.weight >= _NEAR[mark.role]


def _known(problem: Problem) -> _Known:
    numbers = numbers_of(problem.text)
    telling = frozenset(value for value in numbers if rational_weight(value) > Weight.CUSTOMARY)
    answers = answers_in(problem.answer or "")
    return _Known(
        name=problem.name,
        numbers=numbers,
        others=numbers.difference(value for value in map(_rational, answers) if value is not None),
        telling=telling,
        answers=tuple(dict.fromkeys(answer.key for answer in answers)),
        small=not telling and any(weight_of(answer.value) is Weight.SMALL for answer in answers),
    )


def _rational(answer: Answer) -> Fraction | None:
    return answer.value.rational if isinstance(answer.value, Number) else None


def _index(keys: Iterable[Iterable[K]]) -> dict[K, tuple[int, ...]]:
    found: defaultdict[K, list[int]] = defaultdict(list)
    for number, names in enumerate(keys):
        for name in names:
            found[name].append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}


def _first(keys: Iterable[Iterable[str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, names in enumerate(keys):
        for name in names:
            found.setdefault(name, number)
    return found


def _uncommon(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The words that few problems have, with these problems."""
    limit = max(UNCOMMON_COUNT, UNCOMMON_SHARE * len(texts))
    return {word: numbers for word, numbers in _index(map(content_words, texts)).items() if len(numbers) <= limit}


def _rare_names(texts: Sequence[str]) -> dict[str, int]:
    """Names inside sentences that few problems have, and that are written no other way anywhere."""
    plain = {word for text in texts for word in re.findall(r"\b[a-z]+\b", text)}
    names = _index(map(names_inside, texts))
    return {
        name: numbers[0] for name, numbers in names.items() if len(numbers) <= RARE_NAME and name.lower() not in plain
    }


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
