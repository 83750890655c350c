"""What a solve gives: the answer, and everything that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kace.answers.extract import Answer
from kace.answers.judge import Verdict
from kace.models.base import Usage, total
from kace.problem import Problem
from kace.solver.attempt import Attempt, Outcome
from kace.solver.tiers import LOCKED, ExitPath, Tier
from kace.solver.vote import AnswerClass, Vote, count

if TYPE_CHECKING:
    from kace.retrieval.retriever import Recall


@dataclass(frozen=True, slots=True)
class Climb:
    """One tier as a solve went through it."""

    tier: Tier
    attempts: tuple[Attempt, ...]
    vote: Vote


@dataclass(frozen=True, slots=True)
class Solution:
    """A solved problem with its audit trail."""

    problem: Problem
    seed: int
    exit: ExitPath | None
    """Where it left the ladder; `None` for a system that has none."""
    answer: Answer | None
    verdict: Verdict | None
    """Against the expected answer; `None` when the problem has none."""
    attempts: tuple[Attempt, ...]
    classes: tuple[AnswerClass, ...]
    right: frozenset[int]
    """Positions of the attempts that gave the expected answer."""
    recalls: tuple[Recall, ...]
    """What MS and HS read of the tree; ES reads nothing, ever."""
    seconds: float
    """Wall time from the first attempt to the exit, waiting included."""
    synthesis: Attempt | None = None
    """The attempt from common facts, apart from the ladder's: it votes for nothing, and its answer is the answer."""

    @property
    def correct(self) -> bool | None:
        """Whether the answer is the expected one. No answer, and a comparison without a verdict, count as wrong."""
        return None if self.problem.answer is None else self.verdict is Verdict.SAME

    @property
    def made(self) -> tuple[Attempt, ...]:
        """The ladder's attempts, and the one from common facts where there is one."""
        return self.attempts if self.synthesis is None else (*self.attempts, self.synthesis)

    @property
    def climbs(self) -> tuple[Climb, ...]:
        """The tiers this solve went through, in order; none for a system without a ladder."""
        climbs, start = [], 0
        if self.exit is None:
            return ()
        for tier in LOCKED:
            made = tuple(a for a in self.attempts if a.key.tier == tier.name.value)
            stop = start + len(made)
            if made:
                climbs.append(Climb(tier, made, count(self.classes, start, stop)))
            start = stop
        return tuple(climbs)

    @property
    def paper_calls(self) -> int:
        """Solver calls under the paper's accounting: every attempt of a tier that was reached, also one cancelled.

        That is 2, 5 or 10 on the locked ladder.
        """
        return len(self.attempts)

    @property
    def real_calls(self) -> int:
        """Attempts that really ran to an end, read from the cache or not."""
        return sum(a.outcome is not Outcome.CANCELLED for a in self.made)

    @property
    def cached_calls(self) -> int:
        """How many of them were read from disk and cost nothing."""
        return sum(a.reply is not None and a.reply.cached for a in self.made)

    @property
    def usage(self) -> Usage:
        """The solver's tokens over all attempts."""
        return total([a.usage for a in self.made])

    @property
    def failed(self) -> bool:
        """Whether the provider failed some attempt for good: worth another try on the next run."""
        return any(a.outcome is Outcome.PROVIDER_ERROR for a in self.made)
