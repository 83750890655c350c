"""What the teacher learns from: problems a tier did not deliver, with the attempts that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kace.learner.cell import Cell
from kace.problem import Problem
from kace.solver.tiers import TierName
from kace.solver.trace import AttemptRecord, SolveRecord

TAIL_CHARS = 1_500
"""What is shown of a wrong attempt: its end, where it commits itself."""

TextOf = Callable[[AttemptRecord], str]


@dataclass(frozen=True, slots=True)
class WrongAttempt:
    """An attempt that did not give the expected answer."""

    tier: TierName
    index: int
    answer: str | None
    tail: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A training problem that a tier did not deliver."""

    problem: Problem
    exit: str
    attempts: tuple[WrongAttempt, ...]
    shown: Mapping[TierName, tuple[str, ...]]
    """The cards each tier read, by id."""


def failures(
    records: Iterable[SolveRecord], problems: Mapping[str, Problem], cell: Cell, text_of: TextOf
) -> tuple[Failure, ...]:
    """The problems of a cell that reached its tier without the tier delivering the right answer.

    A problem that left at ES is beyond the tree's reach, right or wrong: ES reads no card.
    """
    return tuple(
        Failure(
            problem=problems[record.problem],
            exit=record.exit_name,
            attempts=wrong_attempts(record, cell.tier, text_of),
            shown={recall.tier: recall.cards for recall in record.recalls},
        )
        for record in records
        if cell.domain in record.domains and not delivered(record, cell.tier)
    )


def wrong_attempts(record: SolveRecord, tier: TierName, text_of: TextOf) -> tuple[WrongAttempt, ...]:
    """A tier's attempts without the expected answer."""
    return tuple(
        WrongAttempt(a.tier, a.index, a.answer, text_of(a)[-TAIL_CHARS:])
        for a in record.attempts
        if a.tier is tier and not a.correct
    )


def delivered(record: SolveRecord, tier: TierName) -> bool:
    """Whether a tier owes the problem nothing: it never got there, or left there with the right answer."""
    reached = [a.tier for a in record.attempts]
    return tier not in reached or (reached[-1] is tier and bool(record.correct))
