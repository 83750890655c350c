"""A tree on disk: a directory that people can diff, safe under threads and kills.

journal.jsonl has one line per change, appended and synced first; it is the truth, and
every past tree can be had from it. cards.jsonl, a header and one card per line, is its
checkpoint, rewritten at every change of a small tree and now and then of a large one.
The header has the content hash of what follows: an untouched file is
trusted at once, one edited by hand is checked card by card. snapshots/ has named copies
of the same form; lock is held by the one writer.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from kace.cards.card import (
    LINE,
    TRUSTED,
    Card,
    StrictRecord,
    card_line,
    read_card,
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
from kace.errors import DataError, KaceError, UsageError
from kace.files import (
    LineLog,
    cannot_write,
    inside,
    lock_folder,
    open_plain,
    read_plain,
    whole_lines,
    write_atomic,
)

FORMAT = 1
MAX_TREE_BYTES = 1 << 30  # of a file, and of a line of the journal
SMALL = 2_000  # cards up to which every change rewrites cards.jsonl
LOCK_SECONDS = 60.0
CALIBRATION = "calibration.json"  # beside the cards: where thresholds come from
_SUM = 16
_SUFFIX = len(',"sum":""}') + _SUM
_GENERATION = re.compile(rb'\{"v":\d{1,9},"generation":(\d{1,99}),')
_SNAPSHOT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64})?"
)


# The journal


class ChangeKind(StrEnum):
    """What a line of the journal records."""

    CREATE = "create"
    ADD = "add"
    EDIT = "edit"
    RELOCATE = "relocate"
    DEPRECATE = "deprecate"
    DOMAINS = "domains"
    BATCH = "batch"
    REVERT = "revert"
    BY_HAND = "by_hand"
    FREEZE = "freeze"
    THAW = "thaw"


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
    author: Annotated[
        str, StringConstraints(pattern=LINE, min_length=1, max_length=200)
    ]
    note: Annotated[str, StringConstraints(pattern=LINE, max_length=1_000)]
    kind: ChangeKind
    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None
    frozen: str | None = (
        None  # the content hash, where the tree is frozen afterwards
    )

    def line(self) -> str:
        """Return the entry as the journal holds it, ending with its checksum."""
        text = self.model_dump_json()
        return f'{text[:-1]},"sum":"{_checksum(text.encode())}"}}'


class JournalLine(NamedTuple):
    """A line of the journal, with where it ends."""

    number: int
    end: int
    text: bytes

    @property
    def content(self) -> JournalEntry | str:
        """The entry, or why the line cannot be read."""
        return _read_entry(self.text)

    @property
    def generation(self) -> int:
        """The generation that the line begins with; -1 for a damaged one."""
        found = _GENERATION.match(self.text)
        return int(found[1]) if found else -1


def read_journal(path: Path) -> Iterator[JournalLine]:
    """Read the whole lines, without a torn last line."""
    with located(path), suppress(FileNotFoundError):
        for number, start, line in whole_lines(path, most=MAX_TREE_BYTES):
            yield JournalLine(
                number,
                start + len(line) + 1,
                line,
            )


def _read_entry(line: bytes) -> JournalEntry | str:
    text = line[:-_SUFFIX] + b"}"
    if line[-_SUFFIX:] != f',"sum":"{_checksum(text)}"}}'.encode():
        return "it is damaged: its checksum does not match"
    with suppress(ValidationError):
        return JournalEntry.model_validate_json(text, context=TRUSTED)
    with suppress(ValueError, AttributeError, TypeError):
        version = json.loads(text).get("v")
        if version > FORMAT:
            return f"it was written by a newer kace (format {version})"
    return "it is no journal entry"


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_SUM]


def replayed(
    tree: EpistemicTree, entries: Sequence[JournalEntry], *, back: bool = False
) -> EpistemicTree:
    """Return the tree after the entries, oldest first; going back, before them."""
    cards: dict[str, Card | None] = {}
    domains: tuple[Domain, ...] | None = None
    for entry in reversed(entries) if back else entries:
        for change in entry.cards:
            cards[change.card_id] = change.before if back else change.after
        if entry.domains:
            domains = entry.domains.before if back else entry.domains.after
    return tree.revised(cards, domains)


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
        yield
    except DataError as error:
        if str(where) in error.message:
            raise
        raise type(error)(
            f"{where}: {error.message}",
            fix=error.fix,
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TreeError(
            f"cannot read {where}: {reason}", fix="check the path"
        ) from None


# The files


class Header(StrictRecord):
    """The first line of cards.jsonl."""

    kace_tree: int  # the version of the format
    generation: Annotated[int, Field(ge=0)]
    journal: Annotated[int, Field(ge=0)]  # the length of the journal
    frozen: str | None
    sha256: str  # the content hash of the domains here and the cards below
    domains: tuple[Domain, ...]


Stamp = tuple[int, int, int]  # inode, size, time of change


@dataclass(frozen=True, slots=True)
class TreeState:
    """A tree as read from disk."""

    tree: EpistemicTree
    generation: int
    journal: int  # where the journal's entries read so far end
    frozen: str | None
    trusted: bool = True  # false where cards.jsonl was edited by hand
    saved: int = -1  # the generation of cards.jsonl
    stamp: Stamp | None = None  # of the cards.jsonl that was read


NOTHING = TreeState(
    EpistemicTree.of((), ()), generation=-1, journal=0, frozen=None
)
"""Before the first entry of a journal."""


def state_text(state: TreeState) -> str:
    """Return the text of cards.jsonl, or of a snapshot."""
    header = Header(
        kace_tree=FORMAT,
        generation=state.generation,
        journal=state.journal,
        frozen=state.frozen,
        sha256=state.tree.content_hash(),
        domains=state.tree.domains,
    )
    return "\n".join(
        [header.model_dump_json(), *map(card_line, state.tree), ""]
    )


def read_file(path: Path) -> TreeState:
    """Read cards.jsonl or a snapshot; raise `TreeError` with file and line."""
    data = _read_bytes(path)
    first, _, rest = data.partition(b"\n")
    header = _read_header(first, path)
    digest = hashlib.sha256(f"{domains_line(header.domains)}\n".encode())
    digest.update(rest)
    trusted = digest.hexdigest() == header.sha256
    lines = rest.split(b"\n")
    cards: list[Card] = []
    with located(path):
        # The hash may fit a text that kace has never written.
        with suppress(ValidationError):
            if trusted:
                for line in lines[:-1]:
                    cards.append(
                        Card.model_validate_json(line, context=TRUSTED)
                    )
        if not trusted or len(cards) < len(lines) - 1:
            cards = list(_checked_cards(lines, path))
        known_hash = header.sha256 if trusted else ""
        tree = EpistemicTree.of(header.domains, cards, known_hash)
    return TreeState(
        tree,
        header.generation,
        header.journal,
        header.frozen,
        trusted,
        saved=header.generation,
    )


def _read_header(line: bytes, path: Path) -> Header:
    try:
        version = json.loads(line)["kace_tree"]
        if version == FORMAT:
            return Header.model_validate_json(line)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TreeError(
            f"{path}:1: the header cannot be read",
            fix=f"remove {path.name}: it is rebuilt from the journal beside it",
        ) from None
    what = f"{path} was written by a newer kace"
    known = f"(format {version}, this one knows {FORMAT})"
    raise TreeError(
        f"{what} {known}",
        fix="upgrade kace",
    )


def _checked_cards(lines: Iterable[bytes], path: Path) -> Iterator[Card]:
    for number, line in enumerate(lines, start=2):
        if line.strip():
            with located(f"{path}:{number}"):
                yield read_card(line)


def _read_bytes(path: Path) -> bytes:
    with located(path):
        return read_plain(path, MAX_TREE_BYTES)


def _stamp_of(path: Path) -> Stamp | None:
    """Return what differs between one version of a file and the next."""
    with located(path), suppress(FileNotFoundError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _is_tree_file(path: Path) -> bool:
    """Whether a file begins like cards.jsonl rather than like plain JSON."""
    with located(path), open_plain(path) as file:
        return file.read(64).lstrip().startswith(b'{"kace_tree"')


def _refuse_if_tampered(path: Path, state: TreeState) -> None:
    """Raise `TreeError` for a frozen tree that is not what was frozen."""
    digest = state.tree.content_hash() if state.frozen else None
    if state.frozen != digest:
        hashes = f"({(state.frozen or '')[:12]}, now {(digest or '')[:12]})"
        raise TreeError(
            f"{path} was changed after it was frozen {hashes}",
            fix="restore it; where a journal lies beside cards.jsonl, remove"
            " cards.jsonl and it is rebuilt",
        )


def open_tree(path: Path) -> EpistemicTree:
    """Open a tree: a store's directory, a snapshot, or a file of plain JSON."""
    if path.is_dir():
        return TreeStore.open(path).load()
    if not _is_tree_file(path):
        with located(path):
            return tree_from_json(_read_bytes(path))
    state = read_file(path)
    _refuse_if_tampered(path, state)
    return state.tree


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
        self._known = NOTHING

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
            store._commit(NOTHING, tree, ChangeKind.CREATE, author, note)
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
        self,
        change: Change,
        *,
        author: str,
        note: str = "",
    ) -> EpistemicTree:
        """Make one change durably and return the tree after it.

        A change that alters nothing is not recorded.
        """
        name = "domains"
        if not isinstance(change, SetDomains):
            name = type(change).__name__.lower()
        with self._writing() as state:
            tree = applied(state.tree, change)
            return self._commit(state, tree, ChangeKind(name), author, note)

    def revert(
        self,
        generation: int,
        *,
        author: str,
        note: str = "",
    ) -> EpistemicTree:
        """Make the tree exactly what it was at a generation, as a new change."""
        note = note or f"back to generation {generation}"
        with self._writing() as state:
            tree = self._past(state, generation)
            return self._commit(state, tree, ChangeKind.REVERT, author, note)

    def freeze(self, *, author: str = "kace", note: str = "") -> str:
        """Refuse changes from now on; return the hash every later load must match."""
        with self._writing(frozen=True) as state:
            digest = state.frozen or state.tree.content_hash()
            if state.frozen is None:
                state = replace(state, frozen=digest)
                self._commit(state, state.tree, ChangeKind.FREEZE, author, note)
            return digest

    def thaw(self, *, author: str = "kace", note: str = "") -> None:
        """Allow changes again."""
        with self._writing(frozen=True) as state:
            if state.frozen is not None:
                state = replace(state, frozen=None)
                self._commit(state, state.tree, ChangeKind.THAW, author, note)

    def log(self) -> tuple[JournalEntry, ...]:
        """Return every change, oldest first, without lines that cannot be read."""
        entries = []
        for line in read_journal(self.journal_path):
            content = line.content
            if isinstance(content, JournalEntry):
                entries.append(content)
        return tuple(entries)

    def at(self, generation: int) -> EpistemicTree:
        """Return the tree as it was at a generation."""
        return self._past(self._read(), generation)

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

    def verify(self) -> list[str]:
        """Return everything wrong with the store, one line each."""
        problems: list[str] = []
        if not self.cards_path.exists():
            problems.append(
                f"{self.cards_path}: missing; the next change rebuilds it"
            )
        state = NOTHING
        for path in (
            self.cards_path,
            *sorted(inside(self.folder, "snapshots").glob("*.jsonl")),
        ):
            try:
                found = read_file(path) if path.exists() else NOTHING
                problems += _file_problems(path, found)
                if path == self.cards_path:
                    state = found
            except DataError as error:
                problems.append(error.message)
        problems += self._journal_problems(state)
        return problems

    def _journal_problems(self, state: TreeState) -> Iterator[str]:
        """Find damage of the journal, and where it disagrees with cards.jsonl."""
        path = self.journal_path
        data = _read_bytes(path) if path.exists() else b""
        torn = len(data.rpartition(b"\n")[2])
        if torn:
            rest = "it is ignored, and cut by the next change"
            yield f"{path}: the last line is torn ({torn} bytes); {rest}"
        entries: list[JournalEntry] = []
        whole = True
        for line in read_journal(path):
            content = line.content
            if isinstance(content, str):
                whole = False
                yield f"{path}:{line.number}: {content}"
                continue
            if content.generation != len(entries) and whole:
                whole = False
                order = f"generation {content.generation} follows {len(entries) - 1}"
                yield f"{path}:{line.number}: {order}"
            entries.append(content)
        if not entries:
            yield f"{path}: no entries; the history is lost"
        if not entries or not whole or state is NOTHING:
            return
        with suppress(DataError):
            entries = entries[: state.generation + 1]
            tree = replayed(NOTHING.tree, entries)
            last = entries[-1]
            found = (last.generation, last.frozen, tree)
            if found != (state.generation, state.frozen, state.tree):
                at = f"at generation {state.generation}"
                yield f"{self.cards_path}: it is not the tree that the journal has {at}"

    def _has_tree(self) -> bool:
        with located(self.folder):
            if self.cards_path.exists():
                return True
            return next(read_journal(self.journal_path), None) is not None

    def _read(self) -> TreeState:
        """Read cards.jsonl, unless it is unchanged, and the journal's entries since."""
        state = self._known
        stamp = _stamp_of(self.cards_path)
        journal = _stamp_of(self.journal_path)
        shrunk = state.journal > (journal[1] if journal else 0)
        if shrunk or state.stamp != stamp:
            state = NOTHING
            if stamp:
                state = replace(read_file(self.cards_path), stamp=stamp)
        lines = list(read_journal(self.journal_path))
        if not state.trusted:
            for line in lines:
                content = line.content
                if isinstance(content, str):
                    reason = f"{content}, and cards.jsonl was changed by hand"
                    raise self._damaged(
                        line,
                        reason,
                    )
        entries = self._following(lines, state.generation)
        if entries:
            state = replace(
                state,
                tree=replayed(state.tree, entries),
                generation=entries[-1].generation,
                journal=lines[-1].end,
                frozen=entries[-1].frozen,
            )
        self._known = state
        _refuse_if_tampered(self.folder, state)
        return state

    def _following(
        self, lines: list[JournalLine], generation: int
    ) -> list[JournalEntry]:
        """Return the entries after a generation; damage before it does no harm."""
        start = 0
        for place, line in enumerate(lines, start=1):
            if 0 <= line.generation <= generation:
                start = place
        entries = []
        for line in lines[start:]:
            generation += 1
            content = line.content
            if isinstance(content, str):
                reason = content
            elif content.generation != generation:
                reason = f"it is generation {content.generation}"
            else:
                entries.append(content)
                continue
            reason = f"{reason}, where generation {generation} must be"
            raise self._damaged(
                line,
                reason,
            )
        return entries

    def _damaged(self, line: JournalLine, reason: str) -> TreeError:
        return TreeError(
            f"{self.journal_path}:{line.number}: {reason}",
            fix="restore the file, or begin again from a snapshot",
        )

    def _past(self, state: TreeState, generation: int) -> EpistemicTree:
        newest = state.generation
        if not 0 <= generation <= newest:
            raise TreeError(
                f"the tree has no generation {generation}",
                fix=f"choose one from 0 to {newest}",
            )
        entries = {entry.generation: entry for entry in self.log()}
        needed = []
        for number in range(generation + 1, newest + 1):
            if number not in entries:
                raise TreeError(
                    f"{self.journal_path}: generation {number} cannot be read",
                    fix="see: kace tree verify",
                )
            needed.append(entries[number])
        return replayed(state.tree, needed, back=True)

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
        """Lock the store and read it, with edits by hand added to the journal."""
        with self._lock():
            state = self._read()
            if not state.trusted and self._adopt(state):
                state = self._read()
            if state.frozen is not None and not frozen:
                raise UsageError(
                    f"{self.folder} is frozen at {state.frozen[:12]}",
                    fix="copy it with --out and change the copy, or thaw it with:"
                    " kace tree thaw",
                )
            yield state

    def _adopt(self, state: TreeState) -> bool:
        """Record what was edited by hand, if the journal is whole."""
        entries = self.log()
        in_order = [entry.generation for entry in entries] == list(
            range(len(entries))
        )
        if not in_order or len(entries) != state.generation + 1:
            return False
        before = replace(state, tree=replayed(NOTHING.tree, entries))
        note = "cards.jsonl was edited directly"
        self._commit(before, state.tree, ChangeKind.BY_HAND, "by hand", note)
        return True

    def _commit(
        self,
        state: TreeState,
        tree: EpistemicTree,
        kind: ChangeKind,
        author: str,
        note: str,
    ) -> EpistemicTree:
        """Append the change from a state to a tree, then rewrite cards.jsonl if due."""
        try:  # a tree from others may hold cards that only its hash vouched for
            entry = _entry(state, tree, kind, author, note)
        except ValidationError as error:
            what, fix = refusal(error)
            raise UsageError(
                f"the change cannot be recorded: {what}", fix=fix
            ) from None
        if entry is None:
            return state.tree
        line = entry.line()
        try:
            with LineLog(
                self.journal_path
            ) as log:  # a torn last line is cut first
                end = log.append(line) + len(line.encode()) + 1
        except OSError as error:  # of the sync at the end
            raise cannot_write(
                self.journal_path,
                error,
            ) from None
        after = replace(
            state, tree=tree, generation=entry.generation, journal=end
        )
        self._known = after
        behind = after.generation - after.saved
        due = len(tree) <= SMALL or behind >= len(tree) // 50
        if due or not state.trusted or kind in _ALWAYS:
            self._checkpoint(after)
        return tree

    def _checkpoint(self, state: TreeState) -> None:
        """Rewrite cards.jsonl. Its changes are durable, so a full disk is no failure."""
        # A killed writer may have left temporary files; this one holds the lock.
        for litter in self.folder.rglob(".*.jsonl.*.tmp"):
            with suppress(OSError):
                litter.unlink()
        with suppress(KaceError):
            write_atomic(self.cards_path, state_text(state))
            self._known = replace(
                state,
                trusted=True,
                saved=state.generation,
                stamp=_stamp_of(self.cards_path),
            )


_ALWAYS = (ChangeKind.CREATE, ChangeKind.FREEZE, ChangeKind.THAW)
"""Changes that are recorded and checkpointed though no card changes."""


def _entry(
    state: TreeState,
    tree: EpistemicTree,
    kind: ChangeKind,
    author: str,
    note: str,
) -> JournalEntry | None:
    """Return the entry that leads from a state to a tree; None for no change."""
    old = state.tree
    cards = []
    for name in sorted(old.cards.keys() | tree.cards.keys()):
        before = old.cards.get(name)
        after = tree.cards.get(name)
        if before is not after and before != after:
            cards.append(CardChange(before=before, after=after))
    domains = None
    if old.domains != tree.domains:
        domains = DomainsChange(before=old.domains, after=tree.domains)
    if not cards and domains is None and kind not in _ALWAYS:
        return None
    return JournalEntry(
        generation=state.generation + 1,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        author=author,
        note=note,
        kind=kind,
        cards=tuple(cards),
        domains=domains,
        frozen=state.frozen,
    )


def _file_problems(path: Path, state: TreeState) -> Iterator[str]:
    """Check every card of a file, whatever its hash says."""
    if state is NOTHING:
        return
    for number, line in enumerate(
        _read_bytes(path).split(b"\n")[1:-1], start=2
    ):
        try:
            read_card(line)
        except DataError as error:
            yield f"{path}:{number}: {error.message}"
    if not state.trusted:
        yield f"{path}:1: the cards were edited by hand since this header was written"
    if state.frozen not in (None, state.tree.content_hash()):
        yield f"{path}:1: the tree was changed after it was frozen"
