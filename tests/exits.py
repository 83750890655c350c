"""The paper's ladder: how many calls each exit takes, and the place of each attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kace.ladder.tiers import ExitPath
from kace.models.base import Request

PAPER_CALLS = dict(zip(ExitPath, (2, 5, 10, 10, 10), strict=True))


def place_of(request: Request) -> int:
    """The position of an attempt among all of its solve."""
    return {"ES": 0, "MS": 2, "HS": 5, "FLAT": 0}[request.attempt.tier] + request.attempt.index


def says(answers: Sequence[str | None]) -> Callable[[Request], str]:
    """A script whose attempt at position i boxes `answers[i]`."""

    def script(request: Request) -> str:
        answer = answers[place_of(request)]
        return "no idea" if answer is None else f"so \\boxed{{{answer}}}"

    return script
