"""A model file on this machine, run by llama.cpp, and the slots that attempts decode in.

A slot keeps the prompt it read last, and only for itself. Attempts of one problem and tier that share a long prefix
(a block of cards) therefore follow each other in one slot: reading it once in every slot would cost more.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import AliasPath, BaseModel, Field, ValidationError

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, Finish, ModelError, Reply, Request, Role, Transient
from kace.models.catalog import SUFFIX, find, is_present, path_of, weights_at
from kace.models.engine import Engine, EngineSettings, missing_engine
from kace.models.openai import read_usage

MAX_THREADS = 16  # more only wait for each other on models that fit a laptop
MAX_STARTS = 4
"""A file that makes llama.cpp crash again and again is the operator's problem, not one more failed attempt."""
SAMPLER = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""llama.cpp's defaults, written out so that an update of the engine cannot change what is sampled."""
LONG_PREFIX = 1_000
"""Characters of instructions from which reading them again costs more than waiting for a turn."""

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
        first, attempt = request.messages[0], request.attempt
        prefix = first.content if first.role is Role.SYSTEM and len(first.content) >= LONG_PREFIX else ""
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
        free = [(held != prefix, bool(held), slot) for slot, (group, held) in enumerate(self._slots) if group is None]
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

    def __init__(self, path: Path, *, name: str, sha256: str, settings: EngineSettings) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise missing_engine()
        self.name = name
        sampler = ",".join(f"{key}={value}" for key, value in SAMPLER.items())
        self.identity = f"local/sha256:{sha256}/{sampler}"  # where the file lies does not matter
        self._path = path
        self._settings = replace(settings, threads=settings.threads or default_threads(usable_cores()))
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._starts = 0
        self._closed = False
        self._leases: tuple[asyncio.AbstractEventLoop, Slots] | None = None

    async def complete(self, request: Request) -> Reply:
        """Answer one request; cancelling it frees its slot within one token or one batch of the prompt."""
        # Waiting belongs to one event loop; a model may be used from several, one after the other.
        loop = asyncio.get_running_loop()
        if self._leases is None or self._leases[0] is not loop:
            self._leases = (loop, Slots(self._settings.slots))
        async with self._leases[1].lease(request) as slot:
            engine = await self._running()
            started = time.perf_counter()
            events = [event async for event in _events(engine, {**_body(request), "id_slot": slot})]
        return _reply(events, time.perf_counter() - started)

    async def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model."""
        engine = await self._running()
        async with aclosing(engine.stream("/tokenize", {"content": text})) as blocks:
            return len(json.loads(b"".join([block async for block in blocks]))["tokens"])

    async def aclose(self) -> None:
        """End the engine and give its memory back. Safe to call twice."""
        self._closed = True

        def drop() -> None:
            with self._starting:
                if self._engine is not None:
                    self._engine.stop()
                    self._engine = None

        await asyncio.to_thread(drop)

    async def _running(self) -> Engine:
        engine = self._engine
        return engine if engine is not None and engine.alive else await asyncio.to_thread(self._start)

    def _start(self) -> Engine:
        with self._starting:
            if self._closed:
                raise ModelError(Failure.PROVIDER_ERROR, "the local model is closed")
            if self._engine is not None:
                if self._engine.alive:
                    return self._engine
                self._engine.stop()
                self._engine = None
            if self._starts == MAX_STARTS:
                died = f"the local engine died {MAX_STARTS} times on {self._path}"
                raise KaceError(died, fix="is there enough memory? try fewer slots, or another model")
            self._starts += 1
            self._engine = Engine(self._path, self._settings)
            return self._engine


def open_local(name: str, *, cache: Path, settings: EngineSettings | None = None) -> LocalModel:
    """Open weights by catalog name or as `PATH.gguf`; raises `UsageError` for weights that are not here."""
    if name.endswith(SUFFIX):
        path = Path(name).expanduser()
        sha256 = weights_at(path, cache)
    elif is_present(name, cache):
        path, sha256 = path_of(name, cache), find(name).sha256
    else:
        raise UsageError(f"the weights of '{name}' are not in {cache}", fix=f"kace models pull {name}")
    return LocalModel(path, name=f"local/{name}", sha256=sha256, settings=settings or EngineSettings())


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
        "messages": [{"role": message.role.value, "content": message.content} for message in request.messages],
        **asdict(request.sampling),
        **SAMPLER,
        **{"cache_prompt": True, "stream": True, "stream_options": {"include_usage": True}, "return_progress": True},
        **({"grammar": grammar_of(request.choices)} if request.choices else {}),
    }


def grammar_of(choices: Sequence[str]) -> str:
    """A GBNF grammar whose only sentences are the choices. Raises `ValueError` where there is none to choose."""
    if not choices or not all(choices):
        raise ValueError("a choice needs at least one text, and no empty one")

    def escaped(char: str) -> str:  # all but plain words by number: nothing can end the literal or start an escape
        return char if char.isascii() and (char.isalnum() or char in " _") else f"\\U{ord(char):08X}"

    return "root ::= " + " | ".join(f'"{"".join(map(escaped, choice))}"' for choice in dict.fromkeys(choices))


class _Choice(BaseModel):
    content: str | None = Field(None, validation_alias=AliasPath("delta", "content"))
    finish_reason: str | None = None


class _Event(BaseModel):
    choices: list[_Choice] = []
    usage: dict[str, object] | None = None
    error: str | None = Field(None, validation_alias=AliasPath("error", "message"))


async def _events(engine: Engine, body: dict[str, object]) -> AsyncGenerator[_Event, None]:
    rest = b""
    async with aclosing(engine.stream("/v1/chat/completions", body)) as blocks:
        async for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    try:
                        yield _Event.model_validate_json(line.removeprefix(b"data: "))
                    except ValidationError:
                        raise Transient("unreadable event from the local engine") from None


def _reply(events: list[_Event], seconds: float) -> Reply:
    if error := next((event.error for event in events if event.error is not None), None):
        raise ModelError(Failure.PROVIDER_ERROR, f"local engine: {error}")
    choices = [choice for event in events for choice in event.choices]
    finish = [choice.finish_reason for choice in choices if choice.finish_reason]
    usage = [event.usage for event in events if event.usage]
    if not finish or not usage:
        raise Transient("the local engine ended its reply early")
    text = "".join(choice.content or "" for choice in choices)
    return Reply(text, Finish.LENGTH if finish[-1] == "length" else Finish.STOP, read_usage(usage[-1]), seconds)
