"""Starter problems from the families: the bundled splits, and sets of any seed.

A family's instances have one fixed order; instance i and wording i belong to split i mod 3, or all to the test split.
The first `RESERVED` of each share are for the bundled splits. A larger set that has used up its share borrows instances
from the others, never their wordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kace.datasets.starter import (
    combinatorics,
    geometry,
    house_conventions,
    number_theory,
    rates_and_sequences,
)
from kace.datasets.starter.family import SPLITS, Family, Instance, Split
from kace.errors import UsageError
from kace.problems import Problem, load_problems

if TYPE_CHECKING:
    from kace.cards.tree import Domain

_DOMAINS = (
    number_theory,
    combinatorics,
    geometry,
    rates_and_sequences,
    house_conventions,
)
FAMILIES: tuple[Family, ...] = tuple(
    family for domain in _DOMAINS for family in domain.FAMILIES
)
FOLDER = Path(__file__).parent / "bundled"
RESERVED = (
    4  # at least the largest number of bundled problems of one family in one split
)

_NUMBER = re.compile(r"\d+(?:/\d+)?")


@dataclass(frozen=True, slots=True)
class StarterDraw:
    """One instance of a family in one wording."""

    family: Family
    instance: Instance
    wording: int

    @property
    def text(self) -> str:
        """The problem as the solver sees it."""
        return self.family.text(self.instance, self.wording)

    def problem(self, split: Split, label: str) -> Problem:
        """The finished problem; only training problems carry their solution."""
        answer, solution = self.family.work(*self.instance.values)
        shown = solution if split == "train" else None
        return Problem(
            self.text, str(answer), label, self.family.domain, self.family.name, shown
        )

    def shows_its_answer(self) -> bool:
        """Whether the answer is among the numbers of the text, where copying would score."""
        return str(self.family.work(*self.instance.values).answer) in _NUMBER.findall(
            self.text
        )


def share(family: Family, split: Split) -> Iterator[StarterDraw]:
    """The draws of a family that belong to a split, in a fixed order: each instance once, then in other wordings."""
    if family.test_only:
        return _draws(family, split, _order(family)) if split == "test" else iter(())
    return _draws(family, split, _order(family)[SPLITS.index(split) :: len(SPLITS)])


def load_split(split: Split) -> tuple[Problem, ...]:
    """The fixed problems of a split: 100 to train on, 100 to validate, 200 to test."""
    if split not in SPLITS:
        raise UsageError(
            f"no starter split '{split}'", fix=f"use one of {', '.join(SPLITS)}"
        )
    return load_problems(FOLDER / f"{split}.jsonl")


def starter_domains() -> tuple[Domain, ...]:
    """The registry a tree of the starter set begins with: its five domains, described from the training split."""
    from kace.cards.formats import read_domains

    return read_domains((FOLDER / "domains.json").read_text(encoding="utf-8"))


def generate_set(n: int, seed: int, split: Split = "train") -> Iterator[Problem]:
    """Stream n problems with distinct texts and no bundled instance, as even over the families as they have room."""
    random = Random(f"starter/{seed}/{split}")
    shares = [fresh for family in FAMILIES if (fresh := _fresh(family, split, random))]
    room = sum(map(len, shares))
    if n < 1 or n > room:
        raise UsageError(
            f"cannot make {n:,} starter problems for {split}",
            fix=f"ask for 1 to {room:,}",
        )
    draws = islice(_in_turns(shares, random), n)
    return (
        draw.problem(split, f"starter-{split}-{seed}-{number:05}")
        for number, draw in enumerate(draws, 1)
    )


def _in_turns(
    shares: Sequence[list[StarterDraw]], random: Random
) -> Iterator[StarterDraw]:
    for turn in range(max(map(len, shares))):
        this_round = [draws[turn] for draws in shares if turn < len(draws)]
        random.shuffle(this_round)
        yield from this_round


def _fresh(family: Family, split: Split, random: Random) -> list[StarterDraw]:
    """All draws a larger set may use, in a random order with the split's own share first."""
    if not (own := list(share(family, split))):
        return []
    bundled = {
        draw.instance
        for each in SPLITS
        for draw in islice(share(family, each), RESERVED)
    }
    mine = {draw.instance for draw in own}
    borrowed = [
        *_draws(
            family,
            split,
            [instance for instance in _order(family) if instance not in mine],
        )
    ]
    random.shuffle(own)
    random.shuffle(borrowed)
    return [draw for draw in own + borrowed if draw.instance not in bundled]


def _order(family: Family) -> list[Instance]:
    """All instances; no numbers come again with another kind before all numbers have come once."""
    random = Random(f"starter/{family.name}")
    space = random.sample(family.space, len(family.space))
    kinds = [random.sample(range(family.kinds), family.kinds) for _ in space]
    return [
        Instance(values, kinds[place][turn])
        for turn in range(family.kinds)
        for place, values in enumerate(space)
    ]


def _draws(
    family: Family, split: Split, instances: Sequence[Instance]
) -> Iterator[StarterDraw]:
    """The instances in the wordings of a split, without those whose text shows the answer."""
    wordings = range(len(family.wordings))
    wordings = (
        wordings if family.test_only else wordings[SPLITS.index(split) :: len(SPLITS)]
    )
    for turn, (index, instance) in product(range(len(wordings)), enumerate(instances)):
        draw = StarterDraw(family, instance, wordings[(turn + index) % len(wordings)])
        if not draw.shows_its_answer():
            yield draw
