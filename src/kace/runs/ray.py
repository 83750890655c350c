"""Runs on the machines of a Ray cluster.

The driver alone has the files and the ledger; workers only solve. A lost worker costs
what was under way there: the driver keeps finished calls as they end, and gives its
problems to other workers together with those calls.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from kace.cards.tree import EpistemicTree
from kace.config import Caps, Config
from kace.errors import BudgetExceeded, KaceError, UsageError, one_line
from kace.ladder.ladder import Observer
from kace.ladder.record import Solution
from kace.ladder.retrieve import FIRST, REFINED
from kace.ladder.session import Session, open_session, window
from kace.models.base import Reply
from kace.models.budget import CAP_FIX, Ledger, Spent
from kace.models.cache import CallRecord, CallStore
from kace.problems import Problem
from kace.runs.run import OnSolution, Run, Solve, climb_with, ignore

log = logging.getLogger(__name__)

LOT = 16  # problems sent to a worker at once
SHARES = 4  # parts per worker of what is left under the caps; one is granted at a time
LENT = "lent to workers"  # the ledger's role for grants that are not spent yet
START_SECONDS = 600.0  # until the first worker must be up; clusters may start nodes
STILLBORN = 3  # workers in a row that may end before they open a session
GATHER_SECONDS = 0.02  # events are sent together: a Ray object costs more than a record
OPEN = 16  # solvers that a worker keeps open, one per run and seed

Opener = Callable[[Session, int], Solve]
"""Returns how problems are solved in a session, on a seed."""


def open_reader(
    config: Config, tree: EpistemicTree | None, session: Session, seed: int
) -> Solve:
    """Return the ladder as a solver, reading from a tree if there is one."""
    kit = session.kit if tree is None else session.reading(tree, config)
    return climb_with(replace(kit, seed=seed))


class Lot(NamedTuple):
    """A problem to solve on a seed, with the calls that were paid for it before."""

    problem: Problem
    seed: int
    calls: tuple[str, ...]  # lines of call stores
    opener: Any  # a reference to the opener in Ray's store


class Event(NamedTuple):
    """What a worker reports to the driver."""

    kind: Literal["open", "call", "solved", "failed", "short"]
    problem: str = ""
    line: str = ""  # a call or a solution, as JSON
    error: KaceError | None = None
    short: tuple[int, float] = (0, 0.0)  # calls and USD that the allowance lacks


class Grant(NamedTuple):
    """What a worker may spend beyond what it had, or why it may not."""

    calls: int = 0
    usd: float = 0.0
    refused: BudgetExceeded | None = None


# The worker


class Allowance(Ledger):
    """A ledger that starts at nothing and requests more when a call does not fit."""

    def __init__(
        self, config: Config, request: Callable[[int, float], Awaitable[Grant]]
    ) -> None:
        caps = config.caps()
        super().__init__(Caps(caps.calls and 0, caps.usd and 0.0), config.prices)
        self._request = request
        self._requesting = asyncio.Lock()

    def _short(self, worst: float) -> tuple[int, float]:
        """Return the calls and money that a call lacks that costs `worst` at most."""
        calls = 0
        usd = 0.0
        if self.caps.calls is not None:
            calls = max(0, self.calls + 1 - self.caps.calls)
        if self.caps.usd is not None:
            usd = max(0.0, self.usd + self.reserved + worst - self.caps.usd)
        return calls, usd

    async def _enter(self, spent: Spent, worst: float) -> None:
        async with self._requesting:
            while any(short := self._short(worst)):
                grant = await self._request(*short)
                calls = self.caps.calls
                usd = self.caps.usd
                self.caps = Caps(
                    None if calls is None else calls + grant.calls,
                    None if usd is None else usd + grant.usd,
                )
                if grant.refused and (short[0] or not self._under_way):
                    raise grant.refused
                if grant.refused:
                    await self._freed.wait()
            await Ledger._enter(self, spent, worst)


class Relay(CallStore):
    """Holds the calls of problems under way and sends new ones to the driver."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send
        self._records: dict[str, CallRecord] = {}
        self._keys: defaultdict[str, set[str]] = defaultdict(set)  # by problem

    def add(self, lines: Sequence[str]) -> None:
        """Hold calls that were paid for before."""
        for line in lines:
            self._hold(CallRecord.model_validate_json(line))

    def _hold(self, record: CallRecord) -> None:
        self._records[record.key] = record
        self._keys[record.problem].add(record.key)

    def get(self, key: str) -> Reply | None:
        """Return the reply to a call of a problem under way."""
        record = self._records.get(key)
        return record.reply() if record else None

    def put(self, record: CallRecord) -> None:
        """Hold a finished call and send it to the driver."""
        self._hold(record)
        self._send(Event("call", record.problem, record.model_dump_json()))

    def drop(self, problem: str) -> None:
        """Forget the calls of a problem that is done."""
        for key in self._keys.pop(problem, ()):
            del self._records[key]

    def close(self) -> None:
        """Do nothing: no file is open."""


class RayWorker:
    """Solves lots of problems in a session of its own, and keeps nothing."""

    def __init__(self, config: Config, driver: str) -> None:
        self._config = config
        self._driver = driver  # the driver's version of kace
        self._events: list[Event] = []
        self._sent = asyncio.Event()
        self._todo: asyncio.Queue[Lot] = asyncio.Queue()
        self._granted: asyncio.Future[Grant] | None = None
        self._relay = Relay(self._send)

    def _send(self, event: Event) -> None:
        self._events.append(event)
        self._sent.set()

    async def take(self, lots: Sequence[Lot]) -> None:
        """Queue problems to solve."""
        for lot in lots:
            self._relay.add(lot.calls)
            self._todo.put_nowait(lot)

    async def grant(self, grant: Grant) -> None:
        """Receive the answer to a request for more allowance."""
        if self._granted:
            self._granted.set_result(grant)

    async def _request(self, calls: int, usd: float) -> Grant:
        self._granted = asyncio.get_running_loop().create_future()
        self._send(Event("short", short=(calls, usd)))
        return await self._granted

    async def events(self) -> AsyncIterator[list[Event]]:
        """Work until the driver goes away, and yield what happens as it happens."""
        work = asyncio.create_task(self._work())
        while not work.done() or self._events:
            sent = asyncio.create_task(self._sent.wait())
            await asyncio.wait([work, sent], return_when=asyncio.FIRST_COMPLETED)
            sent.cancel()
            await asyncio.sleep(GATHER_SECONDS)
            self._sent.clear()
            events = self._events
            self._events = []
            yield events
        await work

    async def _work(self) -> None:
        try:
            own = version("kace")
            if own != self._driver:
                fix = f"install kace {self._driver} on every node"
                raise KaceError(f"a Ray worker has kace {own}", fix=fix)
            caps = self._config.caps()
            ledger = None
            if caps.calls or caps.usd:
                ledger = Allowance(self._config, self._request)
            async with open_session(
                self._config, calls=self._relay, ledger=ledger
            ) as session:
                solvers: dict[tuple[Any, int], Solve] = {}
                self._send(Event("open"))
                async with asyncio.TaskGroup() as group:
                    for _ in range(session.window):
                        group.create_task(self._solve(session, solvers))
        except KaceError as error:
            self._send(Event("failed", error=error))

    async def _solve(
        self, session: Session, solvers: dict[tuple[Any, int], Solve]
    ) -> None:
        while True:
            problem, seed, _, reference = await self._todo.get()
            try:
                opener: Opener = await reference
                if (reference, seed) not in solvers:
                    if len(solvers) == OPEN:
                        del solvers[next(iter(solvers))]
                    solvers[reference, seed] = opener(session, seed)
                solution = await solvers[reference, seed](problem)
                self._send(Event("solved", problem.id, solution.model_dump_json()))
            except KaceError as error:
                self._send(Event("failed", problem.id, error=error))
            self._relay.drop(problem.id)


# The driver


@dataclass(slots=True)
class _Job:
    lot: Lot
    calls: list[str]  # lines of calls that were paid for
    done: asyncio.Future[Solution]


@dataclass(slots=True)
class RayPool:
    """The workers of a cluster and the problems under way on them."""

    ray: Any
    config: Config
    workers: int
    calls: CallStore
    ledger: Ledger  # holds the caps; what is granted to workers counts as spent
    start_actor: Callable[[], Any]
    observer: Observer | None = None
    several: bool = False  # whether it serves several runs, which share calls
    keys: defaultdict[tuple[str, int], list[str]] = field(
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
        """Solve a problem on a worker that has room.

        Solves of the same problem wait for each other, so that no call is paid twice.
        """
        async with self._turns[problem.id]:
            if self._stopped:
                raise self._stopped
            done = asyncio.get_running_loop().create_future()
            lot = Lot(problem, seed, (), opener)
            self._todo.put_nowait(_Job(lot, self._paid_calls(problem.id, seed), done))
            solution: Solution = await done
        if not self.several:
            self._turns.pop(problem.id, None)
            self.keys.pop((problem.id, seed), None)
        if self.observer:
            for attempt in solution.made:
                self.observer.attempted(problem, attempt)
            self.observer.solved(solution)
        return solution

    def _paid_calls(self, problem: str, seed: int) -> list[str]:
        """Return the kept calls of a problem; classifiers may use the first seed."""
        found = []
        for each in dict.fromkeys((seed, self.config.seed)):
            for key in self.keys.get((problem, each), ()):
                record = self.calls.record(key)
                if record:
                    found.append(record.model_dump_json())
        return found

    async def run_worker(self) -> None:
        """Keep one worker running, starting another whenever it is lost."""
        stillborn = 0
        while not self._stopped:
            actor = self.start_actor()
            jobs: dict[str, _Job] = {}
            opened = asyncio.Event()
            feeding = asyncio.create_task(self._feed(actor, jobs, opened))
            try:
                async for events in actor.events.remote():
                    for event in await events:
                        await self._handle(event, actor, jobs, opened)
            except self.ray.exceptions.RayError as error:
                stillborn = 0 if opened.is_set() else stillborn + 1
                if stillborn == STILLBORN:
                    why = str(error).strip().split("\n")[-1]  # of a traceback
                    what = one_line(f"Ray workers do not start: {why}")
                    self.stop(KaceError(what, fix="see the logs of Ray"))
                lost = "a Ray worker was lost; its %d problems go to others"
                log.warning(lost, len(jobs))
            finally:
                feeding.cancel()
                self._alive -= opened.is_set()
                self.ray.kill(actor)
                for job in jobs.values():
                    self._todo.put_nowait(job)
        self._fail_all()

    async def _feed(
        self, actor: Any, jobs: dict[str, _Job], opened: asyncio.Event
    ) -> None:
        """Send problems to a worker in lots, as long as it has room."""
        await opened.wait()
        room = window(self.config) + LOT  # so that a worker always has a next one
        while True:
            lots: list[Lot] = []
            while len(jobs) < room and len(lots) < LOT:
                if lots and self._todo.empty():
                    break
                job = await self._todo.get()
                jobs[job.lot.problem.id] = job
                lots.append(job.lot._replace(calls=tuple(job.calls)))
            if lots:
                await actor.take.remote(lots)
            else:
                await asyncio.sleep(0.01)

    async def _handle(
        self, event: Event, actor: Any, jobs: dict[str, _Job], opened: asyncio.Event
    ) -> None:
        job = jobs.get(event.problem)
        if event.kind == "open":
            self._alive += 1
            opened.set()
        elif event.kind == "short":
            await actor.grant.remote(self._grant(*event.short))
        elif event.kind == "call":
            self._keep_call(CallRecord.model_validate_json(event.line), event.line)
            if job:
                job.calls.append(event.line)
        elif event.kind == "solved":
            done = jobs.pop(event.problem).done
            if not done.done():
                done.set_result(Solution.model_validate_json(event.line))
        elif job:
            self._fail(jobs.pop(event.problem), event.error)
        else:
            self.stop(event.error)

    def _keep_call(self, record: CallRecord, line: str) -> None:
        """Keep a call that a worker made and enter it in the ledger."""
        self.calls.put_line(record.key, line)
        if self.several:
            self.keys[record.problem, record.seed].append(record.key)
        usage = record.reply().usage
        price = self.ledger.price(self.config.model)
        usd = price.cost(usage) if price else 0.0
        role = "classifier" if record.tier in (FIRST, REFINED) else "solver"
        spent = self.ledger.roles.setdefault(role, Spent())
        spent.calls += 1
        spent.usage += usage
        spent.usd += usd
        lent = self.ledger.roles.get(LENT)
        if lent:
            lent.calls -= self.ledger.caps.calls is not None
            lent.usd -= usd if self.ledger.caps.usd is not None else 0.0

    def _grant(self, calls: int, usd: float) -> Grant:
        """Grant at least what a worker is short by, or refuse.

        What a lost worker had stays lent.
        """
        caps = self.ledger.caps
        calls_left = (caps.calls or 0) - self.ledger.calls
        if calls and calls > calls_left:
            what = f"the cap of {caps.calls} calls is reached"
            return Grant(refused=BudgetExceeded(what, fix=CAP_FIX))
        usd_left = (caps.usd or 0.0) - self.ledger.usd - self.ledger.reserved
        if usd and usd > usd_left:
            what = f"the next call might pass the cap of {caps.usd:.2f} USD"
            return Grant(refused=BudgetExceeded(what, fix=CAP_FIX))
        shares = SHARES * self.workers
        granted = Grant(
            calls and max(calls, calls_left // shares),
            usd and max(usd, usd_left / shares),
        )
        lent = self.ledger.roles.setdefault(LENT, Spent())
        lent.calls += granted.calls
        lent.usd += granted.usd
        return granted

    def _fail(self, job: _Job, error: KaceError | None) -> None:
        if not job.done.done():
            job.done.set_exception(error or KaceError("a Ray worker failed"))

    def _fail_all(self) -> None:
        while not self._todo.empty():
            self._fail(self._todo.get_nowait(), self._stopped)

    def stop(self, error: KaceError | None) -> None:
        """End the run with an error: what is under way ends, nothing new begins."""
        self._stopped = self._stopped or error
        self._fail_all()

    async def watch(self) -> None:
        """Stop the run if no worker comes up."""
        while True:
            await asyncio.sleep(START_SECONDS)
            if not self._alive:
                what = f"no Ray worker came up in {START_SECONDS:.0f} s"
                fix = "add nodes with free CPUs; the same command goes on"
                self.stop(KaceError(what, fix=fix))


def connect(config: Config) -> Any:
    """Return Ray, connected to the configured cluster.

    Call it before an event loop takes the signals.
    """
    if config.batch:
        raise UsageError(
            "--ray does not go with --batch",
            fix="one process sends batches of any size: leave --ray out",
        )
    try:
        import ray
        import ray.exceptions
    except ImportError:
        fix = "pip install 'kace[ray]' on every machine"
        raise UsageError("--ray needs Ray", fix=fix) from None
    if ray.is_initialized():
        return ray
    try:
        host, colon, port = (config.ray or "").rpartition(":")
        if colon and "/" not in host:  # Ray itself tries for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        level = logging.ERROR
        ray.init(address=config.ray, log_to_driver=False, logging_level=level)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        what = one_line(f"no Ray cluster at '{config.ray}': {error}")
        fix = "start one with ray start --head, or give its address: --ray HOST:6379"
        raise KaceError(what, fix=fix) from None
    return ray


def _count_workers(ray: Any, config: Config) -> int:
    """Return `ray_workers`, or as many workers as the cluster has room for."""
    if config.ray_workers:
        return config.ray_workers
    fit = int(ray.cluster_resources().get("CPU", 0))
    if not fit:
        raise KaceError("no node of the Ray cluster has a free CPU", fix="add nodes")
    return fit


@asynccontextmanager
async def open_pool(
    config: Config,
    calls: CallStore,
    run: Run | None = None,
    *,
    ledger: Ledger | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[RayPool]:
    """Start workers on the cluster, for one run or for several that share calls."""
    ray = connect(config)
    workers = _count_workers(ray, config)
    remote = ray.remote(num_cpus=1, max_concurrency=1000)
    actor_class = remote(RayWorker)
    pool = RayPool(
        ray,
        config,
        workers,
        calls,
        ledger or Ledger(config.caps(), config.prices),
        lambda: actor_class.remote(config, version("kace")),
        observer,
        several=run is None,
    )
    for record in calls.records():
        if run is None or run.pending(record.problem, record.seed):
            pool.keys[record.problem, record.seed].append(record.key)
    tasks = [asyncio.create_task(pool.run_worker()) for _ in range(workers)]
    tasks.append(asyncio.create_task(pool.watch()))
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
    *,
    on_solved: OnSolution = ignore,
    on_known: OnSolution = ignore,
) -> None:
    """Solve what is pending in a run on the pool's workers."""
    solve_one = partial(pool.solve, seed=seed, opener=pool.ray.put(opener))
    many = pool.workers * (window(pool.config) + LOT)
    await run.solve(
        problems, solve_one, seed, many, on_solved=on_solved, on_known=on_known
    )
