"""`kace reproduce`: the paper's table for a benchmark, on any model."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import note, print_lines
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.evaluation.reproduce import Benchmark, Order, Work


def reproduce(
    benchmark: str = typer.Argument(help="aime25, math-hard or olymmath."),
    model: str = typer.Option(..., "--model", "-m", help="The solver: local/NAME, openai/NAME."),
    teacher: str = typer.Option(None, help="The teacher: anthropic/NAME, openai/NAME, exchange/DIR."),
    base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME solver."),
    teacher_base_url: str = typer.Option(None, help="An OpenAI-compatible server for an openai/NAME teacher."),
    teacher_max_tokens: int = typer.Option(None, help="Tokens of a teacher's reply at most (default 16,000)."),
    arms: str = typer.Option(None, help="Only these systems, separated by commas: tiered,kace."),
    seeds: int = typer.Option(3, min=1, max=100, help="Repetitions on the test split."),
    limit: int = typer.Option(None, min=1, help="Only the first N problems of every split, to try it out."),
    data_dir: Path = typer.Option(None, help="A folder with the data sets' files; else they are fetched and kept."),
    out: Path = typer.Option(None, help="Where everything goes; the same command goes on there."),
    max_tokens: int = typer.Option(None, help="Override the token cap of every tier."),
    go: bool = typer.Option(False, "--yes", help="Do it. Without it, the commands and their calls are shown only."),
    config_file: Path = typer.Option(None, "--config", help="A TOML file; kace.toml is read when it is there."),
) -> None:
    """Run the paper's table for a benchmark: shows every command and what it takes first, then runs them with --yes."""
    from kace.evaluation.reproduce import BENCHMARKS, Order, default_arms, work

    if benchmark not in BENCHMARKS:
        raise UsageError(f"unknown benchmark '{benchmark[:40]}'", fix=f"choose one of {', '.join(BENCHMARKS)}")
    known = BENCHMARKS[benchmark]
    place = out or Path("runs") / f"reproduce-{benchmark}"
    sizes = _write_splits(known, place, data_dir, limit, config_file)
    chosen = tuple(name.strip() for name in arms.split(",")) if arms else default_arms(known)
    solver = _options({"--model": model, "--base-url": base_url, "--preset": known.name, "--config": config_file})
    capped = _options({"--max-tokens": max_tokens})
    taught = _options(
        {
            "--teacher": teacher,
            "--teacher-base-url": teacher_base_url,
            "--teacher-max-tokens": teacher_max_tokens,
        }
    )
    order = Order(known, chosen, solver, taught, place, seeds, sizes)
    todo = work(order)
    print_lines(_shown(todo, order, capped))
    if go:
        _run(todo, capped)


def _write_splits(
    known: Benchmark, out: Path, data_dir: Path | None, limit: int | None, config_file: Path | None
) -> dict[str, int]:
    """Every split as a file of its own, which the commands are given."""
    from kace.cli.eval import load_data
    from kace.config import load_config
    from kace.io import write_atomic
    from kace.problem import problem_rows

    config = load_config({}, file=config_file)
    sizes = {}
    for split in ("train", "validation", "test"):
        data = load_data(known.data, split, config, data_dir=data_dir, field=[], limit=limit)
        write_atomic(out / "data" / f"{split}.jsonl", "\n".join(problem_rows(data.problems)) + "\n")
        sizes[split] = len(data.problems)
    return sizes


def _options(values: dict[str, object]) -> tuple[str, ...]:
    return tuple(part for name, value in values.items() if value is not None for part in (name, str(value)))


def _shown(todo: tuple[Work, ...], order: Order, capped: tuple[str, ...]) -> list[str]:
    from kace.evaluation.reproduce import total

    lines = []
    for each in todo:
        calls = f"{each.calls[0]:.0f} to {each.calls[1]:.0f} calls" if each.calls else ""
        lines += [f"# {each.about}{f', {calls}' if calls else ''}", "kace " + shlex.join(_command(each, capped))]
    expected, most = total(todo)
    lines.append(f"# evaluation takes {expected:.0f} to {most:.0f} solver calls; learning and training say theirs")
    reported = ", ".join(
        f"{arm} {order.benchmark.reported[arm]}" for arm in order.arms if arm in order.benchmark.reported
    )
    lines.append(f"# the paper reports, in percent: {reported}")
    return lines


def _command(each: Work, capped: tuple[str, ...]) -> tuple[str, ...]:
    return (*each.command, *capped) if each.command[0] == "eval" else each.command


def _run(todo: tuple[Work, ...], capped: tuple[str, ...]) -> None:
    """Each command in a process of its own: the learner's may open no evaluation file, others must."""
    for each in todo:
        command = _command(each, capped)
        note(f"kace: {each.about}")
        done = subprocess.run([sys.executable, "-m", "kace", *command], check=False)
        if done.returncode:
            raise KaceError(
                f"'{each.about}' ended with exit code {done.returncode}",
                fix="mend what it says, and run the same command: what is done is kept",
            )
