"""What verbs read and write beside their results: notes, named files, and the name of who is at work."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from kace.errors import DataError, UsageError

Choice = TypeVar("Choice", bound=StrEnum)


def note(line: str) -> None:
    """Say something that is not a result, on standard error."""
    from kace.cli.show import plain

    if sys.stderr is not None:
        print(plain(line), file=sys.stderr)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Errors about a file's content begin with the file's name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{source(name)}: {error.message}", fix=error.fix) from None


def read_input(name: str, limit: int) -> bytes:
    """The bytes of a file, or of standard input for `-`; at most `limit`, so that no input can fill the memory."""
    where = source(name)
    try:
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1) if sys.stdin is not None else b""
        else:
            with Path(name).open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise DataError(f"{where}: {(error.strerror or str(error)).lower()}", fix="name a file that is there") from None
    if len(data) > limit:
        raise DataError(f"{where}: larger than {limit // 1024:,} KiB", fix="is it the right file? else split it")
    return data


def decoded(data: bytes, name: str) -> str:
    """Bytes a user gave as text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{source(name)}: not UTF-8", fix="save it as UTF-8") from None


def write_output(text: str, out: Path | None) -> None:
    """Results to a file, replaced whole, or to standard output."""
    from kace.io import write_atomic

    if out is None and sys.stdout is not None:
        # Exported text is data: the same bytes on every terminal and locale.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
    elif out is not None:
        write_atomic(out, text)


def print_lines(lines: Iterable[str], style: Callable[[str], str] = lambda line: "") -> None:
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


def on_terminal() -> bool:
    """Whether a person reads standard output as it is written."""
    return sys.stdout is not None and sys.stdout.isatty()


def columns() -> int:
    """How wide a line may be: the terminal's width, 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns if on_terminal() else 80


def choice(value: str, kind: type[Choice], option: str) -> Choice:
    """The member an option names, or the error that lists what it may name."""
    try:
        return kind(value)
    except ValueError:
        raise UsageError(
            f"{option} cannot be '{value[:40]}'", fix=f"choose one of {', '.join(member.value for member in kind)}"
        ) from None


def one_line(text: str) -> str:
    """A note as the log keeps it."""
    return " ".join(text.split())


def author() -> str:
    """Who a change is signed by: the name of the user's account."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return f"uid {os.getuid()}"


def source(name: str) -> str:
    """What to call an input in a sentence."""
    return "standard input" if name == "-" else name
