"""Requests solved side by side: one session for all of them, a ledger for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from kace.answers.extract import Answer
from kace.errors import BudgetExceeded, KaceError, one_line, redact
from kace.ladder.ladder import ContextSource, Kit, solve
from kace.ladder.prompt import Context
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution, boxed
from kace.ladder.session import Session
from kace.ladder.tiers import LOCKED, ExitPath, TierName
from kace.models.budget import Ledger
from kace.problems import Problem
from kace.serve.chat import (
    SOLVE_IGNORES,
    ApiError,
    ChatBody,
    Completion,
    RequestLimits,
    usage_json,
)
from kace.serve.record import Record
from kace.words import counted

log = logging.getLogger(__name__)

MAX_WAITING = 1_000  # more would only wait longer than any client does
MAX_ANSWER = 60
MAX_STOPS = 16
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
CARD_OUTCOMES = ("shown", "abstained")
_BROKEN = (Outcome.PROVIDER_ERROR, Outcome.TIMEOUT)
_ATTEMPTS = {tier.name: tier.attempts for tier in LOCKED}

Tell = Callable[
    [Mapping[str, object]], None
]  # hears a step: its `event`, a `text` for people, and what else there is


class ServerMetrics(Collector):
    """Counters of one server, in a registry of its own. Calls and tokens are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        # The time each counter was made says nothing that the start of the process does not.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._ledger = ledger
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        gauge = partial(prometheus.Gauge, registry=self._registry)
        self.requests = counter(
            "kace_requests_total",
            "Requests answered, by kind and status.",
            ["kind", "status"],
        )
        self.in_flight = gauge("kace_requests_in_flight", "Requests under way.")
        self.waiting = gauge(
            "kace_requests_waiting", "Of those, the ones waiting for a place."
        )
        self.disconnects = counter(
            "kace_disconnects_total", "Clients gone before the answer."
        )
        self.errors = counter(
            "kace_errors_total", "Errors told to clients, by code.", ["code"]
        )
        self.exits = counter(
            "kace_exits_total",
            "Problems solved, by where they left the ladder.",
            ["path"],
        )
        for path in ExitPath:
            self.exits.labels(path.value)
        reading = "Card tiers of solved problems that had eligible cards, by whether they showed any."
        self.card_tiers = counter("kace_card_tiers_total", reading, ["outcome"])
        for outcome in CARD_OUTCOMES:
            self.card_tiers.labels(outcome)
        whole = "Seconds from a request to its whole answer."
        self.seconds = prometheus.Histogram(
            "kace_request_seconds", whole, buckets=BUCKETS, registry=self._registry
        )
        self._registry.register(self)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return prometheus.generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The ledger as it is now."""
        by_role = partial(CounterMetricFamily, labels=["role"])
        calls = by_role("kace_model_calls", "Calls to the model, by role.")
        failed = by_role(
            "kace_model_calls_failed", "Calls that failed or were cancelled, by role."
        )
        tokens = by_role(
            "kace_tokens",
            "Tokens, by role and kind; input includes cached.",
            labels=["role", "kind"],
        )
        for role, spent in sorted(self._ledger.roles.items()):
            calls.add_metric([role], spent.calls)
            failed.add_metric([role], spent.failed)
            for kind in ("input", "cached", "output"):
                tokens.add_metric([role, kind], getattr(spent.usage, kind))
        yield from (calls, failed, tokens)
        yield CounterMetricFamily(
            "kace_usd", "Money spent, where prices are known.", value=self._ledger.usd
        )


class SolveService:
    """Solves requests, each within its limits, until it expires. Without `working`, it gives answers alone.

    What is in a record is read from there, and costs nothing.
    """

    def __init__(
        self,
        session: Session,
        limits: RequestLimits,
        *,
        working: bool = True,
        record: Record | None = None,
    ) -> None:
        self.metrics = ServerMetrics(session.ledger)
        self.closing = False
        self.session = session
        self._limits = limits
        self._working = working
        self._record = record
        self._clocks: set[asyncio.Timeout] = set()
        self._waiting = 0
        self._places = asyncio.Semaphore(session.window)
        self.metrics.waiting.set_function(lambda: self._waiting)

    def check(self, body: ChatBody) -> None:
        """Refuse what cannot even begin. Raises `ApiError`."""
        price = self.session.ledger.price(self.session.kit.model.name)
        if body.kace.max_usd is not None and price is None:
            raise ApiError(
                "max_usd needs a price for the model, and this server has none",
                "kace.max_usd",
            )
        if self._waiting >= MAX_WAITING:
            raise ApiError(
                f"{MAX_WAITING:,} requests are waiting already", status=429, code="busy"
            )

    async def solve(
        self, problem: Problem, body: ChatBody, tell: Tell = lambda step: None
    ) -> Completion:
        """Climb the ladder for one request. Raises `ApiError`, with what was paid for."""
        limits = self._limits.least(body.kace)
        ledger = self.session.ledger
        bill = Ledger(limits.caps(), ledger.prices, uncounted=ledger.uncounted)
        climbing = _Climb(
            tell, partial(self.session.kit.subject.read, problem=problem.text)
        )
        try:
            async with self.within(limits.max_seconds), self._place(climbing):
                kit = self._kit(body, climbing, bill)
                problem = self._record.asked(problem) if self._record else problem
                solution = await solve(problem, kit)
            if (
                self._record and kit.sampling == self.session.kit.sampling
            ):  # else it was drawn as no run says
                self._record.solved(solution)
            if solution.answer is None and all(
                attempt.outcome in _BROKEN for attempt in solution.made
            ):
                message = f"the model failed every attempt ({solution.made[-1].detail or 'no reply'})"
                raise ApiError(message, status=502, code="upstream_failed")
        except (ApiError, KaceError) as error:
            if isinstance(error, BudgetExceeded):
                error = ApiError(error.message, status=402, code="budget_exceeded")
            elif isinstance(error, KaceError):
                log.warning("%s", redact(str(error)))
                error = ApiError(error.message, status=502, code="upstream_refused")
            error.paid = {
                "kace": {**climbing.details(), **_cost(bill)},
                "usage": usage_json(bill.usage),
            }
            raise error from None
        if solution.exit:
            self.metrics.exits.labels(solution.exit.value).inc()
        for recall in solution.recalls:
            if recall.cards or recall.abstained:
                self.metrics.card_tiers.labels(CARD_OUTCOMES[recall.abstained]).inc()
        ignored = sorted(SOLVE_IGNORES & body.model_fields_set)
        kace = {**climbing.details(solution), **_cost(bill), "ignored": ignored}
        text = solution.working if self._working else ""
        return Completion(_content(body, solution, text), bill.usage, kace=kace)

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
                raise ApiError(
                    "the server is stopping", status=503, code="stopping"
                ) from None
            raise ApiError(
                f"not solved within {seconds:g} s", status=504, code="budget_exceeded"
            ) from None

    @asynccontextmanager
    async def _place(self, climbing: _Climb) -> AsyncIterator[None]:
        """Hold a place on the ladder: no more problems climb at once than keep the model busy."""
        if self._places.locked():
            climbing.step("waiting", f"Waiting: {self._waiting} ahead.")
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()

    def _kit(self, body: ChatBody, climbing: _Climb, bill: Ledger) -> Kit:
        """The session's kit as one request uses it: every call is on its own bill, too."""
        calls = self._record.calls if self._record else None
        kit = self.session.billed(bill, calls, body.seed)
        climbing.source = kit.source
        cap = body.token_cap
        sampling = kit.sampling
        if cap is not None:
            sampling = {
                tier: replace(draw, max_tokens=min(draw.max_tokens, cap))
                for tier, draw in sampling.items()
            }
        return replace(kit, source=climbing, observer=climbing, sampling=sampling)


class _Climb:
    """Observes one solve and what it reads, tells its steps, and keeps what was paid for if it ends early."""

    def __init__(self, tell: Tell, read: Callable[[str], Answer]) -> None:
        self._tell = tell
        self._read = read
        self.source: ContextSource | None = None
        self._attempts: list[Attempt] = []
        self._recalls: list[RetrievedContext] = []

    def step(self, event: str, text: str, **details: object) -> None:
        self._tell(
            {
                "event": event,
                "text": text,
                **{name: value for name, value in details.items() if value},
            }
        )

    def started(self, problem: Problem) -> None: ...

    def solved(self, solution: Solution) -> None: ...

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        self._attempts.append(attempt)
        tier = attempt.tier.value
        of = _ATTEMPTS[attempt.tier]
        outcome = attempt.outcome.value
        answer = one_line(attempt.answer, MAX_ANSWER) if attempt.answer else None
        result = answer or f"no answer ({outcome.replace('_', ' ')})"
        if attempt.index >= of:
            return self.step(
                "finishing", f"From common facts: {result}.", tier=tier, answer=answer
            )
        done = sum(each.tier is attempt.tier for each in self._attempts)
        text = f"{tier} {done}/{of}: {result}."
        self.step(
            "attempt", text, tier=tier, done=done, of=of, answer=answer, outcome=outcome
        )

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """What the source gives a tier, which comes to read when the ladder is climbed; nothing where there is none."""
        if before:
            self.step("climbing", f"Climbing to {tier.value}.", tier=tier.value)
        found = (
            await self.source.retrieve(problem, tier, before, earlier)
            if self.source
            else None
        )
        if found is not None:
            recall = found.record(tier)
            self._recalls.append(recall)
            cards = recall.cards
            domains = recall.domains
            reader = tier.value
            where = f" of {' and '.join(domains)}" if domains and cards else ""
            text = f"reads {counted(len(cards), 'card') if cards else 'no card'}{where}"
            if abstained := recall.abstained:
                text = f"abstains from {counted(recall.eligible, 'card')}"
            self.step(
                "reading",
                f"{reader} {text}.",
                tier=reader,
                cards=cards,
                abstained=abstained,
            )
        return found

    def details(self, solution: Solution | None = None) -> dict[str, object]:
        """How the answer came about; without a solution, what was found until the solve ended."""
        if solution is None:
            parsed = [
                None if each.answer is None else self._read(each.answer)
                for each in self._attempts
            ]
            keys = dict.fromkeys(each.key for each in parsed if each)
            groups = (
                [at for at, each in enumerate(parsed) if each and each.key == key]
                for key in keys
            )
            classes = [(tuple(at), self._attempts[at[0]].answer or "") for at in groups]
        else:
            classes = [(each.positions, each.answer) for each in solution.classes]
        won = (
            self._read(solution.answer).key
            if solution and solution.answer is not None
            else None
        )
        ranked = sorted(
            (-len(at), self._read(text).key != won, at, text) for at, text in classes
        )
        agreed = ranked[0][3] if ranked and len(ranked[0][2]) > 1 else None
        found: dict[str, object] = {
            "exit_path": solution.exit.value if solution and solution.exit else None,
            "answer": solution.answer if solution else agreed,
            "votes": [{"answer": text, "votes": len(at)} for _, _, at, text in ranked],
            "cards": list(
                dict.fromkeys(card for recall in self._recalls for card in recall.cards)
            ),
            "attempts": len(solution.made if solution else self._attempts),
        }
        if solution is not None:
            found["domains"] = list(self._recalls[-1].domains) if self._recalls else []
            found |= {"seconds": round(solution.seconds, 3), "seed": solution.seed}
        return found


def _content(body: ChatBody, solution: Solution, working: str) -> str:
    """The working, or else the answer in a sentence, cut where the client wants it to stop."""
    none = f"No answer was found in {len(solution.made)} attempts."
    text = none if solution.answer is None else working or boxed(solution.answer)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop
    for stop in filter(None, stops[:MAX_STOPS]):
        text = text.split(stop, 1)[0]
    return text


def _cost(bill: Ledger) -> dict[str, object]:
    calls = {role: spent.calls for role, spent in bill.roles.items()}
    used = {role: spent.usage for role, spent in bill.roles.items()}
    tokens = {
        role: {"input": u.input, "cached": u.cached, "output": u.output}
        for role, u in used.items()
    }
    return {"calls": calls, "tokens": tokens, "usd": round(bill.usd, 6)}
