"""A model file on this machine, run by llama.cpp."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from kace.errors import KaceError, UsageError
from kace.models.base import Failure, Finish, ModelError, Reply, Request, Transient, Usage
from kace.models.catalog import SUFFIX, find, is_present, path_of, weights_at
from kace.models.engine import Engine, EngineSettings, missing_engine
from kace.models.grammar import grammar_of
from kace.models.slots import Slots

CONTEXT = 4096
SLOTS = 8
"""On two cores, eight streams decode 1.1 to 1.3 times the tokens of four; each costs 50 MB of memory (0.5B model)."""
MAX_THREADS = 16
"""More threads than this only wait for each other on models that fit a laptop."""
SPIN = 1000
"""A thread that waits for one the scheduler took away should sleep soon. With a busy neighbour on one of two cores this
gives 1.5 times the tokens of OpenMP's own 300,000 turns, and costs nothing measurable without; see bench_local.py."""
MAX_STARTS = 4
"""A file that makes llama.cpp crash again and again is the operator's problem, not one more failed attempt."""
SAMPLER = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""llama.cpp's defaults, written out so that an update of the engine cannot change what is sampled."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a local model may take of the machine."""

    slots: int = SLOTS
    """Attempts decoded side by side; further ones wait their turn."""
    threads: int = 0
    """Compute threads; 0 chooses by the cores this process may use."""
    context: int = CONTEXT
    """Tokens of prompt and reply together, for each slot."""


class _Details(BaseModel):
    cached_tokens: int = 0


class _Counts(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details = _Details()


class _Delta(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Fault(BaseModel):
    message: str = ""


class _Event(BaseModel):
    choices: list[_Choice] = []
    usage: _Counts | None = None
    error: _Fault | None = None


class _Tokens(BaseModel):
    tokens: list[int]


class LocalModel:
    """A `ChatModel` on a weights file. The engine starts at the first call and again should it ever die.

    The same seed and prompt give the same text when the engine has nothing else to do; side by side with other
    attempts, batches of another shape round differently and a sample may change.
    """

    def __init__(self, path: Path, *, name: str, sha256: str, room: Room | None = None) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise missing_engine()
        room = room or Room()
        self._name = name
        self._sha256 = sha256
        self._settings = EngineSettings(
            path=str(path),
            slots=room.slots,
            threads=room.threads or default_threads(usable_cores()),
            context=room.context,
            spin=SPIN,
        )
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._starts = 0
        self._closed = False
        self._leases: tuple[asyncio.AbstractEventLoop, Slots] | None = None

    @property
    def name(self) -> str:
        """The `local/NAME` this model was opened as."""
        return self._name

    @property
    def identity(self) -> str:
        """The hash of the weights and the sampler; where the file lies does not matter."""
        sampler = ",".join(f"{key}={value}" for key, value in SAMPLER.items())
        return f"local/sha256:{self._sha256}/{sampler}"

    @property
    def slots(self) -> int:
        """How many attempts run side by side."""
        return self._settings.slots

    async def load(self) -> None:
        """Start the engine now instead of at the first call."""
        await self._running()

    async def complete(self, request: Request) -> Reply:
        """Answer one request; cancelling it frees its slot within one token or one batch of the prompt."""
        async with self._turns().lease(request) as slot:
            engine = await self._running()
            started = time.perf_counter()
            events = [event async for event in _events(engine, {**_body(request), "id_slot": slot})]
        return _reply(events, time.perf_counter() - started)

    async def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model."""
        engine = await self._running()
        body = await engine.post("/tokenize", {"content": text})
        return len(_Tokens.model_validate_json(body).tokens)

    async def aclose(self) -> None:
        """End the engine and give its memory back. Safe to call twice."""
        self._closed = True
        await asyncio.to_thread(self._drop)

    def _turns(self) -> Slots:
        # Waiting belongs to one event loop; a model may be used from several, one after the other.
        loop = asyncio.get_running_loop()
        if self._leases is None or self._leases[0] is not loop:
            self._leases = (loop, Slots(self._settings.slots))
        return self._leases[1]

    async def _running(self) -> Engine:
        engine = self._engine
        if engine is not None and engine.alive:
            return engine
        return await asyncio.to_thread(self._start)

    def _start(self) -> Engine:
        with self._starting:
            if self._closed:
                raise ModelError(Failure.PROVIDER_ERROR, "the local model is closed")
            if self._engine is not None and self._engine.alive:
                return self._engine
            self._drop_engine()
            if self._starts == MAX_STARTS:
                raise KaceError(
                    f"the local engine died {MAX_STARTS} times on {self._settings.path}",
                    fix="is there enough memory? try fewer slots, or another model",
                )
            self._starts += 1
            self._engine = Engine.start(self._settings)
            return self._engine

    def _drop(self) -> None:
        with self._starting:
            self._drop_engine()

    def _drop_engine(self) -> None:
        if self._engine is not None:
            self._engine.stop()
            self._engine = None


def open_local(name: str, *, cache: Path, room: Room | None = None) -> LocalModel:
    """Open weights by catalog name or as `PATH.gguf`; raises `UsageError` for weights that are not here."""
    if name.endswith(SUFFIX):
        path = Path(name).expanduser()
        return LocalModel(path, name=f"local/{name}", sha256=weights_at(path, cache), room=room)
    weights = find(name)
    if not is_present(weights, cache):
        raise UsageError(f"the weights of '{name}' are not in {cache}", fix=f"kace models pull {name}")
    return LocalModel(path_of(weights, cache), name=f"local/{name}", sha256=weights.sha256, room=room)


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
    sampling = request.sampling
    held = {"grammar": grammar_of(request.choices)} if request.choices else {}
    return {
        "messages": [{"role": message.role.value, "content": message.content} for message in request.messages],
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        **SAMPLER,
        **held,
    }


async def _events(engine: Engine, body: dict[str, object]) -> AsyncGenerator[_Event, None]:
    rest = b""
    async with aclosing(engine.stream("/v1/chat/completions", body)) as blocks:
        async for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    try:
                        yield _Event.model_validate_json(line[len(b"data: ") :])
                    except ValidationError:
                        raise Transient("unreadable event from the local engine") from None


def _reply(events: list[_Event], seconds: float) -> Reply:
    text, finish, counts = [], "", None
    for event in events:
        if event.error is not None:
            raise ModelError(Failure.PROVIDER_ERROR, f"local engine: {event.error.message}")
        for choice in event.choices:
            text.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
        counts = event.usage or counts
    if not finish or counts is None:
        raise Transient("the local engine ended its reply early")
    return Reply(
        text="".join(text),
        finish=Finish.LENGTH if finish == "length" else Finish.STOP,
        usage=Usage(counts.prompt_tokens, counts.prompt_tokens_details.cached_tokens, counts.completion_tokens),
        seconds=seconds,
    )
