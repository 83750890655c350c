"""`kace report`: recorded runs compared, as text, as a page, and as plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter

from kace.cli.options import PATH, Options, takes
from kace.cli.terminal import (
    aligned,
    note,
)
from kace.errors import counted, plain, points
from kace.files import write_atomic
from kace.report.evaluation import (
    Evaluation,
    evaluation_of,
    page,
    write_records,
)
from kace.runs.compare import Comparison, Harm, p_text
from kace.runs.metrics import Metrics
from kace.runs.scores import ScoreReader
from kace.runs.shards import merge_shards

HEAD = (
    "arm",
    "problems",
    "accuracy",
    "95 % interval",
    "calls",
    "against base",
    "95 % interval",
)
LISTED = 12  # cards in a table; the rest are counted


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@click.option(
    "--out",
    type=PATH,
    help="Write a page, index.html, into this folder.",
)
@click.option(
    "--base",
    help="The name of the run that the others are compared with; by default the first.",
)
@click.option(
    "--cluster",
    help="What counts as one observation: family, problem or domain, or a column of "
    "scores; by default family if every solve has one, else problem.",
)
@click.option(
    "--merge",
    type=PATH,
    metavar="RUN",
    help="The runs are shards: join them here first, as one run.",
)
@click.option(
    "--to",
    type=click.Choice(["eee"]),
    help="Write records of Every Eval Ever into --out, or into ./eee.",
)
@click.option("--scorer", help="Which scorer of an inspect_ai log counts.")
@click.option(
    "--right-from",
    type=float,
    help="Scores of a CSV file or a log count as right from here on.",
)
@takes("json")
def command(
    options: Options,
    runs: Sequence[Path],
    out: Path | None,
    base: str | None,
    cluster: str | None,
    merge: Path | None,
    to: str | None,
    scorer: str | None,
    right_from: float | None,
) -> None:
    """Compare runs: a table, or an HTML page.

    RUN are folders that kace eval wrote, logs of inspect_ai (.eval), or a CSV file with
    the columns problem, system and score, and seed and cluster if there are some.
    Differences come with intervals and p values; --out DIR writes a page.
    """
    config = options.config()
    if merge is not None:
        merged = merge_shards(runs, merge)
        problems = counted(len(merged.solved), "problem")
        note(
            f"run          {merge}: {problems}, {counted(len(merged), 'solve')}"
        )
        if merged.missing:
            note(f"missing      {counted(merged.missing, 'solve')}")
        runs = [merge]
    tables = ScoreReader(cluster, scorer, right_from).open(runs)
    found = evaluation_of(
        tables,
        base=base,
        prices=config.prices,
        cluster=cluster,
    )
    if options.as_json or out is None:
        options.show(evaluation_record(found), comparison_lines(found))
    if to:
        written = write_records(tables, found.arms, out or Path(to))
        note(f"records      {out or to}: {counted(len(written), 'file')}")
    elif out is not None:
        write_atomic(out / "index.html", page(found))
        note(f"report       {out / 'index.html'}")
        note(found.lead)
    for warning in found.warnings:
        note(f"note         {warning}")


def evaluation_record(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation as `--json` prints it."""
    record: dict[str, Any] = TypeAdapter(Evaluation).dump_python(
        found, mode="json"
    )
    record["resampled"] = found.resampled
    for row, each in zip(record["comparisons"], found.comparisons, strict=True):
        row["distinguishable"] = each.distinguishable
        row["sentence"] = each.sentence
    return record


def comparison_lines(found: Evaluation) -> Iterator[str]:
    """Yield the table, base first; then each comparison with what its cards did."""
    several = len(found.comparisons) > 1
    rows: list[Sequence[str]] = [
        (*HEAD, "p (Holm)" if several else "p", "changed")
    ]
    for arm in sorted(found.arms, key=lambda arm: arm.name != found.base):
        rows.append(_row(arm, found.against_base(arm.name)))
    yield from map(_ascii, aligned(rows))
    yield found.resampled
    for each in found.comparisons:
        yield ""
        yield _ascii(each.sentence)
        if each.harm:
            yield f"  cards  {each.harm.words}"
            for line in _card_lines(each.harm):
                yield f"         {line}"


def _row(arm: Metrics, found: Comparison | None) -> tuple[str, ...]:
    seeds = f" x {len(arm.seeds)}" if len(arm.seeds) > 1 else ""
    interval = ""
    if arm.wilson:
        interval = f"{arm.wilson.low:.1%} to {arm.wilson.high:.1%}"
    ours = (
        f"{arm.name} ({arm.note})" if arm.note else arm.name,
        f"{arm.problems:,}{seeds}",
        "" if arm.accuracy is None else f"{arm.accuracy:.1%}",
        interval,
        f"{arm.paper_calls:.2f}" if arm.paper_calls else "",
    )
    theirs = ("(base)", "", "", "")
    if found:
        theirs = (
            points(found.difference),
            " to ".join(map(points, found.interval)),
            p_text(found.adjusted).removeprefix("p ").removeprefix("= "),
            f"+{len(found.gained)} -{len(found.lost)}",
        )
    return ours + theirs


def _card_lines(harm: Harm) -> Iterator[str]:
    """Yield right and wrong cards, then each card, the most harmful first."""
    if not harm.cards:
        return
    rows: list[Sequence[str]] = [("card", "shown", "gained", "broken", "")]
    for each in (*harm.kinds, *harm.cards[:LISTED]):
        counts = map(str, (each.shown, each.gained, each.broken))
        rows.append((plain(each.card), *counts, each.warning))
    yield from aligned(rows)
    if len(harm.cards) > LISTED:
        yield f"and {len(harm.cards) - LISTED:,} more"


def _ascii(text: str) -> str:
    """Return text for any terminal: a minus sign that it cannot show would turn a loss into a gain."""
    return plain(text).replace("\N{MINUS SIGN}", "-")
