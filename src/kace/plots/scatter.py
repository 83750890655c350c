"""Where problems leave the ladder against how hard they are. Problems at one place are one disc, however many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kace.plots.panels import Grid, columns, moved
from kace.plots.picture import Dot, Label, Line, Mark, Paint, Picture, breadth, fitted
from kace.words import counted

LEFT, HEAD, FOOT, PAD = 38.0, 34.0, 36.0, 16.0
RANKS = ("last", "fallb.", "HS", "MS", "ES")
"""Exits by rank, as short as an axis needs them."""
FEW = 250
"""Different places up to which all are drawn as they are; beyond, near ones are put together."""
LARGEST, SMALLEST = 16.0, 2.2


@dataclass(frozen=True, slots=True)
class ScatterPanel:
    """One arm's problems."""

    name: str
    told: str
    places: tuple[tuple[float, float], ...]
    """Raw rate, 0 to 1, and mean exit rank, 0 to 4, of each problem."""


@dataclass(frozen=True, slots=True)
class _Discs:
    most: int
    """Problems that the largest stands for."""
    scale: float
    """Discs are smaller in small panels."""

    def radius(self, count: int) -> float:
        """The area grows with the count; one problem stays visible beside a thousand."""
        largest = self.scale * min(LARGEST, 4.0 * math.sqrt(self.most))
        return max(SMALLEST, largest * math.sqrt(count / self.most))


def scatter(title: str, panels: Sequence[ScatterPanel], width: float) -> Picture:
    """A panel for each arm; the size of a disc is the number of problems there, on one scale for all."""
    side_by_side = columns(len(panels), width, least=145, most=4)
    wide = Grid(len(panels), width, side_by_side, 0).wide
    grid = Grid(len(panels), width, side_by_side, HEAD + FOOT + min(max(0.72 * wide, 150), 260))
    found = [_exact(panel.places) for panel in panels]
    if any(len(places) > FEW for places in found):  # all or none, so that panels can be compared
        found = [_near(panel.places) for panel in panels]
    most = max((count for places in found for count in places.values()), default=1)
    discs = _Discs(most, min(1.0, wide / 280))
    marks: list[Mark] = []
    for number, (panel, places) in enumerate(zip(panels, found, strict=True)):
        marks += moved(_panel(panel, places, discs, grid), *grid.corner(number))
    marks += moved(_sizes(discs), LEFT, grid.bottom + 24)
    return Picture(title, width, grid.bottom + 46, tuple(marks))


def _exact(places: Sequence[tuple[float, float]]) -> Counter[tuple[float, float]]:
    """How many problems lie at each place."""
    return Counter((round(rate, 4), round(rank, 4)) for rate, rank in places)


def _near(places: Sequence[tuple[float, float]]) -> Counter[tuple[float, float]]:
    """How many problems lie near each point of a grid, which holds the mean ranks of two and of three seeds."""
    return Counter((round(rate * 20) / 20, round(rank * 6) / 6) for rate, rank in places)


def _panel(panel: ScatterPanel, places: Counter[tuple[float, float]], discs: _Discs, grid: Grid) -> Iterator[Mark]:
    left, right, top, bottom = LEFT + PAD, grid.wide - PAD, HEAD + PAD, grid.height - FOOT - 6
    yield Label(0, 12, fitted(panel.name, grid.wide, bold=True), Paint.INK, bold=True)
    yield Label(0, 26, fitted(panel.told, grid.wide, 10.5), size=10.5)
    for rank, name in enumerate(RANKS):
        y = bottom - (bottom - top) * rank / 4
        yield Line(LEFT, y, grid.wide, y, Paint.GRID)
        yield Label(LEFT - 5, y + 3.5, name, anchor="end", size=10.5)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0) if grid.wide > 230 else (0.0, 0.5, 1.0):
        yield Label(left + tick * (right - left), grid.height - FOOT + 18, f"{tick:.0%}", anchor="middle", size=10.5)
    words = "share of attempts that are right" if grid.wide > 200 else "attempts right"
    yield Label((left + right) / 2, grid.height - FOOT + 33, words, anchor="middle", size=10.5)
    for (rate, mean), count in sorted(places.items(), key=lambda item: -item[1]):
        x, y = left + rate * (right - left), bottom - (bottom - top) * mean / 4
        told = f"{counted(count, 'problem')} at {rate:.0%} right, mean exit rank {mean:.2f}"
        yield Dot(x, y, discs.radius(count), Paint.GOOD, Paint.PAPER, 1, 0.72, told)


def _sizes(discs: _Discs) -> Iterator[Mark]:
    """The key to the sizes, from the smallest disc to the largest."""
    least = max(count for count in range(1, discs.most + 1) if discs.radius(count) == discs.radius(1))
    x = 0.0
    for count in sorted({least, _round(math.sqrt(least * discs.most)), discs.most}):
        radius = discs.radius(count)
        words = counted(count, "problem") if count > least or least == 1 else f"up to {counted(count, 'problem')}"
        yield Dot(x + radius, 0, radius, Paint.GOOD, Paint.PAPER, 1, 0.72)
        yield Label(x + 2 * radius + 6, 4, words, size=10.5)
        x += 2 * radius + breadth(words, 10.5) + 24


def _round(value: float) -> int:
    """A number of one digit and zeros."""
    size: int = 10 ** (len(str(int(value))) - 1)
    return max(1, round(value / size) * size)
