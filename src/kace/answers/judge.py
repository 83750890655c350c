r"""Whether two answers are the same: normal form, then exact value, then math-verify in a killable process.

Two exact values are compared exactly, and that is final. math-verify is asked only where a side has no exact value, and
in both directions: `SAME` needs two yeses, which makes a verdict symmetric.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import OrderedDict
from enum import StrEnum
from pathlib import Path

from kace.answers.calculator import apart
from kace.answers.exact import Number, Word
from kace.answers.extract import MAX_ANSWER_CHARS, Answer
from kace.answers.normalize import depth
from kace.answers.parse import equation

MAX_DEPTH = 24
MAX_DIGITS = 256
MAX_MEMORY = 10_000
"""Remembered verdicts."""
START_SECONDS = 30.0
"""A worker imports a computer algebra system before its first answer; on a busy machine that takes a while."""

PATIENCE = 1.0
"""How long a comparison waits for a worker before another one is started."""

_WORKER = Path(__file__).with_name("worker.py")
_NO_VALUE = re.compile(r"\\ldots|\\text|\\emptyset")
_NO_NUMBER = re.compile(r"\\cup|\\cap|[<>]|\\[lg]eq|\\neq|matrix\}")
_COSTLY = re.compile(
    rf"\d{{{MAX_DIGITS + 1}}}"
    r"|[\d)}]\^\{[^{}]*[\d)}]!?\^|\^\{[^{}]*\d{5}"  # towers, and big powers
    r"|(?:\d{4}|\}|\)\))!|\([^()]*(?:\d{4}|[\^!])[^()]*\)!|!!"
    r"|\\binom[^A-Za-z]*\d{4}|\\binom\{[^{}]*[\^!]"
)


class Verdict(StrEnum):
    """What is known of two answers. Only `SAME` merges them."""

    SAME = "same"
    DIFFERENT = "different"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    """Too large to try, or the process that tried broke."""


def settled(left: Answer, right: Answer) -> Verdict | None:
    """The verdict that needs no algebra; None where a side has no exact value and algebra might equate them."""
    if left.key == right.key:
        return Verdict.SAME
    if left.exact and right.exact:
        return Verdict.DIFFERENT
    if left.exact or right.exact:
        value, form = (left.value, right.form) if left.exact else (right.value, left.form)
        # Words, an open list and the empty set equal no exact value; a number is no union, relation or matrix.
        a_number = isinstance(value, Number)
        if isinstance(value, Word) or _NO_VALUE.search(form) or (a_number and _NO_NUMBER.search(form)):
            return Verdict.DIFFERENT
    elif r"\ldots" in left.form + right.form:
        return Verdict.DIFFERENT
    first, second = equation(left.form), equation(right.form)
    if first is not None and second is not None:
        return Verdict.SAME if first == second else Verdict.DIFFERENT
    return Verdict.DIFFERENT if apart(left.form, right.form) else None


def too_large(latex: str) -> bool:
    """Whether an answer could cost more than its worth: by length, depth, digits, towers of powers, factorials."""
    return len(latex) > MAX_ANSWER_CHARS or depth(latex) > MAX_DEPTH or _COSTLY.search(latex) is not None


class Judge:
    """Compares answers within one event loop. A call never raises and never hangs; workers start on first need."""

    def __init__(self, *, workers: int = 2, seconds: float = 2.0, memory_mb: int = 1024) -> None:
        self._seconds, self._memory_mb = seconds, memory_mb
        self._most, self._open = workers, 1
        self._places = asyncio.Semaphore(self._open)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._verdicts: OrderedDict[tuple[str, str], Verdict] = OrderedDict()
        self._closed = False

    async def __aenter__(self) -> Judge:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __call__(self, left: Answer, right: Answer) -> Verdict:
        """The verdict on two answers, the same in either order."""
        verdict = settled(left, right)
        if verdict is not None:
            return verdict
        first, second = sorted((left, right), key=lambda answer: answer.key)
        pair = (first.key, second.key)
        if pair in self._verdicts:
            self._verdicts.move_to_end(pair)
            return self._verdicts[pair]
        large = any(len(side.text) > MAX_ANSWER_CHARS or too_large(side.canonical) for side in (left, right))
        verdict = None if self._closed or large else await self._ask(first.canonical, second.canonical)
        if verdict is None:
            return Verdict.REFUSED
        self._verdicts[pair] = verdict
        if len(self._verdicts) > MAX_MEMORY:
            self._verdicts.popitem(last=False)
        return verdict

    async def aclose(self) -> None:
        """End every worker and wait until it is gone. Later calls settle what needs no worker. Safe to call twice."""
        self._closed = True
        for worker in self._busy:
            worker.kill()
        for _ in range(self._open):  # whoever is busy notices and hands its place back
            await self._places.acquire()
        while self._idle:
            self._end(self._idle.pop())
        while self._ending:
            await asyncio.wait(self._ending)
        for _ in range(self._open):
            self._places.release()

    async def _ask(self, left: str, right: str) -> Verdict | None:
        """A worker's verdict; None when there was no worker to be had."""
        await self._place()
        worker: _Worker | None = None
        try:
            if self._closed:
                return None
            worker = self._idle.pop() if self._idle else _Worker(self._memory_mb, self._seconds)
            self._busy.add(worker)
            verdict = await worker.compare(left, right) if await worker.started() else None
            if verdict in (Verdict.SAME, Verdict.DIFFERENT) and not self._closed:
                self._idle.append(worker)
            return verdict
        finally:
            if worker is not None:
                self._busy.discard(worker)
                if worker not in self._idle:
                    self._end(worker)
            self._places.release()

    async def _place(self) -> None:
        """Wait for a turn. Workers are slow to start: another one is opened only when those there keep us waiting."""
        while self._open < self._most and not self._closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._places.acquire()
                    return
            if self._open < self._most and not self._closed:
                self._open += 1
                self._places.release()
        await self._places.acquire()

    def _end(self, worker: _Worker) -> None:
        """Kill now; collect what is left of it without keeping anyone waiting."""
        worker.kill()
        task = asyncio.create_task(worker.wait())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _Worker:
    """One child process and the lines spoken with it."""

    def __init__(self, memory_mb: int, seconds: float) -> None:
        self._memory_mb, self._seconds = memory_mb, seconds
        self._process: asyncio.subprocess.Process | None = None
        self._killed = False

    async def started(self) -> bool:
        """Start the process if it is not running; False when it cannot be."""
        if self._process is not None:
            return True
        limits = str(self._memory_mb), str(math.ceil(self._seconds) + 2)
        # -P: a file in the working directory must not pose as a library. Its own session: Ctrl-C is the parent's.
        command = (sys.executable, "-P", "-W", "ignore", str(_WORKER), *limits)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
            if self._killed:
                self.kill()
            async with asyncio.timeout(START_SECONDS):
                return "ready" in await self._heard()
        except (OSError, ValueError, TimeoutError):
            return False

    async def compare(self, left: str, right: str) -> Verdict:
        """Ask, and wait no longer than allowed."""
        try:
            async with asyncio.timeout(self._seconds):
                assert self._process is not None and self._process.stdin is not None
                self._process.stdin.write(json.dumps({"left": left, "right": right}).encode() + b"\n")
                await self._process.stdin.drain()
                same = (await self._heard()).get("same")
        except TimeoutError:
            return Verdict.TIMEOUT
        except (OSError, ValueError):
            return Verdict.REFUSED
        return Verdict.SAME if same is True else Verdict.DIFFERENT if same is False else Verdict.REFUSED

    async def _heard(self) -> dict[str, object]:
        """One message; `ValueError` for anything else, the end of the process included."""
        assert self._process is not None and self._process.stdout is not None
        message: object = None
        with contextlib.suppress(RecursionError):
            message = json.loads(await self._process.stdout.readline())
        if not isinstance(message, dict):
            raise ValueError("not a message")
        return message

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        self._killed = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def wait(self) -> None:
        """Collect a killed process and close its pipes."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                await self._process.communicate()
