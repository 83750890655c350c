"""The lists that fix the splits: fingerprints and labels, never texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kace.datasets.fingerprint import fingerprint
from kace.datasets.starter import SPLITS, Split
from kace.errors import DataError
from kace.problem import Problem

FOLDER = Path(__file__).parent / "splits"


class Entry(NamedTuple):
    """One problem of a split."""

    fingerprint: str
    label: str


Listing = Mapping[Split, tuple[Entry, ...]]


class Chosen(NamedTuple):
    """The problems of a list, and the labels of those found under another wording."""

    problems: tuple[Problem, ...]
    reworded: tuple[str, ...]


def listing_path(name: str) -> Path:
    """Where the list of a data set lies."""
    return FOLDER / f"{name}.tsv"


def read_listing(path: Path) -> Listing:
    """The listed splits of a data set."""
    rows = (line.split("\t") for line in _lines(path))
    entries = [(split, Entry(print_, label)) for split, print_, label in rows]
    found: dict[Split, tuple[Entry, ...]] = {
        name: tuple(entry for split, entry in entries if split == name) for name in SPLITS
    }
    return {split: listed for split, listed in found.items() if listed}


def listing_text(listing: Listing, why: Sequence[str]) -> str:
    """A list as its file holds it, under the lines that say how it was made."""
    rows = ("\t".join((split, *entry)) for split, entries in listing.items() for entry in entries)
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in why), *rows))


def choose(pool: Iterable[Problem], entries: Sequence[Entry], what: str) -> Chosen:
    """The problems that a list names, in its order and under its labels.

    A problem whose text has changed since the list was made is known by its label. One that cannot be found at all
    raises `DataError`: a split is never silently smaller.
    """
    problems = tuple(pool)
    by_text: dict[str, Problem] = {}
    for problem in problems:
        by_text.setdefault(fingerprint(problem.text), problem)
    wanted = {entry.fingerprint for entry in entries}
    free = {p.label: p for p in problems if p.label and fingerprint(p.text) not in wanted}
    chosen = [by_text.get(entry.fingerprint) or free.get(entry.label) for entry in entries]
    if missing := [entry.label for entry, problem in zip(entries, chosen, strict=True) if problem is None]:
        raise DataError(
            f"{what}: {len(missing)} of {len(entries)} problems are not in the source: {some(missing)}",
            fix="is the source complete? else give a folder that has the data (--data-dir)",
        )
    return Chosen(
        tuple(replace(problem, label=entry.label) for problem, entry in zip(chosen, entries, strict=True) if problem),
        tuple(entry.label for entry in entries if entry.fingerprint not in by_text),
    )


def some(labels: Sequence[str], limit: int = 5) -> str:
    """The first few labels, and how many more there are."""
    more = f" and {len(labels) - limit} more" if len(labels) > limit else ""
    return ", ".join(labels[:limit]) + more


def _lines(path: Path) -> Iterable[str]:
    return (line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
