"""An evaluation as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from typing import NamedTuple

from kace.markup import Html
from kace.report.charts import NAMES
from kace.report.evaluation import Evaluation, lead
from kace.report.page import render_document
from kace.report.plots import NARROW, WIDE, Plot, plots_of
from kace.report.svg import inline
from kace.runs.compare import p_text


class DrawnPlot(NamedTuple):
    """A plot in two widths, of which the screen shows one."""

    title: str
    caption: str
    wide: Html
    narrow: Html


def figure_of(plot: Plot, width: float = WIDE) -> DrawnPlot:
    """A plot as pages show it."""
    wide, narrow = (
        inline(plot.draw(w), f"plot {name}")
        for w, name in ((width, "wide"), (NARROW, "narrow"))
    )
    return DrawnPlot(plot.title, plot.caption.replace(" %", "\u00a0%"), wide, narrow)


def page(found: Evaluation) -> str:
    """The whole page. Everything that came from outside is text in it, whatever it says."""
    return render_document(
        "report_evaluation.html",
        title=f"{found.title}: evaluation",
        found=found,
        lead=lead(found),
        plots={plot.name: figure_of(plot) for plot in plots_of(found)},
        exits=NAMES,
        p_text=p_text,
    )
