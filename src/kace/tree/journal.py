"""The journal of a tree: one line per change, appended and never rewritten, from which any past tree can be had."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from kace.io import LineLog, cannot_write, whole_lines
from kace.tree.card import TRUSTED, Card, StrictRecord
from kace.tree.card_text import LINE
from kace.tree.tree import Domain, EpistemicTree, TreeError

FORMAT = 1
_SUM = 16
_SUFFIX = len(',"sum":""}') + _SUM


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
    time: str
    """UTC, ISO 8601."""
    author: Annotated[str, StringConstraints(pattern=LINE, min_length=1, max_length=200)]
    note: Annotated[str, StringConstraints(pattern=LINE, max_length=1_000)]
    kind: ChangeKind
    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None
    frozen: str | None = None
    """The content hash, where the tree is frozen after this change."""

    def line(self) -> str:
        """The entry as the journal keeps it, with a checksum of its own at the end."""
        text = self.model_dump_json()
        return f'{text[:-1]},"sum":"{_checksum(text.encode())}"}}'


class JournalLine(NamedTuple):
    """A line of the journal, with where it ends."""

    number: int
    end: int
    content: JournalEntry | str
    """Text says why the line cannot be read back as it was written."""


def replayed(tree: EpistemicTree, entries: Sequence[JournalEntry], *, back: bool = False) -> EpistemicTree:
    """The tree after the entries, which are given oldest first; going back, the tree before them."""
    cards: dict[str, Card | None] = {}
    domains: tuple[Domain, ...] | None = None
    for entry in reversed(entries) if back else entries:
        cards.update((change.card_id, change.before if back else change.after) for change in entry.cards)
        if entry.domains:
            domains = entry.domains.before if back else entry.domains.after
    return tree.revised(cards, domains)


def append(path: Path, entry: JournalEntry) -> int:
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
        for number, start, line in whole_lines(path, offset):
            yield JournalLine(number, start + len(line) + 1, _read_line(line))
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_read(path, error) from None


def cannot_read(path: Path, error: OSError) -> TreeError:
    """The error of a failed read."""
    return TreeError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", fix="check the path")


def _read_line(line: bytes) -> JournalEntry | str:
    text = line[:-_SUFFIX] + b"}"
    if line[-_SUFFIX:] != b',"sum":"' + _checksum(text).encode() + b'"}':
        return "it is damaged: its checksum does not match"
    try:
        return JournalEntry.model_validate_json(text, context=TRUSTED)
    except ValidationError:
        version = None
        with contextlib.suppress(ValueError, AttributeError):
            version = json.loads(text).get("v")
        newer = isinstance(version, int) and version > FORMAT
        return f"it was written by a newer kace (format {version})" if newer else "it is no journal entry"


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_SUM]
