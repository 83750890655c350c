"""The endpoint on a real socket, before a model that the test holds in its hands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.models.base import ChatModel, Reply, Request
from kace.models.scripted import Script, Scripted, steady
from kace.report.server import listening
from kace.serve.app import ServerOptions, run

T = TypeVar("T")


class Watched(Scripted):
    """A scripted model that knows how many calls are under way, and how many were called off."""

    def __init__(self, script: Script = steady, *, latency: float = 0.0) -> None:
        super().__init__(script, name="watched", latency=latency)
        self.under_way = self.cancelled = self.most = 0

    async def complete(self, request: Request) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super().complete(request)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1


class Running:
    """`kace serve` in a thread, so that plain tests and real clients can talk to it."""

    def __init__(
        self,
        model: ChatModel | str = "scripted/steady",
        *,
        tree: EpistemicTree | None = None,
        key: str | None = None,
        record: Path | None = None,
        grace: float = 1.0,
        **settings: object,
    ) -> None:
        named = model if isinstance(model, str) else "scripted/watched"
        config = load_config({"model": named, "max_connections": 500, **settings}, env={"HOME": "/nonexistent"})
        doors = {"key": key, "record": record}
        self.log: list[str] = []
        self._options = ServerOptions(config, tree, grace=grace, on_answer=self.log.append, **doors)
        self._model = None if isinstance(model, str) else model
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.url = ""

    def __enter__(self) -> Running:
        self._thread.start()
        while not self._ready.wait(0.2):
            assert self._thread.is_alive(), "the server did not start"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.stop()
        self.join()

    def stop(self) -> None:
        """Ask it to end, as a signal would."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)

    def join(self, seconds: float = 30) -> None:
        """Wait until it has ended."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the server did not end"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def tasks(self) -> int:
        """Tasks on the server's loop, the server itself included."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1  # this one

        return self.inside(count())

    def inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url: str) -> None:
            self.url = url
            self._ready.set()

        options = self._options
        with listening(key=options.key) as port:
            await run(options, port, ready=ready, model=self._model, stop=self._stop)


def until(holds: Callable[[], bool], seconds: float = 600) -> bool:
    """Wait for something to become so."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
