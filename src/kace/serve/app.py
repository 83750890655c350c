"""The server: one model and one session for all requests, a ledger for each."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kace.answers.extract import Answer
from kace.cards.tree import EpistemicTree
from kace.config import Config
from kace.errors import (
    BudgetExceeded,
    KaceError,
    one_line,
    redact,
    without_secrets,
)
from kace.files import inside
from kace.ladder.ladder import ContextSource, Kit, Silent, solve
from kace.ladder.prompt import Context
from kace.ladder.record import Attempt, Outcome, Solution, boxed
from kace.ladder.session import Session, open_session
from kace.ladder.tiers import LOCKED, ExitPath, TierName
from kace.models import open_model
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.cache import CallRecord, CallStore
from kace.problems import Problem
from kace.report.server import Closing, Denial, Guard, Hosts, Port, Ready, serve
from kace.runs.manifest import manifest_of
from kace.runs.run import Run
from kace.serve import chat
from kace.serve.chat import (
    ApiError,
    ChatBody,
    Completion,
    ReplyWriter,
    RequestLimits,
    Step,
)
from kace.words import counted

log = logging.getLogger(__name__)

SOLVER = "kace"
MAX_BODY = 2_000_000
MAX_WAITING = 1_000  # a client gives up before a longer queue has moved
MAX_ANSWER = 60
MAX_STOPS = 16
SECONDS = (
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
)

OnStep = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server solves with, which requests it accepts, and their caps."""

    config: Config
    tree: EpistemicTree | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    hosts: Hosts = field(default_factory=Hosts)
    key: str | None = None
    record: Path | None = None  # the run that keeps what is solved
    closing: Closing = field(default_factory=Closing)


async def run(
    options: ServerOptions,
    port: Port,
    *,
    ready: Ready,
    model: ChatModel | None = None,
) -> None:
    """Serve until a signal. A model that is given stays the caller's to close."""
    async with open_service(options, model) as service:
        closing = replace(options.closing, expire=service.expire)
        await serve(
            create_app(service, options), port, ready=ready, closing=closing
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


# Routes


def create_app(service: SolveService, options: ServerOptions) -> ASGIApp:
    """Return the endpoint behind its guard."""
    served = options.config.model
    models = {}
    for name in (SOLVER, served, served.partition("/")[2]):
        models[name] = {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": SOLVER,
        }

    async def health(request: Request) -> Response:
        if service.closing:
            return _json({"status": "stopping"}, 503)
        return _json({"status": "ok"})

    async def list_models(request: Request) -> Response:
        return _json({"object": "list", "data": list(models.values())})

    async def show_model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in models:
            raise HTTPException(404)
        return _json(models[name])

    async def metrics(request: Request) -> Response:
        return Response(
            service.metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4
        )

    endpoint = ChatEndpoint(service, tuple(models))
    routes = [
        Route("/v1/chat/completions", endpoint, methods=["POST"]),
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", show_model),
        Route("/healthz", health),
        Route("/metrics", metrics),
    ]
    handlers = {HTTPException: _render_error, Exception: _render_error}
    return Guard(
        Starlette(routes=routes, exception_handlers=handlers),
        options.hosts,
        options.key,
        max_body=MAX_BODY,
        open_paths={"/healthz"},
        render=chat.render_denial,
    )


def _json(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type=chat.JSON)


def _render_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        message = "something went wrong here; see the server's log"
        return chat.render_denial(Denial(500, message))
    message = (
        "there is nothing here" if error.status_code == 404 else error.detail
    )
    response = chat.render_denial(Denial(error.status_code, message))
    response.headers.update(error.headers or {})
    return response


class ChatEndpoint:
    """`POST /v1/chat/completions`."""

    def __init__(self, service: SolveService, names: Sequence[str]) -> None:
        self._service = service
        self._names = names

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request. It is cancelled when its client disconnects."""
        metrics = self._service.metrics
        reply = HttpReply(send)
        kind = "invalid"
        start = time.monotonic()
        with metrics.in_flight.track_inprogress():
            try:
                raw = chat.read_json(await Request(scope, receive).body())
                kind = "solve"
                if await _while_connected(receive, self._answer(raw, reply)):
                    metrics.seconds.observe(time.monotonic() - start)
                else:
                    metrics.disconnects.inc()
            except ApiError as error:
                metrics.errors.labels(error.code).inc()
                await reply.send_error(error)
            finally:
                if reply.status:
                    metrics.requests.labels(kind, str(reply.status)).inc()

    async def _answer(
        self, raw: Mapping[str, object], reply: HttpReply
    ) -> None:
        model = str(raw["model"])
        if model not in self._names:
            message = f"there is no model '{model[:80]}' here: use 'kace'"
            raise ApiError(message, "model", status=404, code="model_not_found")
        problem, body = chat.read_solve(raw)
        self._service.check(body)
        if body.stream:
            await self._stream(problem, body, reply)
        else:
            completion = await self._service.solve(problem, body)
            await reply.send_whole(200, ReplyWriter(body).whole(completion))

    async def _stream(
        self, problem: Problem, body: ChatBody, reply: HttpReply
    ) -> None:
        steps: asyncio.Queue[Step | None] = asyncio.Queue()
        solving = asyncio.create_task(
            self._service.solve(problem, body, steps.put_nowait)
        )
        solving.add_done_callback(lambda _: steps.put_nowait(None))
        writer = ReplyWriter(body)
        try:
            # With this header proxies pass events on as they come.
            await reply.start(200, chat.EVENTS, {"x-accel-buffering": "no"})
            await reply.send(writer.opening())
            async for chunk in writer.steps(steps):
                await reply.send(chunk)
            await reply.send(writer.closing(await solving), more=False)
        finally:
            await _cancel(solving)


class HttpReply:
    """Sends one HTTP response and keeps its status; 0 while nothing was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def start(
        self, status: int, kind: str, headers: Mapping[str, str]
    ) -> None:
        """Send the head."""
        self.status = status
        raw = [(b"content-type", kind.encode())]
        for name, value in headers.items():
            raw.append((name.encode(), value.encode()))
        head = {"type": "http.response.start", "status": status, "headers": raw}
        await self._send(head)

    async def send(self, chunk: bytes, *, more: bool = True) -> None:
        """Send a piece of the body."""
        message = {
            "type": "http.response.body",
            "body": chunk,
            "more_body": more,
        }
        await self._send(message)

    async def send_whole(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send head and body."""
        length = {"content-length": str(len(body))}
        await self.start(status, chat.JSON, {**length, **(headers or {})})
        await self.send(body, more=False)

    async def send_error(self, error: ApiError) -> None:
        """Send an error: as a response, or as the last event of a stream."""
        if self.status:
            await self.send(chat.event(error.body()), more=False)
            return
        # Clients retry by status. Failed calls were retried here already, so only a
        # server that was too busy to start wants a retry.
        headers = {"x-should-retry": "false"}
        if error.status == 429:
            headers = {"retry-after": "5"}
        await self.send_whole(error.status, error.body(), headers)


async def _while_connected(
    receive: Receive, work: Coroutine[None, None, None]
) -> bool:
    """Do the work, or cancel it when the client disconnects; whether it was done."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working = asyncio.create_task(work)
    leaving = asyncio.create_task(disconnected())
    try:
        await asyncio.wait(
            {working, leaving}, return_when=asyncio.FIRST_COMPLETED
        )
        if working.done():
            await working
        return working.done()
    finally:
        await _cancel(working, leaving)


async def _cancel(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
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
        self.metrics = ServerMetrics(session.ledger)
        self.closing = False
        self._limits = limits
        self._record = record
        self._clocks: set[asyncio.Timeout] = set()
        self._waiting = 0
        self._places = asyncio.Semaphore(session.window)
        self.metrics.waiting.set_function(lambda: self._waiting)

    def check(self, body: ChatBody) -> None:
        """Refuse a request that cannot start. Raises `ApiError`."""
        price = self.session.ledger.price(self.session.kit.model.name)
        if body.kace.max_usd is not None and price is None:
            message = (
                "max_usd needs a price for the model, and this server has none"
            )
            raise ApiError(message, "kace.max_usd")
        if self._waiting >= MAX_WAITING:
            message = f"{MAX_WAITING:,} requests are waiting already"
            raise ApiError(message, status=429, code="busy")

    async def solve(
        self,
        problem: Problem,
        body: ChatBody,
        on_step: OnStep = lambda step: None,
    ) -> Completion:
        """Solve the problem of one request. Raises `ApiError`, with what was paid."""
        limits = self._limits.least(body.kace)
        ledger = self.session.ledger
        bill = Ledger(limits.caps(), ledger.prices, uncounted=ledger.uncounted)
        read = partial(self.session.kit.subject.read, problem=problem.text)
        progress = Progress(on_step, read)
        try:
            async with self._within(limits.max_seconds), self._place(progress):
                solution = await self._solve(problem, body, bill, progress)
            if solution.answer is None and _all_failed(solution):
                reason = solution.made[-1].detail or "no reply"
                message = f"the model failed every attempt ({reason})"
                raise ApiError(message, status=502, code="upstream_failed")
        except (ApiError, KaceError) as error:
            failure = _as_api_error(error)
            paid = {**progress.details(), **_cost(bill)}
            failure.paid = {"kace": paid, "usage": chat.usage_json(bill.usage)}
            raise failure from None
        self.metrics.count(solution)
        details = {
            **_details(solution),
            **_cost(bill),
            "seconds": round(solution.seconds, 3),
            "seed": solution.seed,
            "ignored": body.ignored,
        }
        return Completion(_content(body, solution), bill.usage, details)

    def expire(self) -> None:
        """End every request under way with an error."""
        self.closing = True
        for clock in list(self._clocks):
            clock.reschedule(asyncio.get_running_loop().time())

    async def _solve(
        self, problem: Problem, body: ChatBody, bill: Ledger, progress: Progress
    ) -> Solution:
        kit = self._kit(body, bill, progress)
        if self._record is None:
            return await solve(problem, kit)
        problem = self._record.keep_problem(problem)
        solution = await solve(problem, kit)
        if (
            kit.sampling == self.session.kit.sampling
        ):  # else not as the run says
            self._record.keep_solution(solution)
        return solution

    def _kit(self, body: ChatBody, bill: Ledger, progress: Progress) -> Kit:
        """Return the kit of one request, whose calls are entered on its bill."""
        calls = self._record.calls if self._record else None
        kit = self.session.billed(bill, calls, body.seed)
        sampling = dict(kit.sampling)
        if body.token_cap is not None:
            for tier, draw in sampling.items():
                most = min(draw.max_tokens, body.token_cap)
                sampling[tier] = replace(draw, max_tokens=most)
        source = ReportingSource(kit.source, progress)
        return replace(kit, sampling=sampling, source=source, observer=progress)

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
            message = f"not solved within {seconds or 0:g} s"
            error = ApiError(message, status=504, code="budget_exceeded")
            if self.closing or seconds is None:
                error = ApiError(
                    "the server is stopping", status=503, code="stopping"
                )
            raise error from None

    @asynccontextmanager
    async def _place(self, progress: Progress) -> AsyncIterator[None]:
        """Hold one of the places: no more problems than keep the model busy."""
        if self._places.locked():
            progress.report("waiting", f"Waiting: {self._waiting} ahead.")
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()


class Progress(Silent):
    """Reports the steps of one solve, and keeps what was found if it ends early."""

    def __init__(self, on_step: OnStep, read: Callable[[str], Answer]) -> None:
        self._on_step = on_step
        self._read = read
        self._attempts: list[Attempt] = []
        self._cards: dict[str, None] = {}

    def report(self, event: str, text: str, **details: object) -> None:
        """Report one step."""
        self._on_step(Step(event, text, details))

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """Report an attempt."""
        self._attempts.append(attempt)
        tier = attempt.tier
        outcome = attempt.outcome.value
        answer = None
        result = f"no answer ({outcome.replace('_', ' ')})"
        if attempt.answer:
            answer = one_line(attempt.answer, MAX_ANSWER)
            result = answer
        of = next(each.attempts for each in LOCKED if each.name is tier)
        if attempt.index >= of:  # synthesis, after the tier's own attempts
            text = f"From common facts: {result}."
            self.report("finishing", text, tier=tier.value, answer=answer)
            return
        done = sum(each.tier is tier for each in self._attempts)
        self.report(
            "attempt",
            f"{tier.value} {done}/{of}: {result}.",
            tier=tier.value,
            done=done,
            of=of,
            answer=answer,
            outcome=outcome,
        )

    def read(self, tier: TierName, context: Context) -> None:
        """Report what a tier reads."""
        cards = [card.card_id for card in context.cards]
        self._cards.update(dict.fromkeys(cards))
        abstained = context.eligible > 0 and not cards
        text = f"{tier.value} reads no card."
        if cards:
            where = (
                f" of {' and '.join(context.domains)}"
                if context.domains
                else ""
            )
            text = f"{tier.value} reads {counted(len(cards), 'card')}{where}."
        elif abstained:
            text = f"{tier.value} abstains from {counted(context.eligible, 'card')}."
        self.report(
            "reading", text, tier=tier.value, cards=cards, abstained=abstained
        )

    def details(self) -> dict[str, object]:
        """Return what was found until now, as a solve that ended early reports it."""
        votes: Counter[str] = Counter()
        first: dict[str, str] = {}  # of equal answers, as it was written first
        for attempt in self._attempts:
            if attempt.answer is not None:
                key = self._read(attempt.answer).key
                first.setdefault(key, attempt.answer)
                votes[key] += 1
        ranked = [(first[key], n) for key, n in votes.most_common()]
        agreed = ranked[0][0] if ranked and ranked[0][1] > 1 else None
        return {
            "exit_path": None,
            "answer": agreed,
            "votes": [_vote(text, n) for text, n in ranked],
            "cards": list(self._cards),
            "attempts": len(self._attempts),
        }


class ReportingSource:
    """A source of context that reports what each tier reads."""

    def __init__(
        self, source: ContextSource | None, progress: Progress
    ) -> None:
        self._source = source
        self._progress = progress

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Return what the source gives the tier; nothing without a source."""
        if before:
            text = f"Climbing to {tier.value}."
            self._progress.report("climbing", text, tier=tier.value)
        if self._source is None:
            return None
        found = await self._source.retrieve(problem, tier, before, earlier)
        if found is not None:
            self._progress.read(tier, found)
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
    ranked = sorted(
        solution.classes,
        key=lambda each: (
            -len(each.positions),
            each.answer != solution.answer,
            each.positions,
        ),
    )
    cards: dict[str, None] = {}
    for recall in solution.recalls:
        cards.update(dict.fromkeys(recall.cards))
    domains = solution.recalls[-1].domains if solution.recalls else ()
    return {
        "exit_path": solution.exit.value if solution.exit else None,
        "answer": solution.answer,
        "votes": [_vote(each.answer, len(each.positions)) for each in ranked],
        "cards": list(cards),
        "domains": list(domains),
        "attempts": len(solution.made),
    }


def _vote(answer: str, votes: int) -> dict[str, object]:
    return {"answer": answer, "votes": votes}


def _content(body: ChatBody, solution: Solution) -> str:
    """Return the working, or else the answer in a sentence, cut at the stop texts."""
    text = f"No answer was found in {len(solution.made)} attempts."
    if solution.answer is not None:
        text = solution.working or boxed(solution.answer)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop
    for stop in stops[:MAX_STOPS]:
        if stop:
            text = text.split(stop, 1)[0]
    return text


def _cost(bill: Ledger) -> dict[str, object]:
    calls: dict[str, int] = {}
    tokens: dict[str, object] = {}
    for role, spent in bill.roles.items():
        usage = spent.usage
        calls[role] = spent.calls
        tokens[role] = {
            "input": usage.input,
            "cached": usage.cached,
            "output": usage.output,
        }
    return {"calls": calls, "tokens": tokens, "usd": round(bill.usd, 6)}


# Metrics


class ServerMetrics(Collector):
    """Counters of one server. Calls, tokens and money are read from the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        # The start of the process says when each counter was created.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._ledger = ledger
        registry = prometheus.CollectorRegistry()
        self._registry = registry
        counter = partial(prometheus.Counter, registry=registry)
        gauge = partial(prometheus.Gauge, registry=registry)
        self.requests = counter(
            "kace_requests_total",
            "Requests answered, by kind and status.",
            ["kind", "status"],
        )
        self.in_flight = gauge("kace_requests_in_flight", "Requests under way.")
        self.waiting = gauge(
            "kace_requests_waiting", "Requests that wait for a place."
        )
        self.disconnects = counter(
            "kace_disconnects_total", "Clients that left before the answer."
        )
        self.errors = counter("kace_errors_total", "Errors by code.", ["code"])
        self.exits = counter(
            "kace_exits_total",
            "Problems solved, by exit of the ladder.",
            ["path"],
        )
        self.card_tiers = counter(
            "kace_card_tiers_total",
            "Card tiers with eligible cards, by whether they showed any.",
            ["outcome"],
        )
        self.seconds = prometheus.Histogram(
            "kace_request_seconds",
            "Seconds from a request to its whole answer.",
            buckets=SECONDS,
            registry=registry,
        )
        for path in ExitPath:  # so that each is there from the start
            self.exits.labels(path.value)
        for outcome in ("shown", "abstained"):
            self.card_tiers.labels(outcome)
        registry.register(self)

    def count(self, solution: Solution) -> None:
        """Count a solve by its exit, and its card tiers by whether they showed any."""
        if solution.exit:
            self.exits.labels(solution.exit.value).inc()
        for recall in solution.recalls:
            if recall.cards:
                self.card_tiers.labels("shown").inc()
            elif recall.abstained:
                self.card_tiers.labels("abstained").inc()

    def text(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        return prometheus.generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the figures of the ledger."""
        calls = CounterMetricFamily(
            "kace_model_calls", "Calls to the model, by role.", labels=["role"]
        )
        failed = CounterMetricFamily(
            "kace_model_calls_failed",
            "Calls that failed or were cancelled, by role.",
            labels=["role"],
        )
        tokens = CounterMetricFamily(
            "kace_tokens",
            "Tokens, by role and kind; input includes cached.",
            labels=["role", "kind"],
        )
        for role, spent in sorted(self._ledger.roles.items()):
            calls.add_metric([role], spent.calls)
            failed.add_metric([role], spent.failed)
            for kind in ("input", "cached", "output"):
                tokens.add_metric([role, kind], getattr(spent.usage, kind))
        yield calls
        yield failed
        yield tokens
        yield CounterMetricFamily(
            "kace_usd",
            "Money spent, where prices are known.",
            value=self._ledger.usd,
        )


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
                reason = redact(str(error))
                log.warning(
                    "%s; the server continues and records what it can", reason
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

    def put_line(self, key: str, line: str) -> None:
        """Keep a call, if it can be written."""
        with self._record.writing():
            super().put_line(key, line)
