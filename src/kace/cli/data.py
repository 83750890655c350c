"""`kace data`: problem sets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kace.cli.options import PATH, Commands, Options, takes
from kace.cli.terminal import note, plain
from kace.config import Config
from kace.errors import UsageError
from kace.files import write_atomic
from kace.problems import (
    BUNDLED,
    NAMES,
    Dataset,
    HubFile,
    canonical,
    find_doubles,
    is_cached,
    labelled,
    load_bundled,
    load_dataset,
    problem_rows,
    published_sets,
    split_names,
)


@click.group("data", cls=Commands, no_args_is_help=True)
def command() -> None:
    """List, fetch, check and write problem sets."""


@command.command("list")
@takes("json")
def list_sets(options: Options) -> None:
    """List the data sets, their splits and whether they are here."""
    for name, splits in BUNDLED.items():
        sizes = {split: len(load_bundled(name, split)) for split in splits}
        _print_set(options, name, sizes, True, "bundled")
    cache = options.config().cache_dir / "data"
    for known in published_sets().values():
        sizes = {split: part.size for split, part in known.splits.items()}
        here = all(is_cached(file, cache) for file in known.files)
        repositories = ", ".join(
            dict.fromkeys(file.repo for file in known.files)
        )
        about = f"{known.about}  [{repositories}; {known.licence}]"
        _print_set(options, known.name, sizes, here, about)
    if not options.as_json:
        print("any other: a JSONL file, one problem per line")


def _print_set(
    options: Options, name: str, sizes: dict[str, int], here: bool, about: str
) -> None:
    if options.as_json:
        row = {"name": name, "splits": sizes, "here": here, "about": about}
        print(json.dumps(row))
        return
    counts = " / ".join(f"{size:,}" for size in sizes.values())
    print(f"{name:12} {counts:25} {'here' if here else 'not here':9} {about}")


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
    for name in names:
        for found in _splits(name, options.config()):
            size = f"{len(found.problems):5,}"
            print(
                f"{found.name:12} {found.split:10} {size}  {found.hash}  {found.source}"
            )
            if out is not None:
                rows = "".join(
                    f"{row}\n" for row in problem_rows(found.problems)
                )
                write_atomic(out / f"{found.name}_{found.split}.jsonl", rows)


@command.command()
@click.argument("sets", nargs=-1, required=True)
@takes("json")
def check(options: Options, sets: tuple[str, ...]) -> None:
    """Find duplicate problems within and across sets; exit 1 if there are any.

    SETS are data sets and JSONL files.
    """
    problems = {}
    loaded = 0
    for name in sets:
        for found in _splits(name, options.config()):
            title = f"{found.name} {found.split}".removesuffix(" all")
            problems[title] = found.problems
            loaded += 1
    if len(problems) < loaded:
        raise UsageError(
            "two of the sets have the same name",
            fix="name each once; rename one of two files",
        )
    findings = find_doubles(problems)
    for (one, other), ours, theirs in findings:
        if options.as_json:
            row = {
                "sets": [one, other],
                "problems": [ours.id, theirs.id],
                "labels": [ours.name, theirs.name],
            }
            print(json.dumps(row))
        else:
            where = (
                f"twice in {one}"
                if one == other
                else f"in {one} and in {other}"
            )
            print(f"{where}: {plain(ours.name, 40)} = {plain(theirs.name, 40)}")
    total = sum(map(len, problems.values()))
    twice = len(findings) or "none"
    note(f"{total:,} problems in {len(problems)} sets: {twice} found twice")
    if findings:
        sys.exit(1)


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

    data = load_dataset(name, split, config, on_fetch)
    for remark in data.notes:
        note(f"{data.name} {data.split}: {remark}")
    return labelled(data, limit) if checked else data


def _splits(name: str, config: Config) -> list[Dataset]:
    known = canonical(name)
    splits = split_names(known) if known else ("test",)
    return [load_data(name, split, config, checked=False) for split in splits]
