"""Pictures as PDF for papers, drawn by matplotlib, which is an extra."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

from kace.errors import UsageError
from kace.plots.picture import COLOURS, Box, Dot, Label, Line, Mark, Paint, Picture
from kace.web.markup import seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 72
"""To the inch: a pixel of the picture is a point on paper."""
PREFERRED = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans")
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def require_pdf() -> None:
    """Refuse, before any work is done, what could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            "PDF plots need matplotlib", fix="pip install 'kace[plots]', or ask for SVG alone with --no-pdf"
        ) from None


def pdf(picture: Picture) -> bytes:
    """The picture as a one-page PDF with its letters embedded; the same picture gives the same bytes."""
    require_pdf()
    from matplotlib import font_manager, rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    known = {font.name for font in font_manager.fontManager.ttflist}
    family = next((name for name in PREFERRED if name in known), "sans-serif")
    out = io.BytesIO()
    # TrueType letters, because some publishers refuse the Type 3 ones that are the default.
    with rc_context({"pdf.fonttype": 42, "font.family": family, "text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that no font has is drawn as a box, and that is all
        figure = Figure(figsize=(picture.width / POINTS, picture.height / POINTS))
        FigureCanvasPdf(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, picture.width)
        axes.set_ylim(picture.height, 0)
        for order, mark in enumerate(picture.marks):
            _draw(axes, mark, order)
        about = {"Title": seen(picture.title), "CreationDate": None, "Producer": None, "Creator": "kace"}
        figure.savefig(out, format="pdf", metadata=about)
    return out.getvalue()


def _draw(axes: Axes, mark: Mark, order: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Rectangle

    match mark:
        case Line():
            cap = "round" if mark.round else "butt"
            stroke = Line2D([mark.x1, mark.x2], [mark.y1, mark.y2], color=COLOURS[mark.paint], linewidth=mark.width)
            stroke.set(zorder=order, linestyle=(0, (3, 4)) if mark.dashed else "-")
            stroke.set(**{"dash_capstyle" if mark.dashed else "solid_capstyle": cap})
            axes.add_line(stroke)
        case Box():
            place = (mark.x, mark.y)
            axes.add_patch(
                Rectangle(place, mark.width, mark.height, facecolor=COLOURS[mark.paint], linewidth=0, zorder=order)
            )
        case Dot():
            disc = Circle((mark.x, mark.y), mark.radius, facecolor=COLOURS[mark.paint], edgecolor=COLOURS[mark.rim])
            disc.set(linewidth=mark.thick, alpha=mark.opacity, zorder=order)
            axes.add_patch(disc)
        case Label():
            _write(axes, mark, order)


def _write(axes: Axes, mark: Label, order: int) -> None:
    from matplotlib.patheffects import Stroke

    # The rim is a text of its own: an effect turns letters into outlines that nobody could search or copy.
    for rim in (True, False) if mark.halo else (False,):
        drawn = axes.text(mark.x, mark.y, seen(mark.words), parse_math=False)
        drawn.set(color=COLOURS[mark.paint], fontsize=mark.size, fontweight="bold" if mark.bold else "normal")
        drawn.set(horizontalalignment=_ANCHORS[mark.anchor], verticalalignment="baseline", zorder=order)
        if rim:
            drawn.set_path_effects([Stroke(linewidth=3, foreground=COLOURS[Paint.PAPER])])
