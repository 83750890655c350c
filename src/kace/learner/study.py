"""A learning run: its plan, and everything it works with, opened and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from kace.config import PROFILE_FILE, Config, profile_text
from kace.datasets.overlap import overlaps
from kace.errors import DataError
from kace.io import write_atomic
from kace.learner.leakage import NO_HASHES, ContaminationHashes, Leaks
from kace.learner.propose import AdmissionContext, FailedProblem, Screen, TreeCell, failures
from kace.learner.resources import GivenModels, LearnObserver, Resources, open_resources
from kace.learner.steps import Kept, StepName, TreeWriter
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.problem import Problem, problems_hash
from kace.retrieval.prompt import template_hashes
from kace.solver.manifest import manifest_of
from kace.solver.records import Solution
from kace.tree.card_text import MAX_EXAMPLES
from kace.tree.tree import EpistemicTree

AUTHOR = "kace learn"
LEAST_PROBLEMS = 10
"""Three domains of a tenth each cannot be told from fewer."""
SEEDS_PER_EPOCH = 100
ADD, BASE, UNSEEN = 0, 1, 99
"""Which seed of an epoch a run draws on. The base run is independent of the run that cards were proposed from."""

K = TypeVar("K", bound=Kept)


class Settings(Kept):
    """The learner's dials, with the defaults that `kace learn` uses."""

    epochs: Annotated[int, Field(ge=1, le=20)] = 2
    cards_per_problem: Annotated[int, Field(ge=1, le=3)] = 2
    """Cards the teacher may propose for each failed problem of a cell."""
    add_runs: Annotated[int, Field(ge=1, le=2)] = 2
    """Runs that an epoch's new cards are written from: one a tier, the second with the first one's cards; or one."""
    confident: bool = False
    """Learn also from problems that ES got wrong with both attempts agreed: others of their kind may be in reach."""
    refine: Annotated[int, Field(ge=0, le=2)] = 2
    """Interim analyses of a domain's candidate in an epoch. 0: cards are measured, and not rewritten."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The least accuracy that a rewritten block must gain on its training problems."""
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.1
    """The family-wise error rate that all interim analyses share, and all cards. 1 asks for no evidence."""
    impact: Literal["dropout", "leave_one_out", "fires"] = "dropout"
    impact_runs: Annotated[int, Field(ge=1, le=50)] = 2
    """Dropout runs an epoch, each on other seeds."""
    impact_calls: Annotated[int, Field(ge=1)] = 1_000
    """Solver calls an epoch that leave-one-out may use."""
    dropout_rate: Annotated[float, Field(gt=0, lt=1)] = 0.5
    keep: Literal["all", "validated"] = "all"
    """Which cards the frozen tree shows: all that were not deprecated, or only those with a validated lift."""
    examples: Annotated[int, Field(ge=0, le=MAX_EXAMPLES)] = 2
    """Worked examples that the teacher writes for each new card, to be shown as turns. 0: none are asked for."""
    imagine: bool = False
    """Ask for cards beside those that failures called for. Off: it overfitted where it was published."""


@dataclass(frozen=True, slots=True)
class LearnPlan:
    """What is to be learned, from what, and where the tree goes."""

    train: tuple[Problem, ...]
    config: Config
    settings: Settings
    out: Path
    held_out: ContaminationHashes = NO_HASHES
    """What examples must not retell, besides the training problems."""

    @property
    def folder(self) -> Path:
        """Where the learner keeps its own record, inside the tree it makes."""
        return self.out / "learn"

    def manifest(self) -> dict[str, object]:
        """What the run depends on, free of secrets."""
        ids = [problem.id for problem in self.train]
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": self.settings.model_dump(mode="json"),
            "prompts": {**template_hashes(), **template_hashes("teacher")},
            "train": {"problems": len(ids), "hash": problems_hash(self.train), "ids": ids},
        }


@dataclass(frozen=True, kw_only=True)
class Study(Resources):
    """The resources of a learning run, its training problems, and the tree that is learned."""

    train: tuple[Problem, ...]
    settings: Settings
    writer: TreeWriter
    leaks: Leaks

    @property
    def tree(self) -> EpistemicTree:
        """The tree as it is now."""
        return self.writer.tree

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        """The training problems by content hash."""
        return {problem.id: problem for problem in self.train}

    def seed(self, epoch: int, use: int) -> int:
        """The seed of a run: other samples for every epoch and use."""
        return (self.config.seed * SEEDS_PER_EPOCH + epoch) * SEEDS_PER_EPOCH + use

    async def ask(
        self, step: StepName, kind: type[K], work: Callable[[AdmissionContext], Awaitable[K]], screen: Screen
    ) -> K:
        """The result of a step that asks the teacher, done once."""
        context = AdmissionContext(self.teacher, str(step), step.epoch, screen, self.settings.cards_per_problem)
        return await self.log.once(step, kind, lambda: work(context))

    def failed(self, records: Sequence[Solution], cell: TreeCell) -> tuple[FailedProblem, ...]:
        """The failures of a cell, with what the attempts said."""
        return failures(records, self.by_id, cell, self.text_of)


@asynccontextmanager
async def open_study(
    plan: LearnPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: LearnObserver | None = None,
) -> AsyncIterator[tuple[Study, Ledger]]:
    """Everything a learning run works with, and the one ledger that solver and teacher share.

    Models that are given stay the caller's to close.
    """
    check_training(plan.train)
    given = GivenModels(model, teacher)
    async with open_resources(plan.folder, plan.config, plan.manifest(), given, observer=observer) as resources:
        # The tree remembers how it is learned, and is read that way.
        retrieval, learning = (each.model_dump(mode="json") for each in (plan.config.retrieval, plan.settings))
        write_atomic(plan.out / PROFILE_FILE, profile_text(retrieval, learning))
        writer, leaks = TreeWriter(plan.out, resources.log, author=AUTHOR), Leaks(plan.train, plan.held_out)
        study = Study(**vars(resources), train=plan.train, settings=plan.settings, writer=writer, leaks=leaks)
        yield study, resources.session.ledger


def check_training(train: tuple[Problem, ...]) -> None:
    """Refuse a training set that nothing can be learned from."""
    bare = next((problem for problem in train if problem.answer is None), None)
    if bare is not None:
        raise DataError(f"training problem {bare.name!r} has no answer", fix="every training problem needs its answer")
    if len(train) < LEAST_PROBLEMS:
        few = f"{len(train)} training problems are too few to learn from"
        raise DataError(few, fix=f"give at least {LEAST_PROBLEMS}")


def refuse_overlap(train: tuple[Problem, ...], held_out: tuple[Problem, ...], source: str) -> None:
    """Refuse to learn from problems that an evaluation split holds too."""
    if found := overlaps(train, held_out):
        ours, theirs = found[0].ours.name, found[0].theirs.name
        raise DataError(
            f"{len(found)} training problems appear in {source} too: {ours!r} is its {theirs!r}",
            fix="remove them from the training file: what is learned from them would flatter the evaluation",
        )
