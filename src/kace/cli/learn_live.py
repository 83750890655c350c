"""A learning run as it goes: a panel where there is a terminal, a line a step where there is not."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kace.cli.show import plain
from kace.cli.streams import note
from kace.learner.commit import Look
from kace.learner.growth import Grown
from kace.learner.illustrate import Illustrated
from kace.learner.lift import Impact
from kace.learner.notebook import Step
from kace.learner.placements import Placements
from kace.learner.practice import Exercised
from kace.learner.verdicts import Kept, Proposals, Rulings
from kace.models.budget import Ledger
from kace.problem import Problem
from kace.solver.attempt import Attempt
from kace.solver.solution import Solution

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STEPS_KEPT = 8


@dataclass(slots=True)
class Tally:
    """What has come of the teacher's cards so far."""

    proposed: int = 0
    admitted: int = 0
    refused: int = 0
    shown: int = 0
    """Cards the tree would show now."""
    runs: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, step: Step, value: Kept) -> None:
        """Count a step's result."""
        match value:
            case Proposals():
                self.proposed += len(value.cards) + len(value.refused)
                self.refused += len(value.refused)
            case Rulings():
                self.admitted += len(value.admitted)
                self.refused += len(value.refused)
            case Grown():
                self.shown = value.cards
            case Exercised() if step.what in ("run", "base"):  # runs on all problems, so that they compare
                self.runs.append((str(step), value.correct, value.problems))

    def line(self) -> str:
        """The counts in words."""
        return f"{self.proposed} proposed, {self.admitted} admitted, {self.refused} refused, {self.shown} in the tree"


def outcome(value: Kept) -> str:
    """A step's result in a few words."""
    match value:
        case Exercised():
            return f"{value.correct} of {value.problems} right, {value.escalated} past ES"
        case Placements():
            return f"{len(value.domains)} problems placed, {sum(not names for names in value.domains.values())} nowhere"
        case Proposals():
            return f"{len(value.cards)} cards" + (f", {len(value.refused)} unusable" if value.refused else "")
        case Rulings():
            return f"{len(value.admitted)} admitted, {len(value.refused)} refused"
        case Illustrated():
            return f"{sum(bool(card.examples) for card in value.cards)} of {len(value.cards)} cards with examples"
        case Grown():
            return f"{value.cards} cards in the tree"
        case Impact():
            return f"{len(value.lifts)} lifts measured, {len(value.fires)} cards fired"
        case Look():
            return f"{'kept' if value.accepted else 'not kept'}: {value.reason}"
    return "done"


class LearnLines:
    """A line on standard error for every step that was done just now."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.ledger: Ledger | None = None
        self.tally = Tally()

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""

    def practising(self, step: Step, problems: int, done: int) -> None:
        """A run begins."""
        note(f"kace: {step}: {problems} problems" + (f", {done} done before" if done else ""))

    def noted(self, step: Step, value: Kept, fresh: bool) -> None:
        """A step is done."""
        self.tally.add(step, value)
        if fresh:
            note(f"kace: {step}: {outcome(value)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ledger:
            note(f"kace: cards: {self.tally.line()}{money(self.ledger)}")


class LearnLive:
    """A panel that redraws itself: where the run is, what came of the cards, what it costs."""

    def __init__(self, epochs: int, *, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.epochs = epochs
        self.ledger: Ledger | None = None
        self.tally = Tally()
        self.now = Step("plan", "partition")
        self.total = self.done = self.right = self.attempts = 0
        self.recent: list[str] = []
        self.began = time.monotonic()
        console = console or Console(stderr=True)
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4)

    def started(self, problem: Problem) -> None:
        """A problem steps onto the ladder."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """An attempt has ended."""
        self.attempts += 1

    def solved(self, solution: Solution) -> None:
        """A problem has left the ladder."""
        self.done += 1
        self.right += bool(solution.correct)

    def practising(self, step: Step, problems: int, done: int) -> None:
        """A run begins."""
        self.now = step
        if self.done >= self.total:
            self.total = self.done = self.right = 0
        self.total += problems  # reruns of several domains go side by side
        self.done += done

    def noted(self, step: Step, value: Kept, fresh: bool) -> None:
        """A step is done."""
        self.tally.add(step, value)
        self.now = step
        self.recent = [*self.recent, f"{step}: {outcome(value)}"][-STEPS_KEPT:]

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        epoch = f"epoch {self.now.epoch} of {self.epochs}" if self.now.epoch else "outside the epochs"
        rows: list[RenderableType] = [Text(plain(line), style="dim") for line in self.recent]
        where = " ".join(part for part in (self.now.phase, self.now.place, self.now.what) if part)
        rows.append(Text(f"{epoch}: {where}, {time.monotonic() - self.began:.0f} s", style="bold"))
        if self.total:
            rows.append(ProgressBar(self.total, min(self.done, self.total), width=40))
            rows.append(Text(f"problems     {self.done} of {self.total}, {self.right} right, {self.attempts} attempts"))
        rows.append(Text(f"cards        {self.tally.line()}"))
        if len(self.tally.runs) > 1:
            (_, first, n), (_, last, m) = self.tally.runs[0], self.tally.runs[-1]
            rows.append(Text(f"accuracy     {first} of {n} in the first run, {last} of {m} in the last"))
        rows.append(Text(f"spent{money(self.ledger)}"))
        return Group(*rows)


def money(ledger: Ledger | None) -> str:
    """Calls and money of this session."""
    if ledger is None:
        return ""
    roles = ", ".join(f"{role} {spent.calls}" for role, spent in sorted(ledger.roles.items()))
    return f"; calls: {roles or 'none'}; {ledger.usd:.4f} USD"
