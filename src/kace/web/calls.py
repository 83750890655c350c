"""The calls of a run in a sidecar: where each lies, so that a text is found by its key."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from kace.models.cache import KEY_AT, KEY_LENGTH, CallRecord
from kace.web.index import FileState, Sidecar

BATCH = 2_000
PATIENCE = 0.3  # seconds that a page waits for texts


class CallIndex(Sidecar):
    """A folder of recorded calls, followed as it grows."""

    schema = """
        CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, segment TEXT, place INTEGER, line BLOB) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS segments (name TEXT PRIMARY KEY, place INTEGER, stamp TEXT) WITHOUT ROWID;
    """
    tables = ("calls", "segments")

    def __init__(self, folder: Path) -> None:
        super().__init__("calls", folder)

    def text(self, key: str) -> str | None:
        """What the model replied; `None` where no such call is found, or none yet: see `complete`."""
        for segment, place, line in self.rows("SELECT segment, place, line FROM calls WHERE key = ?", key):
            with contextlib.suppress(OSError, ValidationError), (self.source / segment).open("rb") as file:
                file.seek(place)
                record = CallRecord.model_validate_json(zlib.decompress(line) if line else file.readline())
                return record.text if record.key == key else None
        return None

    def stamp(self) -> object:
        """The segments' files and sizes."""
        return [(path.name, _stamp(path)) for path in self._segments()]

    def step(self, db: sqlite3.Connection) -> bool:
        """Read on in the first segment that has more."""
        for path in self._segments():
            known = db.execute("SELECT place, stamp FROM segments WHERE name = ?", (path.name,)).fetchone()
            place, stamp, packed = known[0] if known else 0, _stamp(path), path.suffix == ".gz"
            if known and known[1] == stamp:
                continue
            lines = list(_packed(path) if packed else islice(_lines(path, place), BATCH))
            for offset, line in lines:
                key = line[KEY_AT : KEY_AT + KEY_LENGTH].decode("ascii", "replace")
                kept = zlib.compress(line, 1) if packed else None
                db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", (key, path.name, offset, kept))
                place = offset + len(line)
            done = packed or len(lines) < BATCH
            db.execute("INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", (path.name, place, stamp if done else None))
            return True
        return False

    def _segments(self) -> list[Path]:
        return [path for path in sorted(self.source.glob("*.jsonl*")) if path.resolve().is_relative_to(self.source)]


def _packed(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a compressed segment, up to where it is damaged."""
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        yield from ((0, line) for line in file if line.endswith(b"\n"))


def _lines(path: Path, place: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines from a place on, each with its offset."""
    with path.open("rb") as file:
        place = place if path.stat().st_size >= place else 0
        file.seek(place)
        for line in file:
            if line.endswith(b"\n"):
                yield place, line
            place += len(line)


def _stamp(path: Path) -> str:
    return json.dumps(FileState.of(path)[:2])
