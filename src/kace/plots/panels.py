"""Small multiples: a panel for each arm, side by side as far as the width allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kace.plots.picture import Box, Dot, Label, Line, Mark, Picture

GAP = 26.0
MARGIN = 10.0
WIDEST = 460.0
"""Of a panel: one alone does not fill a wide page."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the panels of a picture lie."""

    count: int
    width: float
    columns: int
    height: float
    """Of one panel."""
    top: float = 0.0

    @property
    def wide(self) -> float:
        """The width of one panel."""
        return min(WIDEST, (self.width - GAP * (self.columns - 1)) / self.columns)

    @property
    def bottom(self) -> float:
        """Where the last row of panels ends."""
        rows = -(-self.count // self.columns)
        return self.top + rows * self.height + (rows - 1) * GAP * 0.7

    def corner(self, number: int) -> tuple[float, float]:
        """Where a panel begins."""
        row, column = divmod(number, self.columns)
        return column * (self.wide + GAP), self.top + row * (self.height + GAP * 0.7)


def columns(count: int, width: float, *, least: float, most: int) -> int:
    """How many panels stand side by side, each at least so wide; rows are filled evenly."""
    fitting = max(1, min(count, most, int((width + GAP) // (least + GAP))))
    rows = -(-count // fitting)
    return -(-count // rows)


def moved(marks: Iterable[Mark], x: float, y: float) -> Iterator[Mark]:
    """Marks somewhere else."""
    for mark in marks:
        match mark:
            case Line():
                yield replace(mark, x1=mark.x1 + x, x2=mark.x2 + x, y1=mark.y1 + y, y2=mark.y2 + y)
            case Box() | Dot() | Label():
                yield replace(mark, x=mark.x + x, y=mark.y + y)


def framed(picture: Picture) -> Picture:
    """The picture with a margin, for a file of its own."""
    marks = tuple(moved(picture.marks, MARGIN, MARGIN))
    return replace(picture, width=picture.width + 2 * MARGIN, height=picture.height + 2 * MARGIN, marks=marks)
