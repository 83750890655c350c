"""Retries, and the limit on calls under way."""

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
HEADROOM = 2.0
"""Pace over what the limit sustains, and limit over what the pace fills, so that neither
holds the other back."""
SHORTEST_ROUND = 0.5  # seconds: a 429 may take longer than a quick reply
HASTY = 1.0
PATIENT = 8.0
"""Seconds, or calls if those are slower, until a cut pace regains 5 %: after a first
guess, and after a pace that held."""
SLOWEST = 1 / 60  # calls per second; no 429 reduces the pace further
WARN_AFTER = 3  # 429s in a row: a single one is how the pace is found
LONGEST_PAUSE = 60.0  # seconds for which one Retry-After holds back other calls
BROKEN_SECONDS = 5.0  # for which calls fail unsent after a user error


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failures are retried, when, and for how long.

    `Transient` gets `attempts` tries, `RateLimited` as many as fit: how busy an account
    is must not decide which problems count as wrong. A timeout has used the call's time
    already, and a refusal is final.
    """

    attempts: int = 4
    base: float = 0.5
    cap: float = 30.0
    deadline: float = (
        600.0  # seconds of a call, pauses included, the queue excluded
    )
    # The run stops after this many 429s in a row over at least this many seconds: many
    # providers count calls per minute.
    refusals: int = 10
    patience: float = 180.0
    jitter: Callable[[], float] = random.random

    def wait(self, failures: int, requested: float | None = None) -> float:
        """Return the seconds to wait: the requested ones, else full jitter."""
        if requested is not None:
            return requested + self.base * self.jitter()
        return (
            min(self.cap, self.base * 2.0 ** min(failures - 1, 30))
            * self.jitter()
        )


class AdaptiveLimiter:
    """How many calls are under way and how fast new ones start; first come first served.

    The limit begins at `START` and doubles every clean round in which a call had to
    wait. From the first 429 on, calls are paced instead, since many providers count
    calls per second. The pace is cut once per round trip and grows again, slowly at
    first. A `fixed` limiter keeps that many calls under way, whatever the provider does.
    """

    def __init__(
        self, max_connections: int = 1000, *, fixed: bool = False
    ) -> None:
        self._cap = max_connections
        self._adaptive = not fixed
        self._start_limit = max_connections
        if not fixed:
            self._start_limit = min(START, max_connections)
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = 0
        self._next_start = 0.0
        self._round_trip = 0.0
        self._patience = HASTY
        # Calls per second at `_paced_since`, `None` before the first 429.
        self._rate: float | None = None
        # Since when only the pace makes calls wait. Only then does it grow.
        self._paced_since: float | None = None
        self._last_cut = -math.inf
        self._last_full = -math.inf

    @property
    def limit(self) -> int:
        """Calls that may be under way now."""
        if self._rate is None:
            return self._start_limit
        filled = math.ceil(HEADROOM * self._rate * max(1.0, self._round_trip))
        return max(1, min(self._cap, filled))

    @asynccontextmanager
    async def slot(self, *, again: bool = False) -> AsyncIterator[None]:
        """Hold a place for one call; a retry goes before new calls."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._queue.insert(0 if again else len(self._queue), turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if (
                not turn.cancelled()
            ):  # admitted, but cancelled before it could run
                self._under_way -= 1
                self._admit()
            raise
        started = loop.time()
        try:
            yield
        except RateLimited as error:
            self._slow_down(started, error.retry_after)
            raise
        else:
            self._speed_up(started)
        finally:
            self._under_way -= 1
            self._admit()

    def _admit(self) -> None:
        """Start the calls that may start now, and set a timer for the next one."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._timer is not None:
            # Set anew each time: the old one may belong to a loop that has ended.
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
                # A late timer must not slow the pace; a pause must not be caught up.
                earliest = max(self._next_start, now - 0.005)
                self._next_start = earliest + 1 / self._pace(now)
        paced = bool(self._queue) and self._under_way < self.limit
        if paced and self._paced_since is None:
            self._paced_since = now
        elif not paced and self._paced_since is not None:
            if self._rate is not None:
                self._rate = self._pace(now)
            self._paced_since = None

    def _pace(self, now: float) -> float:
        """Return how many calls may start per second."""
        if not self._adaptive:
            return math.inf
        if self._rate is None:
            return HEADROOM * self.limit / max(SHORTEST_ROUND, self._round_trip)
        if self._paced_since is None:
            return self._rate
        # Flat at first, then ever steeper: a limit that holds is seldom exceeded, and
        # one that was lifted is soon found.
        grown = (now - self._paced_since) * min(1.0, self._rate)
        return self._rate * (1 + 0.05 * (grown / self._patience) ** 2)

    def _speed_up(self, started: float) -> None:
        """Note a reply, which raises the limit if the round was full."""
        now = asyncio.get_running_loop().time()
        seconds = now - started
        if self._round_trip:
            self._round_trip = 0.8 * self._round_trip + 0.2 * seconds
        else:
            self._round_trip = seconds
        # One more for each reply doubles the limit per round.
        if now - self._last_full <= seconds:
            self._start_limit = min(self._cap, self._start_limit + 1)

    def _slow_down(self, started: float, requested: float | None) -> None:
        """Cut the pace after a 429, once per round trip."""
        if not self._adaptive:
            return
        now = asyncio.get_running_loop().time()
        if requested is not None:
            pause = min(requested, LONGEST_PAUSE)
            self._next_start = max(self._next_start, now + pause)
        if started <= self._last_cut:  # sent before the last cut
            return
        pace = self._pace(now)
        held = now - self._last_cut >= 1
        self._patience = HASTY
        if self._rate is None:
            rate = min(pace, self.limit) / 2
        elif held:
            rate = 0.9 * pace
            self._patience = PATIENT
        else:
            rate = 0.8 * pace
        self._rate = max(SLOWEST, rate)
        self._last_cut = now
        if self._paced_since is not None:
            self._paced_since = now
        # Lets the provider's bucket fill a little.
        self._next_start = max(self._next_start, now + 2 / self._rate)


class Limited(Wrapper):
    """A model with retries and a limit on its calls.

    After a user error, requests fail unsent with the same message for a few seconds. A
    run ends at the first; a server recovers when the key or the provider is mended.
    """

    def __init__(
        self, model: ChatModel, limiter: AdaptiveLimiter, policy: RetryPolicy
    ) -> None:
        super().__init__(model)
        self._limiter = limiter
        self._policy = policy
        self._broken: KaceError | None = None
        self._broken_until = 0.0
        # 429s since the last reply
        self._refused = 0
        self._refused_since = 0.0
        self._warned = False

    async def complete(self, request: Request) -> Reply:
        """Answer one request, with as many tries as the policy allows."""
        self._check_unbroken()
        try:
            async with asyncio.timeout(None) as clock:
                return await self._retry(request, clock)
        except TimeoutError:
            what = (
                f"no reply within {self._policy.deadline:g} s, retries included"
            )
            raise ModelError(Failure.TIMEOUT, what) from None

    async def _retry(self, request: Request, clock: asyncio.Timeout) -> Reply:
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
            except RateLimited as error:
                self._note_refusal(error, loop.time())
                fault: ModelError = error
            except Transient as error:
                if failures + 1 >= self._policy.attempts:
                    raise
                fault = error
            except KaceError as error:
                # A cap belongs to one ledger only: calls of others may continue.
                if not isinstance(error, BudgetExceeded):
                    self._break(error)
                raise
            failures += 1
            wait = self._policy.wait(failures, fault.retry_after)
            if loop.time() + wait >= deadline:
                raise fault
            await asyncio.sleep(
                wait
            )  # without a place: other calls may succeed
            await sent_again(fault)

    def _note_refusal(self, error: RateLimited, now: float) -> None:
        """Warn about 429s, and stop the run if they do not end.

        Otherwise problems would fail one by one.
        """
        if not self._refused:
            self._refused_since = now
        self._refused += 1
        seconds = now - self._refused_since
        fix = "run the same command again later: finished calls are kept"
        requested = error.retry_after
        if requested is not None and requested > self._policy.deadline:
            what = (
                f"{self.name} asks to wait {requested:.0f} s, longer than a call may take: "
                f"{error.message}"
            )
            too_long = KaceError(what, fix=fix)
            self._break(too_long)
            raise too_long from error
        policy = self._policy
        if self._refused >= policy.refusals and seconds >= policy.patience:
            row = f"{self._refused} calls refused in a row, for {seconds:.0f} s"
            what = f"{self.name} is rate limited: {row}: {error.message}"
            raise KaceError(what, fix=fix) from error
        if self._refused >= WARN_AFTER and not self._warned:
            self._warned = True
            warning = "%s is rate limited: calls are sent more slowly (%s)"
            log.warning(warning, self.name, error.message)

    def _break(self, error: KaceError) -> None:
        self._broken = error
        self._broken_until = asyncio.get_running_loop().time() + BROKEN_SECONDS

    def _check_unbroken(self) -> None:
        if self._broken is None:
            return
        if asyncio.get_running_loop().time() >= self._broken_until:
            self._broken = None
            return
        raise type(self._broken)(self._broken.message, fix=self._broken.fix)
