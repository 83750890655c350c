"""A response as it leaves: in one piece, or piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kace.serve.fault import JSON, Fault

if TYPE_CHECKING:
    from starlette.types import Send

EVENTS = "text/event-stream"
Headers = Sequence[tuple[str, str]]


class Respond:
    """Sends one response; remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        """Nothing has been sent while it is 0."""

    @property
    def started(self) -> bool:
        """Whether the client has heard anything."""
        return self.status != 0

    async def start(self, status: int, content_type: str, headers: Headers = ()) -> None:
        """Send the head."""
        self.status = status
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        raw.append((b"content-type", content_type.encode("latin-1")))
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def send(self, chunk: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, last: bytes = b"") -> None:
        """Send what is left, and nothing after it."""
        await self._send({"type": "http.response.body", "body": last})

    async def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        """Send everything at once."""
        await self.start(status, content_type, (*headers, ("content-length", str(len(body)))))
        await self.end(body)

    async def fault(self, fault: Fault) -> None:
        """Send an error."""
        await self.whole(fault.status, fault.body(), headers=fault.headers)
