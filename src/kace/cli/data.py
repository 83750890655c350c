"""`kace data`: problem sets."""

from __future__ import annotations

from pathlib import Path

import click

from kace.cli.options import PATH, Commands, Options, takes
from kace.cli.terminal import note
from kace.config import Config
from kace.errors import UsageError
from kace.files import write_atomic
from kace.problems import (
    ALL,
    BUNDLED,
    NAMES,
    SPLITS,
    Dataset,
    HubFile,
    canonical,
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
    """List, fetch and split problem sets."""


@command.command("list")
@takes("json")
def list_sets(options: Options) -> None:
    """List the data sets, their splits and whether they are here."""
    cache = options.config().cache_dir / "data"
    known = published_sets()
    for name in NAMES:
        here = True
        about = "bundled"
        if name in known:
            files = known[name].files
            here = all(is_cached(file, cache) for file in files)
            repositories = ", ".join(dict.fromkeys(file.repo for file in files))
            about = (
                f"{known[name].about}  [{repositories}; {known[name].licence}]"
            )
            sizes = {s: part.size for s, part in known[name].splits.items()}
        else:
            sizes = {s: len(load_bundled(name, s)) for s in BUNDLED[name]}
        row = {"name": name, "splits": sizes, "here": here, "about": about}
        counts = " / ".join(f"{size:,}" for size in sizes.values())
        state = "here" if here else "not here"
        options.show(row, [f"{name:12} {counts:25} {state:9} {about}"])
    if not options.as_json:
        print("any other: a file of problems, as JSONL, JSON or CSV")


@command.command()
@click.argument("names", nargs=-1, required=True)
@takes()
@click.option(
    "--out",
    "-o",
    type=PATH,
    help="Also write each split into this folder, as NAME_SPLIT.jsonl.",
)
def fetch(options: Options, names: tuple[str, ...], out: Path | None) -> None:
    """Fetch published data sets and check the size and hash of every split.

    NAMES are those of `kace data list`.
    """
    for name in names:
        if canonical(name) is None:
            raise UsageError(
                f"{name} is a file", fix=f"name data sets: {', '.join(NAMES)}"
            )
    config = options.config()
    for name in names:
        for split in BUNDLED.get(canonical(name) or "", SPLITS):
            found = load_data(name, split, config, checked=False)
            size = f"{len(found.problems):5,}"
            print(
                f"{found.name:12} {found.split:10} {size}  {found.hash}  {found.source}"
            )
            if out is not None:
                rows = "\n".join(problem_rows(found.problems))
                path = out / f"{found.name}_{found.split}.jsonl"
                write_atomic(path, rows + "\n")


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
    name: str,
    split: str,
    config: Config,
    *,
    limit: int | None = None,
    checked: bool = True,
) -> Dataset:
    """Load a split as configured, with notes on stderr; checked problems must have answers."""

    def on_fetch(file: HubFile) -> None:
        note(f"fetching {file.repo} {file.path}")

    data = load_dataset(name, split, config, on_fetch, limit)
    if data.note:
        note(f"{data.name} {data.split}: {data.note}")
    return labelled(data, limit) if checked else data
