"""The domain classifier on a starter split, held to the registry's names and (`--free`) not held to them.

Accuracy is against the gold domain; a pair counts as right only under "among them". The words-only line is BM25 on the
same registry without any model: what a classifier has to beat. Prompts were tuned on training and validation
problems, so the test split is the one to quote.
Run: python benchmarks/bench_classifier.py [--split validation] [--limit 60] [--model local/NAME] [--free | --held]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from kace.cards.tree import Domain
from kace.config import user_cache
from kace.datasets.starter import Split, load_split, starter_domains
from kace.ladder.relevance import words
from kace.ladder.router import Route, classify
from kace.ladder.selector import Index
from kace.models.base import ChatModel, Reply, Request, Wrapper, total
from kace.models.local import EngineSettings, open_local
from kace.problems import Problem
from kace.runs.stats import wilson

SLOTS = 2


class Free(Wrapper):
    """The same model without constrained decoding."""

    async def complete(self, request: Request) -> Reply:
        """Ask without the choices."""
        return await self.model.complete(replace(request, choices=()))


async def placements(problems: Sequence[Problem], registry: Sequence[Domain], model: ChatModel) -> list[Route]:
    turns = asyncio.Semaphore(SLOTS)

    async def place(problem: Problem) -> Route:
        async with turns:
            return await classify(problem, registry, model, seed=0)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(place(problem)) for problem in problems]
    return [task.result() for task in tasks]


def share(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits}/{n} = {hits / n:.1%} [{low:.1%}, {high:.1%}]"


def report(title: str, problems: Sequence[Problem], found: Sequence[Route], seconds: float) -> None:
    n = len(problems)
    pairs = list(zip(problems, found, strict=True))
    usage = total([placement.usage for placement in found])
    sizes = Counter(len(placement.domains) for placement in found)
    print(f"\n{title}")
    print(f"  right                {share(sum(p.domains == (g.domain,) for g, p in pairs), n)}")
    print(f"  right or among them  {share(sum(g.domain in p.domains for g, p in pairs), n)}")
    print(
        f"  unknown {sizes[0] / n:.1%}, mixed {sizes[2] / n:.1%}, calls {sum(p.calls for p in found) / n:.2f} a problem"
    )
    print(f"  tokens a problem: {usage.input / n:.0f} in ({usage.cached / n:.0f} cached), {usage.output / n:.1f} out")
    print(f"  {seconds / n:.2f} s a problem, {SLOTS} at a time")
    wrong = Counter((g.domain, " + ".join(p.domains) or "unknown") for g, p in pairs if p.domains != (g.domain,))
    for (gold, said), times in sorted(wrong.items(), key=lambda item: -item[1])[:5]:
        print(f"    {times} x {gold} taken for {said}")


def words_only(problems: Sequence[Problem], registry: Sequence[Domain]) -> list[Route]:
    index = Index(words(" ".join((d.name.replace("_", " "), d.description, *d.signals))) for d in registry)
    scores = [index.scores(problem.text) for problem in problems]
    return [Route((registry[row.index(max(row))].name,) if any(row) else ()) for row in scores]


async def run(options: argparse.Namespace) -> None:
    problems = load_split(options.split)[: options.limit]
    registry = starter_domains()
    print(f"starter {options.split}, n = {len(problems)}, {len(registry)} domains, {options.model}; Wilson 95 %")
    started = time.perf_counter()
    found = words_only(problems, registry)
    report("words only (BM25, no model)", problems, found, time.perf_counter() - started)
    local = open_local(
        options.model.removeprefix("local/"), cache=user_cache({}) / "models", settings=EngineSettings(slots=SLOTS)
    )
    try:
        await local.count_tokens("warm")
        arms: list[tuple[str, ChatModel]] = []
        if not options.free:
            arms.append(("held to the names (grammar)", local))
        if not options.held:
            arms.append(("free", Free(local)))
        for title, model in arms:
            started = time.perf_counter()
            found = await placements(problems, registry, model)
            report(title, problems, found, time.perf_counter() - started)
    finally:
        await local.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=get_args(Split), default="validation")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--quick", action="store_true", help="20 problems")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--free", action="store_true", help="only without constrained decoding")
    only.add_argument("--held", action="store_true", help="only with it")
    options = parser.parse_args()
    if options.quick:
        options.limit = 20
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
