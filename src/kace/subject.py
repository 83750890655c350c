"""The subject of problems: its name, which prompts say, and how its answers are read and compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kace.answers.extract import Answer
from kace.answers.kinds import AnswerKind, read_as


@dataclass(frozen=True, slots=True)
class Subject:
    """What problems are about. The default is mathematics, whose prompts and answers never change."""

    name: str = "mathematics"
    answers: AnswerKind = "math"
    tolerance: float = 1e-6  # between numbers, relative to the larger

    def read(self, text: str, problem: str = "") -> Answer:
        """An answer to a problem, given or expected."""
        return _read(self, text, problem if self.answers == "choice" else "")

    def named(self, prompt: str) -> str:
        """A prompt about mathematics, as one about this subject."""
        if self.name == MATHEMATICS.name:
            return prompt
        article = "an" if self.name[0].lower() in "aeiou" else "a"
        return re.sub(r"\ba mathematics\b", f"{article} mathematics", prompt).replace("mathematics", self.name)


MATHEMATICS = Subject()


@lru_cache(maxsize=4_096)
def _read(subject: Subject, text: str, problem: str) -> Answer:
    return read_as(subject.answers, text, problem=problem, tolerance=subject.tolerance)
