"""Scales of axes, and those of lifts with the colours that stand for them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kace.cards.card import LiftMark

# From which mean lift on a place has which colour, and what the colour means.
BANDS = (
    (0.05, "lift-1", "+5 points or more"),
    (0.01, "lift-2", "+1 to +5"),
    (-0.01, "lift-3", "within 1 of zero"),
    (-0.05, "lift-4", "−1 to −5"),
    (float("-inf"), "lift-5", "−5 or less"),
)
UNMEASURED = "lift-0"


class Scale(NamedTuple):
    """A range of values, and the places on an axis that are labelled."""

    low: float
    high: float
    step: float

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0 to 1; outside it is held at the end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def across(self, value: float) -> str:
        """Where a value lies from left to right."""
        return f"{100 * self.share(value):.2f}%"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The labelled values."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return tuple(self.step * n for n in range(first, last + 1))


def scale_over(low: float, high: float, *, about: int = 5) -> Scale:
    """A scale from a round value below `low` to one above `high`, with about so many labelled places."""
    if high - low < 1e-6 * max(
        1.0, abs(low), abs(high)
    ):  # one value: some room around it
        low = low - 0.05 * max(1.0, abs(low))
        high = high + 0.05 * max(1.0, abs(high))
    span = high - low
    size: float = 10 ** math.floor(math.log10(span / about))
    # No 2.5: labels are rounded to whole figures, and every other one would be false.
    step = next(size * n for n in (1, 2, 5, 10) if span / (size * n) <= about)
    bottom = math.floor(low / step + 1e-9) * step
    top = math.ceil(high / step - 1e-9) * step
    return Scale(bottom, top if top > bottom else bottom + step, step)


def band(lift: float | None) -> str:
    """The class of a mean lift's colour. It is rounded as it is written, so that none contradicts its figure."""
    return (
        UNMEASURED
        if lift is None
        else next(name for least, name, _ in BANDS if round(lift, 3) >= least)
    )


def lift_scale(lifts: Iterable[LiftMark | None]) -> Scale:
    """One scale for lifts that stand together. It follows the effects: an interval far wider than any is cut."""
    known = [lift for lift in lifts if lift is not None]
    ends = max((max(abs(lift.low), abs(lift.high)) for lift in known), default=0.1)
    effects = max((abs(lift.effect) for lift in known), default=0.1)
    widest = max(0.02, min(ends, max(0.1, 2.5 * effects), 1.0))
    step = next(
        step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if widest / step <= 4.5
    )
    return Scale(-widest * 1.04, widest * 1.04, step)
