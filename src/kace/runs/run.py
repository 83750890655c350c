"""Writes a run: a directory that a killed command can resume.

RUN/run.json        what produced it: versions, configuration, prompt hashes, problems
RUN/traces.jsonl    one line per problem and seed, appended as they finish
RUN/problems.jsonl  the text of each problem, unless texts are left out
RUN/calls/          every finished call, so that none is paid for twice
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kace.errors import KaceError
from kace.files import LineLog, inside, lock_folder
from kace.ladder.ladder import Kit, solve
from kace.ladder.record import Solution
from kace.models.cache import CallStore
from kace.problems import Problem, problem_rows
from kace.runs.manifest import HELD, hold_to
from kace.runs.table import PROBLEMS, TRACE, Table, row_of

T = TypeVar("T")
Solve = Callable[[Problem], Awaitable[Solution]]
"""Solves a problem on one seed."""
OnSolution = Callable[[Solution], None]


def ignore(solution: Solution) -> None:
    """Do nothing with a solution."""


class Run:
    """An open run directory, locked against other writers.

    Opening it with the same settings resumes it.
    """

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, object],
        *,
        calls: CallStore | None = None,
        reuse: Sequence[Path] = (),
        texts: bool = True,
    ) -> None:
        """Open or create the run.

        `calls` stays the caller's to close. Calls of the runs in `reuse` are not paid
        for again. Without `texts`, neither problem texts nor prompts are kept.
        """
        self.folder = folder
        self._lock = lock_folder(folder)
        try:
            hold_to(folder / "run.json", manifest, HELD)
            self._traces = LineLog(folder / TRACE)
            self._problems = LineLog(folder / PROBLEMS) if texts else None
            self.table = Table.open(folder, allow_empty=True)
            self._kept_texts = {each.id for each in self.table.problems()}
        except BaseException:
            os.close(self._lock)
            raise
        self._shared = calls is not None
        own, *others = (inside(each, "calls") for each in (folder, *reuse))
        self.calls = CallStore(own, others) if calls is None else calls
        self.calls.prompts = texts

    def __len__(self) -> int:
        return len(self.table)

    def pending(self, problem: str, seed: int) -> bool:
        """Whether a problem, by its hash, must still be solved on a seed.

        A solve that lost a call to the provider is worth another try.
        """
        row = self.table.found.get((problem, seed))
        return row is None or row.failed

    def solution(self, problem: str, seed: int) -> Solution | None:
        """Return the solution of a problem, by its hash, that is not pending."""
        if self.pending(problem, seed):
            return None
        return self.table.solution(problem, seed, texts=False)

    def keep(self, solution: Solution) -> None:
        """Append a solution."""
        line = solution.model_dump_json()
        offset = self._traces.append(line)
        self.table.put(row_of(solution), (offset, len(line.encode())))

    def keep_text(self, problem: Problem) -> None:
        """Append a problem's text, once."""
        if self._problems is None or problem.id in self._kept_texts:
            return
        self._problems.append(*problem_rows([replace(problem, solution=None)]))
        self._kept_texts.add(problem.id)

    async def solve(
        self,
        problems: Iterable[Problem],
        solve_one: Solve,
        seed: int,
        window: int,
        *,
        on_solved: OnSolution = ignore,
        on_known: OnSolution = ignore,
    ) -> None:
        """Solve what is pending, `window` problems at a time.

        `on_solved` is called with each new solution, `on_known` with those of before.
        """

        async def solve_and_keep(problem: Problem) -> None:
            solution = await solve_one(problem)
            self.keep(solution)
            on_solved(solution)

        pending = self._pending_of(problems, seed, on_known)
        await work_through(pending, window, solve_and_keep)

    def _pending_of(
        self,
        problems: Iterable[Problem],
        seed: int,
        on_known: OnSolution,
    ) -> Iterator[Problem]:
        for problem in problems:
            known = self.solution(problem.id, seed)
            # An answer that was corrected since is graded anew: its calls are kept.
            corrected = known and problem.answer not in (None, known.expected)
            if known is not None and not corrected:
                on_known(known)
            else:
                self.keep_text(problem)
                yield problem

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


def climb_with(kit: Kit) -> Solve:
    """Return a function that climbs the ladder with a kit."""
    return lambda problem: solve(problem, kit)


async def solve_all(
    problems: Iterable[Problem],
    kit: Kit,
    window: int,
    keep: OnSolution,
) -> None:
    """Solve a stream of problems, `window` at a time, and keep each as it finishes."""

    async def solve_one(problem: Problem) -> None:
        keep(await solve(problem, kit))

    await work_through(problems, window, solve_one)


async def work_through(
    items: Iterable[T],
    most: int,
    work: Callable[[T], Awaitable[None]],
) -> None:
    """Work on a stream of items, `most` at a time.

    A user error stops new items; those under way finish, so nothing paid for is lost.
    """
    stream = iter(items)
    errors: list[KaceError | OSError] = []

    async def worker() -> None:
        while not errors:
            try:
                item = next(stream, None)
                if item is None:
                    return
                await work(item)
            except (KaceError, OSError) as error:
                errors.append(error)

    async with asyncio.TaskGroup() as workers:
        for _ in range(most):
            workers.create_task(worker())
    if errors:
        raise errors[0]
