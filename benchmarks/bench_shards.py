"""Shards of a large run: how long merging them and reporting on the merged run take, and what memory.

    python benchmarks/bench_shards.py [--quick] [--problems N] [--shards N]

The solves are made up as in bench_evaluate.py, a thousand of them under as many names as there are problems, and
recorded by the shards' own runs. Every step is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_evaluate import READ, REPORT, solved, step

from kace.config import load_config
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run
from kace.runs.shards import Shard

MERGE = """
from kace.runs.shards import merge_shards
*shards, out = map(Path, sys.argv[1:])
merged = merge_shards(shards, out)
note = f"{merged.problems:,} problems, {merged.solves:,} solves, {len(merged.gaps)} gaps"
"""
COUNT = """
from kace.ladder.record import Solution, read_trace
from kace.runs.metrics import Totals
lines = (line.content for line in read_trace(Path(sys.argv[1]) / "traces.jsonl"))
found = Totals()
for line in lines:
    if isinstance(line, Solution):
        found.add(line)
note = f"{found.problems:,} solves, accuracy {found.accuracy:.3f}"
"""


def record(folder: Path, shard: Shard, problems: int) -> None:
    """A shard's run as `kace eval --shard` leaves it, without texts and calls."""
    chance = random.Random(shard.index)
    made = [Problem(f"made-up problem {number}") for number in range(problems)]
    manifest = manifest_of(load_config({"model": "scripted/made-up"})) | shard.facts(made)
    known = [solved(chance, number, 0, chance.betavariate(0.6, 0.6)) for number in range(1_000)]
    with Run(folder, manifest, texts=False) as run:
        for number, problem in enumerate(made):
            if shard.holds(problem.id):
                run.keep(known[number % 1_000].model_copy(update={"problem": problem.id, "label": str(number)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5,000 problems")
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--record", help=argparse.SUPPRESS)
    options = parser.parse_args()
    problems = 5_000 if options.quick else options.problems
    if options.record:
        shard, folder = options.record.split(" ", 1)
        return record(Path(folder), Shard.read(shard), problems)
    with tempfile.TemporaryDirectory() as place:
        parts, began = [], time.perf_counter()
        for index in range(1, options.shards + 1):
            parts.append(Shard(index, options.shards).folder(Path(place) / "run"))
            arguments = ["--problems", str(problems), "--record", f"{index}/{options.shards} {parts[-1]}"]
            subprocess.run([sys.executable, __file__, *arguments], check=True)
        size = sum((part / "traces.jsonl").stat().st_size for part in parts) / 1e6
        print(f"{problems:,} problems in {options.shards} shards, {size:,.0f} MB of traces", end="")
        print(f", recorded in {time.perf_counter() - began:.1f} s", flush=True)
        whole = Path(place) / "run"
        step("merge", MERGE, [*parts, whole])
        step("read and count", COUNT, [whole])
        step("read and report", READ + REPORT, [whole])


if __name__ == "__main__":
    main()
