"""The settings of a learning run, its plan, and what it works with.

A workbench is an open folder with solver and teacher, under one ledger. Other methods'
trainings use it too. A study is the workbench of `kace learn`, with its tree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from kace.cards.card import MAX_EXAMPLES, MAX_WORDINGS
from kace.cards.tree import Domain, EpistemicTree
from kace.config import PROFILE_FILE, Config, RetrievalConfig, profile_text
from kace.errors import DataError, UsageError
from kace.files import inside, read_plain, write_atomic
from kace.ladder.ladder import Observer, solve
from kace.ladder.policies import TEACHER_TIER, Dropout, DropoutSource
from kace.ladder.prompt import subject_of, template_hashes
from kace.ladder.record import Attempt, Solution
from kace.ladder.relevance import RelevanceScore
from kace.ladder.retrieve import FIRST, REFINED, Retriever, registry_router
from kace.ladder.session import Session, in_role, open_session
from kace.learning.screen import NO_HASHES, HeldOutHashes, LeakScreen
from kace.learning.steps import (
    OnStep,
    ProblemSet,
    RunTotals,
    StepLog,
    StepName,
    StepResult,
    TreeWriter,
    gather_all,
)
from kace.learning.teacher import (
    SOLUTIONS,
    FailedProblem,
    Screen,
    Teacher,
    TeacherStep,
    TreeCell,
    failures,
    open_teacher,
)
from kace.models.base import ChatModel, Usage
from kace.models.budget import Ledger
from kace.models.cache import TEACHER, CallRecord, CallStore, read_calls
from kace.problems import Problem, overlaps
from kace.runs.manifest import manifest_of, solver_prompts
from kace.runs.run import Run, Solve

LEAST_PROBLEMS = 10  # fewer cannot be sorted into domains of a tenth each
AUTHOR = "kace learn"
SEEDS_PER_EPOCH = 100
ADD = 0
BASE = 1
UNSEEN = 99
"""The seed of a run within its epoch. The base run is independent of the run that cards
were proposed from."""

QUICK = {
    "epochs": 1,
    "add_runs": 1,
    "refine": 0,
    "impact_runs": 1,
    "evidence": "threshold",
    "keep": "all",
    "calibration_runs": 0,
}
"""What `--quick` sets. Few problems prove and calibrate nothing, so every card that
passes admission is kept: evidence by threshold measures cards and retires none."""

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T", bound=BaseModel)
R = TypeVar("R", bound=StepResult)


class Settings(StepResult):
    """The learner's settings, with the defaults of `kace learn`."""

    epochs: Annotated[int, Field(ge=1, le=20)] = 1
    cards_per_problem: Annotated[int, Field(ge=1, le=3)] = 2
    """The most cards the teacher may propose for each failed problem of a cell."""
    add_runs: Annotated[int, Field(ge=1, le=2)] = 1
    """Runs that an epoch's new cards are written from: one for both tiers, or one a
    tier, the second with the first one's cards."""
    confident: bool = True
    """Learn also from problems that both ES attempts got wrong in the same way."""
    refine: Annotated[int, Field(ge=0, le=2)] = 0
    """Tries of a domain's revision in an epoch. 0 measures cards and rewrites none."""
    evidence: Literal["posterior", "threshold"] = "posterior"
    """What decides about cards and revisions: the probability that they help, given all
    cards of the tree; or, as in the paper, a least lift, which retires no card."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.01
    """By threshold, the least accuracy that a revision must gain."""
    keep_above: Annotated[float, Field(gt=0.5, le=1)] = 0.8
    """By posterior, the least probability to help at which a card is validated or a
    revision kept."""
    retire_below: Annotated[float, Field(ge=0, lt=0.5)] = 0.2
    """By posterior, the probability to help at and below which a card is retired."""
    impact: Literal["dropout", "leave_one_out", "fires"] = "dropout"
    """How cards are measured. `fires` only counts how often they are shown."""
    impact_runs: Annotated[int, Field(ge=1, le=50)] = 4
    """Dropout runs an epoch, each on other seeds."""
    impact_calls: Annotated[int, Field(ge=1)] = 1_000
    """The most solver calls an epoch for leave-one-out."""
    dropout_rate: Annotated[float, Field(gt=0, lt=1)] = 0.5
    keep: Literal["all", "validated"] = "validated"
    """The cards that the frozen tree shows: all not deprecated, or validated ones."""
    examples: Annotated[int, Field(ge=0, le=MAX_EXAMPLES)] = 2
    """Demonstrations that the teacher writes for each new card."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] = 0.55
    """The largest share of content words, numbers aside, that a demonstration may have
    in common with a problem held out. 1 lets any wording be retold."""
    failures: Literal["tier", "final"] = "tier"
    """What cards are written from: problems that the tier did not deliver, or only
    those whose final answer was wrong."""
    calibration_runs: Annotated[int, Field(ge=0, le=20)] = 3
    """Runs that the relevance thresholds are set from; 0 leaves them as configured."""
    max_harm: Annotated[float, Field(gt=0, le=100)] = 0.5
    """Points of accuracy that cards may cost, in expectation, on problems of techniques
    that the tree lacks."""
    wordings: Annotated[int, Field(ge=0, le=MAX_WORDINGS)] = 16
    """Problems in other stories that the teacher writes for each card that is kept, to
    find it by."""
    imagine: bool = False
    """Ask also for cards that no failure called for. It overfitted where published."""


def read_settings(kind: type[T], values: Mapping[str, object]) -> T:
    """Return the settings of a method; `UsageError` for the first invalid value."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0]
        reason = first["msg"].lower()
        raise UsageError(
            f"{name} cannot be {first['input']!r}: {reason}",
            fix="see docs/learning.md",
        ) from None


class LearnManifest(BaseModel):
    """The content of learn.json, whichever version wrote it."""

    config: dict[str, JsonValue] = {}
    teacher: str | None = None
    train: ProblemSet = ProblemSet()
    settings: dict[str, JsonValue] = {}

    @classmethod
    def read(cls, folder: Path) -> LearnManifest:
        """Return the manifest of a learner's folder; empty if it cannot be read."""
        try:
            return cls.model_validate_json(read_plain(folder / "learn.json"))
        except (OSError, ValidationError):
            return cls()


@dataclass(frozen=True, slots=True)
class LearnPlan:
    """What to learn from, and where the tree goes."""

    train: tuple[Problem, ...]
    config: Config
    settings: Settings
    out: Path
    held_out: HeldOutHashes = NO_HASHES

    def manifest(self) -> dict[str, object]:
        """Return what the run depends on, free of secrets."""
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": self.settings.model_dump(mode="json"),
            "prompts": {
                **solver_prompts(self.config),
                **template_hashes("teacher"),
            },
            "train": ProblemSet.of(self.train).model_dump(mode="json"),
        }


class StepObserver(Observer, Protocol):
    """Called as runs and steps of a training proceed."""

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """Called when a run begins, with the number of problems done before."""

    def step_done(self, step: StepName, value: StepResult, fresh: bool) -> None:
        """Called when a step is done, just now or in an earlier process."""


class Routes(StepResult):
    """The domains of problems, by their ids."""

    domains: dict[str, tuple[str, ...]]

    @property
    def summary(self) -> str:
        """Return the number of problems placed."""
        nowhere = list(self.domains.values()).count(())
        return f"{len(self.domains)} problems placed, {nowhere} nowhere"


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
        skipping = config.retrieval.model_copy(update={"es_policy": "skip"})
        config = config.model_copy(update={"retrieval": skipping})
    kit = session.kit
    if reading.tree is not None:
        kit = session.reading(reading.tree, config)
    if reading.relevance and isinstance(kit.source, Retriever):
        kit.source.relevance.scores = reading.relevance
    if reading.dropout and kit.source:
        kit = replace(kit, source=DropoutSource(kit.source, reading.dropout))
    kit = replace(kit, seed=seed)
    return lambda problem: solve(problem, kit)


@dataclass(frozen=True)
class Workbench:
    """An open folder and the models that work in it, under one ledger."""

    config: Config
    session: Session
    log: StepLog
    calls: CallStore
    optional_teacher: Teacher | None = None
    observer: StepObserver | None = None

    @property
    def teacher(self) -> Teacher:
        """Return the teacher of a training that has one."""
        assert self.optional_teacher is not None, "this training has no teacher"
        return self.optional_teacher

    async def run(
        self,
        step: StepName,
        problems: Sequence[Problem],
        reading: RunReading,
        seed: int,
    ) -> tuple[Solution, ...]:
        """Return the records of a tiered run; a finished run is read, not repeated."""
        dropout = reading.dropout
        hidden = (
            {"rate": dropout.rate, "seed": dropout.seed} if dropout else None
        )
        seeded = self.config.model_copy(update={"seed": seed})
        manifest = {**manifest_of(seeded, reading.tree), "dropout": hidden}
        done = self.log.recall(step, RunTotals) is not None
        folder = inside(self.log.folder, step.folder)
        with Run(folder, manifest, calls=self.calls) as run:
            if not done:
                await self._solve(run, step, problems, reading, seed)
            last = {record.problem: record for record in run.records()}
            records = tuple(last[problem.id] for problem in problems)
        if not done:
            self.log.write(step, RunTotals.of(records, step.folder))
        return records

    async def _solve(
        self,
        run: Run,
        step: StepName,
        problems: Sequence[Problem],
        reading: RunReading,
        seed: int,
    ) -> None:
        todo = [each for each in problems if run.finished(each, seed) is None]
        if self.observer:
            done = len(problems) - len(todo)
            self.observer.run_started(step, len(problems), done)
        solver = open_solver(self.config, reading, self.session, seed)
        await run.solve(todo, solver, seed, self.session.window)

    def seed_of(self, epoch: int, use: int) -> int:
        """Return the seed of a run: other samples for every epoch and use."""
        return (
            self.config.seed * SEEDS_PER_EPOCH + epoch
        ) * SEEDS_PER_EPOCH + use

    def text_of(self, attempt: Attempt) -> str:
        """Return what an attempt wrote; empty where the call is not kept."""
        reply = self.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

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
        routed = await self.each(problems, router)
        found = {}
        for problem, route in zip(problems, routed, strict=True):
            found[problem.id] = route.domains
        return Routes(domains=found)

    async def each(
        self, items: Sequence[A], work: Callable[[A], Awaitable[B]]
    ) -> list[B]:
        """Return the work on every item, as many at once as the session takes."""
        done = list[B]()
        window = self.session.window
        for start in range(0, len(items), window):
            done += await gather_all(map(work, items[start : start + window]))
        return done


@asynccontextmanager
async def open_workbench(
    folder: Path,
    config: Config,
    manifest: dict[str, object],
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: StepObserver | None = None,
    on_step: OnStep | None = None,
) -> AsyncIterator[Workbench]:
    """Open the folder, which must hold the same work or none, and the models.

    Models that are given stay the caller's to close.
    """
    async with AsyncExitStack() as opened:
        if observer:
            on_step = observer.step_done
        log = opened.enter_context(StepLog(folder, manifest, on_step=on_step))
        calls = CallStore(inside(folder, "calls"))
        opened.callback(write_bill, folder, config)
        opened.callback(calls.close)
        opening = open_session(
            config, calls=calls, model=model, observer=observer
        )
        session = await opened.enter_async_context(opening)
        tutor = None
        if teacher is not None:
            tutor = Teacher(
                in_role("teacher", teacher, session.ledger, calls),
                seed=config.seed,
                max_tokens=config.teacher_max_tokens,
                subject=subject_of(config),
            )
        yield Workbench(config, session, log, calls, tutor, observer)


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


@dataclass(frozen=True, kw_only=True)
class Study(Workbench):
    """The workbench of a learning run, its problems, and the tree being learned."""

    train: tuple[Problem, ...]
    settings: Settings
    writer: TreeWriter
    leaks: LeakScreen

    @property
    def tree(self) -> EpistemicTree:
        """Return the tree as it is now."""
        return self.writer.tree

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        """Return the training problems by content hash."""
        return {problem.id: problem for problem in self.train}

    async def teacher_step(
        self,
        step: StepName,
        kind: type[R],
        work: Callable[[TeacherStep], Awaitable[R]],
        screen: Screen,
    ) -> R:
        """Return the result of a step that calls the teacher, done once."""
        context = TeacherStep(
            self.teacher,
            str(step),
            step.epoch,
            screen,
            self.settings.cards_per_problem,
        )
        return await self.log.once(step, kind, lambda: work(context))

    def failed(
        self, records: Sequence[Solution], cell: TreeCell
    ) -> tuple[FailedProblem, ...]:
        """Return the failures of a cell, with the ends of their wrong attempts."""
        if self.settings.failures == "final":
            records = [record for record in records if not record.correct]
        return failures(records, self.by_id, cell, self.text_of)


@asynccontextmanager
async def open_study(
    plan: LearnPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    observer: StepObserver | None = None,
) -> AsyncIterator[Study]:
    """Open everything a learning run works with. Given models are not closed."""
    check_training(plan.train)
    taught = teacher is not None or plan.config.teacher != SOLUTIONS
    async with AsyncExitStack() as opened:
        if taught and teacher is None:
            teacher = open_teacher(plan.config)
            opened.push_async_callback(teacher.aclose)
        workbench = await opened.enter_async_context(
            open_workbench(
                inside(plan.out, "learn"),
                plan.config,
                plan.manifest(),
                model=model,
                teacher=teacher,
                observer=observer,
            )
        )
        write_profile(
            plan.out,
            plan.config.retrieval,
            plan.settings.model_dump(mode="json"),
        )
        # Solutions demonstrate training problems by design: these give nothing away,
        # problems held out still do.
        known = plan.train if taught else ()
        leaks = LeakScreen(known, plan.held_out, plan.settings.max_overlap)
        yield Study(
            **vars(workbench),
            train=plan.train,
            settings=plan.settings,
            writer=TreeWriter(plan.out, workbench.log, author=AUTHOR),
            leaks=leaks,
        )


def write_profile(
    folder: Path, retrieval: RetrievalConfig, learned: Mapping[str, object]
) -> None:
    """Write how a tree was learned into its folder: it is read that way."""
    text = profile_text(retrieval.model_dump(mode="json"), learned)
    write_atomic(folder / PROFILE_FILE, text)


ROLES = {
    TEACHER: "teacher",
    TEACHER_TIER: "synthesis",
    FIRST: "classifier",
    REFINED: "classifier",
}
"""The roles whose calls have a tier of their own; all others are the solver's."""


class RoleBill(BaseModel):
    """What one role used."""

    role: str = ""
    calls: int = 0
    failed: int | None = None  # `None` if failures were not counted
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    usd: float | None = None  # `None` if the price is not known


class Bill(BaseModel):
    """What every role used, and the models: the content of bill.json."""

    roles: Mapping[str, RoleBill] = {}
    models: Mapping[str, str] = {}

    @property
    def usd(self) -> float:
        """Return the sum over all roles whose price is known."""
        total = 0.0
        for role in self.roles.values():
            total += role.usd or 0.0
        return total


def _recorded_calls(folders: Iterable[Path]) -> Iterator[CallRecord]:
    for folder in folders:
        for segment in sorted(folder.glob("*.jsonl")):
            yield from read_calls(segment)


def bill_of(folders: Iterable[Path], config: Config) -> Bill:
    """Return the cost of the finished calls in folders; each call counts once."""
    counts: Counter[str] = Counter()
    used: defaultdict[str, Usage] = defaultdict(Usage)
    batched: defaultdict[str, Usage] = defaultdict(Usage)
    seen: set[str] = set()
    for record in _recorded_calls(folders):
        if record.key in seen:
            continue
        seen.add(record.key)
        role = ROLES.get(record.tier, "solver")
        usage = record.reply().usage
        counts[role] += 1
        used[role] += usage
        if record.batch:
            batched[role] += usage
    prices = Ledger(prices=config.prices)
    roles = {}
    models = {}
    for role in sorted(used):
        solves = role in ("solver", "classifier")
        models[role] = config.model if solves else config.teacher or ""
        usage = used[role]
        price = prices.price(models[role])
        roles[role] = RoleBill(
            calls=counts[role],
            input=usage.input,
            cached=usage.cached,
            written=usage.written,
            output=usage.output,
            usd=price.mixed(usage, batched[role]) if price else None,
        )
    return Bill(roles=roles, models=models)


def write_bill(folder: Path, config: Config) -> None:
    """Write what a training's calls cost beside its steps."""
    total = bill_of([inside(folder, "calls")], config)
    text = total.model_dump_json(
        indent=2, exclude={"roles": {"__all__": {"role", "failed"}}}
    )
    write_atomic(folder / "bill.json", text + "\n")


def read_bill(folder: Path) -> tuple[RoleBill, ...]:
    """Return the bill beside the steps by role; empty if there is none to read."""
    try:
        bill = Bill.model_validate_json(read_plain(folder / "bill.json"))
    except (OSError, ValidationError):
        return ()
    found = []
    for role, cost in bill.roles.items():
        found.append(cost.model_copy(update={"role": role}))
    return tuple(found)
