"""How much of a prompt with cards the embedded engine reads from its prefix cache, and what that saves.

    python benchmarks/bench_prefix.py [--problems 6] [--model local/qwen2.5-coder-0.5b]

Every problem makes its MS and HS attempts with a block of cards, replies cut to a few tokens so that the prompt is what
costs. Arms: our order (cards, problem, lens last) and the lens first, which leaves nothing to share. Arms alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass, field

from kace.cards.card import Card, Difficulty, Provenance
from kace.config import load_config
from kace.datasets.starter import load_split
from kace.ladder.prompt import PromptContext, solver_prompt
from kace.ladder.tiers import LOCKED, Tier
from kace.models import open_model
from kace.models.base import AttemptKey, ChatModel, Message, Request, Sampling, Usage, total
from kace.problems import Problem

REPLY_TOKENS = 12


def block(difficulty: Difficulty, cards: int = 9) -> list[Card]:
    """Cards of a usual size, about 130 tokens each."""
    steps = "\n".join(
        f"{i}. Write step {i} of the count in its own line and check it against a small case." for i in "1234"
    )
    return [
        Card(
            card_id=f"RUBRIC_{difficulty.name}_BLOCK_{number}",
            payload=f"Useful when:\n- counting in steps {number}\n\nMethod {number} for counts that overlap.\n{steps}",
            routing_conditions=(f"the count number {number} overlaps",),
            difficulty_tag=difficulty,
            domain_tags=("combinatorics",),
            helpfulness_score=0.0,
            provenance=Provenance(source="benchmark"),
        )
        for number in range(cards)
    ]


@dataclass
class Arm:
    """What one order of prompt parts came to."""

    seconds: float = 0.0
    later: Usage = field(default_factory=Usage)


def messages(problem: Problem, tier: Tier, index: int, cards: list[Card], lens_first: bool) -> tuple[Message, ...]:
    rendered = solver_prompt(
        problem.text, None if lens_first else tier.lenses[index], PromptContext(tuple(cards))
    ).messages
    if not lens_first:
        return rendered
    mark = Message(
        rendered[0].role, f"Attempt {index + 1}. {tier.lenses[index] or 'sampling only'}.\n{rendered[0].content}"
    )
    return (mark, *rendered[1:])


async def climb(model: ChatModel, problem: Problem, lens_first: bool, arm: Arm, salt: int) -> None:
    for tier, difficulty in zip(LOCKED[1:], (Difficulty.MEDIUM, Difficulty.HARD), strict=True):
        cards = block(difficulty)
        keys = [AttemptKey(problem.id, salt, tier.name.value, i) for i in range(tier.attempts)]
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    model.complete(
                        Request(
                            messages(problem, tier, key.index, cards, lens_first),
                            Sampling(0.2, REPLY_TOKENS, key.sampling_seed()),
                            key,
                        )
                    )
                )
                for key in keys
            ]
        arm.seconds += time.perf_counter() - began
        replies = [task.result() for task in tasks]
        arm.later += total([reply.usage for reply in replies[1:]])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=6)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    model = open_model(load_config({"model": options.model, "preset": "starter"}))
    problems = load_split("train")[: options.problems]
    arms = {False: Arm(), True: Arm()}
    for salt, problem in enumerate(problems):
        for lens_first, arm in arms.items():
            await climb(model, problem, lens_first, arm, salt)
    await model.aclose()
    for lens_first, arm in arms.items():
        share = arm.later.cached / arm.later.input
        print(
            f"{'lens first' if lens_first else 'lens last '}  n = {options.problems} problems: attempts 2..n read"
            f" {share:.1%} of {arm.later.input:,} prompt tokens from the cache; {arm.seconds:.1f} s"
        )
    print(f"time, lens last / lens first: {arms[False].seconds / arms[True].seconds:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
