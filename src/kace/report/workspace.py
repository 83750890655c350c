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
from typing import Any, NamedTuple

from kace.cards.store import open_state
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


class Workspace:
    """The opened items. Safe to use from several threads."""

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Open paths; `UsageError` if one is missing, or none holds anything to look at.

        What holds nothing yet, such as the folder of a learner that waits for its first
        letter, is shown as soon as it holds something. `progress` is called with bytes
        done and all bytes while a run is indexed.
        """
        self.roots: list[Path] = []
        self._progress = progress
        self._lock = threading.RLock()
        self._look_at = 0.0
        self._items: dict[str, dict[str, Item]] = {}
        self._known: dict[tuple[str, Path], tuple[list[FileState], Any]] = {}
        for path in paths:
            try:
                self.roots.append(path.resolve(strict=True))
            except (OSError, ValueError, RuntimeError):
                what = f"{str(path)[:200]!r} holds nothing to look at"
                raise UsageError(what, fix=f"name {WHAT}") from None
        if not any(next(_found_in(root), None) for root in self.roots):
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
        """Return the item that was opened, if a single one was."""
        found = [*self.items("tree"), *self.items("inbox")]
        for run in self.items("run"):
            # A step of a learner comes with it.
            if run.path.parent.name != "learn":
                found.append(run)
        return found[0] if len(found) == 1 else None

    def table(self, name: str) -> Table:
        """Return a run with everything that it has written so far."""
        path = self.item("run", name).path
        within = next(filter(path.is_relative_to, self.roots))

        def read() -> Table:
            progress = self._progress
            return Table.open(
                path, within=within, allow_empty=True, progress=progress
            )

        # Another manifest is another run.
        table: Table = self._once(path, [path / "run.json"], read)
        table.refresh()
        return table

    def tree(self, name: str) -> OpenTree:
        """Return a tree, read again if its files changed."""
        path = self.item("tree", name).path

        def read() -> OpenTree:
            state = open_state(path)
            generation = state.generation if path.is_dir() else None
            digest = state.tree.content_hash()
            return OpenTree(
                name, path, state.tree, digest, generation, state.frozen
            )

        files = [path, path / "cards.jsonl", path / "journal.jsonl"]
        found: OpenTree = self._once(path, files, read)
        return found

    def _once(
        self, path: Path, files: list[Path], read: Callable[[], Any]
    ) -> Any:
        """Return what was read from a path, again only if a file changed."""
        state = [FileState.of(file) for file in files]
        with self._lock:
            known = self._known.get((read.__qualname__, path))
            if known is None or known[0] != state:
                known = (state, read())
                self._known[read.__qualname__, path] = known
            return known[1]

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
        folder = self.item("run", name).path.parent
        bases: list[str] = []
        others: list[str] = []
        for item in self.items("run"):
            there = self.manifest(item.name)
            same = there.data_hash == here.data_hash
            if item.name == name or not same:
                continue
            if not here.data_hash and item.path.parent != folder:
                continue
            (bases if is_base(there, here) else others).append(item.name)
        return bases + others

    def base_of(self, name: str) -> str:
        """Return the run that one is compared with unless asked otherwise, or ''."""
        here = self.manifest(name)
        for other in self.related(name)[:1]:
            if is_base(self.manifest(other), here):
                return other
        return ""

    def tree_of(self, run: str) -> OpenTree | None:
        """Return the open tree that a run read, or that of the run's learner."""
        item = self.item("run", run)
        wanted = self.manifest(run).tree_hash
        for each in self.items("tree") if wanted else ():
            with suppress(KaceError, OSError):
                tree = self.tree(each.name)
                own = item.path.is_relative_to(each.path)
                if own or tree.hash == wanted:
                    return tree
        return None

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
    """Whether a run is the plain ladder that another of the same model is compared with."""
    return there.system == BASE != here.system and there.model == here.model


def _name(root: Path, path: Path, taken: Container[str]) -> str:
    """Return a name for an address: the path from the opened folder, without GENERIC."""
    relative = path.relative_to(root).parts
    parts = [part for part in relative if part not in GENERIC]
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


def _found_in(path: Path, depth: int = 2) -> Iterator[tuple[str, Path]]:
    """Iterate over what is in a folder, itself included; a thing holds no others."""
    children = _children(path)
    names = {child.name for child in children}
    things = []
    if path.is_file() and path.suffix in (".json", ".jsonl"):
        with suppress(OSError, KaceError), open_plain(path) as file:
            if TREE_FILE.match(file.read(200)):
                things.append(("tree", path))
    # Also a link: it is refused when it is read, and no snapshot is shown in its place.
    if os.path.lexists(path / "cards.jsonl"):
        things.append(("tree", path))
        learn = path / "learn"
        if (learn / "learn.json").is_file() and not learn.is_symlink():
            things.append(("learner", path))
            for step in _children(learn):
                if (step / "run.json").is_file():
                    things.append(("run", step))
    if "run.json" in names:
        things.append(("run", path))
    if any(name.endswith(".request.md") for name in names):
        things.append(("inbox", path))
    yield from things
    if depth and not things:
        for child in children:
            yield from _found_in(child, depth - 1)


def _children(folder: Path) -> list[Path]:
    """Return the entries of a folder by name, without hidden ones and links."""
    found: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] != "." and not entry.is_symlink():
                found.append(Path(entry.path))
            if len(found) >= MAX_ENTRIES:
                break
    return sorted(found)
