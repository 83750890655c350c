"""Calls of one process against a server that takes 50 ms a call: ours, OpenAI's client, other tools, and the ideal.

    python benchmarks/bench_transport.py [--quick] [--python NAME=PYTHON ...]

1,000 problems x 5 attempts over 64 connections; the server is a process of its own. `window` is from the first request
to the last reply, `total` the whole process, `CPU` the whole process for a request. The bare loops only make the calls;
`kace eval` also votes, judges and keeps every call on disk. Peers (DSPy, inspect_ai, lm_eval) are started where they
are installed: in this Python, or in the one that `--python dspy=/path/bin/python` names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.models.http import OpenAIModel
from kace.models.limits import Limited

PEERS = Path(__file__).resolve().parent / "peers"
ATTEMPTS, CONNECTIONS, SECONDS = 5, 64, 0.05
TARGET, RATE, CPU_MS = 1.3, 1000, 1.0
LOOPS = ("kace", "openai")


class Row(NamedTuple):
    """One way to make the calls, measured."""

    calls: int
    window: float
    total: float
    cpu_ms: float  # a request
    megabytes: int


@contextmanager
def mock_server(seconds: float = SECONDS) -> Iterator[str]:
    command = [sys.executable, str(PEERS / "mock_server.py"), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def measured(command: Sequence[str], server: str, folder: Path) -> Row | None:
    """Run a command; nothing where it fails."""
    window(server)
    started = time.perf_counter()
    with (folder / "output").open("w+b") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    total, found = time.perf_counter() - started, window(server)
    if process.returncode or not found["count"]:
        print(f"    failed: {(folder / 'output').read_text(errors='replace').strip()[-300:]}")
        return None
    cpu = 1000 * (used.ru_utime + used.ru_stime) / found["count"]
    return Row(int(found["count"]), found["seconds"], total, cpu, used.ru_maxrss // 1024)


def window(server: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{server}/window", timeout=10) as reply:
        found: dict[str, float] = json.load(reply)
        return found


def show(name: str, row: Row, ideal: float) -> None:
    rate = f"{row.calls / row.window:7.0f}/s {row.cpu_ms:6.2f} ms {row.megabytes:5d} MB"
    print(
        f"{name:34} {row.calls:6d} {row.window:8.2f} s {row.window / ideal:6.2f} x {rate} {row.total:8.2f} s",
        flush=True,
    )


async def loop(name: str, url: str, problems: int) -> None:
    """Make the calls and nothing else."""
    call, close = await (_ours if name == "kace" else _openai)(url)
    left = iter([(problem, attempt) for problem in range(problems) for attempt in range(ATTEMPTS)])

    async def worker() -> None:
        for problem, attempt in left:
            await call(problem, attempt)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(worker())
    await close()


Caller = tuple[Callable[[int, int], Awaitable[object]], Callable[[], Awaitable[None]]]


async def _ours(url: str) -> Caller:
    remote = OpenAIModel("m", base_url=url, api_key=None, name="openai/m")
    model = Limited(remote, CONNECTIONS)

    async def call(problem: int, attempt: int) -> object:
        key = AttemptKey(str(problem), 0, "ES", attempt)
        return await model.complete(Request(chat("s" * 400, "u" * 400), Sampling(0.6, 100, attempt), key))

    return call, model.aclose


async def _openai(url: str) -> Caller:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def call(problem: int, attempt: int) -> object:
        return await client.chat.completions.create(
            model="m",
            messages=[{"role": "system", "content": "s" * 400}, {"role": "user", "content": "u" * 400}],
            max_tokens=100,
            seed=attempt,
            temperature=0.6,
        )

    return call, client.close


def commands(url: str, file: Path, problems: int, pythons: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    own = [sys.executable, str(Path(__file__).resolve())]
    for name in LOOPS:
        yield f"bare loop over {name}'s client", [*own, "--loop", name, url, str(problems)]
    solver = ["--model", "openai/m", "--base-url", url, "--set", f"max_connections={CONNECTIONS}"]
    data = ["--data", str(file), "--seeds", "1", "--preset", "math-hard", "--out", "run"]
    yield (
        "kace eval --system best-of-5",
        [sys.executable, "-m", "kace", "eval", "--system", "best-of-5", *data, *solver],
    )
    for script in sorted(PEERS.glob("peer_*.py")):
        package = script.stem.removeprefix("peer_")
        python = pythons.get(package, sys.executable)
        if subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode:
            print(f"{package:34} not installed in {python}")
        else:
            yield package, [python, str(script), url, str(file), str(ATTEMPTS), str(CONNECTIONS)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="100 problems")
    parser.add_argument("--python", action="append", default=[], help="NAME=PYTHON of a peer")
    parser.add_argument("--loop", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        name, url, problems = options.loop
        asyncio.run(loop(name, url, int(problems)))
        return
    number = 100 if options.quick else 1000
    ideal = number * ATTEMPTS * SECONDS / CONNECTIONS
    print(f"{number} problems x {ATTEMPTS}, {CONNECTIONS} connections, {SECONDS:g} s a call: ideal {ideal:.2f} s")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':34} {'calls':>6} {'window':>10} {'ideal':>8} {'rate':>9} {'CPU':>9} {'memory':>8} {'total':>10}")
    rows = {}
    with mock_server() as server, tempfile.TemporaryDirectory() as place:
        file = Path(place) / "problems.jsonl"
        texts = ({"problem": f"What is {n} + {4 - n}?", "answer": "4"} for n in range(number))
        file.write_text("".join(f"{json.dumps(text)}\n" for text in texts))
        pythons = dict(pair.split("=", 1) for pair in options.python)
        for name, command in commands(f"{server}/v1", file, number, pythons):
            if (row := measured(command, server, Path(place))) is not None:
                rows[name] = row
                show(name, row, ideal)
    best = rows["kace eval --system best-of-5"]
    rate = best.calls / best.window
    met = best.window <= TARGET * ideal and rate >= RATE and best.cpu_ms < CPU_MS
    print(f"target: at most {TARGET} x the ideal, {RATE}/s, under {CPU_MS:g} ms: {'met' if met else 'not met'}")


if __name__ == "__main__":
    main()
