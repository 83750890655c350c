"""OpenAI's chat completions: what a client asks, read strictly at the border, and replies, whole or as events."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.responses import Response
from starlette.types import Send

from kace.config import Caps
from kace.errors import DataError, one_line
from kace.models.base import Usage
from kace.problems import Problem, check_problem_text
from kace.report.guard import Denial

JSON = "application/json"
EVENTS = "text/event-stream"
HEARTBEAT = b": still climbing\n\n"  # a comment that clients skip and that keeps connections open
HEARTBEAT_SECONDS = 15.0
_CODES = {
    401: "invalid_api_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
}
MAX_MESSAGE = 1_000
MAX_MESSAGES = 1_000
READ = {
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "seed",
}
ABOUT_CLIENT = {
    "user",
    "safety_identifier",
    "metadata",
    "store",
    "service_tier",
    "prompt_cache_key",
}
SOLVE_IGNORES = {
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", *ABOUT_CLIENT),
    *("prompt_cache_retention", "reasoning_effort", "verbosity", "parallel_tool_calls"),
}
"""About one sample, where an answer is the vote of many, or the provider. A reply lists those given."""
SOLVE_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    **{"n": (1,), "logprobs": (False,), "top_logprobs": (0,), "logit_bias": ({},)},
    **{
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "functions": ([],),
        "function_call": ("none", "auto"),
    },
    **{"response_format": ({"type": "text"},), "modalities": (["text"],)},
    **{"audio": (), "prediction": (), "web_search_options": ()},
}
"""What a ladder cannot do, with the values that ask for nothing."""
ROLES = ("system", "developer", "user", "assistant")


class ApiError(Exception):
    """An error that a client is told. `paid` says what the request has used up all the same."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str = "invalid_value",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.message = one_line(message, MAX_MESSAGE)
        self.paid: Mapping[str, object] = {}

    def body(self) -> bytes:
        """The error object, the same in a response and in an event of a stream."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        kind = self.code if self.code == "budget_exceeded" else kind
        error = {
            "message": self.message,
            "type": kind,
            "param": self.param,
            "code": self.code,
            **self.paid,
        }
        return json.dumps({"error": error}, ensure_ascii=False).encode()


def denied(denial: Denial) -> Response:
    """What the guard denies, in the same shape."""
    error = ApiError(
        denial.message,
        status=denial.status,
        code=_CODES.get(denial.status, "bad_request"),
    )
    return Response(error.body(), denial.status, media_type=JSON)


class RequestLimits(BaseModel):
    """Caps on one request; `None` is no cap."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_calls: int | None = Field(default=None, ge=1)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def least(self, other: RequestLimits) -> RequestLimits:
        """Both caps hold, so the lower one does."""
        ours = self.model_dump(exclude_none=True)
        theirs = other.model_dump(exclude_none=True)
        return RequestLimits(
            **{
                name: min(cap, theirs.get(name, cap))
                for name, cap in {**theirs, **ours}.items()
            }
        )

    def caps(self) -> Caps:
        """The part that a ledger holds."""
        return Caps(self.max_calls, self.max_usd)


class _ContentPart(BaseModel):
    type: str
    text: str = ""


class _ChatMessage(BaseModel):
    role: str
    content: str | list[_ContentPart] | None = None

    def text(self) -> str:
        """What it says; `ApiError` for what is not text."""
        if self.role not in ROLES:
            raise ApiError(
                f"messages of role '{self.role[:40]}' cannot be solved", "messages"
            )
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if other := next(
            (part.type for part in self.content if part.type != "text"), None
        ):
            raise ApiError(
                f"only text can be solved, not '{other[:40]}'",
                "messages",
                code="unsupported_content",
            )
        return "\n".join(part.text for part in self.content)


class _StreamOptions(BaseModel):
    include_usage: bool | None = None  # at the end of a stream


class ChatBody(BaseModel):
    """What is read of a request's body; `extra` parameters are known, and change nothing."""

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
        """Tokens that one reply may have."""
        return self.max_completion_tokens or self.max_tokens


def read_json(body: bytes) -> Mapping[str, object]:
    """The object a body holds, which names a model."""
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise ApiError(f"the body is a {type(raw).__name__}, not an object")
    if not isinstance(raw.get("model"), str) or not raw["model"]:
        raise ApiError("'model' must name a model: kace", "model")
    return raw


def read_solve(
    raw: Mapping[str, object], headers: Mapping[str, str]
) -> tuple[Problem, ChatBody]:
    """A request to solve, with the caps of its headers, too. Raises `ApiError` for what no ladder can do, by name."""
    body = _read_body(raw, READ | {"stop", "kace"} | SOLVE_IGNORES, SOLVE_NEUTRAL)
    caps = {
        name: f"x-kace-{name.replace('_', '-')}" for name in RequestLimits.model_fields
    }
    try:
        limits = RequestLimits.model_validate(
            {name: headers[at] for name, at in caps.items() if at in headers}
        )
    except ValidationError as error:
        raise _refused(error, "a header X-Kace-Max-...") from None
    return _problem(body), body.model_copy(update={"kace": body.kace.least(limits)})


def _read_body(
    raw: Mapping[str, object],
    known: set[str],
    neutral: Mapping[str, tuple[object, ...]],
) -> ChatBody:
    """The body, if it asks for nothing but what is `known`, or what is `neutral` and asks for nothing."""
    given = {name: value for name, value in raw.items() if value is not None}
    for name, value in given.items():
        if name in neutral and value not in neutral[name]:
            one_vote = (
                "'n' cannot be more than 1: the answer is one vote over many attempts"
            )
            cannot = (
                one_vote
                if name == "n"
                else f"'{name}' cannot be honoured: a solve gives one answer in text"
            )
            raise ApiError(cannot, name, code="unsupported_parameter")
        if name not in neutral and name not in known:
            raise ApiError(
                f"unknown parameter '{name[:60]}'", name[:60], code="unknown_parameter"
            )
    try:
        return ChatBody.model_validate(given)
    except ValidationError as error:
        raise _refused(error) from None


def _problem(body: ChatBody) -> Problem:
    """The last user message, after whatever was said before it."""
    turns = [(message.role, message.text()) for message in body.messages]
    last = max(
        (position for position, (role, _) in enumerate(turns) if role == "user"),
        default=None,
    )
    if last is None or not turns[last][1].strip():
        raise ApiError(
            "there is no problem: the last user message is it, and it must have text",
            "messages",
        )
    if any(role == "assistant" for role, _ in turns[last + 1 :]):
        raise ApiError(
            "a reply cannot be begun for the solver: end with a user message",
            "messages",
        )
    parts = [text for role, text in turns if role in ("system", "developer")]
    if earlier := [
        f"{role.capitalize()}: {text}"
        for role, text in turns[:last]
        if role in ("user", "assistant")
    ]:
        parts += ["Earlier in this conversation:", *earlier]
    text = "\n\n".join(
        part.strip() for part in (*parts, turns[last][1]) if part.strip()
    )
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise ApiError(error.message, "messages") from None
    return Problem(text)


def _refused(error: ValidationError, header: str = "") -> ApiError:
    """What is wrong first; where it is in the body, `param` says where."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    in_kace = first["loc"][:1] == ("kace",)
    place = header or ("the field 'kace'" if in_kace else "")
    takes = f"{place} takes {', '.join(RequestLimits.model_fields)}: " if place else ""
    param = where if in_kace else where.partition(".")[0]
    return ApiError(
        f"{takes}'{where}': {first['msg'].lower()}", None if header else param or None
    )


class HttpReply:
    """Sends one HTTP response; remembers its status, which is 0 while nothing has been sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def start(
        self, status: int, kind: str, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Send the head."""
        self.status = status
        raw = [
            (name.encode(), value.encode("latin-1"))
            for name, value in (*headers, ("content-type", kind))
        ]
        await self._send(
            {"type": "http.response.start", "status": status, "headers": raw}
        )

    async def send(self, chunk: bytes, *, more: bool = True) -> None:
        """Send a piece of the body: the last one where there is no `more`."""
        await self._send(
            {"type": "http.response.body", "body": chunk, "more_body": more}
        )

    async def whole(
        self,
        status: int,
        body: bytes,
        kind: str = JSON,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Send everything at once."""
        await self.start(status, kind, (*headers, ("content-length", str(len(body)))))
        await self.send(body, more=False)


class Completion(NamedTuple):
    """What a client gets."""

    content: str
    usage: Usage
    finish: str = "stop"
    kace: Mapping[str, object] | None = (
        None  # what the ladder says besides; OpenAI's clients leave it alone
    )


class SseWriter:
    """Writes one completion as OpenAI's clients read it, in events or in one piece."""

    def __init__(self, body: ChatBody) -> None:
        """The model is called as the client named it; usage ends a stream where the client wants it."""
        self._usage = {"usage": None} if body.stream_options.include_usage else {}
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,
        }

    def whole(self, completion: Completion) -> bytes:
        """The completion in one piece."""
        message = {"role": "assistant", "content": completion.content, "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": completion.finish,
        }
        return self._json(
            "chat.completion",
            [choice],
            completion.kace,
            usage=usage_json(completion.usage),
        )

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def closing(self, completion: Completion) -> bytes:
        """The last chunks: the content, why it ends, and what it cost."""
        last = self._chunk({"content": completion.content}) + self._chunk(
            {}, completion.finish, completion.kace
        )
        if self._usage:
            last += event(
                self._json(
                    "chat.completion.chunk", [], usage=usage_json(completion.usage)
                )
            )
        return last + event(b"[DONE]")

    async def steps(
        self, queue: asyncio.Queue[Mapping[str, object] | None]
    ) -> AsyncIterator[bytes]:
        """Steps up to `None` as they come, told as reasoning, those of one moment together; else a heartbeat."""
        ready: list[Mapping[str, object] | None] = []
        while None not in ready:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    ready = [await queue.get()]
            except TimeoutError:
                yield HEARTBEAT
                continue
            ready += [queue.get_nowait() for _ in range(queue.qsize())]
            yield b"".join(
                self._chunk({"reasoning_content": f"{step['text']}\n"}, kace=step)
                for step in ready
                if step
            )

    def _chunk(
        self,
        delta: Mapping[str, object],
        finish: str | None = None,
        kace: object = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event(self._json("chat.completion.chunk", [choice], kace, **self._usage))

    def _json(
        self, kind: str, choices: Sequence[object], kace: object = None, **usage: object
    ) -> bytes:
        told = {} if kace is None else {"kace": kace}
        body = {**self._head, "object": kind, "choices": choices, **usage, **told}
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def event(data: bytes) -> bytes:
    """One event of a stream."""
    return b"data: " + data + b"\n\n"


def usage_json(usage: Usage) -> dict[str, object]:
    """Tokens as a completion counts them."""
    split = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    return {
        **split,
        "total_tokens": sum(split.values()),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
