"""`kace data`: problem sets."""

from __future__ import annotations

from pathlib import Path

import click

from kace.cli.options import PATH, Commands, Options, takes
from kace.cli.terminal import note
from kace.config import Config
from kace.files import write_atomic
from kace.problems import (
    ALL,
    BUNDLED,
    Dataset,
    HubFile,
    is_cached,
    labelled,
    load_bundled,
    load_dataset,
    problem_rows,
    published_sets,
    split_problems,
)


@click.group("data", cls=Commands, no_args_is_help=True)
def command() -> None:
    """List and split problem sets."""


@command.command("list")
@takes("json")
def list_sets(options: Options) -> None:
    """List the data sets, their splits and whether they are here.

    A published set is fetched when it is first used, and checked by size and hash.
    """
    cache = options.config().cache_dir / "data"
    for name in BUNDLED:
        sizes = {s: len(load_bundled(name, s)) for s in BUNDLED[name]}
        _show_set(options, name, sizes, True, "bundled")
    for name, known in published_sets().items():
        sizes = {split: part.size for split, part in known.splits.items()}
        here = all(is_cached(file, cache) for file in known.files)
        about = f"{known.about}  [{known.files[0].repo}; {known.licence}]"
        _show_set(options, name, sizes, here, about)
    note("any other: a file of problems, as JSONL, JSON or CSV")


def _show_set(
    options: Options, name: str, sizes: dict[str, int], here: bool, about: str
) -> None:
    row = {"name": name, "splits": sizes, "here": here, "about": about}
    counts = " / ".join(f"{size:,}" for size in sizes.values())
    state = "here" if here else "not here"
    options.show(row, [f"{name:12} {counts:25} {state:9} {about}"])


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


def load_data(
    name: str, split: str, config: Config, *, limit: int | None = None
) -> Dataset:
    """Load a split of problems with answers, with notes on stderr."""

    def on_fetch(file: HubFile) -> None:
        note(f"fetching {file.repo} {file.path}")

    data = load_dataset(name, split, config, on_fetch, limit)
    if data.note:
        note(f"{data.name} {data.split}: {data.note}")
    return labelled(data, limit)
