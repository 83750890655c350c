"""A port, opened for an application and closed again. Nobody is let in from outside without a key; nothing leaks."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib.util
import ipaddress
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kace.errors import KaceError, UsageError
from kace.redact import keep_secret

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE = 10.0
"""Seconds that requests have to end after the server was asked to stop."""
Ready = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a server listens, and the key it asks for."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 is any free one."""
    token: str | None = None
    option: str = "--token"
    """How the verb calls the key."""

    def __post_init__(self) -> None:
        keep_secret(self.token)
        if self.token is not None and (
            not self.token or not self.token.isascii() or not self.token.isprintable() or " " in self.token
        ):
            raise UsageError(f"{self.option} is empty or has characters that no key has", fix="use letters and digits")
        if not 0 <= self.port <= 65_535:
            raise UsageError(f"--port {self.port} is no port", fix="give a number up to 65535, or 0 for any free one")


@dataclass(frozen=True, slots=True)
class Closing:
    """How a server ends."""

    grace: float = GRACE
    """Seconds until requests under way are given up."""
    expire: Callable[[], None] = lambda: None
    """Called when the grace is over: the application then ends what it still does, and says so to who waits."""
    stop: asyncio.Event | None = None
    """Set, it ends the server, as a signal does."""


def run_server(app: ASGIApp, bind: Bind, *, ready: Ready, closing: Closing | None = None) -> None:
    """Serve until SIGINT or SIGTERM; `ready` hears the address once connections are taken."""
    with listening(bind) as port:
        asyncio.run(serve(app, port, ready=ready, closing=closing))


@dataclass(frozen=True, slots=True)
class Port:
    """An open port."""

    socket: socket.socket
    url: str
    bind: Bind


@contextlib.contextmanager
def listening(bind: Bind) -> Iterator[Port]:
    """Open the port, or say in one line why not. A door to other machines needs a key before it opens at all."""
    _require_uvicorn()
    family, address = _resolved(bind)
    if bind.token is None and not ipaddress.ip_address(address[0].partition("%")[0]).is_loopback:
        raise UsageError(
            f"--host {bind.host} lets other machines in, and there is no key",
            fix=f"give {bind.option}, or stay on 127.0.0.1",
        )
    # The protocol is named, or asyncio would leave Nagle's algorithm on: an answer in two pieces then takes 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)  # listens only once somebody is there to answer
        except OSError as error:
            raise _closed_port(bind, error) from None
        listener.setblocking(False)
        shown = f"[{bind.host}]" if ":" in bind.host else bind.host
        yield Port(listener, f"http://{shown}:{listener.getsockname()[1]}", bind)
    finally:
        listener.close()


async def serve(app: ASGIApp, port: Port, *, ready: Ready, closing: Closing | None = None) -> None:
    """Serve on an open port until a signal or `closing.stop`. Every request has ended when this returns."""
    from kace.web.protocol import server_of  # loads uvicorn

    try:
        await server_of(app, port, ready, closing or Closing()).serve(sockets=[port.socket])
    except OSError as error:  # somebody else began to listen in the meantime
        raise _closed_port(port.bind, error) from None


def _require_uvicorn() -> None:
    if importlib.util.find_spec("uvicorn") is None or importlib.util.find_spec("starlette") is None:
        raise UsageError("serving needs an extra that is not installed", fix="pip install 'kace[web]'")


def _resolved(bind: Bind) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(bind.host or "0.0.0.0", bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(
            f"--host {bind.host} is no address of this machine", fix="give 127.0.0.1, or an address of this machine"
        ) from None
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def _closed_port(bind: Bind, error: OSError) -> KaceError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"port {bind.port} on {bind.host} is in use", fix="give another --port, or --port 0 for any free one"
        )
    if error.errno == errno.EACCES:
        return UsageError(f"port {bind.port} is not open to this user", fix="give a --port of 1024 or above")
    return UsageError(
        f"cannot listen on {bind.host}:{bind.port} ({(error.strerror or str(error)).lower()})",
        fix="give --host 127.0.0.1, or an address of this machine",
    )
