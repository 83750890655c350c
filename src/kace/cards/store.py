"""A tree on disk: a directory that people can diff, with its history, safe under threads, processes and kills.

journal.jsonl has one line per change, appended and synced first: the truth. cards.jsonl, a header and one card a line,
is its checkpoint, rewritten now and then. snapshots/ has named copies; lock is held by whoever writes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from kace.cards import state as disk
from kace.cards.card import Card, refusal
from kace.cards.formats import tree_from_json
from kace.cards.journal import (
    CardChange,
    ChangeKind,
    DomainsChange,
    JournalEntry,
    located,
    read_journal,
    replayed,
)
from kace.cards.state import NOTHING, TreeState, read_file, refuse_if_tampered
from kace.cards.tree import (
    Change,
    Domain,
    EpistemicTree,
    SetDomains,
    TreeError,
    applied,
    touched,
)
from kace.errors import KaceError, UsageError
from kace.files import LineLog, cannot_write, inside, lock_folder, write_atomic

SMALL = 2_000  # cards up to which every change rewrites cards.jsonl
LOCK_SECONDS = 60.0
CALIBRATION = (
    "calibration.json"  # beside the cards: why the gate's thresholds are what they are
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64})?")


class TreeStore:
    """A tree's directory. Any number of threads and processes may read it; writers take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cards_path = folder / "cards.jsonl"
        self.journal_path = folder / "journal.jsonl"
        self._known: TreeState | None = None

    @classmethod
    def create(
        cls,
        path: Path,
        domains: Iterable[Domain],
        cards: Iterable[Card] = (),
        *,
        author: str = "kace",
        note: str = "",
    ) -> TreeStore:
        """Begin a store in an empty or new directory."""
        tree = EpistemicTree.of(domains, cards)
        store = cls(path)
        with store._lock():
            if store._exists():
                raise UsageError(
                    f"{path} already holds a tree", fix="choose another directory"
                )
            store._commit(NOTHING, tree, ChangeKind.CREATE, author, note, tree.cards)
        return store

    @classmethod
    def open(cls, path: Path) -> TreeStore:
        """The store in a directory, which must hold one; its tree is read when asked for."""
        store = cls(path)
        if not store._exists():
            raise TreeError(
                f"no tree in {path}",
                fix="check the path, or begin one with: kace tree init",
            )
        return store

    def load(self) -> EpistemicTree:
        """The tree as it is now. Refuses a frozen tree whose content changed."""
        return self._checked().tree

    @property
    def generation(self) -> int:
        """How many changes the tree has seen; 0 as created."""
        return self._checked().generation

    @property
    def frozen_hash(self) -> str | None:
        """The content hash the tree is frozen at, if it is."""
        return self._checked().frozen

    def apply(self, change: Change, *, author: str, note: str = "") -> EpistemicTree:
        """Make one change durably and return the tree after it. A change that alters nothing is not recorded."""
        with self._writing() as state:
            kind = ChangeKind(
                "domains"
                if isinstance(change, SetDomains)
                else type(change).__name__.lower()
            )
            return self._commit(
                state, applied(state.tree, change), kind, author, note, touched(change)
            ).tree

    def revert(self, generation: int, *, author: str, note: str = "") -> EpistemicTree:
        """Make the tree exactly what it was at a generation, as a new change."""
        with self._writing() as state:
            tree = self._past(state, generation)
            ids = sorted({*state.tree.cards, *tree.cards})
            note = note or f"back to generation {generation}"
            return self._commit(state, tree, ChangeKind.REVERT, author, note, ids).tree

    def freeze(self, *, author: str = "kace", note: str = "") -> str:
        """Refuse changes from now on, and return the content hash that every later load must match."""
        with self._writing(frozen=True) as state:
            digest = state.frozen or state.tree.content_hash()
            if state.frozen is None:
                self._commit(
                    replace(state, frozen=digest),
                    state.tree,
                    ChangeKind.FREEZE,
                    author,
                    note,
                )
            return digest

    def thaw(self, *, author: str = "kace", note: str = "") -> None:
        """Allow changes again."""
        with self._writing(frozen=True) as state:
            if state.frozen is not None:
                self._commit(
                    replace(state, frozen=None),
                    state.tree,
                    ChangeKind.THAW,
                    author,
                    note,
                )

    def log(self) -> tuple[JournalEntry, ...]:
        """Every change, oldest first. Lines that cannot be read are left out; `verify` names them."""
        return tuple(
            line.content
            for line in read_journal(self.journal_path)
            if isinstance(line.content, JournalEntry)
        )

    def at(self, generation: int) -> EpistemicTree:
        """The tree as it was at a generation."""
        return self._past(self._checked(), generation)

    def snapshot(self, name: str) -> Path:
        """Keep the tree under a name, in a file that `open_tree` reads."""
        if not _NAME.fullmatch(name):
            fix = "use letters, digits, '-' and '_', such as epoch-1"
            raise UsageError(f"{name[:64]!r} cannot name a snapshot", fix=fix)
        path = inside(self.folder, "snapshots") / f"{name}.jsonl"
        with self._lock():
            state = self._checked()
            if path.exists() and read_file(path).tree != state.tree:
                raise UsageError(
                    f"{path} already holds another tree", fix="choose another name"
                )
            write_atomic(path, disk.state_text(state))
        return path

    def verify(self) -> list[str]:
        """Everything wrong with the store, one line each; empty when all is well."""
        return disk.check_store(self.folder)

    def _exists(self) -> bool:
        with located(self.folder):
            return (
                self.cards_path.exists()
                or next(read_journal(self.journal_path), None) is not None
            )

    def _checked(self) -> TreeState:
        """The store as it is now, unless it was frozen and changed since."""
        self._known = state = disk.read_state(self.folder, self._known)
        refuse_if_tampered(self.folder, state)
        return state

    def _past(self, state: TreeState, generation: int) -> EpistemicTree:
        newest = state.generation
        if not 0 <= generation <= newest:
            raise TreeError(
                f"the tree has no generation {generation}",
                fix=f"choose one from 0 to {newest}",
            )
        entries = {entry.generation: entry for entry in self.log()}
        needed = range(generation + 1, newest + 1)
        for lost in (n for n in needed if n not in entries):
            raise TreeError(
                f"{self.journal_path}: generation {lost} cannot be read",
                fix="see: kace tree verify",
            )
        return replayed(state.tree, [entries[n] for n in needed], back=True)

    @contextmanager
    def _writing(self, *, frozen: bool = False) -> Iterator[TreeState]:
        """The store as it is now, locked, open to change, and with what was edited by hand in the journal."""
        with self._lock():
            state = self._checked()
            state = state if state.trusted else self._adopted(state)
            if state.frozen is not None and not frozen:
                fix = "copy it with --out and change the copy, or thaw it with: kace tree thaw"
                raise UsageError(
                    f"{self.folder} is frozen at {state.frozen[:12]}", fix=fix
                )
            yield state

    def _adopted(self, state: TreeState) -> TreeState:
        """The state once the journal knows what was edited by hand."""
        entries = self.log()
        if len(entries) != state.generation + 1 or any(
            each.generation != n for n, each in enumerate(entries)
        ):
            return state
        journalled = replayed(NOTHING.tree, entries)
        before = replace(state, tree=journalled)
        note = "cards.jsonl was edited directly"
        ids = sorted({*journalled.cards, *state.tree.cards})
        return self._commit(
            before, state.tree, ChangeKind.BY_HAND, "by hand", note, ids
        )

    def _commit(
        self,
        state: TreeState,
        tree: EpistemicTree,
        kind: ChangeKind,
        author: str,
        note: str,
        ids: Iterable[str] = (),
    ) -> TreeState:
        """Journal a change of the named cards, durably, then bring cards.jsonl up to date where that is due."""
        entry = _entry(state, tree, kind, author, note, ids)
        if entry is None:
            return state
        line = entry.line()
        try:
            with LineLog(self.journal_path) as log:  # a torn last line is cut first
                end = log.append(line) + len(line.encode()) + 1
        except OSError as error:  # the sync at the end
            raise cannot_write(self.journal_path, error) from None
        generation = entry.generation
        behind = state.behind + 1
        after = replace(
            state,
            tree=tree,
            generation=generation,
            journal=end,
            trusted=True,
            behind=behind,
        )
        due = len(tree) <= SMALL or behind >= len(tree) // 50 or kind in _ALWAYS
        self._known = self._checkpointed(after) if due or not state.trusted else after
        return self._known

    def _checkpointed(self, state: TreeState) -> TreeState:
        """Rewrite cards.jsonl. The change is safe in the journal already, so a full disk is no failure of it."""
        for litter in self.folder.rglob(
            ".*.jsonl.*.tmp"
        ):  # of a killed writer: we hold the lock
            with contextlib.suppress(OSError):
                litter.unlink()
        try:
            write_atomic(self.cards_path, disk.state_text(state))
        except KaceError:
            return state
        return replace(state, behind=0, stamp=disk.stamp_of(self.cards_path))

    def _lock(self) -> contextlib.ExitStack:
        """Holds the store's lock, which the kernel releases however the process dies."""
        held = contextlib.ExitStack()
        held.callback(os.close, lock_folder(self.folder, seconds=LOCK_SECONDS))
        return held


_ALWAYS = frozenset({ChangeKind.CREATE, ChangeKind.FREEZE, ChangeKind.THAW})
"""Kinds that are recorded though no card changes."""


def open_tree(path: Path) -> EpistemicTree:
    """The tree at a path: a store's directory, a snapshot, or a JSON file in the SPEC's form."""
    if path.is_dir():
        return TreeStore.open(path).load()
    if not disk.is_tree_file(path):
        with located(path):
            return tree_from_json(disk.read_bytes(path))
    state = read_file(path)
    refuse_if_tampered(path, state)
    return state.tree


def frozen_hash_of(path: Path) -> str | None:
    """The content hash a tree is frozen at; `None` where it may still change."""
    if path.is_dir():
        return TreeStore.open(path).frozen_hash
    return read_file(path).frozen if disk.is_tree_file(path) else None


def _entry(
    state: TreeState,
    tree: EpistemicTree,
    kind: ChangeKind,
    author: str,
    note: str,
    ids: Iterable[str],
) -> JournalEntry | None:
    """The entry that leads from a state to a tree, which differ in the named cards only; None for none."""
    old = state.tree
    new = tree
    pairs = (
        (
            old.card(name) if name in old else None,
            new.card(name) if name in new else None,
        )
        for name in ids
    )
    domains = (
        None
        if old.domains == new.domains
        else DomainsChange(before=old.domains, after=new.domains)
    )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    after = state.generation + 1
    try:  # a tree from others may hold cards that only its hash vouched for
        cards = tuple(
            CardChange(before=a, after=b) for a, b in pairs if a is not b and a != b
        )
        if not cards and domains is None and kind not in _ALWAYS:
            return None
        made = {
            "kind": kind,
            "cards": cards,
            "domains": domains,
            "frozen": state.frozen,
        }
        return JournalEntry.model_validate(
            {"generation": after, "time": now, "author": author, "note": note, **made}
        )
    except ValidationError as error:
        what, fix = refusal(error)
        raise UsageError(f"the change cannot be recorded: {what}", fix=fix) from None
