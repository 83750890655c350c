"""`kace transfer`: do trees help other solvers, and on other problems?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines, write_output
from kace.errors import UsageError

if TYPE_CHECKING:
    from kace.evaluation.transfer import Journey


def transfer(
    trees: list[Path] = typer.Option(..., "--trees", help="A tree; give the option once for each."),
    models: list[str] = typer.Option(..., "--models", help="A solver; give the option once for each."),
    data: list[str] = typer.Option(..., "--data", help="A data set or JSONL; give the option once for each."),
    split: str = typer.Option("test", help="train, validation or test."),
    data_dir: Path = typer.Option(None, help="A folder with the data sets' files; else they are fetched and kept."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of each data set."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for openai/NAME solvers."),
    preset: str = typer.Option(None, help="Temperatures and token caps; by default those of each benchmark."),
    seeds: int = typer.Option(3, min=1, max=100, help="Repetitions, each on other samples."),
    out: Path = typer.Option(Path("runs/transfer"), help="Where the runs go; the same command goes on there."),
    max_connections: int = typer.Option(None, help="Calls under way at once; left out, it adapts."),
    max_tokens: int = typer.Option(None, help="Override the token cap of every tier."),
    max_calls: int = typer.Option(None, help="Stop before more calls than this are made, in each run."),
    as_json: bool = typer.Option(False, "--json", help="The matrix as JSON on standard output."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Evaluate trees against solvers and data sets, each against the ladder without a tree."""
    from kace.cli.eval import benchmark_preset, go_on, load_data
    from kace.cli.weights import ensure_weights
    from kace.config import load_config
    from kace.evaluation.transfer import journeys, passages
    from kace.tree.store import open_tree

    named = [(tree.name, open_tree(tree)) for tree in trees]
    if len({name for name, _ in named}) < len(named):
        raise UsageError("two trees have the same name", fix="rename one of their folders")
    done = []
    for set_name in data:
        configs = [
            load_config(
                {
                    "model": model,
                    "preset": preset or benchmark_preset(set_name, model),
                    "base_url": base_url,
                    "max_connections": max_connections,
                    "max_tokens": max_tokens,
                    "max_calls": max_calls,
                },
                file=config_file,
            )
            for model in models
        ]
        found = load_data(set_name, split, configs[0], data_dir=data_dir, field=[], limit=limit)
        for passage in passages(named, configs, [found], seeds=seeds, out=out):
            ensure_weights(passage.trial.config)
            note(f"kace: {passage.folder}")
            with passage.trial.open(passage.folder) as run:
                go_on(passage.trial, run)
            done.append(passage)
    matrix = journeys(done)
    if as_json:
        write_output(json.dumps([_row(journey) for journey in matrix], ensure_ascii=False) + "\n", None)
    else:
        print_lines(line for journey in matrix for line in journey_lines(journey))


def journey_lines(journey: Journey) -> list[str]:
    """A row of the matrix, a line a tree."""
    lines = [f"{journey.data}, {journey.model}: the ladder alone {100 * journey.accuracy:.1f} %"]
    for name, seen in journey.trees:
        low, high = 100 * seen.interval.low, 100 * seen.interval.high
        lines.append(
            f"  {name:<24} {100 * seen.other_accuracy:5.1f} %  {100 * seen.difference:+5.1f} [{low:+.1f}, {high:+.1f}]"
            f"  p {seen.p:.3f}, {seen.n} problems"
        )
    return lines


def _row(journey: Journey) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "data": journey.data,
        "model": journey.model,
        "tiered": journey.accuracy,
        "trees": {name: asdict(seen) for name, seen in journey.trees},
    }
