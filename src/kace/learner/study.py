"""Everything a learning run works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kace.learner.cell import Cell
from kace.learner.failure import Failure, failures
from kace.learner.growth import Growth
from kace.learner.leak import Leaks
from kace.learner.notebook import Notebook, Step
from kace.learner.practice import Exercise, Practice
from kace.learner.propose import Lesson
from kace.learner.settings import Settings
from kace.learner.teacher import Teacher
from kace.problem import Problem
from kace.redact import one_line
from kace.solver.trace import SolveRecord

SEEDS_PER_EPOCH = 100
ADD, BASE, UNSEEN = 0, 1, 99
"""Which seed of an epoch a run draws on. The base run is independent of the run that cards were proposed from."""


@dataclass(frozen=True)
class Study:
    """The training problems, the solver and the teacher, and where their work is kept."""

    train: tuple[Problem, ...]
    settings: Settings
    practice: Practice
    teacher: Teacher
    notebook: Notebook
    growth: Growth
    leaks: Leaks

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        """The training problems by content hash."""
        return {problem.id: problem for problem in self.train}

    @cached_property
    def by_name(self) -> Mapping[str, Problem]:
        """The training problems by the names that cards know them by."""
        return {one_line(problem.name): problem for problem in self.train}

    def lesson(self, step: Step) -> Lesson:
        """What the teacher requests of a step share."""
        return Lesson(self.teacher, str(step), step.epoch, self.settings.cards_per_problem)

    def failed(self, records: tuple[SolveRecord, ...], cell: Cell) -> tuple[Failure, ...]:
        """The failures of a cell, with what the attempts said."""
        return failures(records, self.by_id, cell, self.practice.text_of)

    async def practise(self, exercise: Exercise) -> tuple[SolveRecord, ...]:
        """A tiered run, done once."""
        return await self.practice.run(exercise, self.notebook)

    def seed(self, epoch: int, use: int) -> int:
        """The seed of a run: other samples for every epoch and use."""
        return (self.practice.config.seed * SEEDS_PER_EPOCH + epoch) * SEEDS_PER_EPOCH + use
