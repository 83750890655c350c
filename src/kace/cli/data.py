"""`kace data`: problem sets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from kace.cli.streams import note
from kace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kace.datasets.checks import Finding
    from kace.datasets.hub import HubFile
    from kace.datasets.registry import Dataset
    from kace.datasets.starter import Split

data_app = typer.Typer(help="List, fetch, check and write problem sets.", no_args_is_help=True, rich_markup_mode=None)
FOLDER = "A folder that has the published files as JSONL, instead of fetching them."


class _Row(NamedTuple):
    """A data set in the list."""

    name: str
    splits: Mapping[Split, int]
    here: bool
    about: str
    licence: str
    sources: list[str]

    def line(self) -> str:
        """For people."""
        sizes = " / ".join(f"{size:,}" for size in self.splits.values())
        origin = f"  [{', '.join(self.sources)}; {self.licence}]" if self.sources else ""
        return f"{self.name:10} {sizes:20} {'here' if self.here else 'not here':9} {self.about}{origin}"


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

    cache = data_folder(load_config().cache_dir)
    sizes = {split: len(load_split(split)) for split in SPLITS}
    rows = [_Row("starter", sizes, True, "techniques with exact answers, bundled", "Apache-2.0", [])]
    for known in PUBLISHED:
        sizes = {split: part.size for split, part in known.parts.items()}
        here = all(is_present(file, cache) for file in known.files)
        sources = list(dict.fromkeys(file.repo for file in known.files))
        rows.append(_Row(known.name, sizes, here, known.about, known.licence, sources))
    for row in rows:
        print(json.dumps(row._asdict()) if as_json else row.line())
    if not as_json:
        print("any other: a JSONL file, one problem a line")


@data_app.command()
def fetch(
    names: list[str] = typer.Argument(..., help="Names from `kace data list`."),
    data_dir: Path = typer.Option(None, help=FOLDER),
    out: Path = typer.Option(None, "--out", "-o", help="Also write each split here, as NAME_SPLIT.jsonl."),
) -> None:
    """Fetch published data sets and check them: number of problems and hash of every split."""
    from kace.datasets.registry import NAMES, canonical
    from kace.io import write_atomic
    from kace.problem import problem_rows

    for name in names:
        if canonical(name) is None:
            raise UsageError(f"{name} is a file", fix=f"name data sets: {', '.join(NAMES)}")
    for name in names:
        for found in _splits(name, data_dir, []):
            print(f"{found.name:10} {found.split:10} {len(found.problems):5,}  {found.hash}  {found.source}")
            if out is not None:
                path = out / f"{found.name}_{found.split}.jsonl"
                write_atomic(path, "".join(f"{row}\n" for row in problem_rows(found.problems)))


@data_app.command()
def check(
    sets: list[str] = typer.Argument(..., help="Data sets and JSONL files."),
    data_dir: Path = typer.Option(None, help=FOLDER),
    field: list[str] = typer.Option([], help="Where a JSONL keeps a field: problem=question, answer=target, id=name."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a finding."),
) -> None:
    """Find problems that stand twice: in a split, in two splits, or in two sets. Exit 1 when there are any."""
    from kace.datasets.checks import check as check_sets

    loaded = [found for name in sets for found in _splits(name, data_dir, field)]
    named = {f"{found.name} {found.split}".removesuffix(" all"): found.problems for found in loaded}
    if len(named) < len(loaded):
        raise UsageError("two of the sets have the same name", fix="name each once; rename one of two files")
    findings = check_sets(named)
    for finding in findings:
        print(_finding(finding, as_json=as_json))
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
    from kace.io import write_atomic
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


def data_folder(cache: Path) -> Path:
    """Where fetched data sets are kept."""
    return cache / "data"


def _splits(name: str, data_dir: Path | None, field: list[str]) -> list[Dataset]:
    """Every split of a data set, or the one set a file is. What differs from the published form is said."""
    from kace.cli.solve import field_map
    from kace.config import load_config
    from kace.datasets.registry import canonical, load
    from kace.datasets.starter import SPLITS

    config = load_config()
    published = canonical(name) is not None
    loaded = [
        load(
            name,
            split,
            data_dir=data_dir,
            cache=data_folder(config.cache_dir),
            hub=config.hub,
            fields=None if published else field_map(field),
            watch=_say,
        )
        for split in (SPLITS if published else ("test",))
    ]
    for found in loaded:
        for remark in found.notes:
            note(f"{found.name} {found.split}: {remark}")
    return loaded


def _say(file: HubFile) -> None:
    note(f"fetching {file.repo} {file.path}")


def _finding(finding: Finding, *, as_json: bool) -> str:
    from kace.cli.show import plain

    (one, other), ours, theirs = finding
    if as_json:
        return json.dumps({"sets": [one, other], "problems": [ours.id, theirs.id], "labels": [ours.name, theirs.name]})
    where = f"twice in {one}" if one == other else f"in {one} and in {other}"
    return f"{where}: {plain(ours.name, 40)} = {plain(theirs.name, 40)}"
