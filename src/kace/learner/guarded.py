"""Problems that no worked example may retell: those that are learned from, and those that are held out.

Only hashes are kept, so that a learner which must not know a held-out problem can still be kept from telling it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from kace.answers.exact import Word
from kace.answers.extract import Answer, last_boxed
from kace.learner.plain import visible
from kace.learner.sightings import literals_in
from kace.learner.wording import long_runs
from kace.problem import Problem
from kace.tree.card_text import Example

_TRIVIAL = (Fraction(0), Fraction(1))


@dataclass(frozen=True, slots=True)
class Guarded:
    """What is known of the guarded problems: their numbers with their answer, and the runs of their words."""

    worked: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """The hashes of these problems."""
        worked: set[str] = set()
        runs: set[str] = set()
        for problem in problems:
            worked.update(_worked(problem.text, problem.answer or ""))
            runs.update(map(_hash, long_runs(visible(problem.text))))
        return cls(frozenset(worked), frozenset(runs))

    def __or__(self, other: Guarded) -> Guarded:
        return Guarded(self.worked | other.worked, self.runs | other.runs)

    def retold(self, example: Example) -> str:
        """What an example has of a guarded problem; empty where it is one of its own.

        An example may end like any problem, as every number does: it is retold where the numbers are the same too.
        """
        if not self.worked.isdisjoint(_worked(example.problem, last_boxed(example.worked) or "")):
            return "an example has the numbers and the answer of a problem that is learned from or held out"
        for run in long_runs(visible(example.problem)):
            if _hash(run) in self.runs:
                return f"an example repeats {run[:60]!r} of a problem that is learned from or held out"
        return ""


NOTHING = Guarded()


def answers_in(text: str) -> list[Answer]:
    """The readings of an answer: of a percentage also the number before the sign. Words are none."""
    texts = (text, text.replace(r"\%", "").replace("%", "")) if "%" in text else (text,)
    answers = [Answer.of(each) for each in texts if any(char.isalnum() for char in each)]
    return [answer for answer in answers if not isinstance(answer.value, Word)]


def numbers_of(text: str) -> frozenset[Fraction]:
    """The number literals of a problem; 0 and 1 only where there are no others."""
    literals = literals_in(text)
    return frozenset(literals.difference(_TRIVIAL) or literals)


def _worked(text: str, answer: str) -> Iterator[str]:
    numbers = " ".join(map(str, sorted(numbers_of(text))))
    return (_hash(f"{numbers} = {each.key}") for each in answers_in(answer))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
