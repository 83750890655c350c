"""A forest plot: one row each, a dot on its interval, the figures beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kace.plots.picture import Dot, Label, Line, Mark, Paint, Picture, breadth, fitted
from kace.web.scale import Scale

NARROW = 500
"""A picture less wide than this has the names of its rows above the marks, not beside them."""
FOOT = 40.0
SMALL = 10.5


@dataclass(frozen=True, slots=True)
class ForestRow:
    """What is estimated, and how well it is known."""

    name: str
    about: str
    value: float
    low: float
    high: float
    told: str
    """The figures in words."""
    paint: Paint
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale with its words."""

    scale: Scale
    title: str
    labels: tuple[str, ...]
    """One for each of the scale's ticks."""
    zero: float | None = None
    """Where the line of no effect stands."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where things stand in a picture of some width."""

    width: float
    left: float
    right: float
    row: float
    drop: float
    """From the top of a row to its dot."""

    @classmethod
    def of(cls, width: float, rows: Sequence[ForestRow]) -> _Frame:
        if width < NARROW:
            return cls(width, 10, width - 12, 46, 31)
        # Names get the room they need, within reason.
        longest = max((max(breadth(row.name, bold=True), breadth(row.about, SMALL)) for row in rows), default=0.0)
        told = any(row.about for row in rows)
        left = min(longest + 26, width * 0.4)
        return cls(width, left, width - 172, *((34.0, 17.0) if told else (27.0, 13.5)))

    def across(self, value: float, scale: Scale) -> float:
        return self.left + scale.share(value) * (self.right - self.left)


def forest(title: str, rows: Sequence[ForestRow], axis: Axis, width: float) -> Picture:
    """The rows from top to bottom over one axis. An interval that goes on beyond the scale ends in an arrow."""
    frame = _Frame.of(width, rows)
    bottom = 6 + frame.row * len(rows)
    marks: list[Mark] = []
    for tick, label in zip(axis.scale.ticks, axis.labels, strict=True):
        x = frame.across(tick, axis.scale)
        at_zero = axis.zero is not None and abs(tick - axis.zero) < 1e-9
        marks.append(Line(x, 2, x, bottom, Paint.OPEN if at_zero else Paint.GRID))
        marks.append(Label(x, bottom + 16, label, anchor="middle", size=11))
    marks.append(Label((frame.left + frame.right) / 2, bottom + 33, axis.title, anchor="middle", size=11))
    for number, row in enumerate(rows):
        marks += _row(row, 6 + number * frame.row, frame, axis.scale)
    return Picture(title, width, bottom + FOOT, tuple(marks))


def _row(row: ForestRow, top: float, frame: _Frame, scale: Scale) -> Iterator[Mark]:
    y = top + frame.drop
    yield from _words(row, top, frame)
    low, high = (frame.across(end, scale) for end in (row.low, row.high))
    yield Line(low, y, high, y, row.paint, width=2, round=True)
    for outside, x, sign in ((row.low < scale.low, low, 1), (row.high > scale.high, high, -1)):
        if outside:
            yield Line(x, y, x + 5 * sign, y - 4, row.paint, width=2, round=True)
            yield Line(x, y, x + 5 * sign, y + 4, row.paint, width=2, round=True)
    fill, rim = (Paint.PAPER, row.paint) if row.hollow else (row.paint, Paint.PAPER)
    yield Dot(frame.across(row.value, scale), y, 5, fill, rim, 2 if row.hollow else 1.5, said=f"{row.name}: {row.told}")


def _words(row: ForestRow, top: float, frame: _Frame) -> Iterator[Mark]:
    value, _, interval = row.told.partition(" ")
    if frame.width < NARROW:
        room = frame.width - breadth(row.told, 11) - 12
        yield Label(0, top + 17, fitted(row.name, room, bold=True), Paint.INK, bold=True)
        yield Label(frame.width, top + 17, row.told, Paint.SOFT, "end", 11, halo=True)
        return
    room = frame.left - 22
    line = top + frame.drop + (-2 if row.about else 4.5)
    yield Label(0, line, fitted(row.name, room, bold=True), Paint.INK, bold=True)
    if row.about:
        yield Label(0, top + frame.drop + 12, fitted(row.about, room, SMALL), size=SMALL)
    yield Label(frame.width - 104, top + frame.drop + 4.5, value, Paint.INK, "end", bold=True)
    yield Label(frame.width, top + frame.drop + 4.5, interval, Paint.SOFT, "end", 11)
