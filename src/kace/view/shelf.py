"""The shelf: what a viewer was opened on. It names every item, reads it when asked, and reads nothing else.

A path may be a tree (its directory, a snapshot or a JSON file), a run, an exchange folder, or a folder that holds
such things: one level down, runs also two. A tree that `kace learn` made is a learner as well, and its runs are here.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kace.errors import KaceError
from kace.view.page import NotHere
from kace.view.shelf_scan import Found, Kind, Roots, found_in

if TYPE_CHECKING:
    from kace.tree.store import TreeStore
    from kace.tree.tree import EpistemicTree
    from kace.view.run_index import RunIndex

__all__ = ["KINDS", "Item", "Kind", "Shelf", "open_shelf"]

KINDS: tuple[Kind, ...] = ("tree", "run", "learner", "inbox")
LOOK_AGAIN = 2.0
"""Seconds after which the opened folders are looked through for what is new; longer where that takes long."""
SLOWER = 20.0
"""Looking takes at most the part of the time that this is the inverse of."""
MAX_NAME = 60
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing on the shelf."""

    kind: Kind
    name: str
    """Safe in an address, and no other item of this kind has it."""
    path: Path
    """Where it lies, with every link resolved. A learner lies where its tree does."""


class Shelf:
    """The opened items. Any number of threads may ask."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._roots = Roots(paths)
        self._lock = threading.RLock()
        self._names: dict[tuple[Kind, Path], str] = {}
        self._items: dict[Kind, dict[str, Item]] = {kind: {} for kind in KINDS}
        self._stores: dict[Path, TreeStore] = {}
        self._files: dict[Path, tuple[int, int, EpistemicTree]] = {}
        self._runs: dict[str, RunIndex] = {}
        self._loading: dict[Path, threading.Lock] = {}
        self._look_next = 0.0
        self._look()

    def items(self, kind: Kind) -> tuple[Item, ...]:
        """All items of a kind, in the order of the paths and then by name. What is new since is there as well."""
        with self._lock:
            self._look()
            return tuple(self._items[kind].values())

    def item(self, kind: Kind, name: str) -> Item:
        """The item of a name; `NotHere` where there is none."""
        with self._lock:
            if name not in self._items[kind]:
                self._look()
            found = self._items[kind].get(name)
        if found is None:
            raise NotHere(f"no {kind} called '{name[:80]}' is open")
        return found

    def tree(self, name: str) -> EpistemicTree:
        """The tree as it is now; read again when its file has changed."""
        item = self.item("tree", name)
        self._roots.check(item.path)
        with self._only_one(item.path):
            store = self._store(item)
            return self._file(item.path) if store is None else store.load()

    def store(self, name: str) -> TreeStore | None:
        """The store of a tree that has a history; `None` for a tree in one file."""
        item = self.item("tree", name)
        self._roots.check(item.path)
        return self._store(item)

    def run(self, name: str) -> RunIndex:
        """The index of a run, made once and kept."""
        from kace.view.run_index import RunIndex

        item = self.item("run", name)
        self._roots.check(item.path)
        with self._only_one(item.path):
            found = self._runs.get(name)
            if found is None:
                within = self._roots.root_of(item.path)
                found = self._runs[name] = RunIndex(item.path, within=within if within.is_dir() else None)
            return found

    def runs(self) -> Mapping[str, RunIndex]:
        """The runs that were asked for so far, by name."""
        return dict(self._runs)

    def only(self) -> Item | None:
        """The one thing that was opened, where it is one: what a reader wants to see first."""
        steps = {learner.path / "learn" for learner in self.items("learner")}
        runs = [item for item in self.items("run") if item.path.parent not in steps]
        found = [*self.items("tree"), *runs, *self.items("inbox")]
        return found[0] if len(found) == 1 else None

    def warm(self) -> None:
        """Read the one thing that was opened, so that its page is there at once. Of several, nothing is read ahead."""
        item = self.only()
        with contextlib.suppress(KaceError, OSError):  # its page says what is wrong
            if item is not None and item.kind == "tree":
                self.tree(item.name)
            elif item is not None and item.kind == "run":
                self.run(item.name)

    def close(self) -> None:
        """Stop reading runs."""
        for run in self.runs().values():
            run.close()

    def inside(self, path: Path) -> Path:
        """The path with every link resolved, if it lies in an opened folder; `NotHere` otherwise.

        For files that an area reads by itself: a request, a snapshot, a step of a learner.
        """
        return self._roots.inside(path)

    def _look(self) -> None:
        began = time.monotonic()
        if began < self._look_next:
            return
        found: dict[Kind, dict[str, Item]] = {kind: {} for kind in KINDS}
        for thing in found_in(self._roots):
            name = self._name(thing)
            found[thing.kind].setdefault(name, Item(thing.kind, name, thing.path))
        self._items = found
        now = time.monotonic()
        self._look_next = now + max(LOOK_AGAIN, SLOWER * (now - began))

    def _name(self, thing: Found) -> str:
        """The thing's name: given once, and kept as long as the shelf is open."""
        key = (thing.kind, thing.path)
        if key not in self._names:
            taken = {name for (kind, _), name in self._names.items() if kind == thing.kind}
            self._names[key] = _free_name(thing, taken, self._names.get(("tree", thing.tree or thing.path)))
        return self._names[key]

    def _store(self, item: Item) -> TreeStore | None:
        from kace.tree.store import TreeStore

        if not item.path.is_dir():
            return None
        with self._lock:
            return self._stores.setdefault(item.path, TreeStore(item.path))

    def _file(self, path: Path) -> EpistemicTree:
        from kace.tree.store import open_tree

        try:
            now = path.stat()
        except OSError:
            raise NotHere(f"{path.name} is not there any more") from None
        known = self._files.get(path)
        if known is None or known[:2] != (now.st_mtime_ns, now.st_size):
            known = self._files[path] = (now.st_mtime_ns, now.st_size, open_tree(path))
        return known[2]

    def _only_one(self, path: Path) -> threading.Lock:
        """Held while an item is read, so that two pages that ask at once read it once."""
        with self._lock:
            return self._loading.setdefault(path, threading.Lock())


def open_shelf(paths: Iterable[Path]) -> Shelf:
    """A shelf of what lies at the paths; raises `UsageError` for a path that holds nothing to look at."""
    return Shelf(tuple(paths))


def _free_name(thing: Found, taken: set[str], tree: str | None) -> str:
    """A name from the path that no other item has; a learner's run begins with its tree's name."""
    own = thing.path.name if thing.path.is_dir() else thing.path.stem
    if thing.kind == "learner" and tree is not None:
        wanted = [tree]
    elif thing.tree is not None and tree is not None:
        wanted = [f"{tree}.{plain_name(own)}"]
    else:
        wanted = [plain_name(own), f"{plain_name(thing.path.parent.name)}-{plain_name(own)}"]
    for name in wanted:
        if name not in taken:
            return name
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted[0]}-{number}") not in taken)


def plain_name(name: str) -> str:
    """A name that needs no quoting in an address."""
    return _STRANGE.sub("-", name).strip("-.")[:MAX_NAME] or "item"
