"""A guarded application on a real socket, and raw bytes sent to it: what no well-behaved client would send."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kace.report.server import Guard, listening, serve

TOKEN = "token-0123456789"


def sample_app() -> Starlette:
    async def page(request: Request) -> Response:
        return PlainTextResponse(f"page {request.url.path}", headers={"content-security-policy": "default-src *"})

    async def act(request: Request) -> Response:
        return PlainTextResponse(f"{len(await request.body())} bytes")

    async def break_(request: Request) -> Response:
        raise ValueError("a bug, with sk-canary-0123456789abcdef in it")

    async def slow(request: Request) -> Response:
        await asyncio.sleep(float(request.query_params["seconds"]))
        return PlainTextResponse("slept")

    routes = [
        Route("/", page),
        Route("/page/{rest:path}", page),
        Route("/act", act, methods=["POST"]),
        Route("/break", break_),
        Route("/slow", slow),
        Route("/open", page),
    ]
    return Starlette(routes=routes)


def asked(app: ASGIApp, scope: dict[str, object], *heard: dict[str, object]) -> list[dict[str, Any]]:
    """What is sent to a client that says just this."""
    said: list[dict[str, Any]] = []
    waiting = list(heard)

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    return said


class Site:
    """Serves in a thread of its own, so that plain tests can talk to it."""

    def __init__(self, *, token: str | None = None, grace: float = 1.0, **rules: Any) -> None:
        self.guard = Guard(sample_app(), token, **rules)
        self._key = token
        self._grace = grace
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.port = 0

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(600)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url: str) -> None:
            self.port = int(url.rpartition(":")[2])
            self._ready.set()

        with listening(key=self._key) as port:
            await serve(self.guard, port, ready=ready, stop=self._stop, grace=self._grace)

    def raw(self, *pieces: bytes, seconds: float = 600) -> bytes:
        """Everything the server says until it hangs up; pieces are sent with a pause between them."""
        said = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with contextlib.suppress(ConnectionError):  # it may hang up before it has read everything
                for number, piece in enumerate(pieces):
                    time.sleep(0.2 if number else 0)
                    connection.sendall(piece)
                while piece := connection.recv(65536):
                    said += piece
        return said

    def ask(self, target: str = "/", *, method: str = "GET", body: bytes = b"", **headers: str) -> Answered:
        """One request, headers by name (`_` is `-`); a Host is added unless given."""
        given = {"host": f"127.0.0.1:{self.port}", **{name.replace("_", "-"): v for name, v in headers.items()}}
        if body or method == "POST":
            given.setdefault("content-length", str(len(body)))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        request = "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")
        return Answered(self.raw(request + body))


class Answered:
    """A response, read."""

    def __init__(self, said: bytes) -> None:
        head, _, self.body = said.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1]) if first else 0
        pairs = [line.partition(": ")[::2] for line in lines]
        self.headers = {name.lower(): value for name, value in pairs}
        self.names = [name.lower() for name, _ in pairs]
