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
from asyncio.subprocess import DEVNULL, PIPE, Process
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
MAX_MEMORY = 10_000  # remembered verdicts
START_SECONDS = 30.0
"""A worker imports a computer algebra system before its first answer; on a busy machine that takes a while."""
_WORKER = Path(__file__).with_name("worker.py")
_NO_VALUE = re.compile(r"\\ldots|\\text|\\emptyset|\\not|\\pmod|\d[_ ]\W*\d|:.*:|/\d+(?:\\pi|[A-Za-z(])|'[^=]*$")
_UNSEEN = re.compile(r"'|\\pmod\{\w*\}|\\not|\\text\{[^{}]*\}")
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
    REFUSED = "refused"  # too large to try, or the process that tried broke


def settled(left: Answer, right: Answer) -> Verdict | None:
    """The verdict that needs no algebra; None where a side has no exact value and algebra might equate them."""
    if any(one and two and one != two for one, two in zip(left.stated, right.stated, strict=True)):
        return Verdict.DIFFERENT
    if left.key == right.key:
        return Verdict.SAME
    if left.tolerance:
        return Verdict.SAME if left.near(right) else Verdict.DIFFERENT
    if left.value is not None and right.value is not None:
        return Verdict.DIFFERENT
    if (value := left.value or right.value) is not None:
        form = right.form if left.value is not None else left.form
        # Words, an open list and the empty set equal no exact value; a number is no union, relation or matrix.
        a_number = isinstance(value, Number)
        if isinstance(value, Word) or _NO_VALUE.search(form) or (a_number and _NO_NUMBER.search(form)):
            return Verdict.DIFFERENT
    elif r"\ldots" in left.form + right.form or _marks(left, right) != _marks(right, left):
        return Verdict.DIFFERENT
    first, second = equation(left.form), equation(right.form)
    if first is not None and second is not None:
        return Verdict.SAME if first == second else Verdict.DIFFERENT
    return Verdict.DIFFERENT if apart(left.form, right.form) else None


def _marks(answer: Answer, other: Answer) -> list[str]:
    """What algebra reads over; not in the name of what is equated where the other answer has no name."""
    named = "=" in answer.form and "=" not in other.form
    return _UNSEEN.findall(answer.form.partition("=")[2] if named else answer.form)


def too_large(latex: str) -> bool:
    """Whether an answer could cost more than its worth: by length, depth, digits, towers of powers, factorials."""
    return len(latex) > MAX_ANSWER_CHARS or depth(latex) > MAX_DEPTH or _COSTLY.search(latex) is not None


class Judge:
    """Compares answers within one event loop. A call never raises and never hangs; workers start on first need."""

    def __init__(self, *, workers: int = 2, seconds: float = 2.0, memory_mb: int = 1024) -> None:
        self._workers = [_Worker(memory_mb, seconds) for _ in range(workers)]
        self._idle: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()  # the one last used is the one that runs already
        for worker in self._workers:
            self._idle.put_nowait(worker)
        self._verdicts: OrderedDict[tuple[str, str], Verdict] = OrderedDict()

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
        if any(len(side.text) > MAX_ANSWER_CHARS or too_large(side.canonical) for side in (left, right)):
            return Verdict.REFUSED
        worker = await self._idle.get()
        try:
            verdict = await worker.compare(first.canonical, second.canonical)
        finally:
            self._idle.put_nowait(worker)
        if verdict is None:
            return Verdict.REFUSED
        self._verdicts[pair] = verdict
        if len(self._verdicts) > MAX_MEMORY:
            self._verdicts.popitem(last=False)
        return verdict

    async def aclose(self) -> None:
        """End every worker and wait until it is gone. Later calls settle what needs no worker. Safe to call twice."""
        for worker in self._workers:
            worker.closed = True
            worker.kill()
        for worker in [await self._idle.get() for _ in self._workers]:  # whoever is busy notices, and hands it back
            self._idle.put_nowait(worker)
            worker.end()
            while worker.ending:
                await asyncio.wait(worker.ending)


class _Worker:
    """One child process at a time, and the lines spoken with it. One that gave no verdict in time is replaced."""

    def __init__(self, memory_mb: int, seconds: float) -> None:
        self._seconds, self._limits = seconds, (str(memory_mb), str(math.ceil(seconds) + 2))
        self._process: Process | None = None
        self.closed = False
        self.ending: set[asyncio.Task[object]] = set()

    async def compare(self, left: str, right: str) -> Verdict | None:
        """The child's verdict; None when there was no child to be had."""
        same: object = None
        verdict: Verdict | None = None
        if self.closed:
            return None
        try:
            self._process = process = self._process or await self._started()
            verdict = Verdict.REFUSED
            async with asyncio.timeout(self._seconds):
                assert process.stdin is not None
                process.stdin.write(json.dumps({"left": left, "right": right}).encode() + b"\n")
                await process.stdin.drain()
                same = (await _heard(process)).get("same")
        except TimeoutError:
            verdict = verdict and Verdict.TIMEOUT
        except (OSError, ValueError):
            pass
        finally:
            if not isinstance(same, bool):
                self.end()
        return verdict if not isinstance(same, bool) else Verdict.SAME if same else Verdict.DIFFERENT

    async def _started(self) -> Process:
        # -P: a file in the working directory must not pose as a library. Its own session: Ctrl-C is the parent's.
        command = (sys.executable, "-P", "-W", "ignore", str(_WORKER), *self._limits)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        self._process = process  # from here on it can be killed
        async with asyncio.timeout(START_SECONDS):
            if self.closed or "ready" not in await _heard(process):
                raise ValueError("not ready")
        return process

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def end(self) -> None:
        """Kill now; collect what is left of it without keeping anyone waiting."""
        self.kill()
        if self._process is not None:
            task: asyncio.Task[object] = asyncio.create_task(_collected(self._process))
            self.ending.add(task)
            task.add_done_callback(self.ending.discard)
            self._process = None


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
