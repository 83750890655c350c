"""The guard and the port of every server here, and the viewer as an application.

A browser can be made to send requests to this machine by any page it has open. The
guard lets through only what names this machine (`Host`), or brings the key where one
is set, and what comes from its own pages (`Origin`, `Sec-Fetch-Site`); it puts the
security headers on every response.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
import signal
import socket
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import Route
from uvicorn import Config, Server

from kace.errors import UsageError, keep_secret, redact
from kace.report import pages
from kace.report.render import assets, assets_mark

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from kace.report.workspace import Workspace

log = logging.getLogger(__name__)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Not `no-referrer`: a browser would call the origin of our own forms `null`.
    "referrer-policy": "same-origin",
}
"""On every response, whatever the application sets."""
Ready = Callable[[str], None]
THIS_MACHINE = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[?::1\]?)(:\d{1,5})?")
BODY_SECONDS = 30.0  # within which a whole body has to arrive
MAX_FORM = 12_000_000  # bytes of a form, where a letter beyond ASCII takes up to twelve
LAST = 2.0  # seconds from the end of the grace until requests are cancelled
TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
UVICORN: dict[str, Any] = {
    "log_config": None,  # the guard logs, without secrets
    "log_level": "critical",
    "access_log": False,
    "proxy_headers": False,
    "server_header": False,
    "ws": "none",
    "http": "h11",
    "loop": "asyncio",
    "timeout_keep_alive": 75,  # longer than clients keep idle connections
}


# The guard


def _denied(
    status: int, reason: str, headers: Mapping[str, str] | None = None
) -> HTTPException:
    """Return a denial; the rest of the request is not read."""
    return HTTPException(
        status, reason, {"connection": "close", **(headers or {})}
    )


def _plain(denial: HTTPException) -> Response:
    return PlainTextResponse(f"{denial.detail}\n", denial.status_code)


@dataclass
class Guard:
    """Passes on what its rules allow. Pure ASGI."""

    app: ASGIApp
    key: str | None = None
    """What a request has to bring as a bearer token; `None` needs none."""
    max_body: int = 1_000_000
    open_paths: Collection[str] = ()
    """Paths that are answered without the key."""
    render: Callable[[HTTPException], Response] = _plain
    """Make the response of a denial."""
    on_answer: Callable[[str], None] | None = None
    """Called with a line on each request: what it was, its status and seconds."""

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        began = time.monotonic()

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")
                headers.update(SECURITY_HEADERS)
                if self.on_answer:
                    path = scope["raw_path"][:80].decode("latin-1")
                    done = f"{request.method} {path} {message['status']}"
                    self.on_answer(f"{done} {time.monotonic() - began:.1f} s")
            await send(message)

        denial = self._denial(request)
        if denial is not None:
            response = self.render(denial)
            response.headers.update(denial.headers or {})
            await response(scope, receive, send_secured)
            return
        try:
            await self.app(scope, self._limited(receive), send_secured)
        except ClientDisconnect:
            pass
        except Exception:
            log.error("%s", redact(traceback.format_exc()))

    def _denial(self, request: Request) -> HTTPException | None:
        """Return why a request is denied, or nothing."""
        host = request.headers.get("host", "").lower()
        if request.method not in ("GET", "HEAD"):
            # Programs send neither header, browsers one of them or both.
            site = request.headers.get("sec-fetch-site", "none")
            origins = request.headers.getlist("origin")
            ours = [f"{request.scope.get('scheme', 'http')}://{host}"]
            if site not in ("same-origin", "none") or origins not in ([], ours):
                return _denied(403, "requests of other sites are not answered")
        if self.key is None:
            # A page of a name that was made to lead here has that name as `Host`.
            if not THIS_MACHINE.fullmatch(host):
                return _denied(403, "the Host header names another machine")
        elif request.url.path not in self.open_paths:
            sent = request.headers.get("authorization", "")
            scheme, _, key = sent.partition(" ")
            equal = hmac.compare_digest(_digest(key), _digest(self.key))
            if scheme.lower() != "bearer" or not equal:
                wanted = {"www-authenticate": "Bearer"}
                return _denied(401, "a valid key is needed", wanted)
        return None

    def _limited(self, receive: Receive) -> Receive:
        """Return `receive` with limits on the size of the body and on its time."""
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        left = self.max_body
        ended = False

        async def receive_limited() -> Message:
            nonlocal left, ended
            try:
                async with asyncio.timeout_at(None if ended else deadline):
                    message = await receive()
            except TimeoutError:
                raise _denied(408, "the body did not arrive in time") from None
            left -= len(message.get("body", b""))
            ended = not message.get("more_body")
            if left < 0:
                most = f"{self.max_body:,} bytes"
                raise _denied(413, f"the body is larger than {most}")
            return message

        return receive_limited


def _digest(key: str) -> bytes:
    """Return the digest of a key: even its length cannot be timed."""
    raw = key.strip().encode("utf-8", "surrogateescape")
    return hashlib.sha256(raw).digest()


# The port


class Port(NamedTuple):
    """An open port."""

    socket: socket.socket
    url: str


@contextlib.contextmanager
def listening(
    host: str = "127.0.0.1",
    port: int = 0,  # 0 is any free one
    *,
    key: str | None = None,
    option: str = "a key",  # what sets the key, for the message
) -> Iterator[Port]:
    """Open a port. An address that other machines reach needs a key.

    Raises `UsageError` for one that cannot be opened.
    """
    keep_secret(key)
    if not key and not THIS_MACHINE.fullmatch(host):
        raise UsageError(
            f"--host {host} lets other machines in, and there is no key",
            fix=f"give {option}, or stay on 127.0.0.1",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's algorithm off: an answer in two
    # pieces would otherwise take 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port} ({str(error.strerror).lower()})",
                fix="give another --host or --port; --port 0 picks a free one",
            ) from None
        shown = f"[{host}]" if ":" in host else host
        yield Port(listener, f"http://{shown}:{listener.getsockname()[1]}")


class _Server(Server):
    """A server that a signal ends in order; uvicorn's own raises it again."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, where this is the main thread."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(RuntimeError, ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def serve(
    app: ASGIApp,
    port: Port,
    *,
    ready: Ready,
    grace: float = 10.0,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until a signal or `stop`; requests under way have `grace` seconds more."""
    stop = stop or asyncio.Event()
    patience = int(grace + LAST)
    server = _Server(Config(app, timeout_graceful_shutdown=patience, **UVICORN))

    async def watch() -> None:
        """Report the address, and end the server when `stop` is set."""
        while not server.started:
            await asyncio.sleep(0.01)
        ready(port.url)
        await stop.wait()
        server.should_exit = True

    watching = asyncio.create_task(watch())
    await server.serve(sockets=[port.socket])
    watching.cancel()
    left = set(server.server_state.tasks)
    if left:  # after a second signal
        await asyncio.wait(left, timeout=LAST)


# The viewer


def create_app(workspace: Workspace) -> ASGIApp:
    """Return the viewer of a workspace behind its guard."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_answer, workspace, request, body)

    routes = [Route("/{path:path}", answer, methods=["GET", "POST"])]
    return Guard(Starlette(routes=routes), max_body=MAX_FORM)


def _answer(workspace: Workspace, request: Request, body: bytes) -> Response:
    """Return a shared file, or the page of a path."""
    path = request.scope["raw_path"].decode("latin-1")
    folder = f"/assets/{assets_mark()}/"
    content = assets().get(path.removeprefix(folder))
    if path.startswith(folder) and content is not None:
        kind = TYPES.get(PurePosixPath(path).suffix, "text/plain")
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(content, headers=kept, media_type=kind)
    reply = None
    if request.method == "POST":
        reply = dict(parse_qsl(body.decode("ascii", "replace"))).get("text", "")
    query = dict(request.query_params)
    text, status = pages.html_at(workspace, path, query, reply=reply)
    # After a reply was written, the same address shows it.
    headers = {"location": path} if status == 303 else None
    return HTMLResponse(text, status, headers)
