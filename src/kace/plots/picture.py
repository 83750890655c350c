"""A picture as data: lines, boxes, dots and words at fixed places, drawn alike on a page, in an SVG file and as PDF."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from kace.web.markup import Html, join, seen, tag

SIZE = 12.0
"""Of letters, in pixels on a page and points on paper."""
FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
_NARROW, _WIDE = frozenset(" .,:;|!'`()[]{}/\\fijlrtI-"), frozenset("mwMW@%—…")


class Paint(StrEnum):
    """What a colour is for. Pages hold a light and a dark set of them under the same names."""

    PAPER = "paper"
    INK = "ink"
    SOFT = "soft"
    LINE = "line"
    GRID = "grid"
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    ONE = "one"
    TWO = "two"
    THREE = "three"
    FOUR = "four"
    FIVE = "five"
    OVER = "over"
    """Letters on `ONE` and `FIVE`."""
    UNDER = "under"
    """Letters on those between."""


COLOURS: Mapping[Paint, str] = MappingProxyType(
    {
        Paint.PAPER: "#ffffff",
        Paint.INK: "#1d2126",
        Paint.SOFT: "#555d66",
        Paint.LINE: "#d5d2ca",
        Paint.GRID: "#e8e6e0",
        Paint.GOOD: "#0a7069",
        Paint.BAD: "#b34a1f",
        Paint.OPEN: "#7b838d",
        Paint.ONE: "#0a7069",
        Paint.TWO: "#6cb0a6",
        Paint.THREE: "#e3cf9f",
        Paint.FOUR: "#dd9464",
        Paint.FIVE: "#a8431b",
        Paint.OVER: "#ffffff",
        Paint.UNDER: "#1d2126",
    }
)
"""On white paper."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight stroke."""

    x1: float
    y1: float
    x2: float
    y2: float
    paint: Paint
    width: float = 1.0
    dashed: bool = False
    round: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle, and what a pointer resting on it is told."""

    x: float
    y: float
    width: float
    height: float
    paint: Paint
    said: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A disc with a rim."""

    x: float
    y: float
    radius: float
    paint: Paint
    rim: Paint = Paint.PAPER
    thick: float = 1.5
    opacity: float = 1.0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """Words on one line; `x` is where they begin, have their middle, or end."""

    x: float
    y: float
    words: str
    paint: Paint = Paint.SOFT
    anchor: str = "start"
    size: float = SIZE
    bold: bool = False
    halo: bool = False
    """A rim of paper, for words that lie over other marks."""


Mark = Line | Box | Dot | Label


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks in the order they are drawn."""

    title: str
    width: float
    height: float
    marks: tuple[Mark, ...]


def breadth(words: str, size: float = SIZE, *, bold: bool = False) -> float:
    """About how wide words are, rather too much than too little, whichever common font draws them."""
    return size * (1.1 if bold else 1.0) * sum(map(_letter, words))


def fitted(words: str, room: float, size: float = SIZE, *, bold: bool = False) -> str:
    """Words on one line, cut to the room there is."""
    line = " ".join(seen(words).split())
    if breadth(line, size, bold=bold) <= room:
        return line
    while line and breadth(f"{line}…", size, bold=bold) > room:
        line = line[:-1]
    return f"{line.rstrip()}…"


def inline(picture: Picture, class_: str) -> Html:
    """The picture for a page, in the page's own colours and letters."""
    names = {paint: f"var(--{paint.value})" for paint in Paint}
    return tag(
        "svg",
        tag("title", picture.title),
        *(_drawn(mark, names, said=True) for mark in picture.marks),
        viewBox=f"0 0 {_n(picture.width)} {_n(picture.height)}",
        role="img",
        class_=class_,
    )


def svg(picture: Picture) -> str:
    """The picture as a file of its own, in literal colours that any program reads."""
    paper = Box(0, 0, picture.width, picture.height, Paint.PAPER)
    drawn = join(part for mark in (paper, *picture.marks) for part in ("\n", _drawn(mark, COLOURS, said=False)))
    whole = tag(
        "svg",
        tag("title", picture.title),
        drawn,
        xmlns="http://www.w3.org/2000/svg",
        width=_n(picture.width),
        height=_n(picture.height),
        viewBox=f"0 0 {_n(picture.width)} {_n(picture.height)}",
        font_family=FONTS,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _drawn(mark: Mark, colours: Mapping[Paint, str], *, said: bool) -> Html:
    match mark:
        case Line():
            return _line(mark, colours)
        case Box():
            return tag(
                "rect",
                *_told(mark.said if said else ""),
                x=_n(mark.x),
                y=_n(mark.y),
                width=_n(mark.width),
                height=_n(mark.height),
                fill=colours[mark.paint],
            )
        case Dot():
            return tag(
                "circle",
                *_told(mark.said if said else ""),
                cx=_n(mark.x),
                cy=_n(mark.y),
                r=_n(mark.radius),
                fill=colours[mark.paint],
                stroke=colours[mark.rim],
                stroke_width=_n(mark.thick),
                opacity=_n(mark.opacity) if mark.opacity < 1 else None,
            )
        case Label():
            return _label(mark, colours)


def _line(mark: Line, colours: Mapping[Paint, str]) -> Html:
    return tag(
        "line",
        x1=_n(mark.x1),
        y1=_n(mark.y1),
        x2=_n(mark.x2),
        y2=_n(mark.y2),
        stroke=colours[mark.paint],
        stroke_width=_n(mark.width),
        stroke_dasharray="3 4" if mark.dashed else None,
        stroke_linecap="round" if mark.round else None,
    )


def _label(mark: Label, colours: Mapping[Paint, str]) -> Html:
    return tag(
        "text",
        mark.words,
        x=_n(mark.x),
        y=_n(mark.y),
        fill=colours[mark.paint],
        font_size=_n(mark.size),
        font_weight=600 if mark.bold else None,
        text_anchor=mark.anchor if mark.anchor != "start" else None,
        stroke=colours[Paint.PAPER] if mark.halo else None,
        stroke_width=3 if mark.halo else None,
        stroke_linejoin="round" if mark.halo else None,
        paint_order="stroke" if mark.halo else None,
    )


def _letter(char: str) -> float:
    if char in _NARROW:
        return 0.37
    if char in _WIDE:
        return 0.95
    return 1.0 if ord(char) > 0x2E80 else 0.74 if char.isupper() else 0.62


def _told(words: str) -> Iterable[Html]:
    return (tag("title", words),) if words else ()


def _n(value: float) -> str:
    """A coordinate, short."""
    return f"{round(value, 2):g}"
