"""Values that take longer than a page may: worked out in a thread of their own, kept, and shown when they are there."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kace.errors import KaceError

T = TypeVar("T")

Tell = Callable[[str], None]
"""Says in a few words how far the work is."""
REST = 4.0
"""A value that keeps changing is worked out again after so many times as long as that took, so that it never takes up
more than a fifth of a core."""
AT_ONCE = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """A value as far as it is known."""

    value: T | None
    fresh: bool
    """Whether the value is that of the state asked for. An older one is better than none."""
    words: str
    """How far the work is, while there is some."""
    error: KaceError | None
    """Why there is no value."""


@dataclass(slots=True)
class _Desk(Generic[T]):
    """One value, and the work on it. The lock of its `Later` guards every field."""

    state: Hashable = None
    value: T | None = None
    error: KaceError | None = None
    words: str = ""
    running: bool = False
    rests_until: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)
    broken: BaseException | None = None


class Later(Generic[T]):
    """Values by name. At most one thread works on each, and the values asked for last are kept."""

    def __init__(self, keep: int = 16) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._desks: OrderedDict[Hashable, _Desk[T]] = OrderedDict()

    def ask(
        self, name: Hashable, state: Hashable, work: Callable[[Tell], T], *, patience: float | None = 0.25
    ) -> Found[T]:
        """The value of a name, if it is there within `patience` seconds; `None` waits for that of this very state.

        `state` is whatever the value depends on: where it has changed, the value is worked out again.
        """
        until = None if patience is None else time.monotonic() + patience
        while True:
            with self._lock:
                desk = self._begin(name, state, work, now=until is None)
                found = self._found(desk, state)
                ended, running, rest = desk.ended, desk.running, desk.rests_until - time.monotonic()
            left = None if until is None else until - time.monotonic()
            if found.fresh or (left is not None and (left <= 0 or (not running and rest > left))):
                return found
            if running:
                ended.wait(left)
            else:
                time.sleep(max(0.0, rest))

    def _begin(self, name: Hashable, state: Hashable, work: Callable[[Tell], T], *, now: bool) -> _Desk[T]:
        desk = self._desks.setdefault(name, _Desk())
        self._desks.move_to_end(name)
        if desk.broken is not None:
            broken, desk.broken = desk.broken, None
            raise broken
        known = desk.state == state and (desk.value is not None or desk.error is not None)
        rests = not now and time.monotonic() < desk.rests_until
        if not (known or desk.running or rests):
            desk.running, desk.words, desk.ended = True, "", threading.Event()
            threading.Thread(target=self._work, args=(desk, state, work), name="kace-later", daemon=True).start()
        idle = [key for key, each in self._desks.items() if each is not desk and not each.running]
        for old in idle[: max(0, len(self._desks) - self._keep)]:
            del self._desks[old]
        return desk

    def _work(self, desk: _Desk[T], state: Hashable, work: Callable[[Tell], T]) -> None:
        def tell(words: str) -> None:
            desk.words = words

        value, error, broken, began = None, None, None, time.monotonic()
        try:
            with AT_ONCE:
                began = time.monotonic()
                value = work(tell)
        except KaceError as known:
            error = known
        except Exception as bug:  # whoever asks next hears of it
            broken = bug
        with self._lock:
            if broken is None:
                desk.state, desk.error = state, error
                desk.value = desk.value if value is None else value
            desk.running, desk.broken = False, broken
            now = time.monotonic()
            desk.rests_until = now + REST * (now - began)
            desk.ended.set()

    def _found(self, desk: _Desk[T], state: Hashable) -> Found[T]:
        fresh = desk.state == state and not desk.running and (desk.value is not None or desk.error is not None)
        return Found(desk.value, fresh, desk.words, desk.error)
