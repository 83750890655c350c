"""Texts of problems that every installation has, since a trace keeps only their hashes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kace.datasets.starter import SPLITS, load_split
from kace.problem import Problem


def known_problem(problem: str) -> Problem | None:
    """The problem of a hash, where it is one of the bundled set."""
    return _bundled().get(problem)


@cache
def _bundled() -> Mapping[str, Problem]:
    return {problem.id: problem for split in SPLITS for problem in load_split(split)}
