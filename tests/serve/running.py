"""The endpoint on a real socket, before a model that the test holds in its hands."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.models.base import ChatModel, Reply, Request
from kace.models.scripted import Script, Scripted, steady
from kace.report.server import listening
from kace.serve.app import ServerOptions, run


class Watched(Scripted):
    """A scripted model that knows how many calls are under way, and how many were called off."""

    def __init__(self, script: Script = steady, *, latency: float = 0.0) -> None:
        super().__init__(script, name="watched", latency=latency)
        self.begun = self.under_way = self.cancelled = self.most = 0
        self.held = False  # no call ends before this is over
        self.error: Exception | None = None  # what calls end with

    async def complete(self, request: Request) -> Reply:
        self.begun += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            while self.held:
                await asyncio.sleep(0.01)
            reply = await super().complete(request)
            if self.error:
                raise self.error
            return reply
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
        self._thread.join(30)
        assert not self._thread.is_alive(), "the server did not end"

    def stop(self) -> None:
        """Ask it to end, as a signal would."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def post(self, path: str, body: Mapping[str, object], key: str = "") -> tuple[int, Any]:
        """The status, and the bytes of a reply or the error object."""
        return post(f"{self.base_url}/{path}", body, key)

    def ask(self, text: str, **more: object) -> dict[str, Any]:
        """The reply to a problem."""
        return ask(self.base_url, text, **more)

    def tasks(self) -> int:
        """Tasks on the server's loop, the server itself included."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1  # this one

        return asyncio.run_coroutine_threadsafe(count(), self._loop).result(20)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url: str) -> None:
            self.url = url
            self._ready.set()

        options = self._options
        with listening(key=options.key) as port:
            await run(options, port, ready=ready, model=self._model, stop=self._stop)


def post(url: str, body: Mapping[str, object], key: str = "") -> tuple[int, Any]:
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


def ask(base_url: str, text: str, **more: object) -> dict[str, Any]:
    """The reply of a server to a problem."""
    body = {"model": "kace", "messages": [{"role": "user", "content": text}], **more}
    status, reply = post(f"{base_url}/chat/completions", body)
    assert status == 200, reply
    found: dict[str, Any] = json.loads(reply)
    return found


def until(holds: Callable[[], bool], seconds: float = 600) -> bool:
    """Wait for something to become so."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
