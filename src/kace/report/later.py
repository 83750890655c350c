"""Values that take longer than a page may: worked out in threads, kept, and shown when they are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

REST = 4.0  # a value that keeps changing is worked out again after so many times as long as that took


class KeptValue(NamedTuple, Generic[T]):
    """A value as far as it is known; `fresh` where it is that of the state asked for. An older one beats none."""

    value: T | None
    fresh: bool


class Later(Generic[T]):
    """Values by name. One thread at most works on each, and the values asked for last are kept."""

    def __init__(self, keep: int = 16) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        # By name: the state, its value with the time until which it is not worked out again, and an older value.
        self._known: dict[
            Hashable, tuple[Hashable, Future[tuple[T, float]], T | None]
        ] = {}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="kace-later")

    def ask(
        self,
        name: Hashable,
        state: Hashable,
        make: Callable[[], T],
        *,
        patience: float | None = 0.25,
    ) -> KeptValue[T]:
        """The value of a name, if there within `patience`; `None` waits for this state's. Errors reach everybody."""

        def timed() -> tuple[T, float]:
            began = time.monotonic()
            value = make()
            ended = time.monotonic()
            return value, ended + REST * (ended - began)

        while True:
            with self._lock:
                known, work, older = self._known.pop(name, None) or (None, None, None)
                if work is None or (work.done() and known != state):
                    older, rests = (
                        (older, 0.0)
                        if work is None or work.exception()
                        else work.result()
                    )
                    if work is None or patience is None or time.monotonic() >= rests:
                        known = state
                        work = self._threads.submit(timed)
                self._known[name] = known, work, older
                self._known = dict(list(self._known.items())[-self._keep :])
            try:
                value = work.result(patience)[0]
            except TimeoutError:
                return KeptValue(older, False)
            if known == state or patience is not None:
                return KeptValue(value, known == state)
