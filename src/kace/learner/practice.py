"""Tiered runs on training problems, each a run directory that anything which reads runs can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kace.config import Config
from kace.learner.notebook import Notebook, Step
from kace.learner.verdicts import Kept
from kace.models.cache import CallStore
from kace.problem import Problem
from kace.solver.dropout import Dropout
from kace.solver.ladder import Kit, Observer
from kace.solver.run import Run, manifest_of, solve_all
from kace.solver.session import Session, open_library
from kace.solver.solution import Solution
from kace.solver.trace import AttemptRecord, SolveRecord
from kace.tree.tree import EpistemicTree


class Exercised(Kept):
    """A finished tiered run, in short."""

    folder: str
    problems: int
    correct: int
    escalated: int
    """Problems that went past ES, where the tree can help."""
    paper_calls: int


class Audience(Observer, Protocol):
    """Hears how runs and steps go."""

    def practising(self, step: Step, problems: int, done: int) -> None:
        """A run begins, with some of its problems done before."""

    def noted(self, step: Step, value: Kept, fresh: bool) -> None:
        """A step is done, just now or on an earlier day."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """What one run solves, and with which tree."""

    step: Step
    problems: tuple[Problem, ...]
    tree: EpistemicTree
    seed: int
    dropout: Dropout | None = None


class Practice:
    """The solver at work on training problems. All runs share one store of calls."""

    def __init__(
        self, folder: Path, config: Config, session: Session, calls: CallStore, *, audience: Audience | None = None
    ) -> None:
        self.folder = folder
        self.config = config
        self.session = session
        self.calls = calls
        self.audience = audience

    async def run(self, exercise: Exercise, notebook: Notebook) -> tuple[SolveRecord, ...]:
        """The records of a run, in the order of its problems. A finished run is read, not repeated."""
        folder = self.folder / _slug(exercise.step)
        with Run(folder, self._manifest(exercise), calls=self.calls) as run:
            if notebook.recall(exercise.step, Exercised) is None:
                await self._solve(exercise, run)
            last = {record.problem: record for record in run.records()}
            records = tuple(last[problem.id] for problem in exercise.problems)
        if notebook.recall(exercise.step, Exercised) is None:
            notebook.write(exercise.step, _sum(records, folder.name))
        return records

    def kit(self, tree: EpistemicTree, seed: int, dropout: Dropout | None = None) -> Kit:
        """The solver with a tree to read from."""
        # The classifier keeps the run's own seed: a problem stays in its domain from run to run, and is asked once.
        library = open_library(tree, self.session.classifier, self.config)
        return replace(self.session.kit, seed=seed, library=library, dropout=dropout, observer=self.audience)

    def text_of(self, attempt: AttemptRecord) -> str:
        """What an attempt said."""
        reply = self.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

    async def _solve(self, exercise: Exercise, run: Run) -> None:
        todo = [p for p in exercise.problems if run.finished(p, exercise.seed) is None]
        if self.audience:
            self.audience.practising(exercise.step, len(exercise.problems), len(exercise.problems) - len(todo))
        kit = self.kit(exercise.tree, exercise.seed, exercise.dropout)
        await solve_all(todo, kit, self.session.window, _keeping(run))

    def _manifest(self, exercise: Exercise) -> dict[str, object]:
        manifest = manifest_of(self.config.model_copy(update={"seed": exercise.seed}), exercise.tree)
        dropout = exercise.dropout
        return {**manifest, "dropout": {"rate": dropout.rate, "seed": dropout.seed} if dropout else None}


def _keeping(run: Run) -> Callable[[Solution], None]:
    def keep(solution: Solution) -> None:
        run.keep(solution)

    return keep


def _sum(records: Iterable[SolveRecord], folder: str) -> Exercised:
    kept = tuple(records)
    return Exercised(
        folder=folder,
        problems=len(kept),
        correct=sum(bool(record.correct) for record in kept),
        escalated=sum(bool(record.recalls) for record in kept),
        paper_calls=sum(record.paper_calls for record in kept),
    )


def _slug(step: Step) -> str:
    return str(step).replace(" ", "-")
