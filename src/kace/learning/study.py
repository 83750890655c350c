"""A learning run: its plan, and what it works with: solver, teacher, and one folder that keeps all they said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from kace.cards.tree import Domain, EpistemicTree
from kace.config import Config
from kace.errors import DataError, UsageError
from kace.files import inside
from kace.ladder.ladder import Observer, solve
from kace.ladder.policies import Dropout, DropoutSource
from kace.ladder.prompt import subject_of, template_hashes
from kace.ladder.record import Attempt, Solution
from kace.ladder.relevance import RelevanceScore
from kace.ladder.retrieve import Retriever, registry_router
from kace.ladder.session import Session, in_role, open_session
from kace.ladder.tiers import TierName
from kace.learning.calibrate import remember
from kace.learning.costs import keep_bill
from kace.learning.leakage import NO_HASHES, ContaminationHashes, Leaks
from kace.learning.propose import (
    AdmissionContext,
    FailedProblem,
    Screen,
    TreeCell,
    failures,
)
from kace.learning.settings import Settings
from kace.learning.solutions import SOURCE
from kace.learning.steps import Kept, ProblemSet, StepLog, StepName, Tell, TreeWriter
from kace.learning.teacher import Teacher, side_by_side
from kace.models import open_model
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.cache import CallStore, Replay
from kace.problems import Problem, overlaps
from kace.runs.manifest import manifest_of, solver_prompts
from kace.runs.metrics import Totals
from kace.runs.run import Run, Solve

if TYPE_CHECKING:
    from kace.runs.ray import RayPool

AUTHOR = "kace learn"
LEAST_PROBLEMS = 10  # three domains of a tenth each cannot be told from fewer
SEEDS_PER_EPOCH = 100
ADD = 0
BASE = 1
UNSEEN = 99
"""Which seed of an epoch a run draws on. The base run is independent of the run that cards were proposed from."""

A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K", bound=Kept)


@dataclass(frozen=True, slots=True)
class LearnPlan:
    """What is to be learned, from what, and where the tree goes. Examples must not retell what is held out."""

    train: tuple[Problem, ...]
    config: Config
    settings: Settings
    out: Path
    held_out: ContaminationHashes = NO_HASHES

    def manifest(self) -> dict[str, object]:
        """What the run depends on, free of secrets."""
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": self.settings.model_dump(mode="json"),
            "prompts": {**solver_prompts(self.config), **template_hashes("teacher")},
            "train": ProblemSet.of(self.train).model_dump(mode="json"),
        }


class LearnObserver(Observer, Protocol):
    """Hears how runs and steps go."""

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """A run begins, with some of its problems done before."""

    def step_done(self, step: StepName, value: Kept, fresh: bool) -> None:
        """A step is done, just now or on an earlier day."""


class RunTotals(Kept):
    """A tiered run, as far as it came. Escalated are the problems past ES, where the tree can help."""

    folder: str
    problems: int
    correct: int
    escalated: int
    paper_calls: int

    @classmethod
    def of(cls, records: Sequence[Solution], folder: str) -> RunTotals:
        """The totals of a run's records."""
        found = Totals()
        for record in records:
            found.add(record)
        above = (TierName.MS, TierName.HS)
        escalated = sum(
            any(attempt.tier in above for attempt in record.attempts)
            for record in records
        )
        counts = {
            name: getattr(found, name)
            for name in ("problems", "correct", "paper_calls")
        }
        return cls(folder=folder, escalated=escalated, **counts)


class Routes(Kept):
    """The domains of problems, by their ids."""

    domains: dict[str, tuple[str, ...]]


def practice(
    config: Config,
    tree: EpistemicTree | None,
    dropout: Dropout | None,
    relevance: RelevanceScore | None,
    session: Session,
    seed: int,
) -> Solve:
    """How a session solves training problems, in this process or on another machine: from a tree, or without one.

    With a relevance score of its own, it reads what that score picks, and skips ES for it.
    """
    # The ladder that will be used: where it skips ES, so do the runs that say what a card is worth.
    # The classifier keeps the learner's own seed: a problem stays in its domain from run to run, and is asked once.
    if relevance:
        skipping = config.retrieval.model_copy(update={"es_policy": "skip"})
        config = config.model_copy(update={"retrieval": skipping})
    kit = session.kit if tree is None else session.reading(tree, config)
    if relevance and isinstance(kit.source, Retriever):
        kit.source.relevance.scores = relevance
    if dropout and kit.source:
        kit = replace(kit, source=DropoutSource(kit.source, dropout))
    kit = replace(kit, seed=seed)
    return lambda problem: solve(problem, kit)


@dataclass(frozen=True)
class Resources:
    """An open folder, and the models that work in it. They share one ledger, and no call is paid for twice."""

    config: Config
    session: Session
    log: StepLog
    calls: CallStore
    asked: Teacher | None = None
    observer: LearnObserver | None = None
    pool: RayPool | None = None  # where runs are solved, if not in this process

    @property
    def teacher(self) -> Teacher:
        """The teacher, where one takes part."""
        assert self.asked is not None, "a training without a teacher asked for one"
        return self.asked

    async def run(
        self,
        step: StepName,
        problems: Sequence[Problem],
        tree: EpistemicTree | None,
        seed: int,
        dropout: Dropout | None = None,
        relevance: RelevanceScore | None = None,
    ) -> tuple[Solution, ...]:
        """The records of a tiered run, in the order of its problems. A finished run is read, not repeated."""
        hidden = {"rate": dropout.rate, "seed": dropout.seed} if dropout else None
        manifest = manifest_of(self.config.model_copy(update={"seed": seed}), tree) | {
            "dropout": hidden
        }
        done = self.log.recall(step, RunTotals)
        opener = partial(practice, self.config, tree, dropout, relevance)
        with Run(
            inside(self.log.folder, step.folder), manifest, calls=self.calls
        ) as run:
            if done is None:
                todo = [
                    problem
                    for problem in problems
                    if run.finished(problem, seed) is None
                ]
                if self.observer:
                    self.observer.run_started(
                        step, len(problems), len(problems) - len(todo)
                    )
                if self.pool:
                    from kace.runs.ray import solve_on_ray

                    await solve_on_ray(self.pool, run, todo, seed, opener)
                else:
                    solve_one = opener(self.session, seed)
                    await run.solve(todo, solve_one, seed, self.session.window)
            last = {record.problem: record for record in run.records()}
            records = tuple(last[problem.id] for problem in problems)
        if done is None:
            self.log.write(step, RunTotals.of(records, step.folder))
        return records

    def seed_of(self, epoch: int, use: int) -> int:
        """The seed of a run: other samples for every epoch and use."""
        return (self.config.seed * SEEDS_PER_EPOCH + epoch) * SEEDS_PER_EPOCH + use

    def text_of(self, attempt: Attempt) -> str:
        """What an attempt said."""
        reply = self.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

    async def route_all(
        self, problems: Sequence[Problem], domains: Sequence[Domain]
    ) -> Routes:
        """The domains of every problem."""
        config = self.config
        classifier = self.session.classifier
        router = registry_router(
            config.retrieval, domains, classifier, config.seed, subject_of(config)
        )
        routed = await self.each(problems, router)
        return Routes(
            domains={
                each.id: route.domains
                for each, route in zip(problems, routed, strict=True)
            }
        )

    async def each(
        self, items: Sequence[A], work: Callable[[A], Awaitable[B]]
    ) -> list[B]:
        """The work done on every item, as many side by side as the session takes."""
        done = list[B]()
        window = self.session.window
        for start in range(0, len(items), window):
            done += await side_by_side(map(work, items[start : start + window]))
        return done


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

    async def ask(
        self,
        step: StepName,
        kind: type[K],
        work: Callable[[AdmissionContext], Awaitable[K]],
        screen: Screen,
    ) -> K:
        """The result of a step that asks the teacher, done once."""
        settings = self.settings
        context = AdmissionContext(
            self.teacher,
            str(step),
            step.epoch,
            screen,
            settings.cards_per_problem,
        )
        return await self.log.once(step, kind, lambda: work(context))

    def failed(
        self, records: Sequence[Solution], cell: TreeCell
    ) -> tuple[FailedProblem, ...]:
        """The failures of a cell, with what the attempts said."""
        counted = [
            record
            for record in records
            if self.settings.failures == "tier" or not record.correct
        ]
        return failures(counted, self.by_id, cell, self.text_of)


class GivenModels(NamedTuple):
    """Models that are given stay the caller's to close; others are opened as configured, a teacher if `taught`."""

    solver: ChatModel | None = None
    teacher: ChatModel | None = None
    taught: bool = True


@asynccontextmanager
async def open_resources(
    folder: Path,
    config: Config,
    manifest: dict[str, object],
    given: GivenModels,
    *,
    tell: Tell | None = None,
    observer: LearnObserver | None = None,
) -> AsyncIterator[Resources]:
    """Open the folder, which must hold the same work or none, and the models. `tell` or the observer hears of steps."""
    # Every attempt is made: what is left of a tier that stopped early is a biased sample of it.
    config = config.model_copy(update={"early_stop": False})
    async with AsyncExitStack() as opened:
        teacher = given.teacher
        if teacher is None and given.taught:
            teacher = _open_teacher(config)
            opened.push_async_callback(teacher.aclose)
        told = observer.step_done if observer else tell
        defaults = Settings().model_dump(mode="json")
        log = opened.enter_context(
            StepLog(folder, manifest, tell=told, defaults=defaults)
        )
        calls = CallStore(inside(folder, "calls"))
        opened.callback(keep_bill, folder, config)
        opened.callback(calls.close)
        opening = open_session(
            config, calls=calls, model=given.solver, observer=observer
        )
        session = await opened.enter_async_context(opening)
        model = in_role("teacher", teacher, session.ledger, calls) if teacher else None
        room = config.teacher_max_tokens
        asked = (
            Teacher(
                model, seed=config.seed, max_tokens=room, subject=subject_of(config)
            )
            if model
            else None
        )
        pool = None
        if config.ray and given.solver is None:
            from kace.runs.ray import open_pool

            started = open_pool(config, calls, ledger=session.ledger, observer=observer)
            pool = await opened.enter_async_context(started)
        yield Resources(config, session, log, calls, asked, observer, pool)


def _open_teacher(config: Config) -> ChatModel:
    if not config.teacher or config.teacher == SOURCE:
        what = (
            "--teacher solutions is for --method kace"
            if config.teacher
            else "a learner needs a teacher"
        )
        known = "anthropic/NAME, openai/NAME, local/NAME, exchange/DIR (a person answers files), or replay/RUN"
        raise UsageError(
            what,
            fix=f"name one: --teacher {known}; solutions needs no model, and learns a tree",
        )
    Ledger(config.caps(), config.prices).require_price(config.teacher)
    provider, _, name = config.teacher.partition("/")
    return (
        Replay.open(Path(name), teacher=True)
        if provider == "replay"
        else open_model(config.for_teacher())
    )


@asynccontextmanager
async def open_study(
    plan: LearnPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: LearnObserver | None = None,
) -> AsyncIterator[tuple[Study, Ledger]]:
    """Everything a learning run works with, and the one ledger that solver and teacher share."""
    check_training(plan.train)
    taught = teacher is not None or plan.config.teacher != SOURCE
    given = GivenModels(model, teacher, taught)
    folder = inside(plan.out, "learn")
    async with open_resources(
        folder, plan.config, plan.manifest(), given, observer=observer
    ) as resources:
        remember(plan.out, plan.config.retrieval, plan.settings.model_dump(mode="json"))
        # Solutions demonstrate training problems by design: these give nothing away, what is held out still does.
        leaks = Leaks(
            plan.train if taught else (), plan.held_out, plan.settings.max_overlap
        )
        writer = TreeWriter(plan.out, resources.log, author=AUTHOR)
        study = Study(
            **vars(resources),
            train=plan.train,
            settings=plan.settings,
            writer=writer,
            leaks=leaks,
        )
        yield study, resources.session.ledger


def require_answers(problems: Sequence[Problem], use: str) -> None:
    """Refuse problems that cannot be graded."""
    if bare := next((problem for problem in problems if problem.answer is None), None):
        raise DataError(
            f"{use} problem {bare.name!r} has no answer",
            fix="every problem needs its answer here",
        )


def check_training(train: tuple[Problem, ...]) -> None:
    """Refuse a training set that nothing can be learned from."""
    require_answers(train, "training")
    if len(train) < LEAST_PROBLEMS:
        few = f"{len(train)} training problems are too few to learn from"
        raise DataError(few, fix=f"give at least {LEAST_PROBLEMS}")


def refuse_overlap(
    train: Sequence[Problem], held_out: Sequence[Problem], source: str
) -> None:
    """Refuse to learn from problems that an evaluation split holds too."""
    if found := overlaps(train, held_out):
        ours, theirs = (problem.name for problem in found[0])
        raise DataError(
            f"{len(found)} training problems appear in {source} too: {ours!r} is its {theirs!r}",
            fix="remove them from the training file: what is learned from them would flatter the evaluation",
        )
