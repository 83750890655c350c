"""Retries, and the limit on calls under way."""

from __future__ import annotations

import asyncio
import logging
import random

from kace.errors import BudgetExceeded, KaceError
from kace.models.base import (
    ChatModel,
    Failure,
    ModelError,
    PerLoop,
    RateLimited,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import mark_sent, sent_again

log = logging.getLogger(__name__)

CONNECTIONS = 64
TRIES = 4  # of a call with `Transient` faults; 429s are retried to the deadline
LONGEST_WAIT = 30.0
# The run stops after nothing but 429s for so long. Many providers count calls per minute.
REFUSED_SECONDS = 180.0


class Limited(Wrapper):
    """A model with retries and a limit on its calls.

    After a 429 all calls pause. The deadline bounds a call with its retries and the
    pauses between them; the queue is not counted. A user error, such as a wrong key,
    also ends the calls that queue.
    """

    def __init__(
        self,
        model: ChatModel,
        connections: int = CONNECTIONS,
        *,
        deadline: float = 600.0,
        base: float = 0.5,
    ) -> None:
        super().__init__(model)
        self._deadline = deadline
        # Seconds before the first retry, doubled for each; also the pause of all calls
        # after a 429 without Retry-After.
        self._base = base
        self._places = PerLoop(lambda: asyncio.Semaphore(connections))
        self._paused_until = 0.0
        # Since when there were only 429s.
        self._refused_since: float | None = None
        self._warned = False
        self._broken: KaceError | None = None  # the last user error

    async def complete(self, request: Request) -> Reply:
        """Answer one request, with retries."""
        loop = asyncio.get_running_loop()
        left = self._deadline
        failures = 0
        known = self._broken
        while True:
            async with self._places.get():
                while self._paused_until > loop.time():
                    await asyncio.sleep(self._paused_until - loop.time())
                if self._broken and self._broken is not known:
                    raise self._broken
                started = loop.time()
                try:
                    async with asyncio.timeout(left):
                        mark_sent(True)
                        reply = await self.model.complete(request)
                    self._refused_since = None
                    return reply
                except TimeoutError:
                    raise ModelError(
                        Failure.TIMEOUT,
                        f"no reply within {self._deadline:g} s, retries included",
                    ) from None
                except Transient as error:
                    fault = error
                    if isinstance(fault, RateLimited):
                        self._note_refusal(fault)
                    elif failures + 1 >= TRIES:
                        raise
                except KaceError as error:
                    # A cap is that of this call's ledger only.
                    if not isinstance(error, BudgetExceeded):
                        self._broken = error
                    raise
            mark_sent(False)
            # Without a place: in the ledger, this call may wait for one that queues.
            jitter = random.random()  # noqa: S311 - so that calls spread
            if fault.retry_after is None:
                longest = self._base * 2.0 ** min(failures, 30)
                wait = jitter * min(LONGEST_WAIT, longest)
            else:
                wait = fault.retry_after + jitter * self._base
            left -= loop.time() - started + wait
            if left <= 0:
                raise fault
            await asyncio.sleep(wait)
            await sent_again(fault)
            failures += 1

    def _note_refusal(self, error: RateLimited) -> None:
        """Pause all calls after a 429, and stop the run if 429s do not end."""
        now = asyncio.get_running_loop().time()
        if self._refused_since is None:
            self._refused_since = now
        if not self._warned:
            self._warned = True
            log.warning(
                "%s is rate limited: calls pause (%s)", self.name, error.message
            )
        seconds = now - self._refused_since
        pause = error.retry_after or self._base
        why = ""
        if pause > self._deadline:
            why = f"asks to wait {pause:.0f} s, longer than a call may take"
        elif seconds >= REFUSED_SECONDS:
            why = f"refused all calls for {seconds:.0f} s"
        if why:
            raise KaceError(
                f"{self.name} {why}: {error.message}",
                fix="run the same command again later: finished calls are kept",
            ) from error
        self._paused_until = max(self._paused_until, now + pause)
