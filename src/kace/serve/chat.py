"""What a client asks, read at the border: strict where it matters, and refused in the shape OpenAI's clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.responses import Response

from kace.errors import DataError
from kace.models.base import Message, Role
from kace.models.budget import Caps
from kace.problem import Problem, check_problem_text
from kace.redact import one_line
from kace.web.guard import Denial

JSON = "application/json"
_CODES = {401: "invalid_api_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
MAX_MESSAGE, MAX_MESSAGES, MAX_STOPS = 1_000, 1_000, 16
LIMIT_HEADERS = {"x-kace-max-calls": "max_calls", "x-kace-max-usd": "max_usd", "x-kace-max-seconds": "max_seconds"}
READ = {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "seed"}
ABOUT_CLIENT = {"user", "safety_identifier", "metadata", "store", "service_tier", "prompt_cache_key"}
SOLVE_IGNORES = {
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", *ABOUT_CLIENT),
    *("prompt_cache_retention", "reasoning_effort", "verbosity", "parallel_tool_calls"),
}
"""About one sample, where an answer is the vote of many, or the provider. A reply lists those given."""
SOLVE_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    **{"n": (1,), "logprobs": (False,), "top_logprobs": (0,), "logit_bias": ({},)},
    **{"tools": ([],), "tool_choice": ("none", "auto"), "functions": ([],), "function_call": ("none", "auto")},
    **{"response_format": ({"type": "text"},), "modalities": (["text"],)},
    **{"audio": (), "prediction": (), "web_search_options": ()},
}
"""What a ladder cannot do, with the values that ask for nothing."""
CHAT_NEUTRAL = {**SOLVE_NEUTRAL, "top_p": (1,), "presence_penalty": (0,), "frequency_penalty": (0,), "stop": ([],)}
"""The same for a model that is asked for one reply."""
ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}


class ApiError(Exception):
    """An error that a client is told. `paid` says what the request has used up all the same."""

    def __init__(self, status: int, message: str, *, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param
        self.message = one_line(message, MAX_MESSAGE)
        self.paid: Mapping[str, object] = {}

    def body(self) -> bytes:
        """The error object, the same in a response and in an event of a stream."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        kind = self.code if self.code == "budget_exceeded" else kind
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code, **self.paid}
        return json.dumps({"error": error}, ensure_ascii=False).encode()


def bad_request(message: str, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """A request that cannot be answered as it is."""
    return ApiError(400, message, code=code, param=param)


def denied(denial: Denial) -> Response:
    """What the guard denies, in the same shape."""
    error = ApiError(denial.status, denial.message, code=_CODES.get(denial.status, "bad_request"))
    return Response(error.body(), denial.status, media_type=JSON)


class RequestLimits(BaseModel):
    """Caps on one request; `None` is no cap."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_calls: int | None = Field(default=None, ge=1)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def least(self, other: RequestLimits) -> RequestLimits:
        """Both caps hold, so the lower one does."""
        ours, theirs = self.model_dump(exclude_none=True), other.model_dump(exclude_none=True)
        return RequestLimits(**{name: min(cap, theirs.get(name, cap)) for name, cap in {**theirs, **ours}.items()})

    def caps(self) -> Caps:
        """The part that a ledger holds."""
        return Caps(self.max_calls, self.max_usd)


class _ContentPart(BaseModel):
    type: str
    text: str = ""


class ChatMessage(BaseModel):
    """One turn."""

    role: str
    content: str | list[_ContentPart] | None = None

    def text(self) -> str:
        """What it says; `ApiError` for what is not text."""
        if self.role not in ROLES:
            raise bad_request(f"messages of role '{self.role[:40]}' cannot be solved", param="messages")
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                message = f"only text can be solved, not '{part.type[:40]}'"
                raise bad_request(message, param="messages", code="unsupported_content")
        return "\n".join(part.text for part in self.content)


class _StreamOptions(BaseModel):
    include_usage: bool | None = None  # at the end of a stream


class ChatBody(BaseModel):
    """What is read of a request's body."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = Field(default=None, strict=True)
    stream_options: _StreamOptions = _StreamOptions()
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: str | list[str] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    kace: RequestLimits | None = None

    @property
    def token_cap(self) -> int | None:
        """Tokens that one reply may have."""
        return self.max_completion_tokens or self.max_tokens


class SolveRequest(NamedTuple):
    """One request to solve."""

    problem: Problem
    body: ChatBody
    limits: RequestLimits
    ignored: tuple[str, ...] = ()  # parameters that were given and changed nothing


def read_json(body: bytes) -> Mapping[str, object]:
    """The object a body holds, which names a model."""
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise bad_request(f"the body is a {type(raw).__name__}, not an object")
    if not isinstance(raw.get("model"), str) or not raw["model"]:
        raise bad_request("'model' must name a model: kace", param="model")
    return raw


def read_solve(raw: Mapping[str, object], headers: Mapping[str, str]) -> SolveRequest:
    """A request to solve. Raises `ApiError` for what no ladder can do, by name."""
    body = _read_body(raw, READ | {"stop", "kace"} | SOLVE_IGNORES, SOLVE_NEUTRAL)
    try:
        in_headers = {name: headers[header] for header, name in LIMIT_HEADERS.items() if header in headers}
        limits = RequestLimits.model_validate(in_headers).least(body.kace or RequestLimits())
    except ValidationError as error:
        raise _refused(error, in_header=True) from None
    ignored = sorted(name for name in SOLVE_IGNORES if raw.get(name) is not None)
    return SolveRequest(_problem(body), body, limits, tuple(ignored))


def read_chat(raw: Mapping[str, object]) -> tuple[ChatBody, tuple[Message, ...]]:
    """A request for one reply. Raises `ApiError` for what the model cannot do, by name."""
    body = _read_body(raw, READ | {"temperature"} | ABOUT_CLIENT, CHAT_NEUTRAL)
    return body, tuple(Message(ROLES.get(message.role, Role.USER), message.text()) for message in body.messages)


def _read_body(raw: Mapping[str, object], known: set[str], neutral: Mapping[str, tuple[object, ...]]) -> ChatBody:
    """The body, if it asks for nothing but what is `known`, or what is `neutral` and asks for nothing."""
    given = {name: value for name, value in raw.items() if value is not None}
    for name, value in given.items():
        if name in neutral and value not in neutral[name]:
            one_vote = "'n' cannot be more than 1: the answer is one vote over many attempts"
            cannot = one_vote if name == "n" else f"'{name}' cannot be honoured: a solve gives one answer in text"
            raise bad_request(cannot, param=name, code="unsupported_parameter")
        if name not in neutral and name not in known:
            raise bad_request(f"unknown parameter '{name[:60]}'", param=name[:60], code="unknown_parameter")
    try:
        return ChatBody.model_validate(given)
    except ValidationError as error:
        raise _refused(error) from None


def _problem(body: ChatBody) -> Problem:
    """The last user message, after whatever was said before it."""
    turns = [(message.role, message.text()) for message in body.messages]
    last = max((position for position, (role, _) in enumerate(turns) if role == "user"), default=None)
    if last is None or not turns[last][1].strip():
        raise bad_request("there is no problem: the last user message is it, and it must have text", param="messages")
    if any(role == "assistant" for role, _ in turns[last + 1 :]):
        raise bad_request("a reply cannot be begun for the solver: end with a user message", param="messages")
    parts = [text for role, text in turns if role in ("system", "developer")]
    if earlier := [f"{role.capitalize()}: {text}" for role, text in turns[:last] if role in ("user", "assistant")]:
        parts += ["Earlier in this conversation:", *earlier]
    text = "\n\n".join(part.strip() for part in (*parts, turns[last][1]) if part.strip())
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise bad_request(error.message, param="messages") from None
    return Problem(text)


def _refused(error: ValidationError, *, in_header: bool = False) -> ApiError:
    """What is wrong first; where it is in the body, `param` says where."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    in_kace = first["loc"][:1] == ("kace",)
    place = "a header X-Kace-Max-..." if in_header else "the field 'kace'"
    takes = f"{place} takes {', '.join(LIMIT_HEADERS.values())}: " if in_header or in_kace else ""
    param = where if in_kace else where.partition(".")[0]
    return bad_request(f"{takes}'{where}': {first['msg'].lower()}", param=None if in_header else param or None)
