"""Programs that a solver wrote: found in its reply, run in a sandbox, and their output read as an answer."""

from __future__ import annotations

import importlib.util
import math
import os
import re
from enum import StrEnum
from fractions import Fraction
from typing import Self

from pydantic import BaseModel, ConfigDict

from kace.answers.child import Children, NoWorker
from kace.answers.extract import MAX_ANSWER_CHARS, last_boxed
from kace.errors import UsageError

MAX_SOURCE = 20_000
MAX_OUTPUT = 2_000
MAX_ERROR = 300
"""Characters of a program that is run, and of what is kept of its output and of why it failed."""
MEMORY_MB = (
    1024  # for the interpreter's process; a program's own values have a quarter of it
)
GRACE = 3.0
PLACES = 10  # decimals from which a printed float is taken for a rounded exact value

_BLOCK = re.compile(
    r"(?ims)```[ \t]*(?:(?:python3?|py)[ \t]*)?\n(.*?)(?:^[ \t]*```|\Z)"
)
_BARE = re.compile(r"(?m)^print\(")
_LABEL = re.compile(
    r"""(?is)^.*(?:[a-z)\]"']\s*:|\bis\b|\bare\b|(?<![<>!=])=)\s+(?=\S)"""
)
_LIST = re.compile(r"\[([^\[\]()]*)\]")
_COMPLEX = re.compile(r"\(?(-?[\d.e]*\d[+-])([\d.e]*\d)j\)?")
_FLOAT = re.compile(rf"-?\d+\.\d{{{PLACES},}}(?:e-?\d+)?")
_NOTATION = (
    (re.compile(r"\bsqrt\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"\*\*\s*(\(?-?\w+\)?)"), r"^{\1}"),
    (re.compile(r"(?<!\\)\bpi\b"), r"\\pi"),
)


class ProgramOutcome(StrEnum):
    """How a program ended."""

    RAN = "ran"
    SILENT = "silent"  # it ran and printed no answer
    ERROR = "error"
    TIMEOUT = "timeout"


class ProgramRun(BaseModel):
    """A program, and what came of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    outcome: ProgramOutcome
    output: str = ""
    error: str = ""  # what went wrong, for the solver and for people

    @property
    def answer(self) -> str | None:
        """The answer that it printed; none where it failed."""
        return (
            printed_answer(self.output) if self.outcome is ProgramOutcome.RAN else None
        )


def program_of(reply: str) -> str | None:
    """The program of a reply: its last code block that prints, else its last, else a reply that is code alone."""
    blocks: list[str] = [
        block.rstrip() for block in _BLOCK.findall(reply) if block.strip()
    ]
    printing = [block for block in blocks if "print" in block]
    if blocks:
        return (printing or blocks)[-1]
    bare = _BARE.search(reply) and last_boxed(reply) is None and "```" not in reply
    return reply.strip() if bare else None


def printed_answer(output: str) -> str | None:
    r"""The answer in what a program printed: a `\boxed{}`, else the last line, in the notation of answers.

    A label before it is dropped, Python's spelling of powers, roots and lists is turned into that of mathematics, and a
    float that is an exact value but for rounding becomes that value.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    text = last_boxed(output) or (lines[-1] if lines else "")
    text = (
        _LABEL.sub("", text).strip().rstrip(".")
        if len(text) <= MAX_ANSWER_CHARS
        else ""
    )
    if not text or text.lower() in ("none", "nan", "inf", "-inf"):
        return None
    if whole := _LIST.fullmatch(text):
        text = whole[1] or text
    if pair := _COMPLEX.fullmatch(text):
        text = f"{pair[1]}{pair[2]}i"
    for pattern, spelling in _NOTATION:
        text = pattern.sub(spelling, text)
    return _FLOAT.sub(lambda found: exact_value_of(found[0]) or found[0], text)


def exact_value_of(decimal: str) -> str | None:
    """The small fraction, root or multiple of pi that a float is, but for rounding; none where it is no such value."""
    number = float(decimal)
    if near := _near(number):
        return str(near)
    if near := _near(number / math.pi):
        return rf"({near})\pi"
    if near := _near(number * number):
        return f"{'-' if number < 0 else ''}\\sqrt{{{near}}}"
    return None


def _near(number: float) -> Fraction | None:
    """The fraction that the number is to twelve digits, with terms so small that chance finds one in 10^6 times."""
    if not 1e-6 < abs(number) < 1e9:
        return None
    found = Fraction(number).limit_denominator(
        max(1, int(1000 / math.sqrt(abs(number))))
    )
    return found if abs(float(found) - number) <= 1e-12 * abs(number) else None


class Sandbox(Children):
    """Runs programs within one event loop. A call never raises and never hangs; see SECURITY.md for what it bounds."""

    def __init__(self, *, seconds: float = 5.0, workers: int | None = None) -> None:
        if importlib.util.find_spec("pydantic_monty") is None:
            raise UsageError(
                "attempts that are programs need pydantic-monty",
                fix="pip install 'kace[program]'",
            )
        self._seconds = seconds
        count = workers or min(8, os.cpu_count() or 2)
        # No environment: what is in it, keys too, is none of a program's business.
        super().__init__(
            count,
            "run",
            MEMORY_MB,
            math.ceil(seconds + GRACE),
            seconds=seconds + 2 * GRACE,
            env={},
        )

    async def __aenter__(self) -> Self:
        """Try the sandbox, so that one that cannot start is known before anything is paid."""
        if (await self.run("print(6 * 7)")).output.strip() != "42":
            await self.aclose()
            said = "the sandbox for programs does not start"
            raise UsageError(said, fix="pip install --force-reinstall 'kace[program]'")
        return self

    async def run(self, source: str) -> ProgramRun:
        """Run a program and say what came of it."""
        kept = source[:MAX_SOURCE]
        if len(source) > MAX_SOURCE:
            error = f"the program is longer than {MAX_SOURCE:,} characters"
            return ProgramRun(source=kept, outcome=ProgramOutcome.ERROR, error=error)
        output = ""
        error = "the interpreter broke"
        try:
            async with self.one() as child:
                reply = await child.ask(
                    {"source": source, "seconds": self._seconds, "output": MAX_OUTPUT}
                )
            output = str(reply["printed"])
            error = str(reply["error"])
        except TimeoutError:
            error = "TimeoutError"
        except (NoWorker, OSError, ValueError, KeyError):
            pass
        outcome = ProgramOutcome.ERROR if error else ProgramOutcome.RAN
        if error.startswith("TimeoutError"):
            outcome = ProgramOutcome.TIMEOUT
            error = f"it ran for more than {self._seconds:g} seconds"
        elif not error and printed_answer(output) is None:
            outcome = ProgramOutcome.SILENT
            error = "it printed no answer"
        return ProgramRun(
            source=kept, outcome=outcome, output=output, error=error[:MAX_ERROR]
        )
