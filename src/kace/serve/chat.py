"""A chat for a model that is asked directly: the messages, and how one reply is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kace.models.base import Message, Role
from kace.serve.body import NEUTRAL, read_body, text_of

MAX_TOKENS = 2_048
"""Where a client asks for no other number."""
HONOURED = frozenset(
    ("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "seed", "temperature")
)
IGNORED = frozenset(("user", "safety_identifier", "metadata", "store", "service_tier", "prompt_cache_key"))
CHAT_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    **NEUTRAL,
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "stop": ([],),
}
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}


@dataclass(frozen=True, slots=True)
class Chat:
    """One request for one reply."""

    messages: tuple[Message, ...]
    temperature: float
    max_tokens: int
    seed: int
    stream: bool
    include_usage: bool


def read_chat(raw: Mapping[str, object]) -> Chat:
    """A request for one reply. Raises `Fault` for what the model cannot do, by name."""
    given = {name: value for name, value in raw.items() if value is not None}
    body = read_body(given, HONOURED | IGNORED, CHAT_NEUTRAL)
    messages = [Message(_ROLES.get(message.role, Role.USER), text_of(message)) for message in body.messages]
    return Chat(
        messages=tuple(messages),
        temperature=1.0 if body.temperature is None else body.temperature,
        max_tokens=body.max_completion_tokens or body.max_tokens or MAX_TOKENS,
        seed=body.seed or 0,
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and bool(body.stream_options.include_usage),
    )
