"""OpenAI's chat completions: requests, read strictly, and replies, whole or as events."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.responses import Response

from kace.config import Caps
from kace.errors import DataError, one_line
from kace.models.base import Usage
from kace.problems import Problem, check_problem_text
from kace.report.server import Denial

JSON = "application/json"
EVENTS = "text/event-stream"
# A comment, which clients skip and which keeps connections open.
HEARTBEAT = b": still climbing\n\n"
HEARTBEAT_SECONDS = 15.0
MAX_MESSAGE = 1_000
MAX_MESSAGES = 1_000
ROLES = ("system", "developer", "user", "assistant")

IGNORED = {
    "frequency_penalty",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "top_p",
    "user",
    "verbosity",
}
"""Parameters of one sample, or about the client. A reply lists those that were given."""

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "web_search_options": (),
}
"""Parameters that a ladder cannot honour, with the values that change nothing."""

_CODES = {
    401: "invalid_api_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
}


class ApiError(Exception):
    """An error for the client. `paid` is what the request has used all the same."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str = "invalid_value",
    ) -> None:
        super().__init__(message)
        self.message = one_line(message, MAX_MESSAGE)
        self.param = param
        self.status = status
        self.code = code
        self.paid: Mapping[str, object] = {}

    def body(self) -> bytes:
        """Return the error object, the same in a response and in an event."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        if self.code == "budget_exceeded":
            kind = self.code
        error = {
            "message": self.message,
            "type": kind,
            "param": self.param,
            "code": self.code,
            **self.paid,
        }
        return json.dumps({"error": error}, ensure_ascii=False).encode()


def render_denial(denial: Denial) -> Response:
    """Return the response of a request that the guard denies."""
    code = _CODES.get(denial.status, "bad_request")
    error = ApiError(denial.message, status=denial.status, code=code)
    return Response(error.body(), denial.status, media_type=JSON)


# Requests


class RequestLimits(BaseModel):
    """Caps on one request; `None` is no cap."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_calls: int | None = Field(default=None, ge=1)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def least(self, other: RequestLimits) -> RequestLimits:
        """Return the lower of both caps for each kind."""
        lowest = other.model_dump(exclude_none=True)
        for name, cap in self.model_dump(exclude_none=True).items():
            lowest[name] = min(cap, lowest.get(name, cap))
        return RequestLimits(**lowest)

    def caps(self) -> Caps:
        """Return the caps that a ledger holds."""
        return Caps(self.max_calls, self.max_usd)


class _ContentPart(BaseModel):
    type: str
    text: str = ""


class _ChatMessage(BaseModel):
    role: str
    content: str | list[_ContentPart] | None = None

    def text(self) -> str:
        """Return the text. Raises `ApiError` for anything but text."""
        if self.role not in ROLES:
            role = self.role[:40]
            raise ApiError(
                f"messages of role '{role}' cannot be solved", "messages"
            )
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                message = f"only text can be solved, not '{part.type[:40]}'"
                raise ApiError(message, "messages", code="unsupported_content")
        return "\n".join(part.text for part in self.content)


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


class ChatBody(BaseModel):
    """A request body. Further parameters are known and change nothing."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[_ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = Field(default=None, strict=True)
    stream_options: _StreamOptions = _StreamOptions()
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: str | list[str] = ""
    temperature: float | None = Field(default=None, ge=0, le=2)
    kace: RequestLimits = RequestLimits()

    @property
    def token_cap(self) -> int | None:
        """The tokens that one attempt may use."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def ignored(self) -> list[str]:
        """The given parameters that change nothing."""
        return sorted(IGNORED & self.model_fields_set)


def read_json(body: bytes) -> Mapping[str, object]:
    """Return the object of a body, which names a model. Raises `ApiError`."""
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise ApiError(f"the body is a {type(raw).__name__}, not an object")
    if not isinstance(raw.get("model"), str) or not raw["model"]:
        raise ApiError("'model' must name a model: kace", "model")
    return raw


def read_solve(raw: Mapping[str, object]) -> tuple[Problem, ChatBody]:
    """Return the problem of a request with its body.

    Raises `ApiError` for what a ladder cannot honour, by name.
    """
    known = {*ChatBody.model_fields, *IGNORED}
    given = {name: value for name, value in raw.items() if value is not None}
    for name, value in given.items():
        if name in NEUTRAL:
            if value not in NEUTRAL[name]:
                raise _unsupported(name)
        elif name not in known:
            message = f"unknown parameter '{name[:60]}'"
            raise ApiError(message, name[:60], code="unknown_parameter")
    try:
        body = ChatBody.model_validate(given)
    except ValidationError as error:
        raise _invalid(error) from None
    return _problem(body), body


def _unsupported(name: str) -> ApiError:
    message = f"'{name}' cannot be honoured: a solve gives one answer in text"
    if name == "n":
        message = "'n' cannot be more than 1: the answer is one vote over many attempts"
    return ApiError(message, name, code="unsupported_parameter")


def _invalid(error: ValidationError) -> ApiError:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = f"'{where}': {first['msg'].lower()}"
    if first["loc"][:1] == ("kace",):
        names = ", ".join(RequestLimits.model_fields)
        return ApiError(f"the field 'kace' takes {names}: {message}", where)
    return ApiError(message, where.partition(".")[0] or None)


def _problem(body: ChatBody) -> Problem:
    """Return the last user message, after the text of earlier messages."""
    turns = [(message.role, message.text()) for message in body.messages]
    users = [place for place, (role, _) in enumerate(turns) if role == "user"]
    if not users or not turns[users[-1]][1].strip():
        message = "there is no problem: the last user message must have text"
        raise ApiError(message, "messages")
    last = users[-1]
    if any(role == "assistant" for role, _ in turns[last + 1 :]):
        message = "the reply cannot be prefilled: end with a user message"
        raise ApiError(message, "messages")
    parts = [text for role, text in turns if role in ("system", "developer")]
    earlier = []
    for role, text in turns[:last]:
        if role in ("user", "assistant"):
            earlier.append(f"{role.capitalize()}: {text}")
    if earlier:
        parts += ["Earlier in this conversation:", *earlier]
    parts.append(turns[last][1])
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise ApiError(error.message, "messages") from None
    return Problem(text)


# Replies


class Step(NamedTuple):
    """One step of a climb: a line for people, and details for programs."""

    event: str
    text: str
    details: Mapping[str, object] = {}

    def as_json(self) -> dict[str, object]:
        """Return the step without empty details."""
        given = {name: value for name, value in self.details.items() if value}
        return {"event": self.event, "text": self.text, **given}


class Completion(NamedTuple):
    """The reply to a client. `kace` holds what OpenAI's format has no place for."""

    content: str
    usage: Usage
    kace: Mapping[str, object] = {}


class ReplyWriter:
    """Writes a completion in OpenAI's format, in one piece or as events."""

    def __init__(self, body: ChatBody) -> None:
        self._include_usage = bool(body.stream_options.include_usage)
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,  # as the client named it
        }

    def whole(self, completion: Completion) -> bytes:
        """Return the completion in one piece."""
        choice = {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": completion.content,
                "refusal": None,
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
        body = {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_json(completion.usage),
            "kace": completion.kace,
        }
        return _encode(body)

    def opening(self) -> bytes:
        """Return the first event."""
        return self._chunk({"role": "assistant", "content": ""})

    def closing(self, completion: Completion) -> bytes:
        """Return the last events: the content, its details and the usage."""
        events = [
            self._chunk({"content": completion.content}),
            self._chunk({}, kace=completion.kace, finish="stop"),
        ]
        if self._include_usage:
            usage = usage_json(completion.usage)
            events.append(self._event(choices=[], usage=usage))
        events.append(event(b"[DONE]"))
        return b"".join(events)

    async def steps(
        self, queue: asyncio.Queue[Step | None]
    ) -> AsyncIterator[bytes]:
        """Yield the steps of a queue up to `None`, and a heartbeat while none come."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    step = await queue.get()
            except TimeoutError:
                yield HEARTBEAT
                continue
            if step is None:
                return
            delta = {"reasoning_content": f"{step.text}\n"}
            yield self._chunk(delta, kace=step.as_json())

    def _chunk(
        self,
        delta: Mapping[str, object],
        *,
        kace: Mapping[str, object] | None = None,
        finish: str | None = None,
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish,
        }
        extra: dict[str, object] = {}
        if self._include_usage:
            extra["usage"] = None
        if kace is not None:
            extra["kace"] = kace
        return self._event(choices=[choice], **extra)

    def _event(self, **fields: object) -> bytes:
        body = {**self._head, "object": "chat.completion.chunk", **fields}
        return event(_encode(body))


def event(data: bytes) -> bytes:
    """Return data as one event of a stream."""
    return b"data: " + data + b"\n\n"


def usage_json(usage: Usage) -> dict[str, object]:
    """Return tokens as a completion counts them."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _encode(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
