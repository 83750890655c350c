"""`--batch` by hand: the same answers as live, over several commands, at half the price."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kace.problems import problem_rows
from tests.command import environment, run_kace
from tests.learning.world import problems
from tests.models.batch_server import KEY, BatchServer

PRICE = '[prices."openai/m"]\ninput = 10.0\noutput = 100.0\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BatchServer]:
    def dice(body: dict[str, Any]) -> str:
        return f"\\boxed{{{body['seed'] % 3}}}"

    with BatchServer(tmp_path / "server") as server:
        server.says = dice
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.jsonl").write_text("\n".join(problem_rows(problems(2))) + "\n")
    (tmp_path / "kace.toml").write_text(PRICE)
    return tmp_path


def env_of(server: BatchServer) -> dict[str, str]:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}


def kace(folder: Path, server: BatchServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_kace(folder, *arguments, "--model", "openai/m", **env_of(server))


def votes(run: Path) -> dict[tuple[str, int], Any]:
    rows = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
    return {
        (row["problem"], row["seed"]): (row["exit"], row["answer"], [each["answer"] for each in row["attempts"]])
        for row in rows
    }


def usd(run: subprocess.CompletedProcess[str]) -> float:
    return float(next(line.split()[1] for line in run.stdout.splitlines() if line.startswith("cost")))


def test_eval_in_batches_finds_what_it_finds_live_at_half_the_price(folder: Path, server: BatchServer):
    arguments = ("eval", "--system", "tiered", "--data", "p.jsonl", "--seeds", "2")
    live = kace(folder, server, *arguments, "--out", "live")
    assert live.returncode == 0, live.stderr
    paid = len(server.live)
    server.looks = 1000
    first = kace(folder, server, *arguments, "--out", "run", "--batch", "--set", "wait=false")
    assert first.returncode == 0 and "under way" in first.stderr, first.stderr
    again = kace(folder, server, *arguments, "--out", "run", "--batch", "--set", "wait=false")
    assert again.returncode == 0 and len(server.jobs) == 1, "a job under way is not submitted again"
    assert len(server.jobs[0].keys) == 2 * 2 * len(problems(2)), "ES of all problems on both seeds"
    server.looks = 0
    done = kace(folder, server, *arguments, "--out", "run", "--batch")
    assert done.returncode == 0, done.stderr
    assert votes(folder / "run") == votes(folder / "live")
    assert len(server.live) == paid and sum(server.submitted.values()) == paid == len(server.submitted)
    assert 3 <= len(server.jobs) <= 6, "a job for each round, and little more"
    assert usd(done) == pytest.approx(usd(live) / 2, rel=1e-3)
    assert f"submitted as {server.jobs[-1].id}" in done.stderr and "USD so far" in done.stderr


def test_solve_takes_a_file_in_batches_and_one_problem_not(folder: Path, server: BatchServer):
    one = kace(folder, server, "solve", "What is 6 times 7?", "--batch")
    assert one.returncode == 2 and "--file" in one.stderr
    done = kace(folder, server, "solve", "--file", "p.jsonl", "--out", "run", "--batch")
    assert done.returncode == 0 and not server.live, done.stderr
    assert len(votes(folder / "run")) == len(problems(2))


def test_interrupted_while_it_waits_it_says_how_to_go_on_and_submits_nothing_twice(folder: Path, server: BatchServer):
    server.looks = 10**9
    arguments = ("eval", "--system", "best-of-3", "--data", "p.jsonl", "--seeds", "1", "--out", "run", "--batch")
    child = subprocess.Popen(
        [sys.executable, "-m", "kace", *arguments, "--model", "openai/m"],
        cwd=folder,
        env=environment(folder, **env_of(server)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert any("submitted as" in line for line in iter(child.stderr.readline, ""))
    child.send_signal(signal.SIGINT)
    rest = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=600) == 130 and "Resume with: kace eval" in rest and "Traceback" not in rest
    server.looks = 0
    done = kace(folder, server, *arguments)
    assert done.returncode == 0 and len(server.jobs) == 1 and not server.live, done.stderr
    assert len(votes(folder / "run")) == len(problems(2))


def test_a_model_without_a_batch_api_is_refused_by_name(folder: Path, server: BatchServer):
    done = run_kace(folder, "eval", "--data", "p.jsonl", "--model", "scripted/dice", "--batch")
    assert done.returncode == 2 and "no batch API" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_learn_practises_in_batches_and_its_bill_has_their_price(folder: Path, server: BatchServer):
    server.looks = 0
    done = kace(folder, server, "learn", "--demo", "--out", "demo", "--batch")
    assert done.returncode == 0, done.stderr
    assert not server.live and set(server.submitted.values()) == {1}
    roles = json.loads((folder / "demo" / "tree" / "learn" / "bill.json").read_text())["roles"]
    bill = next(role for role in roles if role["role"] == "solver")
    measured = folder.glob("demo/*/traces.jsonl")
    lines = [line for run in measured for line in run.read_text().splitlines()]
    attempts = [each for line in lines for each in json.loads(line)["attempts"]]
    assert bill["calls"] + sum(not each["from_cache"] for each in attempts) == len(server.submitted)
    assert bill["usd"] == pytest.approx((10 * bill["input"] + 100 * bill["output"]) / 1e6 / 2)
