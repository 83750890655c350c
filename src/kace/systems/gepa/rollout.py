"""One evaluation of a prompt on a problem, as it is kept."""

from __future__ import annotations

from kace.learner.verdicts import Kept
from kace.solver.solution import Solution


class Rollout(Kept):
    """An attempt and its score. A failed call scores nothing, like a wrong answer."""

    score: float
    answer: str | None
    expected: str | None
    outcome: str
    call: str
    """Where its text is kept."""
    detail: str = ""

    @classmethod
    def of(cls, solution: Solution) -> Rollout:
        """The rollout of a solution with a single attempt."""
        attempt = solution.attempts[0]
        return cls(
            score=float(bool(solution.correct)),
            answer=attempt.answer.text if attempt.answer else None,
            expected=solution.problem.answer,
            outcome=attempt.outcome.value,
            call=attempt.reply.call if attempt.reply else "",
            detail=attempt.detail,
        )


class Rollouts(Kept):
    """A batch of them."""

    rollouts: tuple[Rollout, ...]

    @property
    def right(self) -> int:
        """How many were right."""
        return sum(rollout.score > 0 for rollout in self.rollouts)
