"""Runs on the machines of a Ray cluster. The driver alone has the files and the ledger; workers only solve.

A worker that is lost costs what was under way there: finished calls are kept by the driver as they end, and its
problems go to other workers with them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from kace.config import Config
from kace.errors import BudgetExceeded, KaceError, UsageError, one_line
from kace.ladder.ladder import Observer
from kace.ladder.record import Solution
from kace.ladder.router import FIRST, REFINED
from kace.ladder.session import window
from kace.models.budget import CAP_FIX, Ledger, Spent
from kace.models.cache import CallRecord, CallStore
from kace.problems import Problem
from kace.runs.ray_worker import Grant, Lot, News, Opener, RayWorker
from kace.runs.run import Hear, Run

log = logging.getLogger(__name__)

LOT = 16  # problems sent to a worker at once
SHARES = (
    4  # parts of what is left under the caps for each worker: one is granted at a time
)
LENT = "lent to workers"  # as the ledger calls what was granted and is not spent yet
START_SECONDS = 600.0  # that the first worker may take to come up, on nodes that a cluster starts when asked
STILLBORN = 3  # workers in a row that end before they open a session


@dataclass(slots=True)
class _Job:
    lot: Lot
    calls: list[str]  # that were paid for, as they are on disk
    done: asyncio.Future[Solution]


@dataclass(slots=True)
class RayPool:
    """The workers of a cluster, and what is under way on them, of one run or of several side by side."""

    ray: Any
    config: Config
    workers: int
    calls: CallStore
    ledger: (
        Ledger  # holds the caps; what workers may spend and have not counts as spent
    )
    actor: Callable[[], Any]  # starts a worker
    observer: Observer | None = None
    again: bool = False  # whether a problem is solved on a seed more than once: then its calls stay known
    kept: defaultdict[tuple[str, int], list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The keys of calls paid before, by problem and seed."""
    _turns: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    _todo: asyncio.Queue[_Job] = field(default_factory=asyncio.Queue)
    _alive: int = 0
    _stopped: KaceError | None = None

    async def solve(self, problem: Problem, seed: int, opener: Any) -> Solution:
        """Solve a problem on whatever worker has room, as an opener in Ray's store says.

        Whoever solves the same problem meanwhile has its turn later, and pays for nothing twice.
        """
        async with self._turns[problem.id]:
            if self._stopped:
                raise self._stopped
            seeds = dict.fromkeys(
                (seed, self.config.seed)
            )  # a classifier may keep the configured one
            keys = [
                key for each in seeds for key in self.kept.get((problem.id, each), ())
            ]
            calls = [
                record.model_dump_json()
                for record in map(self.calls.record, keys)
                if record
            ]
            job = _Job(
                Lot(problem, seed, (), opener),
                calls,
                asyncio.get_running_loop().create_future(),
            )
            self._todo.put_nowait(job)
            solution = await job.done
        if not self.again:
            self._turns.pop(problem.id, None)
            self.kept.pop((problem.id, seed), None)
        if self.observer:
            for attempt in solution.made:
                self.observer.attempted(problem, attempt)
            self.observer.solved(solution)
        return solution

    async def member(self) -> None:
        """One worker's place: whenever the worker there is lost, another is started."""
        stillborn = 0
        while not self._stopped:
            actor = self.actor()
            jobs = dict[str, _Job]()
            opened = asyncio.Event()
            feeding = asyncio.create_task(self._feed(actor, jobs, opened))
            try:
                async for told in actor.news.remote():
                    for news in await told:
                        await self._hear(news, actor, jobs, opened)
            except self.ray.exceptions.RayError as error:
                stillborn = 0 if opened.is_set() else stillborn + 1
                if stillborn == STILLBORN:
                    why = (
                        str(error).strip().split("\n")[-1]
                    )  # the last line of a traceback says it
                    self.stop(
                        KaceError(
                            one_line(f"Ray workers do not start: {why}"),
                            fix="see the logs of Ray",
                        )
                    )
                log.warning(
                    "a Ray worker was lost; its %d problems go to others", len(jobs)
                )
            finally:
                feeding.cancel()
                self._alive -= opened.is_set()
                self.ray.kill(actor)
                for job in jobs.values():
                    self._todo.put_nowait(job)
        while not self._todo.empty():
            self._fail(self._todo.get_nowait(), self._stopped)

    async def _feed(
        self, actor: Any, jobs: dict[str, _Job], opened: asyncio.Event
    ) -> None:
        """Give a worker problems in small lots, as long as it has room."""
        await opened.wait()
        room = window(self.config) + LOT  # so that a worker always has a next one
        while True:
            lots: list[Lot] = []
            while (
                len(jobs) < room
                and len(lots) < LOT
                and not (lots and self._todo.empty())
            ):
                job = await self._todo.get()
                jobs[job.lot.problem.id] = job
                lots.append(job.lot._replace(calls=tuple(job.calls)))
            if lots:
                await actor.take.remote(lots)
            else:
                await asyncio.sleep(0.01)

    async def _hear(
        self, news: News, actor: Any, jobs: dict[str, _Job], opened: asyncio.Event
    ) -> None:
        job = jobs.get(news.problem)
        match news.kind:
            case "open":
                self._alive += 1
                opened.set()
            case "asks":
                await actor.grant.remote(self._grant(*news.short))
            case "call":
                self._enter(CallRecord.model_validate_json(news.line), news.line)
                if job:
                    job.calls.append(news.line)
            case "solved":
                done = jobs.pop(news.problem).done
                if not done.done():
                    done.set_result(Solution.model_validate_json(news.line))
            case "failed" if job:
                self._fail(jobs.pop(news.problem), news.error)
            case "failed":
                self.stop(news.error)

    def _enter(self, record: CallRecord, line: str) -> None:
        """Keep a call that a worker made, and enter it in the ledger."""
        self.calls.put_line(record.key, line)
        if self.again:
            self.kept[record.problem, record.seed].append(record.key)
        usage = record.reply().usage
        price = self.ledger.price(self.config.model)
        role = "classifier" if record.tier in (FIRST, REFINED) else "solver"
        spent = self.ledger.roles.setdefault(role, Spent())
        usd = price.cost(usage) if price else 0.0
        spent.calls = spent.calls + 1
        spent.usage = spent.usage + usage
        spent.usd = spent.usd + usd
        if lent := self.ledger.roles.get(LENT):
            lent.calls -= self.ledger.caps.calls is not None
            lent.usd -= usd if self.ledger.caps.usd is not None else 0.0

    def _grant(self, calls: int, usd: float) -> Grant:
        """At least what a worker is short by, or why not. What a lost worker had stays lent."""
        caps = self.ledger.caps
        lent = self.ledger.roles.setdefault(LENT, Spent())
        left = (caps.calls or 0) - self.ledger.calls
        if calls and calls > left:
            return Grant(
                refused=BudgetExceeded(
                    f"the cap of {caps.calls} calls is reached", fix=CAP_FIX
                )
            )
        money = (caps.usd or 0.0) - self.ledger.usd - self.ledger.reserved
        if usd and usd > money:
            over = f"the next call might pass the cap of {caps.usd:.2f} USD"
            return Grant(refused=BudgetExceeded(over, fix=CAP_FIX))
        share = SHARES * self.workers
        given = Grant(
            calls and max(calls, left // share), usd and max(usd, money / share)
        )
        lent.calls = lent.calls + given.calls
        lent.usd = lent.usd + given.usd
        return given

    def _fail(self, job: _Job, error: KaceError | None) -> None:
        if not job.done.done():
            job.done.set_exception(error or KaceError("a Ray worker failed"))

    def stop(self, error: KaceError | None) -> None:
        """End the run with an error: what is under way ends, and nothing new begins."""
        self._stopped = self._stopped or error
        while not self._todo.empty():
            self._fail(self._todo.get_nowait(), error)

    async def watch(self) -> None:
        """Stop the run where no worker comes up."""
        while True:
            await asyncio.sleep(START_SECONDS)
            if not self._alive:
                fix = "add nodes with free CPUs; the same command goes on"
                self.stop(
                    KaceError(
                        f"no Ray worker came up in {START_SECONDS:.0f} s", fix=fix
                    )
                )


def connect(config: Config) -> Any:
    """Ray, connected to the cluster that the configuration names. Call it before an event loop takes the signals."""
    if config.batch:
        raise UsageError(
            "--ray does not go with --batch",
            fix="one process sends batches of any size: leave --ray out",
        )
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise UsageError(
            "--ray needs Ray", fix="pip install 'kace[ray]' on every machine"
        ) from None
    if not ray.is_initialized():
        try:
            host, colon, port = (config.ray or "").rpartition(":")
            if colon and "/" not in host:  # Ray itself tries for minutes
                socket.create_connection((host, int(port)), timeout=10).close()
            ray.init(
                address=config.ray, log_to_driver=False, logging_level=logging.ERROR
            )
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            fix = (
                "start one with ray start --head, or give its address: --ray HOST:6379"
            )
            raise KaceError(
                one_line(f"no Ray cluster at '{config.ray}': {error}"), fix=fix
            ) from None
    return ray


@asynccontextmanager
async def open_pool(
    config: Config,
    calls: CallStore,
    run: Run | None = None,
    *,
    ledger: Ledger | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[RayPool]:
    """Start workers on the cluster: as many as it has room for, unless `ray_workers` says how many.

    Without the one run that it is for, a pool serves several, which share calls.
    """
    ray = connect(config)
    workers = config.ray_workers or int(ray.cluster_resources().get("CPU", 0))
    if not workers:
        raise KaceError("no node of the Ray cluster has a free CPU", fix="add nodes")
    kind = ray.remote(num_cpus=1, max_concurrency=1000)(RayWorker)

    def actor() -> Any:
        return kind.remote(config, version("kace"))

    ledger = ledger or Ledger(config.caps(), config.prices)
    pool = RayPool(
        ray, config, workers, calls, ledger, actor, observer, again=run is None
    )
    for record in calls.records():
        if run is None or run.pending(record.problem, record.seed):
            pool.kept[record.problem, record.seed].append(record.key)
    tasks = [
        asyncio.create_task(work)
        for work in (*(pool.member() for _ in range(workers)), pool.watch())
    ]
    try:
        yield pool
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def solve_on_ray(
    pool: RayPool,
    run: Run,
    problems: Iterable[Problem],
    seed: int,
    opener: Opener,
    kept: Hear = lambda solution: None,
    known: Hear = lambda solution: None,
) -> None:
    """Solve what a run does not hold yet on the pool's workers, which get the opener once each."""
    solve = partial(pool.solve, seed=seed, opener=pool.ray.put(opener))
    many = pool.workers * (window(pool.config) + LOT)
    await run.solve_by(solve, problems, seed, many, kept=kept, known=known)
