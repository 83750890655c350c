"""`kace eval`: one system on one data set, over several seeds."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines, write_output
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.config import Config
    from kace.datasets.registry import Dataset
    from kace.evaluation.trial import Trial
    from kace.solver.run import Run

BENCHMARK_PRESETS = {"aime25": "aime25", "math_hard": "math-hard", "olymmath": "olymmath", "gsm8k": "math-hard"}


def evaluate(
    system: str = typer.Option("tiered", "--system", "-s", help="What is evaluated; `--system list` shows them all."),
    data: str = typer.Option("starter", "--data", "-d", help="starter, aime25, math_hard, olymmath, gsm8k or a JSONL."),
    split: str = typer.Option("test", help="train, validation or test."),
    data_dir: Path = typer.Option(None, help="A folder with the data sets' files; else they are fetched and kept."),
    field: list[str] = typer.Option([], help="Where a JSONL keeps a field: problem=question, answer=target, id=name."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems."),
    model: str = typer.Option(None, "--model", "-m", help="The solver: local/NAME, openai/NAME, replay/RUN."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME."),
    preset: str = typer.Option(None, help="Temperatures and token caps; by default those of the benchmark."),
    seeds: int = typer.Option(3, min=1, max=100, help="Repetitions, each on other samples."),
    seed: int = typer.Option(None, help="The first seed."),
    tree: Path = typer.Option(None, help="The epistemic tree, for systems that read one."),
    artefact: Path = typer.Option(None, help="What kace train wrote, for systems that were trained."),
    k: int = typer.Option(8, min=1, help="Cards read by systems that pick single cards."),
    max_card_tokens: int = typer.Option(None, help="Cut a larger block to this many tokens (default 5,000)."),
    max_cards: int = typer.Option(None, help="Read at most so many cards: the best-ranked of the block."),
    min_relevance: float = typer.Option(None, help="Telling words a worked card must share (default 2; paper: 0)."),
    place_by: str = typer.Option(None, help="Who names a problem's domain: model (a call), words or cards (none)."),
    cards_at: str = typer.Option(None, help="Where cards stand: turns (default), instructions (the paper) or problem."),
    rank_by: str = typer.Option(None, help="Rank such a block by words or by meaning."),
    refine_domain: bool = typer.Option(None, "--refine-domain", help="Classify again after a failed MS."),
    reuse: list[Path] = typer.Option([], help="A run whose calls are not paid again where the same is asked."),
    out: Path = typer.Option(None, help="The run directory; the same command goes on in it."),
    temperature: float = typer.Option(None, help="Override the temperature of every tier."),
    max_tokens: int = typer.Option(None, help="Override the token cap of every tier."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    timeout: float = typer.Option(None, help="Seconds for one call."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made."),
    max_usd: float = typer.Option(None, help="Stop before more money than this is spent."),
    as_json: bool = typer.Option(False, "--json", help="The metrics as JSON on standard output."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Evaluate a system on a data set and write a run: kace eval --system kace --tree TREE --data starter."""
    from kace.config import load_config
    from kace.evaluation.trial import Trial
    from kace.tree.store import open_tree

    if system == "list":
        return _list()
    flags = {
        "model": model,
        "base_url": base_url,
        "preset": preset or benchmark_preset(data, model),
        "seed": seed,
        "max_card_tokens": max_card_tokens,
        "max_cards": max_cards,
        "min_relevance": min_relevance,
        "place_by": place_by,
        "cards_at": cards_at,
        "rank_by": rank_by,
        "refine_domain": refine_domain or None,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "max_connections": max_connections,
        "timeout": timeout,
        "max_calls": max_calls,
        "max_usd": max_usd,
    }
    config = load_config(flags, file=config_file)
    found = load_data(data, split, config, data_dir=data_dir, field=field, limit=limit)
    trial = Trial(system, found, config, seeds, open_tree(tree) if tree else None, artefact, k)
    _evaluate(trial, out or trial.folder(), reuse, as_json=as_json)


def benchmark_preset(data: str, model: str | None) -> str | None:
    """The preset a data set comes with; an embedded model keeps its own, being far smaller than the paper's."""
    embedded = model is None or model.startswith("local/")
    return None if embedded else BENCHMARK_PRESETS.get(data.replace("-", "_"))


def load_data(
    name: str, split: str, config: Config, *, data_dir: Path | None, field: list[str], limit: int | None
) -> Dataset:
    """The problems of a split, all labelled."""
    from dataclasses import replace

    from kace.cli.solve import field_map
    from kace.datasets.fingerprint import set_hash
    from kace.datasets.registry import load

    cache = config.cache_dir / "data"
    data = load(name, split, data_dir=data_dir, cache=cache, hub=config.hub, fields=field_map(field))
    if bare := next((problem for problem in data.problems if problem.answer is None), None):
        raise UsageError(f"{name}: problem {bare.name!r} has no answer", fix="an evaluation needs labelled problems")
    for line in data.notes:
        note(f"kace: {data.name}: {line}")
    if not limit:
        return data
    problems = data.problems[:limit]
    return replace(data, problems=problems, hash=set_hash(problems))


def _list() -> None:
    from kace.systems.base import SYSTEMS

    width = max(map(len, SYSTEMS))
    print_lines(f"{name:<{width}}  {spec.about}" for name, spec in SYSTEMS.items())


def _evaluate(trial: Trial, folder: Path, reuse: list[Path], *, as_json: bool) -> None:
    from kace.cli.weights import ensure_weights

    ensure_weights(trial.config)
    if strange := next((each for each in reuse if not (each / "calls").is_dir()), None):
        raise UsageError(
            f"--reuse {strange}: no calls are kept there", fix="name the folder of a run that kace eval made"
        )
    began = time.monotonic()
    with trial.open(folder, reuse) as run:
        go_on(trial, run)
    show_metrics(trial, folder, as_json=as_json)
    note(f"seconds      {time.monotonic() - began:.0f}")
    note(f"run          {folder}")


def go_on(trial: Trial, run: Run) -> None:
    """Finish a trial's run, with a live table where there is a terminal."""
    from kace.cli.live import LiveTable, terminal
    from kace.cli.running import run_async
    from kace.evaluation.trial import run_trial
    from kace.solver.trace import SolveRecord

    table = LiveTable(len(trial.data.problems) * trial.seeds) if terminal() else None

    def recalled(record: SolveRecord) -> None:
        if table:
            table.add(record)

    if len(run):
        note(f"kace: {len(run)} solves were done before")
    with table or nullcontext():
        run_async(run_trial(trial, run, recalled=recalled, observer=table), resumable=True)


def show_metrics(trial: Trial, folder: Path, *, as_json: bool) -> None:
    """What the run adds up to."""
    from dataclasses import asdict

    from kace.cli.metrics_show import metrics_lines
    from kace.evaluation.arm import read_arm
    from kace.evaluation.metrics import metrics_of

    arm = read_arm(folder)
    found = metrics_of(arm, trial.config.price_table().get(trial.config.model))
    if as_json:
        write_output(json.dumps(asdict(found), ensure_ascii=False, default=str) + "\n", None)
    else:
        print_lines(metrics_lines(found))
