"""The door of every server: what it turns away before any page or model is asked, and the headers on whatever leaves.

Pure ASGI, so that it stands in front of anything. A browser can be made to send requests to this machine by any page it
has open; the name a request asks for (`Host`), where it comes from (`Origin`, `Sec-Fetch-Site`) and a key tell those
from ours.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kace.redact import redact
from kace.web.head import METHODS, SAFE, Head, Refusal
from kace.web.key import Key

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CSP", "SECURITY_HEADERS", "Guard", "Head", "Hosts", "Policy", "Refusal", "Said", "plainly"]

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

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_FORCED = tuple((name.encode(), value.encode()) for name, value in SECURITY_HEADERS)
_FORCED_NAMES = frozenset(name for name, _ in _FORCED)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names this server answers to, in whatever port."""

    names: frozenset[str] = LOOPBACK_NAMES
    addresses: bool = False
    """Any IP address too. No name that somebody else controls is one, so a rebound name still fails."""

    @classmethod
    def of(cls, host: str, also: Iterable[str] = ()) -> Hosts:
        """For a server bound to `host`; `also` are names it is known by, as behind a proxy."""
        own = f"[{host}]" if ":" in host else host
        found = (_HOST.fullmatch(name.lower()) for name in (own, *also))
        return cls(LOOPBACK_NAMES | {match[1] for match in found if match}, addresses=host in ("", "0.0.0.0", "::"))

    def allow(self, header: str) -> bool:
        """Whether a `Host` header names us."""
        match = _HOST.fullmatch(header.lower())
        return match is not None and (match[1] in self.names or (self.addresses and _is_address(match[1])))


@dataclass(frozen=True, slots=True)
class Said:
    """A refusal in the words of the server it stands for."""

    content_type: str
    body: bytes


def plainly(refusal: Refusal) -> Said:
    """A refusal as a line of text."""
    return Said("text/plain; charset=utf-8", f"{refusal.message}\n".encode())


@dataclass(frozen=True, slots=True)
class Policy:
    """What one server asks of its requests."""

    max_url: int = 8_192
    max_body: int = 1_000_000
    body_seconds: float = 30.0
    """Within which a whole body has to arrive."""
    open_paths: frozenset[str] = frozenset()
    """Answered without a key."""
    cookie: bool = True
    """Whether `?token=` is taken once and kept in a cookie, for people with a browser."""
    speak: Callable[[Refusal], Said] = plainly


class Guard:
    """Lets through what the policy allows, and puts the security headers on every response, of errors too."""

    def __init__(
        self, app: ASGIApp, *, hosts: Hosts | None = None, token: str | None = None, policy: Policy | None = None
    ) -> None:
        self.app = app
        self.hosts = hosts or Hosts()
        self.policy = policy or Policy()
        self._key = Key(token) if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _Response(send))
        else:  # no WebSocket is served here
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, response: _Response) -> None:
        head = Head.of(scope)
        refusal = self.refusal(head)
        if refusal is None and head.method not in SAFE:
            body = await read_body(receive, self.policy)
            if body is None:
                return  # nobody is there any more
            if isinstance(body, Refusal):
                refusal = body
            else:
                receive = _replayed(body, receive)
        if refusal is not None:
            await response.refuse(refusal, self.policy)
            return
        try:
            await self.app(scope, receive, response)
        except Exception:  # the one place where a bug becomes an answer
            log.error("%s", redact(traceback.format_exc()))
            if not response.started:
                await response.refuse(
                    Refusal(500, "something went wrong here; the server's log says what"), self.policy
                )

    def refusal(self, head: Head) -> Refusal | None:
        """Why a request is turned away by its head; `None` lets it in."""
        return (
            wrong_shape(head, self.policy)
            or wrong_host(head, self.hosts)
            or wrong_origin(head)
            or self._wrong_key(head)
        )

    def _wrong_key(self, head: Head) -> Refusal | None:
        if self._key is None or head.path in self.policy.open_paths:
            return None
        return self._key.refusal(head, cookie=self.policy.cookie)


def wrong_shape(head: Head, policy: Policy) -> Refusal | None:
    """Methods, addresses and sizes that nothing here ever needs."""
    if head.method not in METHODS:
        return Refusal(405, f"only {', '.join(METHODS)} are answered here", (("allow", ", ".join(METHODS)),))
    if len(head.raw_path) + len(head.query) > policy.max_url:
        return Refusal(414, f"the address is longer than {policy.max_url:,} characters")
    segments = head.path.split("/")
    if not head.path.startswith("/") or head.path.startswith("//") or ".." in segments or _CONTROL.search(head.path):
        return Refusal(400, "the path is not one of ours")
    lengths = head.headers.get("content-length", ())
    if any(not length.isdecimal() for length in lengths) or len(lengths) > 1:
        return Refusal(400, "Content-Length is not a number")
    if any(len(length) > 15 or int(length) > policy.max_body for length in lengths):
        return _too_large(policy)
    return None


def wrong_host(head: Head, hosts: Hosts) -> Refusal | None:
    """A request for another name reaches us when a name on the web is pointed at this machine."""
    host = head.one("host")
    if host is None:
        return Refusal(400, "one Host header is needed")
    if not hosts.allow(host):
        return Refusal(403, "this server does not go by the name in the Host header")
    return None


def wrong_origin(head: Head) -> Refusal | None:
    """A page of another site may link to us, but never act here. Programs that are no browser say no origin."""
    if head.method in SAFE:
        return None
    sites = head.headers.get("sec-fetch-site", ())
    if any(site not in ("same-origin", "none") for site in sites):
        return Refusal(403, "requests from other sites are not answered")
    ours = f"{head.scheme}://{head.one('host')}".lower()
    if any(origin.lower() != ours for origin in head.headers.get("origin", ())):
        return Refusal(403, "requests from other origins are not answered")
    return None


async def read_body(receive: Receive, policy: Policy) -> bytes | Refusal | None:
    """The whole body within the policy's size and time; `None` where the client has gone."""
    body = bytearray()
    try:
        async with asyncio.timeout(policy.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > policy.max_body:
                    return _too_large(policy)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return Refusal(408, f"the body did not arrive within {policy.body_seconds:g} s")


class _Response:
    """The `send` of an application, with the security headers on what it starts."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": _secured(message.get("headers", ()))}
        await self._send(message)

    async def refuse(self, refusal: Refusal, policy: Policy) -> None:
        """Say why not. The connection ends here: what else it brings, a body too large included, is not read."""
        said = policy.speak(refusal)
        headers = [
            ("content-type", said.content_type),
            ("content-length", str(len(said.body))),
            ("connection", "close"),
            *refusal.headers,
        ]
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await self._send({"type": "http.response.body", "body": said.body})


def _secured(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() not in _FORCED_NAMES]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append((b"cache-control", b"no-store"))
    return [*kept, *_FORCED]


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, then whatever else happens to the connection."""
    pending = [body]

    async def again() -> dict[str, Any]:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return dict(await receive())

    return again


def _too_large(policy: Policy) -> Refusal:
    return Refusal(413, f"the body is larger than {policy.max_body:,} bytes")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
