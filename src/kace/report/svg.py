"""A picture as SVG elements: on a page in the page's own colours, in a file in literal ones, and from there as PDF."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, simplefilter

from kace.errors import UsageError
from kace.markup import Html, join, seen, tag

if TYPE_CHECKING:
    from matplotlib.artist import Artist

SIZE = 12.0  # of letters, in pixels on a page and points on paper
FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MARGIN = 10.0  # around the picture in a file
_NARROW = frozenset(" .,:;|!'`()[]{}/\\fijlrtI-")
_WIDE = frozenset("mwMW@%—…")
_ANCHORS = {None: "left", "middle": "center", "end": "right"}


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
    # letters on `ONE` and `FIVE`, and on those between
    OVER = "over"
    UNDER = "under"


_LITERAL = "ffffff 1d2126 555d66 d5d2ca e8e6e0 0a7069 b34a1f 7b838d 0a7069 6cb0a6 e3cf9f dd9464 a8431b ffffff 1d2126"
COLOURS: Mapping[Paint, str] = {
    paint: f"#{colour}" for paint, colour in zip(Paint, _LITERAL.split(), strict=True)
}
_ON_A_PAGE: Mapping[Paint, str] = {paint: f"var(--{paint.value})" for paint in Paint}


class Mark(NamedTuple):
    """An SVG element."""

    name: str
    attributes: Mapping[
        str, Any
    ]  # a `Paint` stands for its colour; what is `None` is left out
    words: str = ""  # the text that it shows
    said: str = ""  # what a pointer resting on it is told


class Picture(NamedTuple):
    """Marks in the order they are drawn."""

    title: str
    width: float
    height: float
    marks: tuple[Mark, ...]


def stroke(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    paint: Paint,
    width: float = 1.0,
    **look: str,
) -> Mark:
    """A straight line; `look` holds further attributes."""
    return Mark(
        "line",
        {
            "x1": x1,
            "y1": y1,
            "x2": x2,
            "y2": y2,
            "stroke": paint,
            "stroke_width": width,
            **look,
        },
    )


def box(
    x: float, y: float, width: float, height: float, paint: Paint, said: str = ""
) -> Mark:
    """A filled rectangle."""
    return Mark(
        "rect",
        {"x": x, "y": y, "width": width, "height": height, "fill": paint},
        said=said,
    )


def dot(
    x: float,
    y: float,
    size: float,
    fill: Paint,
    rim: Paint,
    width: float,
    said: str = "",
    **look: float,
) -> Mark:
    """A disc with a rim; `look` holds further attributes."""
    place = {"cx": x, "cy": y, "r": size}
    return Mark(
        "circle",
        {**place, "fill": fill, "stroke": rim, "stroke_width": width, **look},
        said=said,
    )


def label(
    x: float, y: float, words: str, paint: Paint = Paint.SOFT, anchor: str = "start", *,
    size: float = SIZE, bold: bool = False, halo: bool = False,
) -> Mark:  # fmt: skip
    """Words on one line that begin, have their middle, or end at `x`; a halo sets them off from marks below them."""
    look = {
        "font_weight": 600 if bold else None,
        "text_anchor": None if anchor == "start" else anchor,
    }
    rim = {
        "stroke": Paint.PAPER,
        "stroke_width": 3,
        "stroke_linejoin": "round",
        "paint_order": "stroke",
    }
    return Mark(
        "text",
        {
            "x": x,
            "y": y,
            "fill": paint,
            "font_size": size,
            **look,
            **(rim if halo else {}),
        },
        words,
    )


def moved(marks: Iterable[Mark], x: float, y: float) -> Iterator[Mark]:
    """Marks somewhere else."""
    by = {"x": x, "x1": x, "x2": x, "cx": x, "y": y, "y1": y, "y2": y, "cy": y}
    for mark in marks:
        found = {
            key: value + by[key] if key in by else value
            for key, value in mark.attributes.items()
        }
        yield mark._replace(attributes=found)


def breadth(words: str, size: float = SIZE, *, bold: bool = False) -> float:
    """About how wide words are, rather too much than too little, whichever common font draws them."""
    return size * (1.1 if bold else 1.0) * sum(map(_letter, words))


def _letter(char: str) -> float:
    if char in _NARROW or char in _WIDE:
        return 0.37 if char in _NARROW else 0.95
    return 1.0 if ord(char) > 0x2E80 else 0.74 if char.isupper() else 0.62


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
    drawn = (_element(mark, _ON_A_PAGE, mark.said) for mark in picture.marks)
    view = f"0 0 {_n(picture.width)} {_n(picture.height)}"
    return tag(
        "svg",
        tag("title", picture.title),
        *drawn,
        viewBox=view,
        role="img",
        class_=class_,
    )


def svg(picture: Picture) -> str:
    """The picture as a file of its own, in literal colours that any program reads."""
    whole = framed(picture)
    width = _n(whole.width)
    height = _n(whole.height)
    about = {
        "width": width,
        "height": height,
        "viewBox": f"0 0 {width} {height}",
        "font_family": FONTS,
    }
    drawn = join(
        part for mark in whole.marks for part in ("\n", _element(mark, COLOURS))
    )
    root = tag(
        "svg",
        tag("title", whole.title),
        drawn,
        xmlns="http://www.w3.org/2000/svg",
        **about,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'


def framed(picture: Picture) -> Picture:
    """The picture on paper with a margin."""
    width = picture.width + 2 * MARGIN
    height = picture.height + 2 * MARGIN
    paper = box(0, 0, width, height, Paint.PAPER)
    return Picture(
        picture.title, width, height, (paper, *moved(picture.marks, MARGIN, MARGIN))
    )


def _painted(mark: Mark, colours: Mapping[Paint, str]) -> dict[str, Any]:
    return {
        key: colours[value] if isinstance(value, Paint) else value
        for key, value in mark.attributes.items()
    }


def _element(mark: Mark, colours: Mapping[Paint, str], said: str = "") -> Html:
    found = {
        k: _n(v) if isinstance(v, int | float) else v
        for k, v in _painted(mark, colours).items()
    }
    inside = [mark.words] if mark.name == "text" else []
    return tag(mark.name, *inside, *([tag("title", said)] if said else []), **found)


def _n(value: float) -> str:
    return f"{round(value, 2):g}"


def require_pdf() -> None:
    """Refuse, before any work is done, what could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        fix = "pip install 'kace[plots]', or ask for SVG alone with --no-pdf"
        raise UsageError("PDF plots need matplotlib", fix=fix) from None


def pdf(picture: Picture) -> bytes:
    """The picture as a one-page PDF with its letters embedded; the same picture gives the same bytes."""
    require_pdf()
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    whole = framed(picture)
    out = io.BytesIO()
    # TrueType letters, because some publishers refuse the Type 3 ones that are the default.
    fonts = ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"]
    with (
        rc_context(
            {"pdf.fonttype": 42, "font.family": "sans-serif", "font.sans-serif": fonts}
        ),
        catch_warnings(),
    ):
        simplefilter(
            "ignore"
        )  # a letter that no font has is drawn as a box, and that is all
        figure = Figure(
            figsize=(whole.width / 72, whole.height / 72)
        )  # a pixel of the picture is a point on paper
        FigureCanvasPdf(figure)
        axes = figure.add_axes(
            (0, 0, 1, 1), xlim=(0, whole.width), ylim=(whole.height, 0)
        )
        axes.set_axis_off()
        for order, mark in enumerate(whole.marks):
            for artist in _artists(
                mark.name, seen(mark.words), _painted(mark, COLOURS)
            ):
                artist.set_zorder(order)
                axes.add_artist(artist)
        about = {
            "Title": seen(whole.title),
            "CreationDate": None,
            "Producer": None,
            "Creator": "kace",
        }
        figure.savefig(out, format="pdf", metadata=about)
    return out.getvalue()


def _artists(name: str, words: str, a: Mapping[str, Any]) -> Iterator[Artist]:
    from matplotlib import lines, patches, patheffects, text

    if name == "line":
        cap = a.get("stroke_linecap", "butt")
        look = {
            "color": a["stroke"],
            "lw": a["stroke_width"],
            "solid_capstyle": cap,
            "dash_capstyle": cap,
        }
        dashes = (0, (3, 4)) if "stroke_dasharray" in a else "-"
        yield lines.Line2D((a["x1"], a["x2"]), (a["y1"], a["y2"]), ls=dashes, **look)
    elif name == "rect":
        yield patches.Rectangle(
            (a["x"], a["y"]), a["width"], a["height"], fc=a["fill"], lw=0
        )
    elif name == "circle":
        look = {
            "fc": a["fill"],
            "ec": a["stroke"],
            "lw": a["stroke_width"],
            "alpha": a.get("opacity"),
        }
        yield patches.Circle((a["cx"], a["cy"]), a["r"], **look)
    else:
        look = {
            "color": a["fill"],
            "size": a["font_size"],
            "weight": "bold" if a["font_weight"] else "normal",
        }
        look |= {"ha": _ANCHORS[a["text_anchor"]], "parse_math": False}
        # The rim is a text of its own: an effect turns letters into outlines that nobody could search or copy.
        for rim in (
            ([patheffects.Stroke(linewidth=3, foreground=a["stroke"])], [])
            if "stroke" in a
            else ([],)
        ):
            yield text.Text(a["x"], a["y"], words, path_effects=rim, **look)
