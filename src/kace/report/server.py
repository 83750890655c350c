"""The guard and the port of every server here, and the viewer as an application.

A browser can be made to send requests to this machine by any page it has open. The
guard lets through only what names this server (`Host`), comes from its own pages
(`Origin`, `Sec-Fetch-Site`) and, where a key is set, has the key; it puts the security
headers on every response.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import hmac
import ipaddress
import logging
import re
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from kace.errors import KaceError, UsageError, keep_secret, redact

try:
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
except ImportError:
    raise UsageError(
        "serving needs an extra that is not installed",
        fix="pip install 'kace[web]'",
    ) from None

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
SECURITY_HEADERS = (
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    # Not `no-referrer`: a browser would call the origin of our own forms `null`.
    ("referrer-policy", "same-origin"),
)
"""On every response, whatever the application sets."""
Ready = Callable[[str], None]
FORCED = {name.encode(): value.encode() for name, value in SECURITY_HEADERS}
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE = ("GET", "HEAD")
METHODS = ("GET", "HEAD", "POST")
MAX_URL = 8_192
BODY_SECONDS = 30.0  # within which a whole body has to arrive
MAX_FORM = 12_000_000  # bytes of a form, where a letter beyond ASCII takes up to twelve
MAX_FIELDS = 20
MAX_PART = 400  # characters of one part of a path
LAST = 2.0  # seconds from the end of the grace until requests are cancelled
HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?")
CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
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
    "h11_max_incomplete_event_size": 65_536,
}


# The guard


class Denial(NamedTuple):
    """Why a request goes no further."""

    status: int
    message: str
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names that a server answers to, on any port."""

    names: frozenset[str] = LOOPBACK
    addresses: bool = False  # any IP address too: no rebound name is one

    @classmethod
    def of(cls, host: str, also: Iterable[str] = ()) -> Hosts:
        """Return the names of a server bound to `host`, also known by other names."""
        names = set(LOOPBACK)
        for name in (f"[{host}]" if ":" in host else host, *also):
            match = HOST.fullmatch(name.lower())
            if match:
                names.add(match[1])
        return cls(frozenset(names), addresses=host in ("", "0.0.0.0", "::"))

    def allow(self, header: str) -> bool:
        """Whether a `Host` header names the server."""
        match = HOST.fullmatch(header.lower())
        if match is None:
            return False
        if self.addresses:
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(match[1].strip("[]"))
                return True
        return match[1] in self.names


@dataclass
class Guard:
    """Passes on what its rules allow. Pure ASGI."""

    app: ASGIApp
    hosts: Hosts = field(default_factory=Hosts)
    token: str | None = None
    """The key that a request has to bring as a bearer token; `None` asks for none."""
    max_body: int = 1_000_000
    open_paths: Collection[str] = ()
    """Paths that are answered without the key."""
    render: Callable[[Denial], Response] = lambda denial: PlainTextResponse(
        f"{denial.message}\n"
    )
    """Make the response of a denial."""

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
        started = False
        body: list[Message] = []

        async def send_secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {
                    **message,
                    "headers": _secured(message.get("headers", ())),
                }
            await send(message)

        async def receive_again() -> Message:
            return body.pop() if body else await receive()

        denial = self._denial(Request(scope))
        if denial is None and scope["method"] not in SAFE:
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
        path = request.scope["path"]
        get = request.headers.getlist
        lengths = get("content-length")
        hosts = get("host")
        if request.method not in METHODS:
            allowed = ", ".join(METHODS)
            message = f"only {allowed} are answered here"
            return Denial(405, message, {"allow": allowed})
        if (
            len(raw_path(request.scope))
            + len(request.scope.get("query_string", b""))
            > MAX_URL
        ):
            return Denial(
                414, f"the address is longer than {MAX_URL:,} characters"
            )
        if (
            not re.match("/(?!/)", path)
            or CONTROL.search(path)
            or ".." in path.split("/")
        ):
            return Denial(400, "the path is not one of ours")
        if len(lengths) > 1 or any(
            not length.isdecimal() for length in lengths
        ):
            return Denial(400, "Content-Length is not a number")
        if lengths and get("transfer-encoding"):
            both = "a Content-Length or a Transfer-Encoding, not both"
            return Denial(400, f"a body has {both}")
        if any(len(each) > 15 or int(each) > self.max_body for each in lengths):
            return self._too_large()
        if len(hosts) != 1:
            return Denial(400, "one Host header is needed")
        if not self.hosts.allow(hosts[0]):
            return Denial(
                403, "this server has not the name in the Host header"
            )
        if request.method not in SAFE:
            sites = get("sec-fetch-site")
            if any(site not in ("same-origin", "none") for site in sites):
                return Denial(403, "requests from other sites are not answered")
            ours = f"{request.scope.get('scheme', 'http')}://{hosts[0]}".lower()
            if any(origin.lower() != ours for origin in get("origin")):
                return Denial(
                    403, "requests from other origins are not answered"
                )
        if self.token and path not in self.open_paths:
            given = get("authorization")
            scheme, _, key = (given[0] if len(given) == 1 else "").partition(
                " "
            )
            sent = key.strip() if scheme.lower() == "bearer" else ""
            if not hmac.compare_digest(_digest(sent), _digest(self.token)):
                wanted = {"www-authenticate": "Bearer"}
                return Denial(401, "a valid key is needed", wanted)
        return None

    def _too_large(self) -> Denial:
        return Denial(413, f"the body is larger than {self.max_body:,} bytes")

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
                        return self._too_large()
        except TimeoutError:
            return Denial(
                408, f"the body did not arrive within {BODY_SECONDS:g} s"
            )
        return bytes(body)


def raw_path(scope: Scope) -> str:
    """Return the path of a request as it was sent, not decoded."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1")


def _secured(
    headers: Iterable[tuple[bytes, bytes]],
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with the security headers."""
    kept = [pair for pair in headers if pair[0].lower() not in FORCED]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append((b"cache-control", b"no-store"))
    return [*kept, *FORCED.items()]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


# The port


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a server listens, and the key that it asks for."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 is any free one
    token: str | None = None
    option: str = "a key"  # what sets the key, for messages

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
    expire: Callable[[], None] = lambda: None  # called when the grace is over
    stop: asyncio.Event | None = (
        None  # set, it ends the server, as a signal does
    )


class Port(NamedTuple):
    """An open port."""

    socket: socket.socket
    url: str
    bind: Bind


@contextlib.contextmanager
def listening(bind: Bind) -> Iterator[Port]:
    """Open a port, or say in one line why not.

    An address that other machines reach needs a key.
    """
    host = bind.host or "0.0.0.0"
    try:
        found = socket.getaddrinfo(host, bind.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UsageError(
            f"--host {bind.host} is no address of this machine",
            fix="give 127.0.0.1, or an address of this machine",
        ) from None
    family, _, _, _, address = found[0]
    number = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if bind.token is None and not number.is_loopback:
        raise UsageError(
            f"--host {bind.host} lets other machines in, and there is no key",
            fix=f"give {bind.option}, or stay on 127.0.0.1",
        )
    # With the protocol named, asyncio switches Nagle's algorithm off: an answer in two
    # pieces would otherwise take 40 ms more.
    with socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    ) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address[:2])
        except OSError as error:
            raise _port_error(bind, error) from None
        listener.setblocking(False)
        shown = f"[{bind.host}]" if ":" in bind.host else bind.host
        yield Port(
            listener, f"http://{shown}:{listener.getsockname()[1]}", bind
        )


async def serve(
    app: ASGIApp,
    port: Port,
    *,
    ready: Ready,
    closing: Closing | None = None,
) -> None:
    """Serve until a signal or `closing.stop`; every request has ended on return."""
    closing = closing or Closing()
    patience = int(closing.grace + LAST)
    server = Server(Config(app, timeout_graceful_shutdown=patience, **UVICORN))

    async def watch() -> None:
        """Report the address, wait for the end, and announce the end of the grace."""
        while not server.started:
            await asyncio.sleep(0.01)
        ready(port.url)
        stop = closing.stop or asyncio.Event()
        while not server.should_exit and not stop.is_set():
            await asyncio.sleep(0.05)
        server.should_exit = True
        await asyncio.sleep(closing.grace)
        closing.expire()

    watching = asyncio.create_task(watch())
    try:
        with _quiet_signals(server):
            await server.serve(sockets=[port.socket])
    except OSError as error:
        raise _port_error(port.bind, error) from None
    finally:
        watching.cancel()
        # A second signal, or the end of the grace, may leave requests.
        left = set(server.server_state.tasks)
        if left:
            closing.expire()
            _, left = await asyncio.wait(left, timeout=LAST)
        for task in left:
            task.cancel()
        await asyncio.wait([watching, *left], timeout=LAST)


@contextlib.contextmanager
def _quiet_signals(server: Any) -> Iterator[None]:
    """Let signals end the server and nothing else: uvicorn raises them again."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _port_error(bind: Bind, error: OSError) -> KaceError:
    if error.errno == errno.EADDRINUSE:
        what = f"port {bind.port} on {bind.host} is in use"
        return UsageError(
            what, fix="give another --port, or --port 0 for any free one"
        )
    if error.errno == errno.EACCES:
        what = f"port {bind.port} is not open to this user"
        return UsageError(what, fix="give a --port of 1024 or above")
    reason = (error.strerror or str(error)).lower()
    return UsageError(
        f"cannot listen on {bind.host}:{bind.port} ({reason})",
        fix="give --host 127.0.0.1, or an address of this machine",
    )


# The viewer


class FormError(KaceError):
    """A form that no browser sends from our page. The server answers 400."""


def create_app(workspace: Workspace) -> ASGIApp:
    """Return the viewer of a workspace behind its guard."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_answer, workspace, request, body)

    app = Starlette(
        routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]
    )
    return Guard(app, max_body=MAX_FORM, render=_denied)


def _answer(workspace: Workspace, request: Request, body: bytes) -> Response:
    """Make the page that was asked for, or the one that says why there is none."""
    path = raw_path(request.scope).strip("/")
    if path.startswith("assets/"):
        name = path.removeprefix("assets/")
        lasting = name.startswith(f"{assets_mark()}/")
        content = assets().get(name.partition("/")[2] if lasting else name)
        if content is not None:
            return _asset(name, content, lasting)
    try:
        parts = [_decoded(part) for part in path.split("/")] if path else []
        if request.method != "POST":
            page = pages.page_at(workspace, parts, dict(request.query_params))
        else:
            sent = _send(workspace, parts, body)
            if isinstance(sent, str):
                return RedirectResponse(sent, status_code=303)
            page = sent
    except NotHere as error:
        page = error_page(404, "Not here", error.message, error.fix)
    except FormError as error:
        page = error_page(400, "That cannot be read", error.message, error.fix)
    except KaceError as error:
        words = (redact(error.message), redact(error.fix))
        page = error_page(500, "This cannot be shown", *words)
    except Exception:
        log.error("%s", redact(traceback.format_exc()))
        what = "The page could not be made. The terminal says more."
        page = error_page(500, "Something went wrong here", what)
    nav = pages.nav(workspace, f"/{path}")
    return HTMLResponse(document(page, Links(), nav), page.status)


def _send(workspace: Workspace, parts: list[str], body: bytes) -> Page | str:
    """Take a form: only a request of the inbox has one."""
    view, named = pages.find_view(parts)
    if view is not inbox.request_page:
        return error_page(405, "Nothing can be sent here")
    return inbox.send_reply(PageRequest(workspace, parts=named), _fields(body))


def _asset(name: str, content: bytes, lasting: bool) -> Response:
    """Return a shared file. With the mark of its content in its name it never changes."""
    kind = TYPES.get(PurePosixPath(name).suffix, "text/plain; charset=utf-8")
    kept = "public, max-age=31536000, immutable" if lasting else "no-cache"
    return Response(
        content, headers={"cache-control": kept, "content-type": kind}
    )


def _denied(denial: Denial) -> Response:
    """Return a denial in the frame of the pages. It says nothing of what is open."""
    title = "Not allowed" if denial.status < 500 else "Not now"
    page: Page = error_page(denial.status, title, denial.message)
    return HTMLResponse(document(page, Links()))


def _decoded(part: str) -> str:
    """Return a part of a path, decoded once: an encoded slash stays inside it."""
    name = unquote_to_bytes(part).decode("utf-8", "replace")
    if not name.isprintable() or "\ufffd" in name or len(name) > MAX_PART:
        raise NotHere("there is no such page")
    return name


def _fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form; `FormError` for what no browser sends."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        pairs = []
    fields = dict(pairs)
    if not pairs or len(fields) != len(pairs):
        raise FormError(
            "the form cannot be read", fix="send it from its own page"
        )
    return fields
