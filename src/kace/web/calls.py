"""The calls of a run in a sidecar: where each lies, so that a text is found by its key, and what all of them used."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from kace.io import MAX_BYTES, open_plain, whole_lines
from kace.models.cache import CallRecord
from kace.solver.records import MAX_DAMAGED
from kace.web.index import FileState, Mark, Sidecar

BATCH = 2_000
PATIENCE = 0.3  # seconds that a page waits for texts
USED = ("input", "cached", "written", "output")


class CallIndex(Sidecar):
    """A folder of recorded calls, followed as it grows."""

    schema = """
        CREATE TABLE IF NOT EXISTS calls (segment TEXT, place INTEGER, key TEXT, tier TEXT, input INTEGER,
            cached INTEGER, written INTEGER, output INTEGER, line BLOB, PRIMARY KEY (segment, place)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
        CREATE TABLE IF NOT EXISTS segments (name TEXT PRIMARY KEY, place INTEGER, stamp TEXT) WITHOUT ROWID;
    """
    tables = ("calls", "segments")

    def __init__(self, folder: Path) -> None:
        super().__init__("used-calls", folder)

    def text(self, key: str) -> str | None:
        """What the model replied; `None` where no such call is found, or none yet: see `complete`."""
        for segment, place, line in self.rows("SELECT segment, place, line FROM calls WHERE key = ?", key):
            with contextlib.suppress(OSError, ValidationError), open_plain(self.source / segment) as file:
                file.seek(place)
                record = CallRecord.model_validate_json(zlib.decompress(line) if line else file.readline(MAX_BYTES))
                return record.text if record.key == key else None
        return None

    def used(self) -> Mapping[str, Mapping[str, int]]:
        """By tier, how many calls there are and the tokens they took."""
        sums = ", ".join(f"SUM({name}) AS {name}" for name in USED)
        found = self.rows(f"SELECT tier, COUNT(*) AS calls, {sums} FROM calls GROUP BY tier ORDER BY tier")
        return {row["tier"]: {name: row[name] for name in ("calls", *USED)} for row in found}

    def stamp(self) -> object:
        """The segments' files and sizes."""
        return [(path.name, _stamp(path)) for path in self._segments()]

    def step(self, db: sqlite3.Connection) -> bool:
        """Read on in the first segment that has more. A damaged line costs itself, a damaged file what follows."""
        for path in self._segments():
            known = db.execute("SELECT place, stamp FROM segments WHERE name = ?", (path.name,)).fetchone()
            (place, last), stamp, packed = known or (0, None), _stamp(path), path.suffix == ".gz"
            if last == stamp:
                continue
            place, taken = place if path.stat().st_size >= place and not packed else 0, 0
            damaged = 0
            with contextlib.suppress(OSError):
                for _, start, line in islice(whole_lines(path, place), None if packed else BATCH):
                    place, taken, damaged = start + len(line) + 1, taken + 1, damaged + 1
                    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                        call = json.loads(line)
                        row = (call.get("key"), call["tier"], *(int(call.get(name, 0)) for name in USED))
                        kept = zlib.compress(line, 1) if packed else None
                        db.execute(_INSERT, (path.name, start, *row, kept))
                        damaged -= 1
                    if damaged > MAX_DAMAGED:
                        break
            self.mark(db, Mark(FileState.of(path).changed, taken))
            done = packed or taken < BATCH
            db.execute("INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", (path.name, place, stamp if done else None))
            return True
        return False

    def _segments(self) -> list[Path]:
        return [path for path in sorted(self.source.glob("*.jsonl*")) if path.resolve().is_relative_to(self.source)]


_INSERT = "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _stamp(path: Path) -> str:
    return json.dumps(FileState.of(path)[:2])
