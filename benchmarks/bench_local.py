"""The embedded engine: what our layer costs, what a busy neighbour costs, and what slots bring.

Arms are interleaved and medians taken, because the machine may have other work. The raw arm drives xllamacpp's own
server directly, with as many slots, as many threads as cores and the default way of waiting: llama.cpp's best case
on an idle machine. Run: python benchmarks/bench_local.py [--quick] [--model NAME] [--grid]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kace.config import user_cache
from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.models.local import SLOTS, EngineSettings, LocalModel, find_weights, open_local, pull, usable_cores

SYSTEM = "You solve problems step by step and put the final answer in a box."
QUESTION = "A train goes {} km at 60 km/h and returns at 40 km/h. Explain the average speed of the journey at length."

RAW = """
import json, sys, threading, time
import xllamacpp
job = json.load(sys.stdin)
params = xllamacpp.CommonParams()
params.model.path, params.verbosity, params.ui = job["path"], -1, False
params.n_parallel, params.n_ctx = job["slots"], job["slots"] * 4096
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = job["threads"]
server = xllamacpp.Server(params)
def batch(bodies):
    counts = []
    def one(body):
        counts.append(server.handle_chat_completions(body)["usage"]["completion_tokens"])
    threads = [threading.Thread(target=one, args=(body,)) for body in bodies]
    start = time.perf_counter()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(counts) / (time.perf_counter() - start)
batch(job["warm"])
print(batch(job["bodies"]))
"""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the engine."""

    name: str
    slots: int = SLOTS
    threads: int = 0
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """What every arm is given to do."""

    model: str
    path: Path
    tokens: int


def question(number: int, tokens: int) -> Request:
    key = AttemptKey("bench", 0, "ES", number)
    return Request(chat(SYSTEM, QUESTION.format(number)), Sampling(0.8, tokens, key.sampling_seed()), key)


def measure_ours(arm: Arm, job: Job) -> float:
    async def run() -> float:
        model = open_local(
            job.model, cache=job.path.parent, settings=EngineSettings(slots=arm.slots, threads=arm.threads)
        )
        try:
            await batch(model, arm.slots, 4)
            return await batch(model, arm.slots, job.tokens)
        finally:
            await model.aclose()

    return asyncio.run(run())


async def batch(model: LocalModel, size: int, tokens: int) -> float:
    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(model.complete(question(100 + n, tokens))) for n in range(size)]
    return sum(task.result().usage.output for task in tasks) / (time.perf_counter() - start)


def measure_raw(arm: Arm, job: Job) -> float:
    def bodies(tokens: int) -> list[dict[str, object]]:
        requests = [question(100 + n, tokens) for n in range(arm.slots)]
        return [
            {
                "messages": [{"role": m.role.value, "content": m.content} for m in request.messages],
                "max_tokens": tokens,
                "temperature": request.sampling.temperature,
                "seed": request.sampling.seed,
            }
            for request in requests
        ]

    order = {"path": str(job.path), "slots": arm.slots, "threads": arm.threads or usable_cores()}
    order |= {"warm": bodies(4), "bodies": bodies(job.tokens)}
    done = subprocess.run([sys.executable, "-c", RAW], input=json.dumps(order), capture_output=True, text=True)
    done.check_returncode()
    return float(done.stdout)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Other processes that each take a whole core."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def arms(grid: bool) -> list[Arm]:
    ours = [Arm("kace, default"), Arm("llama.cpp, its defaults", raw=True)]
    if grid:
        ours += [Arm(f"kace, {slots} slots", slots=slots) for slots in (1, 2, 4)]
        ours += [Arm("kace, 1 thread", threads=1)]
    return ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer tokens")
    parser.add_argument("--grid", action="store_true", help="also 1, 2 and 4 slots and a single thread")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    path = pull(find_weights(options.model), cache=user_cache({}) / "models", hub="https://huggingface.co")
    job = Job(options.model, path, tokens=24 if options.quick else 64)
    rounds = options.rounds or (2 if options.quick else 5)
    speeds: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number in range(rounds):
        chosen = arms(options.grid)
        for arm in chosen[number % len(chosen) :] + chosen[: number % len(chosen)]:
            for busy in (0, 1):
                with neighbours(busy):
                    measure = measure_raw if arm.raw else measure_ours
                    speeds[arm.name, busy].append(measure(arm, job))
    report(options.model, speeds, rounds)


def report(model: str, speeds: dict[tuple[str, int], list[float]], rounds: int) -> None:
    print(f"{model}, {usable_cores()} cores, tokens/s of all slots together, median (lowest) of n={rounds}")
    middle = {key: statistics.median(values) for key, values in speeds.items()}
    print(f"{'':24} {'alone':>14} {'one busy neighbour':>20} {'kept':>6}")
    for name in dict.fromkeys(name for name, _ in speeds):
        alone, busy = middle[name, 0], middle[name, 1]
        lows = [min(speeds[name, count]) for count in (0, 1)]
        print(f"{name:24} {alone:7.1f} ({lows[0]:.1f}) {busy:13.1f} ({lows[1]:.1f}) {busy / alone:7.2f}")
    for count, where in ((0, "alone"), (1, "with a busy neighbour")):
        pairs = zip(speeds["kace, default", count], speeds["llama.cpp, its defaults", count], strict=True)
        ratio = statistics.median(ours / raw for ours, raw in pairs)
        print(f"kace / llama.cpp {where}: {ratio:.2f} (n={rounds})")


if __name__ == "__main__":
    main()
