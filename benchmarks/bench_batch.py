"""The batch path: how long many requests take against a local server of the Batch API, and what memory.

    python benchmarks/bench_batch.py [--quick] [--requests N ...] [--window N]

Every size is a run of its own process: problems that leave at ES, two requests each, through `Run` and a session with
`--batch`. The server runs in another process and answers a job at the first look. Memory is flat where the peak does
not grow with the number of requests, only with the problems that are open at once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVER = """
import sys
from pathlib import Path
from tests.models.batch_server import BatchServer
with BatchServer(Path(sys.argv[1])) as server:
    server.looks = 0
    print(server.url, flush=True)
    sys.stdin.read()
    print(len(server.jobs), sum(server.submitted.values()), len(server.submitted), len(server.live), flush=True)
"""
CLIENT = """
import asyncio, json, logging, resource, sys, time
from pathlib import Path
from kace.config import load_config
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, climb_with
from kace.ladder.session import open_session
folder, url, count, window, batch = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
flags = {"model": "openai/m", "base_url": url + "/v1", "api_key": "key-of-the-batches", "batch": bool(batch)}
config = load_config(flags, env={})
logging.disable(logging.WARNING)
text = "Some words that make a problem as long as most of them are. " * 5
problems = (Problem(f"{text} How much is {n}?", str(n)) for n in range(count // 2))
began, cpu = time.perf_counter(), time.process_time()
with Run(folder, manifest_of(config), texts=False) as run:
    async def work():
        async with open_session(config, calls=run.calls) as session:
            await run.solve(problems, climb_with(session.kit), session.kit.seed, window)
    asyncio.run(work())
    right = sum(record.correct for record in run.records())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.perf_counter() - began, time.process_time() - cpu, peak, right]))
"""


def measure(requests: int, window: int) -> dict[str, float]:
    """One run."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}  # noqa: TID251 - of a child
    with tempfile.TemporaryDirectory() as place:
        serve = [sys.executable, "-c", SERVER, f"{place}/server"]
        server = subprocess.Popen(serve, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdout and server.stdin
        url = server.stdout.readline().strip()
        client = [sys.executable, "-c", CLIENT, f"{place}/run", url, str(requests), str(window), "1"]
        done = subprocess.run(client, env=env, stdout=subprocess.PIPE, text=True, check=True)
        seconds, cpu, peak, right = json.loads(done.stdout)
        server.stdin.close()
        jobs, submitted, different, live = map(int, server.stdout.readline().split())
        server.wait()
    assert submitted == different == requests and not live and right == requests // 2, "each once, and all of them"
    return {"requests": requests, "jobs": jobs, "seconds": seconds, "cpu": cpu, "peak": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--requests", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--window", type=int, default=5_000)
    options = parser.parse_args()
    sizes = [500, 1_000] if options.quick else options.requests
    print(f"window {options.window:,} problems")
    print(f"{'requests':>9} {'jobs':>5} {'seconds':>8} {'CPU ms each':>12} {'peak MB':>8}")
    for size in sizes:
        found = measure(size, options.window)
        each = 1000 * found["cpu"] / size
        row = f"{size:>9,} {found['jobs']:>5} {found['seconds']:>8.1f} {each:>12.2f} {found['peak']:>8.0f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
