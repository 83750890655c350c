"""The charts of reports and pages, as SVG.

This module works out scales and places; `templates/charts.svg` draws. A chart is drawn
at a given width: wide for a screen, narrow for a phone. On a page its colours are CSS
variables of the page, so that it follows light and dark; in a file they are literal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kace.cards.card import LiftMark
from kace.ladder.tiers import ExitPath
from kace.markup import seen
from kace.words import counted, points

NARROW = 500.0  # below this width, names stand above their marks
MARGIN = 10.0  # around the picture in a file
PANEL_GAP = 26.0
PANEL_WIDTHS = (236.0, 460.0)  # the least and the most of a panel of exits
HEADING = 26.0  # above the first row of a group
NAME_LINE = 14.5  # distance between the names beside a plane
PLANE_TOP = 14.0
PLANE_FOOT = 46.0
PLANE_LEFT = 44.0
NARROW_LETTERS = frozenset(" .,:;|!'`()[]{}/\\fijlrtI-")
WIDE_LETTERS = frozenset("mwMW@%—…")


class Paint(StrEnum):
    """What the colour of a mark is for. Pages have a light and a dark set of them."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


COLOURS = {
    "paper": "#ffffff",
    "ink": "#1d2126",
    "soft": "#555d66",
    "line": "#d5d2ca",
    "grid": "#e8e6e0",
    "good": "#0a7069",
    "bad": "#b34a1f",
    "open": "#7b838d",
    "one": "#0a7069",
    "two": "#6cb0a6",
    "three": "#e3cf9f",
    "four": "#dd9464",
    "five": "#a8431b",
    "over": "#ffffff",
    "under": "#1d2126",
}
"""The CSS variables of charts, as files have them."""
EXIT_NAMES: Mapping[ExitPath, str] = {
    ExitPath.ES_UNANIMOUS: "ES unanimous",
    ExitPath.MS_MAJORITY: "MS majority",
    ExitPath.HS_PLURALITY: "HS plurality",
    ExitPath.FALLBACK_PLURALITY: "fallback plurality",
    ExitPath.FALLBACK_LAST_HS: "last HS answer",
}
EXIT_PAINTS = ("one", "two", "three", "four", "five")


class Picture(NamedTuple):
    """A finished drawing; `marks` is SVG in the colours of a page."""

    title: str
    width: float
    height: float
    marks: Markup


class ForestRow(NamedTuple):
    """An estimate with its interval. `Paint.OPEN` draws a hollow mark."""

    name: str
    about: str
    value: float
    low: float
    high: float
    paint: Paint
    group: str = ""


class ExitRow(NamedTuple):
    """The problems of one bucket and how many of their solves left at each exit."""

    name: str
    problems: int
    exits: Mapping[ExitPath, int]


class Spot(NamedTuple):
    """A system by its calls and its accuracy with its interval."""

    name: str
    calls: float
    accuracy: float
    low: float
    high: float


def breadth(words: str, size: float = 12.0, bold: bool = False) -> float:
    """Estimate the width of words in any common font, rather too large."""
    total = 0.0
    for letter in words:
        if letter in NARROW_LETTERS:
            total += 0.37
        elif letter in WIDE_LETTERS:
            total += 0.95
        elif ord(letter) > 0x2E80:
            total += 1.0
        else:
            total += 0.74 if letter.isupper() else 0.62
    return size * total * (1.1 if bold else 1.0)


def fitted(
    words: str, room: float, size: float = 12.0, bold: bool = False
) -> str:
    """Return words on one line, cut to the room there is."""
    line = " ".join(seen(words).split())
    if breadth(line, size, bold) <= room:
        return line
    while line and breadth(f"{line}…", size, bold) > room:
        line = line[:-1]
    return f"{line.rstrip()}…"


@cache
def _macros() -> Any:
    """Return the drawing macros. Every word they write is escaped."""
    made = Environment(
        loader=PackageLoader("kace.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["px"] = lambda value: f"{round(value, 2):g}"
    made.filters["seen"] = seen
    made.globals |= {
        "breadth": breadth,
        "counted": counted,
        "exit_names": EXIT_NAMES,
        "exit_paints": EXIT_PAINTS,
        "fitted": fitted,
    }
    return made.get_template("charts.svg").module


def inline(picture: Picture, class_: str) -> Markup:
    """Return the picture for a page, in the page's colours and letters."""
    drawn: Markup = _macros().on_a_page(picture, class_)
    return drawn


def svg(picture: Picture) -> str:
    """Return the picture as a file, in literal colours that any program reads."""
    file = str(_macros().in_a_file(picture, MARGIN))
    literal = re.sub(
        r'"var\(--(\w+)\)"', lambda name: f'"{COLOURS[name[1]]}"', file
    )
    return literal.strip() + "\n"


class Scale(NamedTuple):
    """A range of values and the distance between labelled ones."""

    low: float
    high: float
    step: float

    def share(self, value: float) -> float:
        """Return where a value lies, 0 to 1; a value outside is held at the end."""
        share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def across(self, value: float) -> str:
        """Return where a value lies from left to right, in percent."""
        return f"{100 * self.share(value):.2f}%"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The labelled values."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return tuple(self.step * tick for tick in range(first, last + 1))


def scale_over(low: float, high: float, *, about: int = 5) -> Scale:
    """Return a scale between round values with about so many labels."""
    if high - low < 1e-6 * max(1.0, abs(low), abs(high)):
        low -= 0.05 * max(1.0, abs(low))
        high += 0.05 * max(1.0, abs(high))
    span = high - low
    size = 10.0 ** math.floor(math.log10(span / about))
    # No 2.5: labels are rounded to whole figures, and every other one would be false.
    step = next(size * n for n in (1, 2, 5, 10) if span / (size * n) <= about)
    bottom = math.floor(low / step + 1e-9) * step
    top = math.ceil(high / step - 1e-9) * step
    return Scale(bottom, top if top > bottom else bottom + step, step)


def lift_scale(lifts: Iterable[LiftMark]) -> Scale:
    """Return one scale for lifts that stand together.

    It follows the effects, so an interval far wider than any of them is cut.
    """
    ends = 0.0
    effects = 0.0
    for lift in lifts:
        ends = max(ends, abs(lift.low), abs(lift.high))
        effects = max(effects, abs(lift.effect))
    widest = max(0.02, min(ends or 0.1, max(0.1, 2.5 * effects), 1.0))
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
    step = next(step for step in steps if widest / step <= 4.5)
    return Scale(-widest * 1.04, widest * 1.04, step)


def _around_zero(rows: Sequence[ForestRow], ticks: int) -> Scale:
    """Return a scale that holds zero and cuts intervals far wider than any value."""
    reach = 0.2
    low = 0.0
    high = 0.0
    for row in rows:
        reach = max(reach, 2.2 * abs(row.value))
        low = min(low, row.low)
        high = max(high, row.high)
    low = max(-reach, low)
    high = min(reach, high)
    margin = 0.03 * (high - low or 0.1)
    return Scale(
        low - margin, high + margin, scale_over(low, high, about=ticks).step
    )


def _widest(rows: Sequence[ForestRow | Spot], size: float) -> float:
    """Return the width of the longest name."""
    widest = 0.0
    for row in rows:
        widest = max(widest, breadth(row.name, size, bold=True))
    return widest


def _ends(rows: Sequence[ForestRow | Spot]) -> tuple[float, float]:
    """Return the lowest and the highest end of all intervals."""
    low = rows[0].low
    high = rows[0].high
    for row in rows:
        low = min(low, row.low)
        high = max(high, row.high)
    return low, high


def forest(
    title: str,
    unit: str,
    rows: Sequence[ForestRow],
    width: float,
    *,
    change: bool = True,
) -> Picture:
    """Draw a dot on its interval for each row.

    Values are changes around zero, or shares. What goes beyond the scale is cut.
    """
    narrow = width < NARROW
    left = 10.0
    right = width - 12
    if not narrow:
        left = min(_widest(rows, 12.0) + 22, width * 0.4)
        right = width - 172
    ticks = min(8, max(3, int((right - left) / 44)))
    scale = scale_over(*_ends(rows), about=ticks)
    if change:
        scale = _around_zero(rows, ticks)
    step = 40.0 if narrow else 27.0
    if any(row.about for row in rows):
        step += 14
    placed = []
    top = 4.0
    group = ""
    for row in rows:
        heading = row.group if row.group != group else ""
        group = row.group
        if heading:
            top += HEADING
        placed.append((row, heading, top))
        top += step
    marks = _macros().forest(
        placed,
        scale,
        unit,
        change=change,
        narrow=narrow,
        width=width,
        bottom=top,
        left=left,
        right=right,
        at=lambda value: left + scale.share(value) * (right - left),
        words=points if change else "{:.1%}".format,
        tick_words=lambda value: (
            points(value, 0 if scale.step >= 0.01 else 1)
            if change
            else f"{value:.0%}"
        ),
    )
    return Picture(title, width, top + 40, marks)


def exit_bars(
    title: str, panels: Sequence[tuple[str, Sequence[ExitRow]]], width: float
) -> Picture:
    """Draw where solves leave the ladder: a stacked bar per bucket, a panel per arm."""
    least, most = PANEL_WIDTHS
    fit = int((width + PANEL_GAP) // (least + PANEL_GAP))
    lines = math.ceil(len(panels) / max(1, min(len(panels), 3, fit)))
    columns = math.ceil(len(panels) / lines)
    wide = min(most, (width - PANEL_GAP * (columns - 1)) / columns)
    legend = []
    x = 0.0
    top = 4.0
    for paint, name in zip(EXIT_PAINTS, EXIT_NAMES.values(), strict=True):
        needed = 17 + breadth(name, 11)
        if x and x + needed > width:
            x = 0.0
            top += 19
        legend.append((x, top, paint, name))
        x += needed + 16
    height = 24 + 23.0 * max(len(rows) for _, rows in panels)
    placed = []
    for number, (name, rows) in enumerate(panels):
        line, column = divmod(number, columns)
        y = top + 28.8 + line * (height + 0.7 * PANEL_GAP)
        placed.append((column * (wide + PANEL_GAP), y, name, rows))
    bottom = placed[-1][1] + height + 4
    return Picture(title, width, bottom, _macros().exits(legend, placed, wide))


def front(spots: Sequence[Spot]) -> list[Spot]:
    """Return the systems that no other beats on both calls and accuracy."""
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda spot: (spot.calls, -spot.accuracy)):
        if not best or spot.accuracy > best[-1].accuracy:
            best.append(spot)
    return best


def tradeoff(title: str, spots: Sequence[Spot], width: float) -> Picture:
    """Draw systems by calls and accuracy, and the line through the unbeaten ones."""
    calls = sorted(spot.calls for spot in spots)
    margin = max(0.06 * (calls[-1] - calls[0]), 0.1)
    start = 0.0 if calls[0] < 0.5 * calls[-1] else calls[0] - margin
    right = width - PANEL_GAP - min(_widest(spots, 11.5), 0.36 * width)
    height = max(
        360.0 if width > NARROW else 320.0, NAME_LINE * len(spots) + 100
    )
    bottom = height - PLANE_FOOT
    about = max(2, int((right - PLANE_LEFT) / 70))
    across = scale_over(start, calls[-1] + margin, about=about)
    low, high = _ends(spots)
    up = scale_over(max(0.0, low), min(1.0, high), about=7)

    def y(accuracy: float) -> float:
        return bottom - up.share(accuracy) * (bottom - PLANE_TOP)

    best = front(spots)
    ordered = sorted(spots, key=lambda spot: (-spot.accuracy, -spot.calls))
    heights = _name_heights([y(spot.accuracy) for spot in ordered], bottom)
    marks = _macros().plane(
        sorted(spots, key=best.__contains__),
        best,
        zip(ordered, heights, strict=True),
        across=across,
        up=up,
        x=lambda calls: PLANE_LEFT + across.share(calls) * (right - PLANE_LEFT),
        y=y,
        left=PLANE_LEFT,
        right=right,
        bottom=bottom,
        names=right + PANEL_GAP,
        width=width,
    )
    return Picture(title, width, height, marks)


def _name_heights(wanted: Sequence[float], bottom: float) -> list[float]:
    """Return heights near those wanted, from the top down, so that no names overlap."""
    heights: list[float] = []
    for height in wanted:
        above = heights[-1] + NAME_LINE if heights else PLANE_TOP
        heights.append(max(height, above))
    lowest = bottom
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], lowest)
        lowest = heights[place] - NAME_LINE
    return heights
