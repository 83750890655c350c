"""The HTTP beneath the SDKs: bounded bodies, and cheap pools. Loads the HTTP library: import it only to connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

MAX_BODY = 8_000_000  # bytes, after decompression; a reply of 100,000 tokens has about 0.4 MB
CONNECT_TIMEOUT = httpx2.Timeout(None, connect=10.0)  # the caller bounds the call as a whole
POOL_SIZE = 64
"""Calls under way per pool, which walks all its connections at every call: 4.3 ms for 1,000, 1.3 ms for 64."""

_KEPT = {"retry-after", "retry-after-ms", "date"}  # others, such as a made-up charset, could break what reads the body


class BodyTooLarge(Exception):
    """The server sent more than `MAX_BODY` bytes."""


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client that reads every body, of errors too, up to `MAX_BODY` bytes and no further."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request and read its whole body."""
        response = await super().send(request, stream=True, **options)
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


class ClientPools:
    """SDK clients opened as they are needed, each with a small pool of its own. Belongs to one event loop."""

    def __init__(self, open_client: Callable[[BoundedClient], Any], auth: tuple[str, str] | None) -> None:
        tls = httpx2.create_ssl_context()
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=POOL_SIZE, keepalive_expiry=30.0)
        self._open: Callable[[], Any] = lambda: open_client(BoundedClient(auth=auth, verify=tls, limits=limits))
        self._clients = [self._open()]
        self._busy = [0]

    @contextmanager
    def client(self) -> Iterator[Any]:
        """The first client with room, for the time of one call."""
        pool = next((number for number, calls in enumerate(self._busy) if calls < POOL_SIZE), len(self._busy))
        if pool == len(self._busy):
            self._clients.append(self._open())
            self._busy.append(0)
        self._busy[pool] += 1
        try:
            yield self._clients[pool]
        finally:
            self._busy[pool] -= 1

    async def aclose(self) -> None:
        """Close every connection."""
        for client in self._clients:
            await client.close()
