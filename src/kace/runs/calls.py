"""The calls of a run in a sidecar: where each lies, so that a text is found by its key, and what all of them used."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from kace.errors import KaceError
from kace.files import MAX_BYTES, open_plain
from kace.models.cache import CallRecord
from kace.runs.index import FileState, Gain, Sidecar

BATCH = 2_000
PATIENCE = 0.3  # seconds that a page waits for texts
USED = ("input", "cached", "written", "output")


class CallIndex(Sidecar):
    """A folder of recorded calls, followed as it grows."""

    schema = """
        CREATE TABLE IF NOT EXISTS calls (segment TEXT, place INTEGER, key TEXT, tier TEXT, input INTEGER,
            cached INTEGER, written INTEGER, output INTEGER, line BLOB, PRIMARY KEY (segment, place)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
    """

    def __init__(self, folder: Path) -> None:
        super().__init__("used-calls", folder)

    def text(self, key: str) -> str | None:
        """What the model replied; `None` where no such call is found, or none yet: see `complete`."""
        for segment, place, line in self.rows(
            "SELECT segment, place, line FROM calls WHERE key = ?", key
        ):
            with (
                contextlib.suppress(OSError, ValidationError),
                open_plain(self.source / segment) as file,
            ):
                file.seek(place)
                record = CallRecord.model_validate_json(
                    zlib.decompress(line) if line else file.readline(MAX_BYTES)
                )
                return record.text if record.key == key else None
        return None

    def used(self) -> Mapping[str, Mapping[str, int]]:
        """By tier, how many calls there are and the tokens they took."""
        sums = ", ".join(f"SUM({name}) AS {name}" for name in USED)
        found = self.rows(
            f"SELECT tier, COUNT(*) AS calls, {sums} FROM calls GROUP BY tier ORDER BY tier"
        )
        return {
            row["tier"]: {name: row[name] for name in ("calls", *USED)} for row in found
        }

    def stamp(self) -> object:
        """The segments' files and sizes."""
        return [(path.name, FileState.of(path)[:2]) for path in self._segments()]

    def step(self, db: sqlite3.Connection) -> bool:
        """Read on in the first segment that has more. A damaged line costs itself, a damaged file what follows."""
        for path in self._segments():
            with contextlib.suppress(OSError, KaceError):
                if self.follow(db, path, BATCH):
                    return True
        return False

    def take(
        self,
        db: sqlite3.Connection,
        path: Path,
        number: int,
        place: int | None,
        line: bytes,
    ) -> Gain | None:
        """Keep where a call lies, and what it used."""
        with contextlib.suppress(
            ValueError, KeyError, TypeError, AttributeError, RecursionError
        ):
            call = json.loads(line)
            row = (
                call.get("key"),
                call["tier"],
                *(int(call.get(name, 0)) for name in USED),
            )
            at, kept = (
                (number, zlib.compress(line, 1)) if place is None else (place, None)
            )
            db.execute(
                "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (path.name, at, *row, kept),
            )
            return Gain(0.0, 1)
        return None

    def _segments(self) -> list[Path]:
        return [
            path
            for path in sorted(self.source.glob("*.jsonl*"))
            if path.resolve().is_relative_to(self.source)
        ]
