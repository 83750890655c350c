"""The key to a picture's colours."""

from __future__ import annotations

from collections.abc import Iterable

from kace.plots.picture import Box, Label, Mark, Paint, breadth, fitted

SIZE, LINE, GAP = 11.0, 19.0, 16.0


def key(items: Iterable[tuple[Paint, str]], width: float) -> tuple[Mark, ...]:
    """A square and a name for each colour, from left to right and line by line."""
    marks: list[Mark] = []
    x, y = 0.0, 4.0
    for paint, name in items:
        words = fitted(name, width - 20, SIZE)
        needed = 17 + breadth(words, SIZE)
        if x and x + needed > width:
            x, y = 0.0, y + LINE
        marks += [Box(x, y, 11, 11, paint), Label(x + 17, y + 9.8, words, size=SIZE)]
        x += needed + GAP
    return tuple(marks)


def depth(marks: tuple[Mark, ...]) -> float:
    """Where what follows a key may begin."""
    return max((mark.y for mark in marks if isinstance(mark, Label)), default=0.0) + LINE
