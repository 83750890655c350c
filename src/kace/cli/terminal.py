"""How solves look in a terminal: lines, a table, and a line that says how a run goes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from kace.cli.streams import on_terminal, plain
from kace.ladder.record import Attempt, Outcome, Solution
from kace.ladder.tiers import ExitPath
from kace.problems import Problem
from kace.runs.metrics import Totals
from kace.words import counted


def votes_of(record: Solution, limit: int = 4) -> str:
    """The answer classes with their support, most supported first, such as `12 x3, 7 x2, none x1`."""
    classes = sorted(record.classes, key=lambda c: (-len(c.positions), c.positions[0]))
    parts = [f"{plain(c.answer, 18)} x{len(c.positions)}" for c in classes[:limit]]
    if len(classes) > limit:
        parts.append(f"{len(classes) - limit} more")
    if silent := sum(
        a.answer is None and a.outcome is not Outcome.CANCELLED for a in record.attempts
    ):
        parts.append(f"none x{silent}")
    return ", ".join(parts)


def verdict_of(record: Solution) -> str:
    """Whether the answer is right, where one is expected."""
    return "" if record.correct is None else "right" if record.correct else "wrong"


def _synthesis(record: Solution) -> str:
    """What came of the attempt from common facts, where one was made."""
    attempt = record.synthesis
    return (
        f"synthesis {plain(attempt.answer, 18) if attempt.answer else attempt.outcome.value}"
        if attempt
        else ""
    )


def audit_line(record: Solution) -> str:
    """One line that says how an answer came about."""
    calls = f"{record.real_calls} calls" + (
        f" ({record.cached_calls} from cache)" if record.cached_calls else ""
    )
    if record.real_calls != record.paper_calls:
        calls += f" (paper {record.paper_calls})"
    read = []
    for (
        recall
    ) in record.recalls:  # such as `MS:geometry shown 3 of 9 cards ~410 tokens`
        of = (
            f"{len(recall.cards)} of "
            if 0 < len(recall.cards) < recall.eligible
            else ""
        )
        cards = f"{of}{counted(max(recall.eligible, len(recall.cards)), 'card')}"
        what = f"abstained from {cards}" if recall.abstained else f"shown {cards}"
        size = (
            f" {'~' if recall.estimated else ''}{recall.tokens} tokens"
            if recall.tokens
            else ""
        )
        read.append(
            f"{recall.tier}:{'+'.join(recall.domains) or 'universal'} {what}{size}"
        )
    name = plain(record.name)
    answer = plain(record.answer or "no answer", 40)
    tokens = f"{sum(a.input + a.output for a in record.made):,} tokens"
    parts = (name, answer, verdict_of(record), record.exit_name, votes_of(record), calls, ", ".join(read),
             _synthesis(record), *record.policies, tokens, f"{record.seconds:.1f} s")  # fmt: skip
    return "  ".join(part for part in parts if part)


def explanation(record: Solution, text_of: Callable[[Attempt], str]) -> str:
    """Every attempt of a solve with its text: the one whose working is the answer's first, then tier by tier."""
    lines = []
    won = record.winner
    for attempt in sorted(record.made, key=lambda each: each is not won):
        lens = (
            "from common facts"
            if attempt is record.synthesis
            else attempt.lens or "sampling only"
        )
        answer = (
            f"answer {plain(attempt.answer, 60)}"
            if attempt.answer
            else attempt.outcome.value
        )
        took = f"({attempt.output} tokens, {attempt.seconds:.1f} s){', the winner' if attempt is won else ''}"
        body = plain(text_of(attempt) or attempt.detail).strip().splitlines()
        lines += [
            f"-- {attempt.tier} attempt {attempt.index + 1}, {lens}: {answer} {took}"
        ]
        lines += [f"   {line}" for line in body]
        lines += [""]
    for recall in record.recalls:
        what = (
            f"abstained from {counted(recall.eligible, 'card')}"
            if recall.abstained
            else "read no card"
        )
        lines += [
            f"-- {recall.tier} {'read ' + ', '.join(recall.cards) if recall.cards else what}"
        ]
    lines += [f"-- {record.exit_name}: {votes_of(record, limit=10)}"]
    return "\n".join(
        [*lines, f"-- {_synthesis(record)}"] if record.synthesis else lines
    )


def summary_lines(summary: Totals, seconds: float) -> Iterator[str]:
    """The figures of a run, one a line."""
    n = summary.problems or 1
    if summary.accuracy is not None:
        low, high = summary.interval
        share = f"{summary.correct} of {summary.labelled} = {summary.accuracy:.1%}"
        yield f"accuracy     {share}   (95 % interval {low:.1%} to {high:.1%})"
    exits = ", ".join(
        f"{path.value} {summary.exits[path]}"
        for path in ExitPath
        if summary.exits[path]
    )
    yield f"exits        {exits}"
    kept = (
        f" ({summary.cached_calls} of {summary.real_calls} read from disk)"
        if summary.cached_calls
        else ""
    )
    paper = summary.paper_calls / n
    real = summary.real_calls / n
    yield f"calls        {paper:.2f} a problem by the paper's count, {real:.2f} really made{kept}"
    if summary.finished:
        right = f", {summary.finished_right} right" if summary.labelled else ""
        yield f"synthesis    {summary.finished} problems answered from common facts{right}"
    usage = summary.usage
    yield f"tokens       {usage.input:,} in ({usage.cached:,} cached), {usage.output:,} out"
    if summary.fresh_output and seconds > 0:
        yield f"speed        {summary.fresh_output / seconds:,.0f} output tokens/s over {seconds:.0f} s"
    if stopped := summary.outcomes[Outcome.CANCELLED]:
        yield f"early stop   {stopped} attempts cancelled that could not change the outcome"
    silent = [
        each
        for each in Outcome
        if each not in (Outcome.ANSWERED, Outcome.CANCELLED) and summary.outcomes[each]
    ]
    if silent:
        listed = ", ".join(
            f"{outcome.value} {summary.outcomes[outcome]}" for outcome in silent
        )
        yield f"no answer    {listed} (attempts; they count and vote for nothing)"


class RunProgress:
    """Hears how a run goes; in a terminal, a line says so."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.attempts = self.tokens = self.done = self.right = self.labelled = 0
        self.began = time.monotonic()
        # results that go into a file or a pipe are left alone
        console = Console(stderr=True)
        own = on_terminal()
        self._live = Live(
            console=console,
            get_renderable=self._render,
            transient=True,
            redirect_stdout=own,
        )

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.attempts += 1
        self.tokens += attempt.input + attempt.output

    def solved(self, solution: Solution) -> None:
        """Count a finished problem."""
        self.done += 1
        self.labelled += solution.correct is not None
        self.right += bool(solution.correct)

    def __enter__(self) -> Self:
        if terminal():
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the line away while results are printed."""
        drawn = self._live.is_started
        self._live.stop()
        yield
        if drawn:
            self._live.start()

    def status(self) -> str:
        """How far it is."""
        score = f", {self.right} of {self.labelled} right" if self.labelled else ""
        return f"{self.done} of {self.total} solved{score}, {self.attempts} attempts, {self.tokens:,} tokens"

    def _render(self) -> RenderableType:
        return Text(f"{self.status()}, {time.monotonic() - self.began:.0f} s")


def terminal() -> bool:
    """Whether stderr is a terminal that can redraw."""
    return sys.stderr is not None and sys.stderr.isatty()
