"""The body of a chat completion, read at the border: strict where it matters, deaf to everything else."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kace.models.base import Finish, RateLimited, Reply, Transient, Usage
from kace.redact import one_line

_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "content_filter": Finish.FILTERED}

_Count = Annotated[int, Field(ge=0, le=10**9)]


class _Details(BaseModel):
    cached_tokens: _Count | None = None


class _Usage(BaseModel):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    prompt_tokens_details: _Details | None = None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Error(BaseModel):
    message: str = ""
    code: int | str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = []
    usage: object = None
    error: _Error | None = None


def read_reply(body: bytes, seconds: float) -> Reply:
    """The first choice of a completion. Raises `Transient` for a body that holds none."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        raise unreadable(error) from None
    choice = completion.choices[0] if completion.choices else None
    if choice is None or choice.finish_reason == "error":
        raise _fault(completion.error)
    refusal = choice.message.refusal
    return Reply(
        text=choice.message.content or refusal or "",
        # A refusal is paid for like any reply, so it comes back as one: its tokens are counted, and it is kept.
        finish=Finish.FILTERED if refusal else _FINISH.get(choice.finish_reason or "", Finish.STOP),
        usage=_usage(completion.usage),
        seconds=seconds,
    )


def unreadable(error: ValidationError) -> Transient:
    """The failure of a body that is not what it should be."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "body"
    return Transient(one_line(f"unreadable reply: {where}: {first['msg']}"))


def _fault(error: _Error | None) -> RateLimited | Transient:
    # Routers report the fault of the provider behind them inside a 200.
    if error is None:
        return Transient("unreadable reply: no choices")
    said = one_line(f"error in the reply: {error.message or error.code}")
    return RateLimited(said) if str(error.code) == "429" else Transient(said)


def _usage(raw: object) -> Usage:
    try:
        usage = _Usage.model_validate(raw)
    except ValidationError:  # absent or nonsense: no reason to lose a reply that was paid for
        return Usage()
    details = usage.prompt_tokens_details or _Details()
    return Usage(usage.prompt_tokens or 0, details.cached_tokens or 0, usage.completion_tokens or 0)
