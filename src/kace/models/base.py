"""The one protocol every model speaks, and the frozen values that cross it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable


class Role(StrEnum):
    """Who speaks a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn. `seed` differs for every attempt, so no server can repeat a sample."""

    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Which attempt a request is: what keeps repeated samples apart in every cache."""

    problem: str
    seed: int
    tier: str
    index: int

    def sampling_seed(self) -> int:
        """A 31-bit seed that any server accepts, the same on every machine."""
        text = f"{self.problem}\x1f{self.seed}\x1f{self.tier}\x1f{self.index}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a model is asked."""

    messages: tuple[Message, ...]
    sampling: Sampling
    attempt: AttemptKey
    choices: tuple[str, ...] = ()
    """Where given, the reply should be exactly one of these texts. A model that can, is held to them while it writes;
    one that cannot, ignores them, so whoever asks still checks the reply."""

    def digest(self, identity: str) -> str:
        """The cache key: what was asked, of which model, as which attempt."""
        content: list[object] = [
            identity,
            [[m.role.value, m.content] for m in self.messages],
            asdict(self.sampling),
            asdict(self.attempt),
        ]
        if self.choices:  # only then: calls recorded without choices keep their keys
            content.append(list(self.choices))
        canonical = json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counts them."""

    input: int = 0
    """All prompt tokens, cached ones included."""
    cached: int = 0
    """Prompt tokens served from a prefix cache."""
    output: int = 0
    written: int = 0
    """Prompt tokens written to a prefix cache, where the provider prices that apart. Never also `cached`."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            output=self.output + other.output,
            written=self.written + other.written,
        )


class Finish(StrEnum):
    """Why a model stopped writing."""

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said."""

    text: str
    finish: Finish
    usage: Usage
    seconds: float
    """Wall time of the call that produced the text; a cached reply keeps the original's."""
    cached: bool = False
    """True when this reply was read from disk and nothing was paid."""
    call: str = ""
    """The key under which the call is kept on disk, where it is."""


class Failure(StrEnum):
    """Why a call gave no reply."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    PROVIDER_ERROR = "provider_error"


class ModelError(Exception):
    """A call that failed for good. The attempt it belongs to records `failure` and counts as wrong."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


class RateLimited(ModelError):
    """The provider asked us to slow down; `retry_after` is in seconds when it said for how long."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(Failure.PROVIDER_ERROR, message)
        self.retry_after = retry_after


class Transient(ModelError):
    """A fault that another try may not meet: a dropped connection, a 5xx, an unreadable body."""

    def __init__(self, message: str) -> None:
        super().__init__(Failure.PROVIDER_ERROR, message)


@runtime_checkable
class ChatModel(Protocol):
    """A model: a name, one call, and a way to let go of what it holds.

    `complete` returns a `Reply` or raises `ModelError`; it raises `kace.errors.KaceError` only for what the
    operator must mend (an unknown model, a refused key), which ends the whole run.
    """

    @property
    def name(self) -> str:
        """The `provider/name` this model was opened as."""
        ...

    @property
    def identity(self) -> str:
        """What distinguishes this model from any other in a cache: provider, base URL, name or file hash."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Answer one request."""
        ...

    async def aclose(self) -> None:
        """Release connections, processes and memory. Safe to call twice."""
        ...


@runtime_checkable
class Tokenizer(Protocol):
    """A model that can say how many tokens a text has for it."""

    async def count_tokens(self, text: str) -> int | None:
        """The number of tokens, or `None` where only the provider knows."""
        ...


class Wrapper:
    """A model that does one thing more than the model inside it."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.model.name

    @property
    def identity(self) -> str:
        """The inner model's identity."""
        return self.model.identity

    async def count_tokens(self, text: str) -> int | None:
        """As the inner model counts, if it can."""
        return await self.model.count_tokens(text) if isinstance(self.model, Tokenizer) else None

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.model.aclose()


def chat(system: str, user: str) -> tuple[Message, ...]:
    """The common two-message conversation."""
    return (Message(Role.SYSTEM, system), Message(Role.USER, user))


def total(usages: Sequence[Usage]) -> Usage:
    """The sum of usages."""
    return sum(usages, Usage())
