"""The protocol of every model, and the frozen values that cross it."""

from __future__ import annotations

import hashlib
import json
import re
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

ASK_TRIES = 2
ASK_TOKENS = 512
_NO_ROOM = re.compile(
    r"max_(?:completion_)?tokens|max_model_len|context (?:length|limit|size|window)",
    re.IGNORECASE,
)
_THINKING_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

T = TypeVar("T")


# Requests


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is sampled. `seed` differs per attempt, so no server repeats a sample."""

    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Identifies an attempt, which keeps repeated samples apart in every cache."""

    problem: str
    seed: int
    tier: str
    index: int

    def sampling_seed(self) -> int:
        """Return a 31-bit seed, which any server accepts, the same on every machine."""
        text = f"{self.problem}\x1f{self.seed}\x1f{self.tier}\x1f{self.index}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) >> 1


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that is sent to a model."""

    messages: Messages
    sampling: Sampling
    attempt: AttemptKey
    # The only replies wanted. A model that cannot be constrained ignores them, so the
    # caller still checks.
    choices: tuple[str, ...] = ()
    # Whether the reply needs a confidence. Part of the key: a kept reply may have none.
    logprobs: bool = False

    def digest(self, identity: str) -> str:
        """Return the cache key: what is requested, of which model, as which attempt."""
        messages = [[m.role, m.content] for m in self.messages]
        content: list[object] = [identity, messages]
        # Not `asdict`, which copies deeply and takes longer than the hash.
        for part in (self.sampling, self.attempt):
            content.append(
                {name: getattr(part, name) for name in part.__slots__}
            )
        if (
            self.choices
        ):  # only then: older calls without choices keep their keys
            content.append(list(self.choices))
        if self.logprobs:
            content.append("logprobs")
        canonical = json.dumps(
            content, ensure_ascii=True, separators=(",", ":"), sort_keys=True
        )
        return hashlib.sha256(canonical.encode()).hexdigest()


def chat(system: str, user: str) -> Messages:
    """Return a conversation of a system and a user message."""
    return (Message(Role.SYSTEM, system), Message(Role.USER, user))


# Replies


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counts them."""

    input: int = 0  # all prompt tokens, cached ones included
    cached: int = 0  # prompt tokens served from a prefix cache
    output: int = 0
    # Prompt tokens written to a prefix cache, if priced apart; never also in `cached`.
    written: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.written + other.written,
        )


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    return sum(usages, Usage())


class Finish(StrEnum):
    """Why a model stopped writing."""

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True)
class Confidence:
    """Confidence of one reply, from the log-probabilities of its tokens."""

    logprob: float  # mean log-probability of the sampled tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply to one request."""

    text: str
    finish: Finish
    usage: Usage
    seconds: float  # wall time of the call; a cached reply keeps the original's
    cached: bool = False  # read from disk, so free
    call: str = ""  # the key under which the call is kept on disk, if it is
    confidence: Confidence | None = (
        None  # if requested and the provider reports it
    )
    batch: bool = False  # answered by a batch, at its price


# Failures


class Failure(StrEnum):
    """Why a call gave no reply."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    PROVIDER_ERROR = "provider_error"


class ModelError(Exception):
    """A call that failed. The attempt records `failure` and counts as wrong."""

    billed = True  # whether the provider may charge for it; false for a refused request

    def __init__(self, failure: Failure, message: str) -> None:
        # Without `super`: pickling, as Ray does, needs the arguments as given.
        self.failure = failure
        self.message = message

    def __str__(self) -> str:
        return self.message


class Transient(ModelError):
    """A fault worth another try: a dropped connection, a 5xx, an unreadable body."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(Failure.PROVIDER_ERROR, message)
        self.retry_after = retry_after


class RateLimited(Transient):
    """The provider limits the rate of calls."""

    billed = False


def lacks_room(message: str) -> bool:
    """Whether an error means that prompt and reply exceed the model's context."""
    return _NO_ROOM.search(message) is not None


# Models


@runtime_checkable
class ChatModel(Protocol):
    """A model: a name, one call, and a way to release its resources."""

    name: str  # the `provider/name` this model was opened as
    identity: str  # its key in caches: provider, base URL, name or file hash

    async def complete(self, request: Request) -> Reply:
        """Answer one request. A `ModelError` fails the attempt, a `KaceError` the run."""

    async def aclose(self) -> None:
        """Release connections, processes and memory. Safe to call twice."""


class PerLoop(Generic[T]):
    """A value per event loop, since locks and connections belong to one."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values = WeakKeyDictionary[AbstractEventLoop, T]()

    def get(self) -> T:
        """Return the value of the running loop."""
        loop = get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]

    def pop(self) -> T | None:
        """Remove and return the value of the running loop, if it has one."""
        return self._values.pop(get_running_loop(), None)


class Wrapper:
    """A model that adds one thing to the model inside it."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name = model.name
        self.identity = model.identity

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.model.aclose()


def after_thinking(text: str) -> str:
    """Return what follows the last `</think>` or `</thinking>` of a reply."""
    return _THINKING_ENDS.split(text)[-1]


# Short questions whose reply must have a form


class AskResult(NamedTuple, Generic[T]):
    """The parsed reply to a question, and its cost."""

    value: T | None  # `None` if the call failed or no reply was usable
    calls: int  # failed ones included
    usage: Usage


async def ask(
    model: ChatModel,
    messages: Messages,
    key: AttemptKey,
    read: Callable[[str], T | None],
    retry: str,
    choices: tuple[str, ...] = (),
) -> AskResult[T]:
    """Ask at temperature zero, and once more if the reply is unusable.

    `read` parses a reply and returns `None` if it is unusable; `retry` is then added to
    the question. `choices` are all valid replies, for models that can be constrained.
    """
    *before, last = messages
    usage = Usage()
    for index in range(ASK_TRIES):
        key = replace(key, index=index)
        sampling = Sampling(0.0, ASK_TOKENS, key.sampling_seed())
        request = Request((*before, last), sampling, key, choices)
        try:
            reply = await model.complete(request)
        except ModelError:
            return AskResult(None, index + 1, usage)
        usage += reply.usage
        value = read(reply.text)
        if value is not None:
            return AskResult(value, index + 1, usage)
        # The reply is not shown again, since a problem may have dictated it.
        last = Message(last.role, f"{messages[-1].content}\n\n{retry}")
    return AskResult(None, ASK_TRIES, usage)


# Log-probabilities


LOGPROBS = {"logprobs": True, "top_logprobs": 1}
"""What a request for a chat completion adds to get them."""
FLOOR = -30.0
"""Servers write -9999 or less for a token too unlikely to report; it counts as the floor."""
ROUNDING = 1e-3  # a probability of one may come out slightly larger


def read_confidence(tokens: object) -> Confidence | None:
    """Return the confidence in the `logprobs.content` of a chat completion.

    `None` if it is unusable: some providers write 0 or -9999 everywhere.
    """
    sampled = []
    for token in tokens if isinstance(tokens, list) else ():
        value = token.get("logprob") if isinstance(token, dict) else None
        if isinstance(value, int | float) and value <= ROUNDING:
            sampled.append(max(FLOOR, min(0.0, value)))
    if not set(sampled) - {0.0, FLOOR}:
        return None
    return Confidence(round(fsum(sampled) / len(sampled), 5))
