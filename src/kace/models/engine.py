"""llama.cpp in a child process, reached over a private socket.

Why a child and not this process: the binding holds Python's global lock while it loads a model and while it lets
one go (the event loop stands still, for ever if a request is in flight), and a failed assertion in llama.cpp ends
the process it runs in. A child can be dropped at any instant, gives all its memory back, and ends when its standard
input closes, which the kernel sees to even when this process is killed.

Why streamed replies: llama.cpp notices that its client has gone only when it writes. A streamed reply writes every
token, and with `return_progress` every batch of the prompt, so closing the connection frees the slot within one
token or one batch. A reply in one piece would be decoded to its end for nobody.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ValidationError

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, ModelError, Transient
from kace.redact import one_line

CHILD = Path(__file__).with_name("engine_child.py")
STOP_SECONDS = 2.0
LINE_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the child is started."""

    path: str
    slots: int
    threads: int
    context: int
    """Tokens of prompt and reply together, for each slot."""
    spin: int
    """Turns a waiting compute thread spins before it sleeps."""
    batch: int = 256
    """Prompt tokens between two looks at whether the client is still there."""
    cache_mib: int = 256
    """Memory for prompt prefixes that have lost their slot."""


class _Ready(BaseModel):
    socket: str = ""
    error: str = ""


class _Fault(BaseModel):
    message: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Failed(BaseModel):
    error: _Fault


class Engine:
    """A running llama.cpp. Collected or not, it is gone when this process is."""

    def __init__(self, process: subprocess.Popen[str], socket: Path, log: IO[bytes]) -> None:
        self._process = process
        self._socket = socket
        self._log = log
        self._stop = weakref.finalize(self, _end, process, socket.parent, log, os.getpid())

    @classmethod
    def start(cls, settings: EngineSettings) -> Engine:
        """Start the child and wait until the model is loaded: blocks for about a second per gigabyte."""
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD), json.dumps(asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Ctrl-C belongs to the parent, which finishes what it writes and then closes the child.
            start_new_session=True,
        )
        assert process.stdout is not None
        said = process.stdout.readline()
        ready = _Ready.model_validate_json(said) if said else _Ready(error=f"it said {_last_words(log)}")
        if ready.socket:
            return cls(process, Path(ready.socket), log)
        _end(process, None, log, os.getpid())
        raise _start_error(ready.error, settings)

    @property
    def alive(self) -> bool:
        """Whether the child is still running."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the child; a reply under way ends with `Transient`. Safe to call twice."""
        self._stop()

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        """Send a request and return the whole body of the reply."""
        async with aclosing(self.stream(path, body)) as blocks:
            return b"".join([block async for block in blocks])

    async def stream(self, path: str, body: Mapping[str, object]) -> AsyncGenerator[bytes, None]:
        """Send a request and yield the reply as it comes; leaving early makes llama.cpp stop."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket), limit=LINE_LIMIT)
        except OSError:
            raise Transient(self._obituary()) from None
        try:
            writer.write(_request(path, json.dumps(body).encode()))
            status, chunked = await _head(reader)
            if status != 200:
                raise _refusal(status, await reader.read(LINE_LIMIT))
            if not chunked:
                yield await reader.read()
            while chunked and (size := int(await reader.readuntil(), 16)):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            raise Transient(self._obituary()) from None
        finally:
            writer.transport.abort()

    def _obituary(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            # The socket closes a moment before the kernel has the exit status.
            code = self._process.wait(0.2)
            return f"the local engine ended with status {code}: {_last_words(self._log)}"
        return "the local engine closed the connection"


def _request(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: kace\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _head(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status of a reply, and whether its body comes in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    return int(head.split(" ", 2)[1]), "transfer-encoding: chunked" in head


def _refusal(status: int, body: bytes) -> ModelError:
    try:
        fault = _Failed.model_validate_json(body).error
    except ValidationError:
        fault = _Fault(message=f"HTTP {status}")
    if fault.n_prompt_tokens > fault.n_ctx > 0:
        reason = f"the prompt has {fault.n_prompt_tokens:,} tokens, more than the context of {fault.n_ctx:,}"
        return ModelError(Failure.PROVIDER_ERROR, reason)
    return ModelError(Failure.PROVIDER_ERROR, one_line(f"local engine: {fault.message}"))


def _start_error(reason: str, settings: EngineSettings) -> KaceError:
    if "libgomp" in reason:
        return UsageError("the local engine needs the library libgomp.so.1", fix="apt-get install libgomp1")
    if "No module named 'xllamacpp'" in reason:
        return missing_engine()
    return KaceError(
        f"llama.cpp could not load {settings.path}: {one_line(reason)}",
        fix="is it a model file, complete, and is there memory for it? `kace models list` names some that work",
    )


def missing_engine() -> UsageError:
    """The error for an installation without the engine."""
    return UsageError("local models need the engine, which is not installed", fix="pip install 'kace[local]'")


def _last_words(log: IO[bytes]) -> str:
    with suppress(OSError, ValueError):
        log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
        lines = log.read().decode(errors="replace").strip().splitlines()
        return one_line(lines[-1]) if lines else "nothing"
    return "nothing"


def _end(process: subprocess.Popen[str], folder: Path | None, log: IO[bytes], owner: int) -> None:
    # A forked copy of this process inherits the finalizer but not the child.
    if os.getpid() != owner:
        return
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    log.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
