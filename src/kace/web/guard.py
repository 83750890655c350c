"""The guard of every server: what it denies before any page or model is asked, and the headers on whatever leaves.

Pure ASGI. Any page that a browser has open can make it send requests to this machine; the name a request asks for
(`Host`), where it comes from (`Origin`, `Sec-Fetch-Site`) and a key tell those from ours.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kace.redact import redact

log = logging.getLogger(__name__)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    # Not `no-referrer`: a browser would then call the origin of our own forms `null`.
    ("referrer-policy", "same-origin"),
)
"""On every response, whatever the application says."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE, METHODS = ("GET", "HEAD"), ("GET", "HEAD", "POST")

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_FORCED = {name.encode(): value.encode() for name, value in SECURITY_HEADERS}


class Denial(NamedTuple):
    """Why a request goes no further."""

    status: int
    message: str
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names this server answers to, in whatever port."""

    names: frozenset[str] = LOOPBACK_NAMES
    addresses: bool = False  # any IP address too: no rebound name is one

    @classmethod
    def of(cls, host: str, also: Iterable[str] = ()) -> Hosts:
        """For a server bound to `host`; `also` are names it is known by, as behind a proxy."""
        own = f"[{host}]" if ":" in host else host
        found = (_HOST.fullmatch(name.lower()) for name in (own, *also))
        return cls(LOOPBACK_NAMES | {match[1] for match in found if match}, addresses=host in ("", "0.0.0.0", "::"))

    def allow(self, header: str) -> bool:
        """Whether a `Host` header names us."""
        match = _HOST.fullmatch(header.lower())
        if match is not None and self.addresses:
            with suppress(ValueError):
                ipaddress.ip_address(match[1].strip("[]"))
                return True
        return match is not None and match[1] in self.names


@dataclass(frozen=True, slots=True)
class Policy:
    """What one server asks of its requests."""

    max_url: int = 8_192
    max_body: int = 1_000_000
    body_seconds: float = 30.0  # within which a whole body has to arrive
    open_paths: frozenset[str] = frozenset()  # answered without a key
    cookie: bool = True  # whether `?token=` is taken once and kept in a cookie, for people with a browser
    render: Callable[[Denial], Response] = lambda denial: PlainTextResponse(f"{denial.message}\n")
    """The body of a denial; the guard sets its status."""


class Guard:
    """Lets through what the policy allows, and puts the security headers on every response, of errors too.

    The key comes in a header, or once in an address and then in a cookie. It is compared in constant time.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Hosts | None = None, token: str | None = None, policy: Policy | None = None
    ) -> None:
        self.app, self.hosts, self.policy = app, hosts or Hosts(), policy or Policy()
        self._key = _digest(token) if token else None
        self._cookie = hmac.new((token or "").encode(), b"kace cookie", "sha256").hexdigest()
        self._too_large = Denial(413, f"the body is larger than {self.policy.max_body:,} bytes")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # no WebSocket is served here
            return await send({"type": "websocket.close", "code": 1008})
        send = secured = _SecuredSend(send)
        request = Request(scope)
        denial = self._wrong_shape(request) or self._wrong_place(request) or self._wrong_key(request)
        if denial is None and scope["method"] not in SAFE:
            if (body := await self._read(receive)) is None:
                return  # nobody is there any more
            if isinstance(body, Denial):
                denial = body
            else:
                receive = _replayed(body, receive)
        try:
            if denial is None:
                await self.app(scope, receive, send)
        except Exception:  # the one place where a bug becomes an answer
            log.error("%s", redact(traceback.format_exc()))
            if not secured.started:
                denial = Denial(500, "something went wrong here; the server's log says what")
        if denial is not None:
            response = self.policy.render(denial)
            response.status_code = denial.status
            # The connection ends here: what else it brings, a body too large included, is not read.
            response.headers.update({**denial.headers, "connection": "close"})
            await response(scope, receive, send)

    def _wrong_shape(self, request: Request) -> Denial | None:
        """Methods, addresses and sizes that nothing here ever needs."""
        path, lengths = request.scope["path"], request.headers.getlist("content-length")
        if request.method not in METHODS:
            return Denial(405, f"only {', '.join(METHODS)} are answered here", {"allow": ", ".join(METHODS)})
        if len(_raw_path(request)) + len(request.scope.get("query_string", b"")) > self.policy.max_url:
            return Denial(414, f"the address is longer than {self.policy.max_url:,} characters")
        if not path.startswith("/") or path.startswith("//") or ".." in path.split("/") or _CONTROL.search(path):
            return Denial(400, "the path is not one of ours")
        if any(not length.isdecimal() for length in lengths) or len(lengths) > 1:
            return Denial(400, "Content-Length is not a number")
        if any(len(length) > 15 or int(length) > self.policy.max_body for length in lengths):
            return self._too_large
        return None

    def _wrong_place(self, request: Request) -> Denial | None:
        """A name on the web that is pointed at this machine, or a page of another site, which may only link."""
        host = _only(request, "host")
        if host is None:
            return Denial(400, "one Host header is needed")
        if not self.hosts.allow(host):
            return Denial(403, "this server does not go by the name in the Host header")
        if request.method in SAFE:
            return None
        if any(site not in ("same-origin", "none") for site in request.headers.getlist("sec-fetch-site")):
            return Denial(403, "requests from other sites are not answered")
        # Programs that are no browser say no origin.
        ours = f"{request.scope.get('scheme', 'http')}://{host}".lower()
        if any(origin.lower() != ours for origin in request.headers.getlist("origin")):
            return Denial(403, "requests from other origins are not answered")
        return None

    def _wrong_key(self, request: Request) -> Denial | None:
        """Why a request is denied for its key, or sent on with a cookie."""
        scheme, _, token = (_only(request, "authorization") or "").partition(" ")
        if self._key is None or request.scope["path"] in self.policy.open_paths:
            return None
        if hmac.compare_digest(_digest(token.strip() if scheme.lower() == "bearer" else ""), self._key):
            return None
        if self.policy.cookie:
            # A browser sends a machine's cookies to all its ports: two servers must not take each other's.
            name = f"kace-{(request.scope.get('server') or ('', 0))[1]}"
            if hmac.compare_digest(request.cookies.get(name, "").encode(), self._cookie.encode()):
                return None
            in_address = _digest(request.query_params.get("token", ""))
            if request.method in SAFE and hmac.compare_digest(in_address, self._key):
                # The same page, without the token in its address.
                rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
                location = _raw_path(request) + (f"?{rest}" if rest else "")
                kept = f"{name}={self._cookie}; Path=/; HttpOnly; SameSite=Lax"
                return Denial(303, "this way", {"location": location, "set-cookie": kept})
        return Denial(401, "a valid key is needed", {"www-authenticate": "Bearer"})

    async def _read(self, receive: Receive) -> bytes | Denial | None:
        """The whole body within the policy's size and time; `None` where the client has gone."""
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.policy.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self.policy.max_body:
                        return self._too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            return Denial(408, f"the body did not arrive within {self.policy.body_seconds:g} s")
        return bytes(body)


class _SecuredSend:
    """The `send` of an application, with the security headers on what it starts."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in _FORCED]
            if not any(name.lower() == b"cache-control" for name, _ in kept):
                kept.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*kept, *_FORCED.items()]}
        await self._send(message)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, then whatever else happens to the connection."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


def _only(request: Request, name: str) -> str | None:
    """A header's value; `None` where it is missing, or given more than once."""
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 else None


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    return raw.decode("latin-1")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
