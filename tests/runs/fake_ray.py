"""As much of Ray as runs need, in this process and its event loop: for the driver's and the workers' own logic."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import pickle
from collections.abc import AsyncIterator, Callable, Generator
from types import SimpleNamespace
from typing import Any


NUMBERS = itertools.count()


class RayError(Exception):
    """A worker was lost."""


class Ref:
    """A reference to a value in the store; copies of it are equal."""

    def __init__(self, value: object) -> None:
        self.value, self.number = value, next(NUMBERS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def __await__(self) -> Generator[Any, None, object]:
        yield from asyncio.sleep(0).__await__()
        return self.value


class FakeRay:
    """A cluster with so many CPUs. `lose` says, for each batch of events, whether its worker is lost before it."""

    def __init__(self, cpus: int = 2, lose: Callable[[], bool] = lambda: False) -> None:
        self.cpus = cpus
        self.lose = lose
        self.exceptions = SimpleNamespace(RayError=RayError)
        self.started = 0
        self.put = Ref

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cpus}

    def remote(self, **options: object) -> Callable[[type], SimpleNamespace]:
        return lambda kind: SimpleNamespace(remote=lambda *given: self._start(kind, given))

    def _start(self, kind: type, given: tuple[object, ...]) -> Actor:
        self.started += 1
        return Actor(kind(*pickle.loads(pickle.dumps(given))), self.lose)

    def kill(self, actor: Actor) -> None:
        actor.dead = True


class Actor:
    """A worker, whose methods are called from outside."""

    def __init__(self, worker: Any, lose: Callable[[], bool]) -> None:
        self.dead = False
        self._worker = worker
        self._lose = lose

    def __getattr__(self, name: str) -> SimpleNamespace:
        method = getattr(self._worker, name)
        if inspect.isasyncgenfunction(method):
            return SimpleNamespace(remote=lambda: self._yielded(method()))
        return SimpleNamespace(remote=lambda *given: method(*pickle.loads(pickle.dumps(given, protocol=5))))

    async def _yielded(self, found: AsyncIterator[object]) -> AsyncIterator[Ref]:
        async for value in found:
            if self._lose():
                self._die()
                raise RayError("the worker died")
            yield Ref(value)

    def _die(self) -> None:
        """End what the worker does, as the end of its process would."""
        for task in asyncio.all_tasks():
            frame = getattr(task.get_coro(), "cr_frame", None)
            if frame and frame.f_code.co_name == "_work" and frame.f_locals["self"] is self._worker:
                task.cancel()
