"""The body of a chat completion request, read at the border: strict where it matters, and in the client's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from kace.serve.fault import Fault, bad_request

MAX_MESSAGES = 1_000
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
}
"""What a ladder cannot do, with the values that ask for nothing."""


class Part(BaseModel):
    """A piece of a message."""

    type: str
    text: str = ""


class ChatMessage(BaseModel):
    """One turn."""

    role: str
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    """What else a stream says."""

    include_usage: bool | None = None


class Body(BaseModel):
    """What both a solve and a chat read of a request."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = Field(default=None, strict=True)
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: str | list[str] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)


def read_json(body: bytes) -> Mapping[str, object]:
    """The object a body holds."""
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise bad_request(f"the body is a {type(raw).__name__}, not an object")
    return raw


def model_of(raw: Mapping[str, object]) -> str:
    """The model a body names."""
    model = raw.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("'model' must name a model: kace", param="model")
    return model


def read_body(given: Mapping[str, object], known: Collection[str], neutral: Mapping[str, tuple[object, ...]]) -> Body:
    """The body, if it asks for nothing but what is `known`, or what is `neutral` and asks for nothing."""
    for name, value in given.items():
        if name in neutral and value not in neutral[name]:
            raise bad_request(_cannot(name), param=name, code="unsupported_parameter")
        if name not in neutral and name not in known:
            raise bad_request(f"unknown parameter '{name[:60]}'", param=name[:60], code="unknown_parameter")
    try:
        return Body.model_validate(given)
    except ValidationError as error:
        raise _refused(error) from None


def text_of(message: ChatMessage) -> str:
    """What a message says; `Fault` for what is not text."""
    if message.role not in ("system", "developer", "user", "assistant"):
        raise bad_request(f"messages of role '{message.role[:40]}' cannot be solved", param="messages")
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    other = next((part.type for part in message.content if part.type != "text"), None)
    if other is not None:
        raise bad_request(f"only text can be solved, not '{other[:40]}'", param="messages", code="unsupported_content")
    return "\n".join(part.text for part in message.content)


def _cannot(name: str) -> str:
    if name == "n":
        return "'n' cannot be more than 1: the answer is one vote over many attempts"
    return f"'{name}' cannot be honoured: a solve gives one answer in text"


def _refused(error: ValidationError) -> Fault:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return bad_request(f"'{where}': {first['msg'].lower()}", param=str(first["loc"][0]) if first["loc"] else None)
