"""What else is open that belongs to a run: runs of the same problems, and the tree it read from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kace.errors import KaceError
from kace.evaluation.arm import TRACES
from kace.solver.manifest import read_manifest
from kace.view.run_manifest import MAX_BYTES, Setup, setup_of

if TYPE_CHECKING:
    from kace.tree.tree import EpistemicTree
    from kace.view.run_index import RunIndex
    from kace.view.shelf import Item, Shelf

MOST = 24
"""Runs that are set beside one."""
LOOKED_AT = 400
"""Runs of a shelf whose manifests are read to find them."""
SMALL_RUN, SMALL_RUNS = 8_000_000, 40_000_000
"""Bytes of a trace, and of all of them, up to which a run is opened because another one is looked at."""
SMALL_TREE = 20_000_000
"""Bytes of a tree up to which it is read because a run is looked at."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another run of the same problems."""

    name: str
    """As the shelf calls it."""
    index: RunIndex


@dataclass(frozen=True, slots=True)
class TreeRead:
    """The open tree that a run read from, as far as that can be told."""

    name: str
    """As the shelf calls it."""
    exact: bool
    """Whether it is still what the run read; else it has changed since, or is only of the same name."""
    tree: EpistemicTree | None
    """`None` for one that is too large to be read for this."""


def neighbours(shelf: Shelf, name: str) -> tuple[Neighbour, ...]:
    """Open runs of the same problems; small ones are opened for it, large ones only when somebody looked at them."""
    item = shelf.item("run", name)
    here = _setup(item)
    opened, bytes_left = shelf.runs(), SMALL_RUNS
    found: list[Neighbour] = []
    for other in shelf.items("run")[:LOOKED_AT]:
        if other.name == name or len(found) >= MOST or not _alike(item, here, other):
            continue
        if other.name not in opened:
            size = _trace_size(other.path)
            if size > min(SMALL_RUN, bytes_left):
                continue
            bytes_left -= size
        try:
            found.append(Neighbour(other.name, shelf.run(other.name)))
        except KaceError:
            continue
    return tuple(found)


def same_data(one: RunIndex, other: RunIndex) -> bool:
    """Whether two runs say that they were made on the same problems."""
    return bool(one.setup.data_hash) and one.setup.data_hash == other.setup.data_hash


def tree_of(shelf: Shelf, name: str) -> TreeRead | None:
    """The tree that a run read from: the one of its learner, the one of that content, or the only one there is."""
    run = shelf.item("run", name)
    wanted = _setup(run).tree_hash
    trees = shelf.items("tree")
    if not wanted or not trees:
        return None
    read = [_read(shelf, item) for item in sorted(trees, key=lambda item: not _holds(item, run))]
    for found in read:
        if found.tree is not None and found.tree.content_hash() == wanted:
            return TreeRead(found.name, True, found.tree)
    if _holds(shelf.item("tree", read[0].name), run) or len(read) == 1:
        return read[0]
    return None


def _read(shelf: Shelf, item: Item) -> TreeRead:
    try:
        small = _size(item.path / "cards.jsonl" if item.path.is_dir() else item.path) <= SMALL_TREE
        return TreeRead(item.name, False, shelf.tree(item.name) if small else None)
    except KaceError:
        return TreeRead(item.name, False, None)


def _alike(item: Item, here: Setup, other: Item) -> bool:
    """Of the same problems, or steps of the same learner, which do not say what problems they are of."""
    there = _setup(other)
    if here.data_hash or there.data_hash:
        return here.data_hash == there.data_hash
    return item.path.parent == other.path.parent


def _holds(tree: Item, run: Item) -> bool:
    return run.path.is_relative_to(tree.path)


def _setup(item: Item) -> Setup:
    path = item.path / "run.json"
    try:
        return _setup_at(path, path.stat().st_mtime_ns)
    except (OSError, KaceError):
        return setup_of({})


@lru_cache(maxsize=2048)
def _setup_at(path: Path, changed: int) -> Setup:
    return setup_of(read_manifest(path, MAX_BYTES))


def _trace_size(folder: Path) -> int:
    plain, packed = (_size(folder / name) for name in TRACES)
    return plain or 10 * packed


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
