"""A short question to a model whose reply must have a form: asked once more, with the reason, where it has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kace.models.base import AttemptKey, ChatModel, Message, ModelError, Reply, Request, Sampling, Usage, total

TRIES = 2
MAX_TOKENS = 512

T = TypeVar("T")
Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What is asked, and how a reply is read."""

    messages: Messages
    problem: str
    """The id of the problem that the question is about."""
    seed: int
    tier: str
    """Where its calls stand among the problem's attempts."""
    read: Callable[[str], T | None]
    """What a reply says; nothing where it cannot be used."""
    again: Callable[[Messages, str], Messages]
    """The question after a reply that could not be used."""
    choices: tuple[str, ...] = ()
    """Every reply there is, for models that can be held to them."""


@dataclass(frozen=True, slots=True)
class Heard(Generic[T]):
    """What came of a question, and what it cost."""

    said: T | None
    """Nothing where the call failed, or no reply could be used."""
    calls: int
    """Calls made, failed ones too."""
    usage: Usage
    raw: tuple[str, ...]
    """What the model said, word for word."""


async def ask(model: ChatModel, question: Question[T]) -> Heard[T]:
    """Ask at temperature zero, at most twice."""
    messages, replies, said = question.messages, list[Reply](), None
    for index in range(TRIES):
        key = AttemptKey(question.problem, question.seed, question.tier, index)
        request = Request(messages, Sampling(0.0, MAX_TOKENS, key.sampling_seed()), key, question.choices)
        try:
            replies.append(await model.complete(request))
        except ModelError:
            break
        said = question.read(replies[-1].text)
        if said is not None:
            break
        messages = question.again(messages, replies[-1].text)
    usage = total([reply.usage for reply in replies])
    return Heard(said, index + 1, usage, tuple(reply.text for reply in replies))
