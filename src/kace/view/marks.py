"""Right, wrong and the rest, each with a shape and a word of its own, so that colour is never all there is."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from kace.solver.attempt import Outcome
from kace.solver.tiers import ExitPath
from kace.web.markup import Html, tag


class Mark(StrEnum):
    """What came of an attempt or of a solve."""

    RIGHT = "right"
    WRONG = "wrong"
    ANSWERED = "answered"
    """There is an answer, and none to compare it with."""
    NOTHING = "nothing"
    """There is no answer."""
    STOPPED = "stopped"
    """Early stop: it could not have changed anything."""


WORDS = {
    Mark.RIGHT: "right",
    Mark.WRONG: "wrong",
    Mark.ANSWERED: "not checked",
    Mark.NOTHING: "no answer",
    Mark.STOPPED: "stopped early",
}
OUTCOMES = {
    Outcome.ANSWERED: "answered",
    Outcome.NO_ANSWER: "no answer in the reply",
    Outcome.TRUNCATED: "cut off by the token limit",
    Outcome.REFUSED: "refused",
    Outcome.TIMEOUT: "timed out",
    Outcome.PROVIDER_ERROR: "the provider failed",
    Outcome.CANCELLED: "stopped early",
}
EXITS = {
    ExitPath.ES_UNANIMOUS: "ES, unanimous",
    ExitPath.MS_MAJORITY: "MS, majority",
    ExitPath.HS_PLURALITY: "HS, plurality",
    ExitPath.FALLBACK_PLURALITY: "fallback, plurality of all",
    ExitPath.FALLBACK_LAST_HS: "fallback, last HS answer",
}
"""Exits in words."""
NO_EXIT = "no ladder"


def mark_of(correct: bool | None, outcome: Outcome = Outcome.ANSWERED) -> Mark:
    """The mark of what was answered and whether that is right."""
    if outcome is Outcome.CANCELLED:
        return Mark.STOPPED
    if outcome is not Outcome.ANSWERED:
        return Mark.NOTHING
    return Mark.ANSWERED if correct is None else Mark.RIGHT if correct else Mark.WRONG


@cache
def shape(mark: Mark) -> Html:
    """The mark without a word: a filled disc with a tick, a square with a cross, a diamond, a dashed ring."""
    drawn = {
        Mark.RIGHT: (tag("circle", cx=8, cy=8, r=7.2, class_="full"), _stroke("M4.6 8.3 7.1 10.8 11.4 5.6")),
        Mark.WRONG: (
            tag("rect", x=1.4, y=1.4, width=13.2, height=13.2, rx=2, class_="rim"),
            _stroke("M5 5 11 11M11 5 5 11"),
        ),
        Mark.ANSWERED: (tag("path", d="M8 1.2 14.8 8 8 14.8 1.2 8Z", class_="rim"),),
        Mark.NOTHING: (tag("circle", cx=8, cy=8, r=6.6, class_="rim dashed"), _stroke("M5 8H11")),
        Mark.STOPPED: (tag("circle", cx=8, cy=8, r=6.6, class_="rim dashed"), _stroke("M6.2 5.5V10.5M9.8 5.5V10.5")),
    }[mark]
    return tag("svg", *drawn, viewBox="0 0 16 16", class_="shape", aria_hidden="true")


def marked(mark: Mark, words: str = "") -> Html:
    """The mark and its word."""
    return tag("span", shape(mark), " ", words or WORDS[mark], class_=mark_class(mark))


def mark_class(mark: Mark) -> str:
    """The classes of what carries a mark."""
    return f"mark is-{mark.value}"


def exit_words(path: ExitPath | None) -> str:
    """Where a solve left, for people."""
    return NO_EXIT if path is None else EXITS[path]


def key_of(*shown: Mark) -> Html:
    """What the shapes mean."""
    return tag("ul", *(tag("li", marked(mark)) for mark in shown), class_="marks-key")


def _stroke(path: str) -> Html:
    return tag("path", d=path, class_="stroke")


def percent(share: float, digits: int = 1) -> str:
    """A share, with a space that does not break."""
    return f"{100 * share:.{digits}f}\u00a0%"


def spread(low: float, high: float) -> str:
    """An interval of shares in words."""
    return f"{100 * low:.1f} to {100 * high:.1f}\u00a0%"
