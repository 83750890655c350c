"""The body of a reply of Anthropic's Messages API, read at the border: strict where it matters, deaf to the rest."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kace.models.base import Finish, RateLimited, Reply, Transient, Usage
from kace.models.completion import unreadable
from kace.redact import one_line

_FINISH = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.FILTERED,
}

_Count = Annotated[int, Field(ge=0, le=10**9)]


class _Block(BaseModel):
    type: str = ""
    text: str | None = None


class _Usage(BaseModel):
    input_tokens: _Count = 0
    """Neither read from a cache nor written to one."""
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    output_tokens: _Count = 0


class _Error(BaseModel):
    type: str = ""
    message: str = ""


class _Message(BaseModel):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: object = None
    error: _Error | None = None


def read_message(body: bytes, seconds: float) -> Reply:
    """The text of a message, without what the model only thought. Raises `Transient` for a body that holds none."""
    try:
        message = _Message.model_validate_json(body)
    except ValidationError as error:
        raise unreadable(error) from None
    if message.content is None:
        raise _fault(message.error)
    return Reply(
        text="".join(block.text or "" for block in message.content if block.type == "text"),
        finish=_FINISH.get(message.stop_reason or "", Finish.STOP),
        usage=_usage(message.usage),
        seconds=seconds,
    )


def _fault(error: _Error | None) -> RateLimited | Transient:
    # Gateways report the fault of the provider behind them inside a 200.
    if error is None:
        return Transient("unreadable reply: no content")
    said = one_line(f"error in the reply: {error.message or error.type}")
    return RateLimited(said) if error.type == "rate_limit_error" else Transient(said)


def _usage(raw: object) -> Usage:
    try:
        usage = _Usage.model_validate(raw)
    except ValidationError:  # absent or nonsense: no reason to lose a reply that was paid for
        return Usage()
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(usage.input_tokens + cached + written, cached, usage.output_tokens, written)
