"""The step log, a line of steps.jsonl a step: a kill between any two costs nothing, and the same tree comes out."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from kace.cards.store import TreeStore
from kace.cards.tree import Batch, Change, Domain, EpistemicTree, applied
from kace.errors import DataError, KaceError
from kace.files import LineLog, lock_folder, read_plain, whole_lines
from kace.problems import Problem, problems_hash
from kace.runs.manifest import hold_to


class Kept(BaseModel):
    """A value that the learner writes to disk between steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")


K = TypeVar("K", bound=Kept)


class StepName(NamedTuple):
    """What a step is known by."""

    phase: str
    what: str
    epoch: int = 0
    place: str = ""  # the cell or domain, where the step has one
    number: int = 0  # which of several, from 1

    def __str__(self) -> str:
        epoch = f"epoch {self.epoch}" if self.epoch else ""
        return " ".join(
            filter(
                None, (epoch, self.phase, self.place, self.what, str(self.number or ""))
            )
        )

    @property
    def folder(self) -> str:
        """The name of the run directory of a step that is a run."""
        return str(self).replace(" ", "-")


Tell = Callable[
    [StepName, Kept, bool], None
]  # hears of every step and its result, and whether it was done just now


class StepLine(Kept):
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
        """The step's name."""
        return StepName(self.phase, self.what, self.epoch, self.place, self.number)

    def read(self, kind: type[K]) -> K:
        """The step's result. Read as JSON, since cards are strict and take no list for a tuple."""
        return kind.model_validate_json(json.dumps(self.value))


class ProblemSet(BaseModel):
    """Problems to learn from or to select by, known by content, as learn.json and selection.json have them."""

    problems: int = 0
    hash: str = ""
    ids: tuple[str, ...] | None = None

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> ProblemSet:
        """The identity of these problems."""
        return cls(
            problems=len(problems),
            hash=problems_hash(problems),
            ids=tuple(each.id for each in problems),
        )


class LearnManifest(BaseModel):
    """What learn.json says, whichever version wrote it."""

    config: dict[str, JsonValue] = {}
    teacher: str | None = None
    train: ProblemSet = ProblemSet()
    settings: dict[str, JsonValue] = {}

    @classmethod
    def kept_in(cls, folder: Path) -> LearnManifest:
        """What the one in a learner's folder says; nothing where it cannot be read."""
        try:
            return cls.model_validate_json(read_plain(folder / "learn.json"))
        except (OSError, ValidationError):
            return cls()


class StepLog:
    """An open learner's folder. Opening it takes its lock; the same settings resume it."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        *,
        tell: Tell | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.folder = folder
        self.tell = tell or (lambda step, value, fresh: None)
        self._lock = lock_folder(folder)
        try:
            hold_to(
                folder / "learn.json",
                manifest,
                ("v", "config", "settings", "prompts", "train"),
                defaults,
            )
            self._lines = {
                line.step: line for line in read_steps(folder / "steps.jsonl")
            }
            self._log = LineLog(folder / "steps.jsonl")
        except BaseException:
            os.close(self._lock)
            raise

    def recall(self, step: StepName, kind: type[K]) -> K | None:
        """The result of a step that was done before."""
        line = self._lines.get(step)
        return line.read(kind) if line else None

    def write(self, step: StepName, value: Kept) -> None:
        """Keep a step's result, unless it is kept already. When this returns, the step is done."""
        if step in self._lines:
            return
        line = StepLine(**step._asdict(), value=value.model_dump(mode="json"))
        self._log.append(line.model_dump_json())
        self._lines[step] = line
        self.tell(step, value, True)

    async def once(
        self, step: StepName, kind: type[K], work: Callable[[], Awaitable[K] | K]
    ) -> K:
        """The step's result, worked out only if it was never done."""
        done = self.recall(step, kind)
        if done is not None:
            self.tell(step, done, False)
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
    """The steps of a log in order; a torn last line is not one."""
    for number, _, line in whole_lines(path) if path.exists() else ():
        try:
            yield StepLine.model_validate_json(line)
        except ValidationError as error:
            raise DataError(
                f"{path}:{number}: not a step of the learner ({error.errors()[0]['msg']})",
                fix="cut the file before that line: later steps are done again, paid calls are kept",
            ) from None


class DoneSteps:
    """The steps of a log, for reading only. One whose value this version cannot read is named and left out."""

    def __init__(self, folder: Path, lines: Iterable[StepLine]) -> None:
        self.folder = folder
        self.lines = tuple({line.step: line for line in lines}.values())
        self.epochs = tuple(sorted({line.epoch for line in self.lines if line.epoch}))
        self.unread: dict[str, None] = {}

    def of(
        self, kind: type[K], *names: str, epoch: int
    ) -> Iterator[tuple[StepName, K]]:
        """The results of an epoch's steps of these names, in the order they were done."""
        for line in self.lines:
            if line.what in names and line.epoch == epoch:
                try:
                    yield line.step, line.read(kind)
                except ValidationError:
                    self.unread[str(line.step)] = None


class TreeVersion(Kept):
    """The tree after a step, and how many of its cards may be shown."""

    hash: str
    cards: int


class TreeWriter:
    """The tree in memory and on disk. The changes of every step reach the store once, also after a kill."""

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
            self._stored(store, self.tree)

        self._once(step, create)

    def commit(self, step: StepName, changes: Sequence[Change]) -> EpistemicTree:
        """Make the changes of a step, all or none."""
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
            if self._stored(store, before, self.tree) != self.tree:
                store.apply(batch, author=self.author, note=str(step))

        self._once(step, apply)
        return self.tree

    def snapshot(self, epoch: int) -> None:
        """Keep the tree as it is after an epoch."""
        store = TreeStore(self.folder)
        step = StepName("close", "snapshot", epoch)
        self._once(step, lambda: store.snapshot(f"epoch-{epoch}"))

    def freeze(self) -> EpistemicTree:
        """Close the tree to changes, under its content hash."""
        step = StepName("close", "freeze")
        self._once(
            step,
            lambda: TreeStore.open(self.folder).freeze(
                author=self.author, note=str(step)
            ),
        )
        return self.tree

    def _once(self, step: StepName, write: Callable[[], object]) -> None:
        if self.log.recall(step, TreeVersion) is None:
            write()
            self.log.write(
                step,
                TreeVersion(hash=self.tree.content_hash(), cards=len(self.tree.shown)),
            )

    def _stored(self, store: TreeStore, *expected: EpistemicTree) -> EpistemicTree:
        if (found := store.load()) not in expected:
            raise KaceError(
                f"{self.folder} holds another tree than the learner left there",
                fix="give an --out of its own; a tree is not edited while it is learned",
            )
        return found
