"""`kace eval`: one system on one data set, over several seeds; or trees against solvers and data sets."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kace.cli.options import CAPS, DATA, MODEL, OUTPUT, TREE, Typed, option, takes
from kace.cli.streams import note, print_lines, run_async, write_output
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.datasets.loader import Dataset
    from kace.evaluation.metrics import Metrics
    from kace.evaluation.trial import Trial

BENCHMARK_PRESETS = {"aime25": "aime25", "math-hard": "math-hard", "olymmath": "olymmath", "gsm8k": "math-hard"}


@takes("base_url", "preset", "seed", "profile", "set_", "field", "limit", "data_dir", *CAPS, "no_texts", "as_json",
       "config_file")  # fmt: skip
def evaluate(
    typed: Typed,
    system: str = option(MODEL, None, "--system", "-s", help="What is evaluated; `--system list` shows all."),
    data: list[str] = option(
        DATA, ["starter"], "--data", "-d", help="starter, aime25, math-hard, olymmath, gsm8k or a JSONL."
    ),
    split: str = option(DATA, "test", help="train, validation or test."),
    model: list[str] = option(MODEL, [], "--model", "-m", help="local/NAME, openai/NAME, anthropic/NAME, replay/RUN."),
    seeds: int = option(MODEL, 3, min=1, max=100, help="Repetitions, each on other samples."),
    tree: list[Path] = option(TREE, [], help="The epistemic tree, for systems that read one."),
    artefact: Path = option(TREE, None, help="What kace learn --method wrote, for systems that read it."),
    k: int = option(TREE, 8, min=1, help="Cards read by systems that pick single cards."),
    reuse: list[Path] = option(OUTPUT, [], help="A run whose calls are not paid again where the same is asked."),
    out: Path = option(OUTPUT, None, help="The run directory; the same command resumes it."),
) -> None:
    """Evaluate a system on a data set and write a run.

    kace eval --system kace --tree TREE --data starter. Repeat --tree, --model or --data to measure how trees transfer:
    every tree with every solver on every data set, each against the ladder without a tree.
    """
    from kace.evaluation.trial import Trial
    from kace.systems.registry import SYSTEMS, spec_of
    from kace.tree.store import open_tree

    if system == "list":
        return print_lines(f"{name:<{max(map(len, SYSTEMS))}}  {spec.about}" for name, spec in SYSTEMS.items())
    if max(len(data), len(model), len(tree)) > 1:
        if system is not None:
            raise UsageError("--system does not go with several trees, models or data sets", fix="leave it out")
        return _transfer(typed, data, model, tree, split, seeds, out or Path("runs/transfer"))
    solver, place = next(iter(model), None), next(iter(tree), None)
    config = typed.config(model=solver, preset=benchmark_preset(data[0], solver), tree=place)
    found = load_data(data[0], split, config, typed)
    trial = Trial(
        spec_of(system or "tiered").name, found, config, seeds, open_tree(place) if place else None, artefact, k
    )
    _evaluate(trial, out or trial.folder(), reuse, as_json=typed.as_json)


def benchmark_preset(data: str, model: str | None) -> str | None:
    """The preset a data set comes with; an embedded model keeps its own, being far smaller than the paper's."""
    embedded = model is None or model.startswith("local/")
    return None if embedded else BENCHMARK_PRESETS.get(data.replace("_", "-"))


def load_data(name: str, split: str, config: Config, typed: Typed) -> Dataset:
    """The problems of a split, all labelled."""
    from kace.datasets.loader import load, set_hash

    cache = config.cache_dir / "data"
    fields = typed.fields if "field" in typed.values else None
    data = load(name, split, data_dir=typed.data_dir, cache=cache, hub=config.hub, fields=fields)
    if bare := next((problem for problem in data.problems if problem.answer is None), None):
        raise UsageError(f"{name}: problem {bare.name!r} has no answer", fix="an evaluation needs labelled problems")
    for line in data.notes:
        note(f"kace: {data.name}: {line}")
    problems = data.problems[: typed.limit]
    return replace(data, problems=problems, hash=set_hash(problems)) if typed.limit else data


def _evaluate(trial: Trial, folder: Path, reuse: list[Path], *, as_json: bool) -> None:
    from kace.evaluation.arm import read_arm
    from kace.evaluation.metrics import metrics_of

    began = time.monotonic()
    _finish(trial, folder, reuse)
    found = metrics_of(read_arm(folder), trial.config.price_table().get(trial.config.model))
    if as_json:
        write_output(json.dumps(asdict(found), ensure_ascii=False, default=str) + "\n", None)
    else:
        print_lines(metrics_lines(found))
    note(f"seconds      {time.monotonic() - began:.0f}")
    note(f"run          {folder}")


def _finish(trial: Trial, folder: Path, reuse: list[Path]) -> None:
    """Finish a trial's run, with a live table where there is a terminal."""
    from kace.cli.models import ensure_weights
    from kace.cli.terminal import LiveTable, terminal
    from kace.evaluation.trial import run_trial

    ensure_weights(trial.config)
    if strange := next((each for each in reuse if not (each / "calls").is_dir()), None):
        fix = "name the folder of a run that kace eval made"
        raise UsageError(f"--reuse {strange}: no calls are kept there", fix=fix)
    table = LiveTable(len(trial.data.problems) * trial.seeds) if terminal() else None
    with trial.open(folder, reuse) as run:
        if len(run):
            note(f"kace: {len(run)} solves were done before")
        with table or nullcontext():
            known = table.add if table else lambda record: None
            run_async(run_trial(trial, run, recalled=known, observer=table), resumable=True)


def _transfer(
    typed: Typed, data: list[str], models: list[str], trees: list[Path], split: str, seeds: int, out: Path
) -> None:
    from kace.evaluation.trial import transfer_rows, transfer_runs
    from kace.tree.store import open_tree

    named = [(tree.name, open_tree(tree)) for tree in trees]
    if not named or len({name for name, _ in named}) < len(named):
        raise UsageError("each tree needs a name of its own", fix="give --tree for each; rename equal folders")
    done = []
    for name in data:
        solvers: list[str | None] = [*models] or [None]
        configs = [typed.config(model=model, preset=benchmark_preset(name, model)) for model in solvers]
        found = load_data(name, split, configs[0], typed)
        for each in transfer_runs(named, configs, found, seeds=seeds, out=out):
            note(f"kace: {each.folder}")
            _finish(each.trial, each.folder, [])
            done.append(each)
    lines, rows = [], []
    for where, solver, accuracy, compared in transfer_rows(done):
        told = {name: asdict(seen) for name, seen in compared.items()}
        rows.append({"data": where, "model": solver, "tiered": accuracy, "trees": told})
        lines.append(f"{where}, {solver}: the ladder alone {100 * accuracy:.1f} %")
        for name, seen in compared.items():
            low, high = 100 * seen.interval.low, 100 * seen.interval.high
            share = f"{100 * seen.other_accuracy:5.1f} %  {100 * seen.difference:+5.1f} [{low:+.1f}, {high:+.1f}]"
            lines.append(f"  {name:<24} {share}  p {seen.p:.3f}, {seen.n} problems")
    if typed.as_json:
        write_output(json.dumps(rows, ensure_ascii=False) + "\n", None)
    else:
        print_lines(lines)


def metrics_lines(found: Metrics) -> list[str]:
    """The figures of one arm, the headline first."""
    lines = [f"{found.name}: {found.problems} problems, {found.solves} solves, {found.model}"]
    if found.accuracy is not None and found.wilson and found.interval:
        wilson, bootstrap = (f"[{100 * low:.1f}, {100 * high:.1f}]" for low, high in (found.wilson, found.interval))
        lines.append(f"accuracy     {100 * found.accuracy:.1f} %  Wilson {wilson}  bootstrap {bootstrap}")
        by_seed = "  ".join(f"{score.seed}: {score.right}/{score.n}" for score in found.seeds)
        lines.append(f"by seed      {by_seed}")
    if found.failed:
        without = found.accuracy_without_failed
        said = f"; without them {100 * without:.1f} %" if without is not None else ""
        lines.append(f"failed       {found.failed} solves lost a call and count as they stand{said}")
    routed = f", {found.classifier_calls:.2f} to choose what it reads" if found.classifier_calls else ""
    calls = f"{found.paper_calls:.2f} a problem by the paper's count, {found.real_calls:.2f} really made{routed}"
    lines.append(f"calls        {calls}")
    lines.append(f"tokens       {found.input:.0f} in ({found.cached:.0f} cached), {found.output:.0f} out, a solve")
    if read := found.card_tokens:
        size = f"{'about ' if read.estimated else ''}{read.mean_when_read:.0f}"
        lines.append(f"read         {size} tokens of learned text where any was read")
    if found.exits:
        lines.append("exits        " + "  ".join(f"{path.value} {count}" for path, count in found.exits.items()))
    if (pairs := found.concordance) and pairs.share is not None:
        lines.append(f"concordance  {pairs.concordant:g} of {pairs.pairs} pairs = {100 * pairs.share:.1f} %")
    if found.cost.usd is not None:
        lines.append(f"cost         {found.cost.usd:.4f} USD")
    return lines
