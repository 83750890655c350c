"""Whether sets of problems hold any problem twice: inside one, or in two of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from kace.datasets.overlap import overlaps
from kace.problem import Problem

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Finding(NamedTuple):
    """Two problems that are one, and the sets they stand in."""

    sets: tuple[str, str]
    ours: Problem
    theirs: Problem


def check(sets: Mapping[str, Sequence[Problem]]) -> list[Finding]:
    """Every problem that stands twice in one set, and every one that stands in two."""
    found = [Finding((name, name), *pair) for name, problems in sets.items() for pair in duplicates(problems)]
    for one, other in combinations(sets, 2):
        found += [Finding((one, other), *pair) for pair in overlaps(sets[one], sets[other])]
    return found


def duplicates(problems: Sequence[Problem]) -> list[tuple[Problem, Problem]]:
    """Each problem that a later one tells again, with that one."""
    groups: defaultdict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems:  # only problems with the same numbers can be one
        groups[tuple(sorted(_NUMBER.findall(problem.text)))].append(problem)
    return [
        (pair.ours, pair.theirs)
        for group in groups.values()
        for place, problem in enumerate(group)
        for pair in overlaps([problem], group[place + 1 :])
    ]
