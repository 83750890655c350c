"""`kace compare`: which of several recorded runs is better, or that it cannot be told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.evaluation.compare import Change, Comparison
    from kace.evaluation.metrics import Metrics

HEAD = ("arm", "problems", "accuracy", "95 % interval", "calls", "against base", "95 % interval")
LISTED = 12
"""Problems named in a line; the rest are counted."""


def compare(
    runs: list[Path] = typer.Argument(metavar="RUN RUN...", help="Folders that kace eval wrote.", show_default=False),
    base: str = typer.Option(None, help="The run that the others are compared with, by name; the first without it."),
    as_json: bool = typer.Option(False, "--json", help="The comparisons as JSON on standard output."),
) -> None:
    """Say which run is better, or that it cannot be told: kace compare RUN RUN."""
    from kace.evaluation.arm import read_arms
    from kace.evaluation.compare import compare_all
    from kace.evaluation.metrics import metrics_of
    from kace.evaluation.report import base_of

    if len(runs) < 2:
        raise UsageError("a comparison needs two runs", fix="kace compare RUN RUN")
    arms = read_arms(runs)
    chosen = base_of(arms, base)
    others = [arm for arm in arms if arm is not chosen]
    comparisons = compare_all(chosen, others)
    figures = [metrics_of(arm) for arm in (chosen, *others)]
    if as_json:
        print(json.dumps(_document(figures, comparisons)))
    else:
        print_lines(comparison_lines(figures, comparisons))
    for said in dict.fromkeys(said for comparison in comparisons for said in comparison.notes):
        note(f"note: {said}")


def comparison_lines(figures: Sequence[Metrics], comparisons: Sequence[Comparison]) -> list[str]:
    """The table, base first; then for every comparison its sentence and the problems that changed."""
    rows = [(*HEAD, "p (Holm)" if len(comparisons) > 1 else "p", "changed"), _row(figures[0], None)]
    rows += [_row(arm, found) for arm, found in zip(figures[1:], comparisons, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]
    for found in comparisons:
        lines += ["", _plain(found.sentence)]
        lines += [
            f"  {word:6} {_names(some)}" for word, some in (("gained", found.gained), ("lost", found.lost)) if some
        ]
    return lines


def _row(arm: Metrics, found: Comparison | None) -> tuple[str, ...]:
    from kace.evaluation.compare import p_text
    from kace.words import points

    seeds = f" x {len(arm.seeds)}" if len(arm.seeds) > 1 else ""
    accuracy = "" if arm.accuracy is None else f"{arm.accuracy:.1%}"
    interval = f"{arm.wilson.low:.1%} to {arm.wilson.high:.1%}" if arm.wilson else ""
    ours = (_plain(arm.name), f"{arm.problems:,}{seeds}", accuracy, interval, f"{arm.paper_calls:.2f}")
    if found is None:
        return (*ours, "(base)", "", "", "")
    low, high = found.interval
    return (
        *ours,
        _plain(points(found.difference)),
        _plain(f"{points(low)} to {points(high)}"),
        p_text(found.adjusted).removeprefix("p ").removeprefix("= "),
        f"+{len(found.gained)} -{len(found.lost)}",
    )


def _names(changes: Sequence[Change]) -> str:
    """The changed problems by name; with several seeds, by how much where it is not all of them."""
    said = [_plain(c.name, 40) + ("" if abs(c.by) == 1 else f" ({c.by:+.2f})") for c in changes[:LISTED]]
    more = len(changes) - LISTED
    return ", ".join(said) + (f" and {more:,} more" if more > 0 else "")


def _document(figures: Sequence[Metrics], comparisons: Sequence[Comparison]) -> dict[str, object]:
    arms = [
        {
            "name": arm.name,
            "model": arm.model,
            "problems": arm.problems,
            "seeds": {seed.seed: seed.accuracy for seed in arm.seeds},
            "accuracy": arm.accuracy,
            "wilson": arm.wilson,
            "interval": arm.interval,
            "paper_calls": arm.paper_calls,
            "failed": arm.failed,
        }
        for arm in figures
    ]
    found = [
        {**asdict(comparison), "distinguishable": comparison.distinguishable, "sentence": comparison.sentence}
        for comparison in comparisons
    ]
    return {"base": figures[0].name, "arms": arms, "comparisons": found}


def _plain(text: str, limit: int | None = None) -> str:
    """Text for any terminal: a sign that it cannot show would turn a loss into a gain."""
    from kace.cli.show import plain

    return plain(text, limit).replace("\N{MINUS SIGN}", "-")
