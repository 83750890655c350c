"""The scale of an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
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
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return tuple(self.step * n for n in range(first, last + 1))


def scale_over(low: float, high: float, *, about: int = 5) -> Scale:
    """A scale from a round value below `low` to one above `high`, with about so many labelled places."""
    if high - low < 1e-6 * max(1.0, abs(low), abs(high)):  # one value: some room around it
        low, high = low - 0.05 * max(1.0, abs(low)), high + 0.05 * max(1.0, abs(high))
    span = high - low
    size: float = 10 ** math.floor(math.log10(span / about))
    # No 2.5: labels are rounded to whole figures, and every other one would be false.
    step = next(size * n for n in (1, 2, 5, 10) if span / (size * n) <= about)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Scale(bottom, top if top > bottom else bottom + step, step)
