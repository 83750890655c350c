"""Requests solved side by side: one session for all of them, a ledger for each."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import cast

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from kace.answers.extract import Answer
from kace.errors import BudgetExceeded, KaceError
from kace.models.budget import Ledger, Metered
from kace.redact import redact
from kace.retrieval.retriever import EsPolicy, Retriever
from kace.serve.chat import MAX_STOPS, ApiError, RequestLimits, SolveRequest, bad_request
from kace.serve.stream import Completion, SolveProgress, usage_json
from kace.solver.ladder import Kit, climb
from kace.solver.records import Outcome, RetrievedContext, Solution
from kace.solver.session import Session
from kace.solver.tiers import ExitPath

log = logging.getLogger(__name__)

MAX_WAITING = 1_000  # more would only wait longer than any client does
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_BROKEN = (Outcome.PROVIDER_ERROR, Outcome.TIMEOUT)


class ServerMetrics(Collector):
    """Counters of one server, in a registry of its own. Calls and tokens are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        # The time each counter was made says nothing that the start of the process does not.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._ledger = ledger
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        gauge = partial(prometheus.Gauge, registry=self._registry)
        self.requests = counter("kace_requests_total", "Requests answered, by kind and status.", ["kind", "status"])
        self.in_flight = gauge("kace_requests_in_flight", "Requests under way.")
        self.waiting = gauge("kace_requests_waiting", "Of those, the ones waiting for a place.")
        self.disconnects = counter("kace_disconnects_total", "Clients gone before the answer.")
        self.errors = counter("kace_errors_total", "Errors told to clients, by code.", ["code"])
        self.exits = counter("kace_exits_total", "Problems solved, by where they left the ladder.", ["path"])
        for path in ExitPath:
            self.exits.labels(path.value)
        whole = "Seconds from a request to its whole answer."
        self.seconds = prometheus.Histogram("kace_request_seconds", whole, buckets=BUCKETS, registry=self._registry)
        self._registry.register(self)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return prometheus.generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The ledger as it is now."""
        by_role = partial(CounterMetricFamily, labels=["role"])
        calls = by_role("kace_model_calls", "Calls to the model, by role.")
        failed = by_role("kace_model_calls_failed", "Calls that failed or were cancelled, by role.")
        tokens = by_role("kace_tokens", "Tokens, by role and kind; input includes cached.", labels=["role", "kind"])
        for role, spent in sorted(self._ledger.roles.items()):
            calls.add_metric([role], spent.calls)
            failed.add_metric([role], spent.failed)
            for kind in ("input", "cached", "output"):
                tokens.add_metric([role, kind], getattr(spent.usage, kind))
        yield from (calls, failed, tokens)
        yield CounterMetricFamily("kace_usd", "Money spent, where prices are known.", value=self._ledger.usd)


class Deadlines:
    """The clocks of all requests under way. `expire` winds them to their end."""

    def __init__(self) -> None:
        self.closing = False
        self._clocks: set[asyncio.Timeout] = set()

    def expire(self) -> None:
        """End every request under way; each says so to its client."""
        self.closing = True
        for clock in list(self._clocks):
            clock.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def within(self, seconds: float | None) -> AsyncIterator[None]:
        """Run against a clock. Raises `ApiError` where it comes to its end."""
        try:
            async with asyncio.timeout(0 if self.closing else seconds) as clock:
                self._clocks.add(clock)
                try:
                    yield
                finally:
                    self._clocks.discard(clock)
        except TimeoutError:
            if self.closing or seconds is None:
                raise ApiError(503, "the server is stopping", code="stopping") from None
            raise ApiError(504, f"not solved within {seconds:g} s", code="budget_exceeded") from None


class SolveService:
    """Solves requests, each within its limits, until it is closed."""

    def __init__(self, session: Session, limits: RequestLimits) -> None:
        self.metrics = ServerMetrics(session.ledger)
        self.deadlines = Deadlines()
        self._session, self._limits = session, limits
        self._retriever = cast("Retriever | None", session.kit.source)  # all requests share what it has indexed
        self._waiting = 0
        self.metrics.waiting.set_function(lambda: self._waiting)
        self._places = asyncio.Semaphore(session.window)

    def check(self, request: SolveRequest) -> None:
        """Refuse what cannot even begin. Raises `ApiError`."""
        price = self._session.ledger.price(self._session.kit.model.name)
        if request.limits.max_usd is not None and price is None:
            raise bad_request("max_usd needs a price for the model, and this server has none", param="kace.max_usd")
        if self._waiting >= MAX_WAITING:
            raise ApiError(429, f"{MAX_WAITING:,} requests are waiting already", code="busy")

    async def solve(self, request: SolveRequest, progress: SolveProgress) -> Completion:
        """Climb the ladder for one request. Raises `ApiError`, with what was paid for."""
        limits = self._limits.least(request.limits)
        bill = Ledger(limits.caps(), self._session.ledger.prices)
        try:
            async with self.deadlines.within(limits.max_seconds), self._place(progress):
                solution = await climb(request.problem, self._kit(request, progress, bill))
            if solution.answer is None and all(attempt.outcome in _BROKEN for attempt in solution.made):
                message = f"the model failed every attempt ({solution.made[-1].detail or 'no reply'})"
                raise ApiError(502, message, code="upstream_failed")
        except (ApiError, KaceError) as error:
            failure = error if isinstance(error, ApiError) else _api_error(error)
            failure.paid = {"kace": _unfinished(progress, bill), "usage": usage_json(bill.usage)}
            raise failure from None
        if solution.exit:
            self.metrics.exits.labels(solution.exit.value).inc()
        return Completion(_content(request, solution), bill.usage, kace=_details(request, solution, bill))

    @asynccontextmanager
    async def _place(self, progress: SolveProgress) -> AsyncIterator[None]:
        """Hold a place on the ladder: no more problems climb at once than keep the model busy."""
        if self._places.locked():
            progress.step("waiting", f"Waiting: {self._waiting} ahead.")
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()

    def _kit(self, request: SolveRequest, progress: SolveProgress, bill: Ledger) -> Kit:
        """The session's kit as one request uses it: every call is on its own bill, too."""
        kit, cap = self._session.kit, request.body.token_cap
        seed = kit.seed if request.body.seed is None else request.body.seed
        retriever, synthesis, sampling = self._retriever, kit.synthesis, kit.sampling
        if retriever is not None:
            retriever = retriever.asking(Metered(self._session.classifier, bill, "classifier"), seed)
        if synthesis is not None:
            synthesis = replace(synthesis, teacher=Metered(synthesis.teacher, bill, "synthesis"))
        if cap is not None:
            sampling = {tier: replace(draw, max_tokens=min(draw.max_tokens, cap)) for tier, draw in sampling.items()}
        progress.source = retriever
        model, tiers = Metered(kit.model, bill, "solver"), EsPolicy(retriever) if retriever else kit.tiers
        kit = replace(kit, model=model, source=progress, tiers=tiers, synthesis=synthesis)
        return replace(kit, observer=progress, seed=seed, sampling=sampling)


def _api_error(error: KaceError) -> ApiError:
    if isinstance(error, BudgetExceeded):
        return ApiError(402, error.message, code="budget_exceeded")
    log.warning("%s", redact(str(error)))
    return ApiError(502, error.message, code="upstream_refused")


def _content(request: SolveRequest, solution: Solution) -> str:
    """The answer in a sentence, cut where the client wants it to stop."""
    found = rf"The answer is $\boxed{{{solution.answer}}}$."
    text = f"No answer was found in {len(solution.made)} attempts." if solution.answer is None else found
    stops = [request.body.stop] if isinstance(request.body.stop, str) else request.body.stop or []
    for stop in filter(None, stops[:MAX_STOPS]):
        text = text.split(stop, 1)[0]
    return text


def _details(request: SolveRequest, solution: Solution, bill: Ledger) -> dict[str, object]:
    """How the answer came about."""
    won = Answer.of(solution.answer).key if solution.answer is not None else None
    ranked = ((-len(c.positions), Answer.of(c.answer).key != won, c.positions, c.answer) for c in solution.classes)
    return {
        "exit_path": solution.exit.value if solution.exit else None,
        "answer": solution.answer,
        "votes": [{"answer": answer, "votes": len(positions)} for _, _, positions, answer in sorted(ranked)],
        "cards": _cards(solution.recalls),
        "domains": list(solution.recalls[-1].domains) if solution.recalls else [],
        "attempts": len(solution.made),
        **_cost(bill),
        "seconds": round(solution.seconds, 3),
        "seed": solution.seed,
        "ignored": list(request.ignored),
    }


def _unfinished(progress: SolveProgress, bill: Ledger) -> dict[str, object]:
    """What a solve that ended early has used up, and what it found for it."""
    answers = [attempt.parsed for attempt in progress.attempts if attempt.parsed]
    first = {answer.key: answer.text for answer in reversed(answers)}
    votes = Counter(answer.key for answer in answers).most_common()
    return {
        "exit_path": None,
        "answer": first[votes[0][0]] if votes and votes[0][1] > 1 else None,
        "votes": [{"answer": first[key], "votes": count} for key, count in votes],
        "cards": _cards(progress.recalls),
        "attempts": len(progress.attempts),
        **_cost(bill),
    }


def _cards(recalls: Sequence[RetrievedContext]) -> list[str]:
    return list(dict.fromkeys(card for recall in recalls for card in recall.cards))


def _cost(bill: Ledger) -> dict[str, object]:
    calls = {role: spent.calls for role, spent in bill.roles.items()}
    used = {role: spent.usage for role, spent in bill.roles.items()}
    tokens = {role: {"input": u.input, "cached": u.cached, "output": u.output} for role, u in used.items()}
    return {"calls": calls, "tokens": tokens, "usd": round(bill.usd, 6)}
