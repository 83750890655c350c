"""`kace eval`: one system on one data set, over several seeds; or trees against solvers and data sets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from kace.baselines.registry import SYSTEMS, require, spec_of
from kace.baselines.trial import Trial, run_trial
from kace.cards.store import open_tree
from kace.cli.data import load_data
from kace.cli.models import prepare
from kace.cli.options import (
    CAPS,
    DATA,
    MODEL,
    OUTPUT,
    TREE,
    Typed,
    command,
    new_app,
    option,
)
from kace.cli.streams import (
    escaped,
    json_of,
    note,
    print_lines,
    run_async,
    write_output,
)
from kace.cli.terminal import RunProgress
from kace.config import benchmark_preset, tree_path
from kace.errors import KaceError, UsageError
from kace.runs.compare import Comparison, compare
from kace.runs.metrics import Metrics
from kace.runs.shards import Shard
from kace.runs.table import SolveFilter, Table
from kace.words import counted

app = new_app()


@command(
    app,
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
def evaluate(
    typed: Typed,
    as_json: bool,
    system: str = option(
        MODEL,
        None,
        "--system",
        "-s",
        help="What is evaluated; `--system list` shows all.",
    ),
    data: list[str] = option(
        DATA,
        ["starter"],
        "--data",
        "-d",
        help="A set of `kace data list`, or a JSONL file.",
    ),
    split: str = option(
        DATA, "test", help="train, validation or test; techniques has a retest too."
    ),
    model: list[str] = option(
        MODEL,
        [],
        "--model",
        "-m",
        help="local/NAME, openai/NAME, anthropic/NAME, replay/RUN.",
    ),
    seeds: int = option(
        MODEL, 3, min=1, max=100, help="Repetitions, each on other samples."
    ),
    tree: list[Path] = option(
        TREE,
        [],
        help="The epistemic tree, for systems that read one; or starter.",
        parser=tree_path,
        metavar="PATH",
    ),
    artefact: Path = option(
        TREE,
        None,
        help="What kace learn --method wrote; for oracle-card, the training file.",
    ),
    k: int = option(
        TREE,
        None,
        min=1,
        help="Cards (8) or demonstrations (2) read by systems that pick single ones.",
    ),
    reuse: list[Path] = option(
        OUTPUT, [], help="A run whose calls are not paid again where the same is asked."
    ),
    out: Path = option(
        OUTPUT, None, help="The run directory; the same command resumes it."
    ),
) -> None:
    """Evaluate a system on a data set and write a run.

    kace eval --system kace --tree TREE --data starter. Repeat --tree, --model or --data to measure how trees transfer:
    every tree with every solver on every data set, each against the ladder without a tree.
    """
    if system == "list":
        return print_lines(
            f"{name:<{max(map(len, SYSTEMS))}}  {spec.about}"
            for name, spec in SYSTEMS.items()
        )
    if max(len(data), len(model), len(tree)) > 1:
        if system is not None:
            raise UsageError(
                "--system does not go with several trees, models or data sets",
                fix="leave it out",
            )
        if typed.shard is not None:
            raise UsageError(
                "--shard does not go with several trees, models or data sets",
                fix="evaluate one of each",
            )
        return _transfer(
            typed, data, model, tree, split, seeds, out or Path("runs/transfer")
        )
    solver = next(iter(model), None)
    place = next(iter(tree), None)
    config = typed.config(
        model=solver, preset=benchmark_preset(data[0], solver), tree=place
    )
    found = load_data(data[0], split, config, limit=typed.limit)
    cards = open_tree(place) if place else None
    shard = None if typed.shard is None else Shard.read(typed.shard)
    trial = Trial(
        spec_of(system or "tiered").name,
        found,
        config,
        seeds,
        cards,
        artefact,
        k,
        shard,
    )
    folder = out or trial.folder()
    began = time.monotonic()
    finish_trial(trial, folder, reuse)
    arm = Table.open(folder)
    figures = arm.metrics(config.prices.get(config.model))
    compared = _against_reused(arm, reuse)
    if as_json:
        told = asdict(figures) | {
            "harm": compared and compared.harm and asdict(compared.harm)
        }
        write_output(
            escaped(json.dumps(told, ensure_ascii=False, default=str)) + "\n", None
        )
    else:
        print_lines(_metrics_lines(figures, compared))
    note(f"seconds      {time.monotonic() - began:.0f}")
    note(f"run          {folder}")


def finish_trial(trial: Trial, folder: Path, reuse: list[Path]) -> None:
    """Finish a trial's run, in a terminal with a line that says how it goes."""
    require(
        trial.system, trial.tree, trial.artefact, trial.k
    )  # before there is a folder
    if strange := next((each for each in reuse if not (each / "calls").is_dir()), None):
        fix = "name the folder of a run that kace eval made"
        raise UsageError(f"--reuse {strange}: no calls are kept there", fix=fix)
    prepare(trial.config)
    with trial.open(folder, reuse) as run:
        if len(run):
            note(f"kace: {len(run)} solves were done before")
        with RunProgress(len(trial.problems) * trial.seeds) as progress:
            run_async(
                run_trial(trial, run, recalled=progress.solved, observer=progress),
                resumable=True,
            )


def _against_reused(arm: Table, reuse: list[Path]) -> Comparison | None:
    """The arm against the first run whose calls it reuses and that has solves in common with it."""
    for folder in reuse:
        with suppress(KaceError):
            return compare(Table.open(folder), arm)
    return None


def _transfer(
    typed: Typed,
    data: list[str],
    models: list[str],
    trees: list[Path],
    split: str,
    seeds: int,
    out: Path,
) -> None:
    """Every tree with every solver on every data set, each against the ladder without a tree."""
    named = {tree.name: open_tree(tree) for tree in trees}
    if not named or len(named) < len(trees):
        raise UsageError(
            "each tree needs a name of its own",
            fix="give --tree for each; rename equal folders",
        )
    lines = []
    rows = []
    for name in data:
        solvers: list[str | None] = [*models] or [None]
        configs = [
            typed.config(model=model, preset=benchmark_preset(name, model))
            for model in solvers
        ]
        found = load_data(name, split, configs[0], limit=typed.limit)
        for config in configs:
            place = out / _slug(f"{found.name}-{found.split}") / _slug(config.model)
            base = _transfer_arm(
                Trial("tiered", found, config, seeds), place / "tiered"
            )
            accuracy = base.count(SolveFilter(right="yes")) / len(base)
            lines.append(
                f"{found.name}, {config.model}: the ladder alone {accuracy:.1%}"
            )
            told = dict[str, object]()
            for tree, cards in named.items():
                seen = compare(
                    base,
                    _transfer_arm(
                        Trial("kace", found, config, seeds, cards), place / _slug(tree)
                    ),
                )
                told[tree] = asdict(seen)
                low = 100 * seen.interval.low
                high = 100 * seen.interval.high
                share = f"{seen.other_accuracy:6.1%}  {100 * seen.difference:+5.1f} [{low:+.1f}, {high:+.1f}]"
                lines.append(f"  {tree:<24} {share}  p {seen.p:.3f}, {seen.size}")
                lines += [f"    cards {seen.harm.words}"] if seen.harm else []
            rows.append(
                {
                    "data": found.name,
                    "model": config.model,
                    "tiered": accuracy,
                    "trees": told,
                }
            )
    print_lines([json_of(rows)] if typed.as_json else lines)


def _transfer_arm(trial: Trial, folder: Path) -> Table:
    note(f"kace: {folder}")
    finish_trial(trial, folder, [])
    return Table.open(folder)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"


def _metrics_lines(found: Metrics, compared: Comparison | None) -> Iterator[str]:
    """The figures of one arm, the headline first."""
    yield f"{found.name}: {found.problems} problems, {found.solves} solves, {found.model}"
    if found.accuracy is not None and found.wilson and found.interval:
        wilson, bootstrap = (
            f"[{100 * low:.1f}, {100 * high:.1f}]"
            for low, high in (found.wilson, found.interval)
        )
        over = f"over {counted(found.clusters, found.cluster)}"
        yield f"accuracy     {100 * found.accuracy:.1f} %  Wilson {wilson}  bootstrap {bootstrap}  {over}"
        yield "by seed      " + "  ".join(
            f"{score.seed}: {score.right}/{score.n}" for score in found.seeds
        )
    if found.failed:
        without = found.accuracy_without_failed
        said = f"; without them {100 * without:.1f} %" if without is not None else ""
        yield f"failed       {found.failed} solves lost a call and count as they stand{said}"
    routed = (
        f", {found.classifier_calls:.2f} to choose what it reads"
        if found.classifier_calls
        else ""
    )
    real = f"{found.real_calls:.2f} really made{routed}"
    yield f"calls        {found.paper_calls:.2f} a problem by the paper's count, {real}"
    yield f"tokens       {found.input:.0f} in ({found.cached:.0f} cached), {found.output:.0f} out, a solve"
    if read := found.card_tokens:
        size = f"{'about ' if read.estimated else ''}{read.mean_when_read:.0f}"
        yield f"read         {size} tokens of learned text where any was read"
    if compared and compared.harm:
        yield f"cards        {compared.harm.words}, against {compared.base}"
    elif found.shown or found.abstained:
        yield f"cards        shown on {counted(found.shown, 'solve')}, abstained on {found.abstained:,}"
    if found.exits:
        yield "exits        " + "  ".join(
            f"{path.value} {count}" for path, count in found.exits.items()
        )
    if (pairs := found.concordance) and pairs.share is not None:
        yield f"concordance  {pairs.concordant:g} of {pairs.pairs} pairs = {100 * pairs.share:.1f} %"
    if found.cost.usd is not None:
        yield f"cost         {found.cost.usd:.4f} USD"
