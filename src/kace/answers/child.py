"""Child processes that answer JSON lines, never keep anyone waiting past a deadline, and can be killed at any time.

What they do is in `kace.answers.worker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Self

WORKER = Path(__file__).with_name("worker.py")
LINE_LIMIT = 1 << 20  # bytes of one message
START_SECONDS = 120.0
"""A worker imports a computer algebra system before its first answer; on a busy machine that takes a while."""


class NoWorker(Exception):
    """No child could be started, or it was closed."""


class Child:
    """One child process at a time, and the lines spoken with it. One that did not answer in time is replaced."""

    def __init__(
        self, *arguments: str, seconds: float, env: Mapping[str, str] | None
    ) -> None:
        # -P: a file in the working directory must not pose as a library.
        self._command = (sys.executable, "-P", "-W", "ignore", str(WORKER), *arguments)
        self._seconds = seconds
        self._env = env
        self._process: Process | None = None
        self.closed = False
        self.ending: set[asyncio.Task[object]] = set()

    async def ask(self, message: Mapping[str, object]) -> dict[str, object]:
        """The child's reply. `TimeoutError` past the deadline; `OSError` or `ValueError` where the child broke."""
        if self.closed:
            raise NoWorker
        reply: dict[str, object] | None = None
        try:
            process = await self._running()
            async with asyncio.timeout(self._seconds):
                assert process.stdin is not None
                process.stdin.write(json.dumps(message).encode() + b"\n")
                await process.stdin.drain()
                reply = await _heard(process)
                return reply
        finally:
            if reply is None:
                self.end()

    async def _running(self) -> Process:
        if self._process is not None:
            return self._process
        try:
            # Its own session: Ctrl-C is the parent's, and what it starts is killed with it.
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True,
                limit=LINE_LIMIT, env=self._env,
            )  # fmt: skip
            self._process = process  # from here on it can be killed
            async with asyncio.timeout(START_SECONDS):
                if self.closed or "ready" not in await _heard(process):
                    raise ValueError("not ready")
        except (OSError, ValueError) as error:  # `TimeoutError` is an `OSError`
            raise NoWorker from error
        return process

    def kill(self) -> None:
        """Kill the process and what it started, whatever it is doing."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill now; collect what is left of it without keeping anyone waiting."""
        self.kill()
        if self._process is not None:
            task: asyncio.Task[object] = asyncio.create_task(_collected(self._process))
            self.ending.add(task)
            task.add_done_callback(self.ending.discard)
            self._process = None


class Children:
    """A few children within one event loop, each started on first need."""

    def __init__(
        self,
        count: int,
        *limits: int,
        seconds: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._workers = [
            Child(*map(str, limits), seconds=seconds, env=env) for _ in range(count)
        ]
        self._idle: asyncio.LifoQueue[Child] = (
            asyncio.LifoQueue()
        )  # the one last used is the one that runs already
        for child in self._workers:
            self._idle.put_nowait(child)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[Child]:
        """A child that nobody else asks."""
        child = await self._idle.get()
        try:
            yield child
        finally:
            self._idle.put_nowait(child)

    async def aclose(self) -> None:
        """End every child and wait until it is gone. Later calls find none. Safe to call twice."""
        for child in self._workers:
            child.closed = True
            child.kill()
        for child in [
            await self._idle.get() for _ in self._workers
        ]:  # whoever is busy notices, and hands it back
            self._idle.put_nowait(child)
            child.end()
            while child.ending:
                await asyncio.wait(child.ending)


async def _heard(process: Process) -> dict[str, object]:
    """One message; `ValueError` for anything else, the end of the process included."""
    assert process.stdout is not None
    message: object = None
    with contextlib.suppress(RecursionError):
        message = json.loads(await process.stdout.readline())
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message


async def _collected(process: Process) -> None:
    with contextlib.suppress(OSError):
        await process.communicate()
