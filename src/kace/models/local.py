"""A model file on this machine: llama.cpp in a child process, and the slots that attempts decode in.

A child can be dropped at any instant, and ends when its standard input closes, which the kernel sees to however this
process ends. Replies are streamed, because llama.cpp notices that its client has gone only when it writes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from pydantic import AliasPath, BaseModel, Field, ValidationError

from kace.errors import KaceError, UsageError, one_line
from kace.models.base import (
    LOGPROBS,
    Failure,
    Finish,
    ModelError,
    Reply,
    Request,
    Transient,
    read_confidence,
)
from kace.models.catalog import weights_of
from kace.models.http import HttpClient, Lost, read_usage

CHILD = Path(__file__).with_name("engine_child.py")
SLOTS = 8  # on two cores, these decode 1.1 to 1.3 times the tokens of four; each costs 50 MB of memory (0.5B model)
STOP_SECONDS = 2.0
MAX_THREADS = 16  # more only wait for each other on models that fit a laptop
MAX_STARTS = 4  # a file that crashes llama.cpp again and again is a user error, not one more failed attempt
SAMPLER = {
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
}  # llama.cpp's defaults, written out: no update may change them
LONG_PREFIX = 1_000  # characters of instructions: reading more again costs more than waiting for a turn


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine may take of the machine."""

    slots: int = SLOTS  # attempts decoded side by side; further ones wait their turn
    threads: int = 0  # compute threads; 0 chooses by the cores this process may use
    context: int = 4096  # tokens of prompt and reply together, for each slot
    # Turns a waiting thread spins before it sleeps: beside a busy neighbour 1.5 times the tokens of OpenMP's 300,000.
    spin: int = 1000
    batch: int = (
        256  # prompt tokens between two looks at whether the client is still there
    )
    cache_mib: int = 256  # memory for prompt prefixes that have lost their slot


class Engine:
    """A running llama.cpp, loaded when this returns. Collected or not, it is gone when this process is."""

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        log = self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        command = [
            sys.executable,
            "-P",
            str(CHILD),
            json.dumps({"path": str(path), **asdict(settings)}),
        ]
        pipe = subprocess.PIPE
        # A session of its own: Ctrl-C belongs to the parent, which finishes what it writes and then closes the child.
        process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None
        said = process.stdout.readline()
        ready = json.loads(said) if said else {"error": f"it said {_last_words(log)}"}
        self._socket = ready.get("socket", "")
        self.client = HttpClient("http://kace", {}, socket=self._socket)
        self.stop = weakref.finalize(
            self, _end, process, self._socket, log, os.getpid()
        )
        if not self._socket:
            self.stop()
            raise _start_error(ready["error"], path)

    @property
    def alive(self) -> bool:
        """Whether the child is still running."""
        return self._process.poll() is None

    async def ask(self, path: str, body: Mapping[str, object]) -> str:
        """Send a request and read the reply as it comes; cancelling makes llama.cpp stop."""
        try:
            response = await self.client.post(path, body)
        except Lost:
            raise Transient(self._obituary()) from None
        if response.status != 200:
            raise _refusal(response.status, response.body)
        return response.body.decode(errors="replace")

    def _obituary(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(
                0.2
            )  # the socket closes a moment before the kernel has the exit status
            return (
                f"the local engine ended with status {code}: {_last_words(self._log)}"
            )
        return "the local engine closed the connection"


def _refusal(status: int, body: bytes) -> ModelError:
    fault = {}
    with suppress(ValueError, KeyError, TypeError):
        fault = dict(json.loads(body)["error"])
    reason = one_line(f"local engine: {fault.get('message') or f'HTTP {status}'}")
    if (
        (prompt := fault.get("n_prompt_tokens", 0))
        > (context := fault.get("n_ctx", 0))
        > 0
    ):
        reason = (
            f"the prompt has {prompt:,} tokens, more than the context of {context:,}"
        )
    return ModelError(Failure.PROVIDER_ERROR, reason)


def _start_error(reason: str, path: Path) -> KaceError:
    if "libgomp" in reason:
        return UsageError(
            "the local engine needs the library libgomp.so.1",
            fix="apt-get install libgomp1",
        )
    fix = "is it a model file, complete, and is there memory for it? `kace models list` names some that work"
    return KaceError(f"llama.cpp could not load {path}: {one_line(reason)}", fix=fix)


def _last_words(log: IO[bytes]) -> str:
    with suppress(OSError, ValueError):
        log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
        lines = log.read().decode(errors="replace").strip().splitlines()
        return one_line(lines[-1]) if lines else "nothing"
    return "nothing"


def _end(
    process: subprocess.Popen[str], socket: str, log: IO[bytes], owner: int
) -> None:
    if (
        os.getpid() != owner
    ):  # a forked copy of this process inherits the finalizer but not the child
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


Use = tuple[tuple[str, int, str] | None, str]
"""The problem, seed and tier that a slot decodes, none where it is free, and the long prefix it holds."""


class Slots:
    """Leases of slots, first come, first served but for attempts that follow their own."""

    def __init__(self, count: int) -> None:
        self._slots: list[Use] = [(None, "")] * count
        self._waiting: dict[asyncio.Future[int], Use] = {}

    @asynccontextmanager
    async def lease(self, request: Request) -> AsyncIterator[int]:
        """A slot for as long as the request is under way."""
        attempt = request.attempt
        told = "\n".join(message.content for message in request.messages[:-1])
        # After demonstrations, attempts of a tier have one and the same prompt, and reply in few words.
        prefix = told if len(told) >= LONG_PREFIX or len(request.messages) > 2 else ""
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = ((attempt.problem, attempt.seed, attempt.tier), prefix)
        self._place(turn)
        try:
            slot = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free(turn.result())  # given a slot in the same moment: hand it on
            self._waiting.pop(turn, None)
            raise
        try:
            yield slot
        finally:
            self._free(slot)

    def _place(self, turn: asyncio.Future[int]) -> None:
        """Give the free slot that holds the prefix, else one with nothing worth keeping; none if it should wait."""
        _, prefix = use = self._waiting[turn]
        free = [
            (held != prefix, bool(held), slot)
            for slot, (group, held) in enumerate(self._slots)
            if group is None
        ]
        if free and not turn.done() and not (prefix and use in self._slots):
            slot = min(free)[-1]
            self._slots[slot] = self._waiting.pop(turn)
            turn.set_result(slot)

    def _free(self, slot: int) -> None:
        done = self._slots[slot]
        self._slots[slot] = (None, done[1])
        # Those that follow in this slot go first; then whoever has waited longest and finds a place.
        for turn in sorted(self._waiting, key=lambda turn: self._waiting[turn] != done):
            self._place(turn)


class LocalModel:
    """A `ChatModel` on a weights file. The engine starts at the first call and again should it ever die.

    The same seed and prompt give the same text, but beside other attempts, whose batches round differently.
    """

    def __init__(
        self, path: Path, *, name: str, sha256: str, settings: EngineSettings
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            missing = "local models need the engine, which is not installed"
            raise UsageError(missing, fix="pip install 'kace[local]'")
        self.name = name
        sampler = ",".join(f"{key}={value}" for key, value in SAMPLER.items())
        self.identity = (
            f"local/sha256:{sha256}/{sampler}"  # where the file lies does not matter
        )
        self._path = path
        self._closed = False
        self._starts = 0
        self._settings = replace(
            settings, threads=settings.threads or default_threads(usable_cores())
        )
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._slots = Slots(settings.slots)

    async def complete(self, request: Request) -> Reply:
        """Answer one request; cancelling it frees its slot within one token or one batch of the prompt."""
        async with self._slots.lease(request) as slot:
            engine = await self._running()
            started = time.perf_counter()
            body = {**_body(request), "id_slot": slot}
            said = await engine.ask("/v1/chat/completions", body)
        return _reply(said, time.perf_counter() - started)

    async def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model."""
        engine = await self._running()
        return len(
            json.loads(await engine.ask("/tokenize", {"content": text}))["tokens"]
        )

    async def aclose(self) -> None:
        """End the engine and give its memory back. Safe to call twice."""
        self._closed = True

        def drop() -> None:
            with self._starting:
                if self._engine is not None:
                    self._engine.stop()

        await asyncio.to_thread(drop)
        if self._engine is not None:
            await self._engine.client.aclose()

    async def _running(self) -> Engine:
        engine = self._engine
        return (
            engine
            if engine is not None and engine.alive
            else await asyncio.to_thread(self._start)
        )

    def _start(self) -> Engine:
        with self._starting:
            if self._closed:
                raise ModelError(Failure.PROVIDER_ERROR, "the local model is closed")
            if self._engine is not None and self._engine.alive:
                return self._engine
            if self._engine is not None:
                self._engine.stop()
            if self._starts == MAX_STARTS:
                died = f"the local engine died {MAX_STARTS} times on {self._path}"
                raise KaceError(
                    died,
                    fix="is there enough memory? try fewer slots, or another model",
                )
            self._starts += 1
            self._engine = Engine(self._path, self._settings)
            return self._engine


def open_local(
    name: str, *, cache: Path, settings: EngineSettings | None = None
) -> LocalModel:
    """Open weights by catalog name or as `PATH.gguf`; raises `UsageError` for weights that are not here."""
    path, sha256 = weights_of(name, cache)
    return LocalModel(
        path, name=f"local/{name}", sha256=sha256, settings=settings or EngineSettings()
    )


def default_threads(cores: int) -> int:
    """All of two cores; of more, all but one, which is left to Python and to whatever else runs."""
    return max(1, min(cores if cores <= 2 else cores - 1, MAX_THREADS))


def usable_cores() -> int:
    """Cores this process may use: its affinity, and a container's share where there is one."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def _body(request: Request) -> dict[str, object]:
    return {
        "messages": [
            {"role": message.role.value, "content": message.content}
            for message in request.messages
        ],
        **asdict(request.sampling),
        **SAMPLER,
        **{
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        },
        **({"grammar": grammar_of(request.choices)} if request.choices else {}),
        **(LOGPROBS if request.logprobs else {}),
    }


def grammar_of(choices: Sequence[str]) -> str:
    """A GBNF grammar whose only sentences are the choices. Raises `ValueError` where there is none to choose."""
    if not choices or not all(choices):
        raise ValueError("a choice needs at least one text, and no empty one")

    def escaped(
        char: str,
    ) -> (
        str
    ):  # all but plain words by number: nothing can end the literal or start an escape
        return (
            char
            if char.isascii() and (char.isalnum() or char in " _")
            else f"\\U{ord(char):08X}"
        )

    return "root ::= " + " | ".join(
        f'"{"".join(map(escaped, choice))}"' for choice in dict.fromkeys(choices)
    )


class _Event(BaseModel):
    text: str | None = Field(
        None, validation_alias=AliasPath("choices", 0, "delta", "content")
    )
    finish: str | None = Field(
        None, validation_alias=AliasPath("choices", 0, "finish_reason")
    )
    logprobs: list[object] | None = Field(
        None, validation_alias=AliasPath("choices", 0, "logprobs", "content")
    )
    usage: dict[str, object] | None = None
    error: str | None = Field(None, validation_alias=AliasPath("error", "message"))


def _reply(said: str, seconds: float) -> Reply:
    data = [
        line.removeprefix("data: ")
        for line in said.split("\n")
        if line.startswith("data: {")
    ]
    try:
        events = [_Event.model_validate_json(event) for event in data]
    except ValidationError:
        raise Transient("unreadable event from the local engine") from None
    if error := next(
        (event.error for event in events if event.error is not None), None
    ):
        raise ModelError(Failure.PROVIDER_ERROR, f"local engine: {error}")
    finish = [event.finish for event in events if event.finish]
    usage = [event.usage for event in events if event.usage]
    if not finish or not usage:
        raise Transient("the local engine ended its reply early")
    text = "".join(event.text or "" for event in events)
    ended = Finish.LENGTH if finish[-1] == "length" else Finish.STOP
    confidence = read_confidence(
        [token for event in events for token in event.logprobs or ()]
    )
    return Reply(text, ended, read_usage(usage[-1]), seconds, confidence=confidence)
