"""A small real HTTP server that speaks chat completions as scripted: any status, body, delay, drip or reset.

It runs its own event loop in a thread, so that plain tests, async tests and child processes can all talk to it:

    with ChatServer([error(500), says("\\boxed{4}")]) as server:
        OpenAIModel("m", base_url=server.url, ...)
    assert len(server.requests) == 2
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    delay: float = 0.0  # seconds before the first byte
    until: Callable[[], bool] | None = None  # nothing is sent before this holds
    drip: float = 0.0  # seconds between single bytes of the body
    reset: bool = False  # send half of the body, then reset the connection
    endless: bool = False  # repeat the body until the client goes away


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float
    peer: tuple[str, int]  # the client's end of the connection


Script = Sequence[Answer] | Callable[[Seen], Answer]


def says(text: str | None, *, finish: str = "stop", **message: object) -> Answer:
    """A usual reply; `message` adds or replaces fields of the message."""
    return Answer(json.dumps(completion({"role": "assistant", "content": text, **message}, finish)).encode())


def completion(message: Mapping[str, object], finish: str = "stop") -> dict[str, object]:
    """The body of a usual reply, to be bent by the test that needs it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": dict(message), "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}},
    }


def error(status: int, message: str = "no", *, headers: Mapping[str, str] | None = None, **fields: object) -> Answer:
    """An error in the shape OpenAI uses."""
    body = json.dumps({"error": {"message": message, "type": "error", **fields}}).encode()
    return Answer(body, status=status, headers={**JSON, **(headers or {})})


# Anthropic's Messages API


USAGE = {"input_tokens": 20, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 1000, "output_tokens": 7}


def message(text: str | None, *, stop: str = "end_turn", **fields: object) -> Answer:
    """A usual reply; `fields` adds or replaces fields of the body."""
    content = [] if text is None else [{"type": "text", "text": text}]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "usage": USAGE,
        **fields,
    }
    return Answer(json.dumps(body).encode())


def fault(
    status: int, kind: str = "api_error", said: str = "no", *, headers: Mapping[str, str] | None = None
) -> Answer:
    """An error in the shape Anthropic uses."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}).encode()
    return Answer(body, status=status, headers={**JSON, **(headers or {})})


def certify(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS with a fresh certificate for 127.0.0.1, which is `cert.pem` in the folder."""
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    names = ["-subj", "/CN=model", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


class ChatServer:
    """Answers request n with the n-th answer (the last one for ever), or with what a function says."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Seen] = []
        self.url = ""
        self._script = script
        self._tls = tls
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ChatServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls, backlog=2048)
        port = server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connections:
            task.cancel()
        await asyncio.wait(connections) if connections else None

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (seen := await _read(reader, writer)) is not None:
                self.requests.append(seen)
                await _write(writer, self._answer(seen))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the test has gone
        finally:
            writer.close()

    def _answer(self, seen: Seen) -> Answer:
        if callable(self._script):
            return self._script(seen)
        return self._script[min(len(self.requests), len(self._script)) - 1]


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen | None:
    start = await reader.read(1)
    if not start.isalpha():  # gone, or speaking TLS to a plain port: say what web servers say then
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" if start else b"")
        return None
    first = start + await reader.readline()
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        key, _, value = line.decode("latin-1").partition(":")
        headers[key.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    peer = writer.get_extra_info("peername")
    return Seen(first.split()[1].decode(), headers, json.loads(body or b"{}"), time.monotonic(), peer)


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    await asyncio.sleep(answer.delay)
    while answer.until and not answer.until():
        await asyncio.sleep(0.01)
    framing = {} if answer.endless else {"content-length": str(len(answer.body))}
    head = [f"HTTP/1.1 {answer.status} Scripted"]
    head += [f"{key}: {value}" for key, value in {**answer.headers, **framing}.items()]
    writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
    if answer.reset:
        writer.write(answer.body[: len(answer.body) // 2])
        await writer.drain()
        writer.transport.abort()
        raise ConnectionResetError
    pieces = [bytes([byte]) for byte in answer.body] if answer.drip else [answer.body]
    for piece in itertools.cycle(pieces) if answer.endless else pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(answer.drip)
