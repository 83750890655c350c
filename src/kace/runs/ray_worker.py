"""One worker of a run on Ray: an actor with a session of its own. It keeps nothing; all it hears goes to the driver."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from kace.cards.tree import EpistemicTree
from kace.config import Caps, Config
from kace.errors import BudgetExceeded, KaceError
from kace.ladder.ladder import climb
from kace.ladder.session import Session, open_session
from kace.models.base import Reply
from kace.models.budget import Ledger, Spent
from kace.models.cache import CallRecord, CallStore
from kace.problems import Problem
from kace.runs.run import Solve

GATHER_SECONDS = (
    0.02  # news is sent together: an object of Ray's costs more than a record
)
OPEN = 16  # ways to solve that a worker has open: as many runs go side by side at most
Opener = Callable[
    [Session, int], Solve
]  # how problems are solved in a session, on a seed


def reading(
    config: Config, tree: EpistemicTree | None, session: Session, seed: int
) -> Solve:
    """The ladder, which reads from a tree where there is one."""
    kit = replace(
        session.kit if tree is None else session.reading(tree, config), seed=seed
    )
    return lambda problem: climb(problem, kit)


class Lot(NamedTuple):
    """A problem to solve on a seed, with the calls that were paid for it before, as they are on disk."""

    problem: Problem
    seed: int
    calls: tuple[str, ...]
    opener: Any  # where Ray keeps the opener


class News(NamedTuple):
    """What a worker tells the driver: a call or a solve as JSON, why a solve failed, or that its allowance is short."""

    kind: Literal["call", "solved", "failed", "asks", "open"]
    problem: str = ""
    line: str = ""
    error: KaceError | None = None
    short: tuple[int, float] = (0, 0.0)  # by so many calls and USD


class Grant(NamedTuple):
    """What a worker may spend beyond what it had, or why it may not."""

    calls: int = 0
    usd: float = 0.0
    refused: BudgetExceeded | None = None


class Allowance(Ledger):
    """A ledger that begins with nothing and asks for more whenever a call does not fit."""

    def __init__(
        self, config: Config, ask: Callable[[int, float], Awaitable[Grant]]
    ) -> None:
        caps = config.caps()
        super().__init__(Caps(caps.calls and 0, caps.usd and 0.0), config.prices)
        self._ask = ask
        self._asking = asyncio.Lock()

    def _short(self, worst: float) -> tuple[int, float]:
        """Calls and money that a call which costs this at worst lacks."""
        calls = (
            0 if self.caps.calls is None else max(0, self.calls + 1 - self.caps.calls)
        )
        return calls, 0.0 if self.caps.usd is None else max(
            0.0, self.usd + self.reserved + worst - self.caps.usd
        )

    async def _enter(self, spent: Spent, worst: float) -> None:
        async with self._asking:
            while any(short := self._short(worst)):
                grant = await self._ask(*short)
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
    """The calls of the problems under way. What is kept goes to the driver, who has the disk."""

    def __init__(self, tell: Callable[[News], None]) -> None:
        self._tell = tell
        self._records: dict[str, CallRecord] = {}
        self._keys: defaultdict[str, set[str]] = defaultdict(set)  # by problem

    def add(self, lines: Sequence[str]) -> None:
        """Take calls that were paid for before."""
        for line in lines:
            self._hold(CallRecord.model_validate_json(line))

    def _hold(self, record: CallRecord) -> None:
        self._records[record.key] = record
        self._keys[record.problem].add(record.key)

    def get(self, key: str) -> Reply | None:
        """The reply to a call of a problem under way."""
        record = self._records.get(key)
        return record.reply() if record else None

    def put(self, record: CallRecord) -> None:
        """Hold a finished call and tell the driver."""
        self._hold(record)
        self._tell(News("call", record.problem, record.model_dump_json()))

    def drop(self, problem: str) -> None:
        """Forget the calls of a problem that is done."""
        for key in self._keys.pop(problem, ()):
            del self._records[key]

    def close(self) -> None:
        """Nothing is open."""


class RayWorker:
    """Solves what it is given, as many problems at once as its session bears."""

    def __init__(self, config: Config, driver: str) -> None:
        self._config = config
        self._driver = driver
        self._news: list[News] = []
        self._told = asyncio.Event()
        self._todo: asyncio.Queue[Lot] = asyncio.Queue()
        self._granted: asyncio.Future[Grant] | None = None
        self._relay = Relay(self._tell)

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self._told.set()

    async def take(self, lots: Sequence[Lot]) -> None:
        """Problems to solve, in a small number at a time."""
        for lot in lots:
            self._relay.add(lot.calls)
            self._todo.put_nowait(lot)

    async def grant(self, grant: Grant) -> None:
        """The answer to what it asked for."""
        if self._granted:
            self._granted.set_result(grant)

    async def _ask(self, calls: int, usd: float) -> Grant:
        self._granted = asyncio.get_running_loop().create_future()
        self._tell(News("asks", short=(calls, usd)))
        return await self._granted

    async def news(self) -> AsyncIterator[list[News]]:
        """Work until the driver goes away, telling what happens as it happens."""
        work = asyncio.create_task(self._work())
        while not work.done() or self._news:
            told = asyncio.create_task(self._told.wait())
            await asyncio.wait([work, told], return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            await asyncio.sleep(GATHER_SECONDS)
            self._told.clear()
            news = self._news
            self._news = []
            yield news
        await work

    async def _work(self) -> None:
        try:
            if (ours := version("kace")) != self._driver:
                raise KaceError(
                    f"a Ray worker has kace {ours}",
                    fix=f"install kace {self._driver} on every node",
                )
            caps = self._config.caps()
            ledger = (
                Allowance(self._config, self._ask) if caps.calls or caps.usd else None
            )
            async with open_session(
                self._config, calls=self._relay, ledger=ledger
            ) as session:
                solvers: dict[tuple[Any, int], Solve] = {}
                self._tell(News("open"))
                async with asyncio.TaskGroup() as group:
                    for _ in range(session.window):
                        group.create_task(self._solve(session, solvers))
        except KaceError as error:
            self._tell(News("failed", error=error))

    async def _solve(
        self, session: Session, solvers: dict[tuple[Any, int], Solve]
    ) -> None:
        while True:
            problem, seed, _, where = await self._todo.get()
            try:
                opener: Opener = await where
                if (where, seed) not in solvers:
                    if len(solvers) == OPEN:
                        del solvers[next(iter(solvers))]
                    solvers[where, seed] = opener(session, seed)
                solution = await solvers[where, seed](problem)
                self._tell(News("solved", problem.id, solution.model_dump_json()))
            except KaceError as error:
                self._tell(News("failed", problem.id, error=error))
            self._relay.drop(problem.id)
