"""Values that take a while to make and are asked for by many pages at once: each is made once, and the latest kept."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
V = TypeVar("V")


class Once(Generic[S, V]):
    """What `make` gives for a source. Sources are told apart by identity, or as `same` says."""

    def __init__(self, make: Callable[[S], V], keep: int, same: Callable[[S, S], bool] = operator.is_) -> None:
        self._make = make
        self._keep = keep
        self._same = same
        self._lock = threading.Lock()
        """Held while a value is made: whoever asks meanwhile waits for it rather than making it, too."""
        self._known: list[tuple[S, V]] = []
        """Latest first."""

    def of(self, source: S) -> V:
        """The value of a source."""
        with self._lock:
            place = next((n for n, (known, _) in enumerate(self._known) if self._same(known, source)), None)
            pair = (source, self._make(source)) if place is None else self._known.pop(place)
            self._known = [pair, *self._known[: self._keep - 1]]
            return pair[1]
