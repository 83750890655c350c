"""Kill -9 at each step of a batch, run the same command again: nothing is submitted twice, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kace.models.cache import read_calls
from tests.models.batch_desk import boxed
from tests.models.batch_server import BatchServer, Drop

ROOT = Path(__file__).parents[2]
COUNT = 12
SERVED = [
    *("list", "before the upload", "after the upload", "before the job", "after the job"),
    *("status", "results", "half of the results"),
]
OWN = [f"{when} {event}" for event in ("gathered", "submitted", "collected", "kept") for when in ("before", "after")]
OWN += ["1 calls", f"{COUNT // 2} calls", f"{COUNT} calls"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BatchServer]:
    with BatchServer(tmp_path / "server") as server:
        yield server


def start(folder: Path, server: BatchServer, kind: str, *step: str) -> subprocess.Popen[str]:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.models.batch_child", str(folder), server.url, kind, str(COUNT), *step],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},  # noqa: TID251
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ends_well(folder: Path, server: BatchServer, kind: str) -> None:
    out, errors = start(folder, server, kind).communicate(timeout=300)
    assert out.splitlines() == boxed(COUNT), errors
    assert len(server.submitted) == COUNT and set(server.submitted.values()) == {1} and not server.live
    kept = Counter(record.key for segment in (folder / "calls").glob("*.jsonl") for record in read_calls(segment))
    assert kept.keys() == server.submitted.keys() and set(kept.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("step", SERVED)
def test_killed_while_the_provider_is_asked(tmp_path: Path, server: BatchServer, kind: str, step: str):
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
    child = start(tmp_path / "run", server, kind)
    child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL and kills
    ends_well(tmp_path / "run", server, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("step", OWN)
def test_killed_before_and_after_each_line_of_the_log_and_among_the_kept_calls(
    tmp_path: Path, server: BatchServer, kind: str, step: str
):
    child = start(tmp_path / "run", server, kind, step)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL, errors
    ends_well(tmp_path / "run", server, kind)
