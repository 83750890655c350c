"""What solves cost, by role: a stacked bar for each arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kace.plots.key import depth, key
from kace.plots.picture import Box, Label, Line, Mark, Paint, Picture, breadth, fitted
from kace.web.scale import Scale, scale_over

PAINTS = (Paint.ONE, Paint.THREE, Paint.FOUR, Paint.TWO, Paint.FIVE)


@dataclass(frozen=True, slots=True)
class CostRow:
    """One arm's parts, as many as there are names of parts."""

    name: str
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CostChart:
    """What all rows have in common."""

    unit: str
    parts: tuple[str, ...]
    """At most five."""
    rows: tuple[CostRow, ...]
    dollars: bool


def cost_bars(title: str, chart: CostChart, width: float) -> Picture:
    """A bar for each arm over one axis, and a legend of the parts."""
    narrow = width < 500
    longest = max((breadth(each.name, bold=True) for each in chart.rows), default=0.0)
    left, right, row = (0.0, width - 56, 40.0) if narrow else (min(longest + 22, width * 0.4), width - 64, 28.0)
    legend = key(zip(PAINTS, chart.parts, strict=False), width)
    marks: list[Mark] = list(legend)
    top = depth(legend)
    bottom = top + row * len(chart.rows) + 4
    scale = scale_over(0.0, max((sum(each.parts) for each in chart.rows), default=1.0) or 1.0, about=3 if narrow else 5)
    for tick in scale.ticks:
        x = left + scale.share(tick) * (right - left)
        marks.append(Line(x, top, x, bottom, Paint.GRID))
        marks.append(Label(x, bottom + 16, told(tick, chart), anchor="middle" if tick else "start", size=11))
    marks.append(Label((left + right) / 2, bottom + 34, chart.unit, anchor="middle", size=11))
    for number, each in enumerate(chart.rows):
        y = top + number * row + (20 if narrow else 5)
        room = width if narrow else left - 14
        words = fitted(each.name, room, bold=True)
        marks.append(Label(0, y - 5 if narrow else y + 13, words, Paint.INK, bold=True))
        marks += _bar(each, Box(left, y, right - left, 18, Paint.ONE), scale, chart)
    return Picture(title, width, bottom + 42, tuple(marks))


def told(value: float, chart: CostChart) -> str:
    """A figure in the chart's unit."""
    if chart.dollars:
        return f"${value:,.2f}" if value < 100 else f"${value:,.0f}"
    return f"{value:,.0f}"


def _bar(row: CostRow, track: Box, scale: Scale, chart: CostChart) -> Iterator[Mark]:
    x = track.x
    for name, value, paint in zip(chart.parts, row.parts, PAINTS, strict=False):
        wide = scale.share(value) * track.width
        if value:
            said = f"{row.name}, {name}: {told(value, chart)}"
            yield Box(x, track.y, max(0.6, wide - 1), track.height, paint, said)
        x += wide
    yield Label(x + 6, track.y + 13, told(sum(row.parts), chart), Paint.INK, size=11, halo=True)
