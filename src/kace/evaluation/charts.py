"""The charts of an evaluation, each drawn at any width. They know figures and words, not where from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from kace.evaluation.svg import Mark, Paint, Picture, box, breadth, dot, fitted, label, moved, stroke
from kace.solver.tiers import ExitPath
from kace.web.scale import Scale, scale_over
from kace.words import counted

NARROW = 500  # A picture less wide than this has the names of its rows above the marks, not beside them
GAP = 26.0  # between panels
WIDEST = 460.0  # of a panel: one alone does not fill a wide page
SMALL = 10.5
PAINTS = (Paint.ONE, Paint.TWO, Paint.THREE, Paint.FOUR, Paint.FIVE)
COST_PAINTS = (Paint.ONE, Paint.THREE, Paint.FOUR, Paint.TWO, Paint.FIVE)
_LEGEND = ("ES unanimous", "MS majority", "HS plurality", "fallback plurality", "last HS answer")
NAMES: Mapping[ExitPath, str] = dict(zip(ExitPath, _LEGEND, strict=True))  # exits as a legend has them
RANKS = ("last", "fallb.", "HS", "MS", "ES")  # exits by rank, as short as an axis needs them
FEW = 250  # different places up to which all are drawn as they are; beyond, near ones are put together


class ForestRow(NamedTuple):
    """What is estimated, how well it is known, and that in words."""

    name: str
    about: str
    value: float
    low: float
    high: float
    told: str
    paint: Paint
    hollow: bool = False


class Axis(NamedTuple):
    """A scale with its words, a label for each tick, and where the line of no effect stands."""

    scale: Scale
    title: str
    labels: tuple[str, ...]
    zero: float | None = None


ScatterPanel = tuple[str, str, Sequence[tuple[float, float]]]
"""An arm's name, its figures in words, and the raw rate, 0 to 1, and mean exit rank, 0 to 4, of each problem."""
ExitRow = tuple[str, int, Mapping[ExitPath, int]]
"""The name of a bucket, its problems, and how many solves left where."""


def forest(title: str, rows: Sequence[ForestRow], axis: Axis, width: float) -> Picture:
    """A dot on its interval for each row. An interval that goes on beyond the scale ends in an arrow."""
    names = max((max(breadth(row.name, bold=True), breadth(row.about, SMALL)) for row in rows), default=0.0)
    left, right = (10.0, width - 12) if width < NARROW else (min(names + 26, width * 0.4), width - 172)
    tall, drop = (46.0, 31.0) if width < NARROW else (34.0, 17.0) if any(row.about for row in rows) else (27.0, 13.5)
    bottom = 6 + tall * len(rows)

    def across(value: float) -> float:
        return left + axis.scale.share(value) * (right - left)

    marks: list[Mark] = []
    for tick, words in zip(axis.scale.ticks, axis.labels, strict=True):
        at_zero = axis.zero is not None and abs(tick - axis.zero) < 1e-9
        marks.append(stroke(across(tick), 2, across(tick), bottom, Paint.OPEN if at_zero else Paint.GRID))
        marks.append(label(across(tick), bottom + 16, words, anchor="middle", size=11))
    marks.append(label((left + right) / 2, bottom + 33, axis.title, anchor="middle", size=11))
    for number, row in enumerate(rows):
        y = 6 + number * tall + drop
        low, value, high = (across(each) for each in (row.low, row.value, row.high))
        marks += _beside(row, y, left - 22, width)
        marks.append(stroke(low, y, high, y, row.paint, 2, stroke_linecap="round"))
        for outside, x, inwards in ((row.low < axis.scale.low, low, 5), (row.high > axis.scale.high, high, -5)):
            if outside:
                marks += [stroke(x, y, x + inwards, y + side, row.paint, 2, stroke_linecap="round") for side in (-4, 4)]
        fill, rim, thick = (Paint.PAPER, row.paint, 2.0) if row.hollow else (row.paint, Paint.PAPER, 1.5)
        marks.append(dot(value, y, 5, fill, rim, thick, f"{row.name}: {row.told}"))
    return Picture(title, width, bottom + 40, tuple(marks))


def _beside(row: ForestRow, y: float, room: float, width: float) -> Iterator[Mark]:
    """A row's words: beside its mark, or above it where the picture is narrow."""
    if width < NARROW:
        name = fitted(row.name, width - breadth(row.told, 11) - 12, bold=True)
        yield label(0, y - 14, name, Paint.INK, bold=True)
        yield label(width, y - 14, row.told, Paint.SOFT, "end", size=11, halo=True)
        return
    value, _, interval = row.told.partition(" ")
    yield label(0, y + (-2 if row.about else 4.5), fitted(row.name, room, bold=True), Paint.INK, bold=True)
    if row.about:
        yield label(0, y + 12, fitted(row.about, room, SMALL), size=SMALL)
    yield label(width - 104, y + 4.5, value, Paint.INK, "end", bold=True)
    yield label(width, y + 4.5, interval, Paint.SOFT, "end", size=11)


def exit_bars(title: str, panels: Sequence[tuple[str, Sequence[ExitRow]]], width: float) -> Picture:
    """Where solves leave the ladder: a stacked bar for each bucket, a panel for each arm, all under one legend."""
    legend, top = _key(zip(PAINTS, NAMES.values(), strict=True), width)
    grid = Grid(len(panels), width, 24 + 23.0 * max(len(rows) for _, rows in panels), least=240, most=3, top=top)
    drawn = (moved(_exit_panel(*panel, grid.wide), *grid.corner(number)) for number, panel in enumerate(panels))
    return Picture(title, width, grid.bottom + 4, (*legend, *chain.from_iterable(drawn)))


def _exit_panel(name: str, rows: Sequence[ExitRow], wide: float) -> Iterator[Mark]:
    left, right = 76.0, wide - max(breadth(f"{problems:,}", SMALL) for _, problems, _ in rows) - 8
    yield label(0, 12, fitted(name, wide), Paint.INK, bold=True)
    for number, (bucket, problems, exits) in enumerate(rows):
        y, x, total = 24 + number * 23.0, left, sum(exits.values())
        yield label(left - 8, y + 13, bucket, Paint.SOFT, "end", size=SMALL)
        yield label(wide, y + 13, f"{problems:,}", Paint.SOFT, "end", size=SMALL)
        if not total:
            yield stroke(left, y + 9, right, y + 9, Paint.GRID)
        for path, paint in zip(ExitPath, PAINTS, strict=True):
            if count := exits.get(path, 0):
                long = count / total * (right - left)
                told = f"{bucket}, {NAMES[path]}: {counted(count, 'solve')} of {total:,} ({count / total:.0%})"
                # A hair of paper between neighbours keeps them apart without colour.
                yield box(x, y, max(0.6, long - 1), 18, paint, told)
                if breadth(f"{count:,}", 10) + 4 < long:
                    over = Paint.OVER if paint in (Paint.ONE, Paint.FIVE) else Paint.UNDER
                    yield label(x + (long - 1) / 2, y + 12.8, f"{count:,}", over, "middle", size=10)
                x += long


def scatter(title: str, panels: Sequence[ScatterPanel], width: float) -> Picture:
    """Where problems leave the ladder against how hard they are. Problems at one place are one disc, however many."""
    wide = Grid(len(panels), width, 0, least=145, most=4).wide
    grid = Grid(len(panels), width, 70 + min(max(0.72 * wide, 150), 260), least=145, most=4)
    found = [Counter((round(rate, 4), round(rank, 4)) for rate, rank in places) for _, _, places in panels]
    if any(len(places) > FEW for places in found):
        # All or none, so that panels can be compared; the grid holds the mean ranks of two and of three seeds.
        found = [Counter((round(rate * 20) / 20, round(rank * 6) / 6) for rate, rank in some) for _, _, some in panels]
    most = max((count for places in found for count in places.values()), default=1)
    # The area grows with the count; one problem stays visible beside a thousand, and small panels have less.
    largest = min(1.0, wide / 280) * min(16.0, 4.0 * math.sqrt(most))
    sizes = {count: max(2.2, largest * math.sqrt(count / most)) for count in range(1, most + 1)}
    marks: list[Mark] = []
    for number, ((name, told, _), places) in enumerate(zip(panels, found, strict=True)):
        marks += moved(_scatter_panel(name, told, places, sizes, grid), *grid.corner(number))
    marks += moved(_disc_key(sizes), 38, grid.bottom + 24)
    return Picture(title, width, grid.bottom + 46, tuple(marks))


def _scatter_panel(
    name: str, told: str, places: Counter[tuple[float, float]], sizes: Mapping[int, float], grid: Grid
) -> Iterator[Mark]:
    wide, foot = grid.wide, grid.height - 36
    left, right, top, bottom = 54.0, wide - 16, 50.0, foot - 6
    yield label(0, 12, fitted(name, wide, bold=True), Paint.INK, bold=True)
    yield label(0, 26, fitted(told, wide, SMALL), size=SMALL)
    for rank, exit_ in enumerate(RANKS):
        y = bottom - (bottom - top) * rank / 4
        yield stroke(38, y, wide, y, Paint.GRID)
        yield label(33, y + 3.5, exit_, anchor="end", size=SMALL)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0) if wide > 230 else (0.0, 0.5, 1.0):
        yield label(left + tick * (right - left), foot + 18, f"{tick:.0%}", anchor="middle", size=SMALL)
    words = "share of attempts that are right" if wide > 200 else "attempts right"
    yield label((left + right) / 2, foot + 33, words, anchor="middle", size=SMALL)
    for (rate, mean), count in sorted(places.items(), key=lambda item: -item[1]):
        x, y = left + rate * (right - left), bottom - (bottom - top) * mean / 4
        said = f"{counted(count, 'problem')} at {rate:.0%} right, mean exit rank {mean:.2f}"
        yield dot(x, y, sizes[count], Paint.GOOD, Paint.PAPER, 1, said, opacity=0.72)


def _disc_key(sizes: Mapping[int, float]) -> Iterator[Mark]:
    """The key to the sizes, from the smallest disc to the largest."""
    least, most, x = max(count for count, size in sizes.items() if size == sizes[1]), len(sizes), 0.0
    between = math.sqrt(least * most)
    digit: int = 10 ** (len(str(int(between))) - 1)
    for count in sorted({least, max(1, round(between / digit) * digit), most}):
        size = sizes[count]
        words = counted(count, "problem") if count > least or least == 1 else f"up to {counted(count, 'problem')}"
        yield dot(x + size, 0, size, Paint.GOOD, Paint.PAPER, 1, opacity=0.72)
        yield label(x + 2 * size + 6, 4, words, size=SMALL)
        x += 2 * size + breadth(words, SMALL) + 24


class CostChart(NamedTuple):
    """The parts that a cost has, at most five, and the values of each arm."""

    unit: str
    parts: tuple[str, ...]
    rows: Sequence[tuple[str, Sequence[float]]]

    def told(self, value: float) -> str:
        """A figure in the chart's unit."""
        return f"${value:,.{0 if value >= 100 else 2}f}" if self.unit.startswith("USD") else f"{value:,.0f}"


def cost_bars(title: str, chart: CostChart, width: float) -> Picture:
    """What solves cost: a stacked bar for each arm over one axis, and a legend of the parts."""
    unit, parts, rows = chart
    narrow, names = width < NARROW, max((breadth(name, bold=True) for name, _ in rows), default=0.0)
    left, right, tall = (0.0, width - 56, 40.0) if narrow else (min(names + 22, width * 0.4), width - 64, 28.0)
    legend, top = _key(zip(COST_PAINTS, parts, strict=False), width)
    marks, bottom = list(legend), top + tall * len(rows) + 4
    scale = scale_over(0.0, max((sum(values) for _, values in rows), default=1.0) or 1.0, about=3 if narrow else 5)
    for tick in scale.ticks:
        x = left + scale.share(tick) * (right - left)
        marks.append(stroke(x, top, x, bottom, Paint.GRID))
        marks.append(label(x, bottom + 16, chart.told(tick), anchor="middle" if tick else "start", size=11))
    marks.append(label((left + right) / 2, bottom + 34, unit, anchor="middle", size=11))
    for number, (name, values) in enumerate(rows):
        x, y = left, top + number * tall + (20 if narrow else 5)
        words = fitted(name, width if narrow else left - 14, bold=True)
        marks.append(label(0, y - 5 if narrow else y + 13, words, Paint.INK, bold=True))
        for part, value, paint in zip(parts, values, COST_PAINTS, strict=False):
            long = scale.share(value) * (right - left)
            if value:
                marks.append(box(x, y, max(0.6, long - 1), 18, paint, f"{name}, {part}: {chart.told(value)}"))
            x += long
        marks.append(label(x + 6, y + 13, chart.told(sum(values)), Paint.INK, size=11, halo=True))
    return Picture(title, width, bottom + 42, tuple(marks))


class Grid:
    """Where the panels of a picture lie: at most so many side by side, each at least so wide, rows filled evenly."""

    def __init__(self, count: int, width: float, height: float, *, least: float, most: int, top: float = 0.0) -> None:
        self.height, self.top = height, top
        self.rows = -(-count // max(1, min(count, most, int((width + GAP) // (least + GAP)))))
        self.columns = -(-count // self.rows)
        self.wide = min(WIDEST, (width - GAP * (self.columns - 1)) / self.columns)
        self.bottom = top + self.rows * height + (self.rows - 1) * GAP * 0.7

    def corner(self, number: int) -> tuple[float, float]:
        """Where a panel begins."""
        row, column = divmod(number, self.columns)
        return column * (self.wide + GAP), self.top + row * (self.height + GAP * 0.7)


def _key(items: Iterable[tuple[Paint, str]], width: float) -> tuple[list[Mark], float]:
    """A square and a name for each colour, line by line; and where what follows may begin."""
    marks: list[Mark] = []
    x, y = 0.0, 4.0
    for paint, name in items:
        words = fitted(name, width - 20, 11)
        needed = 17 + breadth(words, 11)
        if x and x + needed > width:
            x, y = 0.0, y + 19
        marks += [box(x, y, 11, 11, paint), label(x + 17, y + 9.8, words, size=11)]
        x += needed + 16
    return marks, y + 9.8 + 19 if marks else 19.0
