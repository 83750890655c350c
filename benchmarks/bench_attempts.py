"""What it saves that attempts with one prompt follow each other in a slot of the embedded engine: it is read once.

    python benchmarks/bench_attempts.py [--problems 8] [--model local/qwen2.5-coder-0.5b]

Every problem makes three MS attempts after the demonstrations of its most relevant starter card, as `kace solve --tree
starter` does. Arms: as they are, and each attempt as a problem of its own, in whatever slot is free. Arms alternate,
problem by problem or all at once, and share no prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass, field

from kace.cards.store import open_tree
from kace.config import load_config, tree_path
from kace.datasets.starter import load_split
from kace.ladder.prompt import PromptContext, solver_prompt
from kace.ladder.relevance import Relevance
from kace.models import open_model
from kace.models.base import AttemptKey, ChatModel, Message, Request, Sampling, Usage, total
from kace.problems import Problem

ATTEMPTS, REPLY_TOKENS = 3, 90  # a reply after demonstrations has 85 tokens in the mean


@dataclass
class Arm:
    """What one way to place attempts came to."""

    seconds: float = 0.0
    used: Usage = field(default_factory=Usage)


def asked(problems: int) -> list[tuple[Problem, tuple[Message, ...]]]:
    """Problems that a card fits, each with its prompt."""
    config = load_config({"tree": "starter"})
    tree = open_tree(tree_path("starter"))
    gate, found = Relevance(tree, config.retrieval), []
    for problem in load_split("test"):
        scores = gate.scores(problem.text, gate.threshold)
        if scores:
            card = tree.card(max(scores, key=lambda name: scores[name]))
            context = PromptContext((card,), placement="demonstrations")
            found.append((problem, solver_prompt(problem.text, None, context).messages))
    return found[:problems]


async def attempts(model: ChatModel, problem: Problem, prompt: tuple[Message, ...], arm: str) -> Usage:
    """The tier's attempts at one problem; the first line of the prompt names the arm, so that arms share nothing."""
    first = Message(prompt[0].role, f"{arm}.\n{prompt[0].content}")
    names = [problem.id if "one slot" in arm else f"{problem.id}-{index}" for index in range(ATTEMPTS)]
    keys = [AttemptKey(name, 0, "MS", index) for index, name in enumerate(names)]
    requests = [Request((first, *prompt[1:]), Sampling(0.2, REPLY_TOKENS, key.sampling_seed()), key) for key in keys]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(model.complete(request)) for request in requests]
    return total([task.result().usage for task in tasks])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    model = open_model(load_config({"model": options.model, "preset": "starter"}))
    work = asked(options.problems)
    await attempts(model, *work[0], "warm up")
    for how in ("one problem at a time", f"{len(work)} problems at once"):
        arms = {"one slot": Arm(), "any slot": Arm()}
        size = 1 if how.startswith("one") else len(work)
        for start in range(0, len(work), size):
            for name, arm in arms.items():
                began = time.perf_counter()
                async with asyncio.TaskGroup() as group:
                    batch = work[start : start + size]
                    tasks = [group.create_task(attempts(model, *each, f"{name}, {how}")) for each in batch]
                arm.seconds += time.perf_counter() - began
                arm.used += total([task.result() for task in tasks])
        for name, arm in arms.items():
            share = arm.used.cached / arm.used.input
            print(f"{how}, {name}: {share:.0%} of {arm.used.input:,} prompt tokens cached; {arm.seconds:.1f} s")
        print(f"  time, one slot / any slot: {arms['one slot'].seconds / arms['any slot'].seconds:.2f}")
    await model.aclose()


if __name__ == "__main__":
    asyncio.run(main())
