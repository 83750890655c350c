"""Looking through the opened folders: what each thing is, and whether it lies inside."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from kace.errors import UsageError
from kace.view.page import NotHere

Kind = Literal["tree", "run", "learner", "inbox"]

MAX_ENTRIES = 20_000
"""Entries of one folder that are looked at."""
WHAT = "a tree, a run (kace eval, kace solve), what kace learn wrote, an exchange folder, or a folder of these"
_BEGINNING = re.compile(
    rb'\s*(?:\{"kace_tree"|\{\s*"(?:domains|cards)"\s*:'
    rb'|\[\s*\{\s*"(?:card_id|payload|routing_conditions|difficulty_tag|domain_tags|helpfulness_score|provenance)"\s*:)'
)


@dataclass(frozen=True, slots=True)
class Found:
    """Something to look at."""

    kind: Kind
    path: Path
    tree: Path | None = None
    """The tree whose learner made it."""


class Roots:
    """The opened paths, resolved. Whatever is read must lie in one of them."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        if not paths:
            raise UsageError("nothing to look at", fix=f"name {WHAT}")
        self.paths = tuple(dict.fromkeys(map(_resolved, paths)))
        for given in paths:
            _refuse_if_nothing(given, self)

    def holds(self, path: Path) -> bool:
        """Whether a path, its links resolved, lies in an opened folder or is an opened file."""
        try:
            real = path.resolve()
            looped = real.is_symlink()
        except (OSError, ValueError, RuntimeError):  # a name with NUL, a loop of links
            return False
        return not looped and any(real == root or real.is_relative_to(root) for root in self.paths)

    def root_of(self, path: Path) -> Path:
        """The widest opened path that holds a resolved path."""
        return min((root for root in self.paths if path.is_relative_to(root)), key=lambda root: len(root.parts))

    def inside(self, path: Path) -> Path:
        """The path resolved; `NotHere` where it lies outside."""
        if not self.holds(path):
            raise NotHere("that lies outside the opened folders")
        return path.resolve()

    def check(self, folder: Path) -> None:
        """Refuse an item that has links to the outside among its own files."""
        if outside := _link_out(folder, self):
            raise NotHere(f"{folder.name}: {outside} leads out of the opened folders, so it is not read")


def found_in(roots: Roots) -> Iterator[Found]:
    """Everything to look at, in the order of the roots and by name within each; a thing may come twice."""
    for root in roots.paths:
        yield from _found_at(root, roots)


def _found_at(root: Path, roots: Roots) -> Iterator[Found]:
    here = list(_things(root))
    yield from here
    if here or not root.is_dir():
        return
    for child in _children(root):
        if not roots.holds(child):
            continue
        things = list(_things(child))
        yield from things
        if not things and child.is_dir():
            runs = (sub for sub in _children(child) if _is_run(sub) and roots.holds(sub))
            yield from (Found("run", run.resolve()) for run in runs)


def _things(path: Path) -> Iterator[Found]:
    """What a path is; a tree that learned is several things."""
    if path.is_file():
        if is_tree_file(path):
            yield Found("tree", path.resolve())
        return
    real = path.resolve()
    if (path / "cards.jsonl").is_file():
        yield Found("tree", real)
        yield from _learner(real)
    if _is_run(path):
        yield Found("run", real)
    if _is_inbox(path):
        yield Found("inbox", real)


def _learner(tree: Path) -> Iterator[Found]:
    learn = tree / "learn"
    if not (learn / "learn.json").is_file() or learn.is_symlink():
        return
    yield Found("learner", tree)
    for step in _children(learn):
        if _is_run(step) and not step.is_symlink():
            yield Found("run", step, tree)


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _is_inbox(path: Path) -> bool:
    try:
        return any(name.endswith(".request.md") for name in islice(_names(path), MAX_ENTRIES))
    except OSError:
        return False


def is_tree_file(path: Path) -> bool:
    """Whether a file begins like a tree: our own header, or the JSON of cards."""
    if path.suffix not in {".json", ".jsonl"}:
        return False
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(200)) is not None
    except OSError:
        return False


def _names(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name


def _children(folder: Path) -> list[Path]:
    """The entries of a folder by name, hidden ones left out."""
    try:
        names = sorted(name for name in islice(_names(folder), MAX_ENTRIES) if not name.startswith("."))
    except OSError:
        return []
    return [folder / name for name in names]


def _link_out(folder: Path, roots: Roots, depth: int = 2) -> str | None:
    """The first link in a folder that leads outside, or the item itself where it has come to lie outside."""
    if not roots.holds(folder):
        return folder.name
    if depth == 0 or not folder.is_dir():
        return None
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() and not roots.holds(Path(entry.path)):
                    return entry.name
                if entry.is_dir(follow_symlinks=False) and (out := _link_out(Path(entry.path), roots, depth - 1)):
                    return out
    except OSError:
        return None
    return None


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        what = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "cannot be read"
        raise UsageError(f"{str(path)[:200]!r}: {what}", fix="check the path") from None


def _refuse_if_nothing(given: Path, roots: Roots) -> None:
    path = _resolved(given)
    first = next(_found_at(path, roots), None)
    if first is None:
        raise UsageError(f"{given} holds nothing to look at", fix=f"name {WHAT}")
    if first.path == path and (outside := _link_out(path, roots)):
        raise UsageError(f"{given}: {outside} is a link out of it", fix="open the folder that it leads to as well")
