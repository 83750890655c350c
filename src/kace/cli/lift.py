"""`kace lift`: whether a SKILL.md, a prompt file or a card helps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kace.baselines.evaluate import Trial
from kace.baselines.lift import (
    lift_of,
    read_skill,
    run_lift,
)
from kace.baselines.systems import MOST
from kace.cli.data import load_data
from kace.cli.eval import plan_lines
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.terminal import RunProgress, note, plain, run_async
from kace.config import benchmark_preset
from kace.learning.measure import text_digest
from kace.runs.manifest import default_folder
from kace.runs.metrics import clusters_of
from kace.runs.run import Run
from kace.runs.table import Table


@click.command("lift")
@click.option(
    "--skill",
    type=PATH,
    required=True,
    help="A folder with a SKILL.md, a text file, or the text of a card.",
)
@click.option(
    "--data",
    "-d",
    required=True,
    help="A set of `kace data list`, or a file of problems.",
)
@click.option(
    "--pairs",
    default=4,
    type=click.IntRange(2, MOST // 2),
    help="Pairs of attempts at each problem: one with the skill, one without.",
)
@click.option(
    "--cluster",
    help="What counts as one observation: family, problem, or a field of the file.",
)
@takes("json", *SOLVER, "limit", *CAPS)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what it would take, and spend nothing.",
)
@click.option(
    "--out", type=PATH, help="The run directory; the same command resumes it."
)
def command(
    options: Options,
    skill: Path,
    data: str,
    pairs: int,
    cluster: str | None,
    dry_run: bool,
    out: Path | None,
) -> None:
    """Measure whether a SKILL.md, a prompt file or a card helps.

    Of two attempts at a problem, a draw chooses the one that reads the skill. The
    difference comes with an interval, an exact test, and an A/A arm, whose draw changes
    nothing. Front matter is left out; a card is shown as cards are.
    """
    config = options.config(preset=benchmark_preset(data, options.get("model")))
    context = read_skill(skill)
    found = load_data(data, "test", config, limit=options.limit)
    trial = Trial(f"best-of-{2 * pairs}", found, config, 1)
    digest = context.learned_hash
    if context.cards:
        digest = text_digest(context.cards[0])
    system = {"name": "lift", "skill": digest, "attempts": 2 * pairs}
    manifest = {**trial.manifest(), "system": system}
    source = f"{system}{found.hash}".encode()
    folder = out or default_folder(f"lift-{found.name}", manifest, source)
    kind = "a card" if context.cards else "notes"
    note(f"kace: half of the attempts read {plain(str(skill))} as {kind}")
    for line in plan_lines(trial, folder):
        note(f"kace: {line}")
    if dry_run:
        note("kace: nothing was spent")
        return
    prepare(config)
    with Run(folder, manifest, texts=config.problem_texts) as run:
        with RunProgress(len(found.problems)) as progress:
            work = run_lift(
                run,
                found.problems,
                config,
                context,
                pairs,
                observer=progress,
                on_known=progress.recalled,
            )
            run_async(work, resumable=True)
    table = Table.open(folder)
    clusters = clusters_of([table], cluster)
    lift, sham = lift_of(context, table.solutions(texts=False), clusters)
    record = {
        "verdict": lift.verdict,
        "lift": asdict(lift),
        "sham": asdict(sham),
    }
    lines = (
        f"right        {lift.right:,} of {lift.made:,} attempts with it, "
        f"{lift.right_without:,} of {lift.made_without:,} without",
        f"lift         {lift.words}",
        f"A/A          {sham.words}, by a draw that changes nothing",
        lift.verdict,
    )
    options.show(record, lines)
    note(f"run          {folder}")
