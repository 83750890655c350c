"""`kace eval`: one system on one data set; or trees against solvers and data sets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kace.baselines.registry import SYSTEMS, require, spec_of
from kace.baselines.trial import Trial, run_trial
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.data import load_data
from kace.cli.models import prepare
from kace.cli.options import CAPS, PATH, Options, takes
from kace.cli.terminal import (
    RunProgress,
    escaped,
    json_of,
    note,
    print_lines,
    run_async,
    write_output,
)
from kace.config import Config, benchmark_preset, tree_path
from kace.errors import KaceError, UsageError
from kace.problems import Dataset
from kace.runs.compare import Comparison, compare
from kace.runs.metrics import Metrics
from kace.runs.shards import Shard
from kace.runs.table import SolveFilter, Table
from kace.words import counted

SLUG = re.compile(r"[^A-Za-z0-9._-]+")


@click.command("eval")
@click.option(
    "--system", "-s", help="What is evaluated; `--system list` shows all systems."
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
        print_lines(f"{name:{width}}  {spec.about}" for name, spec in SYSTEMS.items())
        return
    paths = [tree_path(tree) for tree in trees]
    if max(len(data), len(models), len(paths)) > 1:
        _transfer(options, system, data, models, paths, split, seeds, out)
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
        harm = compared.harm if compared else None
        row = asdict(metrics) | {"harm": asdict(harm) if harm else None}
        line = json.dumps(row, ensure_ascii=False, default=str)
        write_output(escaped(line) + "\n", None)
    else:
        print_lines(_metrics_lines(metrics, compared))
    note(f"seconds      {time.monotonic() - began:.0f}")
    note(f"run          {folder}")


def finish_trial(trial: Trial, folder: Path, reuse: Sequence[Path] = ()) -> None:
    """Finish a trial's run, with a progress line in a terminal."""
    require(trial.system, trial.tree, trial.artefact, trial.k)  # before the folder
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
            work = run_trial(trial, run, recalled=progress.solved, observer=progress)
            run_async(work, resumable=True)


def _compare_with_reused(table: Table, reuse: Sequence[Path]) -> Comparison | None:
    """Compare with the first run of `reuse` that has solves in common."""
    for folder in reuse:
        with suppress(KaceError):
            return compare(Table.open(folder), table)
    return None


def _transfer(
    options: Options,
    system: str | None,
    data: Sequence[str],
    models: Sequence[str],
    paths: Sequence[Path],
    split: str,
    seeds: int,
    out: Path | None,
) -> None:
    """Evaluate every tree with every solver on every data set, against the ladder alone."""
    several = "does not go with several trees, models or data sets"
    if system is not None:
        raise UsageError(f"--system {several}", fix="leave it out")
    if options.get("shard") is not None:
        raise UsageError(f"--shard {several}", fix="evaluate one of each")
    trees = {path.name: open_tree(path) for path in paths}
    if not trees or len(trees) < len(paths):
        raise UsageError(
            "each tree needs a name of its own",
            fix="give --tree for each; rename equal folders",
        )
    rows = []
    for name in data:
        configs = []
        for model in models or (None,):
            preset = benchmark_preset(name, model)
            configs.append(options.config(model=model, preset=preset))
        found = load_data(name, split, configs[0], limit=options.limit)
        folder = (out or Path("runs/transfer")) / _slug(f"{found.name}-{found.split}")
        for config in configs:
            place = folder / _slug(config.model)
            rows.append(_transfer_row(found, config, seeds, trees, place))
    if options.as_json:
        print_lines([json_of([_json_row(row) for row in rows])])
    else:
        print_lines(line for row in rows for line in _transfer_lines(row))


def _transfer_row(
    data: Dataset,
    config: Config,
    seeds: int,
    trees: dict[str, EpistemicTree],
    folder: Path,
) -> dict[str, Any]:
    base = _run_trial(Trial("tiered", data, config, seeds), folder / "tiered")
    right = base.count(SolveFilter(right="yes"))
    compared = {}
    for name, tree in trees.items():
        trial = Trial("kace", data, config, seeds, tree)
        compared[name] = compare(base, _run_trial(trial, folder / _slug(name)))
    return {
        "data": data.name,
        "model": config.model,
        "tiered": right / len(base),
        "trees": compared,
    }


def _run_trial(trial: Trial, folder: Path) -> Table:
    note(f"kace: {folder}")
    finish_trial(trial, folder)
    return Table.open(folder)


def _json_row(row: dict[str, Any]) -> dict[str, Any]:
    trees = {name: asdict(compared) for name, compared in row["trees"].items()}
    return {**row, "trees": trees}


def _transfer_lines(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['data']}, {row['model']}: the ladder alone {row['tiered']:.1%}"
    for name, compared in row["trees"].items():
        low = 100 * compared.interval.low
        high = 100 * compared.interval.high
        change = f"{100 * compared.difference:+5.1f} [{low:+.1f}, {high:+.1f}]"
        accuracy = f"{compared.other_accuracy:6.1%}"
        yield f"  {name:<24} {accuracy}  {change}  p {compared.p:.3f}, {compared.size}"
        if compared.harm:
            yield f"    cards {compared.harm.words}"


def _slug(name: str) -> str:
    return SLUG.sub("-", name).strip("-.") or "run"


def _metrics_lines(metrics: Metrics, compared: Comparison | None) -> Iterator[str]:
    """Yield the figures of a run, the headline first."""
    m = metrics
    yield f"{m.name}: {m.problems} problems, {m.solves} solves, {m.model}"
    if m.accuracy is not None and m.wilson and m.interval:
        yield (
            f"accuracy     {100 * m.accuracy:.1f} %  Wilson {_percent(m.wilson)}  "
            f"bootstrap {_percent(m.interval)}  over {counted(m.clusters, m.cluster)}"
        )
        seeds = [f"{score.seed}: {score.right}/{score.n}" for score in m.seeds]
        yield f"by seed      {'  '.join(seeds)}"
    if m.failed:
        without = m.accuracy_without_failed
        rest = "" if without is None else f"; without them {100 * without:.1f} %"
        yield f"failed       {m.failed} solves lost a call and count as they stand{rest}"
    routed = ""
    if m.classifier_calls:
        routed = f", {m.classifier_calls:.2f} to choose what it reads"
    yield (
        f"calls        {m.paper_calls:.2f} per problem by the paper's count, "
        f"{m.real_calls:.2f} really made{routed}"
    )
    yield (
        f"tokens       {m.input:.0f} in ({m.cached:.0f} cached), {m.output:.0f} out, "
        "per solve"
    )
    if m.card_tokens:
        about = "about " if m.card_tokens.estimated else ""
        size = f"{about}{m.card_tokens.mean_when_read:.0f}"
        yield f"read         {size} tokens of learned text where any was read"
    if compared and compared.harm:
        yield f"cards        {compared.harm.words}, against {compared.base}"
    elif m.shown or m.abstained:
        shown = counted(m.shown, "solve")
        yield f"cards        shown on {shown}, abstained on {m.abstained:,}"
    if m.exits:
        exits = [f"{path.value} {count}" for path, count in m.exits.items()]
        yield f"exits        {'  '.join(exits)}"
    pairs = m.concordance
    if pairs and pairs.share is not None:
        share = (
            f"{pairs.concordant:g} of {pairs.pairs} pairs = {100 * pairs.share:.1f} %"
        )
        yield f"concordance  {share}"
    if m.cost.usd is not None:
        yield f"cost         {m.cost.usd:.4f} USD"


def _percent(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"[{100 * low:.1f}, {100 * high:.1f}]"
