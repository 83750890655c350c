"""Kill -9 at each step of a batch, run the same command again: nothing is submitted twice, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kace.models.batch import Batched
from kace.models.cache import CallStore, read_calls
from tests.faults.children import forked
from tests.models.batch_desk import Desk, asked, boxed, dice, texts, votes
from tests.models.batch_server import BatchServer, Drop

COUNT = 12
SERVED = [
    *("list", "before the upload", "after the upload", "before the job", "after the job"),
    *("status", "results", "half of the results"),
]
OWN = [f"{when} {event}" for event in ("_note", "_drop") for when in ("before", "after")]
OWN += ["1 calls", f"{COUNT // 2} calls", f"{COUNT} calls"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning"),
    pytest.mark.parametrize("work", ["ask", "climb"]),
    pytest.mark.parametrize("kind", ["openai", "anthropic"]),
]


@pytest.fixture
def server(tmp_path: Path, work: str) -> Iterator[BatchServer]:
    with BatchServer(tmp_path / "server") as server:
        if work == "climb":
            server.says = dice
        yield server


def outcome(folder: Path, url: str, kind: str, work: str) -> list[Any]:
    """Ask, or solve problems on the ladder, in a run that goes on."""
    desk = Desk(folder, url, kind)
    if work == "ask":
        return texts(desk.ask(*map(asked, range(COUNT))))
    return [json.loads(json.dumps(votes(solution))) for solution in desk.solve_on_ladder(COUNT)]


def start(folder: Path, server: BatchServer, kind: str, work: str, step: str = "") -> int:
    """Start a child that does the work, and kills itself at its step."""

    def act() -> None:
        die_at(step)
        outcome(folder, server.url, kind, work)

    return forked(act)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(step: str) -> None:
    """Have this process kill itself before or after a method, or after so many kept calls."""
    when, _, what = step.partition(" ")
    kept: list[object] = []
    put = CallStore.put

    def killed(method: Any) -> Any:
        def call(*args: Any) -> Any:
            if when == "before":
                die()
            method(*args)
            die()

        return call

    def killed_put(self: CallStore, record: Any) -> None:
        put(self, record)
        kept.append(record)
        if len(kept) == int(when):
            die()

    if what == "calls":
        CallStore.put = killed_put  # type: ignore[method-assign]
    elif what:
        setattr(Batched, what, killed(getattr(Batched, what)))


def ends_well(folder: Path, server: BatchServer, kind: str, work: str) -> None:
    found = outcome(folder, server.url, kind, work)
    if work == "ask":
        assert found == boxed(COUNT)
        assert len(server.submitted) == COUNT
    else:
        assert found == unbroken(kind)
        assert len(server.submitted) == sum(len(answers) for _, _, answers in found)
    assert set(server.submitted.values()) == {1} and not server.live
    kept = Counter(record.key for record in read_calls(folder / "calls"))
    assert kept.keys() == server.submitted.keys() and set(kept.values()) == {1}
    assert not list((folder / "batches").iterdir())


@cache
def unbroken(kind: str) -> list[Any]:
    """Return what the same problems come to in one unbroken run."""
    with TemporaryDirectory() as folder, BatchServer(Path(folder, "other")) as server:
        server.says = dice
        return outcome(Path(folder, "plain"), server.url, kind, "climb")


@pytest.mark.parametrize("step", SERVED)
def test_killed_while_the_provider_is_asked(tmp_path: Path, server: BatchServer, kind: str, step: str, work: str):
    if kind == "anthropic" and "upload" in step:
        pytest.skip("has no upload")
    kills: list[str] = []

    def hook(now: str) -> None:
        if now == step and not kills:
            kills.append(now)
            os.kill(child, signal.SIGKILL)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            raise Drop

    server.hook = hook
    child = start(tmp_path / "run", server, kind, work)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL and kills
    ends_well(tmp_path / "run", server, kind, work)


@pytest.mark.parametrize("step", OWN)
def test_killed_before_and_after_each_line_of_the_log_and_among_the_kept_calls(
    tmp_path: Path, server: BatchServer, kind: str, step: str, work: str
):
    child = start(tmp_path / "run", server, kind, work, step)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    ends_well(tmp_path / "run", server, kind, work)
