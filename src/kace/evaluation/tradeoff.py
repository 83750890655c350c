"""Accuracy against what it takes: arms as points with their intervals, labelled where there is room."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kace.evaluation.svg import Mark, Paint, Picture, breadth, dot, fitted, label, stroke
from kace.web.scale import scale_over

TOP, FOOT, LEFT, RIGHT = 14.0, 46.0, 44.0, 18.0
RINGS = (9, 16, 26, 38, 52, 68, 86, 106)  # how far a label may stand from its dot, nearest first
TEXT = 11.5
LONGEST = 150.0  # of a label, in pixels

_Rect = tuple[float, float, float, float]  # left, top, right, bottom; or the two ends of a line
_Place = tuple[_Rect, int, tuple[float, float], list[_Rect]]
"""Where a label may stand, how far off, where a line from its dot ends, and small squares along that line."""


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
        least, most, about = min(calls), max(calls), 6 if width > 500 else 4
        margin = max(0.06 * (most - least), 0.1)
        self.across = scale_over(0.0 if least < 0.5 * most else least - margin, most + margin, about=about)
        self.up = scale_over(max(0.0, min(s.low for s in spots)), min(1.0, max(s.high for s in spots)), about=7)
        self.width, self.height = width, (360.0 if width > 500 else 320.0) + 8 * max(0, len(spots) - 4)

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
    plane, best = _Plane(spots, width), front(spots)
    steps: list[_Rect] = []
    for here, there in pairwise(best):  # what can be had for so many calls: level, then up to the next better arm
        corner, level = plane.x(there.calls), plane.y(here.accuracy)
        steps += [(plane.x(here.calls), level, corner, level), (corner, level, corner, plane.y(there.accuracy))]
    marks = [*_grid(plane), *(stroke(*step, Paint.TWO, 1.5, stroke_dasharray="3 4") for step in steps)]
    for spot in spots:
        paint, thick = (Paint.GOOD, 2.0) if spot in best else (Paint.OPEN, 1.0)
        x = plane.x(spot.calls)
        marks.append(stroke(x, plane.y(spot.low), x, plane.y(spot.high), paint, thick, stroke_linecap="round"))
    for spot in spots:
        fill, rim = (Paint.GOOD, Paint.PAPER) if spot in best else (Paint.PAPER, Paint.OPEN)
        said = f"{spot.name}: {spot.accuracy:.1%} ({spot.low:.1%} to {spot.high:.1%}) at {spot.calls:.2f} calls"
        marks.append(dot(plane.x(spot.calls), plane.y(spot.accuracy), 5.5, fill, rim, 2, said))
    return Picture(title, width, plane.height, (*marks, *_names(spots, best, steps, plane)))


def _grid(plane: _Plane) -> Iterator[Mark]:
    bottom, right = plane.height - FOOT, plane.width - RIGHT
    for tick in plane.up.ticks:
        y = plane.y(tick)
        yield stroke(LEFT, y, right, y, Paint.GRID)
        yield label(LEFT - 8, y + 4, f"{tick:.0%}" if plane.up.step >= 0.01 else f"{tick:.1%}", anchor="end", size=11)
    for tick in plane.across.ticks:
        x = plane.x(tick)
        yield stroke(x, bottom, x, bottom + 5, Paint.LINE)
        yield label(x, bottom + 19, f"{tick:g}" if plane.across.step >= 1 else f"{tick:.3g}", anchor="middle", size=11)
    yield stroke(LEFT, bottom, right, bottom, Paint.LINE)
    yield label((LEFT + right) / 2, plane.height - 6, "solver calls per problem", anchor="middle", size=11)


def _names(spots: Sequence[Spot], best: Sequence[Spot], steps: Sequence[_Rect], plane: _Plane) -> Iterator[Mark]:
    """Each label at the nearest free place around its dot; a thin line leads to one that stands far off."""
    taken = [_around(plane.x(s.calls), plane.y(s.accuracy), 8, 8) for s in spots]
    bars = [(plane.x(s.calls) - 2, plane.y(s.high), plane.x(s.calls) + 2, plane.y(s.low)) for s in spots]
    bars += [_around((x1 + x2) / 2, y1, abs(x2 - x1) / 2, 1) for x1, y1, x2, _ in steps]
    for spot in sorted(spots, key=lambda s: (s not in best, -s.accuracy)):
        x, y, bold = plane.x(spot.calls), plane.y(spot.accuracy), spot in best
        words = fitted(spot.name, min(LONGEST, 0.4 * plane.width), TEXT, bold=bold)
        places = _places(x, y, breadth(words, TEXT, bold=bold))
        rect, distance, near, path = min(places, key=lambda place: _cost(place, plane, taken, bars))
        taken.append(rect)
        bars += path
        if distance > RINGS[1]:
            yield stroke(x, y, *near, Paint.OPEN, 0.7)
        middle, paint = (rect[1] + rect[3]) / 2, Paint.INK if bold else Paint.SOFT
        yield label(rect[0], middle + 4, words, paint, size=TEXT, bold=bold, halo=True)


def _places(x: float, y: float, wide: float) -> Iterator[_Place]:
    for ring in RINGS:
        for turn in range(16):
            angle = math.pi * turn / 8
            middle_x, middle_y = x + math.cos(angle) * (ring + wide / 2), y - math.sin(angle) * (ring + 4)
            left, top, right, bottom = rect = _around(middle_x, middle_y, wide / 2, 7)
            end_x, end_y = min(max(x, left), right), top if top > y else bottom if bottom < y else (top + bottom) / 2
            length = math.hypot(end_x - x, end_y - y) or 1.0
            shares = [n / length for n in range(14, int(length), 5)] if ring > RINGS[1] else []
            path = [_around(x + (end_x - x) * share, y + (end_y - y) * share, 1.5, 1.5) for share in shares]
            yield rect, ring, (end_x, end_y), path


def _cost(place: _Place, plane: _Plane, taken: Sequence[_Rect], bars: Sequence[_Rect]) -> float:
    """How bad a place is: above all outside the picture or over another label, then over an interval, then far off."""
    rect, distance, _, path = place
    left, top, right, bottom = rect
    beyond = max(0.0, LEFT + 3 - left) + max(0.0, right - plane.width + 2)
    beyond += max(0.0, 2 - top) + max(0.0, bottom - plane.height + FOOT - 2)
    hidden = sum(_over(rect, other) for other in taken)
    crossed = sum(_over(rect, bar) > 0 for bar in bars)
    struck = sum(_over(bit, other) > 0 for bit in path for other in taken)
    return 100 * beyond + 10 * hidden + 14 * crossed + 14 * struck + 1.2 * distance


def _over(one: _Rect, other: _Rect) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    return max(0.0, width) * max(0.0, min(one[3], other[3]) - max(one[1], other[1]))


def _around(x: float, y: float, half_wide: float, half_high: float) -> _Rect:
    return (x - half_wide, y - half_high, x + half_wide, y + half_high)
