"""The charts of an evaluation, each drawn at any width. They know figures and words, not where from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kace.ladder.tiers import ExitPath
from kace.report.scale import Scale, scale_over
from kace.report.svg import (
    Mark,
    Paint,
    Picture,
    box,
    breadth,
    dot,
    fitted,
    label,
    moved,
    stroke,
)
from kace.words import counted, points

NARROW = 500  # A picture less wide than this has the names of its rows above the marks, not beside them
GAP = 26.0  # between panels
WIDEST = 460.0  # of a panel: one alone does not fill a wide page
SMALL = 10.5
HEADING = 26.0  # above the first row of a group
PAINTS = (Paint.ONE, Paint.TWO, Paint.THREE, Paint.FOUR, Paint.FIVE)
COST_PAINTS = (Paint.ONE, Paint.THREE, Paint.FOUR, Paint.TWO, Paint.FIVE)
_LEGEND = (
    "ES unanimous",
    "MS majority",
    "HS plurality",
    "fallback plurality",
    "last HS answer",
)
NAMES: Mapping[ExitPath, str] = dict(
    zip(ExitPath, _LEGEND, strict=True)
)  # exits as a legend has them
RANKS = (
    "last",
    "fallb.",
    "HS",
    "MS",
    "ES",
)  # exits by rank, as short as an axis needs them
SMALLEST = 2.2  # radius of a disc
FEW = 250  # different places up to which all are drawn as they are; beyond, near ones are put together

ScatterPanel = tuple[str, str, Sequence[tuple[float, float, int]]]
"""An arm's name, its figures in words, and raw rate, 0 to 1, mean exit rank, 0 to 4, and number of problems there."""
Places = Counter[tuple[float, float]]  # problems by raw rate and mean exit rank
Rect = tuple[float, float, float, float]  # left, top, right, bottom
CostRow = tuple[str, Sequence[float], str]
"""An arm's name, its parts, and its group."""
ExitRow = tuple[str, int, Mapping[ExitPath, int]]
"""The name of a bucket, its problems, and how many solves left where."""


class ForestRow(NamedTuple):
    """What is estimated, and how well it is known. An open paint makes a hollow mark."""

    name: str
    about: str
    value: float
    low: float
    high: float
    paint: Paint
    group: str = ""


def forest(
    title: str,
    unit: str,
    rows: Sequence[ForestRow],
    width: float,
    *,
    change: bool = True,
) -> Picture:
    """A dot on its interval for each row: changes around zero, else shares. What goes on beyond the scale is cut."""
    narrow = width < NARROW
    names = max(breadth(row.name, bold=True) for row in rows)
    left, right = (
        (10.0, width - 12) if narrow else (min(names + 22, width * 0.4), width - 172)
    )
    room = right - left
    ticks = min(8, max(3, int((right - left) / 44)))
    low = min(row.low for row in rows)
    high = max(row.high for row in rows)
    scale = _around_zero(rows, ticks) if change else scale_over(low, high, about=ticks)
    tall = (40.0 if narrow else 27.0) + (14 if any(row.about for row in rows) else 0)
    heads, places, bottom = _rows_of([row.group for row in rows], 4, tall)
    words = (
        partial(points, digits=0 if scale.step >= 0.01 else 1)
        if change
        else "{:.0%}".format
    )
    marks = [*_axis(scale, (left, 2, right, bottom), words, unit, zero=change), *heads]
    for row, top in zip(rows, places, strict=True):
        told = [points(each) if change else f"{each:.1%}" for each in row[2:5]]
        value = told[0]
        interval = f"{told[1]} {'to' if change else '–'} {told[2]}"
        y = top + (25 if narrow else 12)
        if narrow:
            said = f"{value} {interval}"
            name = fitted(row.name, width - breadth(said, 11) - 12, bold=True)
            marks.append(
                label(width, y - 13, said, Paint.SOFT, "end", size=11, halo=True)
            )
        else:
            name = fitted(row.name, left - 18, bold=True)
            marks.append(
                label(width - 104, y + 4.5, value, Paint.INK, "end", bold=True)
            )
            marks.append(label(width, y + 4.5, interval, Paint.SOFT, "end", size=11))
        marks.append(
            label(0, y - 13 if narrow else y + 4.5, name, Paint.INK, bold=True)
        )
        if row.about:
            marks.append(
                label(0, y + 18, fitted(row.about, width, SMALL), size=SMALL, halo=True)
            )
        at, start, end = (left + scale.share(each) * room for each in row[2:5])
        marks.append(stroke(start, y, end, y, row.paint, 2, stroke_linecap="round"))
        for outside, x, inwards in (
            (row.low < scale.low, start, 5),
            (row.high > scale.high, end, -5),
        ):
            if outside:
                marks += [
                    stroke(
                        x,
                        y,
                        x + inwards,
                        y + side,
                        row.paint,
                        2,
                        stroke_linecap="round",
                    )
                    for side in (-4, 4)
                ]
        look = (
            (Paint.PAPER, row.paint, 2.0)
            if row.paint is Paint.OPEN
            else (row.paint, Paint.PAPER, 1.5)
        )
        marks.append(dot(at, y, 5, *look, f"{row.name}: {value} {interval}"))
    return Picture(title, width, bottom + 40, tuple(marks))


def _rows_of(
    groups: Sequence[str], top: float, tall: float
) -> tuple[list[Mark], list[float], float]:
    """A heading for each group, where each row begins, and where the last one ends."""
    marks = list[Mark]()
    places = list[float]()
    known = ""
    for group in groups:
        if group not in ("", known):
            top += HEADING
            marks.append(label(0, top - 7, group, size=11.5))
        known = group
        places.append(top)
        top += tall
    return marks, places, top


def _axis(
    scale: Scale,
    at: Rect,
    told: Callable[[float], str],
    unit: str,
    *,
    zero: bool = False,
) -> Iterator[Mark]:
    """Lines down to every tick, and what is measured below them."""
    left, top, right, bottom = at
    for tick in scale.ticks:
        x = left + scale.share(tick) * (right - left)
        paint = Paint.OPEN if zero and abs(tick) < 1e-9 else Paint.GRID
        yield stroke(x, top, x, bottom, paint)
        yield label(
            x, bottom + 16, told(tick), anchor="middle" if x > 14 else "start", size=11
        )
    yield label((left + right) / 2, bottom + 33, unit, anchor="middle", size=11)


def _around_zero(rows: Sequence[ForestRow], ticks: int) -> Scale:
    """A scale that has zero in it. It follows the values: an interval far wider than any of them is cut."""
    ends = [end for row in rows for end in (row.low, row.high)]
    reach = max(0.2, 2.2 * max(abs(row.value) for row in rows))
    low = max(-reach, min(0.0, *ends))
    high = min(reach, max(0.0, *ends))
    margin = 0.03 * (high - low or 0.1)
    return Scale(low - margin, high + margin, scale_over(low, high, about=ticks).step)


def exit_bars(
    title: str, panels: Sequence[tuple[str, Sequence[ExitRow]]], width: float
) -> Picture:
    """Where solves leave the ladder: a stacked bar for each bucket, a panel for each arm, all under one legend."""
    legend, top = _key(zip(PAINTS, NAMES.values(), strict=True), width)
    grid = Grid(len(panels), width, least=236, most=3)
    height = 24 + 23.0 * max(len(rows) for _, rows in panels)
    marks, bottom = grid.placed(
        (_exit_panel(*panel, grid.wide) for panel in panels), height, top
    )
    return Picture(title, width, bottom + 4, (*legend, *marks))


def _exit_panel(name: str, rows: Sequence[ExitRow], wide: float) -> Iterator[Mark]:
    left = 76.0
    right = wide - max(breadth(f"{problems:,}", SMALL) for _, problems, _ in rows) - 8
    yield label(0, 12, fitted(name, wide), Paint.INK, bold=True)
    for number, (bucket, problems, exits) in enumerate(rows):
        y = 24 + number * 23.0
        x = left
        total = sum(exits.values())
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
                    over = (
                        Paint.OVER if paint in (Paint.ONE, Paint.FIVE) else Paint.UNDER
                    )
                    yield label(
                        x + (long - 1) / 2,
                        y + 12.8,
                        f"{count:,}",
                        over,
                        "middle",
                        size=10,
                    )
                x += long


def scatter(title: str, panels: Sequence[ScatterPanel], width: float) -> Picture:
    """Where problems leave the ladder against how hard they are. Problems at one place are one disc, however many."""
    grid = Grid(len(panels), width, least=145, most=4)
    height = 70 + min(max(0.72 * grid.wide, 150), 260)
    found = [_gathered(places, 10_000, 10_000) for _, _, places in panels]
    if any(len(places) > FEW for places in found):
        # All or none, so that panels can be compared; the grid holds the mean ranks of two and of three seeds.
        found = [_gathered(places, 20, 6) for _, _, places in panels]
    most = max((count for places in found for count in places.values()), default=1)
    # The area grows with the count; one problem stays visible beside a thousand, and small panels have less.
    largest = min(1.0, grid.wide / 280) * min(16.0, 4.0 * math.sqrt(most))
    radius = partial(_radius, most=most, largest=largest)
    pairs = zip(panels, found, strict=True)
    drawn = (
        _scatter_panel(name, told, places, radius, (grid.wide, height))
        for (name, told, _), places in pairs
    )
    marks, bottom = grid.placed(drawn, height, 0.0)
    least = max(
        1, int(most * (SMALLEST / largest) ** 2)
    )  # the most problems that are drawn as small as one
    return Picture(
        title,
        width,
        bottom + 46,
        (*marks, *moved(_disc_key(radius, least, most), 38, bottom + 24)),
    )


def _radius(count: int, most: int, largest: float) -> float:
    return max(SMALLEST, largest * math.sqrt(count / most))


def _gathered(
    places: Iterable[tuple[float, float, int]], across: int, up: int
) -> Places:
    """How many problems there are at each point of a grid with so many steps to one."""
    found = Places()
    for rate, rank, problems in places:
        found[round(rate * across) / across, round(rank * up) / up] += problems
    return found


def _scatter_panel(
    name: str,
    told: str,
    places: Counter[tuple[float, float]],
    radius: Callable[[int], float],
    size: tuple[float, float],
) -> Iterator[Mark]:
    wide = size[0]
    foot = size[1] - 36
    left = 54.0
    right = wide - 16
    top = 50.0
    bottom = foot - 6
    yield label(0, 12, fitted(name, wide, bold=True), Paint.INK, bold=True)
    for place, line in enumerate(
        [told] if breadth(told, SMALL) <= wide else told.split(", ")
    ):
        yield label(0, 26 + 12 * place, fitted(line, wide, SMALL), size=SMALL)
    for rank, exit_ in enumerate(RANKS):
        y = bottom - (bottom - top) * rank / 4
        yield stroke(38, y, wide, y, Paint.GRID)
        yield label(33, y + 3.5, exit_, anchor="end", size=SMALL)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0) if wide > 230 else (0.0, 0.5, 1.0):
        yield label(
            left + tick * (right - left),
            foot + 18,
            f"{tick:.0%}",
            anchor="middle",
            size=SMALL,
        )
    words = "share of attempts that are right" if wide > 200 else "attempts right"
    yield label((left + right) / 2, foot + 33, words, anchor="middle", size=SMALL)
    for (rate, mean), count in sorted(
        places.items(), key=lambda item: (-item[1], item[0])
    ):
        x = left + rate * (right - left)
        y = bottom - (bottom - top) * mean / 4
        said = f"{counted(count, 'problem')} at {rate:.0%} right, mean exit rank {mean:.2f}"
        yield dot(x, y, radius(count), Paint.GOOD, Paint.PAPER, 1, said, opacity=0.72)


def _disc_key(radius: Callable[[int], float], least: int, most: int) -> Iterator[Mark]:
    x = 0.0
    between = math.sqrt(least * most)
    digit: int = 10 ** (len(str(int(between))) - 1)
    for count in sorted({least, max(1, round(between / digit) * digit), most}):
        size = radius(count)
        words = (
            counted(count, "problem")
            if count > least or least == 1
            else f"up to {counted(count, 'problem')}"
        )
        yield dot(x + size, 0, size, Paint.GOOD, Paint.PAPER, 1, opacity=0.72)
        yield label(x + 2 * size + 6, 4, words, size=SMALL)
        x += 2 * size + breadth(words, SMALL) + 24


def cost_bars(
    title: str, unit: str, parts: Sequence[str], rows: Sequence[CostRow], width: float
) -> Picture:
    """What solves cost: a stacked bar for each arm over one axis, and a legend of the parts, at most five."""

    def told(value: float) -> str:
        return (
            f"${value:,.{0 if value >= 100 else 2}f}"
            if unit.startswith("USD")
            else f"{value:,.0f}"
        )

    narrow = width < NARROW
    names = max(breadth(name, bold=True) for name, *_ in rows)
    left, right, tall = (
        (0.0, width - 56, 40.0)
        if narrow
        else (min(names + 22, width * 0.4), width - 64, 28.0)
    )
    legend, top = _key(zip(COST_PAINTS, parts, strict=False), width)
    heads, places, end = _rows_of([group for *_, group in rows], top, tall)
    scale = scale_over(
        0.0,
        max(sum(values) for _, values, _ in rows) or 1.0,
        about=max(3, int((right - left) / 70)),
    )
    marks = [*legend, *_axis(scale, (left, top, right, end + 4), told, unit), *heads]
    for (name, values, _), place in zip(rows, places, strict=True):
        x = left
        y = place + (20 if narrow else 5)
        words = fitted(name, width if narrow else left - 14, bold=True)
        marks.append(label(0, y - 5 if narrow else y + 13, words, Paint.INK, bold=True))
        for part, value, paint in zip(parts, values, COST_PAINTS, strict=False):
            long = scale.share(value) * (right - left)
            if value:
                marks.append(
                    box(
                        x,
                        y,
                        max(0.6, long - 1),
                        18,
                        paint,
                        f"{name}, {part}: {told(value)}",
                    )
                )
            x += long
        marks.append(
            label(x + 6, y + 13, told(sum(values)), Paint.INK, size=11, halo=True)
        )
    return Picture(title, width, end + 46, tuple(marks))


class Grid:
    """Where the panels of a picture lie: at most so many side by side, each at least so wide, rows filled evenly."""

    def __init__(self, count: int, width: float, *, least: float, most: int) -> None:
        self.rows = -(
            -count // max(1, min(count, most, int((width + GAP) // (least + GAP))))
        )
        self.columns = -(-count // self.rows)
        self.wide = min(WIDEST, (width - GAP * (self.columns - 1)) / self.columns)

    def placed(
        self, panels: Iterable[Iterable[Mark]], height: float, top: float
    ) -> tuple[list[Mark], float]:
        """The panels where they lie, and where the last row ends."""
        marks: list[Mark] = []
        for number, panel in enumerate(panels):
            row, column = divmod(number, self.columns)
            marks += moved(
                panel, column * (self.wide + GAP), top + row * (height + GAP * 0.7)
            )
        return marks, top + self.rows * height + (self.rows - 1) * GAP * 0.7


def _key(items: Iterable[tuple[Paint, str]], width: float) -> tuple[list[Mark], float]:
    """A square and a name for each colour, line by line; and where what follows may begin."""
    marks: list[Mark] = []
    x = 0.0
    y = 4.0
    for paint, name in items:
        words = fitted(name, width - 20, 11)
        needed = 17 + breadth(words, 11)
        if x and x + needed > width:
            x = 0.0
            y = y + 19
        marks += [box(x, y, 11, 11, paint), label(x + 17, y + 9.8, words, size=11)]
        x += needed + 16
    return marks, y + 9.8 + 19 if marks else 19.0
