"""Kill -9 at any instant, run the same command again: same results, each once, and nothing paid for twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.config import load_config
from kace.errors import KaceError
from kace.ladder.session import open_session
from kace.models.cache import read_calls
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, solve_all
from tests.faults.children import forked
from tests.runs.few_rows import recorded

PROBLEMS = [Problem(f"How much is {n}?", "3", label=f"p{n}") for n in range(60)]
CONFIG = load_config({"model": "scripted/dice?sides=4&latency=0.004", "max_connections": 8}, env={})


def run_to_the_end(folder: Path) -> None:
    with Run(folder, manifest_of(CONFIG)) as run:
        todo = [p for p in PROBLEMS if run.solution(p.id, 0) is None]

        async def work() -> None:
            async with open_session(CONFIG, calls=run.calls) as session:
                await solve_all(todo, session.kit, session.window, run.keep)

        asyncio.run(work())


def run_and_be_killed(folder: Path, after: float) -> bool:
    """Whether the child was still at work when it was killed."""
    child = forked(lambda: run_to_the_end(folder))
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def votes(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for record in recorded(folder):
        assert record.label not in found, "a problem is solved once"
        found[record.label] = (record.exit, record.answer, record.correct, [a.answer for a in record.attempts])
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_killed_at_fifty_instants_it_ends_as_if_never_killed(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_to_the_end(whole)
    instants = random.Random(1)
    kills = sum(run_and_be_killed(broken, instants.uniform(0.005, 0.06)) for _ in range(50))
    record_property("tries", kills)
    assert kills >= 10, "most children must die at work for this to test anything"
    run_to_the_end(broken)
    assert votes(broken) == votes(whole)
    paid = Counter(record.key for record in read_calls(broken / "calls"))
    assert set(paid.values()) == {1}, "no finished call is paid twice"


def test_a_second_process_on_the_same_run_is_refused(tmp_path: Path):
    with Run(tmp_path, manifest_of(CONFIG)), pytest.raises(KaceError, match="another process"):
        Run(tmp_path, manifest_of(CONFIG))
    Run(tmp_path, manifest_of(CONFIG)).close()
