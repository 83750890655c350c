"""How often `kace lift` finds an effect, in worlds where it is known whether there is one.

    python benchmarks/bench_lift.py [--runs 1000]

Attempts are coin throws: each problem has a rate, and attempts that see the skill are right more often by `lift`.
Which attempts see it is drawn by the same code as in a run, and the same code decides. Without an effect, every find
is a false alarm, and so is every find of the A/A arm in every world.
"""

from __future__ import annotations

import argparse
import random
from typing import Any, NamedTuple

from kace.baselines.lift import Effect, hide_one_of_two, lift_of
from kace.ladder.policies import Dropout
from kace.ladder.prompt import NOTES, Context
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import TierName
from kace.learning.measure import DROPOUT_RATE
from kace.models.base import AttemptKey
from kace.runs.compare import ALPHA
from kace.runs.metrics import Clusters
from kace.runs.stats import wilson

ATTEMPTS = 8
SKILL = Context(notes="simulated")
READ = (RetrievedContext(tier=TierName.FLAT, cards=(NOTES,)),)


class World(NamedTuple):
    """Problems, in families of a size, and what the skill adds to the rate of each."""

    problems: int
    family: int
    lift: float


WORLDS = (
    World(12, 1, 0.0),
    World(40, 1, 0.0),
    World(40, 4, 0.0),
    World(40, 1, 0.1),
    World(40, 1, -0.2),
)


def made_of(kind: Any, **fields: object) -> Any:
    """Return a record without checks, which would take most of the time."""
    return kind.model_construct(**fields)


def simulate(world: World, chance: random.Random) -> tuple[Effect, Effect]:
    """Return what one run of `kace lift` finds in a world."""
    dropout = Dropout(DROPOUT_RATE, seed=chance.getrandbits(40))
    solutions = []
    families = {}
    for number in range(world.problems):
        if number % world.family == 0:
            rate = chance.betavariate(0.6, 0.9)  # one for a family
        name = f"p{number}"
        families[name] = f"f{number // world.family}"
        made = []
        for index in range(ATTEMPTS):
            hidden = hide_one_of_two(dropout, AttemptKey(name, 0, "FLAT", index), [NOTES])
            right = chance.random() < rate + world.lift * (not hidden)
            made.append(
                made_of(
                    Attempt, tier=TierName.FLAT, index=index, outcome=Outcome.ANSWERED, correct=right, hidden=hidden
                )
            )
        solutions.append(made_of(Solution, problem=name, seed=0, recalls=READ, attempts=tuple(made)))
    return lift_of(SKILL, solutions, Clusters("family", families))


def main() -> None:
    """Print a table of worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print(f"{runs:,} runs of {ATTEMPTS} attempts in each world; found: p <= {ALPHA}")
    for world in WORLDS:
        chance = random.Random(37)
        found = alarms = covered = 0
        total = 0.0
        for _ in range(runs):
            lift, sham = simulate(world, chance)
            found += lift.p <= ALPHA
            alarms += sham.p <= ALPHA
            total += lift.difference
            covered += lift.interval.low <= 0 <= lift.interval.high
        low, high = wilson(found, runs)
        print(
            f"{world.problems:3} problems in families of {world.family}, lift {world.lift:+.1f}:"
            f" found {found / runs:.1%} ({low:.1%} to {high:.1%}), A/A {alarms / runs:.1%},"
            f" mean {total / runs:+.3f}, interval holds 0 in {covered / runs:.1%}"
        )


if __name__ == "__main__":
    main()
