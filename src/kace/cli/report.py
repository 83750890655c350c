"""`kace report`: recorded runs compared, as text, as a page, as Markdown, and as plots for a paper."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from kace.cli.options import OUTPUT, Typed, option, takes
from kace.cli.streams import note, plain, print_lines, write_output
from kace.errors import UsageError
from kace.io import write_atomic
from kace.words import points

if TYPE_CHECKING:
    from kace.evaluation.compare import Change, Comparison
    from kace.evaluation.metrics import Metrics
    from kace.evaluation.report import Evaluation

HEAD = ("arm", "problems", "accuracy", "95 % interval", "calls", "against base", "95 % interval")
LISTED = 12  # problems named in a line; the rest are counted
FILES = {"text": "", "html": "index.html", "md": "report.md"}
_ARM = ("name", "model", "problems", "accuracy", "wilson", "interval", "paper_calls", "failed")


@takes("as_json", "config_file")
def report(
    typed: Typed,
    runs: list[Path] = typer.Argument(metavar="RUN...", help="Folders that kace eval wrote.", show_default=False),
    form: str = option(
        OUTPUT, "html", "--format", help="text: which run is better, in the terminal; html: a page; md: Markdown."
    ),
    out: Path = option(OUTPUT, None, help="The folder to write into (default: report)."),
    plots: Path = option(OUTPUT, None, help="Also write every plot here, as SVG and PDF."),
    no_pdf: bool = option(OUTPUT, False, "--no-pdf", help="Plots as SVG alone, which needs no extra library."),
    base: str = option(OUTPUT, None, help="The run that the others are compared with, by name; left out, the first."),
    tree: Path = option(OUTPUT, None, help="The tree whose cards' measured lift to show."),
) -> None:
    """Say which run is better, or that it cannot be told: kace report RUN RUN --format text."""
    from kace.evaluation.arm import read_arms
    from kace.evaluation.report import evaluation_json, evaluation_of, lead
    from kace.evaluation.svg import require_pdf
    from kace.tree.store import open_tree

    if form not in FILES:
        raise UsageError(f"--format cannot be '{form[:40]}'", fix=f"choose one of {', '.join(FILES)}")
    if form == "text":
        return _compare(runs, base, as_json=typed.as_json)
    if plots is not None and not no_pdf:
        require_pdf()
    cards = None if tree is None else open_tree(tree)
    found = evaluation_of(read_arms(runs), base=base, tree=cards, prices=typed.config().price_table())
    drawn = _write_plots(found, plots, pdfs=not no_pdf) if plots else {}
    if typed.as_json:
        write_output(evaluation_json(found) + "\n", None)
    if out is not None or not typed.as_json:
        _write_report(found, (out or Path("report")) / FILES[form], drawn)
    note(lead(found))
    for warning in found.warnings:
        note(f"note         {warning}")


def _compare(runs: list[Path], base: str | None, *, as_json: bool) -> None:
    from kace.evaluation.arm import read_arms
    from kace.evaluation.compare import compare_all
    from kace.evaluation.metrics import metrics_of
    from kace.evaluation.report import base_of

    if len(runs) < 2:
        raise UsageError("a comparison needs two runs", fix="kace report RUN RUN --format text")
    arms = read_arms(runs)
    chosen = base_of(arms, base)
    others = [arm for arm in arms if arm is not chosen]
    comparisons = compare_all(chosen, others)
    figures = [metrics_of(arm) for arm in (chosen, *others)]
    if as_json:
        told = [
            {name: getattr(arm, name) for name in _ARM} | {"seeds": {seed.seed: seed.accuracy for seed in arm.seeds}}
            for arm in figures
        ]
        found = [asdict(c) | {"distinguishable": c.distinguishable, "sentence": c.sentence} for c in comparisons]
        print(json.dumps({"base": chosen.name, "arms": told, "comparisons": found}))
    else:
        print_lines(comparison_lines(figures, comparisons))
    for said in dict.fromkeys(said for comparison in comparisons for said in comparison.notes):
        note(f"note: {said}")


def comparison_lines(figures: Sequence[Metrics], comparisons: Sequence[Comparison]) -> list[str]:
    """The table, base first; then for every comparison its sentence and the problems that changed."""
    rows = [(*HEAD, "p (Holm)" if len(comparisons) > 1 else "p", "changed"), _row(figures[0], None)]
    rows += [_row(arm, found) for arm, found in zip(figures[1:], comparisons, strict=True)]
    name, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = []
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))
        lines.append("  ".join([row[0].ljust(name), *cells]).rstrip())
    for found in comparisons:
        changed = (("gained", found.gained), ("lost", found.lost))
        lines += ["", _plain(found.sentence), *(f"  {word:6} {_names(some)}" for word, some in changed if some)]
    return lines


def _row(arm: Metrics, found: Comparison | None) -> tuple[str, ...]:
    from kace.evaluation.compare import p_text

    seeds = f" x {len(arm.seeds)}" if len(arm.seeds) > 1 else ""
    accuracy = "" if arm.accuracy is None else f"{arm.accuracy:.1%}"
    interval = f"{arm.wilson.low:.1%} to {arm.wilson.high:.1%}" if arm.wilson else ""
    ours = (_plain(arm.name), f"{arm.problems:,}{seeds}", accuracy, interval, f"{arm.paper_calls:.2f}")
    if found is None:
        return (*ours, "(base)", "", "", "")
    p = p_text(found.adjusted).removeprefix("p ").removeprefix("= ")
    against, ends = points(found.difference), " to ".join(map(points, found.interval))
    return (*ours, _plain(against), _plain(ends), p, f"+{len(found.gained)} -{len(found.lost)}")


def _names(changes: Sequence[Change]) -> str:
    """The changed problems by name; with several seeds, by how much where it is not all of them."""
    said = [_plain(c.name, 40) + ("" if abs(c.by) == 1 else f" ({c.by:+.2f})") for c in changes[:LISTED]]
    return ", ".join(said) + (f" and {len(changes) - LISTED:,} more" if len(changes) > LISTED else "")


def _plain(text: str, limit: int | None = None) -> str:
    """Text for any terminal: a sign that it cannot show would turn a loss into a gain."""
    return plain(text, limit).replace("\N{MINUS SIGN}", "-")


def _write_plots(found: Evaluation, folder: Path, *, pdfs: bool) -> dict[str, Path]:
    """Every plot as files; the SVG of each by its title."""
    from kace.evaluation.plots import PRINT, plots_of
    from kace.evaluation.svg import pdf, svg

    written = {}
    for plot in plots_of(found):
        picture = plot.draw(PRINT)
        written[plot.title] = folder / f"{plot.name}.svg"
        write_atomic(written[plot.title], svg(picture))
        if pdfs:
            write_atomic(folder / f"{plot.name}.pdf", pdf(picture))
    note(f"plots        {folder}: {len(written)} as SVG{' and PDF' if pdfs else ''}")
    return written


def _write_report(found: Evaluation, place: Path, drawn: dict[str, Path]) -> None:
    from kace.evaluation.markdown import markdown
    from kace.evaluation.page import page

    links = {title: quote(Path(os.path.relpath(path, place.parent)).as_posix()) for title, path in drawn.items()}
    write_atomic(place, markdown(found, links) if place.suffix == ".md" else page(found))
    note(f"report       {place}")
