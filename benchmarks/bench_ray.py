"""Workers of a Ray cluster: what a second one gains where orchestration is the limit, and what Ray costs elsewhere.

    python benchmarks/bench_ray.py [--quick]

Starts a cluster of two nodes of one CPU each on this machine. Needs `pip install 'kace[ray]'`; without it, it says so.
Problems per second are counted between the first solve and the last, so that starting workers is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path
from statistics import median

from kace.baselines.trial import Trial, run_trial
from kace.config import load_config
from kace.datasets.loader import Dataset
from kace.ladder.record import Attempt, Solution
from kace.problems import Problem


class Clock:
    """When problems were solved."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.cpu: list[float] = []  # seconds of it that this process has used

    def started(self, problem: Problem) -> None:
        """Nothing."""

    def attempted(self, problem: Problem, attempt: Attempt) -> None:
        """Nothing."""

    def solved(self, solution: Solution) -> None:
        """One more."""
        self.times.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def figures(self) -> tuple[float, float]:
        """Problems a second and milliseconds of CPU a problem, the first tenth left out."""
        first = len(self.times) // 10
        solved, seconds, cpu = (
            len(self.times) - 1 - first,
            self.times[-1] - self.times[first],
            self.cpu[-1] - self.cpu[first],
        )
        return solved / seconds, 1000 * cpu / solved


def measured(address: str | None, workers: int, problems: int, latency: float) -> tuple[float, float]:
    """Figures of one process, or of a driver with so many workers."""
    place = {"ray": address, "ray_workers": workers} if address else {}
    config = load_config({"model": f"scripted/dice?sides=3&latency={latency}", "max_connections": 64, **place}, env={})
    made = tuple(Problem(f"made-up problem {number}", answer="1") for number in range(problems))
    trial, clock = Trial("tiered", Dataset("made-up", "all", made, "", ""), config, seeds=1), Clock()
    with tempfile.TemporaryDirectory() as folder, trial.open(Path(folder)) as run:
        asyncio.run(run_trial(trial, run, lambda record: None, clock))
    return clock.figures()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the problems")
    less = 10 if parser.parse_args().quick else 1
    try:
        import ray
        from ray.cluster_utils import Cluster
    except ImportError:
        print("Ray is not installed: pip install 'kace[ray]'")
        return
    os.environ["RAY_worker_niceness"] = "0"  # noqa: TID251, SIM112 - else what else runs here comes before the workers
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    try:
        for limit, latency, problems, rounds in (("orchestration", 0.001, 2_000, 5), ("the model", 1.0, 600, 1)):
            problems //= less
            ways = ((None, 1), (cluster.address, 1), (cluster.address, 2))
            taken = [[measured(place, count, problems, latency) for place, count in ways] for _ in range(rounds)]
            plain, one, two = (
                [median(column) for column in zip(*way, strict=True)] for way in zip(*taken, strict=True)
            )
            print(f"{limit} is the limit, {latency * 1000:.0f} ms a call, {problems:,} problems, medians of {rounds}:")
            print(
                f"  one process {plain[0]:.1f}/s, one worker {one[0]:.1f}/s ({one[0] / plain[0]:.2f} times),", end=" "
            )
            print(f"two workers {two[0]:.1f}/s ({two[0] / one[0]:.2f} times one)")
            print(f"  CPU a problem: one process {plain[1]:.2f} ms, the driver {two[1]:.2f} ms", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"the driver's peak memory: {peak:.0f} MB")
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
