"""A run directory that asks a model through batches: what tests, killed children and the benchmark share."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any

from kace.answers.equal import Judge
from kace.config import PRESETS, Price
from kace.errors import KaceError
from kace.ladder.ladder import Kit
from kace.ladder.record import Solution
from kace.models import batch
from kace.models.base import AttemptKey, ModelError, Reply, Request, Sampling, chat
from kace.models.batch import Batched, open_jobs
from kace.models.budget import Ledger, Metered
from kace.models.cache import Cached, CallStore
from kace.models.http import AnthropicModel, OpenAIModel
from kace.models.limits import Limited
from kace.problems import Problem
from kace.runs.run import Run, climb_with
from tests.models.batch_server import KEY

QUICK = {"QUIET": 0.05, "FIRST": 0.01, "LONGEST": 0.05, "SETTLE": 0.01}
KINDS = {"openai": OpenAIModel, "anthropic": AnthropicModel}


def asked(number: int, text: str = "How much is") -> Request:
    key = AttemptKey(f"p{number}", 0, "ES", 0)
    return Request(chat("Solve.", f"{text} {number}?"), Sampling(0.6, 50, key.sampling_seed()), key)


class Desk:
    """A run directory, and what it asks."""

    def __init__(self, folder: Path, url: str, kind: str, key: str = KEY, **options: Any) -> None:
        self.folder, self.options = folder, options
        for name, seconds in QUICK.items():
            setattr(batch, name, seconds)
        self.make = lambda: KINDS[kind]("m", base_url=f"{url}/v1", api_key=key, name=f"{kind}/m")
        self.ledger = Ledger(prices={f"{kind}/m": Price(10.0, 100.0)})

    def open(self, calls: CallStore) -> Cached:
        model = Limited(self.make(), base=0.01, deadline=600)
        batched = Batched(model, open_jobs(model), calls, ledger=self.ledger, **self.options)
        return Cached(Metered(batched, self.ledger, "solver"), calls)

    def solve_on_ladder(self, count: int, **kit: Any) -> list[Solution]:
        """Solve so many problems on the ladder, in a run that goes on."""

        async def work(run: Run) -> None:
            async with aclosing(self.open(run.calls)) as model, Judge() as judge:
                ladder = Kit(model, judge, PRESETS["math-hard"].sampling, **kit)
                problems = [Problem(f"How much is {number}?", "0") for number in range(count)]
                await run.solve(problems, climb_with(ladder), 0, count)

        with Run(self.folder, {}) as run:
            asyncio.run(work(run))
            return list(run.table.solutions(texts=False))

    def ask(self, *requests: Request) -> list[Reply | BaseException]:
        async def work() -> list[Reply | BaseException]:
            async def one(request: Request) -> Reply | BaseException:
                try:
                    return await cached.complete(request)
                except (ModelError, KaceError) as error:
                    return error

            async with aclosing(self.open(CallStore(self.folder / "calls"))) as cached:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(request)) for request in requests]
                return [task.result() for task in tasks]

        return asyncio.run(work())

    def left(self) -> list[str]:
        return sorted(path.suffix for path in (self.folder / "batches").glob("*"))


def dice(body: dict[str, Any]) -> str:
    """An answer of three, by what is asked and in which words."""
    said = "".join(str(message["content"]) for message in body["messages"])
    return f"\\boxed{{{int(sha256(said.encode()).hexdigest(), 16) % 3}}}"


def votes(solution: Solution) -> list[object]:
    return [solution.exit, solution.answer, [attempt.answer for attempt in solution.attempts]]


def texts(replies: list[Reply | BaseException]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else repr(reply) for reply in replies]


def boxed(count: int) -> list[str]:
    return [f"\\boxed{{{number}}}" for number in range(count)]
