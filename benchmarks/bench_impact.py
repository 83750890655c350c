"""How often the `posterior` rule keeps a card that helps, and one that does not, in worlds where that is known.

    python benchmarks/bench_impact.py [--quick]

A technique has about four training problems, where no test can find anything. Attempts are coin throws: each problem
has a rate, each card adds its effect, and four dropout runs hide every card from half of the attempts. The learner's
own estimator then decides about trees of 30 cards. It controls no family-wise error rate; the first two worlds of the
table are its error rates.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from typing import NamedTuple

from kace.learning.measure import CardVotes, shrink
from kace.learning.study import Settings
from kace.runs.stats import wilson

CARDS = 30
ATTEMPTS = 3
RUNS = 4
KEEP = Settings().keep_above
RETIRE = 1 - KEEP
Draw = Callable[[random.Random], float]
LIFTS: dict[str, Draw] = {
    "no card does anything": lambda chance: 0.0,
    "all cards -10": lambda chance: -0.1,
    "half +40, half 0": lambda chance: 0.4 * (chance.random() < 0.5),
    "half +40, half -20": lambda chance: 0.4 if chance.random() < 0.5 else -0.2,
    "one in ten +40": lambda chance: 0.4 * (chance.random() < 0.1),
    "normal +20 ± 20": lambda chance: chance.gauss(0.2, 0.2),
    "normal 0 ± 10": lambda chance: chance.gauss(0.0, 0.1),
}
"""The true lifts of a tree's cards, by the name of the world."""


class Decided(NamedTuple):
    """What the rule did in many trees."""

    helping: int  # cards with a true lift above zero
    helping_kept: int
    others: int
    others_kept: int
    retired: int
    gain: float  # the sum of the true lifts of the kept cards
    best: float  # of all cards with a true lift above zero


def card_votes(lift: float, problems: int, chance: random.Random) -> list[CardVotes]:
    """Draw a card's attempts on problems of its own, in dropout runs of the learner's size."""
    found = []
    for number in range(problems):
        rate = chance.betavariate(0.6, 0.9)
        counts = [0, 0, 0, 0]
        for _ in range(ATTEMPTS * RUNS):
            shown = chance.random() < 0.5
            arm = 0 if shown else 2
            counts[arm] += chance.random() < rate + (lift if shown else 0.0)
            counts[arm + 1] += 1
        right, made, other, without = counts
        found.append(
            CardVotes(
                problem=str(number),
                right=right,
                made=made,
                right_without=other,
                made_without=without,
            )
        )
    return found


def decide(draw: Draw, problems: int, trees: int, chance: random.Random) -> Decided:
    """Let the rule decide about the cards of many trees."""
    helping = helping_kept = others = others_kept = retired = 0
    gain = best = 0.0
    for _ in range(trees):
        lifts = {f"EXACT_BENCH_{number}": draw(chance) for number in range(CARDS)}
        votes = {name: card_votes(lift, problems, chance) for name, lift in lifts.items()}
        for name, seen in shrink(votes).items():
            kept = seen.helps >= KEEP
            retired += seen.helps <= RETIRE
            gain += lifts[name] * kept
            best += max(0.0, lifts[name])
            if lifts[name] > 0:
                helping += 1
                helping_kept += kept
            else:
                others += 1
                others_kept += kept
    return Decided(helping, helping_kept, others, others_kept, retired, gain, best)


def share(hits: int, n: int) -> str:
    """Return a share with its Wilson interval."""
    if not n:
        return ""
    low, high = wilson(hits, n)
    return f"{100 * hits / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trees")
    trees = 20 if parser.parse_args().quick else 200
    print(f"{RUNS} dropout runs of {ATTEMPTS} attempts per problem, {trees} trees of {CARDS} cards per row")
    print(f"kept at a probability to help of at least {KEEP}, retired at most {RETIRE}; gains in points per card\n")
    print(f"{'problems':8}  {'world':22}  {'helping cards kept':22}  {'others kept':22}  retired  gain   best")
    for problems in (4, 10):
        for name, draw in LIFTS.items():
            found = decide(draw, problems, trees, random.Random(f"few {problems} {name}"))
            cards = trees * CARDS
            good = share(found.helping_kept, found.helping)
            bad = share(found.others_kept, found.others)
            retired = f"{100 * found.retired / cards:.1f} %"
            gain = f"{100 * found.gain / cards:+.1f}  {100 * found.best / cards:+.1f}"
            print(f"{problems:8}  {name:22}  {good:22}  {bad:22}  {retired:>7}  {gain}")


if __name__ == "__main__":
    main()
