"""Attempts that compute: what running programs costs, and what share of a solve that is.

Three figures: milliseconds a program in a warm sandbox, one after another and side by side; the ladder over a scripted
model with boxed answers against the same with programs, interleaved; and, with a model, the sandbox's share of the time
of its attempts in one run. Run: python benchmarks/bench_programs.py [--quick] [--model local/qwen2.5-coder-0.5b]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from kace.answers.judge import Judge
from kace.answers.program import ProgramRun, Sandbox
from kace.config import load_config
from kace.datasets.starter import load_split
from kace.ladder.ladder import Kit, climb
from kace.ladder.programs import Programs
from kace.ladder.record import Solution
from kace.ladder.tiers import PROGRAM_LENSES
from kace.models.base import ChatModel, Request
from kace.models.provider import open_model
from kace.models.scripted import Scripted
from kace.problems import Problem

SHORT = "print(sum(n * n for n in range(1, 101) if n % 3))"
SEARCH = "print(sum(1 for a in range(1, 300) for b in range(a, 300) if (a * a + b * b) % 7 == 0))"


class Timed(Sandbox):
    """A sandbox that knows how long its programs took."""

    seconds_spent = 0.0

    async def run(self, source: str) -> ProgramRun:
        """Run a program against the clock."""
        began = time.perf_counter()
        found = await super().run(source)
        self.seconds_spent += time.perf_counter() - began
        return found


def reply(request: Request) -> str:
    """Disagree at ES; then what was asked for, right twice of three times."""
    number = request.attempt.index if request.attempt.tier == "ES" else min(request.attempt.index, 1) + 40
    asked = request.messages[-1].content
    return f"```python\nprint({number})\n```" if "```python" in asked else f"So \\boxed{{{number}}}"


async def sandboxed(runs: int) -> None:
    async with Sandbox() as sandbox:
        for name, source in (("a short program", SHORT), ("a search over 45,000 pairs", SEARCH)):
            times = []
            for _ in range(runs):
                began = time.perf_counter()
                await sandbox.run(source)
                times.append(1000 * (time.perf_counter() - began))
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for _ in range(runs):
                    group.create_task(sandbox.run(source))
            together = 1000 * (time.perf_counter() - began) / runs
            worst = max(times)
            print(f"{name:<28} {statistics.median(times):7.2f} ms (worst {worst:.1f}), {together:.2f} ms side by side")


async def ladders(rounds: int) -> None:
    solver = Scripted(reply)
    async with Judge() as judge, Sandbox() as sandbox:
        plain = Kit(solver, judge, load_config(env={}).tier_sampling())
        times: dict[str, list[float]] = {"none": [], "ms": []}
        for number in range(rounds):
            for policy, found in times.items():
                programs = Programs(PROGRAM_LENSES[policy], sandbox)
                kit = Kit(solver, judge, plain.sampling, programs=programs)
                began = time.perf_counter()
                await climb(Problem(f"What is {number}?"), kit)
                found.append(1000 * (time.perf_counter() - began))
    text, programs_ = (statistics.median(found) for found in times.values())
    print(f"a solve that leaves at MS    {text:7.2f} ms with boxed answers, {programs_:.2f} ms with three programs")


async def solved(model: ChatModel, problems: list[Problem], sampling: object) -> None:
    async with Judge() as judge, Timed() as sandbox:
        kit = Kit(model, judge, sampling, programs=Programs(PROGRAM_LENSES["ms"], sandbox))  # type: ignore[arg-type]
        began, records = time.perf_counter(), list[Solution]()
        for problem in problems:
            records.append(await climb(problem, kit))
        took = time.perf_counter() - began
    attempts = [attempt for record in records for attempt in record.attempts if attempt.lens == "program"]
    runs = [run for attempt in attempts for run in attempt.programs]
    spent, ran = sandbox.seconds_spent, sum(run.outcome == "ran" for run in runs)
    called = sum(attempt.seconds for attempt in attempts)
    print(f"{model.name}: {len(problems)} problems in {took:.0f} s, {len(attempts)} program attempts")
    print(f"  programs that ran          {ran} of {len(runs)}, repairs {sum(a.calls > 1 for a in attempts)}")
    if runs and called:
        share = f"{spent / called:.2%} of the seconds of their attempts' calls"
        print(f"  milliseconds a program     {1000 * spent / len(runs):.1f}, {share}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", help="a model to solve starter problems with")
    chosen = parser.parse_args()
    asyncio.run(sandboxed(20 if chosen.quick else 100))
    asyncio.run(ladders(20 if chosen.quick else 100))
    if chosen.model:
        config = load_config({"model": chosen.model})
        problems = list(load_split("test"))[: 3 if chosen.quick else 12]

        async def run() -> None:
            model = open_model(config)
            try:
                await solved(model, problems, config.tier_sampling())
            finally:
                await model.aclose()

        asyncio.run(run())


if __name__ == "__main__":
    main()
