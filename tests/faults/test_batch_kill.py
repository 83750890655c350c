"""Kill -9 at each step of a batch, run the same command again: nothing is submitted twice, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kace.models.cache import read_calls
from tests.models.batch_desk import Desk, boxed, dice, votes
from tests.models.batch_server import BatchServer, Drop

ROOT = Path(__file__).parents[2]
COUNT = 12
SERVED = [
    *("list", "before the upload", "after the upload", "before the job", "after the job"),
    *("status", "results", "half of the results"),
]
OWN = [f"{when} {event}" for event in ("_note", "_drop") for when in ("before", "after")]
OWN += ["1 calls", f"{COUNT // 2} calls", f"{COUNT} calls"]


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BatchServer]:
    with BatchServer(tmp_path / "server") as server:
        if request.node.callspec.params["work"] == "climb":
            server.says = dice
        yield server


def start(folder: Path, server: BatchServer, kind: str, work: str, *step: str) -> subprocess.Popen[str]:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.models.batch_child", str(folder), server.url, kind, str(COUNT), work, *step],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},  # noqa: TID251
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ends_well(folder: Path, server: BatchServer, kind: str, work: str) -> None:
    out, errors = start(folder, server, kind, work).communicate(timeout=300)
    if work == "ask":
        assert out.splitlines() == boxed(COUNT), errors
        assert len(server.submitted) == COUNT
    else:
        found = [json.loads(line) for line in out.splitlines()]
        assert found == unbroken(kind), errors
        assert len(server.submitted) == sum(len(answers) for _, _, answers in found)
    assert set(server.submitted.values()) == {1} and not server.live
    kept = Counter(record.key for segment in (folder / "calls").glob("*.jsonl") for record in read_calls(segment))
    assert kept.keys() == server.submitted.keys() and set(kept.values()) == {1}
    assert not list((folder / "batches").iterdir())


@cache
def unbroken(kind: str) -> list[object]:
    """Return what the same problems come to in one unbroken run."""
    with tempfile.TemporaryDirectory() as folder, BatchServer(Path(folder, "other")) as server:
        server.says = dice
        found = Desk(Path(folder, "plain"), server.url, kind).solve_on_ladder(COUNT)
        return [json.loads(json.dumps(votes(solution))) for solution in found]


@pytest.mark.slow
@pytest.mark.parametrize("work", ["ask", "climb"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("step", SERVED)
def test_killed_while_the_provider_is_asked(tmp_path: Path, server: BatchServer, kind: str, step: str, work: str):
    if kind == "anthropic" and "upload" in step:
        pytest.skip("has no upload")
    kills: list[str] = []

    def hook(now: str) -> None:
        if now == step and not kills:
            kills.append(now)
            child.kill()
            child.wait()
            raise Drop

    server.hook = hook
    child = start(tmp_path / "run", server, kind, work)
    child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL and kills
    ends_well(tmp_path / "run", server, kind, work)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["ask", "climb"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("step", OWN)
def test_killed_before_and_after_each_line_of_the_log_and_among_the_kept_calls(
    tmp_path: Path, server: BatchServer, kind: str, step: str, work: str
):
    child = start(tmp_path / "run", server, kind, work, step)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL, errors
    ends_well(tmp_path / "run", server, kind, work)
