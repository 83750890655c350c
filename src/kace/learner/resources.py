"""What learning and training are done with: the solver, the teacher, and one folder that keeps all they said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from kace.config import Config
from kace.errors import UsageError
from kace.learner.costs import keep_bill
from kace.learner.steps import Kept, StepLog, StepName, Tell
from kace.learner.teacher import Teacher, side_by_side
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.cache import CallStore
from kace.models.provider import open_model
from kace.models.replay import Replay
from kace.problem import Problem
from kace.retrieval.router import registry_router
from kace.solver.dropout import Dropout
from kace.solver.ladder import Kit, Observer
from kace.solver.manifest import manifest_of
from kace.solver.records import Attempt, Solution
from kace.solver.run import Run
from kace.solver.session import Session, in_role, open_retriever, open_session
from kace.solver.summary import Summary
from kace.tree.tree import Domain, EpistemicTree


class LearnObserver(Observer, Protocol):
    """Hears how runs and steps go."""

    def run_started(self, step: StepName, problems: int, done: int) -> None:
        """A run begins, with some of its problems done before."""

    def step_done(self, step: StepName, value: Kept, fresh: bool) -> None:
        """A step is done, just now or on an earlier day."""


class RunTotals(Kept):
    """A tiered run, in short."""

    folder: str
    problems: int
    """Those done so far, where the run is not finished."""
    correct: int
    escalated: int
    """Problems that went past ES, where the tree can help."""
    paper_calls: int

    @classmethod
    def of(cls, records: Sequence[Solution], folder: str) -> RunTotals:
        """The totals of a run's records."""
        found, escalated = Summary.of(records), sum(bool(record.recalls) for record in records)
        counts = {name: getattr(found, name) for name in ("problems", "correct", "paper_calls")}
        return cls(folder=folder, escalated=escalated, **counts)


class Routes(Kept):
    """The domains of problems, by their ids."""

    domains: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Resources:
    """A learner's open folder, and the models that work in it."""

    config: Config
    session: Session
    """Solver and teacher share its ledger."""
    log: StepLog
    calls: CallStore
    """All runs share it: no call is paid for twice."""
    asked: Teacher | None = None
    """`None` where no teacher takes part."""
    observer: LearnObserver | None = None

    @property
    def teacher(self) -> Teacher:
        """The teacher, where one takes part."""
        assert self.asked is not None, "a training without a teacher asked for one"
        return self.asked

    async def run(
        self,
        step: StepName,
        problems: Sequence[Problem],
        tree: EpistemicTree,
        seed: int,
        dropout: Dropout | None = None,
    ) -> tuple[Solution, ...]:
        """The records of a tiered run, in the order of its problems. A finished run is read, not repeated."""
        hidden = {"rate": dropout.rate, "seed": dropout.seed} if dropout else None
        manifest = manifest_of(self.config.model_copy(update={"seed": seed}), tree) | {"dropout": hidden}
        done = self.log.recall(step, RunTotals)
        with Run(self.log.folder / step.folder, manifest, calls=self.calls) as run:
            if done is None:
                todo = [problem for problem in problems if run.finished(problem, seed) is None]
                if self.observer:
                    self.observer.run_started(step, len(problems), len(problems) - len(todo))
                await run.solve(todo, self.kit(tree, seed, dropout), self.session.window)
            last = {record.problem: record for record in run.records()}
            records = tuple(last[problem.id] for problem in problems)
        if done is None:
            self.log.write(step, RunTotals.of(records, step.folder))
        return records

    def kit(self, tree: EpistemicTree, seed: int, dropout: Dropout | None = None) -> Kit:
        """The solver with a tree to read from."""
        # The classifier keeps the learner's own seed: a problem stays in its domain from run to run, and is asked once.
        source = open_retriever(tree, self.session.classifier, self.config)
        return replace(self.session.kit, seed=seed, source=source, dropout=dropout)

    def text_of(self, attempt: Attempt) -> str:
        """What an attempt said."""
        reply = self.calls.get(attempt.call) if attempt.call else None
        return reply.text if reply else ""

    async def route_all(self, problems: Sequence[Problem], domains: Sequence[Domain]) -> Routes:
        """The domains of every problem, as many asked side by side as the session takes."""
        found: dict[str, tuple[str, ...]] = {}
        window, classifier = self.session.window, self.session.classifier
        router = registry_router(self.config.retrieval.router, domains, classifier, self.config.seed)
        for start in range(0, len(problems), window):
            some = problems[start : start + window]
            routed = await side_by_side(router.route(problem) for problem in some)
            found |= {problem.id: route.domains for problem, route in zip(some, routed, strict=True)}
        return Routes(domains=found)


class GivenModels(NamedTuple):
    """Models that are given stay the caller's to close; others are opened from the configuration."""

    solver: ChatModel | None = None
    teacher: ChatModel | None = None
    taught: bool = True
    """Whether a teacher takes part at all."""


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
            teacher = open_teacher(config)
            opened.push_async_callback(teacher.aclose)
        log = opened.enter_context(StepLog(folder, manifest, tell=observer.step_done if observer else tell))
        calls = CallStore(folder / "calls")
        opened.callback(keep_bill, folder, config)
        opened.callback(calls.close)
        session = await opened.enter_async_context(
            open_session(config, calls=calls, model=given.solver, observer=observer)
        )
        model = in_role("teacher", teacher, session.ledger, calls) if teacher else None
        asked = Teacher(model, seed=config.seed, max_tokens=config.teacher_max_tokens) if model else None
        yield Resources(config, session, log, calls, asked, observer)


def open_teacher(config: Config) -> ChatModel:
    """The teacher that a configuration names."""
    if not config.teacher:
        raise UsageError(
            "a learner needs a teacher",
            fix="name one: --teacher anthropic/NAME, openai/NAME, exchange/DIR (a person answers files), or replay/RUN",
        )
    Ledger(config.caps(), config.price_table()).require_price(config.teacher)
    provider, _, name = config.teacher.partition("/")
    return Replay.open(Path(name), teacher=True) if provider == "replay" else open_model(config.for_teacher())
