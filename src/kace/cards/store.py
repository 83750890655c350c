"""A tree on disk: a directory that people can diff, safe under threads and kills.

cards.jsonl, a header and one card per line, is the tree. Its header has the content
hash of what follows, so a file that was edited by hand is refused. journal.jsonl is the
history, one line per change, appended and synced before cards.jsonl is replaced.
snapshots/ has named copies of cards.jsonl; lock is held by
the one writer.
"""

from __future__ import annotations

import getpass
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kace.cards.card import (
    PLAIN,
    TRUSTED,
    Card,
    Line,
    Name,
    StrictRecord,
    card_line,
    refusal,
)
from kace.cards.formats import tree_from_json
from kace.cards.tree import (
    Add,
    Change,
    Deprecate,
    Domain,
    Edit,
    EpistemicTree,
    SetDomains,
    applied,
    domains_line,
)
from kace.errors import DataError, UsageError
from kace.files import (
    LineLog,
    cannot_write,
    inside,
    lock_folder,
    read_plain,
    readable,
    whole_lines,
    write_atomic,
)

MAX_TREE_BYTES = 1 << 30  # of a file, and of a line of the journal
LOCK_SECONDS = 60.0
CALIBRATION = "calibration.json"  # beside the cards: where thresholds come from
INDEX_FILE = "relevance.npz"
_RESTORE = "restore the file, or begin a new tree from a snapshot"


# The journal


class CardChange(StrictRecord):
    """A card before and after; `None` where there was or is none."""

    before: Card | None
    after: Card | None

    @property
    def card_id(self) -> str:
        """The card's id."""
        card = self.after or self.before
        return card.card_id if card else ""


class DomainsChange(StrictRecord):
    """The registry before and after."""

    before: tuple[Domain, ...]
    after: tuple[Domain, ...]


class JournalEntry(StrictRecord):
    """One change of a tree: who, when, why, and what was there before."""

    v: Literal[1] = 1
    generation: int
    time: Line  # UTC, ISO 8601
    author: Line
    note: Annotated[str, Field(max_length=1_000), PLAIN]
    kind: Name  # create, add, edit, deprecate, domains, batch, freeze or thaw
    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None
    # The content hash, where the tree is frozen afterwards.
    frozen: str | None = None
    sum: str = Field(default="", exclude=True)  # of entries of older versions


def author() -> str:
    """Return the name of the user's account, which signs changes."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user id of a container may have no name
        return f"uid {os.getuid()}"


@contextmanager
def located(where: Path | str) -> Iterator[None]:
    """Name a place in the errors raised inside, unless they name a closer one."""
    try:
        with readable(where, "check the path"):
            yield
    except DataError as error:
        if str(where) in error.message:
            raise
        raise type(error)(f"{where}: {error.message}", fix=error.fix) from None


# The files


class Header(StrictRecord):
    """The first line of cards.jsonl."""

    kace_tree: Literal[1] = 1  # the version of the format
    generation: int
    journal: int = 0  # read by older versions only
    frozen: str | None
    sha256: str  # the content hash of the domains here and the cards below
    domains: tuple[Domain, ...]


@dataclass(frozen=True, slots=True)
class TreeState:
    """A tree as read from disk."""

    tree: EpistemicTree
    generation: int = -1  # before the first entry of a journal
    frozen: str | None = None  # the hash it is frozen at; None: it may change


def state_text(state: TreeState) -> str:
    """Return the text of cards.jsonl, or of a snapshot."""
    header = Header(
        generation=state.generation,
        frozen=state.frozen,
        sha256=state.tree.content_hash(),
        domains=state.tree.domains,
    )
    return "\n".join(
        [header.model_dump_json(), *map(card_line, state.tree), ""]
    )


def read_file(path: Path) -> TreeState:
    """Read cards.jsonl or a snapshot; raise `DataError` if it was changed by hand."""
    with located(path):
        first, _, rest = read_plain(path, MAX_TREE_BYTES).partition(b"\n")
        try:
            header = Header.model_validate_json(first)
        except ValidationError:
            raise DataError(
                f"{path}:1: the header is damaged, or of a newer kace",
                fix=f"upgrade kace, or {_RESTORE}",
            ) from None
        digest = hashlib.sha256(f"{domains_line(header.domains)}\n".encode())
        digest.update(rest)
        found = digest.hexdigest()
        if found != header.sha256 or header.frozen not in (None, found):
            raise DataError(
                "it was changed by hand, so its hash does not match",
                fix=f"{_RESTORE}; change cards with: kace tree edit",
            )
        cards = []
        for number, line in enumerate(rest.split(b"\n")[:-1], start=2):
            try:
                cards.append(Card.model_validate_json(line, context=TRUSTED))
            except ValidationError as error:
                what, fix = refusal(error)
                raise DataError(f"{path}:{number}: {what}", fix=fix) from None
        tree = EpistemicTree.of(header.domains, cards)
    return TreeState(tree, header.generation, header.frozen)


def open_state(path: Path) -> TreeState:
    """Read a tree: a store's directory, a snapshot, or a file of cards."""
    if path.is_dir():
        state = TreeStore.open(path).read()
        state.tree.index_path = path / INDEX_FILE
        return state
    with located(path):
        data = read_plain(path, MAX_TREE_BYTES)
        if not data[:64].lstrip().startswith(b'{"kace_tree"'):
            return TreeState(tree_from_json(data))
    state = read_file(path)
    state.tree.index_path = path.with_suffix(".npz")
    return state


def open_tree(path: Path) -> EpistemicTree:
    """Open a tree: a store's directory, a snapshot, or a file of cards."""
    return open_state(path).tree


class TreeStore:
    """A tree's directory. Threads and processes may read it; writers take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cards_path = folder / "cards.jsonl"
        self.journal_path = folder / "journal.jsonl"

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
            if store._has_tree():
                raise UsageError(
                    f"{path} already holds a tree",
                    fix="choose another directory",
                )
            nothing = TreeState(EpistemicTree((), {}))
            store._commit(nothing, TreeState(tree), "create", author, note)
        return store

    @classmethod
    def open(cls, path: Path) -> TreeStore:
        """Return the store in a directory, which must hold one."""
        store = cls(path)
        if not store._has_tree():
            raise DataError(
                f"no tree in {path}",
                fix="check the path, or begin one with: kace tree init",
            )
        return store

    def read(self) -> TreeState:
        """Read the tree as it is now. Refuse a frozen tree whose content changed."""
        return read_file(self.cards_path)

    def load(self) -> EpistemicTree:
        """Read the tree alone."""
        return self.read().tree

    @property
    def generation(self) -> int:
        """The number of changes since the tree was created."""
        return self.read().generation

    def apply(
        self, *changes: Change, author: str, note: str = ""
    ) -> EpistemicTree:
        """Make changes durably, all or none, and return the tree after them.

        Changes that alter nothing are not recorded.
        """
        kind = _KINDS[type(changes[0])] if len(changes) == 1 else "batch"
        with self._lock():
            state = self.read()
            if state.frozen is not None:
                raise UsageError(
                    f"{self.folder} is frozen at {state.frozen[:12]}",
                    fix="copy it with --out and change the copy, or thaw it with:"
                    " kace tree thaw",
                )
            tree = applied(state.tree, *changes)
            if tree != state.tree:
                after = replace(state, tree=tree)
                self._commit(state, after, kind, author, note)
            return tree

    def freeze(self, *, author: str = "kace", note: str = "") -> str:
        """Refuse changes from now on; return the hash every later load must match."""
        with self._lock():
            state = self.read()
            digest = state.tree.content_hash()
            if state.frozen is None:
                after = replace(state, frozen=digest)
                self._commit(state, after, "freeze", author, note)
            return digest

    def thaw(self, *, author: str = "kace", note: str = "") -> None:
        """Allow changes again."""
        with self._lock():
            state = self.read()
            if state.frozen is not None:
                after = replace(state, frozen=None)
                self._commit(state, after, "thaw", author, note)

    def log(self) -> tuple[JournalEntry, ...]:
        """Return every change, oldest first, without lines that cannot be read.

        A change that a kill left in the journal alone is no part of the tree's history.
        """
        entries = {}
        newest = self.generation
        with located(self.journal_path), suppress(FileNotFoundError):
            for _, _, line in whole_lines(
                self.journal_path, most=MAX_TREE_BYTES
            ):
                with suppress(ValidationError):
                    entry = JournalEntry.model_validate_json(
                        line, context=TRUSTED
                    )
                    if entry.generation <= newest:
                        entries[entry.generation] = entry
        return tuple(entries.values())

    def snapshot(self, name: str) -> Path:
        """Keep the tree under a name, in a file that `open_tree` reads."""
        path = inside(self.folder, "snapshots") / f"{name}.jsonl"
        with self._lock():
            state = self.read()
            if path.exists() and read_file(path).tree != state.tree:
                raise UsageError(
                    f"{path} already holds another tree",
                    fix="choose another name",
                )
            write_atomic(path, state_text(state))
        return path

    def _has_tree(self) -> bool:
        with located(self.folder):
            return self.cards_path.exists()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the store's lock, which the kernel releases however the process dies."""
        lock = lock_folder(self.folder, seconds=LOCK_SECONDS)
        try:
            yield
        finally:
            os.close(lock)

    def _commit(
        self,
        before: TreeState,
        after: TreeState,
        kind: str,
        author: str,
        note: str,
    ) -> None:
        """Append the change to the journal, then rewrite cards.jsonl."""
        after = replace(after, generation=before.generation + 1)
        domains = None
        if before.tree.domains != after.tree.domains:
            domains = DomainsChange(
                before=before.tree.domains, after=after.tree.domains
            )
        try:  # a tree from others may hold cards that only its hash vouched for
            entry = JournalEntry(
                generation=after.generation,
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                author=author,
                note=note,
                kind=kind,
                cards=_card_changes(before.tree.cards, after.tree.cards),
                domains=domains,
                frozen=after.frozen,
            )
        except ValidationError as error:
            what, fix = refusal(error)
            raise UsageError(
                f"the change cannot be recorded: {what}", fix=fix
            ) from None
        try:
            # A torn last line is cut first.
            with LineLog(self.journal_path) as log:
                log.append(entry.model_dump_json())
        except OSError as error:  # of the sync at the end
            raise cannot_write(self.journal_path, error) from None
        # A killed writer may have left temporary files; this one holds the lock.
        for litter in self.folder.rglob(".*.jsonl.*.tmp"):
            with suppress(OSError):
                litter.unlink()
        write_atomic(self.cards_path, state_text(after))


_KINDS = {
    Add: "add",
    Edit: "edit",
    Deprecate: "deprecate",
    SetDomains: "domains",
}


def _card_changes(
    old: Mapping[str, Card], new: Mapping[str, Card]
) -> tuple[CardChange, ...]:
    changes = []
    for name in sorted(old.keys() | new.keys()):
        before = old.get(name)
        after = new.get(name)
        if before != after:
            changes.append(CardChange(before=before, after=after))
    return tuple(changes)
