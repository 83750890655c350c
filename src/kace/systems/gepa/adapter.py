"""Our solver and teacher as gepa sees them, from the thread that it works in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from kace.problem import Problem
from kace.retrieval.fence import shortened
from kace.systems.gepa.bridge import Bridge
from kace.systems.gepa.rollout import Rollout, Rollouts

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch, ProposalFn
    from gepa.core.state import GEPAState

COMPONENT = "instructions"
"""The one text that is evolved."""
MAX_PROBLEM_CHARS, MAX_ATTEMPT_CHARS = 6_000, 6_000


class Scores(Protocol):
    """Whoever runs the solver and the teacher."""

    async def score(self, instructions: str, batch: tuple[Problem, ...]) -> Rollouts:
        """Scores of instructions on problems."""

    async def reflect(self, prompt: str) -> str:
        """The teacher's reply."""

    def text_of(self, rollout: Rollout) -> str:
        """What an attempt said."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What reflection reads of an attempt."""

    problem: Problem
    rollout: Rollout
    text: str


class Adapter:
    """Scores candidates for gepa. Only training problems ever become a reflective data set."""

    propose_new_texts: ProposalFn | None = None
    """gepa's own proposal prompt is used."""

    def __init__(self, bridge: Bridge, scores: Scores) -> None:
        self.bridge = bridge
        self.scores = scores

    def evaluate(
        self, batch: list[Problem], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trajectory, Rollout]:
        """One attempt a problem. A failed one scores 0 and says why; only what ends the run is raised."""
        from gepa.core.adapter import EvaluationBatch

        rollouts = self.bridge.call(self.scores.score(candidate[COMPONENT], tuple(batch))).rollouts
        pairs = zip(batch, rollouts, strict=True)
        return EvaluationBatch(
            outputs=list(rollouts),
            scores=[rollout.score for rollout in rollouts],
            trajectories=[Trajectory(p, r, self.scores.text_of(r)) for p, r in pairs] if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Trajectory, Rollout],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """What the teacher is shown of a minibatch."""
        rows = [_row(trajectory) for trajectory in eval_batch.trajectories or ()]
        return dict.fromkeys(components_to_update, rows)

    def reflect(self, prompt: str | list[dict[str, object]]) -> str:
        """The teacher as gepa calls it."""
        assert isinstance(prompt, str), "prompts with images are never made here"
        return self.bridge.call(self.scores.reflect(prompt))


@dataclass(frozen=True, slots=True)
class Limit:
    """Ends the run after so many iterations, or when something must be mended."""

    bridge: Bridge
    iterations: int

    def __call__(self, gepa_state: GEPAState[Rollout, int]) -> bool:
        """Whether to stop before the next iteration."""
        return self.bridge.halted or gepa_state.i + 1 >= self.iterations


class FileLogger:
    """gepa's own account of a run, in a file: standard output is for results."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", errors="replace")

    def log(self, message: str) -> None:
        """Add a message."""
        self._file.write(f"{message}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _row(trajectory: Trajectory) -> Mapping[str, str]:
    rollout = trajectory.rollout
    if rollout.score > 0:
        feedback = "The answer is correct."
    elif rollout.answer is None:
        feedback = f"There is no final answer ({rollout.outcome}). The expected answer is {rollout.expected}."
    else:
        feedback = f"The answer {rollout.answer} is wrong. The expected answer is {rollout.expected}."
    return {
        "Inputs": shortened(trajectory.problem.text, MAX_PROBLEM_CHARS),
        "Generated Outputs": shortened(trajectory.text, MAX_ATTEMPT_CHARS) or "(nothing)",
        "Feedback": feedback,
    }
