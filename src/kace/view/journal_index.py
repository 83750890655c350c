"""Where a tree's journal speaks of each card, so that one card's history is had without reading everybody's.

The journal of a large tree may hold a hundred thousand cards in its first line. Finding where each of them stands
takes a fraction of a second; reading them all would take several.
"""

from __future__ import annotations

import json
import operator
import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from kace.tree.card import MAX_CARD_BYTES, TRUSTED
from kace.tree.files import cannot_read
from kace.tree.journal import CardChange, Entry, read_journal
from kace.tree.state import Stamp, stamp_of
from kace.tree.tree import TreeError
from kace.view.once import Once

KEPT_JOURNALS = 4
LONG_LINE = 1 << 20
"""Bytes from which on a line is not read whole for the sake of one card."""
_CHANGE, _ID, _CARDS = b'{"before":', b'"card_id":"', b',"cards":['
_ROOM = 3 * MAX_CARD_BYTES
"""More than a card before and after can take."""


class Step(NamedTuple):
    """A change of the tree, and what it did to one card."""

    entry: Entry
    """Who, when and why. Its own list of cards may be short of some."""
    change: CardChange


class History(NamedTuple):
    """The changes of one card, newest first."""

    steps: tuple[Step, ...]
    damaged: int
    """Changes that stand in the journal and cannot be read."""


class JournalIndex:
    """A journal as it was when it was gone through."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = array("Q")
        """Where every whole line begins."""
        self._ends = array("Q")
        self._first: dict[str, int] = {}
        """Where a card's first change begins, and where the later ones of those that have any."""
        self._later: defaultdict[str, list[int]] = defaultdict(list)
        try:
            self._go_through()
        except FileNotFoundError:  # a tree without a journal has no history, which is no fault
            return
        except OSError as error:
            raise cannot_read(path, error) from None

    def of(self, card_id: str) -> History:
        """A card's changes."""
        first = self._first.get(card_id)
        places = () if first is None else (*reversed(self._later.get(card_id, ())), first)
        found = [self._step(place, card_id) for place in places]
        steps = tuple(step for step in found if step is not None)
        return History(steps, len(found) - len(steps))

    def _go_through(self) -> None:
        start = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):  # torn: a writer was killed, or is at it
                    return
                self._lines.append(start)
                self._ends.append(start + len(line))
                self._take(line, start)
                start += len(line)

    def _take(self, line: bytes, start: int) -> None:
        """Note where a line's changes begin. Texts escape their quotes, so none looks like the begin of one."""
        at = line.find(_CHANGE)
        while at >= 0:
            if line[at + len(_CHANGE)] != ord("["):  # of a card, not of the domains
                named = line.find(_ID, at) + len(_ID)
                end = line.find(b'"', named)
                if named < len(_ID) or end < 0:
                    return
                name = line[named:end].decode("ascii", "replace")
                if self._first.setdefault(name, start + at) != start + at:
                    self._later[name].append(start + at)
                at = end
            at = line.find(_CHANGE, at + 1)

    def _step(self, place: int, card_id: str) -> Step | None:
        line = bisect_right(self._lines, place) - 1
        long = self._ends[line] - self._lines[line] > LONG_LINE
        entry = _cut(self._path, self._lines[line], place) if long else _whole(self._path, self._lines[line])
        change = next((change for change in entry.cards if change.card_id == card_id), None) if entry else None
        return Step(entry, change) if entry and change else None


def _whole(path: Path, start: int) -> Entry | None:
    """The entry of the line that begins at a place; `None` where it is damaged."""
    try:
        read = next(read_journal(path, start), None)
    except TreeError:  # the file is gone, or may not be read any more
        return None
    return read.content if read and isinstance(read.content, Entry) else None


def _cut(path: Path, start: int, place: int) -> Entry | None:
    """A long line's entry with one card in it. The line's checksum is not looked at: that would take all of it."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            head = file.read(_ROOM).partition(_CARDS)[0]
            file.seek(place)
            text = file.read(_ROOM).decode("utf-8", "ignore")
        change = text[: json.JSONDecoder().raw_decode(text)[1]]
        return Entry.model_validate_json(head + _CARDS + change.encode() + b"]}", context=TRUSTED)
    except (OSError, ValueError, RecursionError):  # pydantic's error is a ValueError, too
        return None


def latest_entries(path: Path, most: int) -> tuple[Entry, ...]:
    """The newest changes of a journal, newest first, as far as its end holds them: a long line is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = max(0, size - LONG_LINE)
            file.seek(start)
            end = file.read(LONG_LINE)
    except OSError:
        return ()
    if start:  # the first line is not whole
        cut = end.find(b"\n") + 1
        start, end = start + cut, end[cut:] if cut else b""
    places = [start] if end else []
    places += [start + found.end() for found in re.finditer(b"\n", end[:-1])]
    entries = (_whole(path, place) for place in places[-most:][::-1])
    return tuple(entry for entry in entries if entry is not None)


def journal_index(path: Path) -> JournalIndex:
    """The index of a journal as it is now, kept until the file changes."""
    return _INDEXES.of((path, stamp_of(path)))


def _indexed(journal: tuple[Path, Stamp | None]) -> JournalIndex:
    return JournalIndex(journal[0])


_INDEXES = Once(_indexed, KEPT_JOURNALS, operator.eq)
