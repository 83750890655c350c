"""The server: one model, one session, the routes, and what happens from a request's arrival to its last byte."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as METRICS
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import KaceError
from kace.ladder.session import open_session
from kace.models import open_model
from kace.models.base import ChatModel, Reply, Wrapper
from kace.models.base import Request as ModelRequest
from kace.models.budget import Ledger
from kace.problems import Problem
from kace.report.guard import Denial, Guard, Hosts
from kace.report.server import Closing, Port, Ready, serve
from kace.serve import chat
from kace.serve.chat import (
    ApiError,
    ChatBody,
    HttpReply,
    RequestLimits,
    SseWriter,
    denied,
)
from kace.serve.record import Record
from kace.serve.solving import SolveService

SOLVER = "kace"
MAX_BODY = 2_000_000
NO_BUFFER = (
    ("x-accel-buffering", "no"),
)  # asks proxies to pass events on as they come
PAUSE = 5.0  # seconds until a model that refused is opened anew: the provider may be up by then, or the key paid for


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server solves with, whom it lets in, and what it lets one request use up."""

    config: Config
    tree: EpistemicTree | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    hosts: Hosts = field(default_factory=Hosts)
    key: str | None = None
    record: Path | None = None  # the run that keeps what is solved
    closing: Closing = field(default_factory=Closing)


async def run(
    options: ServerOptions, port: Port, *, ready: Ready, model: ChatModel | None = None
) -> None:
    """Serve until a signal. A model that is given stays the caller's to close."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_service(options, model))
        closing = replace(options.closing, expire=service.expire)
        await serve(create_app(service, options), port, ready=ready, closing=closing)


@asynccontextmanager
async def open_service(
    options: ServerOptions, model: ChatModel | None = None
) -> AsyncIterator[SolveService]:
    """What solves requests, of whatever protocol. A model that is given stays the caller's to close."""
    config = options.config
    async with AsyncExitStack() as stack:
        if model is None:
            model = ReconnectingModel(partial(open_model, config))
            stack.push_async_callback(model.aclose)
        Ledger(options.limits.caps(), config.prices).require_price(model.name)
        record = None
        if options.record:
            record = stack.enter_context(Record(options.record, config, options.tree))
        # The caps of the configuration are each request's own: the session as a whole has none.
        unlimited = config.model_copy(update={"max_calls": None, "max_usd": None})
        session = await stack.enter_async_context(
            open_session(unlimited, model=model, tree=options.tree)
        )
        yield SolveService(session, options.limits, record=record)


def create_app(service: SolveService, options: ServerOptions) -> ASGIApp:
    """The whole endpoint behind its guard."""
    served = options.config.model
    names = (SOLVER, served, served.partition("/")[2])
    models = {
        name: {"id": name, "object": "model", "created": 0, "owned_by": "kace"}
        for name in dict.fromkeys(names)
    }

    async def health(request: Request) -> Response:
        said, status = ("stopping", 503) if service.closing else ("ok", 200)
        return Response(json.dumps({"status": said}), status, media_type=chat.JSON)

    async def list_models(request: Request) -> Response:
        name = request.path_params.get("name")
        if name is not None and name not in models:
            raise HTTPException(404)
        found = (
            models[name] if name else {"object": "list", "data": list(models.values())}
        )
        return Response(json.dumps(found), media_type=chat.JSON)

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type=METRICS)

    routes = [
        Route(
            "/v1/chat/completions",
            _ChatEndpoint(service, names),
            methods=["POST"],
        ),
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", list_models),
        Route("/healthz", health),
        Route("/metrics", metrics),
    ]
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _error, Exception: _error}
    )
    free = {"/healthz"}
    return Guard(
        app,
        options.hosts,
        options.key,
        max_body=MAX_BODY,
        open_paths=free,
        cookie=False,
        render=denied,
    )


def _error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return denied(
            Denial(500, "something went wrong here; the server's log says what")
        )
    response = denied(
        Denial(
            error.status_code,
            "there is nothing here" if error.status_code == 404 else error.detail,
        )
    )
    response.headers.update(error.headers or {})
    return response


@dataclass(frozen=True, slots=True)
class _ChatEndpoint:
    """`POST /v1/chat/completions`."""

    service: SolveService
    names: tuple[str, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, for as long as its client is there."""
        reply = HttpReply(send)
        metrics = self.service.metrics
        kind = "invalid"
        began = time.monotonic()
        with metrics.in_flight.track_inprogress():
            try:
                request = Request(scope, receive)
                raw = chat.read_json(await request.body())
                kind = "solve"
                if await _while_connected(
                    receive, self._answer(raw, request.headers, reply)
                ):
                    metrics.seconds.observe(time.monotonic() - began)
                else:
                    metrics.disconnects.inc()
            except ApiError as error:
                if not reply.status:
                    metrics.errors.labels(error.code).inc()
                    # Clients retry by status. Only a server too busy to begin wants that: all else was tried or paid.
                    retry = (
                        ("retry-after", "5")
                        if error.status == 429
                        else ("x-should-retry", "false")
                    )
                    await reply.whole(error.status, error.body(), headers=(retry,))
            finally:
                if reply.status:
                    metrics.requests.labels(kind, str(reply.status)).inc()

    async def _answer(
        self, raw: Mapping[str, object], headers: Mapping[str, str], reply: HttpReply
    ) -> None:
        model = str(raw["model"])
        if model not in self.names:
            raise ApiError(
                f"there is no model '{model[:80]}' here: ask for 'kace'",
                "model",
                status=404,
                code="model_not_found",
            )
        problem, body = chat.read_solve(raw, headers)
        self.service.check(body)
        if body.stream:
            return await self._stream(problem, body, reply)
        completion = await self.service.solve(problem, body)
        await reply.whole(200, SseWriter(body).whole(completion))

    async def _stream(self, problem: Problem, body: ChatBody, reply: HttpReply) -> None:
        steps: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        solving = asyncio.create_task(
            self.service.solve(problem, body, steps.put_nowait)
        )
        solving.add_done_callback(lambda _: steps.put_nowait(None))
        writer = SseWriter(body)
        try:
            await reply.start(200, chat.EVENTS, NO_BUFFER)
            await reply.send(writer.opening())
            async for chunk in writer.steps(steps):
                await reply.send(chunk)
            last = writer.closing(await solving)
        except ApiError as error:
            self.service.metrics.errors.labels(error.code).inc()
            last = chat.event(error.body())
        finally:
            await _ended(solving)
        await reply.send(last, more=False)


async def _while_connected(receive: Receive, work: Coroutine[None, None, None]) -> bool:
    """Do the work, or give it up when the client goes away. Whether it was done."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working = asyncio.create_task(work)
    leaving = asyncio.create_task(gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        return working.done()
    finally:
        await _ended(working, leaving)


async def _ended(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks and wait until they are gone, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # heard: nobody else will ask


class ReconnectingModel(Wrapper):
    """A user error ends a run, but a server stays up: it opens its model again, some time after it refused for good."""

    def __init__(
        self,
        open_again: Callable[[], ChatModel],
        *,
        pause: float = PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(open_again())
        self._open_again = open_again
        self._pause = pause
        self._clock = clock
        self._broken_at: float | None = None
        self._calls: Counter[ChatModel] = (
            Counter()
        )  # a model that was replaced is closed with the last of its calls

    async def complete(self, request: ModelRequest) -> Reply:
        """Answer one request with the model as it is now."""
        if (
            self._broken_at is not None
            and self._clock() - self._broken_at >= self._pause
        ):
            old = self.model
            self.model = self._open_again()
            self._broken_at = None
            await self._let_go(old)
        model = self.model
        self._calls[model] += 1
        try:
            return await model.complete(request)
        except KaceError:
            if model is self.model and self._broken_at is None:
                self._broken_at = self._clock()
            raise
        finally:
            self._calls[model] -= 1
            await self._let_go(model)

    async def _let_go(self, model: ChatModel) -> None:
        if model is not self.model and not self._calls[model]:
            del self._calls[model]
            await model.aclose()

    async def aclose(self) -> None:
        """Close every model that is still open."""
        for model in {self.model, *self._calls}:
            await model.aclose()


def spare_collector() -> None:
    """Have Python look for garbage among young objects only, for a process that does nothing but serve.

    With 200 clients, looking at all objects of the requests under way takes 30 ms, by default several times a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 1_500, 10)
