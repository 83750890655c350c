"""A solve as it climbs, told in steps short enough to read along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kace.redact import one_line
from kace.solver.attempt import Attempt
from kace.solver.tiers import LOCKED, TierName

if TYPE_CHECKING:
    from kace.problem import Problem
    from kace.retrieval.retriever import Recall, Shelf
    from kace.solver.solution import Solution

MAX_ANSWER = 60
_ATTEMPTS = {tier.name: tier.attempts for tier in LOCKED}

Event = Literal["waiting", "attempt", "climbing", "reading", "finishing"]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened on the ladder."""

    event: Event
    text: str
    """For people: a short sentence."""
    tier: str = ""
    done: int = 0
    of: int = 0
    answer: str | None = None
    outcome: str = ""
    cards: tuple[str, ...] = ()


def _nobody(step: Step) -> None:
    """Where nobody reads along."""


class Progress:
    """Hears of one solve and tells its steps. Keeps its attempts: if it ends early, they are what was paid for."""

    def __init__(self, tell: Callable[[Step], None] | None = None) -> None:
        self._tell = tell or _nobody
        self._ended: dict[str, int] = {}
        self.attempts: list[Attempt] = []
        self.recalls: list[Recall] = []

    def waiting(self, ahead: int) -> None:
        """Every place on the ladder is taken."""
        self._tell(Step("waiting", f"Waiting: {ahead} ahead."))

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.attempts.append(attempt)
        if self._tell is _nobody:
            return
        tier = attempt.key.tier
        answer = one_line(attempt.answer.text, MAX_ANSWER) if attempt.answer else None
        said = answer or f"no answer ({attempt.outcome.value.replace('_', ' ')})"
        if attempt.key.index >= _ATTEMPTS[TierName(tier)]:
            self._tell(Step("finishing", f"From common facts: {said}.", tier, answer=answer))
            return
        done = self._ended[tier] = self._ended.get(tier, 0) + 1
        of = _ATTEMPTS[TierName(tier)]
        text = f"{tier} {done}/{of}: {said}."
        self._tell(Step("attempt", text, tier, done, of, answer, attempt.outcome.value))

    def climbing(self, tier: TierName) -> None:
        """A gate stayed shut, and the next tier begins."""
        self._tell(Step("climbing", f"Climbing to {tier.value}.", tier.value))

    def read(self, recall: Recall) -> None:
        """A tier has chosen what it reads."""
        self.recalls.append(recall)
        cards = tuple(card.card_id for card in recall.cards)
        count = f"{len(cards)} card{'' if len(cards) == 1 else 's'}" if cards else "no card"
        where = f" of {' and '.join(recall.domains)}" if recall.domains and cards else ""
        self._tell(Step("reading", f"{recall.tier.value} reads {count}{where}.", recall.tier.value, cards=cards))

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""


class Announcing:
    """A shelf that tells when a tier comes to read from it, which is when the ladder is climbed."""

    def __init__(self, shelf: Shelf | None, progress: Progress) -> None:
        self._shelf = shelf
        self._progress = progress

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """What the shelf inside gives; nothing where there is none."""
        if before:
            self._progress.climbing(tier)
        recall = await self._shelf.read(problem, tier, before, earlier) if self._shelf else None
        if recall is not None:
            self._progress.read(recall)
        return recall
