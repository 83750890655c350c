"""llama.cpp in a child process, reached over a private socket.

Why a child: the binding holds Python's global lock while it loads and frees a model, and a failed assertion in
llama.cpp ends its process. A child can be dropped at any instant, and ends when its standard input closes, which the
kernel sees to even when this process is killed. Why streamed replies: llama.cpp notices that its client has gone only
when it writes, which is then once a token or, with `return_progress`, once a batch of the prompt.
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
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pydantic import AliasPath, BaseModel, Field, ValidationError

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, ModelError, Transient
from kace.redact import one_line

CHILD = Path(__file__).with_name("engine_child.py")
SLOTS = 8
"""On two cores, eight streams decode 1.1 to 1.3 times the tokens of four; each costs 50 MB of memory (0.5B model)."""
STOP_SECONDS, LINE_LIMIT = 2.0, 1 << 20


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine may take of the machine."""

    slots: int = SLOTS  # attempts decoded side by side; further ones wait their turn
    threads: int = 0  # compute threads; 0 chooses by the cores this process may use
    context: int = 4096  # tokens of prompt and reply together, for each slot
    spin: int = 1000
    """Turns a waiting compute thread spins before it sleeps. With a busy neighbour on one of two cores this gives 1.5
    times the tokens of OpenMP's own 300,000, and costs nothing measurable without; see bench_local.py."""
    batch: int = 256  # prompt tokens between two looks at whether the client is still there
    cache_mib: int = 256  # memory for prompt prefixes that have lost their slot


class _Fault(BaseModel):
    message: str = Field("", validation_alias=AliasPath("error", "message"))
    prompt: int = Field(0, validation_alias=AliasPath("error", "n_prompt_tokens"))
    context: int = Field(0, validation_alias=AliasPath("error", "n_ctx"))


class Engine:
    """A running llama.cpp. Collected or not, it is gone when this process is.

    Starting one waits until the model is loaded: about a second per gigabyte. `stop()` may be called twice.
    """

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        log = self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        command = [sys.executable, "-P", str(CHILD), json.dumps({"path": str(path), **asdict(settings)})]
        pipe = subprocess.PIPE
        # A session of its own: Ctrl-C belongs to the parent, which finishes what it writes and then closes the child.
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, start_new_session=True)
        self._process = process
        assert process.stdout is not None
        said = process.stdout.readline()
        ready = json.loads(said) if said else {"error": f"it said {_last_words(log)}"}
        self._socket = ready.get("socket", "")
        self.stop = weakref.finalize(self, _end, process, self._socket, log, os.getpid())
        if not self._socket:
            self.stop()
            raise _start_error(ready["error"], path)

    @property
    def alive(self) -> bool:
        """Whether the child is still running."""
        return self._process.poll() is None

    async def stream(self, path: str, body: Mapping[str, object]) -> AsyncGenerator[bytes, None]:
        """Send a request and yield the reply as it comes; leaving early makes llama.cpp stop."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket, limit=LINE_LIMIT)
        except OSError:
            raise Transient(self._obituary()) from None
        try:
            content = json.dumps(body).encode()
            lines = (f"POST {path} HTTP/1.1", "Host: kace", "Content-Type: application/json", "Connection: close")
            writer.write("\r\n".join((*lines, f"Content-Length: {len(content)}", "", "")).encode() + content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            status, chunked = int(head.split(" ", 2)[1]), "transfer-encoding: chunked" in head
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
            code = self._process.wait(0.2)  # the socket closes a moment before the kernel has the exit status
            return f"the local engine ended with status {code}: {_last_words(self._log)}"
        return "the local engine closed the connection"


def _refusal(status: int, body: bytes) -> ModelError:
    fault = _Fault()
    with suppress(ValidationError):
        fault = _Fault.model_validate_json(body)
    reason = one_line(f"local engine: {fault.message or f'HTTP {status}'}")
    if fault.prompt > fault.context > 0:
        reason = f"the prompt has {fault.prompt:,} tokens, more than the context of {fault.context:,}"
    return ModelError(Failure.PROVIDER_ERROR, reason)


def _start_error(reason: str, path: Path) -> KaceError:
    if "libgomp" in reason:
        return UsageError("the local engine needs the library libgomp.so.1", fix="apt-get install libgomp1")
    if "No module named 'xllamacpp'" in reason:
        return missing_engine()
    fix = "is it a model file, complete, and is there memory for it? `kace models list` names some that work"
    return KaceError(f"llama.cpp could not load {path}: {one_line(reason)}", fix=fix)


def missing_engine() -> UsageError:
    """The error for an installation without the engine."""
    return UsageError("local models need the engine, which is not installed", fix="pip install 'kace[local]'")


def _last_words(log: IO[bytes]) -> str:
    with suppress(OSError, ValueError):
        log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
        lines = log.read().decode(errors="replace").strip().splitlines()
        return one_line(lines[-1]) if lines else "nothing"
    return "nothing"


def _end(process: subprocess.Popen[str], socket: str, log: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of this process inherits the finalizer but not the child
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
    if socket:
        shutil.rmtree(Path(socket).parent, ignore_errors=True)
