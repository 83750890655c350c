"""What the learner has done, step by step, so that a kill between any two costs nothing.

A step's result is one line of steps.jsonl. A step that is there is read, one that is not is done; since every step is
a function of those before it, the same command ends in the same tree however often it was stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from kace.errors import DataError
from kace.io import LineLog, lock_folder, whole_lines
from kace.learner.verdicts import Kept
from kace.solver.run import hold_to

K = TypeVar("K", bound=Kept)


class Step(NamedTuple):
    """The name of a step."""

    phase: str
    what: str
    epoch: int = 0
    place: str = ""
    """The cell or domain, where the step has one."""
    number: int = 0
    """Which look, where there are several."""

    def __str__(self) -> str:
        epoch = f"epoch {self.epoch}" if self.epoch else ""
        number = str(self.number) if self.number else ""
        return " ".join(part for part in (epoch, self.phase, self.place, self.what, number) if part)


Tell = Callable[[Step, Kept, bool], None]
"""Hears of every step and its result, and whether it was done just now."""


class Line(BaseModel):
    """A step as it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    v: Literal[1] = 1
    phase: str
    what: str
    epoch: int
    place: str
    number: int
    value: JsonValue

    @property
    def step(self) -> Step:
        """The step's name."""
        return Step(self.phase, self.what, self.epoch, self.place, self.number)


class Notebook:
    """An open learner's folder. Opening it takes its lock; the same settings go on where it stopped."""

    def __init__(self, folder: Path, manifest: dict[str, object], *, tell: Tell | None = None) -> None:
        self.folder = folder
        self.tell = tell or (lambda step, value, fresh: None)
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "learn.json", manifest, ("v", "config", "settings", "prompts", "train"))
            path = folder / "steps.jsonl"
            self._lines = {line.step: line for line in read_steps(path)}
            self._log = LineLog(path)
        except BaseException:
            os.close(self._lock)
            raise

    def recall(self, step: Step, kind: type[K]) -> K | None:
        """The result of a step that was done before."""
        line = self._lines.get(step)
        return None if line is None else kind.model_validate_json(json.dumps(line.value))

    def write(self, step: Step, value: Kept) -> None:
        """Keep a step's result. When this returns, the step is done."""
        line = Line(**step._asdict(), value=value.model_dump(mode="json"))
        self._log.append(line.model_dump_json())
        self._lines[step] = line
        self.tell(step, value, True)

    def write_new(self, step: Step, value: Kept) -> None:
        """Keep a result that is cheap to work out again, unless it is kept already."""
        if step not in self._lines:
            self.write(step, value)

    async def once(self, step: Step, kind: type[K], work: Callable[[], Awaitable[K]]) -> K:
        """The step's result, worked out only if it was never done."""
        done = self.recall(step, kind)
        if done is None:
            done = await work()
            self.write(step, done)
        else:
            self.tell(step, done, False)
        return done

    def close(self) -> None:
        """Make everything durable and release the lock."""
        self._log.close()
        os.close(self._lock)

    def __enter__(self) -> Notebook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_steps(path: Path) -> Iterator[Line]:
    """The steps of a notebook in order; a torn last line is not one."""
    if not path.exists():
        return
    for number, _, line in whole_lines(path):
        try:
            yield Line.model_validate_json(line)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise DataError(
                f"{path}:{number}: not a step of the learner ({reason})",
                fix="cut the file before that line: later steps are done again, paid calls are kept",
            ) from None
