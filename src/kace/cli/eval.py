"""`kace eval`: one system on one data set; or trees against solvers and data sets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import click

from kace.baselines.evaluate import Trial, run_trial
from kace.baselines.systems import SYSTEMS, require, spec_of
from kace.cards.store import open_tree
from kace.cli.data import load_data
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, Options, takes
from kace.cli.solve import metrics_lines
from kace.cli.terminal import (
    RunProgress,
    json_of,
    note,
    print_lines,
    run_async,
)
from kace.config import benchmark_preset, tree_path
from kace.errors import KaceError, UsageError
from kace.runs.compare import Comparison, compare
from kace.runs.shards import Shard
from kace.runs.table import Table

SLUG = re.compile(r"[^A-Za-z0-9._-]+")


@click.command("eval")
@click.option(
    "--system",
    "-s",
    help="What is evaluated; `--system list` shows all systems.",
)
@click.option(
    "--data",
    "-d",
    multiple=True,
    default=["starter"],
    help="A set of `kace data list`, or a JSONL file.",
)
@click.option(
    "--split",
    default="test",
    help="train, validation or test; techniques has a retest too.",
)
@click.option(
    "--model",
    "-m",
    "models",
    multiple=True,
    metavar="NAME",
    help="local/NAME, openai/NAME, anthropic/NAME, replay/RUN.",
)
@click.option(
    "--seeds",
    default=3,
    type=click.IntRange(1, 100),
    help="Repetitions, each on other samples.",
)
@click.option(
    "--tree",
    "trees",
    multiple=True,
    help="The epistemic tree, for systems that read one; or starter.",
)
@click.option(
    "--artefact",
    type=PATH,
    help="What kace learn --method wrote; for oracle-card, the training file.",
)
@click.option(
    "--k",
    type=click.IntRange(min=1),
    help="Cards (8) or demonstrations (2) read by systems that pick single ones.",
)
@takes(
    "json",
    "base_url",
    "service_tier",
    "ray",
    "preset",
    "seed",
    "profile",
    "limit",
    "shard",
    "batch",
    *CAPS,
)
@click.option(
    "--reuse",
    type=PATH,
    multiple=True,
    help="A run whose calls are not paid again for the same requests.",
)
@click.option(
    "--out", type=PATH, help="The run directory; the same command resumes it."
)
def command(
    options: Options,
    system: str | None,
    data: tuple[str, ...],
    split: str,
    models: tuple[str, ...],
    seeds: int,
    trees: tuple[str, ...],
    artefact: Path | None,
    k: int | None,
    reuse: tuple[Path, ...],
    out: Path | None,
) -> None:
    """Evaluate a system on a data set and write a run.

    kace eval --system kace --tree TREE --data starter. Repeat --tree, --model or --data
    to measure how trees transfer: every tree with every solver on every data set, each
    against the ladder without a tree.
    """
    if system == "list":
        width = max(map(len, SYSTEMS))
        print_lines(
            f"{name:{width}}  {spec.about}" for name, spec in SYSTEMS.items()
        )
        return
    paths = [tree_path(tree) for tree in trees]
    if max(len(data), len(models), len(paths)) > 1:
        if system is not None or options.get("shard") is not None:
            raise UsageError(
                "--system and --shard do not go with several trees, models or data sets",
                fix="leave them out",
            )
        folder = out or Path("runs/transfer")
        _transfer(options, data, models, paths, split, seeds, folder)
        return
    model = models[0] if models else None
    tree = paths[0] if paths else None
    preset = benchmark_preset(data[0], model)
    config = options.config(model=model, preset=preset, tree=tree)
    found = load_data(data[0], split, config, limit=options.limit)
    shard = options.get("shard")
    trial = Trial(
        spec_of(system or "tiered").name,
        found,
        config,
        seeds,
        open_tree(tree) if tree else None,
        artefact,
        k,
        Shard.read(shard) if shard is not None else None,
    )
    folder = out or trial.folder()
    began = time.monotonic()
    finish_trial(trial, folder, reuse)
    table = Table.open(folder)
    metrics = table.metrics(config.prices.get(config.model))
    compared = _compare_with_reused(table, reuse)
    if options.as_json:
        row = asdict(metrics) | {"harm": None}
        if compared and compared.harm:
            row["harm"] = asdict(compared.harm)
        print(json_of(json.dumps(row, ensure_ascii=False, default=str)))
    else:
        harm = ""
        if compared and compared.harm:
            harm = f"{compared.harm.words}, against {compared.base}"
        print_lines(metrics_lines(metrics, harm))
    note(f"seconds      {time.monotonic() - began:.0f}")
    note(f"run          {folder}")


def finish_trial(
    trial: Trial, folder: Path, reuse: Sequence[Path] = ()
) -> None:
    """Finish a trial's run, with a progress line in a terminal."""
    require(
        trial.system, trial.tree, trial.artefact, trial.k
    )  # before the folder
    for other in reuse:
        if not (other / "calls").is_dir():
            raise UsageError(
                f"--reuse {other}: no calls are kept there",
                fix="name the folder of a run that kace eval made",
            )
    prepare(trial.config)
    with trial.open(folder, reuse) as run:
        if len(run):
            note(f"kace: {len(run)} solves were done before")
        with RunProgress(len(trial.problems) * trial.seeds) as progress:
            work = run_trial(
                trial, run, recalled=progress.solved, observer=progress
            )
            run_async(work, resumable=True)


def _compare_with_reused(
    table: Table, reuse: Sequence[Path]
) -> Comparison | None:
    """Compare with the first run of `reuse` that has solves in common."""
    for folder in reuse:
        with suppress(KaceError):
            return compare(Table.open(folder), table)
    return None


def _transfer(
    options: Options,
    data: Sequence[str],
    models: Sequence[str],
    paths: Sequence[Path],
    split: str,
    seeds: int,
    out: Path,
) -> None:
    """Evaluate every tree with every solver on every data set, against the ladder alone."""
    trees = {path.name: open_tree(path) for path in paths}
    if not trees or len(trees) < len(paths):
        raise UsageError(
            "each tree needs a name of its own",
            fix="give --tree for each; rename equal folders",
        )
    rows = []
    for name, model in product(data, models or (None,)):
        preset = benchmark_preset(name, model)
        config = options.config(model=model, preset=preset)
        found = load_data(name, split, config, limit=options.limit)
        folder = (
            out / _slug(f"{found.name}-{found.split}") / _slug(config.model)
        )
        base = _run_trial(
            Trial("tiered", found, config, seeds), folder / "tiered"
        )
        row: dict[str, Any] = {
            "data": found.name,
            "model": config.model,
            "tiered": base.metrics().accuracy,
            "trees": {},
        }
        print_lines([] if options.as_json else metrics_lines(base.metrics()))
        for title, tree in trees.items():
            trial = Trial("kace", found, config, seeds, tree)
            other = _run_trial(trial, folder / _slug(title))
            compared = compare(base, other)
            row["trees"][title] = asdict(compared)
            if not options.as_json:
                print(f"{title}: {compared.sentence}")
        rows.append(row)
    if options.as_json:
        print(json_of(rows))


def _run_trial(trial: Trial, folder: Path) -> Table:
    note(f"kace: {folder}")
    finish_trial(trial, folder)
    return Table.open(folder)


def _slug(name: str) -> str:
    return SLUG.sub("-", name).strip("-.") or "run"
