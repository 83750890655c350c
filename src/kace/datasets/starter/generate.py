"""Starter problems from the families: the bundled splits, which `write_splits` makes anew, and sets of any seed.

One rule keeps the splits apart: a family's instances are put in one fixed order, and both instance i and wording i
belong to split i mod 3. A family that is only for testing gives everything to the test split. The first `RESERVED`
problems of each share are for the bundled splits, and larger sets never use their instances. Only when a larger set
has used up its own share of a family does it borrow instances from the other shares; wordings are never borrowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kace.datasets.starter import combinatorics, geometry, house_conventions, number_theory, rates_and_sequences
from kace.datasets.starter.family import SPLITS, Family, Instance, Split
from kace.errors import UsageError
from kace.problem import Problem, load_problems, problem_rows

if TYPE_CHECKING:
    from kace.tree.tree import Domain

_DOMAINS = (number_theory, combinatorics, geometry, rates_and_sequences, house_conventions)
FAMILIES: tuple[Family, ...] = tuple(family for domain in _DOMAINS for family in domain.FAMILIES)
FOLDER = Path(__file__).parent / "bundled"
BUNDLED: dict[Split, int] = {"train": 100, "validation": 100, "test": 200}
BUNDLED_TEST_ONLY = 40
BUNDLE_SEED = 2
RESERVED = 4
"""At least the largest number of bundled problems of one family in one split."""

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
        domain, family, shown = self.family.domain, self.family.name, solution if split == "train" else None
        return Problem(self.text, str(answer), label, domain=domain, family=family, solution=shown)

    def shows_its_answer(self) -> bool:
        """Whether the answer is among the numbers of the text, where copying would score."""
        answer, text = str(self.family.work(*self.instance.values).answer), self.text
        return answer in text and answer in _NUMBER.findall(text)


def share(family: Family, split: Split) -> Iterator[StarterDraw]:
    """The draws of a family that belong to a split, in a fixed order: each instance once, then in other wordings."""
    if family.test_only:
        return _draws(family, split, _order(family)) if split == "test" else iter(())
    return _draws(family, split, _order(family)[SPLITS.index(split) :: len(SPLITS)])


def bundle(split: Split) -> Iterator[Problem]:
    """The problems of a bundled split, in their fixed order."""
    random = Random(f"starter/{BUNDLE_SEED}/{split}")
    shared = [family for family in FAMILIES if not family.test_only]
    parts = [(shared, BUNDLED[split])]
    if split == "test":
        alone = [family for family in FAMILIES if family.test_only]
        parts = [(shared, BUNDLED[split] - BUNDLED_TEST_ONLY), (alone, BUNDLED_TEST_ONLY)]
    draws: list[StarterDraw] = []
    for families, total in parts:
        least, odd = divmod(total, len(families))  # near-equal parts; chance decides which get the odd ones
        counts = [least + 1] * odd + [least] * (len(families) - odd)
        random.shuffle(counts)
        for family, few in zip(families, counts, strict=True):
            draws += islice(share(family, split), few)
    random.shuffle(draws)
    for number, draw in enumerate(draws, start=1):
        yield draw.problem(split, f"starter-{split}-{number:04}")


def split_path(split: Split, folder: Path = FOLDER) -> Path:
    """Where a bundled split lies."""
    return folder / f"{split}.jsonl"


def load_split(split: Split) -> tuple[Problem, ...]:
    """The fixed problems of a split: 100 to train on, 100 to validate, 200 to test."""
    if split not in SPLITS:
        raise UsageError(f"no starter split '{split}'", fix=f"use one of {', '.join(SPLITS)}")
    return load_problems(split_path(split))


def write_splits(folder: Path = FOLDER) -> None:
    """Write the bundled splits; the same families give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        lines = "".join(f"{row}\n" for row in problem_rows(bundle(split)))
        split_path(split, folder).write_text(lines, encoding="utf-8", newline="\n")


def starter_domains() -> tuple[Domain, ...]:
    """The registry a tree of the starter set begins with: its five domains, described from the training split."""
    from kace.tree.formats import read_domains

    return read_domains((FOLDER / "domains.json").read_text(encoding="utf-8"))


def generate_set(n: int, seed: int, split: Split = "train") -> Iterator[Problem]:
    """Stream n problems with distinct texts and no bundled instance, as even over the families as they have room."""
    random = Random(f"starter/{seed}/{split}")
    shares = [fresh for family in FAMILIES if (fresh := _fresh(family, split, random))]
    room = sum(map(len, shares))
    if n < 1 or n > room:
        raise UsageError(f"cannot make {n:,} starter problems for {split}", fix=f"ask for 1 to {room:,}")
    return islice(_stream(shares, random, f"starter-{split}-{seed}", split), n)


def _fresh(family: Family, split: Split, random: Random) -> list[StarterDraw]:
    """All draws a larger set may use, in a random order with the split's own share first."""
    if not (own := list(share(family, split))):
        return []
    bundled = {draw.instance for each in SPLITS for draw in islice(share(family, each), RESERVED)}
    mine = {draw.instance for draw in own}
    borrowed = [*_draws(family, split, [instance for instance in _order(family) if instance not in mine])]
    random.shuffle(own)
    random.shuffle(borrowed)
    return [draw for draw in own + borrowed if draw.instance not in bundled]


def _order(family: Family) -> list[Instance]:
    """All instances; no numbers come again with another kind before all numbers have come once."""
    random = Random(f"starter/{family.name}")
    space = random.sample(family.space, len(family.space))
    kinds = [random.sample(range(family.kinds), family.kinds) for _ in space]
    return [Instance(values, kinds[place][turn]) for turn in range(family.kinds) for place, values in enumerate(space)]


def _draws(family: Family, split: Split, instances: Sequence[Instance]) -> Iterator[StarterDraw]:
    """The instances in the wordings of a split, without those whose text shows the answer."""
    wordings = range(len(family.wordings))
    wordings = wordings if family.test_only else wordings[SPLITS.index(split) :: len(SPLITS)]
    draws = (
        StarterDraw(family, instance, wordings[(turn + index) % len(wordings)])
        for turn in range(len(wordings))
        for index, instance in enumerate(instances)
    )
    return (draw for draw in draws if not draw.shows_its_answer())


def _stream(shares: Sequence[list[StarterDraw]], random: Random, stem: str, split: Split) -> Iterator[Problem]:
    numbers = count(1)
    for turn in range(max(map(len, shares))):
        this_round = [draws[turn] for draws in shares if turn < len(draws)]
        random.shuffle(this_round)
        yield from (draw.problem(split, f"{stem}-{next(numbers):05}") for draw in this_round)
