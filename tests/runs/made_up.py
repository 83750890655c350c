"""Made-up solves of a realistic size: a ladder over problems of every difficulty, three seeds each."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from kace.answers.equal import Verdict
from kace.ladder.record import Attempt, ClassRecord, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import LOCKED, PAPER_CALLS, ExitPath, TierName

SEEDS = 3
DOMAINS = ("algebra", "combinatorics", "geometry", "number_theory", "analysis")


def tried(chance: random.Random, tier: TierName, index: int, rate: float) -> Attempt:
    """An attempt that is right as often as the problem allows."""
    right = chance.random() < rate
    return Attempt(
        tier=tier,
        index=index,
        lens="domain_patterns",
        prompt="0" * 12,
        outcome=Outcome.ANSWERED,
        answer="1" if right else str(chance.randint(2, 6)),
        call=f"{chance.getrandbits(256):064x}",
        input=900 + chance.randint(0, 4_000),
        cached=512,
        output=chance.randint(200, 6_000),
        seconds=round(chance.uniform(1, 60), 4),
        from_cache=False,
        detail="",
        correct=right,
    )


def climbed(chance: random.Random, rate: float) -> tuple[list[Attempt], ExitPath]:
    """Attempts until some gate opens."""
    attempts: list[Attempt] = []
    for tier in LOCKED:
        here = [tried(chance, tier.name, index, rate) for index in range(tier.attempts)]
        attempts += here
        answers = [attempt.answer for attempt in here]
        if tier.exit and max(map(answers.count, answers)) >= tier.gate.votes:
            return attempts, tier.exit
    return attempts, ExitPath.FALLBACK_PLURALITY


def solved(chance: random.Random, number: int, seed: int, rate: float) -> Solution:
    """One solve of a made-up problem."""
    attempts, path = climbed(chance, rate)
    said = [attempt.answer or "" for attempt in attempts]
    answer = max(dict.fromkeys(said), key=said.count)
    tiers = list(dict.fromkeys(attempt.tier for attempt in attempts if attempt.tier is not TierName.ES))
    domain = DOMAINS[number % len(DOMAINS)]
    return Solution(
        problem=hashlib.sha256(str(number).encode()).hexdigest()[:16],
        label=f"made-up-{number:06}",
        family=None,
        domain=domain,
        seed=seed,
        exit=path,
        answer=answer,
        expected="1",
        verdict=Verdict.SAME if answer == "1" else Verdict.DIFFERENT,
        correct=answer == "1",
        paper_calls=PAPER_CALLS[path],
        real_calls=len(attempts),
        seconds=round(chance.uniform(2, 200), 4),
        failed=False,
        recalls=tuple(recalled(tier, domain, place) for place, tier in enumerate(tiers)),
        classes=tuple(
            ClassRecord(answer=one, positions=tuple(i for i, other in enumerate(said) if other == one))
            for one in dict.fromkeys(said)
        ),
        attempts=tuple(attempts),
    )


def recalled(tier: TierName, domain: str, place: int) -> RetrievedContext:
    """A block of twelve cards."""
    return RetrievedContext(
        tier=tier,
        domains=(domain,),
        cards=tuple(f"RUBRIC_{domain.upper()}_{tier}_{number}" for number in range(12)),
        eligible=12,
        tokens=3_000,
        estimated=True,
        classifier_calls=0 if place else 1,
        classifier_input=0 if place else 700,
        classifier_output=0 if place else 5,
    )


def lines(solves: int, lift: float) -> Iterator[str]:
    """The trace of a made-up run."""
    chance = random.Random(11)
    problems = -(-solves // SEEDS)
    rates = [chance.betavariate(0.6, 0.6) for _ in range(problems)]
    for place in range(solves):
        seed, number = divmod(place, problems)
        yield solved(chance, number, seed, min(1.0, rates[number] + lift)).model_dump_json() + "\n"
