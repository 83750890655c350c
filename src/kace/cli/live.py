"""Progress on stderr: a live table where there is a terminal, nothing where there is not."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from kace.cli.show import path_of, plain, verdict_of, votes_of
from kace.problem import Problem
from kace.solver.attempt import Attempt
from kace.solver.solution import Solution
from kace.solver.trace import SolveRecord

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ROWS_KEPT = 12


class LiveTable:
    """A table of problems as they climb: those under way, the last ones finished, and the count."""

    def __init__(self, total: int | None, *, rows: int = ROWS_KEPT, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.total = total
        self.console = console or Console(stderr=True)
        self.under_way: dict[str, tuple[Problem, list[Attempt]]] = {}
        self.finished: deque[SolveRecord] = deque(maxlen=rows)
        self.done = self.right = self.labelled = 0
        self.began = time.monotonic()
        self._live = Live(console=self.console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""
        self.under_way[problem.id] = (problem, [])

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.under_way[problem.id][1].append(attempt)

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""
        self.under_way.pop(solution.problem.id, None)
        self.add(SolveRecord.of(solution))

    def add(self, record: SolveRecord) -> None:
        """Count a finished problem."""
        self.finished.append(record)
        self.done += 1
        self.labelled += record.correct is not None
        self.right += bool(record.correct)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        return Group(solve_table(self.finished, list(self.under_way.values())[:ROWS_KEPT]), Text(self._status()))

    def _status(self) -> str:
        total = f" of {self.total}" if self.total else ""
        score = f", {self.right} of {self.labelled} right" if self.labelled else ""
        return f"{self.done}{total} solved{score}, {time.monotonic() - self.began:.0f} s"


def solve_table(
    finished: deque[SolveRecord] | list[SolveRecord], climbing: list[tuple[Problem, list[Attempt]]] | None = None
) -> RenderableType:
    """Finished and climbing problems as a table."""
    from rich.table import Table
    from rich.text import Text

    colours = {"right": "green", "wrong": "red"}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("problem", no_wrap=True)
    for name in ("tiers", "votes", "answer", "verdict"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "votes")
    for record in finished:
        verdict = verdict_of(record)
        table.add_row(
            Text(plain(record.label or record.problem[:8], 28)),
            path_of(record),
            Text(votes_of(record)),
            Text(plain(record.answer, 20) if record.answer else "none"),
            Text(verdict, style=colours.get(verdict, "")),
        )
    for problem, attempts in climbing or []:
        tiers = ">".join(dict.fromkeys(a.key.tier for a in attempts))
        given = ", ".join(plain(a.answer.text, 12) if a.answer else "none" for a in attempts)
        table.add_row(Text(plain(problem.name, 28)), f"{tiers}...", Text(given, style="dim"), "", "")
    return table


def terminal() -> bool:
    """Whether stderr is a terminal that can redraw."""
    return sys.stderr is not None and sys.stderr.isatty()
