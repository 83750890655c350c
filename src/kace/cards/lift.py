"""A card's lift, what it was measured to do: a line on the card for people, written and read back here alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kace.words import points

if TYPE_CHECKING:
    from kace.cards.card import Card

_FIGURE = r"([+-]?\d+(?:\.\d+)?)"
_COUNTS = (
    r"(\d+) attempts with, (\d+) without, (\d+) problems, ([\w-]+)(?:, epoch (\d+))?"
)
_LINE = re.compile(rf"{_FIGURE} points \[{_FIGURE}, {_FIGURE}\](?:, {_COUNTS})?")


class LiftMark(NamedTuple):
    """The change in the share of right attempts that a card causes, with its 95 % interval."""

    effect: float
    low: float
    high: float

    @property
    def tone(self) -> str:
        """What the interval says: that the card helps, that it harms, or nothing yet."""
        return "good" if self.low > 0 else "bad" if self.high < 0 else "open"

    @property
    def vague(self) -> bool:
        """Whether the interval is so wide that too few problems were tried to say anything."""
        return self.high - self.low >= 1.0

    @property
    def words(self) -> str:
        """In figures, in points."""
        return f"{points(self.effect)} [{points(self.low)}, {points(self.high)}]"


class LiftCounts(NamedTuple):
    """What a lift was measured on."""

    shown: int  # attempts with the card
    hidden: int  # attempts without it
    problems: int
    method: str


class CardLift(NamedTuple):
    """A lift as its card tells it; without counts where the card was judged by its tree alone."""

    mark: LiftMark
    counts: LiftCounts | None
    epoch: int | None


def lift_line(mark: LiftMark, counts: LiftCounts | None, epoch: int) -> str:
    """A lift in words, as `validated_lift` of a card holds it."""
    measured = "judged by its tree alone"
    if counts:
        measured = f"{counts.shown} attempts with, {counts.hidden} without, {counts.problems} problems, {counts.method}"
    effect, low, high = map(plain_points, mark)
    return f"{effect} points [{low}, {high}], {measured}, epoch {epoch}"


def lift_of(card: Card) -> CardLift | None:
    """The lift on a card; `None` where there is none, or one in other words: the field is free text."""
    found = _LINE.match(card.provenance.validated_lift)
    if not found:
        return None
    effect, low, high, shown, hidden, problems, method, epoch = found.groups()
    counts = (
        LiftCounts(int(shown), int(hidden), int(problems), method) if method else None
    )
    mark = LiftMark(*(float(figure) / 100 for figure in (effect, low, high)))
    return CardLift(mark, counts, int(epoch) if epoch else None)


def plain_points(share: float) -> str:
    """A share in percentage points with its sign, in ASCII."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns -0.0 into 0.0
