"""How hard a provider is driven: the one retry policy, and the one limit on calls under way."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kace.errors import BudgetExceeded, KaceError
from kace.models.base import (
    ChatModel,
    Failure,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import sent_again

log = logging.getLogger(__name__)

START = 20
HEADROOM = 2.0  # pace over what the limit sustains, and limit over what the pace fills: neither holds the other back
SHORTEST_ROUND = 0.5  # seconds: a 429 may take longer to come back than a quick reply
HASTY = 1.0
PATIENT = 8.0
"""Seconds, or calls where those are slower, until a cut pace regains 5 %: after a guess, and after one that held."""
SLOWEST = 1 / 60  # calls per second below which no 429 pushes the pace
TOLD_AFTER = 3  # 429s in a row: one now and then is how the pace is found
LONGEST_PAUSE = 60.0  # seconds for which one Retry-After holds back the calls of others


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failures are tried again, when, and for how long.

    `Transient` gets `attempts` tries, `RateLimited` as many as fit: how busy an account is must not decide which
    problems count as wrong. A timeout has used the time of the call already, and a refusal stays one.
    """

    attempts: int = 4
    base: float = 0.5
    cap: float = 30.0
    deadline: float = 600.0  # seconds from the first try to the last byte, waits included, the queue before not
    refusals: int = 10  # 429s in a row, over all calls, after which a provider is taken at its word,
    patience: float = (
        180.0  # but not in fewer seconds than these: many count calls by the minute
    )
    jitter: Callable[[], float] = random.random

    def wait(self, failures: int, asked: float | None = None) -> float:
        """Seconds to wait after this many failures: what the server asked for and a little, or else full jitter."""
        if asked is not None:
            return asked + self.base * self.jitter()
        return min(self.cap, self.base * 2.0 ** min(failures - 1, 30)) * self.jitter()


class AdaptiveLimiter:
    """How many calls are under way and how fast new ones start; first come, first served.

    The limit begins at `START` and doubles every clean round in which somebody had to wait. From the first 429 on,
    calls are paced instead: many providers count calls per second. The pace is cut once per round trip and creeps up
    again, slowly at first. A `fixed` limiter keeps exactly that many calls under way, whatever the provider says.
    """

    def __init__(self, max_connections: int = 1000, *, fixed: bool = False) -> None:
        self._cap = max_connections
        self._adaptive = not fixed
        self._start_limit = max_connections if fixed else min(START, max_connections)
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = 0
        self._next_start = 0.0
        self._round_trip = 0.0
        self._patience = HASTY
        self._rate: float | None = (
            None  # calls per second at `_paced_since`; None before the first 429
        )
        self._paced_since: float | None = (
            None  # since when only the pace makes calls wait: only then does it grow
        )
        self._last_cut = self._last_full = -math.inf

    @property
    def limit(self) -> int:
        """Calls that may be under way now."""
        if self._rate is None:
            return self._start_limit
        return max(
            1,
            min(
                self._cap, math.ceil(HEADROOM * self._rate * max(1.0, self._round_trip))
            ),
        )

    @asynccontextmanager
    async def slot(self, *, again: bool = False) -> AsyncIterator[None]:
        """Hold a place for one call, `again` before those not begun. A `RateLimited` that leaves it is learned from."""
        turn = asyncio.get_running_loop().create_future()
        self._queue.insert(0 if again else len(self._queue), turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if (
                not turn.cancelled()
            ):  # the turn had come, but its task was cancelled before it could run
                self._under_way -= 1
                self._admit()
            raise
        started = asyncio.get_running_loop().time()
        try:
            yield
        except RateLimited as error:
            self._refused(started, error.retry_after)
            raise
        else:
            now = asyncio.get_running_loop().time()
            took = now - started
            self._round_trip = (
                0.8 * self._round_trip + 0.2 * took if self._round_trip else took
            )
            if (
                now - self._last_full <= took
            ):  # one more for each reply doubles the limit in a round that was full
                self._start_limit = min(self._cap, self._start_limit + 1)
        finally:
            self._under_way -= 1
            self._admit()

    def _admit(self) -> None:
        """Let in whoever may start now, and come back when the next one may."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if (
            self._timer is not None
        ):  # set anew each time: the old one may belong to a loop that has ended
            self._timer.cancel()
            self._timer = None
        while self._queue:
            if self._queue[0].done():  # cancelled while it waited
                self._queue.popleft()
            elif self._under_way >= self.limit:
                self._last_full = now
                break
            elif now < self._next_start:
                self._timer = loop.call_at(self._next_start, self._admit)
                break
            else:
                self._queue.popleft().set_result(None)
                self._under_way += 1
                # A timer that fires a little late must not slow the pace; a longer pause must not be caught up.
                self._next_start = max(self._next_start, now - 0.005) + 1 / self._pace(
                    now
                )
        paced = bool(self._queue) and self._under_way < self.limit
        if paced and self._paced_since is None:
            self._paced_since = now
        elif not paced and self._paced_since is not None:
            self._rate = None if self._rate is None else self._pace(now)
            self._paced_since = None

    def _pace(self, now: float) -> float:
        """Calls that may start per second."""
        if not self._adaptive:
            return math.inf
        if self._rate is None:
            return HEADROOM * self.limit / max(SHORTEST_ROUND, self._round_trip)
        # Flat at first, then ever steeper: a limit that holds is seldom hit, and one that was lifted is soon found.
        grown = (
            0.0
            if self._paced_since is None
            else (now - self._paced_since) * min(1.0, self._rate)
        )
        return self._rate * (1 + 0.05 * (grown / self._patience) ** 2)

    def _refused(self, started: float, asked: float | None) -> None:
        if not self._adaptive:
            return
        now = asyncio.get_running_loop().time()
        if asked is not None:
            self._next_start = max(self._next_start, now + min(asked, LONGEST_PAUSE))
        if (
            started <= self._last_cut
        ):  # sent before the last cut, which has answered it already
            return
        pace = self._pace(now)
        held = now - self._last_cut >= 1
        cut = (
            min(pace, self.limit) / 2
            if self._rate is None
            else (0.9 if held else 0.8) * pace
        )
        self._patience = PATIENT if held and self._rate is not None else HASTY
        self._rate = max(SLOWEST, cut)
        self._last_cut = now
        self._paced_since = None if self._paced_since is None else now
        self._next_start = max(
            self._next_start, now + 2 / self._rate
        )  # lets the provider's bucket fill a little


class Limited(Wrapper):
    """A model driven within the limits. A user error ends it: later requests fail with the same words, unsent."""

    def __init__(
        self, model: ChatModel, limiter: AdaptiveLimiter, policy: RetryPolicy
    ) -> None:
        super().__init__(model)
        self._limiter = limiter
        self._policy = policy
        self._broken: KaceError | None = None
        # 429s since the last reply
        self._refused = 0
        self._refused_since = 0.0
        self._told = False

    async def complete(self, request: Request) -> Reply:
        """Answer one request, with as many tries as the policy grants."""
        self._check_unbroken()
        try:
            async with asyncio.timeout(None) as clock:
                return await self._persist(request, clock)
        except TimeoutError:
            late = f"no reply within {self._policy.deadline:g} s, retries included"
            raise ModelError(Failure.TIMEOUT, late) from None

    async def _persist(self, request: Request, clock: asyncio.Timeout) -> Reply:
        loop = asyncio.get_running_loop()
        deadline = math.inf
        failures = 0
        while True:
            try:
                async with self._limiter.slot(again=failures > 0):
                    if not failures:
                        deadline = loop.time() + self._policy.deadline
                        clock.reschedule(deadline)
                    self._check_unbroken()
                    reply = await self.model.complete(request)
                    self._refused = 0
                    return reply
            except (RateLimited, Transient) as error:
                fault = error
                if isinstance(error, RateLimited):
                    self._refusal(error, loop.time())
                failures += 1
                wait = self._policy.wait(failures, error.retry_after)
                tired = (
                    isinstance(error, Transient) and failures >= self._policy.attempts
                )
                if tired or loop.time() + wait >= deadline:
                    raise
            except KaceError as error:
                if not isinstance(
                    error, BudgetExceeded
                ):  # which is for one ledger only: others may go on
                    self._broken = error
                raise
            await asyncio.sleep(wait)  # without a place: others may well get through
            await sent_again(fault)

    def _refusal(self, error: RateLimited, now: float) -> None:
        """Say once that calls are refused; stop the run where that has no end, and do not fail problems one by one."""
        if not self._refused:
            self._refused_since = now
        self._refused += 1
        asked = error.retry_after
        lasting = now - self._refused_since
        fix = "run the same command again later: finished calls are kept"
        if asked is not None and asked > self._policy.deadline:
            too_long = f"{self.name} asks to wait {asked:.0f} s, longer than a call may take: {error.message}"
            self._broken = KaceError(too_long, fix=fix)
            raise self._broken from error
        if self._refused >= self._policy.refusals and lasting >= self._policy.patience:
            # Not broken for good: a server goes on asking, and hears of every refusal at once until a reply comes.
            row = f"{self._refused} calls refused in a row, for {lasting:.0f} s"
            raise KaceError(
                f"{self.name} is rate limited: {row}: {error.message}", fix=fix
            ) from error
        if self._refused >= TOLD_AFTER and not self._told:
            self._told = True
            log.warning(
                "%s is rate limited: calls are sent more slowly (%s)",
                self.name,
                error.message,
            )

    def _check_unbroken(self) -> None:
        if self._broken is not None:
            raise type(self._broken)(self._broken.message, fix=self._broken.fix)
