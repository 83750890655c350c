"""A tree in a sidecar: one row a card, its places on the map, and its words for search; and its journal beside it."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from kace.cards.card import TRUSTED, Card, Difficulty, lift_of
from kace.cards.store import (
    CardChange,
    JournalEntry,
    TreeStore,
    open_tree,
    read_journal,
)
from kace.cards.tree import Domain, EpistemicTree
from kace.files import whole_lines
from kace.ladder.retrieve import estimate
from kace.report.page import NotHere, StillReading
from kace.runs.index import FileState, Sidecar

BATCH = 2_000  # cards put in at a time
HASHED = 5_000  # cards up to which the content hash is worked out
ORDERS = {
    "lift": "effect IS NULL, effect DESC, position",
    "-lift": "effect IS NULL, effect, position",
    "id": "position",
    "-id": "position DESC",
    "uses": "uses DESC, position",
    "-uses": "uses, position",
}
"""Orders of a list of cards; those without a lift come last in an order by lift."""
_DOMAINS = TypeAdapter(tuple[Domain, ...])
_STATUSES = ("validated", "experimental", "deprecated")
_SHOWN = "FILTER (WHERE status != 'deprecated')"
_COUNTS = ", ".join(f"COUNT(*) FILTER (WHERE status = '{name}')" for name in _STATUSES)
_FIGURES = f"COUNT(*), {_COUNTS}, COALESCE(SUM(tokens) {_SHOWN}, 0), COUNT(effect) {_SHOWN}, AVG(effect) {_SHOWN}"


class TreeFacts(NamedTuple):
    """What is kept of a tree as a whole."""

    stamp: str = ""  # of the files as they were read
    domains: str = "[]"
    hash: str = ""  # of its content; empty for a large tree
    generation: int | None = None  # none for a file, which has no history
    frozen: str | None = None  # the hash it is frozen at


class Cell(NamedTuple):
    """The figures of the cards of one place of the map, or of a whole tree."""

    cards: int = 0
    validated: int = 0
    experimental: int = 0
    deprecated: int = 0
    tokens: int = 0  # estimated, of the cards that can be shown
    measured: int = 0  # cards that can be shown and have a lift
    lift: float | None = None  # the mean lift of those

    @property
    def shown(self) -> int:
        """Cards that a solve may read."""
        return self.cards - self.deprecated

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """How many cards of each status there are, from the best on."""
        return [
            (name, count)
            for name, count in zip(_STATUSES, self[1:4], strict=True)
            if count
        ]


class TreeIndex(Sidecar):
    """An opened tree: a directory with a history, or a file."""

    schema = """
        CREATE TABLE IF NOT EXISTS facts (stamp TEXT, domains TEXT, hash TEXT, generation INTEGER, frozen TEXT);
        CREATE TABLE IF NOT EXISTS cards (
            position INTEGER PRIMARY KEY, id TEXT UNIQUE, difficulty TEXT, status TEXT, effect REAL, low REAL,
            high REAL, tokens INTEGER, uses INTEGER);
        CREATE TABLE IF NOT EXISTS places (domain TEXT, difficulty TEXT, position INTEGER,
            PRIMARY KEY (domain, difficulty, position)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS texts (position INTEGER PRIMARY KEY, json TEXT);
        CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
            id, header, body, content='', columnsize=0, tokenize="unicode61 remove_diacritics 0");
    """

    def __init__(self, name: str, path: Path) -> None:
        super().__init__("tree", path)
        self.name = name

    def files(self) -> tuple[Path, ...]:
        """Its cards, and what says which change they are of."""
        return (
            (self.source / "cards.jsonl", self.journal)
            if self.journal
            else (self.source,)
        )

    def load(self) -> EpistemicTree:
        """The tree itself, for what needs all of it, such as a diff."""
        return open_tree(self.source)

    @property
    def journal(self) -> Path | None:
        """Its journal; a tree in one file has none."""
        return self.source / "journal.jsonl" if self.source.is_dir() else None

    def whole(self, *, wait: bool = False) -> TreeIndex:
        """This tree once it is read; `StillReading` before that, and the error of a tree that cannot be read."""
        if wait:
            self.wait()
        elif not self.glimpse():
            raise StillReading(self.name)
        if self.error is not None:
            raise self.error
        return self

    def card(self, card_id: str) -> Card:
        """A card; `NotHere` where the tree has none of that id."""
        if found := self._cards("WHERE id = ?", card_id):
            return found[0]
        raise NotHere(
            f"the tree {self.name} has no card '{card_id[:64]}'",
            fix="search the tree for what it says",
        )

    def has(self, card_ids: Iterable[str]) -> frozenset[str]:
        """Which of some ids are cards of the tree."""
        sql = "SELECT id FROM cards WHERE id IN (SELECT value FROM json_each(?))"
        return frozenset(
            row["id"] for row in self.rows(sql, json.dumps(list(card_ids)))
        )

    def at(self, positions: Iterable[int]) -> list[Card]:
        """The cards at some positions, in that order."""
        return self._cards(
            "JOIN json_each(?) ON value = position ORDER BY key",
            json.dumps(list(positions)),
        )

    def listed(
        self,
        domain: str,
        difficulty: str,
        status: str,
        sort: str,
        limit: int,
        offset: int,
    ) -> list[Card]:
        """Cards of a place of the map, of one status or of all."""
        which = "JOIN places USING (position) WHERE domain = ? AND places.difficulty = ? AND ? IN ('', status)"
        order = f"ORDER BY {ORDERS[sort]} LIMIT ? OFFSET ?"
        return self._cards(
            f"{which} {order}", domain, difficulty, status, limit, offset
        )

    def ordered(self, sort: str, limit: int, offset: int) -> list[Card]:
        """Cards of the whole tree, deprecated ones last."""
        return self._cards(
            f"ORDER BY status = 'deprecated', {ORDERS[sort]} LIMIT ? OFFSET ?",
            limit,
            offset,
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains in the order of the tree."""
        return _DOMAINS.validate_json(self.facts.domains)

    @property
    def facts(self) -> TreeFacts:
        """What is known of the whole tree; next to nothing before it is read."""
        return next(
            (TreeFacts(*row) for row in self.rows("SELECT * FROM facts")), TreeFacts()
        )

    def cells(self) -> dict[tuple[str, Difficulty], Cell]:
        """Every place that has cards. A card of two domains lies in both."""
        sql = f"SELECT domain, places.difficulty, {_FIGURES} FROM places JOIN cards USING (position) GROUP BY 1, 2"
        found = self.kept("cells", lambda: self.rows(sql))
        return {
            (domain, Difficulty(kind)): Cell(*figures)
            for domain, kind, *figures in found
        }

    def total(self) -> Cell:
        """All cards, each once."""
        return self.kept(
            "total", lambda: Cell(*self.rows(f"SELECT {_FIGURES} FROM cards")[0])
        )

    def telling(self) -> tuple[int, int, int]:
        """Cards with a lift, those whose interval lies above zero, and those whose interval lies below."""
        sql = "SELECT COUNT(effect), COUNT(*) FILTER (WHERE low > 0), COUNT(*) FILTER (WHERE high < 0) FROM cards"
        measured, above, below = self.kept("telling", lambda: self.rows(sql)[0])
        return measured, above, below

    def _cards(self, rest: str, *values: object) -> list[Card]:
        found = self.rows(
            f"SELECT texts.json FROM cards JOIN texts USING (position) {rest}", *values
        )
        return [Card.model_validate_json(row["json"], context=TRUSTED) for row in found]

    def step(self, db: sqlite3.Connection) -> bool:
        """Read the tree and put its cards in."""
        stamp = json.dumps(self.stamp())
        if db.execute("SELECT 1 FROM facts WHERE stamp = ?", (stamp,)).fetchone():
            return False
        self.clear(db)
        store = TreeStore(self.source) if self.source.is_dir() else None
        tree = store.load() if store else self.load()
        facts = TreeFacts(
            stamp,
            domains=_DOMAINS.dump_json(tree.domains).decode(),
            hash=tree.content_hash() if len(tree) <= HASHED else "",
            generation=store.generation if store else None,
            frozen=store.frozen_hash if store else None,
        )
        db.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", facts)
        cards = enumerate(tree)
        while batch := list(islice(cards, BATCH)):
            _put(db, batch)
        return False


def fields_of(card: Card) -> tuple[str, str, str]:
    """What search looks through, from what counts most on: the id, what says when to use the card, the body."""
    header, _, body = card.payload.partition("\n\n")
    return (
        card.card_id,
        "\n".join((header, *card.routing_conditions, *card.wordings)),
        body,
    )


def _put(db: sqlite3.Connection, batch: Sequence[tuple[int, Card]]) -> None:
    cards = []
    places = []
    texts = []
    words = []
    for at, card in batch:
        kind = card.difficulty_tag.value
        found = lift_of(card)
        lift = (None, None, None) if found is None or found.mark.vague else found.mark
        cards.append(
            (
                at,
                card.card_id,
                kind,
                card.status.value,
                *lift,
                estimate(card),
                card.provenance.n_uses,
            )
        )
        places += [(domain, kind, at) for domain in card.domain_tags]
        texts.append((at, card.model_dump_json()))
        words.append((at, *fields_of(card)))
    db.executemany(f"INSERT INTO cards VALUES ({', '.join('?' * 9)})", cards)
    db.executemany("INSERT INTO places VALUES (?, ?, ?)", places)
    db.executemany("INSERT INTO texts VALUES (?, ?)", texts)
    db.executemany(
        "INSERT INTO words (rowid, id, header, body) VALUES (?, ?, ?, ?)", words
    )


def latest(path: Path, most: int) -> list[JournalEntry]:
    """The newest changes that can be read, newest first."""
    with suppress(FileNotFoundError):
        lines = deque((start for _, start, _ in whole_lines(path)), most)
        entries = [_entry(path, start, FileState.of(path)) for start in reversed(lines)]
        return [entry for entry in entries if entry]
    return []


def history(
    path: Path, card_id: str
) -> tuple[list[tuple[JournalEntry, CardChange]], int]:
    """The changes of a card, newest first, and how many more cannot be read."""
    named = f'"card_id":"{card_id}"'.encode()
    entries = list[JournalEntry | None]()
    with suppress(FileNotFoundError):
        entries = [
            _entry(path, start, FileState.of(path))
            for _, start, line in whole_lines(path)
            if named in line
        ]
    known = [entry for entry in reversed(entries) if entry]
    steps = [
        (entry, change)
        for entry in known
        for change in entry.cards
        if change.card_id == card_id
    ]
    return steps, len(entries) - len(known)


@lru_cache(maxsize=64)
def _entry(path: Path, start: int, state: FileState) -> JournalEntry | None:
    """The change at an offset; `None` where the line is damaged. A line may hold every card of a tree."""
    content = next(read_journal(path, start)).content
    return content if isinstance(content, JournalEntry) else None
