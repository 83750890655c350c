"""The workspace: what the viewer was opened on. It names every item, reads it when asked, and reads nothing else.

A path may be a tree, a run, an exchange folder, or a folder that holds such things: one level down, runs also two.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kace.errors import KaceError, UsageError
from kace.files import open_plain
from kace.report.page import NotHere, environment
from kace.report.trees import TreeIndex
from kace.runs.solves import RunIndex

KINDS = {
    "tree": "Trees",
    "run": "Runs",
    "learner": "Learners",
    "inbox": "Inbox",
}  # as pages head them
WHAT = "a tree, a run (kace eval, kace solve), what kace learn wrote, an exchange folder, or a folder of these"
# seconds until folders are looked through again, and how often what that took
LOOK_AGAIN = 2.0
SLOWER = 20.0
MAX_ENTRIES = 20_000  # entries of one folder that are looked at
MAX_NAME = 60
GENERIC = ("tree", "trees", "runs")  # names that tell nothing: the folder above does
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_TREE_FILE = re.compile(
    rb'\s*(?:\{"kace_tree"|\{\s*"(?:domains|cards)"\s*:'
    rb'|\[\s*\{\s*"(?:card_id|payload|routing_conditions|difficulty_tag|domain_tags|helpfulness_score|provenance)"\s*:)'
)


class Item(NamedTuple):
    """One thing of the workspace."""

    kind: str
    name: str  # safe in an address, and no other item of this kind has it
    path: Path  # where it lies, with every link resolved. A learner lies where its tree does.


Found = tuple[
    str, Path, Path | None
]  # what has no name yet: its kind, its place, the tree whose learner made it


class Workspace:
    """The opened items. Any number of threads may ask."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Raises `UsageError` for a path that holds nothing to look at."""
        given = {path: _resolved(path) for path in paths}
        self.roots = tuple(dict.fromkeys(given.values()))
        if not given:
            raise UsageError("nothing to look at", fix=f"name {WHAT}")
        for said, path in given.items():
            if (first := next(self._found_at(path), None)) is None:
                raise UsageError(f"{said} holds nothing to look at", fix=f"name {WHAT}")
            if first[1] == path and (out := self._link_out(path)):
                raise UsageError(
                    f"{said}: {out} is a link out of it",
                    fix="open the folder that it leads to as well",
                )
        self._lock = threading.RLock()
        self._look_next = 0.0
        self._names: dict[tuple[str, Path], str] = {}
        self._items: dict[str, dict[str, Item]] = {}
        self._trees: dict[str, TreeIndex] = {}
        self._runs: dict[str, RunIndex] = {}
        self._look()

    def items(self, kind: str) -> tuple[Item, ...]:
        """All items of a kind, in the order of the paths and then by name. What is new since is there as well."""
        with self._lock:
            self._look()
            return tuple(self._items[kind].values())

    def item(self, kind: str, name: str) -> Item:
        """The item of a name; `NotHere` where there is none."""
        with self._lock:
            if name not in self._items[kind]:
                self._look()
            found = self._items[kind].get(name)
        if found is None:
            raise NotHere(f"no {kind} called '{name[:80]}' is open")
        return found

    def tree(self, name: str) -> TreeIndex:
        """The sidecar of a tree; `look` at it before asking it anything."""
        path = self._readable("tree", name)
        with self._lock:
            if name not in self._trees:
                self._trees[name] = TreeIndex(name, path)
            return self._trees[name]

    def run(self, name: str) -> RunIndex:
        """The sidecar of a run; `look` at it before asking it anything."""
        path = self._readable("run", name)
        with self._lock:
            if name not in self._runs:
                above = (root for root in self.roots if path.is_relative_to(root))
                self._runs[name] = RunIndex(
                    path, within=min(above, key=lambda root: len(root.parts))
                )
            return self._runs[name]

    def runs(self) -> dict[str, RunIndex]:
        """The runs that were asked for so far, by name."""
        return self._runs.copy()

    def _readable(self, kind: str, name: str) -> Path:
        """Where an item lies, which must not have links to the outside among its own files."""
        path = self.item(kind, name).path
        if outside := self._link_out(path):
            raise NotHere(
                f"{path.name}: {outside} leads out of the opened folders, so it is not read"
            )
        return path

    def only(self) -> Item | None:
        """The one thing that was opened, where it is one: what a reader wants to see first."""
        steps = {learner.path / "learn" for learner in self.items("learner")}
        runs = [item for item in self.items("run") if item.path.parent not in steps]
        found = [*self.items("tree"), *runs, *self.items("inbox")]
        return found[0] if len(found) == 1 else None

    def warm(self) -> None:
        """Begin to read the one thing that was opened, and its template. Of several, nothing is read ahead."""
        item = self.only()
        environment().get_template(f"{item.kind}.html" if item else "home.html")
        with suppress(KaceError, OSError):  # its page says what is wrong
            if item is not None and item.kind in {"tree", "run"}:
                (
                    self.tree(item.name) if item.kind == "tree" else self.run(item.name)
                ).look(0)

    def close(self) -> None:
        """Stop reading."""
        for sidecar in (*self._trees.values(), *self._runs.values()):
            sidecar.close()

    def inside(self, path: Path) -> Path:
        """The path of a file that a page reads by itself, its links resolved; `NotHere` outside the opened folders."""
        if not self._holds(path):
            raise NotHere("that lies outside the opened folders")
        return path.resolve()

    def _holds(self, path: Path) -> bool:
        """Whether a path, its links resolved, lies in an opened folder or is an opened file."""
        try:
            real = path.resolve()
            looped = real.is_symlink()
        except (OSError, ValueError, RuntimeError):  # a name with NUL, a loop of links
            return False
        return not looped and any(real.is_relative_to(root) for root in self.roots)

    def _link_out(self, folder: Path, depth: int = 2) -> str | None:
        """The first link in a folder that leads outside, or the item itself where it has come to lie outside."""
        if not self._holds(folder):
            return folder.name
        if depth == 0 or not folder.is_dir():
            return None
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() and not self._holds(Path(entry.path)):
                    return entry.name
                if entry.is_dir(follow_symlinks=False) and (
                    out := self._link_out(Path(entry.path), depth - 1)
                ):
                    return out
        return None

    def _look(self) -> None:
        began = time.monotonic()
        if began < self._look_next:
            return
        items: dict[str, dict[str, Item]] = {kind: {} for kind in KINDS}
        for kind, path, tree in (
            found for root in self.roots for found in self._found_at(root)
        ):
            name = self._name(kind, path, tree)
            items[kind].setdefault(name, Item(kind, name, path))
        self._items = items
        now = time.monotonic()
        self._look_next = now + max(LOOK_AGAIN, SLOWER * (now - began))

    def _found_at(self, root: Path) -> Iterator[Found]:
        """Everything to look at, by name; a thing may come twice."""
        here = list(_things(root))
        yield from here
        for child in [] if here else filter(self._holds, _children(root)):
            things = list(_things(child))
            yield from things
            for sub in [] if things else _children(child):
                if (sub / "run.json").is_file() and self._holds(sub):
                    yield "run", sub.resolve(), None

    def _name(self, kind: str, path: Path, tree: Path | None) -> str:
        """A name that no other item has, kept while it is open. A learner's runs begin with its tree's."""
        if known := self._names.get((kind, path)):
            return known
        named = (
            path.name if path.is_dir() else path.stem,
            *(above.name for above in path.parents),
        )
        telling = [*(name for name in named if name not in GENERIC), named[0]]
        own, outer = (
            _STRANGE.sub("-", name).strip("-.")[:MAX_NAME] or "item"
            for name in telling[:2]
        )
        above = self._names.get(("tree", tree or path))
        wanted = [own, f"{outer}-{own}"]
        if above is not None and (kind == "learner" or tree):
            wanted = [above if kind == "learner" else f"{above}.{own}"]
        taken = {name for (of, _), name in self._names.items() if of == kind}
        wanted += [f"{wanted[0]}-{number}" for number in range(2, len(taken) + 3)]
        name = self._names[kind, path] = next(
            name for name in wanted if name not in taken
        )
        return name


def _things(path: Path) -> Iterator[Found]:
    """What a path is; a tree that learned is several things."""
    real = path.resolve()
    if path.is_file() and path.suffix in {".json", ".jsonl"}:
        with suppress(OSError), open_plain(path) as file:
            if _TREE_FILE.match(file.read(200)):
                yield "tree", real, None
    if (path / "cards.jsonl").is_file():
        yield "tree", real, None
        learn = real / "learn"
        if (learn / "learn.json").is_file() and not learn.is_symlink():
            yield "learner", real, None
            steps = (
                step
                for step in _children(learn)
                if (step / "run.json").is_file() and not step.is_symlink()
            )
            yield from (("run", step, real) for step in steps)
    if (path / "run.json").is_file():
        yield "run", real, None
    if any(child.name.endswith(".request.md") for child in _children(path)):
        yield "inbox", real, None


def _children(folder: Path) -> list[Path]:
    """The entries of a folder by name, hidden ones left out."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(
            folder / entry.name
            for entry in islice(entries, MAX_ENTRIES)
            if not entry.name.startswith(".")
        )
    return []


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        what = (
            error.strerror.lower()
            if isinstance(error, OSError) and error.strerror
            else "cannot be read"
        )
        raise UsageError(f"{str(path)[:200]!r}: {what}", fix="check the path") from None
