"""`kace reproduce`: the paper's table for a benchmark, on any model."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.eval import load_data
from kace.cli.options import MODEL, OUTPUT, Typed, option, takes
from kace.cli.streams import note, print_lines
from kace.errors import KaceError, UsageError
from kace.io import write_atomic
from kace.problem import problem_rows

if TYPE_CHECKING:
    from kace.evaluation.recipes import Command, Recipe


@takes(
    "base_url", "teacher", "teacher_base_url", "set_", "field", "limit", "data_dir", "max_connections", "config_file"
)
def reproduce(
    typed: Typed,
    benchmark: str = typer.Argument(help="aime25, math-hard or olymmath."),
    model: str = option(MODEL, ..., "--model", "-m", help="The solver: local/NAME, openai/NAME."),
    arms: str = option(MODEL, None, help="Only these systems, separated by commas: tiered,kace."),
    seeds: int = option(MODEL, 3, min=1, max=100, help="Repetitions on the test split."),
    out: Path = option(OUTPUT, None, help="Where everything goes; the same command resumes there."),
    go: bool = option(OUTPUT, False, "--yes", help="Do it. Without it, the commands and their calls are shown only."),
) -> None:
    """Run the paper's table for a benchmark: shows every command and what it takes first, then runs them with --yes."""
    from kace.evaluation.recipes import BENCHMARKS, Recipe, default_arms

    if benchmark not in BENCHMARKS:
        raise UsageError(f"unknown benchmark '{benchmark[:40]}'", fix=f"choose one of {', '.join(BENCHMARKS)}")
    known = BENCHMARKS[benchmark]
    place = out or Path("runs") / f"reproduce-{benchmark}"
    sizes = {split: _write_split(benchmark, split, place, typed) for split in ("train", "validation", "test")}
    chosen = tuple(name.strip() for name in arms.split(",")) if arms else default_arms(known)
    solver = {"--model": model, "--base-url": typed.base_url, "--preset": known.name}
    solver |= {"--max-connections": typed.max_connections, "--config": typed.config_file}
    settings = tuple(part for pair in typed.set_ for part in ("--set", pair))
    taught = _options({"--teacher": typed.teacher, "--teacher-base-url": typed.teacher_base_url})
    recipe = Recipe(known, chosen, _options(solver) + settings, taught, place, seeds, sizes)
    todo = recipe.commands()
    print_lines(_shown(todo, recipe))
    for each in todo if go else ():
        # Each command in a process of its own: the learner's may open no evaluation file, others must.
        note(f"kace: {each.about}")
        done = subprocess.run([sys.executable, "-m", "kace", *each.words], check=False)
        if done.returncode:
            said = f"'{each.about}' ended with exit code {done.returncode}"
            raise KaceError(said, fix="mend what it says, and run the same command: what is done is kept")


def _write_split(name: str, split: str, out: Path, typed: Typed) -> int:
    """A split as a file of its own, which the commands are given; its number of problems."""
    from kace.config import load_config

    data = load_data(name, split, load_config({}, file=typed.config_file), typed)
    write_atomic(out / "data" / f"{split}.jsonl", "\n".join(problem_rows(data.problems)) + "\n")
    return len(data.problems)


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
