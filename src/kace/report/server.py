"""A port, opened for an application and closed again. Nobody is let in from outside without a key; nothing leaks."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib.util
import ipaddress
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kace.errors import KaceError, UsageError, keep_secret

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LAST = (
    2.0  # seconds from the end of the grace until what still runs is cancelled by force
)
KEEP_ALIVE = 75  # longer than clients keep idle connections: it is they who close them
HEAD_SECONDS = 10.0  # within which a request's head has to arrive; uvicorn's own clock starts after a first response
UVICORN: dict[str, Any] = {
    **{
        "log_config": None,
        "log_level": "critical",
        "access_log": False,
    },  # the guard logs, without secrets
    **{
        "proxy_headers": False,
        "server_header": False,
    },  # nobody is believed about where they come from
    **{
        "ws": "none",
        "loop": "asyncio",
        "timeout_keep_alive": KEEP_ALIVE,
        "h11_max_incomplete_event_size": 65_536,
    },
}
Ready = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a server listens, and the key it asks for."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 is any free one
    token: str | None = None
    option: str = "--token"  # how the verb calls the key

    def __post_init__(self) -> None:
        keep_secret(self.token)
        if self.token is not None and not re.fullmatch("[!-~]+", self.token):
            raise UsageError(
                f"{self.option} is empty or has characters that no key has",
                fix="use letters and digits",
            )
        if not 0 <= self.port <= 65_535:
            raise UsageError(
                f"--port {self.port} is no port",
                fix="give a number up to 65535, or 0 for any free one",
            )


@dataclass(frozen=True, slots=True)
class Closing:
    """How a server ends."""

    grace: float = 10.0  # seconds until requests under way are given up
    expire: Callable[[], None] = lambda: (
        None
    )  # the grace is over: the application ends what it still does
    stop: asyncio.Event | None = None  # set, it ends the server, as a signal does


class Port(NamedTuple):
    """An open port."""

    socket: socket.socket
    url: str
    bind: Bind


@contextlib.contextmanager
def listening(bind: Bind) -> Iterator[Port]:
    """Open the port, or say in one line why not. A door to other machines needs a key before it opens at all."""
    if (
        importlib.util.find_spec("uvicorn") is None
        or importlib.util.find_spec("starlette") is None
    ):
        raise UsageError(
            "serving needs an extra that is not installed",
            fix="pip install 'kace[web]'",
        )
    try:
        found = socket.getaddrinfo(
            bind.host or "0.0.0.0",
            bind.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
    except (OSError, UnicodeError):
        unknown = f"--host {bind.host} is no address of this machine"
        raise UsageError(
            unknown, fix="give 127.0.0.1, or an address of this machine"
        ) from None
    family, _, _, _, address = found[0]
    if (
        bind.token is None
        and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    ):
        exposed = f"--host {bind.host} lets other machines in, and there is no key"
        raise UsageError(exposed, fix=f"give {bind.option}, or stay on 127.0.0.1")
    # The protocol is named, or asyncio would leave Nagle's algorithm on: an answer in two pieces then takes 40 ms more.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address[:2])  # listens only once somebody is there to answer
        except OSError as error:
            raise _closed_port(bind, error) from None
        listener.setblocking(False)
        shown = f"[{bind.host}]" if ":" in bind.host else bind.host
        yield Port(listener, f"http://{shown}:{listener.getsockname()[1]}", bind)


async def serve(
    app: ASGIApp, port: Port, *, ready: Ready, closing: Closing | None = None
) -> None:
    """Serve on an open port until a signal or `closing.stop`. Every request has ended when this returns."""
    from uvicorn import Config, Server

    closing = closing or Closing()
    patience = int(closing.grace + LAST)
    server = Server(
        Config(
            app, http=_patient_protocol(), timeout_graceful_shutdown=patience, **UVICORN
        )
    )

    async def watch() -> None:
        """Say when connections are taken, wait for the end, and tell the application when its grace is over."""
        try:
            while not server.started:
                await asyncio.sleep(0.01)
            ready(port.url)
            while not server.should_exit and not (
                closing.stop and closing.stop.is_set()
            ):
                await asyncio.sleep(0.05)
        finally:
            server.should_exit = True
        await asyncio.sleep(closing.grace)
        closing.expire()

    watching = asyncio.create_task(watch())
    try:
        with contextlib.ExitStack() as before:
            # Signals end the server and nothing else: uvicorn raises them again when it has ended, for these handlers.
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    handler = signal.signal(
                        number,
                        lambda number, frame: setattr(server, "should_exit", True),
                    )
                    before.callback(signal.signal, number, handler)
            await server.serve(sockets=[port.socket])
    except OSError as error:  # somebody else began to listen in the meantime
        raise _closed_port(port.bind, error) from None
    finally:
        watching.cancel()
        # What a second signal, or the end of the grace, has left ends by itself, or by force.
        if running := set(server.server_state.tasks):
            closing.expire()
            _, running = await asyncio.wait(running, timeout=LAST)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=LAST)
    with contextlib.suppress(asyncio.CancelledError):
        await watching


def _patient_protocol() -> type[asyncio.Protocol]:
    """HTTP/1.1 with what no ASGI application can add: a slow head ends it, and what is no HTTP gets our headers."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from kace.report.guard import SECURITY_HEADERS

    class PatientProtocol(H11Protocol):
        clock: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.time_head(waiting=True)  # a connection that says nothing is slow, too

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.time_head(waiting=False)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            answering = self.cycle is not None and not self.cycle.response_complete
            self.time_head(waiting=not answering and not self.transport.is_closing())

        def send_400_response(self, msg: str) -> None:
            headers = [
                ("content-type", "text/plain; charset=utf-8"),
                ("connection", "close"),
                *SECURITY_HEADERS,
            ]
            response = h11.Response(
                status_code=400, headers=headers, reason=b"Bad Request"
            )
            with contextlib.suppress(
                h11.LocalProtocolError
            ):  # an answer is under way already: just hang up
                for event in (
                    response,
                    h11.Data(data=msg.encode("ascii")),
                    h11.EndOfMessage(),
                ):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def time_head(self, *, waiting: bool) -> None:
            """The clock runs while a head is incomplete, and only then."""
            if waiting and self.clock is None:
                self.clock = self.loop.call_later(HEAD_SECONDS, self.transport.close)
            elif not waiting and self.clock is not None:
                self.clock.cancel()
                self.clock = None

    return PatientProtocol


def _closed_port(bind: Bind, error: OSError) -> KaceError:
    closed = f"cannot listen on {bind.host}:{bind.port} ({(error.strerror or str(error)).lower()})"
    free = "give another --port, or --port 0 for any free one"
    known = {
        errno.EADDRINUSE: (f"port {bind.port} on {bind.host} is in use", free),
        errno.EACCES: (
            f"port {bind.port} is not open to this user",
            "give a --port of 1024 or above",
        ),
    }
    what, fix = known.get(
        error.errno or 0,
        (closed, "give --host 127.0.0.1, or an address of this machine"),
    )
    return UsageError(what, fix=fix)
