"""Starter problems from the families: the fixed splits, and sets of any seed.

A family's instances have one fixed order; instance i and wording i belong to split i mod 3, or all to the test split.
The first `RESERVED` of each share are for the fixed splits. A larger set that has used up its share borrows instances
from the others, never their wordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from random import Random

from kace.errors import UsageError
from kace.problems import SPLITS, Problem
from problems.family import Family, Instance
from problems.starter import combinatorics, geometry, house_conventions, number_theory, rates_and_sequences

DOMAINS = (number_theory, combinatorics, geometry, rates_and_sequences, house_conventions)
FAMILIES: tuple[Family, ...] = tuple(family for domain in DOMAINS for family in domain.FAMILIES)
SIZES = {"train": 100, "validation": 100, "test": 200}
"""Problems of the fixed splits."""
TEST_ONLY = 40  # problems of the test split whose families are in no other split
FIXED_SEED = 2
RESERVED = 4  # at least the largest number of problems of one family in one fixed split

_NUMBER = re.compile(r"\d+(?:/\d+)?")


@dataclass(frozen=True, slots=True)
class Draw:
    """One instance of a family in one wording."""

    family: Family
    instance: Instance
    wording: int

    @property
    def text(self) -> str:
        """Return the problem as the solver sees it."""
        return self.family.text(self.instance, self.wording)

    def problem(self, split: str, label: str) -> Problem:
        """Return the finished problem; only training problems carry their solution."""
        answer, solution = self.family.work(*self.instance.values)
        shown = solution if split == "train" else None
        return Problem(self.text, str(answer), label, self.family.domain, self.family.name, shown)

    def shows_its_answer(self) -> bool:
        """Whether the answer is among the numbers of the text, where copying would score."""
        return str(self.family.work(*self.instance.values).answer) in _NUMBER.findall(self.text)


def share(family: Family, split: str) -> Iterator[Draw]:
    """Yield the draws of a family that belong to a split: each instance once, then in other wordings."""
    instances = _order(family)
    if not family.test_only:
        instances = instances[SPLITS.index(split) :: len(SPLITS)]
    elif split != "test":
        instances = []
    return _draws(family, split, instances)


def starter_problems(split: str) -> tuple[Problem, ...]:
    """Return the problems of a split in their fixed order."""
    random = Random(f"starter/{FIXED_SEED}/{split}")
    alone = TEST_ONLY if split == "test" else 0
    draws: list[Draw] = []
    for test_only, total in ((False, SIZES[split] - alone), (True, alone)):
        families = [family for family in FAMILIES if family.test_only is test_only and total]
        counts = [total // len(families) + (place < total % len(families)) for place in range(len(families))]
        random.shuffle(counts)  # near-equal parts; chance decides which get the odd ones
        for family, few in zip(families, counts, strict=True):
            draws += islice(share(family, split), few)
    random.shuffle(draws)
    return tuple(draw.problem(split, f"starter-{split}-{number:04}") for number, draw in enumerate(draws, start=1))


def draw_problems(n: int, seed: int, split: str = "train") -> Iterator[Problem]:
    """Draw n problems with distinct texts and none of the fixed splits, as evenly over the families as they have room.

    Raises `UsageError` before the first problem if there are not so many.
    """
    random = Random(f"starter/{seed}/{split}")
    shares = [fresh for family in FAMILIES if (fresh := _fresh(family, split, random))]
    room = sum(map(len, shares))
    if n < 1 or n > room:
        raise UsageError(f"cannot make {n:,} starter problems for {split}", fix=f"ask for 1 to {room:,}")
    draws = islice(_in_turns(shares, random), n)
    return (draw.problem(split, f"starter-{split}-{seed}-{number:05}") for number, draw in enumerate(draws, 1))


def _in_turns(shares: Sequence[list[Draw]], random: Random) -> Iterator[Draw]:
    for turn in range(max(map(len, shares))):
        this_round = [draws[turn] for draws in shares if turn < len(draws)]
        random.shuffle(this_round)
        yield from this_round


def _fresh(family: Family, split: str, random: Random) -> list[Draw]:
    """Return all draws that a larger set may use, in a random order with the split's own share first."""
    own = list(share(family, split))
    if not own:
        return []
    reserved = {draw.instance for each in SPLITS for draw in islice(share(family, each), RESERVED)}
    mine = {draw.instance for draw in own}
    others = [instance for instance in _order(family) if instance not in mine]
    borrowed = list(_draws(family, split, others))
    random.shuffle(own)
    random.shuffle(borrowed)
    return [draw for draw in own + borrowed if draw.instance not in reserved]


def _order(family: Family) -> list[Instance]:
    """Return all instances; no numbers repeat with another kind before all numbers have come once."""
    random = Random(f"starter/{family.name}")
    space = random.sample(family.space, len(family.space))
    kinds = [random.sample(range(family.kinds), family.kinds) for _ in space]
    return [Instance(values, kinds[place][turn]) for turn in range(family.kinds) for place, values in enumerate(space)]


def _draws(family: Family, split: str, instances: Sequence[Instance]) -> Iterator[Draw]:
    """Yield the instances in the wordings of a split, without those whose text shows the answer."""
    wordings = range(len(family.wordings))
    if not family.test_only:
        wordings = wordings[SPLITS.index(split) :: len(SPLITS)]
    for turn, (index, instance) in product(range(len(wordings)), enumerate(instances)):
        draw = Draw(family, instance, wordings[(turn + index) % len(wordings)])
        if not draw.shows_its_answer():
            yield draw
