"""The journal of a tree: one line per change, appended and never rewritten, from which any past tree can be had."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from kace.cards.card import TRUSTED, Card, StrictRecord
from kace.cards.card_text import LINE
from kace.cards.tree import Domain, EpistemicTree, TreeError
from kace.errors import DataError
from kace.files import whole_lines

FORMAT = 1
MAX_TREE_BYTES = (
    1 << 30
)  # of a file, and of a line of the journal, which may hold every card
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
    time: str  # UTC, ISO 8601
    author: Annotated[
        str, StringConstraints(pattern=LINE, min_length=1, max_length=200)
    ]
    note: Annotated[str, StringConstraints(pattern=LINE, max_length=1_000)]
    kind: ChangeKind
    cards: tuple[CardChange, ...] = ()
    domains: DomainsChange | None = None
    frozen: str | None = (
        None  # the content hash, where the tree is frozen after this change
    )

    def line(self) -> str:
        """The entry as the journal keeps it, with a checksum of its own at the end."""
        text = self.model_dump_json()
        return f'{text[:-1]},"sum":"{_checksum(text.encode())}"}}'


class JournalLine(NamedTuple):
    """A line of the journal, with where it ends."""

    number: int
    end: int
    content: (
        JournalEntry | str
    )  # text says why the line cannot be read back as it was written


def replayed(
    tree: EpistemicTree, entries: Sequence[JournalEntry], *, back: bool = False
) -> EpistemicTree:
    """The tree after the entries, which are given oldest first; going back, the tree before them."""
    cards: dict[str, Card | None] = {}
    domains: tuple[Domain, ...] | None = None
    for entry in reversed(entries) if back else entries:
        cards.update(
            (change.card_id, change.before if back else change.after)
            for change in entry.cards
        )
        if entry.domains:
            domains = entry.domains.before if back else entry.domains.after
    return tree.revised(cards, domains)


def read_journal(path: Path, offset: int = 0) -> Iterator[JournalLine]:
    """The whole lines from an offset on; a torn last line is not one. Numbers count from the offset."""
    with located(path), contextlib.suppress(FileNotFoundError):
        for number, start, line in whole_lines(path, offset, MAX_TREE_BYTES):
            yield JournalLine(number, start + len(line) + 1, _read_line(line))


@contextlib.contextmanager
def located(where: Path | str) -> Iterator[None]:
    """Puts the place in front of what is refused inside, unless a closer one is named, and explains a failed read."""
    try:
        yield
    except DataError as error:
        if str(where) in error.message:
            raise
        raise type(error)(f"{where}: {error.message}", fix=error.fix) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TreeError(
            f"cannot read {where}: {reason}", fix="check the path"
        ) from None


def _read_line(line: bytes) -> JournalEntry | str:
    text = line[:-_SUFFIX] + b"}"
    if line[-_SUFFIX:] != b',"sum":"' + _checksum(text).encode() + b'"}':
        return "it is damaged: its checksum does not match"
    with contextlib.suppress(ValidationError):
        return JournalEntry.model_validate_json(text, context=TRUSTED)
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        if (version := json.loads(text).get("v")) > FORMAT:
            return f"it was written by a newer kace (format {version})"
    return "it is no journal entry"


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_SUM]


def author() -> str:
    """Who a change is signed by: the name of the user's account."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return f"uid {os.getuid()}"
