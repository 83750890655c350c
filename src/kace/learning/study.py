"""What a training works with: settings, the log of its steps, models, and its tree.

Each finished step is one line of steps.jsonl, written when all that belongs to it is on
disk. So the same command resumes after a kill between any two steps. A workbench is an
open folder with solver and teacher, under one ledger; other methods' trainings use it
too. A study is the workbench of `kace learn`, with its tree.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from kace.cards.card import MAX_EXAMPLES, MAX_WORDINGS, Card
from kace.cards.store import TreeStore
from kace.cards.tree import (
    Add,
    Change,
    Domain,
    EpistemicTree,
    SetDomains,
    applied,
)
from kace.config import PROFILE_FILE, Config, RetrievalConfig, profile_text
from kace.errors import (
    DataError,
    KaceError,
    Outstanding,
    UsageError,
    one_line,
)
from kace.files import (
    LineLog,
    inside,
    lock_folder,
    read_plain,
    whole_lines,
    write_atomic,
)
from kace.ladder.ladder import Observer
from kace.ladder.policies import TEACHER_TIER, Dropout
from kace.ladder.prompt import subject_of, template_hashes
from kace.ladder.record import Attempt, Solution
from kace.ladder.relevance import RelevanceScore
from kace.ladder.retrieve import (
    FIRST,
    REFINED,
    Retriever,
    registry_router,
    route_by_words,
)
from kace.ladder.session import Session, in_role, open_session
from kace.ladder.tiers import TierName
from kace.learning import StepResult
from kace.learning.screen import (
    NO_HASHES,
    HeldOutHashes,
    LeakScreen,
    check_card,
)
from kace.learning.teacher import (
    TAIL_CHARS,
    CardRefusal,
    FailedProblem,
    Partition,
    Teacher,
    TeacherStep,
    TreeCell,
    is_failed,
    open_teacher,
    partition,
)
from kace.models.base import ChatModel, Usage, total
from kace.models.budget import Ledger
from kace.models.cache import TEACHER, CallRecord, CallStore, read_calls
from kace.problems import Problem, overlaps, problems_hash
from kace.runs.manifest import hold_to, manifest_of, solver_prompts
from kace.runs.run import Run, Solve, climb_with

LEAST_PROBLEMS = 10  # fewer cannot be sorted into domains of a tenth each
AUTHOR = "kace learn"
SEEDS_PER_EPOCH = 100
EVERY_CARD = 1_000  # forced on a problem, to be measured
ADD = 0
BASE = 1
"""The seed of a run within its epoch. The base run is independent of the run that cards
were proposed from."""
HELD = ("v", "config", "settings", "start", "prompts", "train")
"""The parts of learn.json that must be the same whenever a training is resumed."""

QUICK = {
    "epochs": 1,
    "add_runs": 1,
    "refine": 0,
    "impact_runs": 1,
    "evidence": "threshold",
    "max_harm": 0,
    "wordings": 0,
}
"""What `--quick` sets. Few problems prove and calibrate nothing, so every card that
passes admission is kept: evidence by threshold measures cards and retires none."""


A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R", bound=StepResult)


# Settings and the plan.


class Settings(StepResult):
    """The learner's settings, with the defaults of `kace learn`."""

    epochs: int = Field(1, ge=0, le=20)
    partition_problems: int = Field(500, ge=10)
    """The most training problems that the domains are chosen from."""
    cards_per_problem: int = Field(2, ge=1, le=3)
    """The most cards the teacher may propose for each failed problem of a cell."""
    add_runs: int = Field(1, ge=1, le=2)
    """Runs that an epoch's new cards are written from: one for both tiers, or one a
    tier, the second with the first one's cards."""
    confident: bool = True
    """Learn also from problems that both ES attempts got wrong in the same way."""
    refine: int = Field(0, ge=0, le=2)
    """Tries of a domain's revision in an epoch. 0 measures cards and rewrites none."""
    evidence: Literal["posterior", "threshold"] = "posterior"
    """What decides about cards: the probability that they help, given all cards of the
    tree; or, as in the paper, the sign of their lift, which retires no card."""
    threshold: float = Field(0.01, ge=0, le=1)
    """The least accuracy that a revision must gain."""
    keep_above: float = Field(0.8, gt=0.5, le=1)
    """By posterior, the least probability to help at which a card is validated. At one
    less this, or below, it is retired."""
    impact: Literal["dropout", "leave_one_out"] = "dropout"
    """How cards are measured: hidden at random, or each left out once."""
    impact_runs: int = Field(4, ge=1, le=50)
    """Dropout runs an epoch, each on other seeds."""
    examples: int = Field(2, ge=0, le=MAX_EXAMPLES)
    """Demonstrations that the teacher writes for each new card."""
    max_overlap: float = Field(0.55, ge=0, le=1)
    """The largest share of content words, numbers aside, that a demonstration may have
    in common with a problem held out. 1 lets any wording be retold."""
    failures: Literal["tier", "final"] = "tier"
    """What cards are written from: problems that the tier did not deliver, or only
    those whose final answer was wrong."""
    max_harm: float = Field(0.5, ge=0, le=100)
    """Points of accuracy that cards may cost, in expectation, on problems of techniques
    that the tree lacks. 0 leaves the relevance thresholds as configured."""
    wordings: int = Field(16, ge=0, le=MAX_WORDINGS)
    """Problems in other stories that the teacher writes for each card that is kept, to
    find it by."""
    imagine: int = Field(0, ge=0, le=10)
    """Rounds, after the epochs, of asking for cards that no failure called for. It
    overfitted where published."""

    @property
    def needs_base(self) -> bool:
        """Whether an epoch has a base run: revisions and cards left out are compared with it."""
        return bool(self.refine) or self.impact == "leave_one_out"


def read_settings(values: Mapping[str, object]) -> Settings:
    """Return the learner's settings; `UsageError` for the first invalid value."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0]
        reason = first["msg"].lower()
        raise UsageError(
            f"{name} cannot be {first['input']!r}: {reason}",
            fix="see docs/learning.md",
        ) from None


@dataclass(frozen=True, slots=True)
class LearnPlan:
    """What to learn from, and where the tree goes."""

    train: tuple[Problem, ...]
    config: Config
    settings: Settings
    out: Path
    held_out: HeldOutHashes = NO_HASHES
    start: EpistemicTree | None = None  # what is learned is added to it

    def manifest(self) -> dict[str, object]:
        """Return what the run depends on, free of secrets."""
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": self.settings.model_dump(mode="json"),
            "start": self.start.content_hash() if self.start else None,
            "prompts": {
                **solver_prompts(),
                **template_hashes("teacher"),
            },
            "train": {
                "problems": len(self.train),
                "hash": problems_hash(self.train),
            },
        }


def require_answers(problems: Sequence[Problem], use: str) -> None:
    """Refuse problems that cannot be graded."""
    for problem in problems:
        if problem.answer is None:
            raise DataError(
                f"{use} problem {problem.name!r} has no answer",
                fix="every problem needs its answer here",
            )


def check_training(train: Sequence[Problem]) -> None:
    """Refuse a training set that nothing can be learned from."""
    require_answers(train, "training")
    if len(train) < LEAST_PROBLEMS:
        raise DataError(
            f"{len(train)} training problems are too few to learn from",
            fix=f"give at least {LEAST_PROBLEMS}",
        )


def refuse_overlap(
    train: Sequence[Problem], held_out: Sequence[Problem], source: str
) -> None:
    """Refuse to learn from problems that an evaluation split holds too."""
    found = overlaps(train, held_out)
    if found:
        ours, theirs = (problem.name for problem in found[0])
        raise DataError(
            f"{len(found)} training problems appear in {source} too: "
            f"{ours!r} is its {theirs!r}",
            fix="remove them from the training file: what is learned from them would "
            "flatter the evaluation",
        )


# The log of steps.


class StepName(NamedTuple):
    """The key of a step."""

    phase: str
    what: str
    epoch: int = 0
    place: str = ""  # the cell or domain, where the step has one
    number: int = 0  # which of several, from 1

    def __str__(self) -> str:
        epoch = f"epoch {self.epoch}" if self.epoch else ""
        number = str(self.number or "")
        parts = (epoch, self.phase, self.place, self.what, number)
        return " ".join(filter(None, parts))

    @property
    def folder(self) -> str:
        """Return the name of the run directory of a step that is a run."""
        return str(self).replace(" ", "-")


class StepObserver(Observer, Protocol):
    """Called as runs and steps of a training proceed."""

    def run_started(self, step: StepName, problems: int) -> None:
        """Called when a run begins."""
        return

    def recalled(self, solution: Solution) -> None:
        """Called for a problem of a run that was solved in an earlier process."""
        return

    def step_done(self, step: StepName, value: StepResult) -> None:
        """Called when a step is done."""
        return


class SilentSteps(StepObserver):
    """Ignores the progress of a training."""


SILENT_STEPS = SilentSteps()


class StepLine(StepResult):
    """A line of steps.jsonl."""

    v: Literal[1] = 1
    phase: str
    what: str
    epoch: int
    place: str
    number: int
    value: JsonValue

    @property
    def step(self) -> StepName:
        """Return the step's name."""
        return StepName(
            self.phase, self.what, self.epoch, self.place, self.number
        )

    def read(self, kind: type[R]) -> R:
        """Return the step's result; raise `DataError` for one of another version."""
        try:
            # Cards are strict, so it is read as JSON.
            return kind.model_validate_json(json.dumps(self.value))
        except ValidationError:
            raise DataError(
                f"the step '{self.step}' was written by another version of kace",
                fix="use that version, or learn into another --out",
            ) from None


class StepLog:
    """An open training folder. Opening it takes its lock; the same settings resume."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        observer: StepObserver = SILENT_STEPS,
    ) -> None:
        self.folder = folder
        self.observer = observer
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "learn.json", manifest, HELD)
            lines = read_steps(folder / "steps.jsonl")
            self.lines = {line.step: line for line in lines}
            self._log = LineLog(folder / "steps.jsonl")
        except BaseException:
            os.close(self._lock)
            raise

    def recall(self, step: StepName, kind: type[R]) -> R | None:
        """Return the result of a step that was done before, or `None`."""
        line = self.lines.get(step)
        return line.read(kind) if line else None

    def write(self, step: StepName, value: StepResult) -> None:
        """Record a step's result, unless it is recorded. Then the step is done."""
        if step in self.lines:
            return
        line = StepLine(**step._asdict(), value=value.model_dump(mode="json"))
        self._log.append(line.model_dump_json())
        self.lines[step] = line
        self.observer.step_done(step, value)

    async def once(
        self, step: StepName, kind: type[R], work: Callable[[], Awaitable[R]]
    ) -> R:
        """Return the step's result, working it out only if it was never done."""
        value = self.recall(step, kind)
        if value is None:
            value = await work()
            self.write(step, value)
        return value

    def __enter__(self) -> StepLog:
        return self

    def __exit__(self, *error: object) -> None:
        self._log.close()
        os.close(self._lock)


def read_steps(path: Path) -> Iterator[StepLine]:
    """Yield the steps of a log in order; a torn last line is left out."""
    if not path.exists():
        return
    for number, _, line in whole_lines(path):
        try:
            yield StepLine.model_validate_json(line)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise DataError(
                f"{path}:{number}: not a step of the learner ({reason})",
                fix="cut the file before that line: later steps are done again, "
                "paid calls are kept",
            ) from None


Steps = Mapping[StepName, StepLine]


def results(
    steps: Steps, kind: type[R], *names: str
) -> Iterator[tuple[StepName, R]]:
    """Yield the results of the steps of these names, in order."""
    for step, line in steps.items():
        if step.what in names:
            yield step, line.read(kind)


class TreeVersion(StepResult):
    """The tree after a step, and how many of its cards may be shown."""

    hash: str
    cards: int

    @property
    def summary(self) -> str:
        """Return the number of cards."""
        return f"{self.cards} cards in the tree"


class TreeWriter:
    """The tree in memory and on disk. Each step's changes reach the store once."""

    def __init__(self, folder: Path, log: StepLog) -> None:
        self.log = log
        self.store = TreeStore(folder)
        self.tree = EpistemicTree.of((), ())

    def plant(self, tree: EpistemicTree) -> None:
        """Begin with a tree."""
        changes: list[Change] = [SetDomains(tree.domains), *map(Add, tree)]
        self.commit(StepName("plan", "plant"), changes)

    def commit(
        self, step: StepName, changes: Sequence[Change]
    ) -> EpistemicTree:
        """Make the changes of a step, all or none, and return the tree."""
        before = self.tree
        after = applied(before, *changes)

        def apply() -> None:
            if not self.store.cards_path.exists():
                TreeStore.create(self.store.folder, (), author=AUTHOR)
            found = self.store.load()
            # A kill may have come between the change and its record.
            if found == after:
                return
            if found != before:
                raise KaceError(
                    f"{self.store.folder} holds another tree than the learner left there",
                    fix="give an --out of its own; a tree is not edited while it is "
                    "learned",
                )
            self.store.apply(*changes, author=AUTHOR, note=str(step))

        self.tree = after
        self._once(step, apply)
        return after

    def snapshot(self, epoch: int) -> None:
        """Keep the tree as it is after an epoch."""
        take = partial(self.store.snapshot, f"epoch-{epoch}")
        self._once(StepName("close", "snapshot", epoch), take)

    def freeze(self) -> EpistemicTree:
        """Close the tree to changes, under its content hash, and return it."""
        step = StepName("close", "freeze")
        close = partial(self.store.freeze, author=AUTHOR, note=str(step))
        self._once(step, close)
        return self.tree

    def _once(self, step: StepName, act: Callable[[], object]) -> None:
        """Do a step and record the tree after it, unless it was done before."""
        version = TreeVersion(
            hash=self.tree.content_hash(), cards=len(self.tree.shown)
        )
        known = self.log.recall(step, TreeVersion)
        if known is None:
            act()
            self.log.write(step, version)
        elif known != version:
            raise KaceError(
                f"{self.store.folder}: the step '{step}' does not repeat",
                fix="choose another --out",
            )


class RunTotals(StepResult):
    """The totals of a tiered run. Escalated problems are past ES, where cards act."""

    problems: int
    correct: int
    escalated: int
    paper_calls: int
    unplaced: int = (
        0  # escalated, but in no domain: no card is written from them
    )

    @property
    def summary(self) -> str:
        """Return the accuracy in counts, and a warning."""
        right = f"{self.correct} of {self.problems} right"
        warning = f"; warning: {self.warning}" if self.unplaced else ""
        return f"{right}, {self.escalated} past ES{warning}"

    @property
    def warning(self) -> str:
        """Return why no card is written from the problems without a domain."""
        return (
            f"{self.unplaced} of {self.escalated} problems past ES were placed in no "
            "domain, so no card is written from them; the replies of the classifier "
            "could not be read, or name no domain of the tree"
        )

    @classmethod
    def of(cls, records: Sequence[Solution]) -> RunTotals:
        """Return the totals of a run's records."""
        past = [
            record
            for record in records
            if record.attempts[-1].tier is not TierName.ES
        ]
        return cls(
            problems=len(records),
            correct=sum(bool(record.correct) for record in records),
            escalated=len(past),
            paper_calls=sum(record.paper_calls for record in records),
            unplaced=sum(bool(r.recalls) and not r.domains for r in past),
        )


async def gather_all(works: Iterable[Awaitable[B]]) -> list[B]:
    """Run all works to their ends; return the results in order or raise an error.

    The first error wins. Replies that are outstanding are no fault: they are raised
    together, as one, when nothing else went wrong.
    """

    async def finish(work: Awaitable[B]) -> B | KaceError:
        try:
            return await work
        except KaceError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(finish(work)) for work in works]
    results: list[B] = []
    waiting: list[str] = []
    for task in tasks:
        result = task.result()
        if isinstance(result, Outstanding):
            waiting += result.requests
        elif isinstance(result, KaceError):
            raise result
        else:
            results.append(result)
    if waiting:
        raise Outstanding(tuple(dict.fromkeys(waiting)))
    return results


# The workbench.


class Routes(StepResult):
    """The domains of problems, by their ids."""

    domains: dict[str, tuple[str, ...]]


class RunReading(NamedTuple):
    """How a run reads: the tree, cards hidden at random, and a score of its own."""

    tree: EpistemicTree | None = None
    dropout: Dropout | None = None
    relevance: RelevanceScore | None = None


def open_solver(
    config: Config, reading: RunReading, session: Session, seed: int
) -> Solve:
    """Return how a session solves training problems.

    The ladder is the one that will be used: where it skips ES, so do the runs that
    measure cards. With a relevance score of its own, a run skips ES. The classifier
    keeps the learner's own seed, so a problem stays in its domain from run to run.
    """
    if reading.relevance:
        skipping = config.retrieval.model_copy(
            update={"es_policy": "skip", "max_cards": EVERY_CARD}
        )
        config = config.model_copy(update={"retrieval": skipping})
    kit = session.kit
    if reading.tree is not None:
        kit = session.reading(reading.tree, config)
    if isinstance(kit.source, Retriever):
        if reading.relevance:
            kit.source.relevance.scores = reading.relevance
        if reading.dropout:
            kit.source.hide = reading.dropout.hidden
    return climb_with(replace(kit, seed=seed))


@dataclass(frozen=True)
class Workbench:
    """An open folder and the models that work in it, under one ledger."""

    config: Config
    session: Session
    log: StepLog
    calls: CallStore
    teacher: Teacher

    async def run(
        self,
        step: StepName,
        problems: Sequence[Problem],
        reading: RunReading,
        seed: int,
    ) -> tuple[Solution, ...]:
        """Return the records of a tiered run; a finished run is read, not repeated."""
        dropout = reading.dropout
        config = self.config.model_copy(update={"seed": seed})
        manifest = manifest_of(config, reading.tree)
        manifest["dropout"] = asdict(dropout) if dropout else None
        folder = inside(self.log.folder, step.folder)
        texts = config.problem_texts
        with Run(folder, manifest, calls=self.calls, texts=texts) as run:
            if self.log.recall(step, RunTotals) is None:
                observer = self.log.observer
                observer.run_started(step, len(problems))
                solver = open_solver(self.config, reading, self.session, seed)
                await run.solve(
                    problems,
                    solver,
                    seed,
                    self.session.window,
                    on_known=observer.recalled,
                )
            found = run.table.solutions(texts=False)
            last = {record.problem: record for record in found}
        records = tuple(last[problem.id] for problem in problems)
        self.log.write(step, RunTotals.of(records))
        return records

    def seed_of(self, epoch: int, use: int) -> int:
        """Return the seed of a run: other samples for every epoch and use."""
        first = self.config.seed * SEEDS_PER_EPOCH + epoch
        return first * SEEDS_PER_EPOCH + use

    def text_of(self, attempt: Attempt) -> str:
        """Return what an attempt wrote; empty where the call is not kept."""
        reply = self.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

    def failure(
        self, record: Solution, problem: Problem, tier: TierName
    ) -> FailedProblem:
        """Return a failure with the tier's attempts that lack the expected answer."""
        attempts = []
        for each in record.attempts:
            if each.tier is tier and not each.correct:
                update = {"text": self.text_of(each)[-TAIL_CHARS:]}
                attempts.append(each.model_copy(update=update))
        return FailedProblem(problem, record, tuple(attempts))

    async def domains_of(
        self, problems: Sequence[Problem], most: int = 500
    ) -> tuple[Domain, ...]:
        """Return the domains that the teacher sorts the problems into."""
        propose = partial(partition, problems, self.teacher, most)
        step = StepName("plan", "partition")
        return (await self.log.once(step, Partition, propose)).domains

    async def route_all(
        self, problems: Sequence[Problem], domains: Sequence[Domain]
    ) -> Routes:
        """Return the domains of every problem."""
        config = self.config
        router = registry_router(
            config.retrieval,
            domains,
            self.session.classifier,
            config.seed,
            subject_of(config),
        )
        routed = await gather_all(map(router, problems))
        found = {}
        for problem, route in zip(problems, routed, strict=True):
            found[problem.id] = route.domains
        return Routes(domains=found)


@asynccontextmanager
async def open_workbench(
    folder: Path,
    config: Config,
    manifest: dict[str, object],
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    taught: bool = True,
    observer: StepObserver = SILENT_STEPS,
) -> AsyncIterator[Workbench]:
    """Open the folder, which must hold the same work or none, and the models.

    Models that are given stay the caller's to close. Where nothing is taught, the
    solver is its own teacher.
    """
    async with AsyncExitStack() as opened:
        if teacher is None and taught:
            teacher = open_teacher(config)
            opened.push_async_callback(teacher.aclose)
        log = opened.enter_context(StepLog(folder, manifest, observer))
        calls = CallStore(inside(folder, "calls"))
        calls.prompts = config.problem_texts
        opened.callback(write_bill, folder, config)
        opened.callback(calls.close)
        opening = open_session(
            config, calls=calls, model=model, observer=observer
        )
        session = await opened.enter_async_context(opening)
        tutor = in_role(
            "teacher", teacher or session.model, session.ledger, calls
        )
        subject = subject_of(config)
        yield Workbench(
            config,
            session,
            log,
            calls,
            Teacher(tutor, config.seed, config.teacher_max_tokens, subject),
        )


@dataclass(frozen=True, kw_only=True)
class Study(Workbench):
    """The workbench of a learning run, its problems, and the tree being learned."""

    train: tuple[Problem, ...]
    settings: Settings
    writer: TreeWriter
    leaks: LeakScreen
    start: EpistemicTree | None = None

    @property
    def tree(self) -> EpistemicTree:
        """Return the tree as it is now."""
        return self.writer.tree

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        """Return the training problems by content hash."""
        return {problem.id: problem for problem in self.train}

    @cached_property
    def by_name(self) -> Mapping[str, Problem]:
        """Return the training problems by the names that cards know them by."""
        return {one_line(problem.name): problem for problem in self.train}

    def screen(self, card: Card) -> CardRefusal | None:
        """Return the rule of code that a card breaks, or `None`."""
        return check_card(card, self.leaks, self.tree.domain_names)

    async def teacher_step(
        self,
        step: StepName,
        kind: type[R],
        work: Callable[[TeacherStep], Awaitable[R]],
    ) -> R:
        """Return the result of a step that calls the teacher, done once."""
        context = TeacherStep(
            self.teacher,
            str(step),
            step.epoch,
            self.screen,
            self.settings.cards_per_problem,
        )
        return await self.log.once(step, kind, lambda: work(context))

    def failed(
        self, records: Sequence[Solution], tiers: Sequence[TierName]
    ) -> dict[TreeCell, list[FailedProblem]]:
        """Return the problems that reached a cell of these tiers and were not solved there.

        A unanimous wrong answer at ES counts for all tiers, as `confident` sets:
        without it a rule that the solver is sure to get wrong is never written.
        """
        found = defaultdict[TreeCell, list[FailedProblem]](list)
        for tier, record in product(tiers, records):
            problem = self.by_id[record.problem]
            reached = tier
            last = record.attempts[-1].tier
            domains = record.domains
            if self.settings.confident and last is TierName.ES:
                domains = route_by_words(problem, self.tree.domains)
                reached = last
            if is_failed(record, reached, self.settings.failures):
                failure = self.failure(record, problem, reached)
                for domain in domains:
                    found[TreeCell(tier, domain)].append(failure)
        return found


@asynccontextmanager
async def open_study(
    plan: LearnPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: StepObserver = SILENT_STEPS,
) -> AsyncIterator[Study]:
    """Open everything a learning run works with. Given models are not closed."""
    check_training(plan.train)
    settings = plan.settings
    opening = open_workbench(
        inside(plan.out, "learn"),
        plan.config,
        plan.manifest(),
        model=model,
        teacher=teacher,
        observer=observer,
    )
    async with opening as bench:
        write_profile(plan.out, plan.config.retrieval, settings)
        yield Study(
            **vars(bench),
            train=plan.train,
            settings=settings,
            writer=TreeWriter(plan.out, bench.log),
            leaks=LeakScreen(plan.train, plan.held_out, settings.max_overlap),
            start=plan.start,
        )


def write_profile(
    folder: Path, retrieval: RetrievalConfig, settings: Settings
) -> None:
    """Write how a tree was learned into its folder: it is read that way."""
    learned = settings.model_dump(mode="json")
    text = profile_text(retrieval.model_dump(mode="json"), learned)
    write_atomic(folder / PROFILE_FILE, text)


# The bill.

ROLES = {
    TEACHER: "teacher",
    TEACHER_TIER: "synthesis",
    FIRST: "classifier",
    REFINED: "classifier",
}
"""The roles whose calls have a tier of their own; all others are the solver's."""
_KIND = re.compile(
    r"(partition|propose|imagine|illustrate|admit|wordings|revise)[ \d]*$"
)
"""The steps of `kace learn` that send requests to the teacher."""
_PART = re.compile(r"(?:epoch \d+ )?\w*")  # of a step's name


class RoleBill(BaseModel):
    """What one role used."""

    role: str = ""
    calls: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    usd: float | None = 0.0  # `None` if the price is not known


class Bill(BaseModel):
    """What every role used: the content of bill.json."""

    roles: tuple[RoleBill, ...] = ()
    parts: tuple[RoleBill, ...] = ()  # every role by epoch and phase
    steps: tuple[RoleBill, ...] = ()  # the teacher by kind of step

    @property
    def usd(self) -> float | None:
        """Return the sum over all roles; `None` if some price is not known."""
        return sum_known(role.usd for role in self.roles)


def sum_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; `None` if one of them is not known."""
    known = 0.0
    for usd in costs:
        if usd is None:
            return None
        known += usd
    return known


def bill_of(records: Iterable[CallRecord], config: Config) -> Bill:
    """Return the cost of finished calls; each counts once."""
    prices = Ledger(prices=config.prices)
    calls = defaultdict[tuple[str, str], list[tuple[Usage, float | None]]](list)
    for record in {each.key: each for each in records}.values():
        role = ROLES.get(record.tier, "solver")
        solves = role in ("solver", "classifier")
        price = prices.price(config.model if solves else config.teacher or "")
        usage = record.reply().usage
        usd = price.cost(usage, record.batch) if price else None
        rows = [("roles", role), ("parts", f"{_part_of(record, role)}: {role}")]
        if role == "teacher":
            again = ", second round" if record.index else ""
            for kind in _KIND.findall(record.problem):
                rows.append(("steps", f"teacher: {kind}{again}"))
        for row in rows:
            calls[row].append((usage, usd))
    tables = defaultdict[str, list[RoleBill]](list)
    for (table, name), found in sorted(calls.items()):
        usages, costs = zip(*found, strict=True)
        bill = RoleBill(
            role=name,
            calls=len(found),
            **asdict(total(usages)),
            usd=sum_known(costs),
        )
        tables[table].append(bill)
    return Bill.model_validate(tables)


def _part_of(record: CallRecord, role: str) -> str:
    """Return the epoch and the phase of a call: from its step, or from its seed."""
    if role == "teacher":
        return str(_PART.findall(record.problem)[0])
    epoch = record.seed // SEEDS_PER_EPOCH % SEEDS_PER_EPOCH
    phase = "add" if record.seed % SEEDS_PER_EPOCH == ADD else "refine"
    return f"epoch {epoch} {phase}" if epoch else "all epochs"


def write_bill(folder: Path, config: Config) -> None:
    """Write what a training's calls cost beside its steps."""
    bill = bill_of(read_calls(inside(folder, "calls")), config)
    write_atomic(folder / "bill.json", bill.model_dump_json(indent=2) + "\n")


def read_bill(folder: Path) -> Bill:
    """Return the bill beside the steps; an empty one if there is none to read."""
    try:
        return Bill.model_validate_json(read_plain(folder / "bill.json"))
    except (OSError, ValidationError):
        return Bill()
