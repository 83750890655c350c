"""Runs async work under a terminal's rules: Ctrl-C and SIGTERM end it in order, and say how to go on."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

from kace.cli.streams import note
from kace.redact import redact

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T], *, resumable: bool) -> T:
    """Run to the end, or to a signal: what is finished is on disk, and the same command goes on from there."""
    try:
        return asyncio.run(_terminable(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        _interrupted(resumable)


async def _terminable(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not on this platform or thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _interrupted(resumable: bool) -> NoReturn:
    again = redact(shlex.join(["kace", *sys.argv[1:]]))
    note(f"kace: interrupted. Go on with: {again}" if resumable else "kace: interrupted")
    sys.exit(130)
