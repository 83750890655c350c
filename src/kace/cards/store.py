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
import re
from collections.abc import Iterable, Iterator
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
    StrictRecord,
    card_line,
    refusal,
)
from kace.cards.formats import tree_from_json
from kace.cards.tree import (
    Change,
    Domain,
    EpistemicTree,
    SetDomains,
    TreeError,
    applied,
    domains_line,
)
from kace.errors import DataError, UsageError
from kace.files import (
    LineLog,
    cannot_write,
    inside,
    lock_folder,
    open_plain,
    read_plain,
    readable,
    whole_lines,
    write_atomic,
)

MAX_TREE_BYTES = 1 << 30  # of a file, and of a line of the journal
LOCK_SECONDS = 60.0
CALIBRATION = "calibration.json"  # beside the cards: where thresholds come from
INDEX_FILE = "relevance.npz"
_SNAPSHOT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64})?"
)
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
    generation: Annotated[int, Field(ge=0)]
    time: str  # UTC, ISO 8601
    author: Annotated[str, Field(min_length=1, max_length=200), PLAIN]
    note: Annotated[str, Field(max_length=1_000), PLAIN]
    # create, add, edit, deprecate, domains, batch, freeze or thaw
    kind: Annotated[str, Field(pattern="^[a-z_]{1,20}$")]
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
        with readable(where, "check the path", TreeError):
            yield
    except DataError as error:
        if str(where) in error.message:
            raise
        raise type(error)(f"{where}: {error.message}", fix=error.fix) from None


# The files


class Header(StrictRecord):
    """The first line of cards.jsonl."""

    kace_tree: Literal[1] = 1  # the version of the format
    generation: Annotated[int, Field(ge=0)]
    journal: Annotated[int, Field(ge=0)] = 0  # read by older versions only
    frozen: str | None
    sha256: str  # the content hash of the domains here and the cards below
    domains: tuple[Domain, ...]


@dataclass(frozen=True, slots=True)
class TreeState:
    """A tree as read from disk."""

    tree: EpistemicTree
    generation: int
    frozen: str | None


NOTHING = TreeState(EpistemicTree.of((), ()), generation=-1, frozen=None)
"""Before the first entry of a journal."""


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
    """Read cards.jsonl or a snapshot; raise `TreeError` if it was changed by hand."""
    with located(path):
        first, _, rest = read_plain(path, MAX_TREE_BYTES).partition(b"\n")
    try:
        header = Header.model_validate_json(first)
    except ValidationError:
        raise TreeError(
            f"{path}:1: the header is damaged, or of a newer kace",
            fix=f"upgrade kace, or {_RESTORE}",
        ) from None
    digest = hashlib.sha256(f"{domains_line(header.domains)}\n".encode())
    digest.update(rest)
    found = digest.hexdigest()
    if header.frozen not in (None, found):
        raise TreeError(
            f"{path} was changed after it was frozen ({header.frozen[:12]}, now"
            f" {found[:12]})",
            fix=_RESTORE,
        )
    if found != header.sha256:
        raise TreeError(
            f"{path} was edited by hand, so its hash does not match",
            fix=f"{_RESTORE}; change cards with: kace tree edit",
        )
    cards = []
    for number, line in enumerate(rest.split(b"\n")[:-1], start=2):
        try:
            cards.append(Card.model_validate_json(line, context=TRUSTED))
        except ValidationError as error:
            what, fix = refusal(error)
            raise TreeError(f"{path}:{number}: {what}", fix=fix) from None
    with located(path):
        tree = EpistemicTree.of(header.domains, cards, found)
    return TreeState(tree, header.generation, header.frozen)


def _is_tree_file(path: Path) -> bool:
    """Whether a file begins like cards.jsonl rather than like plain JSON."""
    with located(path), open_plain(path) as file:
        return file.read(64).lstrip().startswith(b'{"kace_tree"')


def open_tree(path: Path) -> EpistemicTree:
    """Open a tree: a store's directory, a snapshot, or a file of plain JSON."""
    if path.is_dir():
        tree = TreeStore.open(path).load()
        tree.index_path = path / INDEX_FILE
        return tree
    if not _is_tree_file(path):
        with located(path):
            return tree_from_json(read_plain(path, MAX_TREE_BYTES))
    tree = read_file(path).tree
    tree.index_path = path.with_suffix(".npz")
    return tree


def frozen_hash_of(path: Path) -> str | None:
    """Return the content hash a tree is frozen at; None where it may still change."""
    if path.is_dir():
        return TreeStore.open(path).frozen_hash
    return read_file(path).frozen if _is_tree_file(path) else None


class TreeStore:
    """A tree's directory. Threads and processes may read it; writers take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cards_path = folder / "cards.jsonl"
        self.journal_path = folder / "journal.jsonl"
        # What was read last, and from which version of the file.
        self._known: tuple[object, TreeState] = (None, NOTHING)

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
            store._commit(NOTHING, tree, "create", author, note)
        return store

    @classmethod
    def open(cls, path: Path) -> TreeStore:
        """Return the store in a directory, which must hold one."""
        store = cls(path)
        if not store._has_tree():
            raise TreeError(
                f"no tree in {path}",
                fix="check the path, or begin one with: kace tree init",
            )
        return store

    def load(self) -> EpistemicTree:
        """Read the tree as it is now. Refuse a frozen tree whose content changed."""
        return self._read().tree

    @property
    def generation(self) -> int:
        """The number of changes since the tree was created."""
        return self._read().generation

    @property
    def frozen_hash(self) -> str | None:
        """The content hash the tree is frozen at, if it is."""
        return self._read().frozen

    def apply(
        self, change: Change, *, author: str, note: str = ""
    ) -> EpistemicTree:
        """Make one change durably and return the tree after it.

        A change that alters nothing is not recorded.
        """
        kind = type(change).__name__.lower()
        if isinstance(change, SetDomains):
            kind = "domains"
        with self._writing() as state:
            tree = applied(state.tree, change)
            return self._commit(state, tree, kind, author, note)

    def freeze(self, *, author: str = "kace", note: str = "") -> str:
        """Refuse changes from now on; return the hash every later load must match."""
        with self._writing(frozen=True) as state:
            digest = state.frozen or state.tree.content_hash()
            if state.frozen is None:
                state = replace(state, frozen=digest)
                self._commit(state, state.tree, "freeze", author, note)
            return digest

    def thaw(self, *, author: str = "kace", note: str = "") -> None:
        """Allow changes again."""
        with self._writing(frozen=True) as state:
            if state.frozen is not None:
                state = replace(state, frozen=None)
                self._commit(state, state.tree, "thaw", author, note)

    def log(self) -> tuple[JournalEntry, ...]:
        """Return every change, oldest first, without lines that cannot be read.

        A change that a kill left in the journal alone is no part of the tree's history.
        """
        entries = {}
        newest = self.generation
        for line in self._lines():
            with suppress(ValidationError):
                entry = JournalEntry.model_validate_json(line, context=TRUSTED)
                if entry.generation <= newest:
                    entries[entry.generation] = entry
        return tuple(entries.values())

    def snapshot(self, name: str) -> Path:
        """Keep the tree under a name, in a file that `open_tree` reads."""
        if not _SNAPSHOT.fullmatch(name):
            raise UsageError(
                f"{name[:64]!r} cannot name a snapshot",
                fix="use letters, digits, '-' and '_', such as epoch-1",
            )
        path = inside(self.folder, "snapshots") / f"{name}.jsonl"
        with self._lock():
            state = self._read()
            if path.exists() and read_file(path).tree != state.tree:
                raise UsageError(
                    f"{path} already holds another tree",
                    fix="choose another name",
                )
            write_atomic(path, state_text(state))
        return path

    def _lines(self) -> Iterator[bytes]:
        """Iterate over the journal's whole lines."""
        path = self.journal_path
        with located(path), suppress(FileNotFoundError):
            for _, _, line in whole_lines(path, most=MAX_TREE_BYTES):
                yield line

    def _has_tree(self) -> bool:
        with located(self.folder):
            return self.cards_path.exists()

    def _read(self) -> TreeState:
        """Read cards.jsonl, unless it is unchanged."""
        with located(self.cards_path):
            found = self.cards_path.stat()
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._known[0] != stamp:
            self._known = (stamp, read_file(self.cards_path))
        return self._known[1]

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the store's lock, which the kernel releases however the process dies."""
        lock = lock_folder(self.folder, seconds=LOCK_SECONDS)
        try:
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _writing(self, *, frozen: bool = False) -> Iterator[TreeState]:
        """Lock the store and read it."""
        with self._lock():
            state = self._read()
            if state.frozen is not None and not frozen:
                raise UsageError(
                    f"{self.folder} is frozen at {state.frozen[:12]}",
                    fix="copy it with --out and change the copy, or thaw it with:"
                    " kace tree thaw",
                )
            yield state

    def _commit(
        self,
        state: TreeState,
        tree: EpistemicTree,
        kind: str,
        author: str,
        note: str,
    ) -> EpistemicTree:
        """Append the change to the journal, then rewrite cards.jsonl."""
        domains = None
        if state.tree.domains != tree.domains:
            domains = DomainsChange(
                before=state.tree.domains, after=tree.domains
            )
        try:  # a tree from others may hold cards that only its hash vouched for
            cards = _card_changes(state.tree, tree)
            if not cards and not domains and kind not in _ALWAYS:
                return state.tree
            entry = JournalEntry(
                generation=state.generation + 1,
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                author=author,
                note=note,
                kind=kind,
                cards=cards,
                domains=domains,
                frozen=state.frozen,
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
        after = TreeState(tree, entry.generation, entry.frozen)
        write_atomic(self.cards_path, state_text(after))
        return tree


_ALWAYS = ("create", "freeze", "thaw")
"""Changes that are recorded though no card changes."""


def _card_changes(
    old: EpistemicTree, new: EpistemicTree
) -> tuple[CardChange, ...]:
    changes = []
    for name in sorted(old.cards.keys() | new.cards.keys()):
        before = old.cards.get(name)
        after = new.cards.get(name)
        if before is not after and before != after:
            changes.append(CardChange(before=before, after=after))
    return tuple(changes)
