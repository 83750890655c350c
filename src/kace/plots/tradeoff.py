"""Accuracy against what it takes: arms as points with their intervals, labelled where there is room."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from kace.plots.picture import Dot, Label, Line, Mark, Paint, Picture, breadth, fitted
from kace.web.scale import Scale, scale_over

TOP, FOOT, LEFT, RIGHT = 14.0, 46.0, 44.0, 18.0
RINGS = (9, 16, 26, 38, 52, 68, 86, 106)
"""How far a label may stand from its dot, nearest first."""
TEXT = 11.5
LONGEST = 150.0
"""Of a label, in pixels."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An arm by its calls and its accuracy."""

    name: str
    calls: float
    accuracy: float
    low: float
    high: float


class _Rect(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def over(self, other: _Rect) -> float:
        """The area two rectangles share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)


@dataclass(frozen=True, slots=True)
class _Plane:
    across: Scale
    up: Scale
    width: float
    height: float

    def x(self, calls: float) -> float:
        return LEFT + self.across.share(calls) * (self.width - LEFT - RIGHT)

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
    plane = _plane(spots, width)
    best = front(spots)
    marks = [*_grid(plane), *_steps(best, plane)]
    for spot in spots:
        paint, width_ = (Paint.GOOD, 2.0) if spot in best else (Paint.OPEN, 1.0)
        x = plane.x(spot.calls)
        marks.append(Line(x, plane.y(spot.low), x, plane.y(spot.high), paint, width_, round=True))
    for spot in spots:
        fill, rim = (Paint.GOOD, Paint.PAPER) if spot in best else (Paint.PAPER, Paint.OPEN)
        told = f"{spot.name}: {spot.accuracy:.1%} ({spot.low:.1%} to {spot.high:.1%}) at {spot.calls:.2f} calls"
        marks.append(Dot(plane.x(spot.calls), plane.y(spot.accuracy), 5.5, fill, rim, 2, said=told))
    marks += _names(spots, best, plane)
    return Picture(title, width, plane.height, tuple(marks))


def _plane(spots: Sequence[Spot], width: float) -> _Plane:
    calls = [spot.calls for spot in spots]
    least, most = min(calls), max(calls)
    margin = max(0.06 * (most - least), 0.1)
    across = scale_over(0.0 if least < 0.5 * most else least - margin, most + margin, about=6 if width > 500 else 4)
    up = scale_over(max(0.0, min(s.low for s in spots)), min(1.0, max(s.high for s in spots)), about=7)
    return _Plane(across, up, width, (360.0 if width > 500 else 320.0) + 8 * max(0, len(spots) - 4))


def _grid(plane: _Plane) -> Iterator[Mark]:
    bottom, right = plane.height - FOOT, plane.width - RIGHT
    for tick in plane.up.ticks:
        y = plane.y(tick)
        yield Line(LEFT, y, right, y, Paint.GRID)
        yield Label(LEFT - 8, y + 4, f"{tick:.0%}" if plane.up.step >= 0.01 else f"{tick:.1%}", anchor="end", size=11)
    for tick in plane.across.ticks:
        x = plane.x(tick)
        yield Line(x, bottom, x, bottom + 5, Paint.LINE)
        yield Label(x, bottom + 19, f"{tick:g}" if plane.across.step >= 1 else f"{tick:.3g}", anchor="middle", size=11)
    yield Line(LEFT, bottom, right, bottom, Paint.LINE)
    yield Label((LEFT + right) / 2, plane.height - 6, "solver calls per problem", anchor="middle", size=11)


def _steps(best: Sequence[Spot], plane: _Plane) -> Iterator[Line]:
    """What can be had for so many calls: level from one arm to the next better one."""
    for here, there in pairwise(best):
        corner = plane.x(there.calls)
        yield Line(plane.x(here.calls), plane.y(here.accuracy), corner, plane.y(here.accuracy), Paint.TWO, 1.5, True)
        yield Line(corner, plane.y(here.accuracy), corner, plane.y(there.accuracy), Paint.TWO, 1.5, True)


def _names(spots: Sequence[Spot], best: Sequence[Spot], plane: _Plane) -> Iterator[Mark]:
    """Each label at the nearest free place around its dot; a thin line leads to one that stands far off."""
    taken = [_around(plane.x(s.calls), plane.y(s.accuracy), 8, 8) for s in spots]
    bars = [_Rect(plane.x(s.calls) - 2, plane.y(s.high), plane.x(s.calls) + 2, plane.y(s.low)) for s in spots]
    bars += [_around((s.x1 + s.x2) / 2, s.y1, abs(s.x2 - s.x1) / 2, 1) for s in _steps(best, plane)]
    for spot in sorted(spots, key=lambda s: (s not in best, -s.accuracy)):
        x, y = plane.x(spot.calls), plane.y(spot.accuracy)
        words = fitted(spot.name, min(LONGEST, 0.4 * plane.width), TEXT, bold=spot in best)
        places = _places(x, y, breadth(words, TEXT, bold=spot in best))
        place = min(places, key=lambda p: _cost(p, x, plane, (taken, bars)))
        taken.append(place.rect)
        if place.far:
            end = place.near(x)
            bars += _along(x, y, *end)
            yield Line(x, y, *end, Paint.OPEN, 0.7)
        paint = Paint.INK if spot in best else Paint.SOFT
        yield Label(place.rect.left, place.middle + 4, words, paint, "start", TEXT, spot in best, True)


class _Place(NamedTuple):
    rect: _Rect
    distance: float
    dot: float
    """How far down the dot lies."""

    @property
    def middle(self) -> float:
        return (self.rect.top + self.rect.bottom) / 2

    @property
    def far(self) -> bool:
        return self.distance > RINGS[1]

    def near(self, x: float) -> tuple[float, float]:
        """Where a line from a dot at `x` ends."""
        left, top, right, bottom = self.rect
        return min(max(x, left), right), top if top > self.dot else bottom if bottom < self.dot else self.middle


def _places(x: float, y: float, wide: float) -> Iterator[_Place]:
    for ring in RINGS:
        for turn in range(16):
            angle = math.pi * turn / 8
            middle_x = x + math.cos(angle) * (ring + wide / 2)
            middle_y = y - math.sin(angle) * (ring + 4)
            yield _Place(_around(middle_x, middle_y, wide / 2, 7), ring, y)


def _cost(place: _Place, x: float, plane: _Plane, there: tuple[Sequence[_Rect], Sequence[_Rect]]) -> float:
    """How bad a place is: above all outside the picture or over another label, then over an interval, then far off."""
    rect, (taken, bars) = place.rect, there
    beyond = max(0.0, LEFT + 3 - rect.left) + max(0.0, rect.right - plane.width + 2)
    beyond += max(0.0, 2 - rect.top) + max(0.0, rect.bottom - plane.height + FOOT - 2)
    hidden = sum(rect.over(other) for other in taken)
    crossed = sum(rect.over(bar) > 0 for bar in bars)
    path = _along(x, place.dot, *place.near(x)) if place.far else []
    struck = sum(bit.over(other) > 0 for bit in path for other in taken)
    return 100 * beyond + 10 * hidden + 14 * crossed + 14 * struck + 1.2 * place.distance


def _along(x1: float, y1: float, x2: float, y2: float) -> list[_Rect]:
    """Small squares along a line, beyond the dot it begins at."""
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    shares = [n / length for n in range(14, int(length), 5)]
    return [_around(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share, 1.5, 1.5) for share in shares]


def _around(x: float, y: float, half_wide: float, half_high: float) -> _Rect:
    return _Rect(x - half_wide, y - half_high, x + half_wide, y + half_high)
