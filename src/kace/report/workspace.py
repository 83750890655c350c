"""What the viewer was opened on: it names every item, and reads nothing else.

A path may be a tree, a run, an exchange folder, or a folder that holds such things, at
most two levels down. Links inside an opened folder are never followed. An address only
ever holds names of items, never a path.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kace.cards.store import open_state
from kace.cards.tree import EpistemicTree
from kace.errors import KaceError, UsageError
from kace.report.render import NotHere
from kace.runs.manifest import Manifest
from kace.runs.table import FileState, Table

KINDS = {
    "tree": "Trees",
    "run": "Runs",
    "learner": "Learners",
    "inbox": "Inbox",
}
WHAT = (
    "a tree, a run (kace eval, kace solve), what kace learn wrote,"
    " an exchange folder, or a folder of these"
)
BASE = (
    "tiered"  # the ladder without cards, which other systems are compared with
)
LOOK_AGAIN = 2.0  # seconds between two looks through the opened folders
MAX_NAME = 60
GENERIC = ("tree", "trees", "runs", "learn")  # folders whose names say nothing


class Item(NamedTuple):
    """One thing of the workspace, by a name that no other item of its kind has."""

    kind: str
    name: str
    path: Path  # of a learner, its tree's folder

    @property
    def changed(self) -> float:
        """When it last changed, in seconds since 1970; 0 if it is gone."""
        return FileState.of(self.path).changed


class OpenTree(NamedTuple):
    """A tree as it was last read."""

    name: str
    path: Path
    tree: EpistemicTree
    hash: str
    generation: int | None  # `None` for a single file, which has no history
    frozen: str | None


class Workspace:
    """The opened items. Safe to use from several threads."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open paths; `UsageError` if one is missing, or none holds anything to look at.

        What holds nothing yet, such as the folder of a learner that waits for its first
        letter, is shown as soon as it holds something.
        """
        self.roots: list[Path] = []
        for path in paths:
            try:
                self.roots.append(path.resolve(strict=True))
            except (OSError, ValueError, RuntimeError):
                what = f"{str(path)[:200]!r} holds nothing to look at"
                raise UsageError(what, fix=f"name {WHAT}") from None
        self._look()
        if not self._items:
            raise UsageError("nothing to look at", fix=f"name {WHAT}")

    def items(self, kind: str) -> list[Item]:
        """Return the items of a kind in the order of the paths, new ones included."""
        if time.monotonic() >= self._looked + LOOK_AGAIN:
            self._look()
        return [item for item in self._items.values() if item.kind == kind]

    def item(self, kind: str, name: str) -> Item:
        """Return the item of a name; `NotHere` if there is none."""
        self.items(kind)
        if (kind, name) not in self._items:
            raise NotHere(f"no {kind} called '{name[:80]}' is open")
        return self._items[kind, name]

    def table(self, name: str) -> Table:
        """Return a run with everything that it has written so far."""
        path = self.item("run", name).path
        root = next(filter(path.is_relative_to, self.roots))
        # Another manifest is another run.
        state = FileState.of(path / "run.json")
        table = _open_table(path, root, state)
        table.refresh()
        return table

    def tree(self, name: str) -> OpenTree:
        """Return a tree, read again if its files changed."""
        path = self.item("tree", name).path
        files = (path, path / "cards.jsonl", path / "journal.jsonl")
        return _read_tree(name, path, *map(FileState.of, files))

    def manifest(self, name: str) -> Manifest:
        """Return what produced a run; empty if that cannot be read."""
        with suppress(KaceError, OSError):
            return Manifest.read(self.item("run", name).path / "run.json")
        return Manifest()

    def related(self, name: str) -> list[str]:
        """Return the other runs of the same problems.

        The plain ladder with the same model comes first.
        """
        here = self.manifest(name)
        found = {}
        for item in self.items("run"):
            there = self.manifest(item.name)
            if item.name != name and there.data_hash == here.data_hash:
                found[item.name] = not is_base(there, here)
        return sorted(found, key=found.__getitem__)

    def base_of(self, name: str) -> str:
        """Return the run that one is compared with unless asked otherwise, or ''."""
        here = self.manifest(name)
        for other in self.related(name):
            if is_base(self.manifest(other), here):
                return other
        return ""

    def tree_of(self, run: str) -> OpenTree | None:
        """Return the open tree that a run read, or that of the run's learner."""
        wanted = self.manifest(run).tree_hash
        path = self.item("run", run).path
        for item in self.items("tree") if wanted else ():
            with suppress(KaceError, OSError):
                tree = self.tree(item.name)
                if tree.hash == wanted or path.is_relative_to(item.path):
                    return tree
        return None

    def _look(self) -> None:
        """Look through the opened folders."""
        found: dict[tuple[str, Path], Path] = {}
        for root in self.roots:
            # A file is a tree if it was named; others may lie beside what is opened.
            is_tree = root.is_file() and root.suffix in (".json", ".jsonl")
            for each in [("tree", root)] if is_tree else _found_in(root):
                found.setdefault(each, root)
        items: dict[tuple[str, str], Item] = {}
        for (kind, path), root in found.items():
            own = name = _name(root, path)
            number = 1
            while (kind, name) in items:
                number += 1
                name = f"{own}-{number}"
            items[kind, name] = Item(kind, name, path)
        self._items = items
        self._looked = time.monotonic()


@lru_cache(maxsize=256)
def _open_table(path: Path, root: Path, state: FileState) -> Table:
    return Table.open(path, within=root, allow_empty=True)


@lru_cache(maxsize=16)
def _read_tree(name: str, path: Path, *states: FileState) -> OpenTree:
    state = open_state(path)
    generation = state.generation if path.is_dir() else None
    digest = state.tree.content_hash()
    return OpenTree(name, path, state.tree, digest, generation, state.frozen)


def is_base(there: Manifest, here: Manifest) -> bool:
    """Whether a run is the plain ladder that another of the same model is compared with."""
    return there.system == BASE != here.system and there.model == here.model


def _name(root: Path, path: Path) -> str:
    """Return a name for an address: the path from the opened folder, without GENERIC."""
    parts = [
        part for part in path.relative_to(root).parts if part not in GENERIC
    ]
    if not parts or (root / "cards.jsonl").exists():
        above = root.parent if root.name in GENERIC else root
        parts.insert(0, above.name)
    joined = re.sub(r"[^A-Za-z0-9._-]+", "-", ".".join(parts))
    return joined.strip("-.")[:MAX_NAME] or "item"


def _found_in(path: Path, depth: int = 2) -> Iterator[tuple[str, Path]]:
    """Iterate over what is in a folder, itself included; a thing holds no others."""
    children = _children(path)
    things = []
    # Also a link: it is refused when it is read, and no snapshot is shown in its place.
    if os.path.lexists(path / "cards.jsonl"):
        things.append(("tree", path))
        learn = path / "learn"
        if (learn / "learn.json").is_file() and not learn.is_symlink():
            things.append(("learner", path))
            for step in _children(learn):
                if (step / "run.json").is_file():
                    things.append(("run", step))
    if path / "run.json" in children:
        things.append(("run", path))
    if any(child.name.endswith(".request.md") for child in children):
        things.append(("inbox", path))
    yield from things
    if depth and not things:
        for child in children:
            yield from _found_in(child, depth - 1)


def _children(folder: Path) -> list[Path]:
    """Return the entries of a folder by name, without hidden ones and links."""
    with suppress(OSError):
        found = sorted(folder.glob("[!.]*"))
        return [path for path in found if not path.is_symlink()]
    return []
