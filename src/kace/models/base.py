"""The one protocol every model speaks, and the frozen values that cross it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from kace.models.confidence import Confidence

ASK_TRIES = 2
ASK_TOKENS = 512
_NO_ROOM = re.compile(
    r"max_(?:completion_)?tokens|max_model_len|context (?:length|limit|size|window)",
    re.IGNORECASE,
)
_THINKING_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

T = TypeVar("T")


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


Messages = tuple[Message, ...]


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

    messages: Messages
    sampling: Sampling
    attempt: AttemptKey
    choices: tuple[str, ...] = ()
    """The only replies wanted. A model that cannot be held to them ignores them: the asker still checks."""
    logprobs: bool = False
    """Whether the reply's confidence is wanted. A call is kept apart from the same without: that one has none."""
    ahead: bool = field(default=False, compare=False)
    """Whether it is sent before anybody knows that it is needed: what a batch does not answer is not asked again."""

    def digest(self, identity: str) -> str:
        """The cache key: what was asked, of which model, as which attempt."""
        messages = [[m.role.value, m.content] for m in self.messages]
        # Not `asdict`, which copies deeply and takes longer than the hash.
        parts = [
            {name: getattr(part, name) for name in part.__slots__}
            for part in (self.sampling, self.attempt)
        ]
        content: list[object] = [identity, messages, *parts]
        if self.choices:  # only then: calls recorded without choices keep their keys
            content.append(list(self.choices))
        if self.logprobs:
            content.append("logprobs")
        canonical = json.dumps(
            content, ensure_ascii=True, separators=(",", ":"), sort_keys=True
        )
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counts them."""

    input: int = 0  # all prompt tokens, cached ones included
    cached: int = 0  # prompt tokens served from a prefix cache
    output: int = 0
    written: int = 0  # prompt tokens written to a prefix cache, where that is priced apart; never also `cached`

    def __add__(self, other: Usage) -> Usage:
        prompt = self.input + other.input
        cached = self.cached + other.cached
        return Usage(
            prompt, cached, self.output + other.output, self.written + other.written
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
    seconds: float  # wall time of the call that produced the text; a cached reply keeps the original's
    cached: bool = False  # read from disk: nothing was paid
    call: str = ""  # the key under which the call is kept on disk, where it is
    confidence: Confidence | None = (
        None  # where it was asked for and the provider can tell
    )
    batch: bool = False  # answered by a batch, at the price of one


class Failure(StrEnum):
    """Why a call gave no reply."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    PROVIDER_ERROR = "provider_error"


class ModelError(Exception):
    """A call that failed for good. The attempt it belongs to records `failure` and counts as wrong."""

    billed = True  # whether its provider may send a bill all the same; not where it refused the request
    retry_after: float | None = (
        None  # seconds until another try, where the provider said so
    )

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


class RateLimited(ModelError):
    """The provider asked us to slow down."""

    billed = False

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(Failure.PROVIDER_ERROR, message)
        self.retry_after = retry_after


class Transient(ModelError):
    """A fault that another try may not meet: a dropped connection, a 5xx, an unreadable body."""

    sent = True  # whether the request left; not where there was no connection to send it on

    def __init__(self, message: str) -> None:
        super().__init__(Failure.PROVIDER_ERROR, message)


@runtime_checkable
class ChatModel(Protocol):
    """A model: a name, one call, and a way to let go of what it holds."""

    name: str  # the `provider/name` this model was opened as
    identity: str  # what distinguishes it from any other in a cache: provider, base URL, name or file hash

    async def complete(self, request: Request) -> Reply:
        """Answer one request, or raise `ModelError`; a `KaceError` (a refused key) ends the whole run."""

    async def aclose(self) -> None:
        """Release connections, processes and memory. Safe to call twice."""


@runtime_checkable
class Tokenizer(Protocol):
    """A model that can say how many tokens a text has for it."""

    async def count_tokens(self, text: str) -> int | None:
        """The number of tokens, or `None` where only the provider knows."""


class Wrapper:
    """A model that does one thing more than the model inside it."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name = model.name
        self.identity = model.identity

    async def count_tokens(self, text: str) -> int | None:
        """As the inner model counts, if it can."""
        return (
            await self.model.count_tokens(text)
            if isinstance(self.model, Tokenizer)
            else None
        )

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.model.aclose()


def chat(system: str, user: str) -> Messages:
    """The common two-message conversation."""
    return (Message(Role.SYSTEM, system), Message(Role.USER, user))


def after_thinking(text: str) -> str:
    """What a reply says once it has closed its last `</think>` or `</thinking>`."""
    return _THINKING_ENDS.split(text)[-1]


def lacks_room(words: str) -> bool:
    """Whether a server says that a prompt and the reply asked for do not fit into its model together."""
    return _NO_ROOM.search(words) is not None


def total(usages: Sequence[Usage]) -> Usage:
    """The sum of usages."""
    return sum(usages, Usage())


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A short question whose reply must have a form."""

    messages: Messages
    problem: str  # the id of the problem that the question is about
    seed: int
    tier: str  # where its calls stand among the problem's attempts
    read: Callable[
        [str], T | None
    ]  # what a reply says; nothing where it cannot be used
    again: Callable[
        [Messages, str], Messages
    ]  # the question after a reply that could not be used
    choices: tuple[
        str, ...
    ] = ()  # every reply there is, for models that can be held to them


class Heard(NamedTuple, Generic[T]):
    """What came of a question, and what it cost."""

    said: T | None  # nothing where the call failed, or no reply could be used
    calls: int  # failed ones too
    usage: Usage
    raw: tuple[str, ...]  # what the model said, word for word


async def ask(model: ChatModel, question: Question[T]) -> Heard[T]:
    """Ask at temperature zero, and once more, with the reason, where the reply has not its form."""
    messages = question.messages
    replies = list[Reply]()
    said = None
    for index in range(ASK_TRIES):
        key = AttemptKey(question.problem, question.seed, question.tier, index)
        request = Request(
            messages,
            Sampling(0.0, ASK_TOKENS, key.sampling_seed()),
            key,
            question.choices,
        )
        try:
            replies.append(await model.complete(request))
        except ModelError:
            break
        said = question.read(replies[-1].text)
        if said is not None:
            break
        messages = question.again(messages, replies[-1].text)
    return Heard(
        said,
        index + 1,
        total([reply.usage for reply in replies]),
        tuple(reply.text for reply in replies),
    )
