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
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route
from uvicorn import Config, Server

from kace.errors import KaceError, UsageError, keep_secret, redact
from kace.report import inbox, pages
from kace.report.render import (
    Links,
    NotHere,
    Page,
    PageRequest,
    assets,
    assets_mark,
    document,
    error_page,
)

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
THIS_MACHINE = re.compile(r"localhost|127(\.\d{1,3}){3}|\[?::1\]?")
PORT = re.compile(r":\d{1,5}$")
SAFE = ("GET", "HEAD")
METHODS = ("GET", "HEAD", "POST")
BODY_SECONDS = 30.0  # within which a whole body has to arrive
MAX_FORM = 12_000_000  # bytes of a form, where a letter beyond ASCII takes up to twelve
LAST = 2.0  # seconds from the end of the grace until requests are cancelled
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
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


class Denial(NamedTuple):
    """Why a request goes no further."""

    status: int
    message: str
    headers: Mapping[str, str] = {}


@dataclass
class Guard:
    """Passes on what its rules allow. Pure ASGI."""

    app: ASGIApp
    token: str | None = None
    """The key that a request has to bring as a bearer token; `None` needs none."""
    max_body: int = 1_000_000
    open_paths: Collection[str] = ()
    """Paths that are answered without the key."""
    render: Callable[[Denial], Response] = lambda denial: PlainTextResponse(
        f"{denial.message}\n"
    )
    """Make the response of a denial."""
    on_answer: Callable[[str], None] | None = None
    """Called with a line on each request: what it was, its status and seconds."""

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope)
        began = time.monotonic()
        started = False
        body: list[Message] = []

        async def send_secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _secured(message.get("headers", ()))
                if self.on_answer:
                    path = scope.get("raw_path", b"")[:80].decode("latin-1")
                    took = time.monotonic() - began
                    status = message["status"]
                    self.on_answer(
                        f"{request.method} {path} {status} {took:.1f} s"
                    )
            await send(message)

        async def receive_again() -> Message:
            return body.pop() if body else await receive()

        denial = self._denial(request)
        if denial is None and request.method not in SAFE:
            content = await self._read(receive)
            if content is None:
                return  # the client has gone
            if isinstance(content, Denial):
                denial = content
            else:
                body.append({"type": "http.request", "body": content})
        if denial is None:
            try:
                await self.app(scope, receive_again, send_secured)
            except Exception:
                log.error("%s", redact(traceback.format_exc()))
                denial = Denial(
                    500, "something went wrong here; see the server's log"
                )
        if denial is not None and not started:
            response = self.render(denial)
            response.status_code = denial.status
            # The rest of the request, such as a body too large, is not read.
            response.headers.update({**denial.headers, "connection": "close"})
            await response(scope, receive, send_secured)

    def _denial(self, request: Request) -> Denial | None:
        """Return why a request is denied, or nothing."""
        host = request.headers.get("host", "").lower()
        if request.method not in METHODS:
            allowed = ", ".join(METHODS)
            message = f"only {allowed} are answered here"
            return Denial(405, message, {"allow": allowed})
        if request.method not in SAFE:
            # Programs send neither header, browsers one of them or both.
            site = request.headers.get("sec-fetch-site", "none")
            origins = request.headers.getlist("origin")
            ours = f"{request.scope.get('scheme', 'http')}://{host}"
            if site not in ("same-origin", "none") or origins not in (
                [],
                [ours],
            ):
                return Denial(403, "requests of other sites are not answered")
        if self.token is None:
            # A page of a name that was made to lead here has that name as `Host`.
            if not THIS_MACHINE.fullmatch(PORT.sub("", host)):
                return Denial(403, "the Host header names another machine")
        elif request.url.path not in self.open_paths:
            sent = request.headers.get("authorization", "")
            scheme, _, key = sent.partition(" ")
            if scheme.lower() != "bearer" or not _is_equal(key, self.token):
                wanted = {"www-authenticate": "Bearer"}
                return Denial(401, "a valid key is needed", wanted)
        return None

    async def _read(self, receive: Receive) -> bytes | Denial | None:
        """Read the whole body; `None` if the client has gone."""
        body = bytearray()
        more = True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self.max_body:
                        most = f"{self.max_body:,} bytes"
                        return Denial(413, f"the body is larger than {most}")
        except TimeoutError:
            return Denial(408, "the body did not arrive in time")
        return bytes(body)


def _secured(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with the security headers."""
    found = {b"cache-control": b"no-store"}
    for name, value in headers:
        found[name.lower()] = value
    for name, value in SECURITY_HEADERS.items():
        found[name.encode()] = value.encode()
    return list(found.items())


def _is_equal(sent: str, key: str) -> bool:
    """Whether two keys are equal, in a time that depends on neither."""
    digests = []
    for text in (sent.strip(), key):
        raw = text.encode("utf-8", "surrogateescape")
        digests.append(hashlib.sha256(raw).digest())
    return hmac.compare_digest(*digests)


# The port


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a server listens, and the key that it needs."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 is any free one
    token: str | None = None
    option: str = "a key"  # what sets the key, for messages


class Port(NamedTuple):
    """An open port."""

    socket: socket.socket
    url: str


@contextlib.contextmanager
def listening(bind: Bind) -> Iterator[Port]:
    """Open a port. An address that other machines reach needs a key.

    Raises `UsageError` for one that cannot be opened.
    """
    keep_secret(bind.token)
    if not bind.token and not THIS_MACHINE.fullmatch(bind.host):
        raise UsageError(
            f"--host {bind.host} lets other machines in, and there is no key",
            fix=f"give {bind.option}, or stay on 127.0.0.1",
        )
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's algorithm off: an answer in two
    # pieces would otherwise take 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((bind.host, bind.port))
        except (OSError, OverflowError) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
            raise UsageError(
                f"cannot listen on {bind.host}:{bind.port} ({reason})",
                fix="give another --host or --port; --port 0 picks a free one",
            ) from None
        listener.setblocking(False)
        shown = f"[{bind.host}]" if ":" in bind.host else bind.host
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
    expire: Callable[[], None] = lambda: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until a signal or `stop`; `expire` is called when the grace is over."""
    stop = stop or asyncio.Event()
    patience = int(grace + LAST)
    server = _Server(Config(app, timeout_graceful_shutdown=patience, **UVICORN))

    async def watch() -> None:
        """Report the address, wait for the end, and announce the end of the grace."""
        while not server.started:
            await asyncio.sleep(0.01)
        ready(port.url)
        while not server.should_exit and not stop.is_set():
            await asyncio.sleep(0.05)
        server.should_exit = True
        await asyncio.sleep(grace)
        expire()

    watching = asyncio.create_task(watch())
    await server.serve(sockets=[port.socket])
    watching.cancel()
    left = set(server.server_state.tasks)
    if left:  # after a second signal
        expire()
        await asyncio.wait(left, timeout=LAST)


# The viewer


def create_app(workspace: Workspace) -> ASGIApp:
    """Return the viewer of a workspace behind its guard."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_answer, workspace, request, body)

    routes = [Route("/{path:path}", answer, methods=["GET", "POST"])]
    return Guard(Starlette(routes=routes), max_body=MAX_FORM, render=_denied)


def _answer(workspace: Workspace, request: Request, body: bytes) -> Response:
    """Return the page of a path, or the one with the reason why there is none."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.decode("latin-1")
    folder = f"/assets/{assets_mark()}/"
    content = assets().get(path.removeprefix(folder))
    if path.startswith(folder) and content is not None:
        kind = TYPES.get(PurePosixPath(path).suffix, "text/plain")
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(content, headers=kept, media_type=kind)
    try:
        if request.method != "POST":
            page = pages.page_at(workspace, path, dict(request.query_params))
        else:
            sent = _send(workspace, path, body)
            if isinstance(sent, str):
                return RedirectResponse(sent, status_code=303)
            page = sent
    except NotHere as error:
        page = error_page(404, "Not here", error.message, error.fix)
    except KaceError as error:
        words = (redact(error.message), redact(error.fix))
        page = error_page(500, "This cannot be shown", *words)
    except Exception:
        log.error("%s", redact(traceback.format_exc()))
        what = "The page could not be made. The terminal says more."
        page = error_page(500, "Something went wrong here", what)
    nav = pages.nav(workspace, path)
    return HTMLResponse(document(page, Links(), nav), page.status)


def _send(workspace: Workspace, path: str, body: bytes) -> Page | str:
    """Read a form: only a request of the inbox has one."""
    view, named = pages.find_view(path)
    if view is not inbox.request_page:
        return error_page(405, "Nothing can be sent here")
    text = body.decode("ascii", "replace")
    fields = dict(parse_qsl(text, keep_blank_values=True))
    return inbox.send_reply(PageRequest(workspace, parts=named), fields)


def _denied(denial: Denial) -> Response:
    """Return a denial in the frame of the pages. It names nothing of what is open."""
    page = error_page(denial.status, "Not allowed", denial.message)
    return HTMLResponse(document(page, Links()))
