"""Half the price, within a day: a model whose requests are gathered and sent together, as jobs of a batch API.

Whoever asks waits for the batch that holds the request, whichever process submitted it. So the same command, from
another shell or on another day, collects what is finished and submits only what is missing.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kace.errors import KaceError, Submitted
from kace.files import sync, whole_lines
from kace.models.base import (
    ChatModel,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import Ledger, sent_again
from kace.models.cache import CallStore, head_of
from kace.models.jobs import Jobs, JobStatus, Unfinished, head_of_result
from kace.models.spool import DAY, RequestBatch, Spool
from kace.words import counted

log = logging.getLogger(__name__)

TRIES = 3  # of a request in batches, before its attempt fails
LEAST = 10  # requests that a batch without room is not made smaller than
CHARS_PER_TOKEN = 4
LIMIT = re.compile(r"Limit: ([\d,]+) enqueued tokens", re.IGNORECASE)
LATER = "run the same command later: nothing that was submitted is lost"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: how long nothing new must come before a batch is closed, and how often and how long jobs are asked."""

    quiet: float = 2.0
    first: float = 1.0
    longest: float = 60.0
    settle: float = 5.0  # until a job that was just made is surely listed
    tell: float = 600.0  # between two words on how it goes, where nothing happens
    patience: float = 3600.0  # with a provider that cannot be reached
    overdue: float = 7200.0  # after the day in which a job ends


class Batched(Wrapper):
    """A model that answers through batches; with `live`, the model itself answers what a batch did not.

    Without `wait`, everything is submitted, what is finished is collected, and the rest raises `Submitted`.
    """

    def __init__(
        self,
        model: ChatModel,
        jobs: Jobs,
        calls: CallStore,
        *,
        wait: bool = True,
        live: bool = True,
        ledger: Ledger,
        pace: Pace | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(model)
        self._jobs = jobs
        self._wait = wait
        self._live = live
        self._pace = pace or Pace()
        self._ledger = ledger
        self._spool = Spool(jobs, calls, size)
        self._turns: defaultdict[int, list[asyncio.Future[None]]] = defaultdict(
            list
        )  # who waits for which request
        self._wake = asyncio.Event()
        self._arrived = 0
        self._told = 0.0
        self._strange: set[str] = set()  # jobs of others
        self._worker: asyncio.Task[None] | None = None
        self._broken: Exception | None = None

    async def complete(self, request: Request) -> Reply:
        """The reply of the batch that holds the request, which first waits for company."""
        key = request.digest(self.identity)
        for left in reversed(range(TRIES)):
            try:
                return await self._answer(key, request)
            except Unfinished as fault:
                if not left:
                    raise
                missed = fault
            await sent_again(missed)
            if self._live and not missed.anew:
                break
        return await self.model.complete(request)

    async def aclose(self) -> None:
        """Let go. Jobs under way stay with their provider."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
            self._worker = None
        self._spool.close()
        await self._jobs.aclose()
        await super().aclose()

    async def _answer(self, key: str, request: Request) -> Reply:
        head = head_of(key)
        spool = self._spool
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        while head not in spool.results:
            if self._broken is not None:
                raise self._broken
            if head not in spool.sent:
                spool.gather(head, self._jobs.line(key, request))
            self._arrived += 1
            self._wake.set()
            turn = asyncio.get_running_loop().create_future()
            self._turns[head].append(turn)
            await turn
        return spool.take(head)

    def _wake_up(self, heads: Iterable[int], error: Exception | None = None) -> None:
        for turn in [turn for head in heads for turn in self._turns.pop(head, ())]:
            if not turn.done():
                turn.set_exception(error) if error else turn.set_result(None)

    # What follows runs in one task beside all those that wait.

    async def _work(self) -> None:
        try:
            for batch in [each for each in self._spool.open if not each.job]:
                await self._find_or_drop(batch)
            await self._go_on()
        except Exception as error:
            outside = isinstance(error, ModelError | OSError) and not isinstance(
                error, KaceError
            )
            self._broken = KaceError(str(error), fix=LATER) if outside else error
            self._wake_up(list(self._turns), self._broken)

    async def _go_on(self) -> None:
        clock = asyncio.get_running_loop().time
        spool = self._spool
        pace = self._pace
        delay = pace.first
        look = 0.0
        seen = 0
        while True:
            self._wake.clear()
            while seen != self._arrived:
                seen = self._arrived
                await asyncio.sleep(pace.quiet)
            spool.close_batch()
            for batch in [each for each in spool.held if each.due <= time.time()]:
                await self._submit(batch)
                delay = pace.first
                look = 0.0
            if clock() >= look:
                if await self._look():
                    delay = pace.first
                    await asyncio.sleep(
                        pace.quiet
                    )  # those who waited go on, and may ask for more
                    continue
                if not self._wait and self._turns and seen == self._arrived:
                    raise Submitted(
                        self.progress(),
                        fix="run the same command later: it collects what is finished",
                    )
                look = clock() + delay
                delay = min(pace.longest, 1.5 * delay)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(
                    look if spool.open or spool.held else None
                ):
                    await self._wake.wait()

    async def _submit(self, batch: RequestBatch) -> None:
        """Make a job of a batch. Where nobody knows what came of that, the provider's list says."""
        spool = self._spool
        wait = self._pace.first
        batch.since = await self._steady(self._jobs.newest)
        spool.note(
            batch,
            "gathered",
            model=self.identity,
            requests=batch.requests,
            since=batch.since,
        )
        spool.held.remove(batch)
        spool.open.append(batch)
        while not batch.job:
            try:
                batch.job = await self._jobs.submit(spool.asked(batch), batch.tag)
                batch.began = time.time()
                spool.note(batch, "submitted", job=batch.job)
            except RateLimited as error:
                return self._hold(batch, error.message, error.retry_after)
            except Transient as error:
                log.warning(
                    "batch: %s; looking whether it was submitted", error.message
                )
                await asyncio.sleep(wait)
                wait = min(self._pace.longest, 2 * wait)
                await self._find(batch)
            except (ModelError, KaceError) as error:
                self._wake_up(spool.drop(batch, str(error)))
                raise
        said = f"{counted(batch.requests, 'request')} submitted as {batch.job}"
        log.warning("batch: %s", "; ".join([said, *self._spent()]))

    async def _find(self, batch: RequestBatch) -> bool:
        """Look for the job of a batch that may have been submitted. A new one may not be listed at once."""
        for wait in (0.0, self._pace.settle):
            await asyncio.sleep(wait)
            found = await self._steady(
                partial(self._jobs.find, batch.tag, batch.requests, batch.since)
            )
            known = {
                each.job for each in (*self._spool.open, *self._spool.ended)
            } | self._strange
            if job := next((job for job in found if job not in known), ""):
                batch.job = job
                batch.sure = self._jobs.TAGGED
                if batch.sure:
                    self._spool.note(batch, "submitted", job=job)
                return True
        return False

    async def _find_or_drop(self, batch: RequestBatch) -> None:
        if not await self._find(batch):
            self._wake_up(self._spool.drop(batch, "never submitted"))

    async def _look(self) -> bool:
        """Ask how the jobs go, and collect the results of those that have ended. Whether any has."""
        ended = False
        for batch in [each for each in self._spool.open if each.job]:
            job = batch.job
            status = batch.status = await self._steady(partial(self._jobs.status, job))
            if status.refused and status.no_room:
                self._hold(batch, status.outcome)
            elif status.refused:
                self._wake_up(self._spool.drop(batch, status.outcome))
                raise KaceError(
                    f"{job} is refused: {status.outcome}", fix="change what it names"
                )
            elif status.outcome:
                await self._collect(batch, status)
                ended = True
            elif time.time() > batch.ends + self._pace.overdue:
                late = f"{job} has not ended {(time.time() - batch.began) / 3600:.0f} h after it was submitted"
                raise KaceError(
                    late, fix="cancel it at its provider, then run the same command"
                )
        for batch in self._spool.held if ended else ():
            batch.due = 0.0  # there is room again
        if self._spool.open and (ended or time.time() - self._told > self._pace.tell):
            self._told = time.time()
            log.warning("batch: %s", self.progress())
        return ended

    def _hold(self, batch: RequestBatch, why: str, wait: float | None = None) -> None:
        """Submit a batch later, when there is room; in halves, where nothing of ours is in its way."""
        spool = self._spool
        now = time.time()
        if now - batch.began > DAY + self._pace.overdue:
            raise KaceError(
                f"for a day there was no room for a batch: {why}", fix=LATER
            )
        spool.note(batch, "dropped", why=why)
        spool.open.remove(batch)
        self._strange.add(batch.job)
        batch.job = ""
        batch.due = now + max(wait or 0.0, self._pace.longest)
        spool.held.append(batch)
        log.warning(
            "batch: %s wait for room (%s)", counted(batch.requests, "request"), why
        )
        limit = LIMIT.search(why)
        most = int(limit[1].replace(",", "")) if limit else 0
        if (
            batch.size / CHARS_PER_TOKEN > most / 2
            and batch.requests > LEAST
            and not spool.open
        ):
            spool.halve(batch)

    async def _collect(self, batch: RequestBatch, status: JobStatus) -> None:
        spool = self._spool
        part = self._spool.part
        with part.open("wb") as file:

            async def fetch() -> None:
                file.seek(0)
                file.truncate()
                await self._jobs.fetch(status, file)

            await self._steady(fetch)
            file.flush()
            sync(file.fileno())
        if not batch.sure:
            heads = (head_of_result(line) for _, _, line in whole_lines(part))
            owner = next(
                (spool.sent.get(head) for head in heads if head is not None), None
            )
            if owner is None or (owner.sure and owner is not batch):
                self._strange.add(batch.job)
                batch.job = ""
                return await self._find_or_drop(batch)
            owner.job, batch.job, owner.sure = batch.job, owner.job, True
            batch = owner
        asked = list(spool.heads(batch))
        missed = spool.collected(batch, status.outcome)
        answered = f"{batch.requests - len(missed):,} of {counted(batch.requests, 'request')} answered"
        log.warning("batch: %s %s, %s", batch.job, status.outcome, answered)
        if missed and status.outcome == "cancelled":
            fix = "run the same command to submit the others again"
            self._broken = KaceError(f"{batch.job} was cancelled, {answered}", fix=fix)
            self._wake_up(missed, self._broken)
        self._wake_up(asked)

    async def _steady(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer, ever more slowly, but not for ever."""
        wait = self._pace.first
        began = time.monotonic()
        told = False
        while True:
            try:
                return await ask()
            except (RateLimited, Transient) as error:
                lasting = time.monotonic() - began
                if lasting > self._pace.patience:
                    raise KaceError(
                        f"no answer for {lasting:.0f} s: {error.message}", fix=LATER
                    ) from None
                if not told and wait >= self._pace.longest:
                    log.warning("batch: no answer so far, asking on: %s", error.message)
                    told = True
                asked = error.retry_after or 0.0
            await asyncio.sleep(min(max(wait, asked), self._pace.patience))
            wait = min(self._pace.longest, 2 * wait)

    def _spent(self) -> list[str]:
        """Return the money spent so far, where there is any."""
        usd = self._ledger.usd
        return [f"{usd:.2f} USD so far"] if usd else []

    def progress(self) -> str:
        """How it goes: batches, requests, money and the expected end."""
        spool = self._spool
        now = time.time()
        under_way = [batch for batch in spool.open if batch.job]
        total = sum(batch.requests for batch in under_way)
        done = sum(batch.status.done for batch in under_way)
        parts = [
            f"{counted(len(under_way), 'job')} under way, {done:,} of {counted(total, 'request')} done"
        ]
        if waiting := sum(batch.requests for batch in spool.held):
            parts.append(f"{waiting:,} wait for room")
        parts += self._spent()
        if 0 < done < total:
            begun = [batch for batch in under_way if batch.status.done]
            ends = max(
                now + (now - batch.began) * (batch.requests / batch.status.done - 1)
                for batch in begun
            )
            parts.append(f"expected end {_weekday(ends)}")
        elif under_way:
            parts.append(
                f"at the latest {_weekday(max(batch.ends for batch in under_way))}"
            )
        return "; ".join(parts)


def _weekday(at: float) -> str:
    return time.strftime("%a %H:%M", time.localtime(at))
