"""A run: a directory that holds what was asked, what was answered, and enough to go on after a kill.

RUN/run.json       what produced it: versions, configuration, prompt hashes, problems
RUN/traces.jsonl   one line per problem and seed, appended as they finish
RUN/problems.jsonl the text of each problem, unless texts are left out
RUN/calls/         every finished call, so that the same command pays for nothing twice
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from kace.errors import DataError, KaceError
from kace.files import LineLog, inside, lock_folder, whole_lines
from kace.ladder.ladder import Kit, climb
from kace.ladder.record import Damage, Solution, read_trace
from kace.models.cache import CallStore
from kace.problems import Problem, problem_of, problem_rows
from kace.runs.manifest import HELD, hold_to

T = TypeVar("T")
Solve = Callable[[Problem], Awaitable[Solution]]  # how problems are solved, on one seed
Hear = Callable[[Solution], None]


class Place(NamedTuple):
    """Where a record lies in the trace, so that a run of any size is held as offsets only."""

    offset: int
    length: int
    failed: bool


class Run:
    """An open run directory. Opening it takes its lock; the same settings go on where it stopped."""

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        *,
        calls: CallStore | None = None,
        reuse: Sequence[Path] = (),
        texts: bool = True,
    ) -> None:
        """A call store that is given stays the caller's to close; what runs in `reuse` heard is not asked again.

        Without `texts`, problem texts are left out.
        """
        self.folder = folder
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "run.json", manifest, HELD)
            self._traces = LineLog(folder / "traces.jsonl")
            self._problems = LineLog(folder / "problems.jsonl") if texts else None
        except BaseException:
            os.close(self._lock)
            raise
        self.damage: list[Damage] = []
        self._done: dict[tuple[str, int], Place] = {}
        for offset, length, item in read_trace(self._traces.path):
            if isinstance(item, Damage):
                self.damage.append(item)
            else:
                self._done[item.problem, item.seed] = Place(offset, length, item.failed)
        self._told = (
            {problem.id for problem in read_problems(folder)} if texts else set()
        )
        self._shared = calls is not None
        own, *others = (inside(each, "calls") for each in (folder, *reuse))
        self.calls = CallStore(own, others) if calls is None else calls

    def __len__(self) -> int:
        return len(self._done)

    def finished(self, problem: Problem, seed: int) -> Solution | None:
        """The record of a problem already solved here, unless its provider failed and it is worth another try."""
        return (
            None
            if self.pending(problem.id, seed)
            else self._read(self._done[problem.id, seed])
        )

    def records(self) -> Iterator[Solution]:
        """The last word on every problem and seed."""
        return map(self._read, self._done.values())

    def keep(self, solution: Solution) -> None:
        """Append a solution."""
        line = solution.model_dump_json()
        offset = self._traces.append(line)
        self._done[solution.problem, solution.seed] = Place(
            offset, len(line.encode()), solution.failed
        )

    async def solve(
        self,
        problems: Iterable[Problem],
        kit: Kit,
        window: int,
        *,
        kept: Hear = lambda solution: None,
        known: Hear = lambda solution: None,
    ) -> None:
        """Solve what is not finished yet, `window` problems at a time. `kept` hears of each, `known` of the others."""
        await self.solve_by(
            lambda problem: climb(problem, kit),
            problems,
            kit.seed,
            window,
            kept=kept,
            known=known,
        )

    async def solve_by(
        self,
        solve: Solve,
        problems: Iterable[Problem],
        seed: int,
        window: int,
        *,
        kept: Hear = lambda solution: None,
        known: Hear = lambda solution: None,
    ) -> None:
        """The same in another way than up the ladder, or elsewhere."""

        async def solved(problem: Problem) -> None:
            self.keep(solution := await solve(problem))
            kept(solution)

        await work_through(self._todo(problems, seed, known), window, solved)

    def _todo(
        self, problems: Iterable[Problem], seed: int, known: Hear
    ) -> Iterator[Problem]:
        """What is not finished yet, its text kept; `known` hears of the others."""
        for problem in problems:
            if done := self.finished(problem, seed):
                known(done)
            else:
                self.keep_text(problem)
                yield problem

    def pending(self, problem: str, seed: int) -> bool:
        """Whether the solve of a problem, by its hash, is not finished."""
        place = self._done.get((problem, seed))
        return place is None or place.failed

    def keep_text(self, problem: Problem) -> None:
        """Append a problem's text, once, so that people see their own questions beside the answers."""
        if self._problems and problem.id not in self._told:
            self._problems.append(*problem_rows([replace(problem, solution=None)]))
            self._told.add(problem.id)

    def close(self) -> None:
        """Make everything durable and release the lock."""
        self._traces.close()
        if self._problems:
            self._problems.close()
        if not self._shared:
            self.calls.close()
        os.close(self._lock)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, place: Place) -> Solution:
        return Solution.model_validate_json(
            self._traces.read(place.offset, place.length)
        )


def read_problems(folder: Path) -> Iterator[Problem]:
    """The problems whose texts a run keeps, in a file that `kace solve --file` reads. Damaged lines are left out."""
    return (problem for problem, _ in _kept_rows(folder))


def kept_field(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Of the problems whose texts a run keeps, the hash and a field of the line, where it has one."""
    return (
        (problem.id, str(row[name]))
        for problem, row in _kept_rows(folder)
        if row.get(name) not in (None, "")
    )


def _kept_rows(folder: Path) -> Iterator[tuple[Problem, Mapping[str, object]]]:
    path = folder / "problems.jsonl"
    for number, _, line in whole_lines(path) if path.exists() else ():
        with contextlib.suppress(
            DataError, ValueError, RecursionError, AttributeError, TypeError
        ):
            row = json.loads(line)
            yield problem_of(row, f"{path}:{number}"), row


async def solve_all(
    problems: Iterable[Problem], kit: Kit, window: int, keep: Hear
) -> None:
    """Solve a stream of problems, at most `window` at a time, keeping each as it finishes.

    A user error stops new problems; those under way finish, so nothing paid for is lost.
    """

    async def solved(problem: Problem) -> None:
        keep(await climb(problem, kit))

    await work_through(problems, window, solved)


async def work_through(
    items: Iterable[T], most: int, work: Callable[[T], Awaitable[None]]
) -> None:
    """Work on a stream of items, so many at a time. A user error stops new ones; those under way finish."""
    stream = iter(items)
    stopped = list[KaceError]()

    async def worker() -> None:
        while not stopped and (item := next(stream, None)) is not None:
            try:
                await work(item)
            except KaceError as error:
                stopped.append(error)

    async with asyncio.TaskGroup() as workers:
        for _ in range(most):
            workers.create_task(worker())
    if stopped:
        raise stopped[0]
