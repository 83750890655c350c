"""`kace report`: recorded runs as a page, as Markdown, and as plots for a paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import choice, note, write_output

if TYPE_CHECKING:
    from kace.evaluation.report import Evaluation
    from kace.tree.tree import EpistemicTree


class Format(StrEnum):
    """What a report may be written as."""

    HTML = "html"
    MD = "md"


FILES = {Format.HTML: "index.html", Format.MD: "report.md"}


def report(
    runs: list[Path] = typer.Argument(metavar="RUN...", help="Folders that kace eval wrote.", show_default=False),
    out: Path = typer.Option(None, help="The folder to write into (default: report)."),
    form: str = typer.Option("html", "--format", help="html: a page that needs nothing else; md: Markdown."),
    plots: Path = typer.Option(None, help="Also write every plot here, as SVG and PDF."),
    no_pdf: bool = typer.Option(False, "--no-pdf", help="Plots as SVG alone, which needs no extra library."),
    base: str = typer.Option(None, help="The arm that others are compared with; left out, the first."),
    tree: Path = typer.Option(None, help="The tree whose cards' measured lift to show."),
    as_json: bool = typer.Option(False, "--json", help="The figures as JSON on standard output; no page unless --out."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file with prices; kace.toml is read if there."),
) -> None:
    """Report on recorded runs, side by side: kace report RUN RUN --out report."""
    from kace.config import load_config
    from kace.evaluation.arm import read_arms
    from kace.evaluation.report import evaluation_json, evaluation_of
    from kace.plots.pdf import require_pdf

    chosen = choice(form, Format, "--format")
    if plots is not None and not no_pdf:
        require_pdf()
    prices = load_config(file=config_file).price_table()
    found = evaluation_of(read_arms(runs), base=base, tree=_tree(tree), prices=prices)
    drawn = _write_plots(found, plots, pdfs=not no_pdf) if plots else {}
    if as_json:
        write_output(evaluation_json(found) + "\n", None)
    if out is not None or not as_json:
        _write_report(found, (out or Path("report")) / FILES[chosen], drawn)
    _say(found)


def _tree(path: Path | None) -> EpistemicTree | None:
    from kace.tree.store import open_tree

    return None if path is None else open_tree(path)


def _write_plots(found: Evaluation, folder: Path, *, pdfs: bool) -> dict[str, Path]:
    """Every plot as files; the SVG of each by its title."""
    from kace.evaluation.plots import PRINT, plots_of
    from kace.io import write_atomic
    from kace.plots.panels import framed
    from kace.plots.pdf import pdf
    from kace.plots.picture import svg

    written = {}
    for plot in plots_of(found):
        picture = framed(plot.draw(PRINT))
        written[plot.title] = folder / f"{plot.name}.svg"
        write_atomic(written[plot.title], svg(picture))
        if pdfs:
            write_atomic(folder / f"{plot.name}.pdf", pdf(picture))
    note(f"plots        {folder}: {len(written)} as SVG{' and PDF' if pdfs else ''}")
    return written


def _write_report(found: Evaluation, place: Path, drawn: dict[str, Path]) -> None:
    from kace.evaluation.markdown import markdown
    from kace.evaluation.page import page
    from kace.io import write_atomic

    if place.suffix == ".md":
        links = {title: _link(path, place.parent) for title, path in drawn.items()}
        write_atomic(place, markdown(found, links))
    else:
        write_atomic(place, page(found))
    note(f"report       {place}")


def _link(path: Path, folder: Path) -> str:
    import os
    from urllib.parse import quote

    return quote(Path(os.path.relpath(path, folder)).as_posix())


def _say(found: Evaluation) -> None:
    from kace.evaluation.report import lead

    note(lead(found))
    for warning in found.warnings:
        note(f"note         {warning}")
