"""Whether two sets of problems share any: the same text, or the same numbers in nearly the same words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kace.problem import Problem

WORDS = 3
"""Length of the word sequences that are compared."""
SHARED = 0.7
"""Part of a problem's sequences that another must share to count as the same problem told again."""

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")


class Overlap(NamedTuple):
    """Two problems that are one."""

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
        numbers, sequences = _shape(problem)
        twin = next((other for other, theirs_ in index[numbers] if _alike(sequences, theirs_)), None)
        if twin is not None:
            found.append(Overlap(problem, twin))
    return found


def _alike(left: frozenset[str], right: frozenset[str]) -> bool:
    return len(left & right) >= SHARED * min(len(left), len(right))


def _shape(problem: Problem) -> tuple[tuple[str, ...], frozenset[str]]:
    words = _WORD.findall(problem.text.casefold())
    numbers = tuple(sorted(word for word in words if word[0].isdigit()))
    last = max(1, len(words) - WORDS + 1)
    return numbers, frozenset(" ".join(words[i : i + WORDS]) for i in range(last))
