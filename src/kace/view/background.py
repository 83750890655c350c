"""Work that goes on beside the pages: one thread for all tasks, a step at a time, and pages first."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

PAUSE = 0.25
"""Seconds that all work stands aside when a page is about to be drawn."""
LEAST = 0.25
"""Seconds of work between two such pauses, so that many readers only slow it down."""
IDLE = 10.0
"""Seconds without work after which the thread ends."""


class _Worker:
    """The thread, and what waits for it. Tasks take turns, but one that somebody looks at comes first."""

    def __init__(self) -> None:
        self.drawn_until = 0.0
        self._tasks: deque[Background] = deque()
        self._first: Background | None = None
        self._thread: threading.Thread | None = None
        self._news = threading.Condition()
        """Over everything here but `drawn_until`, which one thread writes and a stale value of does no harm."""

    def add(self, task: Background) -> None:
        with self._news:
            if task.done.is_set():
                task.done.clear()
                self._tasks.append(task)
                self._news.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="kace-view-reading", daemon=True)
                self._thread.start()

    def put_first(self, task: Background) -> None:
        with self._news:
            self._first = task

    def _next(self) -> Background | None:
        """The task whose turn it is; `None` after a while without any."""
        with self._news:
            if not self._tasks and not self._news.wait(IDLE) and not self._tasks:
                self._thread = None
                return None
            if self._first in self._tasks:
                return self._first
            self._tasks.rotate(-1)
            return self._tasks[-1]

    def _work(self) -> None:
        while task := self._next():
            time.sleep(max(0.0, self.drawn_until - time.monotonic()))
            if task.stopped or not _stepped(task):
                with self._news:
                    self._tasks.remove(task)
                    task.done.set()


class Background:
    """A task: `step` is called again and again until it returns `False`. It may be started again."""

    def __init__(self, step: Callable[[], bool]) -> None:
        self.step = step
        self.done = threading.Event()
        self.done.set()
        self.stopped = False

    @property
    def busy(self) -> bool:
        """Whether there is more to do."""
        return not self.done.is_set()

    def start(self) -> None:
        """Begin, unless it is under way."""
        if not self.stopped:
            _worker.add(self)

    def go_first(self) -> None:
        """Somebody looks at this: other tasks wait until it is done."""
        _worker.put_first(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done, for so long at most; whether it is."""
        return self.done.wait(seconds)

    def stop(self) -> None:
        """End soon, for good."""
        self.stopped = True


def page_asked() -> None:
    """A page is about to be drawn: work under way stands aside for a moment."""
    now = time.monotonic()
    if now >= _worker.drawn_until + LEAST:
        _worker.drawn_until = now + PAUSE


def _stepped(task: Background) -> bool:
    try:
        return task.step()
    except Exception:  # one task must not end the others
        log.exception("reading failed")
        return False


_worker = _Worker()
