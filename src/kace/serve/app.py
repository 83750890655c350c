"""The endpoint: routes, and what happens between a request's arrival and the last byte of its reply."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kace.serve.asked import Asked, read_asked
from kace.serve.body import model_of, read_json
from kace.serve.desk import Desk
from kace.serve.fault import JSON, Fault, speak
from kace.serve.metrics import CONTENT_TYPE
from kace.serve.progress import Progress, Step
from kace.serve.relay import PREFIX, Relay
from kace.serve.reply import HEARTBEAT, Letter, solved_closing, solved_whole, sse_error
from kace.serve.respond import EVENTS, Respond
from kace.web.guard import Guard, Hosts, Policy, Refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SOLVER = "kace"
HEARTBEAT_SECONDS = 15.0
MAX_BODY, MAX_PASSTHROUGH_BODY = 2_000_000, 32_000_000
"""A chat that is passed through may carry images."""
NO_BUFFER = (("x-accel-buffering", "no"),)
"""Asks proxies to pass events on as they come."""


class ClientGone(Exception):
    """Nobody waits for the reply any more."""


class ChatEndpoint:
    """`POST /v1/chat/completions`."""

    def __init__(self, desk: Desk, relay: Relay | None) -> None:
        self._desk = desk
        self._relay = relay
        served = desk.offer.config.model
        self.names = (SOLVER, served, served.partition("/")[2])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, for as long as its client is there."""
        respond, metrics = Respond(send), self._desk.metrics
        kind, began = "invalid", time.monotonic()
        metrics.in_flight += 1
        try:
            request = Request(scope, receive)
            raw = read_json(await request.body())
            model = model_of(raw)
            kind = "passthrough" if model.startswith(PREFIX) else "solve"
            await while_connected(receive, self._answer(raw, model, request.headers, respond))
            metrics.seconds.add(time.monotonic() - began)
        except Fault as fault:
            metrics.errors[fault.code] += 1
            await respond.fault(fault)
        except ClientGone:
            metrics.disconnects += 1
        finally:
            metrics.in_flight -= 1
            if respond.started:
                metrics.requests[kind, str(respond.status)] += 1

    async def _answer(
        self, raw: Mapping[str, object], model: str, headers: Mapping[str, str], respond: Respond
    ) -> None:
        if model.startswith(PREFIX):
            await self._pass_through(raw, model.removeprefix(PREFIX), respond)
            return
        if model not in self.names:
            raise Fault(404, f"there is no model '{model[:80]}' here: ask for 'kace'", code="model_not_found")
        asked = read_asked(raw, headers)
        self._desk.check(asked)
        if asked.stream:
            await self._stream(asked, respond)
        else:
            await respond.whole(200, solved_whole(asked, await self._desk.solve(asked, Progress())))

    async def _pass_through(self, raw: Mapping[str, object], name: str, respond: Respond) -> None:
        if self._relay is None:
            message = "this server passes nothing through: it was started without --passthrough"
            raise Fault(404, message, code="model_not_found", param="model")
        if raw.get("kace") is not None:
            raise Fault(
                400, "'kace' caps a solve, not a chat that is passed through", code="invalid_value", param="kace"
            )
        try:
            async with self._desk.timed(None):
                await self._relay.forward(raw, name, respond)
        except TimeoutError:
            if not respond.started:
                raise self._desk.out_of_time(None) from None

    async def _stream(self, asked: Asked, respond: Respond) -> None:
        steps: asyncio.Queue[Step | None] = asyncio.Queue()
        letter = Letter(asked.model, asked.include_usage)
        solving = asyncio.create_task(self._desk.solve(asked, Progress(steps.put_nowait)))
        solving.add_done_callback(lambda _: steps.put_nowait(None))
        try:
            await respond.start(200, EVENTS, NO_BUFFER)
            await respond.send(letter.opening())
            async for chunk in _told(steps, letter):
                await respond.send(chunk)
            last = b"".join(solved_closing(letter, asked, await solving))
        except Fault as fault:
            self._desk.metrics.errors[fault.code] += 1
            last = sse_error(fault.body())
        finally:
            await ended(solving)
        await respond.end(last)


async def _told(steps: asyncio.Queue[Step | None], letter: Letter) -> AsyncIterator[bytes]:
    """The steps of a solve as they come, those of one moment together, and a heartbeat where none comes."""
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                first = await steps.get()
        except TimeoutError:
            yield HEARTBEAT
            continue
        ready = [first, *(steps.get_nowait() for _ in range(steps.qsize()))]
        if told := b"".join(letter.step(step) for step in ready if step is not None):
            yield told
        if ready[-1] is None:
            return


async def while_connected(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Do the work, or give it up and raise `ClientGone` when the client goes away."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        await working
    finally:
        await ended(working, leaving)


async def ended(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks and wait until they are gone, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # heard: nobody else will ask


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def create_app(
    desk: Desk, relay: Relay | None = None, *, hosts: Hosts | None = None, key: str | None = None
) -> ASGIApp:
    """The whole endpoint behind its guard."""
    chat = ChatEndpoint(desk, relay)
    listed = list(dict.fromkeys((*chat.names, *([PREFIX + chat.names[-1]] if relay else []))))

    async def health(request: Request) -> Response:
        return _json({"status": "stopping"}, 503) if desk.closing else _json({"status": "ok"})

    async def models(request: Request) -> Response:
        return _json({"object": "list", "data": [_model(name) for name in listed]})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in listed:
            raise HTTPException(404)
        return _json(_model(name))

    async def metrics(request: Request) -> Response:
        return Response(desk.metrics.text(), media_type=CONTENT_TYPE)

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/healthz", health),
            Route("/metrics", metrics),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _bug},
    )
    policy = Policy(
        max_body=MAX_BODY if relay is None else MAX_PASSTHROUGH_BODY,
        open_paths=frozenset({"/healthz"}),
        cookie=False,
        speak=speak,
    )
    return Guard(app, hosts=hosts, token=key, policy=policy)


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "kace"}


def _json(value: Mapping[str, object], status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type=JSON)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = speak(Refusal(error.status_code, "there is nothing here" if error.status_code == 404 else error.detail))
    return Response(said.body, error.status_code, error.headers, media_type=JSON)


def _bug(request: Request, error: Exception) -> Response:
    said = speak(Refusal(500, "something went wrong here; the server's log says what"))
    return Response(said.body, 500, media_type=JSON)
