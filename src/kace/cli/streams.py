"""What verbs share: notes, named files, who is at work, and async work that a signal ends in order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from kace.errors import DataError, UsageError, redact
from kace.files import write_atomic

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)
SHOW_CURSOR = "\x1b[?25h"
ENDING = (signal.SIGINT, signal.SIGTERM)
ends_process: ContextVar[bool] = ContextVar("ends_process", default=False)
"""Whether the process ends with the command. One that goes on after it, as a notebook, gets its signals back."""
ESCAPES = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])"
)
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def plain(text: str, limit: int | None = None) -> str:
    """Text safe to print: no escape sequences, no overwriting, no reordering; cut to `limit` characters."""
    text = CONTROLS.sub("", ESCAPES.sub("", text))
    if limit is not None:
        text = " ".join(text.split())
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def escaped(text: str) -> str:
    """JSON that is safe to print: what `plain` takes away from text is escaped, so that it reads back the same."""
    return CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def json_of(value: object) -> str:
    """A value, or what is JSON already, as a line that is safe to print."""
    return escaped(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def note(line: str) -> None:
    """Say something that is not a result, on standard error."""
    if sys.stderr is not None:
        print(plain(line), file=sys.stderr)


def read_input(name: str, limit: int, parse: Callable[[bytes], T]) -> T:
    """What a file, or standard input for `-`, holds; at most `limit` bytes, so that no input can fill the memory."""
    where = source(name)
    try:
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1) if sys.stdin is not None else b""
        else:
            with Path(name).open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise DataError(
            f"{where}: {(error.strerror or str(error)).lower()}",
            fix="name a file that is there",
        ) from None
    if len(data) > limit:
        raise DataError(
            f"{where}: larger than {limit // 1024:,} KiB",
            fix="is it the right file? else split it",
        )
    try:
        return parse(data)
    except DataError as error:
        raise DataError(f"{where}: {error.message}", fix=error.fix) from None


def decoded(data: bytes) -> str:
    """Bytes a user gave as text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8", fix="save it as UTF-8") from None


def write_output(text: str, out: Path | None) -> None:
    """Results to a file, replaced whole, or to standard output."""
    if out is not None:
        write_atomic(out, text)
    elif sys.stdout is not None:
        # Exported text is data: the same bytes on every terminal and locale.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())


def print_lines(
    lines: Iterable[str], style: Callable[[str], str] = lambda line: ""
) -> None:
    """Results line by line; in colour where a terminal reads them and `NO_COLOR` is not set."""
    if not on_terminal():
        for line in lines:
            print(line)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text(line, style=style(line)), soft_wrap=True)


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Rows as lines in columns, the first `left` of them flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<"] * left + [">"] * (len(widths) - left)
    cells = [
        [
            f"{cell:{side}{width}}"
            for cell, side, width in zip(row, sides, widths, strict=True)
        ]
        for row in rows
    ]
    return ["  ".join(row).rstrip() for row in cells]


def on_terminal() -> bool:
    """Whether a person reads standard output as it is written."""
    return sys.stdout is not None and sys.stdout.isatty()


def columns() -> int:
    """How wide a line may be: the terminal's width, 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns if on_terminal() else 80


def choice(value: str | None, kind: type[Choice], option: str) -> Choice | None:
    """The member an option names, if any, or the error that lists what it may name."""
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        fix = f"choose one of {', '.join(member.value for member in kind)}"
        raise UsageError(f"{option} cannot be '{value[:40]}'", fix=fix) from None


def source(name: str) -> str:
    """What to call an input in a sentence."""
    return "standard input" if name == "-" else name


def run_async(work: Coroutine[Any, Any, T], *, resumable: bool) -> T:
    """Run to the end, or to a signal: what is finished is on disk, and the same command resumes there.

    The first signal ends the work in order, a second one at once.
    """
    import asyncio  # a fifth of what `kace --help` takes

    before = {number: signal.getsignal(number) for number in ENDING}

    def on_signals(act: Callable[..., object] | signal.Handlers) -> None:
        with contextlib.suppress(ValueError):  # not the main thread
            for number in ENDING:
                signal.signal(number, act)

    def tell() -> None:
        on_signals(signal.SIG_IGN)  # nothing is left to interrupt
        again = redact(shlex.join(["kace", *sys.argv[1:]]))
        note(
            f"kace: interrupted. Resume with: {again}"
            if resumable
            else "kace: interrupted"
        )

    def at_once(*_: object) -> None:
        tell()
        if sys.stderr is not None and sys.stderr.isatty():
            print(
                SHOW_CURSOR, end="", file=sys.stderr, flush=True
            )  # which a line of progress hides
        os._exit(130)

    async def terminable() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if task.cancelling():
                at_once()
            task.cancel()

        with contextlib.suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # not on this platform or thread
            for number in ENDING:
                loop.add_signal_handler(number, interrupt)
        try:
            return await task
        finally:
            for number in ENDING:
                loop.remove_signal_handler(
                    number
                )  # a loop that is closed cannot be woken
            if task.cancelled():
                on_signals(at_once)

    try:
        return asyncio.run(terminable())
    except BaseExceptionGroup as several:
        if several.split(BrokenPipeError)[1] is not None:
            raise
        raise BrokenPipeError from None  # whoever read the results has gone (`| head`): no more than that
    except (KeyboardInterrupt, asyncio.CancelledError):
        tell()
        sys.exit(130)
    finally:
        if not ends_process.get():
            with contextlib.suppress(
                ValueError, TypeError
            ):  # not the main thread; a handler that C code set
                for number, act in before.items():
                    signal.signal(number, act)
