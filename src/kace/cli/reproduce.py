"""`kace reproduce`: the paper's table for a benchmark, on any model."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from kace.cli.data import load_data
from kace.cli.options import MODEL, OUTPUT, Typed, command, new_app, option
from kace.cli.streams import note, print_lines
from kace.errors import KaceError, UsageError
from kace.evaluation.recipes import BENCHMARKS, Command, Recipe, default_arms
from kace.io import write_atomic
from kace.problem import problem_rows

app = new_app()


@command(app, "base_url", "teacher", "limit")
def reproduce(
    typed: Typed,
    benchmark: str = typer.Argument(help="aime25, math-hard or olymmath."),
    model: str = option(MODEL, ..., "--model", "-m", help="The solver: local/NAME, openai/NAME."),
    arms: str = option(MODEL, None, help="Only these systems, separated by commas: tiered,kace."),
    seeds: int = option(MODEL, 3, min=1, max=100, help="Repetitions on the test split."),
    out: Path = option(OUTPUT, None, help="Where everything goes; the same command resumes there."),
    go: bool = option(OUTPUT, False, "--yes", help="Do it. Without it, the commands and their calls are shown only."),
) -> None:
    """Run the paper's table for a benchmark: shows every command first, then runs them with --yes."""
    if benchmark not in BENCHMARKS:
        raise UsageError(f"unknown benchmark '{benchmark[:40]}'", fix=f"choose one of {', '.join(BENCHMARKS)}")
    known = BENCHMARKS[benchmark]
    place = out or Path("runs") / f"reproduce-{benchmark}"
    sizes = {}
    for split in ("train", "validation", "test"):  # each a file of its own, which the commands are given
        problems = load_data(benchmark, split, typed.config(), limit=typed.limit).problems
        write_atomic(place / "data" / f"{split}.jsonl", "\n".join(problem_rows(problems)) + "\n")
        sizes[split] = len(problems)
    chosen = tuple(name.strip() for name in arms.split(",")) if arms else default_arms(known)
    solver = {"--model": model, "--base-url": typed.base_url, "--preset": known.name, "--config": typed.config_file}
    settings = tuple(part for pair in typed.set_ for part in ("--set", pair))
    recipe = Recipe(
        known, chosen, _options(solver) + settings, _options({"--teacher": typed.teacher}), place, seeds, sizes
    )
    todo = recipe.commands()
    print_lines(_shown(todo, recipe))
    for each in todo if go else ():
        # Each command in a process of its own: the learner's may open no evaluation file, others must.
        note(f"kace: {each.about}")
        done = subprocess.run([sys.executable, "-m", "kace", *each.words], check=False)
        if done.returncode:
            said = f"'{each.about}' ended with exit code {done.returncode}"
            raise KaceError(said, fix="mend what it says, and run the same command: what is done is kept")


def _options(values: dict[str, object]) -> tuple[str, ...]:
    return tuple(part for name, value in values.items() if value is not None for part in (name, str(value)))


def _shown(todo: Sequence[Command], recipe: Recipe) -> Iterator[str]:
    for each in todo:
        yield f"# {each.about}" + (f", {each.calls[0]:.0f} to {each.calls[1]:.0f} calls" if each.calls else "")
        yield "kace " + shlex.join(each.words)
    expected, most = (sum(each.calls[end] for each in todo if each.calls) for end in (0, 1))
    yield f"# evaluation takes {expected:.0f} to {most:.0f} solver calls; learning and training say theirs"
    reported = recipe.benchmark.reported
    yield f"# the paper reports, in percent: {', '.join(f'{a} {reported[a]}' for a in recipe.arms if a in reported)}"
