"""`kace data`: problem sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.options import GroupedVerbs, field_map
from kace.cli.streams import note, plain, write_output
from kace.errors import UsageError
from kace.problem import problem_rows

if TYPE_CHECKING:
    from kace.datasets.hub import HubFile
    from kace.datasets.loader import Dataset

data_app = typer.Typer(
    help="List, fetch, check and write problem sets.", no_args_is_help=True, rich_markup_mode=None, cls=GroupedVerbs
)
FOLDER = "A folder that has the published files as JSONL, instead of fetching them."


@data_app.callback()
def data() -> None:
    """List, fetch, check and write problem sets."""


@data_app.command("list")
def list_(as_json: bool = typer.Option(False, "--json", help="One JSON object a data set.")) -> None:
    """Show the data sets, their splits and whether they are here."""
    from kace.config import load_config
    from kace.datasets.catalog import PUBLISHED
    from kace.datasets.hub import is_present
    from kace.datasets.starter import SPLITS, load_split

    cache = load_config().cache_dir / "data"
    names = ("name", "splits", "here", "about", "licence", "sources")
    sizes = {split: len(load_split(split)) for split in SPLITS}
    rows = [("starter", sizes, True, "techniques with exact answers, bundled", "Apache-2.0", list[str]())]
    for known in PUBLISHED:
        sizes = {split: part.size for split, part in known.parts.items()}
        here = all(is_present(file, cache) for file in known.files)
        sources = list(dict.fromkeys(file.repo for file in known.files))
        rows.append((known.name, sizes, here, known.about, known.licence, sources))
    for row in rows:
        name, sizes, here, about, licence, sources = row
        counts, state = " / ".join(f"{size:,}" for size in sizes.values()), "here" if here else "not here"
        origin = f"  [{', '.join(sources)}; {licence}]" if sources else ""
        told = f"{name:10} {counts:20} {state:9} {about}{origin}"
        print(json.dumps(dict(zip(names, row, strict=True))) if as_json else told)
    if not as_json:
        print("any other: a JSONL file, one problem a line")


@data_app.command()
def fetch(
    names: list[str] = typer.Argument(..., help="Names from `kace data list`."),
    data_dir: Path = typer.Option(None, help=FOLDER),
    out: Path = typer.Option(None, "--out", "-o", help="Also write each split here, as NAME_SPLIT.jsonl."),
) -> None:
    """Fetch published data sets and check them: number of problems and hash of every split."""
    from kace.datasets.loader import NAMES, canonical

    for name in names:
        if canonical(name) is None:
            raise UsageError(f"{name} is a file", fix=f"name data sets: {', '.join(NAMES)}")
    for name in names:
        for found in _splits(name, data_dir, []):
            print(f"{found.name:10} {found.split:10} {len(found.problems):5,}  {found.hash}  {found.source}")
            if out is not None:
                rows = "".join(f"{row}\n" for row in problem_rows(found.problems))
                write_output(rows, out / f"{found.name}_{found.split}.jsonl")


@data_app.command()
def check(
    sets: list[str] = typer.Argument(..., help="Data sets and JSONL files."),
    data_dir: Path = typer.Option(None, help=FOLDER),
    field: list[str] = typer.Option([], help="Where a JSONL keeps a field: problem=question, answer=target, id=name."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a finding."),
) -> None:
    """Find problems that stand twice: in a split, in two splits, or in two sets. Exit 1 when there are any."""
    from kace.datasets.overlap import check as check_sets

    loaded = [found for name in sets for found in _splits(name, data_dir, field)]
    named = {f"{found.name} {found.split}".removesuffix(" all"): found.problems for found in loaded}
    if len(named) < len(loaded):
        raise UsageError("two of the sets have the same name", fix="name each once; rename one of two files")
    findings = check_sets(named)
    for (one, other), ours, theirs in findings:
        row = {"sets": [one, other], "problems": [ours.id, theirs.id], "labels": [ours.name, theirs.name]}
        where = f"twice in {one}" if one == other else f"in {one} and in {other}"
        print(json.dumps(row) if as_json else f"{where}: {plain(ours.name, 40)} = {plain(theirs.name, 40)}")
    problems = sum(map(len, named.values()))
    note(f"{problems:,} problems in {len(named)} sets: {len(findings) or 'none'} found twice")
    if findings:
        raise typer.Exit(1)


@data_app.command()
def starter(
    split: str = typer.Option("test", help="train, validation or test: its wordings and families."),
    n: int = typer.Option(None, "--n", min=1, help="Generate this many fresh problems instead of the bundled ones."),
    seed: int = typer.Option(0, min=0, help="The seed of fresh problems."),
    out: Path = typer.Option(None, "--out", "-o", help="A file to write; standard output without it."),
) -> None:
    """Write the starter set as JSONL: technique families with exact answers computed by code."""
    from kace.datasets.starter import SPLITS, generate_set, load_split

    if split not in SPLITS:
        raise UsageError(f"unknown split '{split}'", fix=f"choose one of {', '.join(SPLITS)}")
    problems = load_split(split) if n is None else generate_set(n, seed, split)
    rows = [f"{row}\n" for row in problem_rows(problems)]
    write_output("".join(rows), out)
    if out is not None:
        note(f"{len(rows)} problems written to {out}")


def _splits(name: str, data_dir: Path | None, field: list[str]) -> list[Dataset]:
    """Every split of a data set, or the one set a file is. What differs from the published form is said."""
    from kace.config import load_config
    from kace.datasets.loader import canonical, load
    from kace.datasets.starter import SPLITS

    config, published = load_config(), canonical(name) is not None
    cache, fields = config.cache_dir / "data", None if published else field_map(field)
    loaded = [
        load(name, split, data_dir=data_dir, cache=cache, hub=config.hub, fields=fields, watch=_say)
        for split in (SPLITS if published else ("test",))
    ]
    for found in loaded:
        for remark in found.notes:
            note(f"{found.name} {found.split}: {remark}")
    return loaded


def _say(file: HubFile) -> None:
    note(f"fetching {file.repo} {file.path}")
