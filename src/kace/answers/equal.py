"""Decide whether two answers are the same.

Equal keys and exact values decide without algebra, and that is final. math-verify is
used only where a side has no exact value, in a child process that can be killed and in
both directions: `SAME` needs two agreements, which makes a verdict symmetric.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Self

from kace.answers.exact import MAX_DEPTH, Number, Word
from kace.answers.extract import MAX_ANSWER_CHARS, Answer
from kace.answers.normalize import depth

MAX_DIGITS = 256
MAX_VERDICTS = 10_000  # kept by one judge
WORKER = Path(__file__).with_name("worker.py")
LINE_LIMIT = 1 << 20  # bytes of one message
START_SECONDS = (
    120.0  # a busy machine takes long to import a computer algebra system
)

_NO_VALUE = re.compile(
    r"""\\ldots | \\text | \\emptyset | \\not | \\pmod | \d[_ ]\W*\d | :.*:
    | /\d+(?:\\pi|[A-Za-z(]) | '[^=]*$""",
    re.VERBOSE,
)
_UNSEEN = re.compile(r"'|\\pmod\{\w*\}|\\not|\\text\{[^{}]*\}")
_NO_NUMBER = re.compile(r"\\cup|\\cap|[<>]|\\[lg]eq|\\neq|matrix\}")
_COSTLY = re.compile(
    rf"""\d{{{MAX_DIGITS + 1}}}
    | [\d)}}]\^\{{[^{{}}]*[\d)}}]!?\^ | \^\{{[^{{}}]*\d{{5}}  # towers and big powers
    | (?:\d{{4}}|\}}|\)\))! | \([^()]*(?:\d{{4}}|[\^!])[^()]*\)! | !!
    | \\binom[^A-Za-z]*\d{{4}} | \\binom\{{[^{{}}]*[\^!]""",
    re.VERBOSE,
)


class Verdict(StrEnum):
    """What is known of two answers. Only `SAME` merges them."""

    SAME = "same"
    DIFFERENT = "different"
    TIMEOUT = "timeout"
    REFUSED = "refused"  # too large to try, or the process that tried broke


def settled(left: Answer, right: Answer) -> Verdict | None:
    """Return the verdict that needs no algebra; None where algebra has to decide."""
    for one, other in zip(left.stated, right.stated, strict=True):
        if one and other and one != other:
            return Verdict.DIFFERENT
    if left.key == right.key:
        return Verdict.SAME
    if left.tolerance:
        return Verdict.SAME if left.near(right) else Verdict.DIFFERENT
    if left.value is not None and right.value is not None:
        return Verdict.DIFFERENT
    if left.value is not None:
        return Verdict.DIFFERENT if _excludes(left, right.form) else None
    if right.value is not None:
        return Verdict.DIFFERENT if _excludes(right, left.form) else None
    if r"\ldots" in left.form + right.form:
        return Verdict.DIFFERENT
    if _marks(left, right) != _marks(right, left):
        return Verdict.DIFFERENT
    return None


def _excludes(exact: Answer, form: str) -> bool:
    """Whether a form without an exact value cannot equal an exact answer.

    Words, an open list and the empty set equal no exact value; a number is no union,
    relation or matrix.
    """
    if isinstance(exact.value, Word) or _NO_VALUE.search(form):
        return True
    return isinstance(exact.value, Number) and bool(_NO_NUMBER.search(form))


def _marks(answer: Answer, other: Answer) -> list[str]:
    """Return what algebra overlooks, but in the name of an equation against a value."""
    form = answer.form
    if "=" in form and "=" not in other.form:
        form = form.partition("=")[2]
    return _UNSEEN.findall(form)


def too_large(latex: str) -> bool:
    """Whether comparing an answer could cost more than it is worth."""
    if len(latex) > MAX_ANSWER_CHARS or depth(latex) > MAX_DEPTH:
        return True
    return _COSTLY.search(latex) is not None


class Judge:
    """Compares answers within one event loop. A call never raises and never hangs.

    A few child processes are started when first needed; one that does not answer within
    `seconds` is killed and replaced.
    """

    def __init__(
        self, *, workers: int = 2, seconds: float = 2.0, memory_mb: int = 1024
    ) -> None:
        limits = (str(memory_mb), str(math.ceil(seconds) + 2))
        self._workers = [
            Child(*limits, seconds=seconds) for _ in range(workers)
        ]
        # Last in, first out: the worker used last is the one that already runs.
        self._idle: asyncio.LifoQueue[Child] = asyncio.LifoQueue()
        for child in self._workers:
            self._idle.put_nowait(child)
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __call__(self, left: Answer, right: Answer) -> Verdict:
        """Return the verdict on two answers, the same in either order."""
        verdict = settled(left, right)
        if verdict is not None:
            return verdict
        first, second = sorted((left, right), key=lambda answer: answer.key)
        pair = (first.key, second.key)
        if pair in self._verdicts:
            return self._verdicts[pair]
        for side in (left, right):
            if len(side.text) > MAX_ANSWER_CHARS or too_large(side.canonical):
                return Verdict.REFUSED
        child = await self._idle.get()
        try:
            verdict = await child.compare(first.canonical, second.canonical)
        except NoWorker:
            return Verdict.REFUSED
        finally:
            self._idle.put_nowait(child)
        if len(self._verdicts) == MAX_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[pair] = verdict
        return verdict

    async def aclose(self) -> None:
        """Kill every child and wait for its end. Later comparisons are refused."""
        for child in self._workers:
            child.closed = True
            child.kill()
        # A busy child is handed back as soon as its comparison notices the kill.
        for child in [await self._idle.get() for _ in self._workers]:
            self._idle.put_nowait(child)
            await child.wait_until_gone()


class NoWorker(Exception):
    """No child process could be started, or the judge was closed."""


class Child:
    """A child process that compares answers, one at a time; replaced when it fails."""

    def __init__(self, *limits: str, seconds: float) -> None:
        # -P: a file in the working directory must not be imported as a library.
        self._command = (
            sys.executable,
            "-P",
            "-W",
            "ignore",
            str(WORKER),
            *limits,
        )
        self._seconds = seconds
        self._process: Process | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.closed = False

    async def compare(self, left: str, right: str) -> Verdict:
        """Return the child's verdict. Raise `NoWorker` where there is no child."""
        message = json.dumps({"left": left, "right": right}).encode() + b"\n"
        same: object = None
        try:
            process = await self._start()
            async with asyncio.timeout(self._seconds):
                assert process.stdin is not None
                process.stdin.write(message)
                await process.stdin.drain()
                same = (await _read_message(process)).get("same")
        except TimeoutError:
            return Verdict.TIMEOUT
        except (OSError, ValueError):
            return Verdict.REFUSED
        finally:
            if not isinstance(same, bool):
                self._end()
        if same is True:
            return Verdict.SAME
        return Verdict.DIFFERENT if same is False else Verdict.REFUSED

    async def _start(self) -> Process:
        if self.closed:
            raise NoWorker
        if self._process is not None:
            return self._process
        try:
            # A session of its own: Ctrl-C reaches the parent only, and a kill reaches
            # everything the child has started.
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,
                limit=LINE_LIMIT,
            )
            async with asyncio.timeout(START_SECONDS):
                if self.closed or "ready" not in await _read_message(
                    self._process
                ):
                    raise ValueError("not ready")
        except (OSError, ValueError) as error:  # `TimeoutError` is an `OSError`
            raise NoWorker from error
        return self._process

    def kill(self) -> None:
        """Kill the process and what it started, whatever it is doing."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """Kill the process, and collect what is left of it in the background."""
        self.kill()
        if self._process is not None:
            task = asyncio.create_task(_collect(self._process))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._process = None

    async def wait_until_gone(self) -> None:
        """Wait for the end of every process this child has had."""
        self._end()
        while self._ending:
            await asyncio.wait(self._ending)


async def _read_message(process: Process) -> Mapping[str, object]:
    """Return one message; raise `ValueError` for anything else, also at the end."""
    assert process.stdout is not None
    message: object = None
    with contextlib.suppress(RecursionError):
        message = json.loads(await process.stdout.readline())
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message


async def _collect(process: Process) -> None:
    with contextlib.suppress(OSError):
        await process.communicate()
