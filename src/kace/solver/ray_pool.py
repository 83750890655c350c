"""A run on the machines of a Ray cluster. The driver alone has the run directory and the caps; workers only solve.

A worker that is lost costs what was under way there: finished calls are kept by the driver as they end, and its
problems go to other workers with them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from kace.config import Config
from kace.errors import BudgetExceeded, KaceError, UsageError
from kace.models.budget import CAP_FIX
from kace.problem import Problem
from kace.redact import one_line
from kace.solver.ladder import Observer
from kace.solver.ray_worker import Grant, Lot, News, Opener, RayWorker, ladder
from kace.solver.records import Solution
from kace.solver.run import Run, solve_all
from kace.solver.session import window
from kace.tree.tree import EpistemicTree

log = logging.getLogger(__name__)

LOT = 16  # problems sent to a worker at once
START_SECONDS = 600.0  # that the first worker may take to come up, on nodes that a cluster starts when asked
STILLBORN = 3  # workers in a row that end before they open a session


@dataclass(slots=True)
class _Job:
    problem: Problem
    seed: int
    calls: list[str]  # that were paid for, as they are on disk
    done: asyncio.Future[Solution]


@dataclass(slots=True)
class _Purse:
    """What is left under the caps. A share is granted at a time; what a lost worker had counts as spent."""

    config: Config
    share: int
    calls: int = 0
    usd: float = 0.0

    def __post_init__(self) -> None:
        self.calls, self.usd = self.config.max_calls or 0, self.config.max_usd or 0.0

    def grant(self, calls: int, usd: float) -> Grant:
        """At least what a worker is short by, or why not."""
        if calls > self.calls:
            return Grant(refused=BudgetExceeded(f"the cap of {self.config.max_calls} calls is reached", fix=CAP_FIX))
        if usd > self.usd:
            over = f"the next call might pass the cap of {self.config.max_usd:.2f} USD"
            return Grant(refused=BudgetExceeded(over, fix=CAP_FIX))
        given = Grant(calls and max(calls, self.calls // self.share), usd and max(usd, self.usd / self.share))
        self.calls -= given.calls
        self.usd -= given.usd
        return given


@dataclass(slots=True)
class RayPool:
    """The workers of a run, and what is under way on them."""

    ray: Any
    config: Config
    workers: int
    run: Run
    actor: Callable[[], Any]  # starts a worker
    observer: Observer | None = None
    kept: dict[str, list[str]] = field(default_factory=dict)  # keys of calls paid before, by problem not done yet
    _todo: asyncio.Queue[_Job] = field(default_factory=asyncio.Queue)
    _alive: int = 0
    _stopped: KaceError | None = None

    async def solve(self, problem: Problem, seed: int) -> Solution:
        """Solve a problem on whatever worker has room."""
        if self._stopped:
            raise self._stopped
        records = filter(None, map(self.run.calls.record, self.kept.pop(problem.id, ())))
        calls = [record.model_dump_json() for record in records]
        job = _Job(problem, seed, calls, asyncio.get_running_loop().create_future())
        self._todo.put_nowait(job)
        solution = await job.done
        if self.observer:
            for attempt in solution.made:
                self.observer.attempted(problem, attempt)
            self.observer.solved(solution)
        return solution

    async def member(self, purse: _Purse) -> None:
        """One worker's place: whenever the worker there is lost, another is started."""
        stillborn = 0
        while not self._stopped:
            actor, jobs, opened = self.actor(), dict[tuple[str, int], _Job](), asyncio.Event()
            feeding = asyncio.create_task(self._feed(actor, jobs, opened))
            try:
                async for told in actor.news.remote():
                    for news in await told:
                        await self._hear(news, actor, jobs, opened, purse)
            except self.ray.exceptions.RayError as error:
                stillborn = 0 if opened.is_set() else stillborn + 1
                if stillborn == STILLBORN:
                    why = str(error).strip().split("\n")[-1]  # the last line of a traceback says it
                    self.stop(KaceError(one_line(f"Ray workers do not start: {why}"), fix="see the logs of Ray"))
                log.warning("a Ray worker was lost; its %d problems go to others", len(jobs))
            finally:
                feeding.cancel()
                self._alive -= opened.is_set()
                self.ray.kill(actor)
                for job in jobs.values():
                    self._todo.put_nowait(job)
        while not self._todo.empty():
            self._fail(self._todo.get_nowait(), self._stopped)

    async def _feed(self, actor: Any, jobs: dict[tuple[str, int], _Job], opened: asyncio.Event) -> None:
        """Give a worker problems in small lots, as long as it has room."""
        await opened.wait()
        room = window(self.config) + LOT  # so that a worker always has a next one
        while True:
            lots: list[Lot] = []
            while len(jobs) < room and len(lots) < LOT and not (lots and self._todo.empty()):
                job = await self._todo.get()
                jobs[job.problem.id, job.seed] = job
                lots.append(Lot(job.problem, job.seed, tuple(job.calls)))
            if lots:
                await actor.take.remote(lots)
            else:
                await asyncio.sleep(0.01)

    async def _hear(
        self, news: News, actor: Any, jobs: dict[tuple[str, int], _Job], opened: asyncio.Event, purse: _Purse
    ) -> None:
        job = jobs.get((news.problem, news.seed))
        match news.kind:
            case "open":
                self._alive += 1
                opened.set()
            case "asks":
                await actor.grant.remote(purse.grant(*news.short))
            case "call":
                self.run.calls.put_line(news.key, news.line)
                if job:
                    job.calls.append(news.line)
            case "solved":
                done = jobs.pop((news.problem, news.seed)).done
                if not done.done():
                    done.set_result(Solution.model_validate_json(news.line))
            case "failed" if job:
                self._fail(jobs.pop((news.problem, news.seed)), news.error)
            case "failed":
                self.stop(news.error)

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
                fix = "add nodes with free CPUs or GPUs, or lower ray_cpus and ray_gpus; the same command goes on"
                self.stop(KaceError(f"no Ray worker came up in {START_SECONDS:.0f} s", fix=fix))


def connect(config: Config) -> Any:
    """Ray, connected to the cluster that the configuration names. Call it before an event loop takes the signals."""
    if config.batch:
        raise UsageError("--ray does not go with --batch", fix="one process sends batches of any size: leave --ray out")
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise UsageError("--ray needs Ray", fix="pip install 'kace[ray]' on every machine") from None
    if not ray.is_initialized():
        try:
            host, colon, port = (config.ray or "").rpartition(":")
            if colon and "/" not in host:  # Ray itself tries for minutes
                socket.create_connection((host, int(port)), timeout=10).close()
            ray.init(address=config.ray, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            fix = "start one with ray start --head, or give its address: --ray HOST:6379"
            raise KaceError(one_line(f"no Ray cluster at '{config.ray}': {error}"), fix=fix) from None
    return ray


@asynccontextmanager
async def open_pool(
    config: Config, run: Run, tree: EpistemicTree | None, opener: Opener = ladder, observer: Observer | None = None
) -> AsyncIterator[RayPool]:
    """Start workers on the cluster: as many as it has room for, unless `ray_workers` says how many."""
    ray = connect(config)
    needs = {"CPU": config.ray_cpus, "GPU": config.ray_gpus}
    there = ray.cluster_resources()
    fit = min((int(there.get(name, 0) / need) for name, need in needs.items() if need), default=1)
    workers = config.ray_workers or fit
    if not workers:
        wanted = " and ".join(f"{need:g} {name}" for name, need in needs.items() if need)
        raise KaceError(f"no node of the Ray cluster has {wanted}", fix="lower ray_cpus or ray_gpus, or add nodes")
    kind = ray.remote(num_cpus=config.ray_cpus, num_gpus=config.ray_gpus, max_concurrency=1000)(RayWorker)

    def actor() -> Any:
        return kind.remote(config, tree, opener, version("kace"))

    pool = RayPool(ray, config, workers, run, actor, observer, run.pending_calls())
    purse = _Purse(config, 4 * workers)
    tasks = [asyncio.create_task(pool.member(purse)) for _ in range(workers)] + [asyncio.create_task(pool.watch())]
    try:
        yield pool
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def solve_on_ray(
    pool: RayPool,
    problems: Iterable[Problem],
    seed: int,
    kept: Callable[[Solution], None] = lambda solution: None,
    known: Callable[[Solution], None] = lambda solution: None,
) -> None:
    """Solve what the run does not hold yet on the pool's workers."""

    def keep(solution: Solution) -> None:
        pool.run.keep(solution)
        kept(solution)

    many = pool.workers * (window(pool.config) + LOT)
    await solve_all(pool.run.todo(problems, seed, known), seed, many, keep, pool.solve)
