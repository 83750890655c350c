"""uvicorn's HTTP/1.1 with what no ASGI application can add. Loads uvicorn: import it only to start a server."""

from __future__ import annotations

import asyncio
import contextlib

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kace.web.guard import SECURITY_HEADERS

HEAD_SECONDS = 10.0
"""Within which the head of a request has to arrive; uvicorn's `timeout_keep_alive` starts after a first response."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 on one connection. A slow head ends it, and what is not HTTP is answered with our headers."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock with the connection: one that says nothing is slow, too."""
        super().connection_made(transport)
        self._time_head(waiting=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        super().connection_lost(exc)
        self._time_head(waiting=False)

    def data_received(self, data: bytes) -> None:
        """Read on; the clock runs while a head is incomplete, and only then."""
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        self._time_head(waiting=not answering and not self.transport.is_closing())

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, with the headers that every answer has."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS]
        response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        with contextlib.suppress(h11.LocalProtocolError):  # an answer is under way already: just hang up
            for event in (response, h11.Data(data=msg.encode("ascii")), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _time_head(self, *, waiting: bool) -> None:
        if waiting and self._clock is None:
            self._clock = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        elif not waiting and self._clock is not None:
            self._clock.cancel()
            self._clock = None
