"""One event loop and one judge for all tests of a process: a judge's workers are started once."""

from __future__ import annotations

import asyncio
import atexit

from kace.answers.equal import Judge

LOOP = asyncio.Runner()
JUDGE = Judge()


@atexit.register
def _end() -> None:
    LOOP.run(JUDGE.aclose())
    LOOP.close()
