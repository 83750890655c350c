"""HTTP/1.1 as calls need it: many connections kept open to one server, one POST at a time on each, bounded replies.

A call takes an eighth of the CPU that OpenAI's client takes: see docs/architecture.md. Certificates are checked against
the machine's trust store or `SSL_CERT_FILE`; the proxies of the environment are used.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from kace.errors import KaceError, credentials, public_url
from kace.models.base import Failure, ModelError, Transient

MAX_BODY = (
    32_000_000  # bytes, unpacked; a token has about 4, with its log-probabilities 600
)
# bytes of a head, of what waits unread, of what is unpacked at once
MAX_HEAD = 65_536
BUFFER = 262_144
PIECE = 65_536
CODING = "gzip"  # the one way in which a body may be packed
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0

_STATUS = re.compile(r"HTTP/1\.([01]) (\d{3})(?: |$)")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?")


class Broken(Exception):
    """No whole reply came, for a reason that the connection has."""


class NoConnection(Broken):
    """Nothing was sent: no connection could be made."""


class Response(NamedTuple):
    """A reply as it came, unpacked."""

    status: int
    headers: Mapping[str, str]  # by their names in lower case
    body: bytes


async def unpacked(
    pieces: AsyncIterator[bytes], coding: str, most: int = MAX_BODY
) -> AsyncIterator[bytes]:
    """A body in small pieces, unpacked; more than `most` bytes of it raise `ModelError`.

    64 kB can be 64 MB unpacked, and packed twice 64 GB: so never all that has come at once.
    """
    if (coding := coding.strip().lower()) not in ("", "identity", CODING):
        raise Transient(
            f"unreadable reply: packed as {coding[:40]!r}, which was not asked for"
        )
    unpacker = zlib.decompressobj(wbits=31) if coding == CODING else None
    size = 0
    async for chunk in pieces:
        while chunk:
            piece = chunk
            chunk = b""
            if unpacker:
                try:
                    piece = unpacker.decompress(piece, PIECE)
                    chunk = unpacker.unconsumed_tail
                except zlib.error as error:
                    raise Transient(f"unreadable reply: {error}") from None
            size += len(piece)
            if size > most:
                raise ModelError(
                    Failure.PROVIDER_ERROR,
                    f"the reply is larger than {most // 1_000_000} MB",
                )
            yield piece
    if unpacker and not unpacker.eof:
        raise Transient("unreadable reply: it ends before its packing does")


class Connection(asyncio.Protocol):
    """One connection, and what has come on it unread."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = False
        self._fault: Exception | None = None
        self._news = asyncio.Event()  # something came, or nothing more will
        self._since = 0.0  # when it was last used
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to write."""
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Keep what came, and hold the server back where nobody reads it."""
        self._data += data
        if len(self._data) > BUFFER:
            self.transport.pause_reading()
        self._news.set()

    def eof_received(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._news.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come, and why."""
        self._ended = True
        self._fault = error
        self._news.set()

    async def _more(self) -> bool:
        """Wait for more; false where the server has ended in order."""
        if self._ended:
            if self._fault is not None:
                raise Broken(
                    str(self._fault) or type(self._fault).__name__
                ) from self._fault
            return False
        self.transport.resume_reading()
        self._news.clear()
        await self._news.wait()
        return True

    def post(self, path: str, head: str, body: bytes) -> None:
        """Send a JSON body; `head` is the other lines of the request's head."""
        head = f"POST {path} HTTP/1.1\r\n{head}content-type: application/json\r\n"
        self.transport.write(
            f"{head}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body
        )

    def abort(self) -> None:
        """Let go at once, of what was not sent, too."""
        if hasattr(self, "transport"):
            self.transport.abort()

    def usable(self) -> bool:
        """Whether another request may be sent: nothing came that was not asked for, and the server is there."""
        return (
            not self._data
            and not self._ended
            and time.monotonic() - self._since < IDLE_SECONDS
        )

    async def until(self, end: bytes) -> bytes:
        """What comes before `end`, which is dropped."""
        looked = 0
        while (place := self._data.find(end, looked)) < 0:
            if len(self._data) > MAX_HEAD:
                raise Broken("it sends no HTTP, or a head without end")
            looked = max(0, len(self._data) - len(end) + 1)
            if not await self._more():
                raise Broken("the server closed the connection")
        found = bytes(self._data[:place])
        del self._data[: place + len(end)]
        return found

    async def pieces(self, size: int | None) -> AsyncIterator[bytes]:
        """So many bytes as they come; all up to the end of the connection without a size."""
        while size is None or size > 0:
            if not self._data and not await self._more():
                if size is None:
                    return
                raise Broken("the server closed the connection within its reply")
            piece = bytes(self._data[:size])
            del self._data[: len(piece)]
            size = None if size is None else size - len(piece)
            if piece:
                yield piece

    async def chunks(self) -> AsyncIterator[bytes]:
        """A body of chunks, each with its size before it."""
        while True:
            head = _SIZE.fullmatch(await self.until(b"\r\n"))
            if head is None:
                raise Broken("a chunk of its reply has no size")
            if not (size := int(head[1], 16)):
                break
            async for piece in self.pieces(size):
                yield piece
            if await self.until(b"\r\n"):
                raise Broken("a chunk of its reply is longer than its size")
        while await self.until(b"\r\n"):  # what may follow the body
            pass

    async def head(self) -> tuple[bool, int, dict[str, str]]:
        """Whether it is HTTP/1.1, the status, and the headers."""
        while True:
            first, *lines = (
                (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            )
            if (found := _STATUS.match(first)) is None:
                raise Broken("it sends no HTTP")
            if (
                status := int(found[2])
            ) >= 200:  # before, a server only says that it is at work
                break
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            value = value.strip()
            if headers.setdefault(name, value) != value and name == "content-length":
                raise Broken("its reply has two lengths")
        return found[1] == "1", status, headers

    async def response(self) -> tuple[Response, bool]:
        """A whole response, and whether the connection can be used again."""
        modern, status, headers = await self.head()
        length = headers.get("content-length")
        said = headers.get("connection", "").lower()
        keeps = "close" not in said and (modern or "keep-alive" in said)
        if status in (204, 304):
            raw = self.pieces(0)
        elif coding := headers.get("transfer-encoding"):
            if coding.lower() != "chunked":
                raise Broken(f"its reply is sent as {coding[:40]!r}")
            raw = self.chunks()
        elif length is None:
            raw = self.pieces(None)
            keeps = False
        elif not (length.isascii() and length.isdigit()):
            raise Broken("its reply has no sound length")
        else:
            raw = self.pieces(int(length[:20]))
        body = bytearray()
        async for piece in unpacked(raw, headers.get("content-encoding", "")):
            body += piece
        self._since = time.monotonic()
        return Response(status, headers, bytes(body)), keeps


class Wire:
    """The way to one server. For one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self._secure, self._host, self._port = _place(url)
        self._proxy, self._proxy_auth = _proxy_of(
            parts.scheme, f"{self._host}:{self._port}"
        )
        self._idle: deque[Connection] = deque()
        self._trust: ssl.SSLContext | None = None
        self._closed = False
        self._name = f"[{self._host}]" if ":" in self._host else self._host
        host = self._name if parts.port is None else f"{self._name}:{self._port}"
        own = {
            "host": host,
            "accept": "application/json",
            "accept-encoding": CODING,
            **headers,
        }
        self._base = quote(parts.path, safe="/%:@!$&'()*+;=~")
        if (
            self._proxy and not self._secure
        ):  # the proxy is asked for the URL, and told who asks
            self._base = url
            own = own | self._proxy_auth
        self._head = _lines(own)

    async def post(self, path: str, body: bytes) -> Response:
        """Send a JSON body. Raises `Broken` where no whole reply comes, `ModelError` where it is too large."""
        connection = self._take() or await self._connect()
        keeps = False
        try:
            connection.post(self._base + path, self._head, body)
            response, keeps = await connection.response()
        finally:
            if keeps and connection.usable() and not self._closed:
                self._idle.append(connection)
            else:
                connection.abort()
        return response

    async def aclose(self) -> None:
        """Close the connections; those in use close after their call."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()
        await asyncio.sleep(
            0
        )  # a transport lets go of its socket in the next round of the loop

    def _take(self) -> Connection | None:
        """The connection used last that still stands. Those not used for long are closed."""
        while self._idle and not self._idle[0].usable():
            self._idle.popleft().abort()
        while self._idle:
            if (connection := self._idle.pop()).usable():
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        secure, host, port = (
            _place(self._proxy)
            if self._proxy
            else (self._secure, self._host, self._port)
        )
        loop = asyncio.get_running_loop()
        connection = Connection()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                trust = self._trusted() if secure else None
                await loop.create_connection(
                    lambda: connection, host, port, ssl=trust, happy_eyeballs_delay=0.25
                )
                if self._proxy and self._secure:
                    await self._tunnel(connection)
        except (OSError, ValueError, Broken) as error:  # a TimeoutError is an OSError
            connection.abort()
            why = str(error) or f"no connection within {CONNECT_SECONDS:g} s"
            where = f" by the proxy {public_url(self._proxy)}" if self._proxy else ""
            raise NoConnection(why + where) from error
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _tunnel(self, connection: Connection) -> None:
        """Have the proxy connect to the server, and speak TLS with that."""
        target = f"{self._name}:{self._port}"
        head = f"CONNECT {target} HTTP/1.1\r\n{_lines({'host': target, **self._proxy_auth})}\r\n"
        connection.transport.write(head.encode("latin-1"))
        _, status, _ = await connection.head()
        if not 200 <= status < 300:
            raise Broken(f"{status}")
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport,
            connection,
            self._trusted(),
            server_hostname=self._host,
        )
        connection.connection_made(transport or connection.transport)

    def _trusted(self) -> ssl.SSLContext:
        if self._trust is None:
            import httpx2

            self._trust = httpx2.create_ssl_context()
            self._trust.set_alpn_protocols(["http/1.1"])
        return self._trust


def basic_auth(user: str, password: str) -> str:
    """The value of a header that shows a name and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _place(url: str) -> tuple[bool, str, int]:
    """Whether a URL asks for TLS, its host as DNS has it, and its port."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise KaceError(
            f"'{host[:80]}' is no host name", fix="check the address"
        ) from None
    return secure, host, parts.port or (443 if secure else 80)


def _proxy_of(scheme: str, place: str) -> tuple[str | None, dict[str, str]]:
    """The proxy that the environment names for a server, and the header that it wants."""
    known = getproxies()
    proxy = known.get(scheme) or known.get("all")
    if not proxy or proxy_bypass(place):
        return None, {}
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https"):
        fix = "name one with http://, or list the server in NO_PROXY"
        raise KaceError(
            f"proxies of kind '{parts.scheme[:20]}' cannot be used", fix=fix
        )
    auth = credentials(proxy)
    return proxy, {"proxy-authorization": basic_auth(*auth)} if auth else {}
