"""`kace data`: problem sets."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from kace.cli.options import DATA, OUTPUT, Typed, command, new_app, option
from kace.cli.streams import note, plain, write_output
from kace.config import Config
from kace.datasets.catalog import PUBLISHED
from kace.datasets.loader import (
    BUNDLED,
    NAMES,
    Dataset,
    canonical,
    find_doubles,
    labelled,
    load_configured,
    split_names,
)
from kace.datasets.starter import SPLITS, generate_set, load_split
from kace.errors import UsageError
from kace.models.hub import HubFile, is_present
from kace.problems import problem_rows

app = new_app(help="List, fetch, check and write problem sets.", no_args_is_help=True)


@command(app, name="list")
def list_(typed: Typed, as_json: bool) -> None:
    """Show the data sets, their splits and whether they are here."""
    cache = typed.config().cache_dir / "data"
    names = ("name", "splits", "here", "about", "licence", "sources")
    rows = []
    for name, bundled in BUNDLED.items():
        sizes = {split: len(bundled.problems(split)) for split in bundled.splits}
        rows.append(
            (
                name,
                sizes,
                True,
                "techniques with exact answers, bundled",
                "Apache-2.0",
                list[str](),
            )
        )
    for known in PUBLISHED:
        sizes = {split: part.size for split, part in known.parts.items()}
        here = all(is_present(file, cache) for file in known.files)
        sources = list(dict.fromkeys(file.repo for file in known.files))
        rows.append((known.name, sizes, here, known.about, known.licence, sources))
    for row in rows:
        name, sizes, here, about, licence, sources = row
        counts = " / ".join(f"{size:,}" for size in sizes.values())
        state = "here" if here else "not here"
        origin = f"  [{', '.join(sources)}; {licence}]" if sources else ""
        told = f"{name:10} {counts:25} {state:9} {about}{origin}"
        print(json.dumps(dict(zip(names, row, strict=True))) if as_json else told)
    if not as_json:
        print("any other: a JSONL file, one problem a line")


@command(app)
def fetch(
    typed: Typed,
    names: list[str] = typer.Argument(..., help="Names from `kace data list`."),
    out: Path = option(
        OUTPUT,
        None,
        "--out",
        "-o",
        help="Also write each split here, as NAME_SPLIT.jsonl.",
    ),
) -> None:
    """Fetch published data sets and check them: number of problems and hash of every split."""
    if file := next((name for name in names if canonical(name) is None), None):
        raise UsageError(f"{file} is a file", fix=f"name data sets: {', '.join(NAMES)}")
    for found in (found for name in names for found in _splits(name, typed.config())):
        print(
            f"{found.name:10} {found.split:10} {len(found.problems):5,}  {found.hash}  {found.source}"
        )
        if out is not None:
            rows = "".join(f"{row}\n" for row in problem_rows(found.problems))
            write_output(rows, out / f"{found.name}_{found.split}.jsonl")


@command(app)
def check(
    typed: Typed,
    as_json: bool,
    sets: list[str] = typer.Argument(..., help="Data sets and JSONL files."),
) -> None:
    """Find problems that stand twice: in a split, in two splits, or in two sets. Exit 1 when there are any."""
    loaded = [found for name in sets for found in _splits(name, typed.config())]
    named = {
        f"{found.name} {found.split}".removesuffix(" all"): found.problems
        for found in loaded
    }
    if len(named) < len(loaded):
        raise UsageError(
            "two of the sets have the same name",
            fix="name each once; rename one of two files",
        )
    findings = find_doubles(named)
    for (one, other), ours, theirs in findings:
        row = {
            "sets": [one, other],
            "problems": [ours.id, theirs.id],
            "labels": [ours.name, theirs.name],
        }
        where = f"twice in {one}" if one == other else f"in {one} and in {other}"
        print(
            json.dumps(row)
            if as_json
            else f"{where}: {plain(ours.name, 40)} = {plain(theirs.name, 40)}"
        )
    problems = sum(map(len, named.values()))
    note(
        f"{problems:,} problems in {len(named)} sets: {len(findings) or 'none'} found twice"
    )
    if findings:
        raise typer.Exit(1)


@command(app)
def starter(
    split: str = option(
        DATA, "test", help="train, validation or test: its wordings and families."
    ),
    n: int = option(
        DATA,
        None,
        "--n",
        min=1,
        help="Generate this many fresh problems instead of the bundled ones.",
    ),
    seed: int = option(DATA, 0, min=0, help="The seed of fresh problems."),
    out: Path = option(
        OUTPUT, None, "--out", "-o", help="A file to write; standard output without it."
    ),
) -> None:
    """Write the starter set as JSONL: technique families with exact answers computed by code."""
    if split not in SPLITS:
        raise UsageError(
            f"unknown split '{split}'", fix=f"choose one of {', '.join(SPLITS)}"
        )
    problems = load_split(split) if n is None else generate_set(n, seed, split)
    rows = [f"{row}\n" for row in problem_rows(problems)]
    write_output("".join(rows), out)
    if out is not None:
        note(f"{len(rows)} problems written to {out}")


def load_data(
    name: str,
    split: str,
    config: Config,
    *,
    limit: int | None = None,
    checked: bool = True,
) -> Dataset:
    """The problems of a split, from where the configuration says they are, checked to have answers."""

    def say(file: HubFile) -> None:
        note(f"fetching {file.repo} {file.path}")

    data = load_configured(name, split, config, say)
    for remark in data.notes:
        note(f"{data.name} {data.split}: {remark}")
    return labelled(data, limit) if checked else data


def _splits(name: str, config: Config) -> list[Dataset]:
    splits = split_names(known) if (known := canonical(name)) else ("test",)
    return [load_data(name, split, config, checked=False) for split in splits]
