"""`kace data`: problem sets."""

from __future__ import annotations

from pathlib import Path

import click

from kace.cli.options import PATH, Options, takes
from kace.files import write_atomic
from kace.problems import (
    ALL,
    labelled,
    load_dataset,
    problem_rows,
    split_problems,
)


@click.group("data")
def command() -> None:
    """Split problems into files to train on, validate with and test."""


@command.command()
@click.argument("file", type=PATH)
@takes()
@click.option(
    "--out",
    "-o",
    type=PATH,
    default="data",
    help="The folder for train.jsonl, validation.jsonl and test.jsonl.",
)
@click.option(
    "--shares",
    type=(click.FloatRange(0, 1), click.FloatRange(0, 1)),
    default=(0.5, 0.0),
    metavar="TRAIN VALIDATION",
    help="The shares to train on and to validate with; the rest is the test.",
)
def split(
    options: Options, file: Path, out: Path, shares: tuple[float, float]
) -> None:
    """Split labelled problems into files to train on, validate with and test.

    The draw depends on the texts alone. Problems that are one, reworded, and those of
    one family stay together. FILE is JSONL, a JSON list or CSV.
    """
    data = labelled(load_dataset(file, ALL, options.config()))
    for name, part in split_problems(data.problems, shares).items():
        path = out / f"{name}.jsonl"
        if part:
            write_atomic(path, "\n".join(problem_rows(part)) + "\n")
            print(f"{name:12} {len(part):5,}  {path}")
