"""The charts of reports and pages, as SVG.

This module works out scales and places; `templates/charts.svg` draws. A chart is drawn
at a given width: wide for a screen, narrow for a phone. On a page its colours are CSS
variables of the page, so that it follows light and dark; in a file they are literal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kace.cards.card import LiftMark
from kace.ladder.tiers import ExitPath

# Controls, lone surrogates, and marks that hide or reorder what is on the page. Newline
# and tab stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

NARROW = 500.0  # below this width, names stand above their marks
PANEL_GAP = 22.0
LEGEND = 130.0  # width of an entry of its legend
HEADING = 26.0  # above the first row of a group
LETTER = (
    0.62  # the width of a letter as a share of its height, rather too large
)


EXIT_NAMES: Mapping[ExitPath, str] = {
    ExitPath.ES_UNANIMOUS: "ES unanimous",
    ExitPath.MS_MAJORITY: "MS majority",
    ExitPath.HS_PLURALITY: "HS plurality",
    ExitPath.FALLBACK_PLURALITY: "fallback plurality",
    ExitPath.FALLBACK_LAST_HS: "last HS answer",
}


class Picture(NamedTuple):
    """A drawing: its size, the macro of `charts.svg` that draws it, and with what."""

    title: str
    width: float
    height: float
    macro: str
    values: Mapping[str, object]


class ForestRow(NamedTuple):
    """An estimate with its interval. "open" draws a hollow mark."""

    name: str
    about: str
    value: float
    low: float
    high: float
    paint: str  # good, bad or open
    group: str = ""


ExitRow = tuple[str, int, Mapping[ExitPath, int]]
"""A bucket, its problems, and how many of their solves left at each exit."""


def breadth(words: str, size: float = 12.0, bold: bool = False) -> float:
    """Estimate the width of words in any common font."""
    return LETTER * size * len(words) * (1.1 if bold else 1.0)


def strip_unseen(value: str) -> str:
    """Return a text without what nothing shows of it."""
    return _UNSEEN.sub("", value)


def fitted(
    words: str, room: float, size: float = 12.0, bold: bool = False
) -> str:
    """Return words on one line, cut to the room there is."""
    most = max(1, int(room / breadth("x", size, bold)))
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


class Scale(NamedTuple):
    """A range of values and the distance between labelled ones."""

    low: float
    high: float
    step: float

    def share(self, value: float) -> float:
        """Return where a value lies, 0 to 1; a value outside is held at the end."""
        share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def at(self, value: float, start: float, end: float) -> float:
        """Return where a value lies from the start to the end of an axis."""
        return start + self.share(value) * (end - start)

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
    if high - low < 1e-6 * max(1.0, abs(high)):
        low -= 0.05
        high += 0.05
    step = _round_step((high - low) / about)
    bottom = math.floor(low / step + 1e-9) * step
    top = math.ceil(high / step - 1e-9) * step
    return Scale(bottom, top, step)


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(least))
    # No 2.5: labels are rounded to whole figures, and every other one would be false.
    return next(size * n for n in (1, 2, 5, 10) if size * n >= least)


def scale_around_zero(
    intervals: Iterable[tuple[float, float, float]], *, about: int = 5
) -> Scale:
    """Return one scale for values with intervals that stand together.

    It holds zero and follows the values: an interval far wider than any is cut.
    """
    values, starts, ends = zip((0.0, -0.01, 0.01), *intervals, strict=True)
    reach = max(0.1, 2.2 * max(map(abs, values)))
    low = max(-reach, min(starts))
    high = min(reach, max(ends))
    margin = 0.03 * (high - low)
    step = _round_step((high - low) / about)
    return Scale(low - margin, high + margin, step)


def lift_scale(lifts: Iterable[LiftMark]) -> Scale:
    """Return one scale for the lifts of a list of cards, zero in its middle."""
    found = scale_around_zero(lifts, about=4)
    reach = max(-found.low, found.high)
    return Scale(-reach, reach, _round_step(reach / 4))


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
        names = [breadth(row.name, 12.0, bold=True) for row in rows]
        left = min(max(names) + 22, width * 0.4)
        right = width - 172
    ticks = min(8, max(3, int((right - left) / 44)))
    if change:
        intervals = [(row.value, row.low, row.high) for row in rows]
        scale = scale_around_zero(intervals, about=ticks)
    else:
        low = min(row.low for row in rows)
        high = max(row.high for row in rows)
        scale = scale_over(low, high, about=ticks)
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
    values = {
        "rows": placed,
        "scale": scale,
        "unit": unit,
        "change": change,
        "narrow": narrow,
        "width": width,
        "bottom": top,
        "left": left,
        "right": right,
    }
    return Picture(title, width, top + 40, "forest", values)


def exit_bars(
    title: str, panels: Sequence[tuple[str, Sequence[ExitRow]]], width: float
) -> Picture:
    """Draw where solves leave the ladder: a stacked bar per bucket."""
    in_a_line = int(width // LEGEND)
    y = 19.0 * math.ceil(len(EXIT_NAMES) / in_a_line) + 10
    placed = []
    for name, rows in panels:
        placed.append((y, name, rows))
        y += 24 + 23.0 * len(rows) + PANEL_GAP
    values = {
        "panels": placed,
        "wide": width,
        "in_a_line": in_a_line,
        "step": LEGEND,
    }
    return Picture(title, width, y - PANEL_GAP, "exits", values)
