"""The HTTP beneath the providers' SDKs: bodies with a bound, and a pool that stays cheap at a thousand connections.

Import it only where a connection is really opened: it loads the HTTP library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import httpx2

if TYPE_CHECKING:
    from httpx2._client import UseClientDefault
    from httpx2._types import AuthTypes

MAX_BODY = 8_000_000
"""Bytes of a response, after decompression. A reply of 100,000 tokens has about 0.4 MB."""
CONNECT_TIMEOUT = httpx2.Timeout(None, connect=10.0)
"""Bounds the connecting only: the caller bounds the call as a whole."""
LANE = 64
"""Calls under way per pool. The pool walks all its connections at every call, so one pool of 1,000 spends 4.3 ms of
processor time on a call where sixteen of 64 spend 1.3 ms."""

_KEPT = {"retry-after", "retry-after-ms", "date"}
"""Response headers anybody reads here. Others, such as a made-up charset, could only break what reads the body."""


class BodyTooLarge(Exception):
    """The server sent more than `MAX_BODY` bytes."""


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client that reads every body, of errors too, up to `MAX_BODY` bytes and no further."""

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: AuthTypes | UseClientDefault | None = httpx2.USE_CLIENT_DEFAULT,
        follow_redirects: bool | UseClientDefault = httpx2.USE_CLIENT_DEFAULT,
    ) -> httpx2.Response:
        """Send a request and read its whole body."""
        response = await super().send(request, stream=True, auth=auth, follow_redirects=follow_redirects)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BODY:
                    raise BodyTooLarge(f"the reply is larger than {MAX_BODY // 1_000_000} MB")
        finally:
            await response.aclose()
        headers = {key: value for key, value in response.headers.items() if key in _KEPT and value.isascii()}
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


class Closable(Protocol):
    """An SDK's client."""

    async def close(self) -> None:
        """Close its connections."""


C = TypeVar("C", bound=Closable)


class Lanes(Generic[C]):
    """SDK clients opened as they are needed, each with a small pool of its own. Belongs to one event loop."""

    def __init__(self, open_client: Callable[[BoundedClient], C], auth: tuple[str, str] | None) -> None:
        tls = httpx2.create_ssl_context()
        self._open: Callable[[], C] = lambda: open_client(
            BoundedClient(
                auth=auth,
                verify=tls,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=LANE, keepalive_expiry=30.0),
            )
        )
        self._clients = [self._open()]
        self._busy = [0]

    @contextmanager
    def client(self) -> Iterator[C]:
        """The first client with room, for the time of one call."""
        lane = next((number for number, calls in enumerate(self._busy) if calls < LANE), len(self._busy))
        if lane == len(self._busy):
            self._clients.append(self._open())
            self._busy.append(0)
        self._busy[lane] += 1
        try:
            yield self._clients[lane]
        finally:
            self._busy[lane] -= 1

    async def aclose(self) -> None:
        """Close every connection."""
        for client in self._clients:
            await client.close()
