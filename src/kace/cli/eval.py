"""`kace eval`: one system on one data set; and `kace lift`: whether a text helps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kace.api import tree_of
from kace.baselines.evaluate import Trial, run_trial
from kace.baselines.lift import lift_of, open_lift, read_skill
from kace.baselines.systems import (
    MOST,
    SYSTEMS,
    System,
    require,
    spec_of,
)
from kace.cards.store import open_state
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, SOLVER, Options, takes
from kace.cli.solve import forecast_lines, metrics_lines
from kace.cli.terminal import (
    RunProgress,
    aligned,
    note,
    print_lines,
    run_async,
)
from kace.config import benchmark_preset
from kace.errors import UsageError, counted
from kace.ladder.prompt import templates_hash
from kace.learning.report import (
    CHARS_PER_TOKEN,
    LADDER_ATTEMPTS,
    forecast_attempts,
)
from kace.problems import labelled, load_dataset
from kace.runs.manifest import default_folder
from kace.runs.metrics import clusters_of
from kace.runs.run import Run
from kace.runs.shards import Shard
from kace.runs.table import Table

DATA = click.option(
    "--data",
    "-d",
    default="starter",
    help="starter, techniques, aime25, math-hard, olymmath, gsm8k, or a file of problems.",
)
DRY_RUN = click.option(
    "--dry-run",
    is_flag=True,
    help="Print what it would take, and spend nothing.",
)


@click.command("eval")
@click.option(
    "--system",
    "-s",
    default="tiered",
    help="What is evaluated; `--system list` shows all systems.",
)
@DATA
@click.option(
    "--split",
    default="test",
    help="train, validation or test; techniques also has retest, third and fourth.",
)
@click.option(
    "--seeds",
    default=3,
    type=click.IntRange(1, 100),
    help="Repetitions, each on other samples.",
)
@click.option(
    "--artefact",
    type=PATH,
    help="What kace learn --method wrote; for few-shot and oracle-card, the training file.",
)
@takes(
    "json",
    *SOLVER,
    "ray",
    "tree",
    "profile",
    "limit",
    "shard",
    "batch",
    *CAPS,
    "out",
)
@click.option(
    "--reuse",
    type=PATH,
    multiple=True,
    help="A run whose calls are not paid again for the same requests.",
)
@DRY_RUN
def command(
    options: Options,
    system: str,
    data: str,
    split: str,
    seeds: int,
    artefact: Path | None,
    reuse: tuple[Path, ...],
    dry_run: bool,
) -> None:
    """Evaluate a system on a data set and write a run.

    kace eval --system kace --tree TREE --data starter. The same command resumes a run
    that was stopped. Compare runs with kace report.
    """
    if system == "list":
        rows = [(name, spec.about) for name, spec in SYSTEMS.items()]
        print_lines(aligned(rows, left=2))
        return
    preset = benchmark_preset(data, options.get("model"))
    config = options.config(preset=preset)
    found = labelled(load_dataset(data, split, config), options.get("limit"))
    shard = options.get("shard")
    tree = tree_of(config)
    trial = Trial(
        require(system, tree, artefact).name,
        found,
        config,
        seeds,
        tree,
        artefact,
        Shard.read(shard) if shard is not None else None,
    )
    folder = options.get("out") or trial.folder()
    for other in reuse:
        if not (other / "calls").is_dir():
            raise UsageError(
                f"--reuse {other}: no calls are kept there",
                fix="name the folder of a run that kace eval made",
            )
    if config.tree and open_state(config.tree).frozen is None:
        note(f"kace: warning: {config.tree} is not frozen (kace tree freeze)")
    note_plan(trial, dry_run)
    if dry_run:
        return
    prepare(config)
    finish_trial(trial, trial.open(folder, reuse))
    metrics = Table.open(folder).metrics(config.prices.get(config.model))
    options.show(asdict(metrics), metrics_lines(metrics))
    note(f"run          {folder}")
    note(f"next:        kace report {folder} OTHER_RUN; kace view {folder}")


def note_plan(trial: Trial, dry_run: bool) -> None:
    """Print what a trial is, and what all of it is expected to take."""
    config = trial.config
    caps = {draw.max_tokens for draw in config.tier_sampling().values()}
    size = len(trial.problems)
    note(
        f"kace: {trial.system}: {counted(size, 'problem')} x "
        f"{counted(trial.seeds, 'seed')}, {config.model}, preset {config.preset} "
        f"(at most {max(caps):,} tokens an attempt)"
    )
    attempts = spec_of(trial.system).attempts or LADDER_ATTEMPTS
    chars = sum(len(problem.text) for problem in trial.problems)
    tokens = chars / CHARS_PER_TOKEN * trial.seeds
    found = forecast_attempts(tokens, size * trial.seeds, attempts, config)
    for line in forecast_lines([found]):
        note(f"kace: {line}")
    if dry_run:
        note("kace: nothing was spent")


def finish_trial(
    trial: Trial, opened: Run, system: System | None = None
) -> None:
    """Finish a trial's run, with a progress line in a terminal."""
    with opened as run:
        if len(run):
            note(f"kace: {len(run)} solves were done before")
        with RunProgress(len(trial.problems) * trial.seeds) as progress:
            work = run_trial(
                trial,
                run,
                recalled=progress.recalled,
                observer=progress,
                system=system,
            )
            run_async(work)


@click.command("lift")
@click.option(
    "--skill",
    type=PATH,
    required=True,
    help="A folder with a SKILL.md, a text file, or the text of a card.",
)
@DATA
@click.option(
    "--pairs",
    default=4,
    type=click.IntRange(2, MOST // 2),
    help="Pairs of attempts at each problem: one with the skill, one without.",
)
@takes("json", *SOLVER, "limit", *CAPS, "out")
@DRY_RUN
def lift(
    options: Options,
    skill: Path,
    data: str,
    pairs: int,
    dry_run: bool,
) -> None:
    """Measure whether a SKILL.md, a prompt file or a card helps.

    Of two attempts at a problem, a draw chooses the one that reads the skill. The
    difference comes with an interval, an exact test, and an A/A arm, whose draw changes
    nothing. Front matter is left out; a card is shown as cards are.
    """
    config = options.config(preset=benchmark_preset(data, options.get("model")))
    context = read_skill(skill)
    problems = labelled(
        load_dataset(data, "test", config), options.get("limit")
    )
    trial = Trial(f"best-of-{2 * pairs}", problems, config, 1)
    digest = context.learned_hash
    if context.cards:
        digest = templates_hash(context.cards[0].payload)
    system = {"name": "lift", "skill": digest, "attempts": 2 * pairs}
    manifest = {**trial.manifest, "system": system}
    source = f"{system}{problems.hash}".encode()
    folder = options.get("out") or default_folder(
        f"lift-{problems.name}", manifest, source
    )
    note_plan(trial, dry_run)
    if dry_run:
        return
    prepare(config)
    run = Run(folder, manifest, texts=config.problem_texts)
    finish_trial(trial, run, open_lift(context, config, pairs))
    table = Table.open(folder)
    solutions = table.solutions(texts=False)
    found, sham = lift_of(context, solutions, clusters_of([table], None))
    record = {
        "verdict": found.verdict,
        "lift": asdict(found),
        "sham": asdict(sham),
    }
    lines = (
        f"right        {found.right:,} of {found.made:,} attempts with it, "
        f"{found.right_without:,} of {found.made_without:,} without",
        f"lift         {found.words}",
        f"A/A          {sham.words}, by a draw that changes nothing",
        found.verdict,
    )
    options.show(record, lines)
    note(f"run          {folder}")
