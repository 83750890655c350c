"""`kace lift`: whether a SKILL.md, a prompt file or a card helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kace.baselines.lift import Skill, SkillLift, lift_of, read_skill, run_lift
from kace.baselines.systems import LEAST, MOST
from kace.cli.data import load_data
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.solve import forecast_lines
from kace.cli.terminal import RunProgress, note, plain, run_async
from kace.config import Config, benchmark_preset
from kace.learning.report import CHARS_PER_TOKEN, forecast_attempts
from kace.problems import Dataset
from kace.runs.manifest import default_folder, manifest_of
from kace.runs.metrics import clusters_of
from kace.runs.run import Run
from kace.runs.table import Table
from kace.words import counted


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
@click.option("--split", default="test", help="train, validation or test.")
@click.option(
    "--attempts",
    default=8,
    type=click.IntRange(LEAST, MOST),
    help="Attempts at each problem; about every other one reads the skill.",
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
    split: str,
    attempts: int,
    cluster: str | None,
    dry_run: bool,
    out: Path | None,
) -> None:
    """Measure whether a SKILL.md, a prompt file or a card helps.

    Each attempt is shown the skill or not at random. The difference is taken within
    problems, with an interval, an exact test, and an A/A arm: the same attempts by a
    draw that changes nothing. Front matter is left out; a card is shown as cards are.
    """
    config = options.config(preset=benchmark_preset(data, options.get("model")))
    text = read_skill(skill)
    found = load_data(data, split, config, limit=options.limit)
    for line in _plan_lines(text, found, attempts, config):
        note(f"kace: {line}")
    if dry_run:
        note("kace: nothing was spent")
        return
    manifest = _manifest(text, found, attempts, config)
    source = f"{manifest['system']}{manifest['data']}".encode()
    folder = out or default_folder(f"lift-{found.name}", manifest, source)
    prepare(config)
    with Run(folder, manifest, texts=config.problem_texts) as run:
        with RunProgress(len(found.problems)) as progress:
            work = run_lift(
                run,
                found.problems,
                config,
                text,
                attempts,
                observer=progress,
                on_known=progress.recalled,
            )
            run_async(work, resumable=True)
    table = Table.open(folder)
    result = lift_of(
        text, table.solutions(texts=False), clusters_of([table], cluster)
    )
    record = {**asdict(result), "verdict": result.verdict}
    options.show(record, _lines(result))
    note(f"run          {folder}")


def _manifest(
    skill: Skill, data: Dataset, attempts: int, config: Config
) -> dict[str, object]:
    """Return what the run depends on."""
    system = {"name": "lift", "skill": skill.digest, "attempts": attempts}
    problems = {
        "name": data.name,
        "split": data.split,
        "problems": len(data.problems),
        "hash": data.hash,
    }
    return {**manifest_of(config), "system": system, "data": problems}


def _plan_lines(
    skill: Skill, data: Dataset, attempts: int, config: Config
) -> Iterator[str]:
    """Yield what is measured, and what it is expected to take."""
    kind = "a card" if skill.card else "notes"
    size = len(data.problems)
    yield (
        f"{plain(skill.name)}, read as {kind} ({len(skill.text):,} characters): "
        f"{counted(size, 'problem')} x {attempts} attempts, {config.model}"
    )
    chars = sum(len(problem.text) for problem in data.problems)
    chars += size * len(skill.text) // 2
    row = forecast_attempts(chars / CHARS_PER_TOKEN, size, attempts, config)
    yield from forecast_lines([row])


def _lines(found: SkillLift) -> Iterator[str]:
    lift = found.lift
    yield (
        f"attempts     {found.attempts:,} with it, {found.attempts_without:,} without"
    )
    yield f"right        {lift.right:.1%} with it, {lift.right_without:.1%} without"
    if found.failed:
        failed = counted(found.failed, "attempt")
        yield f"failed       {failed} lost to the provider, in neither count"
    yield f"lift         {lift.words}, within problems"
    yield f"A/A          {found.sham.words}, by a draw that changes nothing"
    yield (
        f"prompt       {found.input:,.0f} tokens with it, "
        f"{found.input_without:,.0f} without"
    )
    yield plain(found.verdict)
