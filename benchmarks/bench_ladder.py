"""The ladder's own cost, on a scripted model: schedule at high latency, throughput and memory at low latency.

    python benchmarks/bench_ladder.py [--quick]

* 1,000 problems, 1 s a call, 100 connections: wall time against the ideal schedule, which is the larger of
  all calls spread over all connections and the longest climb (three tiers).
* 10,000 problems, 1 ms a call, 64 connections, traces and calls written: problems/s, and memory over the last half.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kace.config import load_config
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, solve_all


def run(n: int, latency: float, connections: int, watch: Callable[[Solution], None]) -> tuple[float, int]:
    """Wall seconds and calls of a whole run."""
    config = load_config({"model": f"scripted/dice?sides=4&latency={latency}", "max_connections": connections}, env={})
    problems = (Problem(f"How much is {i}?", "3", label=f"p{i}") for i in range(n))
    calls = 0

    async def work(open_run: Run) -> float:
        nonlocal calls

        def keep(solution: Solution) -> None:
            nonlocal calls
            open_run.keep(solution)
            calls += solution.real_calls
            watch(solution)

        async with open_session(config, calls=open_run.calls) as session:
            began = time.monotonic()
            await solve_all(problems, session.kit, session.window, keep)
            return time.monotonic() - began

    with tempfile.TemporaryDirectory() as folder, Run(Path(folder), manifest_of(config)) as open_run:
        return asyncio.run(work(open_run)), calls


def resident_mb() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the problems")
    scale = 10 if parser.parse_args().quick else 1

    n = 1000 // scale
    wall, calls = run(n, 1.0, 100, lambda _: None)
    ideal = max(calls / 100, 3.0)
    print(f"latency-bound: {n} problems, {calls} calls of 1 s over 100 connections")
    print(f"  wall {wall:.1f} s, ideal {ideal:.1f} s, ratio {wall / ideal:.3f}")

    n = 10_000 // scale
    memory: list[float] = []

    def watch(_: Solution) -> None:
        memory.append(resident_mb())

    wall, calls = run(n, 0.001, 64, watch)
    half, end = memory[len(memory) // 2], memory[-1]
    print(f"overhead-bound: {n} problems, {calls} calls of 1 ms over 64 connections, all written to disk")
    print(f"  {n / wall:.0f} problems/s, {calls / wall:.0f} calls/s")
    print(f"  memory {half:.0f} MB half way, {end:.0f} MB at the end, ratio {end / half:.3f}")


if __name__ == "__main__":
    main()
