"""The ladder as an OpenAI-compatible endpoint.

One model and one session serve all requests; each has a ledger of its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Mapping,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Receive

from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import (
    BudgetExceeded,
    DataError,
    KaceError,
    one_line,
    redact,
    without_secrets,
)
from kace.files import LineLog
from kace.ladder.ladder import Silent, solve
from kace.ladder.record import Attempt, Solution, boxed
from kace.ladder.session import Session, open_session
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.problems import VERDICTS, Problem, check_problem_text
from kace.report.server import Guard, Port, Ready, serve
from kace.runs.manifest import manifest_of
from kace.runs.run import Run

log = logging.getLogger(__name__)

SOLVER = "kace"
JSON = "application/json"
EVENT = b"data: %b\n\n"
CODES = {
    401: "invalid_api_key",
    413: "body_too_large",
}  # of the guard's denials
MAX_BODY = 2_000_000
MAX_ANSWER = 60  # characters of an answer in a step
IGNORED = {
    "frequency_penalty",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "stop",
    "store",
    "temperature",
    "top_p",
    "user",
    "verbosity",
}
"""Parameters of one sample, or about the client."""
NEUTRAL: tuple[object, ...] = (
    None,
    False,
    [],
    {},
    "none",
    "auto",
    ["text"],
    {"type": "text"},
)
"""Values with which any other parameter changes nothing."""

_REPLY_ID = re.compile(r"chatcmpl-[0-9a-f]+-([0-9a-f]{16})-(-?[0-9]{1,19})")

Fields = Mapping[str, object]
OnStep = Callable[[str], None]
"""Gets one line for people per attempt."""
T = TypeVar("T")
B = TypeVar("B", bound=BaseModel)


# Requests


class ApiError(HTTPException):
    """An error for the client."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str = "invalid_value",
    ) -> None:
        super().__init__(status, one_line(message, 1_000))
        self.param = param
        self.code = code


class _Part(BaseModel):
    type: Literal["text"]
    text: str


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    def text(self) -> str:
        """Return the text of all parts."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


class ChatBody(BaseModel):
    """The parts of a request body that are read, and the others."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[_Message] = Field(min_length=1)
    stream: bool | None = Field(default=None, strict=True)
    stream_options: dict[str, bool | None] | None = None
    n: Literal[1] | None = None  # one vote over many attempts
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)


class VerdictBody(BaseModel):
    """Whether a reply was right, or the right answer."""

    id: str = Field(max_length=200)
    right: bool | None = Field(default=None, strict=True)
    answer: str | None = Field(default=None, min_length=1, max_length=1_000)


def read_body(body: bytes, kind: type[B]) -> B:
    """Return the object of a JSON body. Raises `ApiError`."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        param = str(first["loc"][0]) if first["loc"] else None
        message = f"'{param or 'body'}': {first['msg'].lower()}"
        raise ApiError(message, param) from None


def problem_of(body: ChatBody) -> Problem:
    """Return the last user message, after the text of earlier messages.

    Raises `ApiError`, also for a parameter that a ladder cannot honour.
    """
    for name, value in (body.model_extra or {}).items():
        if name not in IGNORED and value not in NEUTRAL:
            raise ApiError(
                f"'{name[:60]}' cannot be honoured: a solve gives one answer in text",
                name[:60],
                code="unsupported_parameter",
            )
    *earlier, last = body.messages
    if last.role != "user" or not last.text().strip():
        raise ApiError(
            "there is no problem: the last message must be a user's, with text",
            "messages",
        )
    text = ""
    for message in earlier:
        if message.role in ("user", "assistant"):
            text += f"{message.role.capitalize()}: "
        text += f"{message.text().strip()}\n\n"
    text += last.text().strip()
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise ApiError(error.message, "messages") from None
    return Problem(without_secrets(text))


# Replies


class Completion(NamedTuple):
    """The reply to a client. `kace` holds what OpenAI's format has no place for."""

    content: str
    usage: Fields
    kace: Fields


def _body(head: Fields, kind: str, choice: Fields, **fields: object) -> bytes:
    """Return a completion, or a part of one, in OpenAI's format."""
    whole = {"index": 0, "logprobs": None, **choice}
    return _encode({**head, "object": kind, "choices": [whole], **fields})


def _chunk(
    head: Fields,
    delta: Fields,
    finish: str | None = None,
    **fields: object,
) -> bytes:
    """Return a part of a completion as an event of a stream."""
    kind = "chat.completion.chunk"
    choice = {"delta": delta, "finish_reason": finish}
    return EVENT % _body(head, kind, choice, **fields)


def _encode(body: Fields) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def as_denial(error: Exception) -> HTTPException:
    """Return an error as one for the client."""
    if isinstance(error, BudgetExceeded):
        return ApiError(error.message, status=402, code="budget_exceeded")
    if isinstance(error, KaceError):
        log.warning("%s", redact(str(error)))
        return ApiError(error.message, status=502, code="refused")
    assert isinstance(error, HTTPException)
    return error


def _error(error: HTTPException) -> bytes:
    """Return the error object, the same in a response and in an event."""
    status = error.status_code
    fields = {
        "message": error.detail,
        "type": "invalid_request_error" if status < 500 else "server_error",
        "param": getattr(error, "param", None),
        "code": getattr(error, "code", CODES.get(status, "bad_request")),
    }
    return _encode({"error": fields})


def _render(error: HTTPException) -> Response:
    """Return an error as a response. Failed calls were retried here already."""
    headers = {"x-should-retry": "false", **(error.headers or {})}
    return Response(_error(error), error.status_code, headers, JSON)


# The server


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server solves with, and who may use it.

    The caps of the configuration hold for each request.
    """

    config: Config
    tree: EpistemicTree | None = None
    key: str | None = None
    record: Path | None = None  # the run that keeps what is solved
    grace: float = 10.0  # seconds that open requests get at the end
    on_answer: Callable[[str], None] | None = None  # gets a line per request


async def run(
    options: ServerOptions,
    port: Port,
    *,
    ready: Ready,
    model: ChatModel | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until a signal or `stop`. A model that is given stays the caller's to close."""
    async with open_service(options, model) as service:
        await serve(
            create_app(service, options),
            port,
            ready=ready,
            grace=options.grace,
            stop=stop,
        )


@asynccontextmanager
async def open_service(
    options: ServerOptions, model: ChatModel | None = None
) -> AsyncIterator[SolveService]:
    """Open what solves requests. A model that is given stays the caller's to close."""
    config = options.config
    async with AsyncExitStack() as stack:
        # The caps of the configuration hold per request; the session has none.
        changes = {"max_calls": None, "max_usd": None, "batch": False}
        unlimited = config.model_copy(update=changes)
        session = await stack.enter_async_context(
            open_session(unlimited, model=model, tree=options.tree)
        )
        Ledger(config.caps(), config.prices).require_price(session.model.name)
        record = None
        if options.record:
            manifest = manifest_of(config, options.tree)
            manifest |= {"data": {"name": "served"}}
            record = stack.enter_context(
                Run(options.record, manifest, texts=config.problem_texts)
            )
        yield SolveService(session, config, record)


def create_app(service: SolveService, options: ServerOptions) -> ASGIApp:
    """Return the endpoint behind its guard."""
    served = options.config.model

    async def health(request: Request) -> Response:
        return Response(b'{"status": "ok"}', media_type=JSON)

    async def home(request: Request) -> Response:
        text = f"kace is running with {served}: POST /v1/chat/completions\n"
        return PlainTextResponse(text)

    async def list_models(request: Request) -> Response:
        model = {"object": "model", "owned_by": SOLVER}
        models = [{"id": SOLVER, **model}, {"id": served, **model}]
        body = _encode({"object": "list", "data": models})
        return Response(body, media_type=JSON)

    async def verdict(request: Request) -> Response:
        given = read_body(await request.body(), VerdictBody)
        return Response(_encode(service.keep_verdict(given)), media_type=JSON)

    async def refuse(request: Request, error: Exception) -> Response:
        return _render(as_denial(error))

    app = Starlette(
        routes=[
            Route(
                "/v1/chat/completions",
                partial(_answer, service),
                methods=["POST"],
            ),
            Route("/v1/kace/verdict", verdict, methods=["POST"]),
            Route("/v1/models", list_models),
            Route("/healthz", health),
            Route("/", home),
        ],
        exception_handlers={HTTPException: refuse, KaceError: refuse},
    )
    return Guard(
        app,
        options.key,
        max_body=MAX_BODY,
        open_paths={"/healthz"},
        render=_render,
        on_answer=options.on_answer,
    )


async def _answer(service: SolveService, request: Request) -> Response:
    """Answer a request. Its solve is cancelled when its client disconnects."""
    body = read_body(await request.body(), ChatBody)
    problem = problem_of(body)
    head = {
        "id": service.reply_id(problem, body.seed),
        "created": int(time.time()),
        "model": body.model,  # as the client named it
    }
    if body.stream:
        # With this header proxies pass events on as they come.
        headers = {"x-accel-buffering": "no"}
        events = _stream(service, problem, body, head)
        return StreamingResponse(
            events, headers=headers, media_type="text/event-stream"
        )
    solving = service.solve(problem, body.seed)
    done = await _while_connected(request.receive, solving)
    if done is None:
        return Response(status_code=499)
    message = {"role": "assistant", "content": done.content, "refusal": None}
    choice = {"message": message, "finish_reason": "stop"}
    reply = _body(
        head, "chat.completion", choice, usage=done.usage, kace=done.kace
    )
    return Response(reply, media_type=JSON)


async def _stream(
    service: SolveService,
    problem: Problem,
    body: ChatBody,
    head: Fields,
) -> AsyncIterator[bytes]:
    """Yield the events of a solve."""
    steps: asyncio.Queue[str | None] = asyncio.Queue()
    solving = asyncio.create_task(
        service.solve(problem, body.seed, steps.put_nowait)
    )
    solving.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        yield _chunk(head, {"role": "assistant", "content": ""})
        while (step := await steps.get()) is not None:
            yield _chunk(head, {"reasoning_content": f"{step}\n"})
        done = await solving
        yield _chunk(head, {"content": done.content})
        yield _chunk(head, {}, "stop", kace=done.kace)
        if (body.stream_options or {}).get("include_usage"):
            yield _chunk(head, {}, choices=[], usage=done.usage)
        yield EVENT % b"[DONE]"
    except (ApiError, KaceError) as error:
        yield EVENT % _error(as_denial(error))
    finally:
        solving.cancel()


async def _while_connected(
    receive: Receive, work: Coroutine[Any, Any, T]
) -> T | None:
    """Return what the work returns; cancel it when the client disconnects."""
    working = asyncio.create_task(work)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        working.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await working
    except asyncio.CancelledError:
        if not watching.done():  # the server cancels the request
            raise
        return None
    finally:
        watching.cancel()


# Solving


class SolveService:
    """Solves requests side by side, each within the caps of the configuration."""

    def __init__(
        self, session: Session, config: Config, record: Run | None
    ) -> None:
        self.session = session
        self._config = config
        self._record = record
        self._places = asyncio.Semaphore(session.window)

    async def solve(
        self,
        problem: Problem,
        seed: int | None = None,
        on_step: OnStep = lambda text: None,
    ) -> Completion:
        """Solve the problem of one request. Raises `ApiError` or `KaceError`."""
        ledger = self.session.ledger
        bill = Ledger(
            self._config.caps(), ledger.prices, uncounted=ledger.uncounted
        )
        record = self._record
        calls = None if record is None else record.calls
        kit = self.session.billed(bill, calls, seed)
        kit = replace(kit, observer=_Reporter(on_step))
        # No more problems climb at once than keep the model busy.
        async with self._places:
            if record is not None:
                record.keep_text(problem)
            solution = await solve(problem, kit)
            if record is not None and record.pending(problem.id, kit.seed):
                record.keep(solution)
        if solution.answer is None and solution.failed:
            reason = solution.made[-1].detail or "no reply"
            message = f"the model failed ({reason})"
            raise ApiError(message, status=502, code="upstream_failed")
        spent = {role: each.calls for role, each in bill.roles.items()}
        priced = bill.price(kit.model.name) is not None
        usd = round(bill.usd, 6) if priced else None
        details = {**_details(solution), "calls": spent, "usd": usd}
        used = bill.usage
        usage = {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
        }
        content = f"No answer was found in {len(solution.made)} attempts."
        if solution.answer is not None:
            content = solution.working or boxed(solution.answer)
        return Completion(content, usage, details)

    # Verdicts

    def reply_id(self, problem: Problem, seed: int | None) -> str:
        """Return an id for a reply, which names problem and seed."""
        seed = self.session.kit.seed if seed is None else seed
        return f"chatcmpl-{secrets.token_hex(8)}-{problem.id}-{seed}"

    def keep_verdict(self, verdict: VerdictBody) -> Fields:
        """Record whether a reply was right, or the right answer.

        Raises `ApiError` or `KaceError`.
        """
        if (verdict.right is None) == (verdict.answer is None):
            raise ApiError("give either 'right' or 'answer'", "right")
        found = _REPLY_ID.fullmatch(verdict.id)
        record = self._record
        solution = None
        if found and record is not None:
            solution = record.solution(found[1], int(found[2]))
        if record is None or solution is None:
            message = "no reply of this id is recorded (kace serve --record)"
            raise ApiError(message, "id", status=404, code="not_found")
        answer = verdict.answer or solution.answer
        if answer is None:
            message = "the reply had no answer: give the right one in 'answer'"
            raise ApiError(message, "right")
        row = {
            "problem": solution.problem,
            "seed": solution.seed,
            "right": verdict.right,
            "answer": without_secrets(answer),
        }
        with LineLog(record.folder / VERDICTS) as verdicts:
            verdicts.append(json.dumps(row, ensure_ascii=False))
        return {"object": "kace.verdict", "id": verdict.id, **row}


class _Reporter(Silent):
    """Reports each attempt of one solve."""

    def __init__(self, on_step: OnStep) -> None:
        self._on_step = on_step

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """Report an attempt."""
        result = f"no answer ({attempt.outcome.value.replace('_', ' ')})"
        if attempt.answer:
            result = one_line(attempt.answer, MAX_ANSWER)
        number = attempt.index + 1
        self._on_step(f"{attempt.tier.value} attempt {number}: {result}.")


def _details(solution: Solution) -> Fields:
    """Return how the answer came about: the most votes first, the winner before others."""
    groups = sorted(
        solution.classes,
        key=lambda each: (-len(each.positions), each.answer != solution.answer),
    )
    votes = []
    for group in groups:
        votes.append({"answer": group.answer, "votes": len(group.positions)})
    cards: dict[str, None] = {}
    for recall in solution.recalls:
        cards |= dict.fromkeys(recall.cards)
    return {
        "exit_path": solution.exit.value if solution.exit else None,
        "answer": solution.answer,
        "votes": votes,
        "cards": list(cards),
        "domains": list(solution.domains),
        "attempts": len(solution.made),
        "seconds": round(solution.seconds, 3),
        "seed": solution.seed,
    }
