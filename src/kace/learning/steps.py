"""The step log of a training: what was done, in order, so that a kill costs nothing.

Each finished step is one line of steps.jsonl, written when all that it stands for is on
disk. So the same command goes on after a kill between any two steps.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from kace.cards.store import TreeStore
from kace.cards.tree import Batch, Change, Domain, EpistemicTree, applied
from kace.errors import DataError, KaceError, Outstanding
from kace.files import LineLog, lock_folder, whole_lines
from kace.ladder.record import Solution
from kace.ladder.tiers import TierName
from kace.problems import Problem, problems_hash
from kace.runs.manifest import hold_to

HELD = ("v", "config", "settings", "prompts", "train")
"""The parts of learn.json that must be the same whenever a training is resumed."""

T = TypeVar("T")


class StepResult(BaseModel):
    """A value that a training writes to disk between steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def summary(self) -> str:
        """Return the result in a few words."""
        return "done"


R = TypeVar("R", bound=StepResult)


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


OnStep = Callable[[StepName, StepResult, bool], None]
"""Called for every step with its result, and whether it was done just now."""


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
        """Return the step's result. Cards are strict, so it is read as JSON."""
        return kind.model_validate_json(json.dumps(self.value))


class StepLog:
    """An open training folder. Opening it takes its lock; the same settings resume."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        *,
        on_step: OnStep | None = None,
    ) -> None:
        self.folder = folder
        self.on_step = on_step or (lambda step, value, fresh: None)
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "learn.json", manifest, HELD)
            lines = read_steps(folder / "steps.jsonl")
            self._lines = {line.step: line for line in lines}
            self._log = LineLog(folder / "steps.jsonl")
        except BaseException:
            os.close(self._lock)
            raise

    def recall(self, step: StepName, kind: type[R]) -> R | None:
        """Return the result of a step that was done before, or `None`."""
        line = self._lines.get(step)
        return line.read(kind) if line else None

    def write(self, step: StepName, value: StepResult) -> None:
        """Record a step's result, unless it is recorded. Then the step is done."""
        if step in self._lines:
            return
        line = StepLine(**step._asdict(), value=value.model_dump(mode="json"))
        self._log.append(line.model_dump_json())
        self._lines[step] = line
        self.on_step(step, value, True)

    async def once(
        self,
        step: StepName,
        kind: type[R],
        work: Callable[[], Awaitable[R] | R],
    ) -> R:
        """Return the step's result, working it out only if it was never done."""
        done = self.recall(step, kind)
        if done is not None:
            self.on_step(step, done, False)
            return done
        made = work()
        value = await made if isinstance(made, Awaitable) else made
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

    def __init__(self, folder: Path, log: StepLog, *, author: str) -> None:
        self.folder = folder
        self.log = log
        self.author = author
        self.tree = EpistemicTree.of((), ())

    def plant(self, domains: Sequence[Domain]) -> None:
        """Begin the tree with its domains."""
        step = StepName("plan", "plant")
        store = TreeStore(self.folder)
        self.tree = EpistemicTree.of(domains, ())

        def create() -> None:
            if not store.cards_path.exists():
                TreeStore.create(
                    self.folder, domains, author=self.author, note=str(step)
                )
            self._require(store, self.tree)

        self._once(step, create)

    def commit(
        self, step: StepName, changes: Sequence[Change]
    ) -> EpistemicTree:
        """Make the changes of a step, all or none, and return the tree."""
        before = self.tree
        batch = Batch(tuple(changes))
        self.tree = applied(before, batch) if changes else before
        known = self.log.recall(step, TreeVersion)
        if known and known.hash != self.tree.content_hash():
            raise KaceError(
                f"{self.folder}: the step '{step}' does not repeat",
                fix="choose another --out",
            )

        def apply() -> None:
            store = TreeStore.open(self.folder)
            if self._require(store, before, self.tree) != self.tree:
                store.apply(batch, author=self.author, note=str(step))

        self._once(step, apply)
        return self.tree

    def snapshot(self, epoch: int) -> None:
        """Keep the tree as it is after an epoch."""
        store = TreeStore(self.folder)
        step = StepName("close", "snapshot", epoch)
        self._once(step, lambda: store.snapshot(f"epoch-{epoch}"))

    def freeze(self) -> EpistemicTree:
        """Close the tree to changes, under its content hash, and return it."""
        step = StepName("close", "freeze")

        def freeze() -> None:
            store = TreeStore.open(self.folder)
            store.freeze(author=self.author, note=str(step))

        self._once(step, freeze)
        return self.tree

    def _once(self, step: StepName, write: Callable[[], object]) -> None:
        if self.log.recall(step, TreeVersion) is not None:
            return
        write()
        version = TreeVersion(
            hash=self.tree.content_hash(), cards=len(self.tree.shown)
        )
        self.log.write(step, version)

    def _require(
        self, store: TreeStore, *expected: EpistemicTree
    ) -> EpistemicTree:
        """Return the stored tree; refuse one that this training did not leave there."""
        found = store.load()
        if found not in expected:
            raise KaceError(
                f"{self.folder} holds another tree than the learner left there",
                fix="give an --out of its own; a tree is not edited while it is "
                "learned",
            )
        return found


class ProblemSet(BaseModel):
    """The identity of a set of problems, as learn.json and selection.json hold it."""

    problems: int = 0
    hash: str = ""
    ids: tuple[str, ...] | None = None

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> ProblemSet:
        """Return the identity of these problems."""
        ids = tuple(each.id for each in problems)
        return cls(
            problems=len(problems), hash=problems_hash(problems), ids=ids
        )


class RunTotals(StepResult):
    """The totals of a tiered run. Escalated problems are past ES, where cards act."""

    folder: str
    problems: int
    correct: int
    escalated: int
    paper_calls: int

    @property
    def summary(self) -> str:
        """Return the accuracy in counts."""
        right = f"{self.correct} of {self.problems} right"
        return f"{right}, {self.escalated} past ES"

    @classmethod
    def of(cls, records: Sequence[Solution], folder: str) -> RunTotals:
        """Return the totals of a run's records."""
        escalated = 0
        for record in records:
            tiers = {attempt.tier for attempt in record.attempts}
            escalated += not tiers.isdisjoint((TierName.MS, TierName.HS))
        return cls(
            folder=folder,
            problems=len(records),
            correct=sum(bool(record.correct) for record in records),
            escalated=escalated,
            paper_calls=sum(record.paper_calls for record in records),
        )


async def gather_all(works: Iterable[Awaitable[T]]) -> list[T]:
    """Run all works to their ends; return the results in order or raise an error.

    The first error wins. Replies that are outstanding are no fault: they are raised
    together, as one, when nothing else went wrong.
    """

    async def finish(work: Awaitable[T]) -> T | KaceError:
        try:
            return await work
        except KaceError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(finish(work)) for work in works]
    results: list[T] = []
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
