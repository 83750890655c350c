"""A tree's journal in a sidecar: every change, and what each did to which card."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from kace.tree.card import TRUSTED
from kace.tree.journal import CardChange, JournalEntry, read_journal
from kace.web.index import FileState, Sidecar, get_meta, set_meta

BATCH = 500  # changes of cards put in at a time, at least
_ID = re.compile(rb'"card_id":"([A-Z0-9_]{1,64})"')


class ListedChange(NamedTuple):
    """A change of the tree: who made it, when and why."""

    number: int
    generation: int
    kind: str
    author: str
    note: str
    time: str
    cards: int  # how many cards it touched

    @property
    def moment(self) -> float | None:
        """When it was made, in seconds since 1970; `None` where somebody else wrote the journal."""
        with contextlib.suppress(ValueError, OverflowError, OSError):
            return datetime.fromisoformat(self.time).timestamp()
        return None


class CardStep(NamedTuple):
    """A change of the tree, and what it did to one card."""

    change: ListedChange
    card: CardChange


class JournalIndex(Sidecar):
    """The journal of an opened tree."""

    schema = """
        CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, generation INTEGER, kind TEXT, author TEXT,
            note TEXT, time TEXT, cards INTEGER);
        CREATE TABLE IF NOT EXISTS steps (card TEXT, number INTEGER, place INTEGER, json TEXT,
            PRIMARY KEY (card, number)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS steps_of_change ON steps (number, place);
    """
    tables = ("changes", "steps")

    def __init__(self, path: Path) -> None:
        super().__init__("journal", path)

    def stamp(self) -> object:
        """The file's size and time."""
        return FileState.of(self.source)

    def latest(self, most: int) -> list[ListedChange]:
        """The newest changes, newest first."""
        return [ListedChange(*row) for row in self.rows("SELECT * FROM changes ORDER BY number DESC LIMIT ?", most)]

    def cards_of(self, change: ListedChange, most: int) -> list[str]:
        """The first cards that a change touched."""
        sql = "SELECT card FROM steps WHERE number = ? ORDER BY place LIMIT ?"
        return [row["card"] for row in self.rows(sql, change.number, most)]

    def history(self, card_id: str) -> tuple[list[CardStep], int]:
        """A card's changes, newest first, and how many more cannot be read."""
        sql = "SELECT changes.*, json FROM steps LEFT JOIN changes USING (number) WHERE card = ? ORDER BY number DESC"
        rows, steps = self.rows(sql, card_id), []
        for *change, text in rows:
            with contextlib.suppress(ValidationError):  # of a damaged line
                steps.append(
                    CardStep(ListedChange(*change), CardChange.model_validate_json(text or "", context=TRUSTED))
                )
        return steps, len(rows) - len(steps)

    def step(self, db: sqlite3.Connection) -> bool:
        """Read the next changes; from the start where the journal is another one."""
        if not self.source.exists():
            self.clear(db)
            return False
        place = self.resumed(db, self.source)
        number, taken = get_meta(db, "number", 0), 0
        for line in read_journal(self.source, place):
            number += 1
            if isinstance(line.content, JournalEntry):
                taken += _put(db, number, line.content)
            else:  # a line that cannot be read still says which cards it is about
                with self.source.open("rb") as file:
                    file.seek(place)
                    cards = ((name.decode(), number) for name in _ID.findall(file.read(line.end - place)))
                    db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, 0, NULL)", cards)
            place = line.end
            if taken >= BATCH:
                break
        set_meta(db, number=number)
        self.read_up_to(db, self.source, place)
        return taken >= BATCH


def _put(db: sqlite3.Connection, number: int, entry: JournalEntry) -> int:
    row = (number, entry.generation, entry.kind.value, entry.author, entry.note, entry.time, len(entry.cards))
    db.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    steps = ((change.card_id, number, place, change.model_dump_json()) for place, change in enumerate(entry.cards))
    db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", steps)
    return len(entry.cards) + 1
