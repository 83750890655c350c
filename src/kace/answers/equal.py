"""Decide whether two answers are the same.

Equal keys and exact values decide without algebra, and that is final. What is put
together is compared part by part. math-verify is used only for parts without an exact
value, in a child process that can be killed and in both directions: `SAME` needs two
agreements, which makes a verdict symmetric.
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
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import starmap
from pathlib import Path
from typing import Self

from kace.answers.exact import (
    INTERVALS,
    UNORDERED,
    Collection,
    Formula,
    Point,
    Value,
    are_far,
    is_exact,
)
from kace.answers.extract import MAX_ANSWER_CHARS, Answer

MAX_DIGITS = 256
MAX_VERDICTS = 10_000  # remembered by one judge
MAX_MATCHED = 8  # items of a set that algebra may match with those of another
WORKER = Path(__file__).with_name("worker.py")
LINE_LIMIT = 1 << 20  # bytes of one message
START_SECONDS = (
    120.0  # a busy machine takes long to import a computer algebra system
)

_COSTLY = re.compile(
    rf"""\d{{{MAX_DIGITS + 1}}}
    | [\d)}}]\^\{{[^{{}}]*[\d)}}]!?\^ | \^\{{[^{{}}]*\d{{5}}  # towers and big powers
    | (?:\d{{4}}|\}}|\)\))! | \([^()]*(?:\d{{4}}|[\^!])[^()]*\)! | !!
    | \\binom[^A-Za-z]*\d{{4}} | \\binom\{{[^{{}}]*[\^!]
    | (?:[({{\[][^(){{}}\[\]]*){{25}}""",
    re.VERBOSE,
)
_INDEX = r"_\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_SYMBOL = re.compile(
    rf"""\\(?:log|sum|prod|int|lim|max|min|text)(?![A-Za-z])
    | ((?:\\[A-Za-z]+|[A-Za-z]){_INDEX}|[A-Zd])
    | \\(?:begin|end)\{{\w+\}} | \\[A-Za-z]+ | (\d+)\.(\d+) | (\d+)(\\frac\{{\d+\}}\{{\d+\}})""",
    re.VERBOSE,
)
_PRODUCT = re.compile(
    r"""(?:\d|!|\)|\\rfloor|\\rceil|\\(?:frac|binom)\{[^{}]*\}\{[^{}]*\})
    (?=\(|\\(?:frac|binom|lfloor|lceil|gcd|max|min)(?![a-z]))""",
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
    names, units = zip(left.stated, right.stated, strict=True)
    if all(units) and len(set(units)) > 1:
        return Verdict.DIFFERENT
    agree = not all(names) or len(set(names)) < 2
    if agree and left.key == right.key:
        return Verdict.SAME
    one, other = _compared(left, right)
    if (
        left.tolerance
        and isinstance(one, Fraction)
        and isinstance(other, Fraction)
    ):
        share = Fraction(left.tolerance) * max(abs(one), abs(other))
        if abs(one - other) <= share:
            return Verdict.SAME
    relations = _kind(one) == _kind(other) == "relation"
    exact = is_exact(left.value) and is_exact(right.value)
    if not exact and (agree or relations) and _is_open(one, other):
        return None
    return Verdict.DIFFERENT


def _kind(value: Value) -> str:
    """Return what algebra may compare a value with."""
    if isinstance(value, Formula):
        return value.algebra
    if isinstance(value, Collection):
        return _KINDS.get(value.delimiters, "")
    return "number" if isinstance(value, Fraction) else ""


_KINDS = dict.fromkeys(INTERVALS, "set") | {"{}": "set", "matrix": "number"}


def _compared(left: Answer, right: Answer) -> tuple[Value, Value]:
    """Return what is compared: equations where one is given, or two unknowns are."""
    names = {left.stated[0], right.stated[0]} - {""}
    kinds = (_kind(left.value), _kind(right.value))
    if len(names) > 1 or "relation" in kinds:
        return _equation(left), _equation(right)
    return left.value, right.value


def _equation(answer: Answer) -> Value:
    """Return `y=2x` for the value `2x` of `y`."""
    name = answer.stated[0]
    if len(name) != 1 or _kind(answer.value) != "number":
        return answer.value
    return Formula(f"{name}={answer.value}", "relation")


def _is_open(left: Value, right: Value) -> bool:
    """Whether algebra may find two values the same, which have different keys."""
    if left == right:
        return True
    if isinstance(left, Collection) and isinstance(right, Collection):
        if left.delimiters != right.delimiters:
            return False
        if len(left.items) != len(right.items):
            return False
        pairs = zip(left.items, right.items, strict=True)
        return left.delimiters in UNORDERED or all(starmap(_is_open, pairs))
    formulas = isinstance(left, Formula) or isinstance(right, Formula)
    if not formulas or {_kind(left), _kind(right)} not in _COMPARABLE:
        return False
    return not are_far(_point(left), _point(right))


_COMPARABLE = ({"number"}, {"set"}, {"relation"}, {"relation", "set"})


def _point(value: Value) -> Point | None:
    """Return the value at one point of the unknowns, if there is one."""
    if isinstance(value, Formula):
        return value.point
    return value if isinstance(value, Fraction) else None


def too_large(latex: str) -> bool:
    """Whether comparing an answer could cost more than it is worth."""
    return len(latex) > MAX_ANSWER_CHARS or _COSTLY.search(latex) is not None


def algebra_latex(value: Value) -> str:
    """Return a value for algebra, whose grammar has no capital letters and rounds.

    Capital and indexed letters and `d` get an index of their own, decimals become fractions,
    mixed numbers sums, and products of numbers have a sign: `2(3)` would be `2+3`.
    """
    latex = _SYMBOL.sub(_unambiguous, str(value))
    return _PRODUCT.sub(r"\g<0>\\cdot ", latex)


def _unambiguous(match: re.Match[str]) -> str:
    symbol, whole, places, integer, fraction = match.groups()
    if fraction:
        return f"({integer}+{fraction})"
    if whole:
        return rf"(\frac{{{whole}{places}}}{{1{'0' * len(places)}}})"
    # `d` belongs to the unknown of an integral, and is a letter elsewhere.
    if not symbol or (symbol == "d" and r"\int" in match.string):
        return match[0]
    digits = str.maketrans("0123456789abcdef", "abcdfghjklmnpqrs")
    return f"x_{{{symbol.encode().hex().translate(digits)}}}"


class Judge:
    """Compares answers within one event loop. A call never raises and never hangs.

    A few child processes are started when first needed; one that does not answer within
    `seconds` is killed and replaced.
    """

    def __init__(self, *, workers: int = 2, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._workers = workers
        self._places = asyncio.Semaphore(workers)
        self._processes: set[Process] = set()
        self._idle: list[Process] = []  # those that wait for a comparison
        self._closed = False
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __call__(self, left: Answer, right: Answer) -> Verdict:
        """Return the verdict on two answers, the same in either order."""
        verdict = settled(left, right)
        return verdict or await self._compare(*_compared(left, right))

    async def _compare(self, left: Value, right: Value) -> Verdict:
        """Compare two values part by part."""
        if left == right:
            return Verdict.SAME
        if not _is_open(left, right):
            return Verdict.DIFFERENT
        if not isinstance(left, Collection) or not isinstance(
            right, Collection
        ):
            return await self._decide(left, right)
        if left.delimiters in UNORDERED:
            return await self._match(left.items, right.items)
        for one, other in zip(left.items, right.items, strict=True):
            verdict = await self._compare(one, other)
            if verdict is not Verdict.SAME:
                return verdict
        return Verdict.SAME

    async def _match(
        self, left: Sequence[Value], right: Sequence[Value]
    ) -> Verdict:
        """Find for each item of one collection another of the other."""
        ones = [item for item in left if item not in right]
        others = [item for item in right if item not in left]
        if len(ones) != len(others):
            return Verdict.DIFFERENT
        if len(ones) > MAX_MATCHED:
            return Verdict.REFUSED
        for one in ones:
            worst = Verdict.DIFFERENT
            for other in others:
                verdict = await self._compare(one, other)
                if verdict is Verdict.SAME:
                    others.remove(other)
                    break
                if verdict is not Verdict.DIFFERENT:
                    worst = verdict
            else:
                return worst
        return Verdict.SAME

    async def _decide(self, left: Value, right: Value) -> Verdict:
        """Return the verdict of algebra, which is remembered."""
        first, second = sorted((algebra_latex(left), algebra_latex(right)))
        if (first, second) in self._verdicts:
            return self._verdicts[first, second]
        if too_large(first) or too_large(second):
            return Verdict.REFUSED
        async with self._places:
            if self._closed:
                return Verdict.REFUSED
            verdict = await self._ask(first, second)
        if len(self._verdicts) == MAX_VERDICTS:
            self._verdicts.clear()
        self._verdicts[first, second] = verdict
        return verdict

    async def _ask(self, *pair: str) -> Verdict:
        """Return the verdict of a child, which is killed if it does not answer."""
        verdict = None
        process = None
        late = Verdict.REFUSED
        try:
            if self._idle:
                process = self._idle.pop()
            else:
                process = await self._spawn()
                async with asyncio.timeout(START_SECONDS):
                    await _read_word(process)
            late = Verdict.TIMEOUT
            async with asyncio.timeout(self._seconds):
                assert process.stdin is not None
                process.stdin.write(json.dumps(pair).encode() + b"\n")
                await process.stdin.drain()
                verdict = Verdict(await _read_word(process))
            return verdict
        except TimeoutError:
            return late
        except (OSError, ValueError):
            return Verdict.REFUSED
        finally:
            if process and verdict:
                self._idle.append(process)
            elif process:
                await self._end(process)

    async def _spawn(self) -> Process:
        # A session of its own: Ctrl-C reaches the parent only, and a kill reaches
        # everything the child has started.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # no file in the working directory is imported as a library
            WORKER,
            str(math.ceil(self._seconds) + 2),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
        self._processes.add(process)
        if self._closed:
            _kill(process)
        return process

    async def _end(self, process: Process) -> None:
        """Kill a process and what it started, and wait for its end."""
        _kill(process)
        with contextlib.suppress(OSError):
            await process.communicate()
        self._processes.discard(process)

    async def aclose(self) -> None:
        """Kill every child and wait for its end. Later comparisons are refused."""
        self._closed = True
        for process in self._processes:
            _kill(process)
        # A comparison under way notices the kill, and ends its child itself.
        for _ in range(self._workers):
            await self._places.acquire()
        while self._idle:
            await self._end(self._idle.pop())
        for _ in range(self._workers):
            self._places.release()


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _read_word(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()
