"""Voting over recorded answers: our ladder against comparing every pair with math-verify in one process.

Both sort the ten recorded answers of each problem into classes. Ours buckets by key and asks the judge about class
representatives only, worker start included; the baseline parses each answer once, within its problem, and verifies
all pairs. With `--sample K` the baseline runs on every K-th problem and its time is scaled by the number of pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import logging
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.ladder.tiers import group

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
ATTEMPTS = DATA / "attempts_qwen2.5-coder-1.5b_math_l45_train200.jsonl.gz"
GOAL = 10


def recorded() -> list[list[str]]:
    """The boxed texts of each problem."""
    problems: dict[str, list[str]] = defaultdict(list)
    with gzip.open(ATTEMPTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["boxed"]:
                problems[row["problem_id"]].append(row["boxed"])
    return list(problems.values())


async def ours(problems: list[list[str]]) -> float:
    start = time.perf_counter()
    async with Judge() as judge, asyncio.TaskGroup() as votes:

        async def same(left: Answer, right: Answer) -> bool:
            return await judge(left, right) is Verdict.SAME

        for texts in problems:
            votes.create_task(group([Answer.of(text) for text in texts], same))
    return time.perf_counter() - start


def pairwise(problems: list[list[str]]) -> float:
    from math_verify import parse, verify

    logging.disable(logging.WARNING)
    parse("1", parsing_timeout=None)  # the import is not the library's fault
    start = time.perf_counter()
    for texts in problems:
        parsed = [parse(rf"\boxed{{{text}}}", parsing_timeout=None) for text in texts]
        for left, right in combinations(parsed, 2):
            verify(left, right, timeout_seconds=None)
    return time.perf_counter() - start


def pairs(problems: list[list[str]]) -> int:
    return sum(len(texts) * (len(texts) - 1) // 2 for texts in problems)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sample", type=int, default=1, metavar="K", help="baseline on every K-th problem")
    options.add_argument("--quick", action="store_true", help="the same as --sample 10")
    arguments = options.parse_args()
    if not ATTEMPTS.exists():
        print(f"skipped: {ATTEMPTS} is not there")
        return
    problems = recorded()
    sample = problems[:: 10 if arguments.quick else arguments.sample]
    mine = asyncio.run(ours(problems))
    theirs = pairwise(sample) * pairs(problems) / pairs(sample)
    scaled = "" if len(sample) == len(problems) else f" (scaled from {len(sample)} problems, {pairs(sample)} pairs)"
    print(f"n = {len(problems)} problems, {sum(map(len, problems))} answers, {pairs(problems)} pairs")
    print(f"kace ladder           {mine:8.2f} s")
    print(f"math-verify pairwise  {theirs:8.2f} s{scaled}")
    print(f"ratio                 {theirs / mine:8.1f} x faster (goal: at least {GOAL})")


if __name__ == "__main__":
    main()
