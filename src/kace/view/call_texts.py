"""The texts of a run's calls, found by key without holding any of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from pydantic import ValidationError

from kace.models.cache import KEY_AT, KEY_LENGTH, CallRecord
from kace.view.background import Background
from kace.view.line_source import LineSource, line_source

PATIENCE = 0.3
"""Seconds that a page waits for texts, however many it asks for."""
SEGMENT = 1 << 44
"""Larger than any segment: a place is the segment's number times this, plus the offset in it."""


class CallTexts:
    """A folder of recorded calls. Where each lies is found out beside the pages, and again when the folder grows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sources: list[LineSource] = []
        self._places: dict[int, int] = {}
        self._guard = threading.Lock()
        """Over `_sources` and its order, which places refer to."""
        self._began = 0.0
        self._reading = Background(self._step)

    def get(self, key: str) -> CallRecord | None:
        """The call kept under a key. Waits a moment for a folder that has just begun to be read; see `complete`."""
        place = self._place(key)
        if place is None:
            self.look()
            self._reading.go_first()
            self._reading.wait(max(0.0, self._began + PATIENCE - time.monotonic()))
            place = self._place(key)
        if place is None:
            return None
        number, offset = divmod(place, SEGMENT)
        try:
            record = CallRecord.model_validate_json(self._sources[number].line_at(offset))
        except ValidationError:
            return None
        return record if record.key == key else None

    @property
    def complete(self) -> bool:
        """Whether all there is has been read."""
        return not self._reading.busy

    def look(self) -> None:
        """Read on, if there is more."""
        with self._guard:
            known = {source.path for source in self._sources}
            inside = self.folder.resolve()
            for path in sorted(self.folder.glob("*.jsonl*")):
                if path not in known and path.resolve().is_relative_to(inside):
                    self._sources.append(line_source(path))
        if not self._reading.busy and any(source.grown for source in self._sources):
            self._began = time.monotonic()
            self._reading.start()

    def wait(self) -> None:
        """Until all there is has been read."""
        self.look()
        self._reading.wait()

    def close(self) -> None:
        """Stop reading."""
        self._reading.stop()

    def _place(self, key: str) -> int | None:
        try:
            return self._places.get(_head(key))
        except ValueError:
            return None

    def _step(self) -> bool:
        for number, source in enumerate(self._sources):
            if lines := source.more():
                for offset, line in lines:
                    try:
                        head = _head(line[KEY_AT : KEY_AT + KEY_LENGTH].decode("ascii"))
                    except ValueError:
                        continue  # a damaged line costs itself only
                    self._places[head] = number * SEGMENT + offset
                return True
        return False


def _head(key: str) -> int:
    """Enough of a key to find it by; the record itself is compared in full."""
    if len(key) != KEY_LENGTH:
        raise ValueError("not a key")
    return int(key[:15], 16)
