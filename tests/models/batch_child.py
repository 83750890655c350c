"""A process that asks through batches, to be killed: RUN URL KIND COUNT WORK [STEP]. At its step it kills itself.

WORK is ask, so many requests; or climb, so many problems on the ladder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kace.models.batch import Batched
from kace.models.cache import CallStore
from tests.models.batch_desk import Desk, asked, texts, votes


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(run: str, url: str, kind: str, count: str, work: str, step: str = "") -> None:
    when, _, what = step.partition(" ")
    put = CallStore.put
    kept: list[object] = []

    def killed(step: str, method: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if what == step and when == "before":
                die()
            found = method(*args, **more)
            if what == step and when == "after":
                die()
            return found

        return call

    def killed_put(self: CallStore, record: Any) -> None:
        put(self, record)
        kept.append(record)
        if what == "calls" and len(kept) == int(when):
            die()

    for name in ("_note", "_drop"):
        setattr(Batched, name, killed(name, getattr(Batched, name)))
    CallStore.put = killed_put  # type: ignore[method-assign]
    desk = Desk(Path(run), url, kind)
    if work == "climb":
        for solution in desk.solve_on_ladder(int(count)):
            print(json.dumps(votes(solution)))
    else:
        for text in texts(desk.ask(*map(asked, range(int(count))))):
            print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
