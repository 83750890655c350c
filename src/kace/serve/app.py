"""The ladder as an OpenAI-compatible endpoint.

One model and one session serve all requests; each has a ledger of its own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import secrets
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
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
from kace.config import Caps, Config, TierSampling
from kace.errors import (
    BudgetExceeded,
    DataError,
    KaceError,
    counted,
    one_line,
    redact,
    without_secrets,
)
from kace.files import LineLog, inside
from kace.ladder.ladder import ContextSource, Kit, Silent, solve
from kace.ladder.prompt import Context
from kace.ladder.record import Attempt, Outcome, Solution, boxed
from kace.ladder.session import Session, open_session
from kace.ladder.tiers import TierName
from kace.models import open_model
from kace.models.base import ChatModel, Usage
from kace.models.budget import Ledger
from kace.models.cache import CallRecord, CallStore
from kace.problems import VERDICTS, Problem, check_problem_text
from kace.report.server import Denial, Guard, Port, Ready, serve
from kace.runs.manifest import manifest_of
from kace.runs.run import Run

log = logging.getLogger(__name__)

SOLVER = "kace"
JSON = "application/json"
MAX_BODY = 2_000_000
MAX_MESSAGES = 1_000
MAX_WAITING = 1_000  # a client gives up before a longer queue has moved
MAX_ANSWER = 60
HEARTBEAT_SECONDS = 15.0
# A comment, which clients skip and which keeps connections open.
HEARTBEAT = b": still climbing\n\n"

_REPLY_ID = re.compile(r"chatcmpl-[0-9a-f]+-([0-9a-f]{16})-(-?[0-9]{1,19})")

OnStep = Callable[[str], None]
"""Gets one line for people per step of a climb."""
T = TypeVar("T")
B = TypeVar("B", bound="_Body")


# Requests


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
        self.message = one_line(message, 1_000)
        self.param = param
        self.status = status
        self.code = code
        self.paid: Mapping[str, object] = {}

    def body(self) -> bytes:
        """Return the error object, the same in a response and in an event."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {
            "message": self.message,
            "type": kind,
            "param": self.param,
            "code": self.code,
            **self.paid,
        }
        return _encode({"error": error})

    def response(self) -> Response:
        """Return the error as a response.

        Clients retry by status. Failed calls were retried here already, so only a server
        that was too busy to start wants a retry.
        """
        headers = {"x-should-retry": "false"}
        if self.status == 429:
            headers = {"retry-after": "5"}
        return Response(self.body(), self.status, headers, JSON)


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


class _Part(BaseModel):
    type: str
    text: str = ""


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    def text(self) -> str:
        """Return the text. Raises `ApiError` for anything but text."""
        if self.role not in ("system", "developer", "user", "assistant"):
            message = f"messages of role '{self.role[:40]}' cannot be solved"
            raise ApiError(message, "messages")
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                message = f"only text can be solved, not '{part.type[:40]}'"
                raise ApiError(message, "messages", code="unsupported_content")
        return "\n".join(part.text for part in self.content)


class _StreamOptions(BaseModel):
    include_usage: bool = False


class _Body(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: part for name, part in given.items() if part is not None}


class ChatBody(_Body):
    """The parts of a request body that are read, and the others."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    messages: list[_Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool = Field(default=False, strict=True)
    stream_options: _StreamOptions = _StreamOptions()
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    n: int = Field(default=1, ge=1, le=1)  # one vote over many attempts
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: str | list[str] = []
    kace: RequestLimits = RequestLimits()

    def ignored(self) -> list[str]:
        """Return the parameters that are ignored; refuse what a ladder cannot honour."""
        ignored = []
        for name, value in (self.model_extra or {}).items():
            if name in IGNORED:
                ignored.append(name)
            elif value not in NEUTRAL:
                raise ApiError(
                    f"'{name[:60]}' cannot be honoured: a solve gives one answer in text",
                    name[:60],
                    code="unsupported_parameter",
                )
        return sorted(ignored)


class VerdictBody(_Body):
    """What a client knows of a reply: whether it was right, or the right answer."""

    id: str = Field(max_length=200)
    right: bool | None = Field(default=None, strict=True)
    answer: str | None = Field(default=None, min_length=1, max_length=1_000)


def read_body(body: bytes, kind: type[B]) -> B:
    """Return the object of a JSON body. Raises `ApiError`."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ApiError(
            f"'{where or 'body'}': {first['msg'].lower()}",
            where.partition(".")[0] or None,
        ) from None


def problem_of(body: ChatBody) -> Problem:
    """Return the last user message, after the text of earlier messages."""
    turns = [(message.role, message.text()) for message in body.messages]
    role, last = turns.pop()
    if role != "user" or not last.strip():
        message = (
            "there is no problem: the last message must be a user's, with text"
        )
        raise ApiError(message, "messages")
    parts = [text for role, text in turns if role in ("system", "developer")]
    earlier = []
    for role, text in turns:
        if role in ("user", "assistant"):
            earlier.append(f"{role.capitalize()}: {text}")
    if earlier:
        parts += ["Earlier in this conversation:", *earlier]
    parts.append(last)
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    try:
        check_problem_text(text, "messages")
    except DataError as error:
        raise ApiError(error.message, "messages") from None
    return Problem(text)


# Replies


class Completion(NamedTuple):
    """The reply to a client. `kace` holds what OpenAI's format has no place for."""

    content: str
    usage: Usage
    kace: Mapping[str, object] = {}


class ReplyWriter:
    """Writes a completion in OpenAI's format, in one piece or as events."""

    def __init__(self, body: ChatBody, name: str) -> None:
        self._include_usage = body.stream_options.include_usage
        self._head = {
            "id": name,
            "created": int(time.time()),
            "model": body.model,  # as the client named it
        }

    def whole(self, completion: Completion) -> bytes:
        """Return the completion in one piece."""
        message = {
            "role": "assistant",
            "content": completion.content,
            "refusal": None,
        }
        return self._object(
            "chat.completion",
            {"message": message, "finish_reason": "stop"},
            usage=_usage(completion.usage),
            kace=completion.kace,
        )

    def opening(self) -> bytes:
        """Return the first event."""
        return self._chunk({"role": "assistant", "content": ""})

    def step(self, text: str) -> bytes:
        """Return the event of a step."""
        return self._chunk({"reasoning_content": f"{text}\n"})

    def closing(self, completion: Completion) -> bytes:
        """Return the last events: the content, its details and the usage."""
        events = self._chunk({"content": completion.content})
        events += self._chunk({}, "stop", kace=completion.kace)
        if self._include_usage:
            usage = _usage(completion.usage)
            events += self._chunk({}, choices=[], usage=usage)
        return events + event(b"[DONE]")

    def _chunk(
        self,
        delta: Mapping[str, object],
        finish: str | None = None,
        **fields: object,
    ) -> bytes:
        if self._include_usage:
            fields = {"usage": None, **fields}
        choice = {"delta": delta, "finish_reason": finish}
        return event(self._object("chat.completion.chunk", choice, **fields))

    def _object(
        self, kind: str, choice: Mapping[str, object], **fields: object
    ) -> bytes:
        whole = {"index": 0, "logprobs": None, **choice}
        body = {**self._head, "object": kind, "choices": [whole], **fields}
        return _encode(body)


def event(data: bytes) -> bytes:
    """Return data as one event of a stream."""
    return b"data: " + data + b"\n\n"


def _usage(usage: Usage) -> dict[str, object]:
    """Return tokens as a completion counts them."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _encode(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


# The server


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server solves with, which requests it accepts, and their caps."""

    config: Config
    tree: EpistemicTree | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
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
            expire=service.expire,
            stop=stop,
        )


@asynccontextmanager
async def open_service(
    options: ServerOptions, model: ChatModel | None = None
) -> AsyncIterator[SolveService]:
    """Open what solves requests. A model that is given stays the caller's to close."""
    config = options.config
    async with AsyncExitStack() as stack:
        if model is None:
            model = open_model(config)
            stack.push_async_callback(model.aclose)
        Ledger(options.limits.caps(), config.prices).require_price(model.name)
        record = None
        if options.record:
            record = stack.enter_context(
                Record(options.record, config, options.tree)
            )
        # The caps of the configuration hold per request; the session has none.
        unlimited = config.model_copy(
            update={"max_calls": None, "max_usd": None}
        )
        session = await stack.enter_async_context(
            open_session(unlimited, model=model, tree=options.tree)
        )
        yield SolveService(session, options.limits, record)


def disable_full_collections() -> None:
    """Collect garbage among young objects only, in a process that only serves.

    With 200 clients a full collection takes 30 ms, by default several times a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 1_500, 10)


def create_app(service: SolveService, options: ServerOptions) -> ASGIApp:
    """Return the endpoint behind its guard."""
    served = options.config.model
    names = list(dict.fromkeys((SOLVER, served, served.partition("/")[2])))

    async def health(request: Request) -> Response:
        if service.closing:
            return Response(b'{"status": "stopping"}', 503, media_type=JSON)
        return Response(b'{"status": "ok"}', media_type=JSON)

    async def home(request: Request) -> Response:
        lines = (
            f"kace is running with {served}",
            "chat completions: /v1/chat/completions",
        )
        return PlainTextResponse("\n".join(lines) + "\n")

    async def list_models(request: Request) -> Response:
        models = []
        for name in names:
            model = {"id": name, "object": "model", "created": 0}
            models.append({**model, "owned_by": SOLVER})
        body = _encode({"object": "list", "data": models})
        return Response(body, media_type=JSON)

    async def chat(request: Request) -> Response:
        return await _answer(service, names, request)

    async def verdict(request: Request) -> Response:
        given = read_body(await request.body(), VerdictBody)
        return Response(_encode(service.keep_verdict(given)), media_type=JSON)

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/kace/verdict", verdict, methods=["POST"]),
            Route("/v1/models", list_models),
            Route("/healthz", health),
            Route("/", home),
        ],
        exception_handlers={HTTPException: _render_missing, ApiError: _render},
    )
    return Guard(
        app,
        options.key,
        max_body=MAX_BODY,
        open_paths={"/healthz"},
        render=_render_denial,
        on_answer=options.on_answer,
    )


_CODES = {
    401: "invalid_api_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
}


def _render(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error.response()


def _render_denial(denial: Denial) -> Response:
    code = _CODES.get(denial.status, "bad_request")
    return ApiError(denial.message, status=denial.status, code=code).response()


def _render_missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _render_denial(Denial(error.status_code, error.detail))


async def _answer(
    service: SolveService, names: Sequence[str], request: Request
) -> Response:
    """Answer a request. Its solve is cancelled when its client disconnects."""
    body = read_body(await request.body(), ChatBody)
    if body.model not in names:
        raise ApiError(
            f"there is no model '{body.model[:80]}' here: use 'kace'",
            "model",
            status=404,
            code="model_not_found",
        )
    problem = problem_of(body)
    service.check(body)
    if body.stream:
        # With this header proxies pass events on as they come.
        headers = {"x-accel-buffering": "no"}
        events = _stream(service, problem, body)
        return StreamingResponse(
            events, headers=headers, media_type="text/event-stream"
        )
    done = await _while_connected(request.receive, service.solve(problem, body))
    if done is None:
        return Response(status_code=499)
    writer = ReplyWriter(body, service.reply_id(problem, body))
    return Response(writer.whole(done), media_type=JSON)


async def _stream(
    service: SolveService, problem: Problem, body: ChatBody
) -> AsyncIterator[bytes]:
    """Yield the events of a solve, and a heartbeat while none come."""
    steps: asyncio.Queue[str | None] = asyncio.Queue()
    work = service.solve(problem, body, steps.put_nowait)
    solving = asyncio.ensure_future(work)
    solving.add_done_callback(lambda _: steps.put_nowait(None))
    writer = ReplyWriter(body, service.reply_id(problem, body))
    try:
        yield writer.opening()
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    step = await steps.get()
            except TimeoutError:
                yield HEARTBEAT
                continue
            if step is None:
                break
            yield writer.step(step)
        yield writer.closing(await solving)
    except ApiError as error:
        yield event(error.body())
    finally:
        await _cancel(solving)


async def _while_connected(receive: Receive, work: Awaitable[T]) -> T | None:
    """Return what the work returns; cancel it when the client disconnects."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(disconnected())
    try:
        both = {working, leaving}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        await _cancel(working)
        await _cancel(leaving)


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait until it has ended."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # else asyncio logs it as never retrieved


# Solving


class SolveService:
    """Solves requests side by side, each within its limits."""

    def __init__(
        self,
        session: Session,
        limits: RequestLimits,
        record: Record | None = None,
    ) -> None:
        self.session = session
        price = session.ledger.price(session.kit.model.name)
        self._priced = price is not None
        self.waiting = 0
        self.closing = False
        self._limits = limits
        self._record = record
        self._plain = session.kit.sampling
        self._clocks: set[asyncio.Timeout] = set()
        self._places = asyncio.Semaphore(session.window)

    def check(self, body: ChatBody) -> None:
        """Refuse a request that cannot start. Raises `ApiError`."""
        body.ignored()
        if body.kace.max_usd is not None and not self._priced:
            message = (
                "max_usd needs a price for the model, and this server has none"
            )
            raise ApiError(message, "kace.max_usd")
        if self.waiting >= MAX_WAITING:
            message = f"{MAX_WAITING:,} requests are waiting already"
            raise ApiError(message, status=429, code="busy")

    async def solve(
        self,
        problem: Problem,
        body: ChatBody,
        on_step: OnStep = lambda text: None,
    ) -> Completion:
        """Solve the problem of one request. Raises `ApiError`, with what was paid."""
        limits = self._limits.least(body.kace)
        ledger = self.session.ledger
        bill = Ledger(limits.caps(), ledger.prices, uncounted=ledger.uncounted)
        try:
            async with self._within(limits.max_seconds), self._place(on_step):
                solution = await self._solve(problem, body, bill, on_step)
            if solution.answer is None and _all_failed(solution):
                reason = solution.made[-1].detail or "no reply"
                raise ApiError(
                    f"the model failed every attempt ({reason})",
                    status=502,
                    code="upstream_failed",
                )
        except (ApiError, KaceError) as error:
            failure = _as_api_error(error)
            failure.paid = {
                "kace": _cost(bill, self._priced),
                "usage": _usage(bill.usage),
            }
            raise failure from None
        details = {
            **_details(solution),
            **_cost(bill, self._priced),
            "seconds": round(solution.seconds, 3),
            "seed": solution.seed,
            "ignored": body.ignored(),
        }
        return Completion(_content(body, solution), bill.usage, details)

    def reply_id(self, problem: Problem, body: ChatBody) -> str:
        """Return an id of a reply. If the solve is recorded, it names problem and seed."""
        name = f"chatcmpl-{secrets.token_hex(8)}"
        if self._record is None or self._sampling(body) != self._plain:
            return name
        kept = Problem(without_secrets(problem.text))
        seed = self.session.kit.seed if body.seed is None else body.seed
        return f"{name}-{kept.id}-{seed}"

    def keep_verdict(self, verdict: VerdictBody) -> Mapping[str, object]:
        """Record whether a reply was right, or the right answer. Raises `ApiError`."""
        if (verdict.right is None) == (verdict.answer is None):
            raise ApiError("give either 'right' or 'answer'", "right")
        found = _REPLY_ID.fullmatch(verdict.id)
        record = self._record
        solution = None
        if found and record:
            solution = record.solution(found[1], int(found[2]))
        if not record or not solution:
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
        try:
            record.keep_verdict(row)
        except (KaceError, OSError) as error:
            log.warning("%s", redact(str(error)))
            message = "the verdict could not be written"
            raise ApiError(message, status=503, code="not_recorded") from None
        return {"object": "kace.verdict", "id": verdict.id, **row}

    def expire(self) -> None:
        """End every request under way with an error."""
        self.closing = True
        for clock in list(self._clocks):
            clock.reschedule(asyncio.get_running_loop().time())

    async def _solve(
        self, problem: Problem, body: ChatBody, bill: Ledger, on_step: OnStep
    ) -> Solution:
        kit = self._kit(body, bill, on_step)
        if self._record is None:
            return await solve(problem, kit)
        problem = self._record.keep_problem(problem)
        solution = await solve(problem, kit)
        # A solve with other sampling is not what the run says.
        if kit.sampling == self._plain:
            self._record.keep_solution(solution)
        return solution

    def _kit(self, body: ChatBody, bill: Ledger, on_step: OnStep) -> Kit:
        """Return the kit of one request, whose calls are entered on its bill."""
        calls = self._record.calls if self._record else None
        kit = self.session.billed(bill, calls, body.seed)
        reporter = Reporter(kit.source, on_step)
        return replace(
            kit,
            sampling=self._sampling(body),
            source=reporter,
            observer=reporter,
        )

    def _sampling(self, body: ChatBody) -> Mapping[str, TierSampling]:
        """Return the tiers' sampling, with the request's cap on tokens."""
        cap = body.max_completion_tokens or body.max_tokens
        if cap is None:
            return self._plain
        sampling = {}
        for tier, draw in self._plain.items():
            most = min(draw.max_tokens, cap)
            sampling[tier] = replace(draw, max_tokens=most)
        return sampling

    @asynccontextmanager
    async def _within(self, seconds: float | None) -> AsyncIterator[None]:
        """Run within a time limit. Raises `ApiError` when it is over."""
        try:
            async with asyncio.timeout(0 if self.closing else seconds) as clock:
                self._clocks.add(clock)
                try:
                    yield
                finally:
                    self._clocks.discard(clock)
        except TimeoutError:
            error = ApiError(
                f"not solved within {seconds or 0:g} s",
                status=504,
                code="budget_exceeded",
            )
            if self.closing or seconds is None:
                error = ApiError(
                    "the server is stopping", status=503, code="stopping"
                )
            raise error from None

    @asynccontextmanager
    async def _place(self, on_step: OnStep) -> AsyncIterator[None]:
        """Hold one of the places: no more problems than keep the model busy."""
        if self._places.locked():
            on_step(f"Waiting: {self.waiting} ahead.")
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._places.release()


class Reporter(Silent):
    """Reports the attempts of one solve, and what each tier reads."""

    def __init__(self, source: ContextSource | None, on_step: OnStep) -> None:
        self._source = source
        self._on_step = on_step

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """Report an attempt."""
        result = f"no answer ({attempt.outcome.value.replace('_', ' ')})"
        if attempt.answer:
            result = one_line(attempt.answer, MAX_ANSWER)
        number = attempt.index + 1
        self._on_step(f"{attempt.tier.value} attempt {number}: {result}.")

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Return what the source gives the tier; nothing without a source."""
        if before:
            self._on_step(f"Climbing to {tier.value}.")
        if self._source is None:
            return None
        found = await self._source.retrieve(problem, tier, before, earlier)
        if found is not None:
            text = f"{tier.value} reads {counted(len(found.cards), 'card')}"
            if found.cards and found.domains:
                text += f" of {' and '.join(found.domains)}"
            self._on_step(f"{text}.")
        return found


def _all_failed(solution: Solution) -> bool:
    failures = (Outcome.PROVIDER_ERROR, Outcome.TIMEOUT)
    return all(attempt.outcome in failures for attempt in solution.made)


def _as_api_error(error: ApiError | KaceError) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, BudgetExceeded):
        return ApiError(error.message, status=402, code="budget_exceeded")
    log.warning("%s", redact(str(error)))
    return ApiError(error.message, status=502, code="upstream_refused")


def _details(solution: Solution) -> dict[str, object]:
    """Return how the answer came about: the winner first, then by votes."""

    def rank(group: Any) -> tuple[int, bool, Sequence[int]]:
        others = group.answer != solution.answer
        return -len(group.positions), others, group.positions

    votes = []
    for group in sorted(solution.classes, key=rank):
        votes.append({"answer": group.answer, "votes": len(group.positions)})
    cards = {}
    for recall in solution.recalls:
        cards.update(dict.fromkeys(recall.cards))
    domains = solution.recalls[-1].domains if solution.recalls else ()
    return {
        "exit_path": solution.exit.value if solution.exit else None,
        "answer": solution.answer,
        "votes": votes,
        "cards": list(cards),
        "domains": list(domains),
        "attempts": len(solution.made),
    }


def _content(body: ChatBody, solution: Solution) -> str:
    """Return the working, or else the answer in a sentence, cut at the stop texts."""
    text = f"No answer was found in {len(solution.made)} attempts."
    if solution.answer is not None:
        text = solution.working or boxed(solution.answer)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop
    for stop in stops:
        if stop:
            text = text.split(stop, 1)[0]
    return text


def _cost(bill: Ledger, priced: bool) -> dict[str, object]:
    """Return what a request took; `usd` is `None` where a price is not known."""
    calls = {}
    tokens = {}
    for role, spent in bill.roles.items():
        usage = spent.usage
        calls[role] = spent.calls
        tokens[role] = {
            "input": usage.input,
            "cached": usage.cached,
            "output": usage.output,
        }
    usd = round(bill.usd, 6) if priced else None
    return {"calls": calls, "tokens": tokens, "usd": usd}


# The record


class Record:
    """A run that keeps what is solved. A failing disk costs the record, not answers."""

    def __init__(
        self, folder: Path, config: Config, tree: EpistemicTree | None
    ) -> None:
        self._failed = False
        self.calls = _RecordedCalls(inside(folder, "calls"), self)
        manifest = {**manifest_of(config, tree), "data": {"name": "served"}}
        self._run = Run(
            folder, manifest, calls=self.calls, texts=config.problem_texts
        )

    def keep_problem(self, problem: Problem) -> Problem:
        """Keep the text of a problem once; return it without keys of ours."""
        problem = Problem(without_secrets(problem.text))
        with self.writing():
            self._run.keep_text(problem)
        return problem

    def solution(self, problem: str, seed: int) -> Solution | None:
        """Return the solve of a problem, by its id, on a seed."""
        return self._run.solution(problem, seed)

    def keep_verdict(self, row: Mapping[str, object]) -> None:
        """Append what is known of a reply. Raises `KaceError` if it cannot be written."""
        with LineLog(self._run.folder / VERDICTS) as verdicts:
            verdicts.append(json.dumps(row, ensure_ascii=False))

    def keep_solution(self, solution: Solution) -> None:
        """Keep the first solve of a problem and seed that its provider did not fail."""
        with self.writing():
            if self._run.pending(solution.problem, solution.seed):
                self._run.keep(solution)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Continue if the disk fails, and warn once."""
        try:
            yield
        except (KaceError, OSError) as error:
            if not self._failed:
                self._failed = True
                log.warning(
                    "%s; the server continues and records what it can",
                    redact(str(error)),
                )

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        for part in (self.calls, self._run):
            with self.writing():
                part.close()


class _RecordedCalls(CallStore):
    """The calls of a record, kept as far as the disk allows."""

    def __init__(self, folder: Path, record: Record) -> None:
        super().__init__(folder)
        self._record = record

    def record(self, key: str) -> CallRecord | None:
        """Return the call kept under a key, if it can be read."""
        with self._record.writing():
            return super().record(key)
        return None

    def check_room(self) -> None:
        """Do nothing: an answer is worth its calls."""

    def put_line(self, key: str, line: str) -> None:
        """Keep a call, if it can be written."""
        with self._record.writing():
            super().put_line(key, line)
