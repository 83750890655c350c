"""Published figures come out of the published replies again, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kace.config import load_config
from kace.datasets.starter import load_split
from kace.models.replay import Replay
from kace.run import solve_all
from kace.session import open_session
from kace.solution import Solution
from kace.summary import Summary
from kace.tiers import ExitPath
from kace.trace import SolveRecord

RATES = Path(__file__).resolve().parents[1] / "experiments" / "starter" / "solve-rates"


def test_the_ladder_on_the_recorded_replies_gives_the_published_row():
    summary = Summary()

    def keep(solution: Solution) -> None:
        summary.add(SolveRecord.of(solution))

    async def work() -> None:
        config = load_config({"preset": "starter", "seed": 0}, env={})
        async with open_session(config, model=Replay.open(RATES)) as session:
            await solve_all(load_split("test"), session.kit, 8, keep)

    asyncio.run(work())
    assert (summary.correct, summary.labelled) == (101, 200)
    assert [summary.exits[path] for path in ExitPath] == [75, 64, 44, 12, 5]
    assert round(summary.paper_calls / summary.problems, 2) == 5.40
