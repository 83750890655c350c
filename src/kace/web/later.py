"""Values that take longer than a page may: worked out in threads, kept, and shown when they are there."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

REST = 4.0  # a value that keeps changing is worked out again after so many times as long as that took


class KeptValue(NamedTuple, Generic[T]):
    """A value as far as it is known; `fresh` where it is that of the state asked for. An older one beats none."""

    value: T | None
    fresh: bool


class _Work(NamedTuple, Generic[T]):
    state: Hashable
    under_way: Future[tuple[T, float]]  # the value, and until when it is not worked out again
    older: T | None


class Later(Generic[T]):
    """Values by name. One thread at most works on each, and the values asked for last are kept."""

    def __init__(self, keep: int = 16) -> None:
        self._keep, self._lock = keep, threading.Lock()
        self._known: OrderedDict[Hashable, _Work[T]] = OrderedDict()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="kace-later")

    def ask(
        self, name: Hashable, state: Hashable, make: Callable[[], T], *, patience: float | None = 0.25
    ) -> KeptValue[T]:
        """The value of a name, if there within `patience`; `None` waits for this state's. Errors reach everybody."""
        until = None if patience is None else time.monotonic() + patience
        while True:
            work = self._begun(name, state, make, rests=until is not None)
            try:
                value = work.under_way.result(until and max(0.0, until - time.monotonic()))[0]
            except TimeoutError:
                return KeptValue(work.older, False)
            if work.state == state or until is not None:
                return KeptValue(value, work.state == state)

    def _begun(self, name: Hashable, state: Hashable, make: Callable[[], T], *, rests: bool) -> _Work[T]:
        def timed() -> tuple[T, float]:
            began = time.monotonic()
            value, ended = make(), time.monotonic()
            return value, ended + REST * (ended - began)

        with self._lock:
            work = self._known.pop(name, None)
            older, until = work.older if work else None, 0.0
            if work and work.under_way.done() and not work.under_way.exception():
                older, until = work.under_way.result()
            ended = work is None or (work.under_way.done() and work.state != state)
            if work is None or (ended and not (rests and time.monotonic() < until)):
                work = _Work(state, self._threads.submit(timed), older)
            self._known[name] = work
            while len(self._known) > self._keep:
                self._known.popitem(last=False)
            return work
