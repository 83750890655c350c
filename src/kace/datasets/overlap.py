"""Problems that appear twice, in one set or in two: the same text, or the same numbers in nearly the same words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from kace.problem import Problem

WORDS = 3
"""Length of the word sequences that are compared."""
SHARED = 0.7
"""Part of a problem's sequences that another must share to count as the same problem reworded."""

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")


class Overlap(NamedTuple):
    """Two problems that are one."""

    ours: Problem
    theirs: Problem


class Finding(NamedTuple):
    """Two problems that are one, and the sets they appear in."""

    sets: tuple[str, str]
    ours: Problem
    theirs: Problem


def overlaps(ours: Iterable[Problem], theirs: Iterable[Problem]) -> list[Overlap]:
    """Every problem of ours that theirs holds too. Problems of one family with other numbers are different problems."""
    index: defaultdict[tuple[str, ...], list[tuple[Problem, frozenset[str]]]] = defaultdict(list)
    for problem in theirs:
        numbers, sequences = _shape(problem)
        index[numbers].append((problem, sequences))
    found = []
    for problem in ours:
        numbers, mine = _shape(problem)
        alike = (twin for twin, its in index[numbers] if len(mine & its) >= SHARED * min(len(mine), len(its)))
        found += [Overlap(problem, twin) for twin in islice(alike, 1)]
    return found


def check(sets: Mapping[str, Sequence[Problem]]) -> list[Finding]:
    """Every problem that appears twice in one set, or in two sets."""
    found = [Finding((name, name), *pair) for name, problems in sets.items() for pair in duplicates(problems)]
    for one, other in combinations(sets, 2):
        found += [Finding((one, other), *pair) for pair in overlaps(sets[one], sets[other])]
    return found


def duplicates(problems: Sequence[Problem]) -> list[tuple[Problem, Problem]]:
    """Each problem that a later one repeats, with that one."""
    groups: defaultdict[tuple[str, ...], list[Problem]] = defaultdict(list)
    for problem in problems:  # only problems with the same numbers can be one
        groups[_shape(problem)[0]].append(problem)
    return [
        (pair.ours, pair.theirs)
        for group in groups.values()
        for place, problem in enumerate(group)
        for pair in overlaps([problem], group[place + 1 :])
    ]


def _shape(problem: Problem) -> tuple[tuple[str, ...], frozenset[str]]:
    words = _WORD.findall(problem.text.casefold())
    numbers = tuple(sorted(word for word in words if word[0].isdigit()))
    last = max(1, len(words) - WORDS + 1)
    return numbers, frozenset(" ".join(words[i : i + WORDS]) for i in range(last))
