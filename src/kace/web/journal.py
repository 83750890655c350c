"""A tree's journal for pages: its latest changes, and what a card went through. Only the lines asked for are parsed."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from kace.io import whole_lines
from kace.tree.journal import CardChange, JournalEntry, read_journal
from kace.web.index import FileState


def latest(path: Path, most: int) -> list[JournalEntry]:
    """The newest changes that can be read, newest first."""
    with suppress(FileNotFoundError):
        lines = deque((start for _, start, _ in whole_lines(path)), most)
        entries = [_entry(path, start, FileState.of(path)) for start in reversed(lines)]
        return [entry for entry in entries if entry]
    return []


def history(path: Path, card_id: str) -> tuple[list[tuple[JournalEntry, CardChange]], int]:
    """The changes of a card, newest first, and how many more cannot be read."""
    named, entries = f'"card_id":"{card_id}"'.encode(), list[JournalEntry | None]()
    with suppress(FileNotFoundError):
        entries = [_entry(path, start, FileState.of(path)) for _, start, line in whole_lines(path) if named in line]
    known = [entry for entry in reversed(entries) if entry]
    steps = [(entry, change) for entry in known for change in entry.cards if change.card_id == card_id]
    return steps, len(entries) - len(known)


@lru_cache(maxsize=64)
def _entry(path: Path, start: int, state: FileState) -> JournalEntry | None:
    """The change at an offset; `None` where the line is damaged. A line may hold every card of a tree."""
    content = next(read_journal(path, start)).content
    return content if isinstance(content, JournalEntry) else None
