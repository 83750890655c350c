"""`kace data`: problem sets."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from kace.errors import UsageError

data_app = typer.Typer(help="Write problem sets.", no_args_is_help=True, rich_markup_mode=None)


@data_app.callback()
def data() -> None:
    """Write problem sets."""


@data_app.command()
def starter(
    split: str = typer.Option("test", help="train, validation or test: its wordings and families."),
    n: int = typer.Option(None, "--n", min=1, help="Generate this many fresh problems instead of the bundled ones."),
    seed: int = typer.Option(0, min=0, help="The seed of fresh problems."),
    out: Path = typer.Option(None, "--out", "-o", help="A file to write; standard output without it."),
) -> None:
    """Write the starter set as JSONL: technique families with exact answers computed by code."""
    from kace.datasets.starter import SPLITS, generate_set, load_split
    from kace.durable import write_atomic
    from kace.problem import problem_rows

    if split not in SPLITS:
        raise UsageError(f"unknown split '{split}'", fix=f"choose one of {', '.join(SPLITS)}")
    problems = load_split(split) if n is None else generate_set(n, seed, split)
    rows = [f"{row}\n" for row in problem_rows(problems)]
    if out is None:
        sys.stdout.writelines(rows)
    else:
        write_atomic(out, "".join(rows))
        print(f"{len(rows)} problems written to {out}", file=sys.stderr)
