"""What the viewer was opened on: it names every item, and reads nothing else.

A path may be a tree, a run, an exchange folder, or a folder that holds such things, at
most two levels down. Links inside an opened folder are never followed. An address only
ever holds names of items, never a path.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kace.cards.store import TreeStore, frozen_hash_of, open_tree
from kace.cards.tree import EpistemicTree
from kace.errors import KaceError, UsageError
from kace.files import open_plain
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
MAX_ENTRIES = 20_000  # of one folder
MAX_NAME = 60
GENERIC = ("tree", "trees", "runs", "learn")  # folders whose names say nothing
TREE_FILE = re.compile(
    rb'\s*(?:\{"kace_tree"|\{\s*"(?:domains|cards)"\s*:'
    rb'|\[\s*\{\s*"(?:card_id|payload|routing_conditions|difficulty_tag|domain_tags'
    rb'|helpfulness_score|provenance)"\s*:)'
)


class Item(NamedTuple):
    """One thing of the workspace, by a name that no other item of its kind has."""

    kind: str
    name: str
    path: Path  # of a learner, its tree's folder


@dataclass(frozen=True, slots=True)
class OpenTree:
    """A tree as it was last read."""

    name: str
    path: Path
    tree: EpistemicTree
    hash: str
    generation: int | None  # `None` for a single file, which has no history
    frozen: str | None

    @property
    def journal(self) -> Path | None:
        """The journal of a tree in a folder."""
        return self.path / "journal.jsonl" if self.path.is_dir() else None


class Workspace:
    """The opened items. Safe to use from several threads."""

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Open paths; `UsageError` if one holds nothing to look at.

        `progress` is called with bytes done and all bytes while a run is indexed.
        """
        self.roots: list[Path] = []
        self._progress = progress
        self._lock = threading.RLock()
        self._look_at = 0.0
        self._items: dict[str, dict[str, Item]] = {}
        self._tables: dict[str, tuple[object, Table]] = {}
        self._trees: dict[str, tuple[object, OpenTree]] = {}
        for path in paths:
            real = _resolved(path)
            if next(_found_in(real), None) is None:
                raise UsageError(
                    f"{path} holds nothing to look at", fix=f"name {WHAT}"
                )
            if real not in self.roots:
                self.roots.append(real)
        if not self.roots:
            raise UsageError("nothing to look at", fix=f"name {WHAT}")
        self._look()

    def items(self, kind: str) -> list[Item]:
        """Return the items of a kind in the order of the paths, new ones included."""
        with self._lock:
            if time.monotonic() >= self._look_at:
                self._look()
            return list(self._items[kind].values())

    def item(self, kind: str, name: str) -> Item:
        """Return the item of a name; `NotHere` if there is none."""
        for item in self.items(kind):
            if item.name == name:
                return item
        raise NotHere(f"no {kind} called '{name[:80]}' is open")

    def only(self) -> Item | None:
        """Return the item that was opened, if it is a single one."""
        found = [*self.items("tree"), *self.items("inbox")]
        for run in self.items("run"):
            if (
                run.path.parent.name != "learn"
            ):  # a step of a learner comes with it
                found.append(run)
        return found[0] if len(found) == 1 else None

    def table(self, name: str) -> Table:
        """Return a run with everything that it has written so far."""
        path = self.item("run", name).path
        within = next(filter(path.is_relative_to, self.roots))
        state = (path, FileState.of(path / "run.json"))
        with self._lock:
            known = self._tables.get(name)
            if known is None or known[0] != state:  # another run by now
                table = Table.open(
                    path,
                    within=within,
                    allow_empty=True,
                    progress=self._progress,
                )
                known = (state, table)
                self._tables[name] = known
            table = known[1]
        table.refresh()
        return table

    def tree(self, name: str) -> OpenTree:
        """Return a tree, read again if its files changed."""
        path = self.item("tree", name).path
        files = [path]
        if path.is_dir():
            files = [path / "cards.jsonl", path / "journal.jsonl"]
        state = [FileState.of(file) for file in files]
        with self._lock:
            known = self._trees.get(name)
            if known is None or known[0] != state:
                tree = open_tree(path)
                frozen = frozen_hash_of(path)
                generation = (
                    TreeStore(path).generation if path.is_dir() else None
                )
                found = OpenTree(
                    name, path, tree, tree.content_hash(), generation, frozen
                )
                known = (state, found)
                self._trees[name] = known
            return known[1]

    def manifest(self, name: str) -> Manifest:
        """Return what produced a run; empty if that cannot be read."""
        with suppress(KaceError, OSError):
            return Manifest.read(self.item("run", name).path / "run.json")
        return Manifest()

    def related(self, name: str) -> list[str]:
        """Return the other runs of the same problems.

        The plain ladder with the same model comes first, then runs of the same folder.
        """
        here = self.manifest(name)
        folder = self.item("run", name).path.parent
        found = []
        for item in self.items("run"):
            there = self.manifest(item.name)
            near = item.path.parent == folder
            same = near and not there.data_hash
            if here.data_hash:
                same = there.data_hash == here.data_hash
            if same and item.name != name:
                found.append((not is_base(there, here), not near, item.name))
        return [
            other for _, _, other in sorted(found, key=lambda each: each[:2])
        ]

    def base_of(self, name: str) -> str:
        """Return the run that one is compared with unless asked otherwise, or ''."""
        here = self.manifest(name)
        for other in self.related(name)[:1]:
            if is_base(self.manifest(other), here):
                return other
        return ""

    def tree_of(self, run: str) -> tuple[OpenTree, bool] | None:
        """Return the open tree that a run read, and whether it is unchanged since.

        A tree that has changed is known as the one of the run's learner.
        """
        item = self.item("run", run)
        wanted = self.manifest(run).tree_hash
        changed = None
        for each in self.items("tree") if wanted else ():
            with suppress(KaceError, OSError):
                tree = self.tree(each.name)
                if tree.hash == wanted:
                    return tree, True
                if item.path.is_relative_to(each.path):
                    changed = tree
        return (changed, False) if changed else None

    def _look(self) -> None:
        """Look through the opened folders."""
        items: dict[str, dict[str, Item]] = {kind: {} for kind in KINDS}
        seen: set[tuple[str, Path]] = set()
        for root in self.roots:
            for kind, path in _found_in(root):
                if (kind, path) not in seen:
                    seen.add((kind, path))
                    name = _name(root, path, taken=items[kind])
                    items[kind][name] = Item(kind, name, path)
        self._items = items
        self._look_at = time.monotonic() + LOOK_AGAIN


def is_base(there: Manifest, here: Manifest) -> bool:
    """Whether a run is the plain ladder that another of the same model is held to."""
    return there.system == BASE != here.system and there.model == here.model


def _name(root: Path, path: Path, taken: Container[str]) -> str:
    """Return a name for an address: the path from the opened folder, without GENERIC."""
    parts = [
        part for part in path.relative_to(root).parts if part not in GENERIC
    ]
    if not parts or (root / "cards.jsonl").exists():
        parts.insert(0, root.parent.name if root.name in GENERIC else root.name)
    if path.is_file():
        parts[-1] = path.stem
    joined = re.sub(r"[^A-Za-z0-9._-]+", "-", ".".join(parts))
    own = joined.strip("-.")[:MAX_NAME] or "item"
    name = own
    number = 1
    while name in taken:
        number += 1
        name = f"{own}-{number}"
    return name


def _found_in(folder: Path, depth: int = 2) -> Iterator[tuple[str, Path]]:
    """Iterate over what is in a folder, itself included; a thing holds no others."""
    things = list(_things(folder))
    yield from things
    if depth and not things:
        for child in _children(folder):
            if not child.is_symlink():
                yield from _found_in(child, depth - 1)


def _things(path: Path) -> Iterator[tuple[str, Path]]:
    """Iterate over what a path is; a tree that learned is several things."""
    if path.is_file():
        with suppress(OSError, KaceError):
            if path.suffix in (".json", ".jsonl"):
                with open_plain(path) as file:
                    if TREE_FILE.match(file.read(200)):
                        yield "tree", path
        return
    names = {child.name for child in _children(path)}
    if "cards.jsonl" in names:
        yield "tree", path
        learn = path / "learn"
        if (learn / "learn.json").is_file() and not learn.is_symlink():
            yield "learner", path
            for step in _children(learn):
                if (step / "run.json").is_file() and not step.is_symlink():
                    yield "run", step
    if "run.json" in names:
        yield "run", path
    if any(name.endswith(".request.md") for name in names):
        yield "inbox", path


def _children(folder: Path) -> list[Path]:
    """Return the entries of a folder by name, without hidden ones."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] != ".":
                found.append(Path(entry.path))
            if len(found) >= MAX_ENTRIES:
                break
    return sorted(found)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        what = getattr(error, "strerror", None) or "cannot be read"
        reason = f"{str(path)[:200]!r}: {what.lower()}"
        raise UsageError(reason, fix="check the path") from None
