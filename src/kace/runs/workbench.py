"""The workbench of a training: solver, teacher and one folder, under one ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from kace.cards.tree import Domain, EpistemicTree
from kace.config import Config
from kace.errors import DataError
from kace.files import inside, read_plain, write_atomic
from kace.ladder.ladder import Observer, solve
from kace.ladder.policies import TEACHER_TIER, Dropout, DropoutSource
from kace.ladder.prompt import subject_of
from kace.ladder.record import Attempt, Solution
from kace.ladder.relevance import RelevanceScore
from kace.ladder.retrieve import FIRST, REFINED, Retriever, registry_router
from kace.ladder.session import Session, in_role, open_session
from kace.models.base import ChatModel, Usage
from kace.models.budget import Ledger
from kace.models.cache import TEACHER, CallStore, read_calls
from kace.problems import Problem, overlaps
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, Solve
from kace.runs.steps import (
    OnStep,
    RunTotals,
    StepLog,
    StepName,
    StepResult,
    gather_all,
)
from kace.runs.teacher import Teacher

if TYPE_CHECKING:
    from kace.runs.ray import RayPool

LEAST_PROBLEMS = 10  # fewer cannot be sorted into domains of a tenth each

A = TypeVar("A")
B = TypeVar("B")


class StepObserver(Observer, Protocol):
    """Called as runs and steps of a training proceed."""

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """Called when a run begins, with the number of problems done before."""

    def step_done(self, step: StepName, value: StepResult, fresh: bool) -> None:
        """Called when a step is done, just now or in an earlier process."""


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
    """Return how a session solves training problems, here or on another machine.

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
    pool: RayPool | None = None  # solves the runs, if not this process

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
        hidden = {"rate": dropout.rate, "seed": dropout.seed} if dropout else None
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
        opener = partial(open_solver, self.config, reading)
        if self.pool:
            from kace.runs.ray import solve_on_ray

            await solve_on_ray(self.pool, run, todo, seed, opener)
        else:
            solve = opener(self.session, seed)
            await run.solve(todo, solve, seed, self.session.window)

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

    Models that are given stay the caller's to close. Every attempt is made: what is
    left of a tier that stopped early is a biased sample of it.
    """
    config = config.model_copy(update={"early_stop": False})
    async with AsyncExitStack() as opened:
        if observer:
            on_step = observer.step_done
        log = opened.enter_context(StepLog(folder, manifest, on_step=on_step))
        calls = CallStore(inside(folder, "calls"))
        opened.callback(write_bill, folder, config)
        opened.callback(calls.close)
        opening = open_session(config, calls=calls, model=model, observer=observer)
        session = await opened.enter_async_context(opening)
        tutor = None
        if teacher is not None:
            tutor = Teacher(
                in_role("teacher", teacher, session.ledger, calls),
                seed=config.seed,
                max_tokens=config.teacher_max_tokens,
                subject=subject_of(config),
            )
        pool = None
        if config.ray and model is None:
            from kace.runs.ray import open_pool

            started = open_pool(config, calls, ledger=session.ledger, observer=observer)
            pool = await opened.enter_async_context(started)
        yield Workbench(config, session, log, calls, tutor, observer, pool)


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
        return sum(role.usd or 0.0 for role in self.roles.values())


def bill_of(folders: Iterable[Path], config: Config) -> Bill:
    """Return the cost of the finished calls in folders; each call counts once."""
    counts: Counter[str] = Counter()
    used: defaultdict[str, Usage] = defaultdict(Usage)
    batched: defaultdict[str, Usage] = defaultdict(Usage)
    seen: set[str] = set()
    segments = [path for folder in folders for path in sorted(folder.glob("*.jsonl"))]
    for segment in segments:
        for record in read_calls(segment):
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
