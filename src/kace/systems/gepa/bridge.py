"""From the thread that gepa works in to the event loop that everything of ours works in, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from kace.errors import KaceError

T = TypeVar("T")


class Halted(Exception):
    """The training was stopped; nothing more is done for it."""


class Bridge:
    """Runs coroutines for a thread, until the first thing that the operator must mend.

    gepa carries on after most errors of a proposal. What ends a run (a cap, a missing reply, a refused key) is kept
    here, refuses all further work, and is raised when the thread has ended.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.error: KaceError | None = None
        self._stopped = False
        self._under_way: Future[object] | None = None

    @property
    def halted(self) -> bool:
        """Whether the work should end."""
        return self._stopped or self.error is not None

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, for a thread that waits for it."""
        if self.halted:
            work.close()
            raise Halted
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._under_way = future  # type: ignore[assignment]
        try:
            return future.result()
        except KaceError as error:
            self.error = error
            raise

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread to its end; a cancelled caller waits until the thread has let go."""
        worker = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            result = await asyncio.shield(worker)
        except asyncio.CancelledError:
            self._stopped = True
            if self._under_way:
                self._under_way.cancel()
            await asyncio.wait([worker])
            worker.exception()
            raise
        except Exception:
            if self.error:
                raise self.error from None
            raise
        if self.error:
            raise self.error
        return result
