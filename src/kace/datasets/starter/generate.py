"""Make starter problems from the families: the bundled splits, and larger sets of any seed.

One rule keeps the splits apart: a family's instances are put in one fixed order, and both instance i and wording i
belong to split i mod 3. A family that is only for testing gives everything to the test split. The first `RESERVED`
problems of each share are for the bundled splits, and larger sets never use their instances. Only when a larger set
has used up its own share of a family does it borrow instances from the other shares; wordings are never borrowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from kace.datasets.starter.catalog import FAMILIES
from kace.datasets.starter.family import SPLITS, Family, Instance, Split
from kace.errors import UsageError
from kace.problem import Problem

BUNDLED: dict[Split, int] = {"train": 100, "validation": 100, "test": 200}
BUNDLED_TEST_ONLY = 40
BUNDLE_SEED = 2
RESERVED = 4
"""At least the largest number of bundled problems of one family in one split."""

_NUMBER = re.compile(r"\d+(?:/\d+)?")


@dataclass(frozen=True, slots=True)
class Draw:
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
        worked = self.family.work(*self.instance.values)
        return Problem(
            text=self.text,
            answer=str(worked.answer),
            label=label,
            domain=self.family.domain,
            family=self.family.name,
            solution=worked.solution if split == "train" else None,
        )

    def tells_its_answer(self) -> bool:
        """Whether the answer stands among the numbers of the text, where copying would score."""
        answer, text = str(self.family.work(*self.instance.values).answer), self.text
        return answer in text and answer in _NUMBER.findall(text)


def share(family: Family, split: Split) -> Iterator[Draw]:
    """The draws of a family that belong to a split, in a fixed order: each instance once, then in other wordings."""
    if family.test_only:
        return _draws(family, split, _order(family)) if split == "test" else iter(())
    return _draws(family, split, _order(family)[SPLITS.index(split) :: len(SPLITS)])


def bundle(split: Split) -> Iterator[Problem]:
    """The problems of a bundled split, in their fixed order."""
    random = Random(f"starter/{BUNDLE_SEED}/{split}")
    draws: list[Draw] = []
    for families, total in _bundle_parts(split):
        for family, count in zip(families, _spread(total, len(families), random), strict=True):
            draws += islice(share(family, split), count)
    random.shuffle(draws)
    for number, draw in enumerate(draws, start=1):
        yield draw.problem(split, f"starter-{split}-{number:04}")


def generate_set(n: int, seed: int, split: Split = "train") -> Iterator[Problem]:
    """Stream n problems with distinct texts and no bundled instance, as even over the families as they have room."""
    random = Random(f"starter/{seed}/{split}")
    shares = [fresh for family in FAMILIES if (fresh := _fresh(family, split, random))]
    room = sum(map(len, shares))
    if n < 1 or n > room:
        raise UsageError(f"cannot make {n:,} starter problems for {split}", fix=f"ask for 1 to {room:,}")
    return _stream(shares, n, random, f"starter-{split}-{seed}", split)


def _fresh(family: Family, split: Split, random: Random) -> list[Draw]:
    """All draws a larger set may use, in a random order with the split's own share first."""
    own = list(share(family, split))
    if not own:
        return []
    bundled = {draw.instance for each in SPLITS for draw in islice(share(family, each), RESERVED)}
    mine = {draw.instance for draw in own}
    borrowed = list(_draws(family, split, [instance for instance in _order(family) if instance not in mine]))
    random.shuffle(own)
    random.shuffle(borrowed)
    return [draw for draw in own + borrowed if draw.instance not in bundled]


def _order(family: Family) -> list[Instance]:
    """All instances; no numbers come again with another kind before all numbers have come once."""
    random = Random(f"starter/{family.name}")
    space = random.sample(family.space, len(family.space))
    kinds = [random.sample(range(family.kinds), family.kinds) for _ in space]
    return [Instance(values, kinds[place][turn]) for turn in range(family.kinds) for place, values in enumerate(space)]


def _draws(family: Family, split: Split, instances: Sequence[Instance]) -> Iterator[Draw]:
    """The instances in the wordings of a split, without those that tell their own answer."""
    wordings = range(len(family.wordings))
    if not family.test_only:
        wordings = wordings[SPLITS.index(split) :: len(SPLITS)]
    draws = (
        Draw(family, instance, wordings[(turn + index) % len(wordings)])
        for turn in range(len(wordings))
        for index, instance in enumerate(instances)
    )
    return (draw for draw in draws if not draw.tells_its_answer())


def _stream(shares: Sequence[list[Draw]], n: int, random: Random, stem: str, split: Split) -> Iterator[Problem]:
    number = 0
    turn = 0
    while number < n:
        this_round = [draws[turn] for draws in shares if turn < len(draws)]
        random.shuffle(this_round)
        for draw in this_round[: n - number]:
            number += 1
            yield draw.problem(split, f"{stem}-{number:05}")
        turn += 1


def _bundle_parts(split: Split) -> Iterator[tuple[list[Family], int]]:
    shared = [family for family in FAMILIES if not family.test_only]
    if split != "test":
        yield shared, BUNDLED[split]
        return
    yield shared, BUNDLED[split] - BUNDLED_TEST_ONLY
    yield [family for family in FAMILIES if family.test_only], BUNDLED_TEST_ONLY


def _spread(total: int, parts: int, random: Random) -> list[int]:
    """Split a total into near-equal parts; chance decides which get the odd ones."""
    least, odd = divmod(total, parts)
    counts = [least + 1] * odd + [least] * (parts - odd)
    random.shuffle(counts)
    return counts
