"""How often a model solves each problem: all ten attempts of the ladder, gates ignored.

    python benchmarks/solve_rates.py --file problems.jsonl --model local/qwen2.5-coder-0.5b --out rates.jsonl

Prints the histogram of solve rates, by domain and by family. The same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from kace.answers.equal import Verdict
from kace.config import load_config
from kace.files import write_atomic
from kace.ladder.ladder import Kit, grade, said, sample
from kace.ladder.prompt import NOTHING
from kace.ladder.session import open_session
from kace.ladder.tiers import LOCKED
from kace.models.cache import CallStore
from kace.problems import Problem, load_problems


@dataclass(frozen=True, slots=True)
class Rate:
    """The verdicts on a problem's ten attempts, in ladder order."""

    problem: Problem
    answers: tuple[str | None, ...]
    right: tuple[bool, ...]

    @property
    def solved(self) -> int:
        """How many of the ten were right."""
        return sum(self.right)


async def measure(problem: Problem, kit: Kit) -> Rate:
    answers: list[str | None] = []
    right: list[bool] = []
    for tier in LOCKED:
        for result in await sample(problem, tier, NOTHING, (), kit):
            answers.append(result.answer)
            right.append(await grade(problem, said(problem, result, kit), kit) is Verdict.SAME)
    return Rate(problem, tuple(answers), tuple(right))


async def measure_all(problems: tuple[Problem, ...], options: argparse.Namespace) -> list[Rate]:
    config = load_config(
        {
            "model": options.model,
            "base_url": options.base_url,
            "preset": options.preset,
            "seed": options.seed,
            "temperature": options.temperature,
            "max_connections": options.max_connections,
        }
    )
    store = CallStore(options.calls) if options.calls else None
    rates: list[Rate] = []
    async with open_session(config, calls=store) as session:
        gate = asyncio.Semaphore(max(session.window, options.max_connections or 1))

        async def one(problem: Problem) -> None:
            async with gate:
                rates.append(await measure(problem, session.kit))

        async with asyncio.TaskGroup() as group:
            for problem in problems:
                group.create_task(one(problem))
    if store:
        store.close()
    return sorted(rates, key=lambda rate: rate.problem.label)


def report(rates: list[Rate]) -> None:
    always = sum(r.solved == 10 for r in rates)
    rarely = sum(r.solved <= 1 for r in rates)
    n = len(rates)
    attempts = sum(r.solved for r in rates) / (10 * n)
    print(f"n = {n}; per attempt {attempts:.1%}")
    print(f"always (10/10) {always / n:.1%}; sometimes {(n - always - rarely) / n:.1%}; rarely (0-1) {rarely / n:.1%}")
    histogram = [sum(r.solved == k for r in rates) for k in range(11)]
    print("solved k of 10: " + " ".join(f"{k}:{count}" for k, count in enumerate(histogram)))
    for kind in ("domain", "family"):
        groups: dict[str, list[int]] = defaultdict(list)
        for rate in rates:
            groups[str(getattr(rate.problem, kind))].append(rate.solved)
        for name, solved in sorted(groups.items(), key=lambda item: -sum(item[1]) / len(item[1])):
            print(
                f"  {kind:6} {name:34} n={len(solved):3}  mean {sum(solved) / len(solved):4.1f}/10   {sorted(solved)}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, required=True, action="append")
    parser.add_argument("--model", default=None)
    parser.add_argument("--base-url", default=None)
    parser.add_argument("--preset", default="starter")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--temperature", type=float, default=None)
    parser.add_argument("--max-connections", type=int, default=None)
    parser.add_argument("--calls", type=Path, help="keep finished calls here")
    parser.add_argument("--out", type=Path, help="write one JSON line a problem")
    options = parser.parse_args()
    problems = tuple(problem for file in options.file for problem in load_problems(file))
    rates = asyncio.run(measure_all(problems, options))
    report(rates)
    if options.out:
        rows = [
            {"label": r.problem.label, "family": r.problem.family, "solved": r.solved, "answers": r.answers}
            for r in rates
        ]
        write_atomic(options.out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
