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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kace.errors import redact

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
SAFE = ("GET", "HEAD")
METHODS = ("GET", "HEAD", "POST")

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
        return cls(
            LOOPBACK_NAMES | {match[1] for match in found if match},
            addresses=host in ("", "0.0.0.0", "::"),
        )

    def allow(self, header: str) -> bool:
        """Whether a `Host` header names us."""
        match = _HOST.fullmatch(header.lower())
        if match is not None and self.addresses:
            with suppress(ValueError):
                ipaddress.ip_address(match[1].strip("[]"))
                return True
        return match is not None and match[1] in self.names


@dataclass
class Guard:
    """Lets through what its rules allow, and puts the security headers on every response, of errors too.

    The key comes in a header, or once in an address and then in a cookie. It is compared in constant time.
    """

    app: ASGIApp
    hosts: Hosts = Hosts()
    token: str | None = None
    _: KW_ONLY
    max_url: int = 8_192
    max_body: int = 1_000_000
    body_seconds: float = 30.0  # within which a whole body has to arrive
    open_paths: Collection[str] = ()  # answered without a key
    cookie: bool = True  # whether `?token=` is taken once and kept in a cookie, for people with a browser
    render: Callable[[Denial], Response] = lambda denial: PlainTextResponse(
        f"{denial.message}\n"
    )
    """The body of a denial; the guard sets its status."""

    def __post_init__(self) -> None:
        self._key = _digest(self.token) if self.token else None
        self._cookie = hmac.new(
            (self.token or "").encode(), b"kace cookie", "sha256"
        ).hexdigest()
        self._too_large = Denial(
            413, f"the body is larger than {self.max_body:,} bytes"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # no WebSocket is served here
            return await send({"type": "websocket.close", "code": 1008})
        request = Request(scope)
        started = False
        body = list[Message]()

        async def secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                kept = [
                    (name, value)
                    for name, value in message.get("headers", ())
                    if name.lower() not in _FORCED
                ]
                if not any(name.lower() == b"cache-control" for name, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*kept, *_FORCED.items()]}
            await send(message)

        async def replayed() -> Message:
            """The body, which was read already; then whatever else happens to the connection."""
            return body.pop() if body else await receive()

        denial = next(
            (denial for wrong, denial in self._rules(request) if wrong), None
        ) or self._wrong_key(request)
        if denial is None and scope["method"] not in SAFE:
            found = await self._read(receive)
            if found is None:
                return  # nobody is there any more
            denial = found if isinstance(found, Denial) else None
            body = [{"type": "http.request", "body": found, "more_body": False}]
        try:
            if denial is None:
                await self.app(scope, replayed, secured)
        except Exception:  # the one place where a bug becomes an answer
            log.error("%s", redact(traceback.format_exc()))
            denial = (
                None
                if started
                else Denial(
                    500, "something went wrong here; the server's log says what"
                )
            )
        if denial is not None:
            response = self.render(denial)
            response.status_code = denial.status
            # The connection ends here: what else it brings, a body too large included, is not read.
            response.headers.update({**denial.headers, "connection": "close"})
            await response(scope, receive, secured)

    def _rules(self, request: Request) -> Iterator[tuple[bool, Denial]]:
        """What is wrong with a request, in turn, whatever its key."""
        path = request.scope["path"]
        get = request.headers.getlist
        verbs = ", ".join(METHODS)
        lengths = get("content-length")
        hosts = get("host")
        # Methods, addresses and sizes that nothing here ever needs.
        yield (
            request.method not in METHODS,
            Denial(405, f"only {verbs} are answered here", {"allow": verbs}),
        )
        long = (
            len(raw_path(request.scope)) + len(request.scope.get("query_string", b""))
            > self.max_url
        )
        yield (
            long,
            Denial(414, f"the address is longer than {self.max_url:,} characters"),
        )
        strange = (
            not path.startswith("/")
            or path.startswith("//")
            or ".." in path.split("/")
            or _CONTROL.search(path)
        )
        yield bool(strange), Denial(400, "the path is not one of ours")
        no_number = len(lengths) > 1 or any(
            not length.isdecimal() for length in lengths
        )
        yield no_number, Denial(400, "Content-Length is not a number")
        twice = bool(lengths and get("transfer-encoding"))
        yield (
            twice,
            Denial(400, "a body has a Content-Length or a Transfer-Encoding, not both"),
        )
        yield (
            any(len(each) > 15 or int(each) > self.max_body for each in lengths),
            self._too_large,
        )
        # A name on the web that is pointed at this machine, or a page of another site, which may only link.
        yield len(hosts) != 1, Denial(400, "one Host header is needed")
        yield (
            not self.hosts.allow(hosts[0]),
            Denial(403, "this server does not go by the name in the Host header"),
        )
        if request.method not in SAFE:
            elsewhere = any(
                site not in ("same-origin", "none") for site in get("sec-fetch-site")
            )
            yield elsewhere, Denial(403, "requests from other sites are not answered")
            # Programs that are no browser say no origin.
            ours = f"{request.scope.get('scheme', 'http')}://{hosts[0]}".lower()
            foreign = any(origin.lower() != ours for origin in get("origin"))
            yield foreign, Denial(403, "requests from other origins are not answered")

    def _wrong_key(self, request: Request) -> Denial | None:
        """Why a request is denied for its key, or sent on with a cookie."""
        given = request.headers.getlist("authorization")
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        if self._key is None or request.scope["path"] in self.open_paths:
            return None
        if hmac.compare_digest(
            _digest(token.strip() if scheme.lower() == "bearer" else ""), self._key
        ):
            return None
        if self.cookie:
            # A browser sends a machine's cookies to all its ports: two servers must not take each other's.
            name = f"kace-{(request.scope.get('server') or ('', 0))[1]}"
            if hmac.compare_digest(
                request.cookies.get(name, "").encode(), self._cookie.encode()
            ):
                return None
            in_address = _digest(request.query_params.get("token", ""))
            if request.method in SAFE and hmac.compare_digest(in_address, self._key):
                # The same page, without the token in its address.
                rest = urlencode(
                    [
                        pair
                        for pair in request.query_params.multi_items()
                        if pair[0] != "token"
                    ]
                )
                location = raw_path(request.scope) + (f"?{rest}" if rest else "")
                kept = f"{name}={self._cookie}; Path=/; HttpOnly; SameSite=Lax"
                return Denial(
                    303, "this way", {"location": location, "set-cookie": kept}
                )
        return Denial(401, "a valid key is needed", {"www-authenticate": "Bearer"})

    async def _read(self, receive: Receive) -> bytes | Denial | None:
        """The whole body within the policy's size and time; `None` where the client has gone."""
        body = bytearray()
        more = True
        try:
            async with asyncio.timeout(self.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self.max_body:
                        return self._too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            return Denial(
                408, f"the body did not arrive within {self.body_seconds:g} s"
            )
        return bytes(body)


def raw_path(scope: Scope) -> str:
    """The path of a request as it was sent, not as it reads once decoded."""
    raw: bytes = scope.get("raw_path") or quote(scope.get("path", "")).encode()
    return raw.decode("latin-1")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
