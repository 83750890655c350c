"""Problems by name: the bundled starter set, the published data sets with their fixed splits, or any JSONL file."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from kace.datasets.catalog import PUBLISHED, Published, named_domain
from kace.datasets.hub import Watch, fetch
from kace.datasets.starter import SPLITS, Split, load_split
from kace.errors import DataError, KaceError, UsageError
from kace.problem import Problem, load_problems, problem_of

STARTER = "starter"
NAMES = (STARTER, *(published.name for published in PUBLISHED))
ALL = "all"
"""The split of a file, which has none."""
MAX_ROWS = 100_000
_LOCAL = {"problem": "problem", "answer": "answer", "id": "id", "domain": "subject"}
"""The fields of the JSONL files of a folder."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The problems of one split, and where they came from."""

    name: str
    split: str
    problems: tuple[Problem, ...]
    hash: str
    """Of the texts without white space, whatever their order: the same for every copy of the same problems."""
    source: str
    """In words for people."""
    notes: tuple[str, ...] = ()
    """What is not as it was when the split was fixed; empty when all is."""


class ListedProblem(NamedTuple):
    """One problem in the list that fixes a split: never its text."""

    fingerprint: str
    label: str


Listing = Mapping[Split, tuple[ListedProblem, ...]]


def load(
    name_or_path: str | Path,
    split: str = "test",
    *,
    data_dir: Path | None = None,
    cache: Path,
    hub: str,
    fields: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Dataset:
    """A split of a named data set, or all of a JSONL file.

    A published data set is read from `data_dir` when one is given, else from `cache`, fetched from `hub` first where
    it is not there. `fields` is for files: see `read_problems`. Raises `KaceError` when problems are missing; a
    problem that is there in another wording is taken and noted.
    """
    name = canonical(str(name_or_path))
    if name is None:
        path = Path(name_or_path)
        problems = load_problems(path, fields)
        return Dataset(path.name, ALL, problems, set_hash(problems), str(path))
    if fields:
        raise UsageError(f"a field map is for files; '{name}' has its own", fix="leave --field out")
    wanted = as_split(split)
    if name == STARTER:
        problems = load_split(wanted)
        return Dataset(STARTER, wanted, problems, set_hash(problems), "bundled")
    published = next(known for known in PUBLISHED if known.name == name)
    if data_dir is not None:
        return from_folder(published, wanted, data_dir)
    return from_hub(published, wanted, cache=cache, hub=hub, watch=watch)


def from_folder(published: Published, split: Split, folder: Path) -> Dataset:
    """A split, out of a folder of the user's."""
    path = folder / published.parts[split].pool.local
    if not path.is_file():
        raise DataError(f"{folder} has no {path.name}", fix="put it there, or leave --data-dir out to fetch the data")
    return _split_of(published, split, tuple(map(named_domain, load_problems(path, _LOCAL))), str(path))


def from_hub(published: Published, split: Split, *, cache: Path, hub: str, watch: Watch | None = None) -> Dataset:
    """A split, as it is published; what the cache has is not fetched again."""
    pool = published.parts[split].pool
    paths = [fetch(file, cache=cache, hub=hub, watch=watch) for file in pool.files]
    read = {".parquet": _parquet}
    found = (problem for path in paths for problem in read.get(path.suffix, load_problems)(path, pool.fields))
    source = f"{pool.files[0].repo}@{pool.files[0].revision[:12]}"
    return _split_of(published, split, tuple(map(pool.tidy, found)), source)


def canonical(name: str) -> str | None:
    """The name of a data set however it is spelt, or None for a file. Raises `UsageError` for what is neither."""
    plain = name.casefold().replace("_", "-")
    if plain in NAMES:
        return plain
    path = Path(name)
    if len(path.parts) > 1 or path.suffix or path.exists():
        return None
    near = get_close_matches(plain, NAMES, n=1)
    fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(NAMES)}, or a JSONL file"
    raise UsageError(f"no data set is called '{name[:60]}'", fix=fix)


def as_split(split: str) -> Split:
    """The split a user names."""
    for known in SPLITS:
        if split == known:
            return known
    raise UsageError(f"unknown split '{split[:40]}'", fix=f"choose one of {', '.join(SPLITS)}")


def fingerprint(text: str) -> str:
    """The hash of a text without its white space and compatibility forms: copies differ in these and nothing else."""
    bare = "".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def set_hash(problems: Iterable[Problem]) -> str:
    """The hash of a set of problems, whatever their order."""
    fingerprints = sorted(fingerprint(problem.text) for problem in problems)
    return hashlib.sha256("\n".join(fingerprints).encode()).hexdigest()[:16]


def read_listing(path: Path) -> Listing:
    """The listed splits of a data set."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    entries = [(split, ListedProblem(print_, label)) for split, print_, label in rows]
    found = ((name, tuple(entry for split, entry in entries if split == name)) for name in SPLITS)
    return {name: listed for name, listed in found if listed}


def listing_text(listing: Listing, why: Sequence[str]) -> str:
    """A list as its file holds it, under the lines that say how it was made."""
    rows = ("\t".join((split, *entry)) for split, entries in listing.items() for entry in entries)
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in why), *rows))


def _split_of(published: Published, split: Split, found: tuple[Problem, ...], source: str) -> Dataset:
    what, part, listing = f"{published.name} {split}", published.parts[split], read_listing(published.listing)
    reworded: tuple[str, ...] = ()
    if split in listing:
        problems, reworded = _choose(found, listing[split], what)
    else:
        elsewhere = {entry.fingerprint for entries in listing.values() for entry in entries}
        problems = tuple(problem for problem in found if fingerprint(problem.text) not in elsewhere)
    if len(problems) != part.size:
        counts = f"{len(problems):,} problems in {source}, not {part.size:,}"
        raise DataError(f"{what}: {counts}", fix="is the source complete?")
    if bare := [problem.name for problem in problems if problem.answer is None]:
        raise DataError(f"{what}: no answer to {_some(bare)} in {source}", fix="is it the right file?")
    if split != "train":  # only a learner may see how a problem is solved, and only of what it learns from
        problems = tuple(replace(problem, solution=None) for problem in problems)
    digest, which = set_hash(problems), _some(reworded) if reworded else "one problem or more"
    note = f"worded differently than when the split was fixed: {which} (set {digest}, was {part.hash})"
    return Dataset(published.name, split, problems, digest, source, () if digest == part.hash else (note,))


def _choose(
    problems: Sequence[Problem], entries: Sequence[ListedProblem], what: str
) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """The problems that a list names, in its order and under its labels; and the labels of reworded ones.

    A problem whose text has changed since the list was made is known by its label. One that cannot be found at all
    raises `DataError`: a split is never silently smaller.
    """
    by_text = {fingerprint(problem.text): problem for problem in reversed(problems)}
    wanted = {entry.fingerprint for entry in entries}
    free = {p.label: p for p in problems if p.label and fingerprint(p.text) not in wanted}
    chosen = [by_text.get(entry.fingerprint) or free.get(entry.label) for entry in entries]
    if missing := [entry.label for entry, problem in zip(entries, chosen, strict=True) if problem is None]:
        gone = f"{len(missing)} of {len(entries)} problems are not in the source: {_some(missing)}"
        fix = "is the source complete? else give a folder that has the data (--data-dir)"
        raise DataError(f"{what}: {gone}", fix=fix)
    found = (replace(problem, label=entry.label) for problem, entry in zip(chosen, entries, strict=True) if problem)
    return tuple(found), tuple(entry.label for entry in entries if entry.fingerprint not in by_text)


def _some(labels: Sequence[str], limit: int = 5) -> str:
    """The first few labels, and how many more there are."""
    more = f" and {len(labels) - limit} more" if len(labels) > limit else ""
    return ", ".join(labels[:limit]) + more


def _parquet(path: Path, fields: Mapping[str, str]) -> Sequence[Problem]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        fix = "pip install 'kace[data]', or give --data-dir"
        raise KaceError(f"{path.name} is a Parquet file, which needs pyarrow", fix=fix) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            if absent := [name for name in fields.values() if name not in names]:
                what = f"no column {', '.join(absent)}; it has {', '.join(names)}"
                raise DataError(f"{path}: {what}", fix="is it the right file?")
            if file.metadata.num_rows > MAX_ROWS:
                raise DataError(f"{path}: more than {MAX_ROWS:,} rows", fix="is it the right file?")
            rows: list[Mapping[str, object]] = file.read(columns=list(fields.values())).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:120]
        raise DataError(f"{path}: cannot be read as Parquet ({reason})", fix="remove it, then fetch it again") from None
    return [problem_of(row, f"{path}: row {number}", fields) for number, row in enumerate(rows)]
