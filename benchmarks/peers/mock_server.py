"""A server of chat completions that always takes the same time, in a process of its own.

    python benchmarks/peers/mock_server.py SECONDS

Its first line is its port. `GET /window` says how many completions were asked for and how many of them were answered
since the last time that was asked, and how many seconds passed from the first request to the last reply.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

# One text for all: a boxed answer for kace, the last line for lm_eval and inspect_ai, marked fields for DSPy.
TEXT = "x" * 300 + "\nSo the answer is \\boxed{4}.\n\n[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]\n"
MESSAGE = {"role": "assistant", "content": TEXT}
USAGE = {"prompt_tokens": 110, "completion_tokens": 70, "total_tokens": 180}


def answer(body: bytes) -> bytes:
    """A response with this body."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


CHOICE = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
COMPLETION = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE], "usage": USAGE}
REPLY = answer(json.dumps(COMPLETION).encode())


class Window:
    """The completions since the last look."""

    count, answered, first, last = 0, 0, 0.0, 0.0


class Server(asyncio.Protocol):
    """One connection."""

    seconds = 0.05

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to write."""
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer every whole request later."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            whole = end + 4 + int(length or 0)
            if len(self._data) < whole:
                return
            self._data = self._data[whole:]
            if head.startswith(b"get /window"):
                seconds = Window.last - Window.first
                found = {"count": Window.count, "answered": Window.answered, "seconds": seconds}
                Window.count = Window.answered = 0
                self._write(answer(json.dumps(found).encode()))
            else:
                if not Window.count:
                    Window.first = time.perf_counter()
                Window.count += 1
                asyncio.get_running_loop().call_later(self.seconds, self._reply)

    def _reply(self) -> None:
        Window.last = time.perf_counter()
        Window.answered += not self._transport.is_closing()
        self._write(REPLY)

    def _write(self, data: bytes) -> None:
        assert isinstance(self._transport, asyncio.Transport)
        if not self._transport.is_closing():
            self._transport.write(data)


async def main() -> None:
    Server.seconds = float(sys.argv[1])
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
