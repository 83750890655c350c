"""`kace report`: recorded runs compared, as text, as a page, as Markdown, and as plots for a paper."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import typer

from kace.cards.store import open_tree
from kace.cli.options import OUTPUT, Typed, command, new_app, option
from kace.cli.streams import aligned, json_of, note, plain, print_lines, write_output
from kace.errors import UsageError
from kace.files import write_atomic
from kace.report.evaluation import (
    Evaluation,
    evaluation_json,
    evaluation_of,
    lead,
    markdown,
)
from kace.report.evaluation_page import page
from kace.report.plots import PRINT, plots_of
from kace.report.svg import pdf, require_pdf, svg
from kace.runs.compare import CardHarm, Change, Comparison, p_text
from kace.runs.metrics import Metrics
from kace.runs.shards import merge_shards
from kace.runs.table import open_tables
from kace.words import counted, points

HEAD = (
    "arm",
    "problems",
    "accuracy",
    "95 % interval",
    "calls",
    "against base",
    "95 % interval",
)
LISTED = 12  # problems named in a line; the rest are counted
FILES = {"html": "index.html", "md": "report.md"}
app = new_app()


@command(app)
def report(
    typed: Typed,
    as_json: bool,
    runs: list[Path] = typer.Argument(
        metavar="RUN...", help="Folders that kace eval wrote.", show_default=False
    ),
    form: str = option(
        OUTPUT,
        None,
        "--format",
        help="text, or files: html, a page; md, Markdown (default: text).",
    ),
    out: Path = option(
        OUTPUT,
        None,
        help="Write the page, or Markdown, into this folder (default: report).",
    ),
    plots: Path = option(
        OUTPUT, None, help="Also write every plot here, as SVG and PDF."
    ),
    no_pdf: bool = option(
        OUTPUT,
        False,
        "--no-pdf",
        help="Plots as SVG alone, which needs no extra library.",
    ),
    base: str = option(
        OUTPUT,
        None,
        help="The run that the others are compared with, by name; left out, the first.",
    ),
    cluster: str = option(
        OUTPUT,
        None,
        help="What counts as one observation: family, problem, domain, or a field of problems.jsonl;"
        " left out, family where every solve has one, else problem.",
    ),
    tree: Path = option(
        OUTPUT, None, help="The tree whose cards' measured lift to show."
    ),
    merge: Path = option(
        OUTPUT,
        None,
        metavar="RUN",
        help="The runs are shards: join them here first, as one run.",
    ),
) -> None:
    """Say which run is better, or that it cannot be told: kace report RUN RUN; with --out DIR, as a page."""
    form = form or ("text" if out is None else "html")
    if form not in ("text", *FILES):
        raise UsageError(
            f"--format cannot be '{form[:40]}'",
            fix=f"choose one of text, {', '.join(FILES)}",
        )
    if plots is not None and not no_pdf:
        require_pdf()
    cards = None if tree is None else open_tree(tree)
    config = typed.config()
    if merge is not None:
        merged = merge_shards(runs, merge)
        runs = [merged.folder]
        note(
            f"run          {merge}: {counted(merged.problems, 'problem')}, {counted(merged.solves, 'solve')}"
        )
        for gap in merged.gaps:
            note(f"missing      {gap}")
    found = evaluation_of(
        open_tables(runs),
        base=base,
        tree=cards,
        prices=config.prices,
        cluster=cluster,
    )
    drawn = _write_plots(found, plots, pdfs=not no_pdf) if plots else {}
    if as_json:
        told = json.loads(evaluation_json(found)) | {"resampled": found.resampled}
        for row, each in zip(told["comparisons"], found.comparisons, strict=True):
            row |= {"distinguishable": each.distinguishable, "sentence": each.sentence}
        write_output(json_of(told) + "\n", None)
    elif form == "text":
        print_lines(comparison_lines(found))
    if form != "text":
        _write_report(found, (out or Path("report")) / FILES[form], drawn)
        note(lead(found))
    for warning in found.warnings:
        note(f"note         {warning}")


def comparison_lines(found: Evaluation) -> Iterator[str]:
    """The table, base first; then for every comparison its sentence, the problems that changed, and the harm."""
    several = len(found.comparisons) > 1
    arms = sorted(found.arms, key=lambda arm: arm.name != found.base)
    rows = [_row(arm, found.against_base(arm.name)) for arm in arms]
    yield from aligned([(*HEAD, "p (Holm)" if several else "p", "changed"), *rows])
    yield found.resampled
    for each in found.comparisons:
        yield from ("", _plain(each.sentence))
        yield from (
            f"  {word:6} {_names(some)}"
            for word, some in (("gained", each.gained), ("lost", each.lost))
            if some
        )
        if each.harm:
            yield f"  cards  {each.harm.words}"
            yield from (f"         {line}" for line in _card_lines(each.harm.cards))


def _row(arm: Metrics, found: Comparison | None) -> tuple[str, ...]:
    seeds = f" x {len(arm.seeds)}" if len(arm.seeds) > 1 else ""
    accuracy = "" if arm.accuracy is None else f"{arm.accuracy:.1%}"
    interval = f"{arm.wilson.low:.1%} to {arm.wilson.high:.1%}" if arm.wilson else ""
    ours = (
        _plain(f"{arm.name} ({arm.note})" if arm.note else arm.name),
        f"{arm.problems:,}{seeds}",
        accuracy,
        interval,
        f"{arm.paper_calls:.2f}",
    )
    if found is None:
        return (*ours, "(base)", "", "", "")
    p = p_text(found.adjusted).removeprefix("p ").removeprefix("= ")
    against = points(found.difference)
    ends = " to ".join(map(points, found.interval))
    return (
        *ours,
        _plain(against),
        _plain(ends),
        p,
        f"+{len(found.gained)} -{len(found.lost)}",
    )


def _card_lines(cards: Sequence[CardHarm]) -> Iterator[str]:
    """The cards that were shown, the most harmful first, as a table."""
    rows = [("card", "shown", "gained", "broken", "")]
    for each in cards[:LISTED]:
        flag = "breaks more than it gains" if each.flagged else ""
        rows.append(
            (
                plain(each.card_id),
                f"{each.shown:,}",
                f"{each.gained:,}",
                f"{each.broken:,}",
                flag,
            )
        )
    yield from aligned(rows) if cards else ()
    if len(cards) > LISTED:
        yield f"and {len(cards) - LISTED:,} more"


def _names(changes: Sequence[Change]) -> str:
    """The changed problems by name; with several seeds, by how much where it is not all of them."""
    said = [
        _plain(c.name, 40) + ("" if abs(c.by) == 1 else f" ({c.by:+.2f})")
        for c in changes[:LISTED]
    ]
    return ", ".join(said) + (
        f" and {len(changes) - LISTED:,} more" if len(changes) > LISTED else ""
    )


def _plain(text: str, limit: int | None = None) -> str:
    """Text for any terminal: a sign that it cannot show would turn a loss into a gain."""
    return plain(text, limit).replace("\N{MINUS SIGN}", "-")


def _write_plots(found: Evaluation, folder: Path, *, pdfs: bool) -> dict[str, Path]:
    """Every plot as files; the SVG of each by its title."""
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
    links = {
        title: quote(Path(os.path.relpath(path, place.parent)).as_posix())
        for title, path in drawn.items()
    }
    write_atomic(
        place, markdown(found, links) if place.suffix == ".md" else page(found)
    )
    note(f"report       {place}")
