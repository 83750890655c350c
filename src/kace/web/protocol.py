"""uvicorn, with what a server on a person's machine needs besides: slow clients are let go, every answer is secured.

Loads uvicorn: import it only where a server is really started.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from kace.web.guard import SECURITY_HEADERS

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from kace.web.server import Closing, Port, Ready

HEAD_SECONDS = 10.0
"""Within which the head of a request has to arrive."""
KEEP_ALIVE = 75
"""Longer than clients keep idle connections, so that it is they who close them, and no request meets a closed one."""
MAX_HEAD = 65_536
LAST = 2.0
"""Seconds from the end of the grace until what still runs is cancelled by force."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 on one connection. A head that does not arrive in time ends it."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock with the connection: one that says nothing is slow, too."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        """Read on; the clock runs while a head is incomplete, and only then."""
        super().data_received(data)
        if self.transport.is_closing() or (self.cycle is not None and not self.cycle.response_complete):
            self._forget()
        elif self._head is None:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, with the headers that every answer has."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS]
        with contextlib.suppress(h11.LocalProtocolError):  # an answer is under way already: just hang up
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=msg.encode("ascii")),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class GracefulServer(Server):
    """Ends on a signal without raising it again, once every request has ended by itself or was ended."""

    def __init__(self, config: Config, port: Port, ready: Ready, closing: Closing) -> None:
        super().__init__(config)
        self._port = port
        self._ready = ready
        self._closing = closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, then say so."""
        await super().startup(sockets)
        self._ready(self._port.url)

    async def on_tick(self, counter: int) -> bool:
        """Whether it is time to end."""
        stop = self._closing.stop
        return await super().on_tick(counter) or (stop is not None and stop.is_set())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, give requests their grace, then have the application end them."""
        timer = asyncio.get_running_loop().call_later(self._closing.grace, self._closing.expire)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()
        if self.server_state.tasks:
            self._closing.expire()
            await self._end(set(self.server_state.tasks))

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        """What neither its client nor its application ends, ends here."""
        _, running = await asyncio.wait(tasks, timeout=LAST)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=LAST)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals while serving; they have had their effect when it ends."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()


def server_of(app: ASGIApp, port: Port, ready: Ready, closing: Closing) -> GracefulServer:
    """A server for an application on an open port."""
    config = Config(
        app,
        http=PatientProtocol,
        ws="none",
        loop="asyncio",
        log_config=None,
        log_level="critical",  # the guard logs what goes wrong, without secrets
        access_log=False,
        proxy_headers=False,  # nobody is believed about where they come from
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(closing.grace + LAST),
        h11_max_incomplete_event_size=MAX_HEAD,
    )
    return GracefulServer(config, port, ready, closing)
