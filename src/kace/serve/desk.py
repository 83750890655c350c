"""Where requests are solved: one session for all of them, a ledger for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kace.config import Config
from kace.errors import BudgetExceeded, KaceError
from kace.models.budget import Ledger, Metered
from kace.redact import redact
from kace.serve.allowance import NO_CAPS, Allowance
from kace.serve.asked import Asked
from kace.serve.fault import Fault, bad_request
from kace.serve.metrics import Metrics
from kace.serve.progress import Announcing, Progress
from kace.serve.reply import Solved, paid_for
from kace.solver.attempt import Outcome
from kace.solver.ladder import Kit, climb
from kace.solver.preset import TierSampling
from kace.solver.session import Session, open_library
from kace.solver.solution import Solution
from kace.solver.tiers import TierName

if TYPE_CHECKING:
    from kace.tree.tree import EpistemicTree

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Requests that wait for a place. More would only wait longer than any client does."""
_BROKEN = (Outcome.PROVIDER_ERROR, Outcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server solves with, and what it lets one request use up."""

    config: Config
    tree: EpistemicTree | None = None
    allowance: Allowance = NO_CAPS


class Desk:
    """Solves requests side by side, each within its allowance, until it is closed."""

    def __init__(self, session: Session, offer: Offer) -> None:
        self.session = session
        self.offer = offer
        self.metrics = Metrics(session.ledger)
        self.closing = False
        self._places = asyncio.Semaphore(session.window)
        self._clocks: set[asyncio.Timeout] = set()

    def expire(self) -> None:
        """End every solve under way; each says so to its client."""
        self.closing = True
        for clock in list(self._clocks):
            clock.reschedule(asyncio.get_running_loop().time())

    def check(self, asked: Asked) -> None:
        """Refuse what cannot even begin. Raises `Fault`."""
        if asked.allowance.max_usd is not None and self.session.ledger.price(self.session.kit.model.name) is None:
            raise bad_request("max_usd needs a price for the model, and this server has none", param="kace.max_usd")
        if self.metrics.waiting >= MAX_WAITING:
            raise Fault(429, f"{MAX_WAITING:,} requests are waiting already", code="busy")

    async def solve(self, asked: Asked, progress: Progress) -> Solved:
        """Climb the ladder for one request. Raises `Fault`, with what was paid for."""
        allowance = self.offer.allowance.least(asked.allowance)
        bill = Ledger(allowance.caps(), self.session.ledger.prices)
        try:
            async with self.timed(allowance.max_seconds), self._place(progress):
                solution = await climb(asked.problem, self._kit(asked, progress, bill))
        except BudgetExceeded as error:
            raise Fault(402, error.message, code="budget_exceeded", paid=paid_for(progress, bill)) from None
        except TimeoutError:
            raise self.out_of_time(allowance.max_seconds, paid_for(progress, bill)) from None
        except KaceError as error:
            log.warning("%s", redact(str(error)))
            raise Fault(502, error.message, code="upstream_refused", paid=paid_for(progress, bill)) from None
        if _unanswered(solution):
            message = f"the model failed every attempt ({solution.made[-1].detail or 'no reply'})"
            raise Fault(502, message, code="upstream_failed", paid=paid_for(progress, bill))
        if solution.exit:
            self.metrics.exits[solution.exit] += 1
        return Solved(solution, bill)

    @asynccontextmanager
    async def timed(self, seconds: float | None) -> AsyncIterator[None]:
        """Run against a clock that `expire` winds to its end; `TimeoutError` where it gets there."""
        async with asyncio.timeout(0 if self.closing else seconds) as clock:
            self._clocks.add(clock)
            try:
                yield
            finally:
                self._clocks.discard(clock)

    def out_of_time(self, seconds: float | None, paid: Mapping[str, object] | None = None) -> Fault:
        """What a clock at its end means."""
        if self.closing or seconds is None:
            return Fault(503, "the server is stopping", code="stopping", paid=paid)
        return Fault(504, f"not solved within {seconds:g} s", code="budget_exceeded", paid=paid)

    @asynccontextmanager
    async def _place(self, progress: Progress) -> AsyncIterator[None]:
        """Hold a place on the ladder: no more problems climb at once than keep the model busy."""
        if self._places.locked():
            progress.waiting(self.metrics.waiting)
        self.metrics.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.metrics.waiting -= 1
        try:
            yield
        finally:
            self._places.release()

    def _kit(self, asked: Asked, progress: Progress, bill: Ledger) -> Kit:
        """The session's kit as one request uses it: every call is on its own bill, too."""
        kit, offer = self.session.kit, self.offer
        seed = kit.seed if asked.seed is None else asked.seed
        shelf = None
        if offer.tree is not None:
            classifier = Metered(self.session.classifier, bill, "classifier")
            shelf = open_library(offer.tree, classifier, offer.config.model_copy(update={"seed": seed}))
        synthesis = kit.synthesis
        if synthesis is not None:
            synthesis = replace(synthesis, teacher=Metered(synthesis.teacher, bill, "synthesis"))
        return replace(
            kit,
            model=Metered(kit.model, bill, "solver"),
            library=Announcing(shelf, progress),
            synthesis=synthesis,
            observer=progress,
            seed=seed,
            sampling=_capped(kit.sampling, asked.max_tokens),
        )


def _unanswered(solution: Solution) -> bool:
    """Whether it was the provider, not the problem, that left us without an answer."""
    return solution.answer is None and all(attempt.outcome in _BROKEN for attempt in solution.made)


def _capped(sampling: Mapping[TierName, TierSampling], most: int | None) -> Mapping[TierName, TierSampling]:
    if most is None:
        return sampling
    return {tier: replace(draw, max_tokens=min(draw.max_tokens, most)) for tier, draw in sampling.items()}
