"""Problems by name: the bundled starter set, the published data sets with their fixed splits, or any JSONL file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from kace.datasets.catalog import LOCAL, PUBLISHED, Part, Published, named_domain
from kace.datasets.fingerprint import fingerprint, set_hash
from kace.datasets.hub import Watch, fetch, ignore
from kace.datasets.listing import choose, read_listing, some
from kace.datasets.reading import read
from kace.datasets.starter import SPLITS, Split, load_split
from kace.errors import DataError, UsageError
from kace.problem import Problem, load_problems

STARTER = "starter"
NAMES = (STARTER, *(published.name for published in PUBLISHED))
ALL = "all"
"""The split of a file, which has none."""


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


def load(
    name_or_path: str | Path,
    split: str = "test",
    *,
    data_dir: Path | None = None,
    cache: Path,
    hub: str,
    fields: Mapping[str, str] | None = None,
    watch: Watch = ignore,
) -> Dataset:
    """A split of a named data set, or all of a JSONL file.

    A published data set is read from `data_dir` when one is given, else from `cache`, fetched from `hub` first where
    it is not there. `fields` is for files: see `read_problems`. Raises `KaceError` when problems are missing; a
    problem that is there in another wording is taken and noted.
    """
    name = canonical(str(name_or_path))
    if name is None:
        return _from_file(Path(name_or_path), fields)
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
    return _split_of(published, split, read((path,), LOCAL, named_domain), str(path))


def from_hub(published: Published, split: Split, *, cache: Path, hub: str, watch: Watch = ignore) -> Dataset:
    """A split, as it is published; what the cache has is not fetched again."""
    pool = published.parts[split].pool
    paths = [fetch(file, cache=cache, hub=hub, watch=watch) for file in pool.files]
    source = f"{pool.files[0].repo}@{pool.files[0].revision[:12]}"
    return _split_of(published, split, read(paths, pool.columns, pool.tidy), source)


def canonical(name: str) -> str | None:
    """The name of a data set however it is spelt, or None for a file. Raises `UsageError` for what is neither."""
    plain = name.casefold().replace("-", "_")
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


def _from_file(path: Path, fields: Mapping[str, str] | None) -> Dataset:
    problems = load_problems(path, fields)
    return Dataset(path.name, ALL, problems, set_hash(problems), str(path))


def _split_of(published: Published, split: Split, found: tuple[Problem, ...], source: str) -> Dataset:
    what, part, listing = f"{published.name} {split}", published.parts[split], read_listing(published.listing)
    reworded: tuple[str, ...] = ()
    if split in listing:
        problems, reworded = choose(found, listing[split], what)
    else:
        elsewhere = {entry.fingerprint for entries in listing.values() for entry in entries}
        problems = tuple(problem for problem in found if fingerprint(problem.text) not in elsewhere)
    if len(problems) != part.size:
        raise DataError(
            f"{what}: {len(problems):,} problems in {source}, not {part.size:,}", fix="is the source complete?"
        )
    if bare := [problem.name for problem in problems if problem.answer is None]:
        raise DataError(f"{what}: no answer to {some(bare)} in {source}", fix="is it the right file?")
    if split != "train":  # only a learner may see how a problem is solved, and only of what it learns from
        problems = tuple(replace(problem, solution=None) for problem in problems)
    digest = set_hash(problems)
    return Dataset(published.name, split, problems, digest, source, _notes(part, digest, reworded))


def _notes(part: Part, digest: str, reworded: tuple[str, ...]) -> tuple[str, ...]:
    if digest == part.hash:
        return ()
    which = some(reworded) if reworded else "one problem or more"
    return (f"worded differently than when the split was fixed: {which} (set {digest}, was {part.hash})",)
