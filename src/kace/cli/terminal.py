"""What verbs share: safe output, named inputs, a progress line, and async work that a signal ends in order."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import (
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kace.errors import CONTROLS, plain, redact

if TYPE_CHECKING:
    from rich.live import Live

    from kace.ladder.record import Attempt, Solution
    from kace.problems import Problem

T = TypeVar("T")
ENDING = (signal.SIGINT, signal.SIGTERM)
YOUNG_COLLECTIONS = 1_500  # of garbage, before older objects are looked at


def json_of(value: object) -> str:
    """Return a value, or text that is JSON already, as a line that is safe to print.

    What `plain` removes is escaped, so that it reads back the same.
    """
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, default=str)
    return CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def note(line: str) -> None:
    """Print a line that is not a result to standard error."""
    if sys.stderr is not None:
        print(plain(line), file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print results, line by line."""
    for line in lines:
        print(line)


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return rows as lines in columns, the first `left` of them flush left."""
    form = ""
    for place, column in enumerate(zip(*rows, strict=True)):
        side = "<" if place < left else ">"
        form += f"{{:{side}{max(map(len, column))}}}  "
    return [form.format(*row).rstrip() for row in rows]


def cells_of(rows: Sequence[Mapping[str, object]]) -> list[list[str]]:
    """Return records with the same fields as cells of text, the heads first."""
    cells = [list(row) for row in rows[:1]]
    for row in rows:
        cells.append([_cell(row.get(head)) for head in cells[0]])
    return cells


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"{round(value, 2):,}"
    return "" if value is None else plain(str(value), 60)


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


class RunProgress:
    """Observes a run; in a terminal, a line below the results shows how far it is."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.attempts = 0
        self.tokens = 0
        self.done = 0
        self.right = 0
        self.began = time.monotonic()
        self._live: Live | None = None

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """Count an attempt that has ended."""
        self.attempts += 1
        self.tokens += attempt.input + attempt.output

    def solved(self, solution: Solution) -> None:
        """Count a finished problem."""
        self.done += 1
        self.right += bool(solution.correct)

    def recalled(self, solution: Solution) -> None:
        """Leave out a problem that was finished in an earlier run of the command."""
        self.total -= 1

    def __enter__(self) -> Self:
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            # Results that go into a file or a pipe must not be redirected.
            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self.status,
                transient=True,
                redirect_stdout=on_terminal(),
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def status(self) -> str:
        """Return how far the run is, with the time so far and the time left at its pace."""
        seconds = time.monotonic() - self.began
        text = (
            f"{self.done} of {self.total} solved, {self.right} known to be right, "
            f"{self.attempts} attempts, {self.tokens:,} tokens, "
            f"{timedelta(seconds=round(seconds))}"
        )
        if self.done:
            pace = seconds / self.done
            left = timedelta(seconds=round(pace * (self.total - self.done)))
            text += f", about {left} left"
        return text


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run async work to its end, or to a signal.

    The first signal cancels the work in order, a second one ends it at once; both exit
    with 130. What is finished is on disk, and the same command resumes.
    """
    import asyncio  # takes a fifth of the time of `kace --help`

    # With hundreds of problems open, full collections take a seventh of the CPU time.
    gc.set_threshold(gc.get_threshold()[0], YOUNG_COLLECTIONS)

    async def until_signal() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def interrupt() -> None:
            if task and not task.cancelling():
                task.cancel()
                return
            _note_interrupted()
            os._exit(130)

        # Not possible on every platform and thread.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            for number in ENDING:
                loop.add_signal_handler(number, interrupt)
        try:
            return await work
        finally:
            for number in ENDING:  # a loop that is closed cannot be woken
                loop.remove_signal_handler(number)
            if task and task.cancelling():
                _ignore_signals()

    try:
        return asyncio.run(until_signal())
    except BaseExceptionGroup as several:
        if several.split(BrokenPipeError)[1] is not None:
            raise
        raise BrokenPipeError from None  # the reader of the results has gone
    except (KeyboardInterrupt, asyncio.CancelledError):
        _note_interrupted()
        sys.exit(130)


def _note_interrupted() -> None:
    _ignore_signals()
    again = redact(shlex.join(["kace", *sys.argv[1:]]))
    note(f"kace: interrupted. Resume with: {again}")


def _ignore_signals() -> None:
    with contextlib.suppress(ValueError):  # not the main thread
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
