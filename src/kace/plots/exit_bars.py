"""Where solves leave the ladder, by how hard the problems are: a stacked bar for each bucket, a panel for each arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kace.plots.key import depth, key
from kace.plots.panels import Grid, columns, moved
from kace.plots.picture import Box, Label, Line, Mark, Paint, Picture, breadth, fitted
from kace.solver.tiers import ExitPath
from kace.words import counted

PAINTS = dict(zip(ExitPath, (Paint.ONE, Paint.TWO, Paint.THREE, Paint.FOUR, Paint.FIVE), strict=True))
NAMES: Mapping[ExitPath, str] = {
    ExitPath.ES_UNANIMOUS: "ES unanimous",
    ExitPath.MS_MAJORITY: "MS majority",
    ExitPath.HS_PLURALITY: "HS plurality",
    ExitPath.FALLBACK_PLURALITY: "fallback plurality",
    ExitPath.FALLBACK_LAST_HS: "last HS answer",
}
"""Exits as a legend has them."""
LEFT, ROW, HEAD = 76.0, 23.0, 24.0


@dataclass(frozen=True, slots=True)
class ExitRow:
    """The solves of one bucket, or of all."""

    name: str
    problems: int
    exits: Mapping[ExitPath, int]


@dataclass(frozen=True, slots=True)
class ExitPanel:
    """One arm's rows."""

    name: str
    rows: tuple[ExitRow, ...]


def exit_bars(title: str, panels: Sequence[ExitPanel], width: float) -> Picture:
    """All panels under one legend."""
    legend = key(((PAINTS[path], name) for path, name in NAMES.items()), width)
    height = HEAD + ROW * max(len(panel.rows) for panel in panels)
    grid = Grid(len(panels), width, columns(len(panels), width, least=240, most=3), height, depth(legend))
    marks: list[Mark] = list(legend)
    for number, panel in enumerate(panels):
        marks += moved(_panel(panel, grid.wide), *grid.corner(number))
    return Picture(title, width, grid.bottom + 4, tuple(marks))


def _panel(panel: ExitPanel, wide: float) -> Iterator[Mark]:
    right = wide - max(breadth(f"{row.problems:,}", 10.5) for row in panel.rows) - 8
    yield Label(0, 12, fitted(panel.name, wide), Paint.INK, bold=True)
    for number, row in enumerate(panel.rows):
        y = HEAD + number * ROW
        total = sum(row.exits.values())
        yield Label(LEFT - 8, y + 13, row.name, Paint.SOFT, "end", 10.5)
        yield Label(wide, y + 13, f"{row.problems:,}", Paint.SOFT, "end", 10.5)
        if not total:
            yield Line(LEFT, y + 9, right, y + 9, Paint.GRID)
            continue
        x = LEFT
        for path in ExitPath:
            share = row.exits.get(path, 0) / total
            yield from _segment(path, row.exits.get(path, 0), Box(x, y, share * (right - LEFT), 18, PAINTS[path]), row)
            x += share * (right - LEFT)


def _segment(path: ExitPath, count: int, box: Box, row: ExitRow) -> Iterator[Mark]:
    if not count:
        return
    total = sum(row.exits.values())
    told = f"{row.name}, {NAMES[path]}: {counted(count, 'solve')} of {total:,} ({count / total:.0%})"
    # A hair of paper between neighbours keeps them apart without colour.
    yield Box(box.x, box.y, max(0.6, box.width - 1), box.height, box.paint, told)
    if breadth(f"{count:,}", 10) + 4 < box.width:
        over = Paint.OVER if box.paint in (Paint.ONE, Paint.FIVE) else Paint.UNDER
        yield Label(box.x + (box.width - 1) / 2, box.y + 12.8, f"{count:,}", over, "middle", 10)
