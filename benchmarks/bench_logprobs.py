"""What asking for log-probabilities costs on the embedded engine, as a ratio in one run.

    python benchmarks/bench_logprobs.py [--rounds 6] [--tokens 96] [--model local/qwen2.5-coder-0.5b]

A round decodes the attempts of as many problems as there are slots, side by side, once with log-probabilities and once
without; which goes first alternates. The ratio is of seconds per output token, the median over rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from kace.config import load_config
from kace.datasets.starter import load_split
from kace.ladder.prompt import NOTHING, solver_prompt
from kace.models import open_model
from kace.models.base import AttemptKey, ChatModel, Request, Sampling
from kace.models.local import SLOTS
from kace.problems import Problem


async def per_token(model: ChatModel, problems: list[Problem], tokens: int, *, logprobs: bool) -> float:
    """Seconds per output token of one attempt at each problem."""
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for problem in problems:
            key = AttemptKey(problem.id, 0, "MS", 0)
            messages = solver_prompt(problem.text, None, NOTHING).messages
            request = Request(messages, Sampling(0.2, tokens, key.sampling_seed()), key, logprobs=logprobs)
            tasks.append(group.create_task(model.complete(request)))
    took = time.perf_counter() - began
    replies = [task.result() for task in tasks]
    assert all((reply.confidence is not None) is logprobs for reply in replies)
    return took / sum(reply.usage.output for reply in replies)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    model = open_model(load_config({"model": options.model, "preset": "starter"}))
    problems = list(load_split("train"))
    await per_token(model, problems[:SLOTS], 4, logprobs=False)  # loads the weights
    ratios = []
    for number in range(options.rounds):
        chosen = [problems[(SLOTS * number + place) % len(problems)] for place in range(SLOTS)]
        await per_token(model, chosen, 1, logprobs=True)  # reads the prompts, which both then have cached
        took = {}
        for logprobs in (True, False) if number % 2 else (False, True):
            took[logprobs] = await per_token(model, chosen, options.tokens, logprobs=logprobs)
        ratios.append(took[True] / took[False])
        print(f"round {number + 1}: {1 / took[False]:.1f} tokens/s without, {1 / took[True]:.1f} with")
    await model.aclose()
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{model.name}: seconds a token, with / without {statistics.median(ratios):.2f} ({spread})")
    print(f"n = {len(ratios)} rounds of {SLOTS} attempts of up to {options.tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
