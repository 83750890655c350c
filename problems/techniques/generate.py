"""The technique set: problems of many families, whose splits share techniques but neither wordings nor numbers.

Whether a family comes in all splits, only from validation on, or only in the test is drawn from its name, so that new
families change nothing about the others; one that is declared `test_only` was added when a tree had been learned
already. Wordings 0 to 2 train, 3 validates, 4 and 5 test; instance i belongs to split i mod 3. The retest came when the
test had been looked at: wordings 6 and 7, and the numbers that the test left over. The third test came when the retest
had been looked at, and the fourth when the third had been: wordings 8 and 9, then 10 and 11, and numbers that no
earlier split has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib import import_module
from random import Random

from kace.problems import SPLITS as SHARED
from kace.problems import Problem
from problems.family import Family, Instance, Values

MATHEMATICS = (
    "number_properties modular_and_bases counting probability equations sequences_and_sums plane_geometry"
    " solids_and_coordinates rates_and_mixtures fractions_and_percent data_and_sets"
)
INVENTED = "lighthouse_log guild_of_bakers hex_game_scoring archive_call_numbers"
"""Domains with conventions of their own, which no model can know: a problem uses their words without defining them."""
DOMAINS = (*MATHEMATICS.split(), *INVENTED.split())
SPLITS = (*SHARED, "retest", "third", "fourth")
WORDINGS = {
    "train": (0, 1, 2),
    "validation": (3,),
    "test": (4, 5),
    "retest": (6, 7),
    "third": (8, 9),
    "fourth": (10, 11),
}
EACH = {"train": 2, "validation": 2, "test": 5, "retest": 5, "third": 3, "fourth": 3}
"""Problems a family gives to each split it is in."""
_NUMBER = re.compile(r"\d+(?:/\d+)?")


def families() -> tuple[Family, ...]:
    """Return every family, domain by domain."""
    modules = (import_module(f"problems.techniques.{domain}") for domain in DOMAINS)
    return tuple(family for module in modules for family in module.FAMILIES)


def splits_of(family: Family) -> tuple[str, ...]:
    """Return the splits of a family.

    Of those drawn, three in five are in all splits, one in five from validation on, one in five only in tests.
    """
    if family.test_only:
        return SPLITS[2:]
    place = hashlib.sha256(f"techniques/{family.name}".encode()).digest()[0] * 5 // 256
    return SPLITS[max(0, place - 2) :]


def technique_problems(split: str) -> tuple[Problem, ...]:
    """Return the problems of a split in their fixed order, the same on every machine."""
    found: list[Problem] = []
    for family in families():
        if split in splits_of(family):
            found += _drawn(family, split)
    Random(f"techniques/{split}").shuffle(found)
    return tuple(found)


def instances(family: Family, split: str) -> Iterator[tuple[Instance, int]]:
    """Yield the numbers and the wording of each problem that a family gives to a split."""
    wordings = WORDINGS[split]
    left = EACH[split]
    for values in _numbers(family, split):
        instance = Instance(values, 0)
        wording = wordings[left % len(wordings)]
        if str(family.work(*values).answer) in _NUMBER.findall(family.text(instance, wording)):
            continue  # copying a number would score
        yield instance, wording
        left -= 1
        if not left:
            return


def _numbers(family: Family, split: str) -> list[Values]:
    """Return the numbers that a split may use, in the order in which it takes them."""
    space = Random(f"techniques/{family.name}").sample(family.space, len(family.space))
    if split in ("third", "fourth"):
        earlier = SPLITS[: SPLITS.index(split)]
        taken = {instance.values for other in earlier for instance, _ in instances(family, other)}
        return [values for values in reversed(space) if values not in taken]
    share = space[SHARED.index("test" if split == "retest" else split) :: len(SHARED)]
    if split == "retest":
        share.reverse()
    return share


def _drawn(family: Family, split: str) -> Iterator[Problem]:
    for number, (instance, wording) in enumerate(instances(family, split), start=1):
        answer, solution = family.work(*instance.values)
        yield Problem(
            family.text(instance, wording),
            str(answer),
            f"{family.name}-{split}-{number}",
            domain=family.domain,
            family=family.name,
            solution=solution if split == "train" else None,
        )
