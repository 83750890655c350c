"""A technique family: a finite space of small parameters, several wordings, and an exact answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

Values = tuple[int, ...]
ROUND_COUNTS = (*range(2, 13), 20, 30, 40, 50, 100)
"""How many of a thing an easy problem has: few, or a round number."""


class NounChoice(int):
    """Which of the nouns offered as `{kind:cats|dogs|cows}` a wording uses."""

    def __format__(self, nouns: str) -> str:
        return nouns.split("|")[self]


class Instance(NamedTuple):
    """The numbers of a problem and the kind of thing it is about."""

    values: Values
    kind: int


class Worked(NamedTuple):
    """An exact answer and the short solution that leads to it."""

    answer: int | Fraction
    solution: str


@dataclass(frozen=True, slots=True)
class Family:
    """One technique, and every problem that can be made of it."""

    name: str
    domain: str
    names: tuple[str, ...]
    """What the parameters are called in the wordings."""
    space: tuple[Values, ...]
    """All numbers there are; with each kind they make an instance, and a draw is a pick from the instances."""
    kinds: int
    """How many nouns each `{kind:...}` of the wordings offers."""
    wordings: tuple[str, ...]
    work: Callable[..., Worked]
    test_only: bool

    def text(self, instance: Instance, wording: int) -> str:
        """The problem in one of its wordings."""
        numbers = dict(zip(self.names, instance.values, strict=True))
        return self.wordings[wording].format(kind=NounChoice(instance.kind), **numbers)


def family(
    domain: str,
    *,
    space: Iterable[Values],
    wordings: tuple[str, ...],
    kinds: int = 1,
    test_only: bool = False,
) -> Callable[[Callable[..., Worked]], Family]:
    """Make a family of a function that works one instance; its name and parameters name the family's."""

    def make(work: Callable[..., Worked]) -> Family:
        names = tuple(inspect.signature(work).parameters)
        return Family(work.__name__, domain, names, tuple(space), kinds, wordings, work, test_only)

    return make
