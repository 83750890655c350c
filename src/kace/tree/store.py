"""A tree on disk: a directory that people can diff, with its history, safe under threads, processes and kills.

    cards.jsonl        a header line, then one card a line in order of id: the tree at some generation
    journal.jsonl      one line per change, appended and synced before anything else changes: the truth
    snapshots/         named copies in the form of cards.jsonl
    lock               held by whoever writes; readers never wait

cards.jsonl is the journal's checkpoint. In a small tree every change rewrites it; in a large one only now and then,
and opening replays the changes since.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from kace.errors import KaceError, UsageError
from kace.io import cannot_write, write_atomic
from kace.tree.card import Card
from kace.tree.changes import Add, Batch, Change, Deprecate, Edit, Relocate, SetDomains, applied, touched
from kace.tree.check import check_store
from kace.tree.files import NOTHING, Image, cannot_read, image_text, is_image, read_image, read_spec_json
from kace.tree.journal import Author, Delta, Entry, Kind, append, delta_between, now, read_journal, redone, undone
from kace.tree.refusal import refusal
from kace.tree.state import State, read_state, refuse_if_tampered, stamp_of
from kace.tree.tree import Domain, EpistemicTree, TreeError

__all__ = [
    "Add",
    "Author",
    "Batch",
    "Change",
    "Deprecate",
    "Edit",
    "Entry",
    "Relocate",
    "SetDomains",
    "TreeStore",
    "frozen_hash_of",
    "open_tree",
]

SMALL = 2_000
"""Cards up to which every change rewrites cards.jsonl."""
LOCK_SECONDS = 60.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64})?")


class TreeStore:
    """A tree's directory. Any number of threads and processes may read it; writers take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cards_path = folder / "cards.jsonl"
        self.journal_path = folder / "journal.jsonl"
        self._known: State | None = None

    @classmethod
    def create(
        cls, path: Path, domains: Iterable[Domain], cards: Iterable[Card] = (), *, author: str = "kace", note: str = ""
    ) -> TreeStore:
        """Begin a store in an empty or new directory."""
        tree = EpistemicTree.of(domains, cards)
        store = cls(path)
        with store._lock():
            if store._exists():
                raise UsageError(f"{path} already holds a tree", fix="choose another directory")
            store._commit(State(NOTHING, 0, None), tree, Kind.CREATE, Author(author, note), tree.cards)
        return store

    @classmethod
    def open(cls, path: Path) -> TreeStore:
        """The store in a directory, which must hold one; its tree is read when asked for."""
        store = cls(path)
        if not store._exists():
            raise TreeError(f"no tree in {path}", fix="check the path, or begin one with: kace tree init")
        return store

    def load(self) -> EpistemicTree:
        """The tree as it is now. Refuses a frozen tree whose content changed."""
        return self._checked().image.tree

    @property
    def generation(self) -> int:
        """How many changes the tree has seen; 0 as created."""
        return self._checked().image.generation

    @property
    def frozen_hash(self) -> str | None:
        """The content hash the tree is frozen at, if it is."""
        return self._checked().image.frozen

    def apply(self, change: Change, *, author: str, note: str = "") -> EpistemicTree:
        """Make one change durably and return the tree after it. A change that alters nothing is not recorded."""
        with self._writing() as state:
            tree = applied(state.image.tree, change)
            return self._commit(state, tree, Kind.of(change), Author(author, note), touched(change)).image.tree

    def revert(self, generation: int, *, author: str, note: str = "") -> EpistemicTree:
        """Make the tree exactly what it was at a generation, as a new change."""
        with self._writing() as state:
            tree = self._past(state, generation)
            ids = sorted({*state.image.tree.cards, *tree.cards})
            by = Author(author, note or f"back to generation {generation}")
            return self._commit(state, tree, Kind.REVERT, by, ids).image.tree

    def freeze(self, *, author: str = "kace", note: str = "") -> str:
        """Refuse changes from now on, and return the content hash that every later load must match."""
        with self._settled() as state:
            digest = state.image.frozen
            if digest is None:
                digest = state.image.tree.content_hash()
                self._set_frozen(state, digest, Kind.FREEZE, Author(author, note))
            return digest

    def thaw(self, *, author: str = "kace", note: str = "") -> None:
        """Allow changes again."""
        with self._settled() as state:
            if state.image.frozen is not None:
                self._set_frozen(state, None, Kind.THAW, Author(author, note))

    def log(self) -> tuple[Entry, ...]:
        """Every change, oldest first. Lines that cannot be read are left out; `verify` names them."""
        return tuple(line.content for line in read_journal(self.journal_path) if isinstance(line.content, Entry))

    def at(self, generation: int) -> EpistemicTree:
        """The tree as it was at a generation."""
        return self._past(self._checked(), generation)

    def snapshot(self, name: str) -> Path:
        """Keep the tree under a name, in a file that `open_tree` reads."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name[:64]!r} cannot name a snapshot", fix="use letters, digits, '-' and '_', such as epoch-1"
            )
        path = self.folder / "snapshots" / f"{name}.jsonl"
        with self._lock():
            image = self._checked().image
            if path.exists() and read_image(path).tree != image.tree:
                raise UsageError(f"{path} already holds another tree", fix="choose another name")
            write_atomic(path, image_text(image))
        return path

    def verify(self) -> list[str]:
        """Everything wrong with the store, one line each; empty when all is well."""
        return check_store(self.folder)

    def _exists(self) -> bool:
        try:
            return self.cards_path.exists() or next(read_journal(self.journal_path), None) is not None
        except OSError as error:
            raise cannot_read(self.folder, error) from None

    def _checked(self) -> State:
        """The store as it is now, unless it was frozen and changed since."""
        self._known = state = read_state(self.folder, self._known)
        refuse_if_tampered(self.folder, state.image)
        return state

    def _past(self, state: State, generation: int) -> EpistemicTree:
        newest = state.image.generation
        if not 0 <= generation <= newest:
            raise TreeError(f"the tree has no generation {generation}", fix=f"choose one from 0 to {newest}")
        entries = {entry.generation: entry for entry in self.log()}
        needed = range(generation + 1, newest + 1)
        lost = next((n for n in needed if n not in entries), None)
        if lost is not None:
            raise TreeError(f"{self.journal_path}: generation {lost} cannot be read", fix="see: kace tree verify")
        return undone(state.image.tree, [entries[n] for n in needed])

    @contextmanager
    def _settled(self) -> Iterator[State]:
        """The store as it is now, locked, with what was edited by hand in the journal."""
        with self._lock():
            state = self._checked()
            yield state if state.image.trusted else self._adopted(state)

    @contextmanager
    def _writing(self) -> Iterator[State]:
        """The store as it is now, locked, and open to change."""
        with self._settled() as state:
            if state.image.frozen is not None:
                raise UsageError(
                    f"{self.folder} is frozen at {state.image.frozen[:12]}",
                    fix="copy it with --out and change the copy, or thaw it with: kace tree thaw",
                )
            yield state

    def _adopted(self, state: State) -> State:
        """The state once the journal knows what was edited by hand."""
        entries = self.log()
        image = state.image
        if [entry.generation for entry in entries] == list(range(image.generation + 1)):
            journalled = redone(NOTHING.tree, entries)
            ids = sorted({*journalled.cards, *image.tree.cards})
            base = replace(state, image=replace(image, tree=journalled))
            by = Author("by hand", "cards.jsonl was edited directly")
            return self._commit(base, image.tree, Kind.BY_HAND, by, ids)
        return state

    def _set_frozen(self, state: State, digest: str | None, kind: Kind, by: Author) -> None:
        marked = replace(state, image=replace(state.image, frozen=digest))
        self._commit(marked, state.image.tree, kind, by)

    def _commit(self, state: State, tree: EpistemicTree, kind: Kind, by: Author, ids: Iterable[str] = ()) -> State:
        """Journal a change, then bring cards.jsonl up to date where that is due."""
        delta = delta_between(state.image.tree, tree, ids)
        if delta == Delta() and kind not in _ALWAYS:
            return state
        image = replace(state.image, tree=tree, generation=state.image.generation + 1)
        entry = _entry(image, kind, by, delta)
        image = replace(image, journal=append(self.journal_path, entry), trusted=True)
        after = State(image, state.behind + 1, state.stamp)
        due = len(tree) <= SMALL or after.behind >= len(tree) // 50 or kind in _ALWAYS
        if due or not state.image.trusted:
            after = self._checkpointed(after)
        self._known = after
        return after

    def _checkpointed(self, state: State) -> State:
        """Rewrite cards.jsonl. The change is safe in the journal already, so a full disk is no failure of it."""
        for litter in self.folder.rglob(".*.jsonl.*.tmp"):  # of a killed writer: we hold the lock
            with contextlib.suppress(OSError):
                litter.unlink()
        try:
            write_atomic(self.cards_path, image_text(state.image))
        except KaceError:
            return state
        return State(state.image, 0, stamp_of(self.cards_path))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Holds the store's lock, which the kernel releases however the process dies."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(self.folder, error) from None
        try:
            _wait_for(lock, self.folder)
            yield
        finally:
            os.close(lock)


_ALWAYS = frozenset({Kind.CREATE, Kind.FREEZE, Kind.THAW})
"""Kinds that are recorded though no card changes."""


def open_tree(path: Path) -> EpistemicTree:
    """The tree at a path: a store's directory, a snapshot, or a JSON file in the SPEC's form."""
    if path.is_dir():
        return TreeStore.open(path).load()
    if not is_image(path):
        return read_spec_json(path)
    image = read_image(path)
    refuse_if_tampered(path, image)
    return image.tree


def frozen_hash_of(path: Path) -> str | None:
    """The content hash a tree is frozen at; `None` where it may still change."""
    if path.is_dir():
        return TreeStore.open(path).frozen_hash
    return read_image(path).frozen if is_image(path) else None


def _entry(image: Image, kind: Kind, by: Author, delta: Delta) -> Entry:
    try:
        return Entry(
            generation=image.generation,
            time=now(),
            author=by.name,
            note=by.note,
            kind=kind,
            cards=delta.cards,
            domains=delta.domains,
            frozen=image.frozen,
        )
    except ValidationError as error:
        what, fix = refusal(error)
        raise UsageError(f"the change cannot be recorded: {what}", fix=fix) from None


def _wait_for(lock: int, folder: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise KaceError(
                    f"{folder} has been locked by another process for {LOCK_SECONDS:.0f} s",
                    fix="wait for it, or end it",
                ) from None
            time.sleep(0.002)
        except OSError as error:  # a file system without locks
            raise cannot_write(folder / "lock", error) from None
