"""The journal of a tree: one line per change, appended and never rewritten, from which any past tree can be had."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from kace.errors import KaceError
from kace.io import LineLog, cannot_write
from kace.tree.card import TRUSTED, Card
from kace.tree.card_text import LINE
from kace.tree.changes import Add, Batch, Change, Deprecate, Edit, Relocate, SetDomains
from kace.tree.tree import Domain, EpistemicTree, TreeError

FORMAT = 1
_SUM = 16
_SUFFIX = len(',"sum":""}') + _SUM


class Kind(StrEnum):
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

    @classmethod
    def of(cls, change: Change) -> Kind:
        """The kind of a change."""
        return _KINDS[type(change)]


_KINDS: dict[type, Kind] = {
    Add: Kind.ADD,
    Edit: Kind.EDIT,
    Relocate: Kind.RELOCATE,
    Deprecate: Kind.DEPRECATE,
    SetDomains: Kind.DOMAINS,
    Batch: Kind.BATCH,
}


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class CardChange(_Record):
    """A card before and after; `None` where there was or is none."""

    before: Card | None
    after: Card | None

    @property
    def card_id(self) -> str:
        """The card's id."""
        card = self.after or self.before
        return card.card_id if card else ""


class DomainsChange(_Record):
    """The registry before and after."""

    before: tuple[Domain, ...]
    after: tuple[Domain, ...]


class Entry(_Record):
    """One step in a tree's life: who, when, why, and what was there before."""

    v: Literal[1] = 1
    generation: Annotated[int, Field(ge=0)]
    time: str
    """UTC, ISO 8601."""
    author: Annotated[str, StringConstraints(pattern=LINE, min_length=1, max_length=200)]
    note: Annotated[str, StringConstraints(pattern=LINE, max_length=1_000)]
    kind: Kind
    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None
    frozen: str | None = None
    """The content hash, where the tree is frozen after this step."""

    def line(self) -> str:
        """The entry as the journal keeps it, with a checksum of its own at the end."""
        text = self.model_dump_json()
        return f'{text[:-1]},"sum":"{_checksum(text.encode())}"}}'


class Delta(NamedTuple):
    """What a step changes."""

    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None


class Author(NamedTuple):
    """Who makes a change, and why."""

    name: str
    note: str = ""


class Damage(NamedTuple):
    """A line that cannot be read back as it was written."""

    reason: str


class JournalLine(NamedTuple):
    """A line of the journal, with where it ends."""

    number: int
    end: int
    content: Entry | Damage


def now() -> str:
    """This second, as entries write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def delta_between(before: EpistemicTree, after: EpistemicTree, ids: Iterable[str]) -> Delta:
    """What turns one tree into the other, where only the named cards may differ."""
    pairs = ((_card(before, name), _card(after, name)) for name in ids)
    cards = tuple(CardChange(before=old, after=new) for old, new in pairs if old is not new and old != new)
    changed = before.domains != after.domains
    return Delta(cards, DomainsChange(before=before.domains, after=after.domains) if changed else None)


def redone(tree: EpistemicTree, entries: Sequence[Entry]) -> EpistemicTree:
    """The tree after the entries, oldest first."""
    cards: dict[str, Card | None] = {}
    domains = tree.domains
    for entry in entries:
        cards.update((change.card_id, change.after) for change in entry.cards)
        domains = entry.domains.after if entry.domains else domains
    return tree.revised(cards, domains) if cards or domains != tree.domains else tree


def undone(tree: EpistemicTree, entries: Sequence[Entry]) -> EpistemicTree:
    """The tree before the entries, which are given oldest first."""
    cards: dict[str, Card | None] = {}
    domains = tree.domains
    for entry in reversed(entries):
        cards.update((change.card_id, change.before) for change in entry.cards)
        domains = entry.domains.before if entry.domains else domains
    return tree.revised(cards, domains) if cards or domains != tree.domains else tree


def append(path: Path, entry: Entry) -> int:
    """Add an entry, durably, and return where the journal now ends. A torn last line is cut first."""
    line = entry.line()
    try:
        with LineLog(path) as log:
            return log.append(line) + len(line.encode()) + 1
    except OSError as error:  # the sync at the end
        raise cannot_write(path, error) from None


def read_journal(path: Path, offset: int = 0) -> Iterator[JournalLine]:
    """The whole lines from an offset on; a torn last line is not one. Numbers count from the offset."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                offset += len(line)
                yield JournalLine(number, offset, _read_line(line[:-1]))
    except FileNotFoundError:
        return
    except OSError as error:
        raise TreeError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", fix="check the path") from None


def torn_bytes(path: Path) -> int:
    """The bytes after the last newline, which a killed writer left."""
    data = path.read_bytes() if path.exists() else b""
    return len(data) - (data.rfind(b"\n") + 1)


def newer(path: Path, version: object) -> KaceError:
    """The refusal of a format this version does not know."""
    return TreeError(
        f"{path} was written by a newer kace (format {version}, this one knows {FORMAT})", fix="upgrade kace"
    )


def _read_line(line: bytes) -> Entry | Damage:
    text = line[:-_SUFFIX] + b"}"
    if line[-_SUFFIX:] != b',"sum":"' + _checksum(text).encode() + b'"}':
        return Damage("it is damaged: its checksum does not match")
    try:
        return Entry.model_validate_json(text, context=TRUSTED)
    except ValidationError:
        version = _version(text)
        newer_one = isinstance(version, int) and version > FORMAT
        return Damage(f"it was written by a newer kace (format {version})" if newer_one else "it is no journal entry")


def _version(text: bytes) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value.get("v") if isinstance(value, dict) else None


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_SUM]


def _card(tree: EpistemicTree, name: str) -> Card | None:
    return tree.card(name) if name in tree else None
