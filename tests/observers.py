"""Observers that tests watch solves by."""

from __future__ import annotations

from collections.abc import Callable

from kace.ladder.record import Solution
from kace.problems import Problem


class Counting:
    """Hears of solves, and does something after some of them."""

    def __init__(self, after: int = 0, then: Callable[[], None] = lambda: None) -> None:
        self.solves, self.after, self.then = 0, after, then

    def started(self, problem: Problem) -> None: ...

    def attempted(self, problem: Problem, attempt: object) -> None: ...

    def solved(self, solution: Solution) -> None:
        """Count it."""
        self.solves += 1
        if self.solves == self.after:
            self.then()
