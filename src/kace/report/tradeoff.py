"""Accuracy against what it takes: arms as points with their intervals, and their names in a column beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kace.report.scale import scale_over
from kace.report.svg import Mark, Paint, Picture, breadth, dot, fitted, label, stroke

TOP = 14.0
FOOT = 46.0
LEFT = 44.0
# size of the names, and how far apart they stand
TEXT = 11.5
LINE = 14.5
GAP = 26.0  # between the plane and the names


class Spot(NamedTuple):
    """An arm by its calls and its accuracy."""

    name: str
    calls: float
    accuracy: float
    low: float
    high: float


class _Plane:
    """The arms on axes of calls and accuracy."""

    def __init__(self, spots: Sequence[Spot], width: float) -> None:
        calls = [spot.calls for spot in spots]
        least = min(calls)
        most = max(calls)
        margin = max(0.06 * (most - least), 0.1)
        self.right = (
            width
            - GAP
            - min(max(breadth(s.name, TEXT, bold=True) for s in spots), 0.36 * width)
        )
        about = max(2, int((self.right - LEFT) / 70))
        self.across = scale_over(
            0.0 if least < 0.5 * most else least - margin, most + margin, about=about
        )
        self.up = scale_over(
            max(0.0, min(s.low for s in spots)),
            min(1.0, max(s.high for s in spots)),
            about=7,
        )
        self.width = width
        self.height = max(
            360.0 if width > 500 else 320.0, LINE * len(spots) + TOP + FOOT + 40
        )

    def x(self, calls: float) -> float:
        return LEFT + self.across.share(calls) * (self.right - LEFT)

    def y(self, accuracy: float) -> float:
        return self.height - FOOT - self.up.share(accuracy) * (self.height - FOOT - TOP)


def front(spots: Sequence[Spot]) -> tuple[Spot, ...]:
    """The arms that no other beats: none is at least as accurate with fewer calls, or more accurate with as few."""
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda s: (s.calls, -s.accuracy)):
        if not best or spot.accuracy > best[-1].accuracy:
            best.append(spot)
    return tuple(best)


def tradeoff(title: str, spots: Sequence[Spot], width: float) -> Picture:
    """All arms, the line through those that no other beats, and a name beside each."""
    plane = _Plane(spots, width)
    best = front(spots)
    marks = [*_grid(plane)]
    for here, there in pairwise(
        best
    ):  # what can be had for so many calls: level, then up to the next better arm
        corner = plane.x(there.calls)
        level = plane.y(here.accuracy)
        for step in (
            (plane.x(here.calls), level, corner, level),
            (corner, level, corner, plane.y(there.accuracy)),
        ):
            marks.append(stroke(*step, Paint.TWO, 1.5, stroke_dasharray="3 4"))
    for spot in sorted(spots, key=best.__contains__):
        paint, thick = (Paint.GOOD, 2.0) if spot in best else (Paint.LINE, 1.0)
        x = plane.x(spot.calls)
        marks.append(
            stroke(
                x,
                plane.y(spot.low),
                x,
                plane.y(spot.high),
                paint,
                thick,
                stroke_linecap="round",
            )
        )
    marks += _names(spots, best, plane)
    for spot in sorted(spots, key=best.__contains__):
        fill, rim = (
            (Paint.GOOD, Paint.PAPER) if spot in best else (Paint.PAPER, Paint.OPEN)
        )
        said = f"{spot.name}: {spot.accuracy:.1%} ({spot.low:.1%} to {spot.high:.1%}) at {spot.calls:.2f} calls"
        marks.append(
            dot(plane.x(spot.calls), plane.y(spot.accuracy), 5.5, fill, rim, 2, said)
        )
    return Picture(title, width, plane.height, tuple(marks))


def _grid(plane: _Plane) -> Iterator[Mark]:
    bottom = plane.height - FOOT
    right = plane.right
    for tick in plane.up.ticks:
        y = plane.y(tick)
        yield stroke(LEFT, y, right, y, Paint.GRID)
        yield label(
            LEFT - 8,
            y + 4,
            f"{tick:.0%}" if plane.up.step >= 0.01 else f"{tick:.1%}",
            anchor="end",
            size=11,
        )
    for tick in plane.across.ticks:
        x = plane.x(tick)
        yield stroke(x, bottom, x, bottom + 5, Paint.LINE)
        yield label(
            x,
            bottom + 19,
            f"{tick:g}" if plane.across.step >= 1 else f"{tick:.3g}",
            anchor="middle",
            size=11,
        )
    yield stroke(LEFT, bottom, right, bottom, Paint.LINE)
    yield label(
        (LEFT + right) / 2,
        plane.height - 6,
        "solver calls per problem",
        anchor="middle",
        size=11,
    )


def _names(
    spots: Sequence[Spot], best: Sequence[Spot], plane: _Plane
) -> Iterator[Mark]:
    """The names from the most accurate arm down, each as near to the height of its dot as the others leave it."""
    ordered = sorted(spots, key=lambda spot: (-spot.accuracy, -spot.calls))
    blocks: list[
        tuple[float, int]
    ] = []  # names that stand close: where the first would be best, and how many
    for place, spot in enumerate(ordered):
        blocks.append((plane.y(spot.accuracy) - LINE * place, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (above, n), (below, m) = blocks[-2:]
            blocks[-2:] = [((above * n + below * m) / (n + m), n + m)]
    lowest = plane.height - FOOT - LINE * (len(ordered) - 1)
    starts = (min(max(start, TOP), lowest) for start, n in blocks for _ in range(n))
    heights = [start + LINE * place for place, start in enumerate(starts)]
    for spot, y in zip(ordered, heights, strict=True):
        bold = spot in best
        start = plane.right + GAP
        words = fitted(spot.name, plane.width - start, TEXT, bold=bold)
        yield stroke(
            plane.x(spot.calls),
            plane.y(spot.accuracy),
            start - 4,
            y,
            Paint.GOOD if bold else Paint.OPEN,
            0.7,
        )
        yield label(
            start, y + 4, words, Paint.INK if bold else Paint.SOFT, size=TEXT, bold=bold
        )
