"""Ladders whose domain comes from a rule instead of the classifier. Everything else is as the method has it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from kace.errors import DataError, UsageError
from kace.problem import Problem
from kace.retrieval.retriever import Library, Recall
from kace.retrieval.router import Placement
from kace.solver.attempt import Attempt
from kace.systems.base import Bench
from kace.systems.tiered import Tiered, library_of
from kace.tree.tree import EpistemicTree

Rule = Callable[[Problem], tuple[str, ...]]
"""The domains whose cards a problem is shown."""


class Placed(Library):
    """A library that is told the domains and asks nobody."""

    def __init__(self, like: Library, rule: Rule) -> None:
        super().__init__(like.tree, like.model, seed=like.seed, appetite=like.appetite)
        self.rule = rule

    async def _place(self, problem: Problem, before: Sequence[Attempt], earlier: Sequence[Recall]) -> Placement:
        return Placement(self.rule(problem))


def open_no_domain(bench: Bench) -> Tiered:
    """Cards grouped by difficulty only: the blocks of all domains at once, cut to the same budget."""
    every = bench.grown.domain_names
    return Tiered("kace-no-domain", Placed(library_of(bench), lambda problem: every))


def open_oracle(bench: Bench) -> Tiered:
    """The problem's gold domain, which must be one of the tree's."""
    tree = bench.grown

    def admit(problem: Problem) -> None:
        require_gold_domains((problem,), tree)

    def gold(problem: Problem) -> tuple[str, ...]:
        admit(problem)
        return (problem.domain,) if problem.domain else ()

    return Tiered("kace-oracle", Placed(library_of(bench), gold), admit=admit)


def require_gold_domains(problems: Iterable[Problem], tree: EpistemicTree) -> None:
    """Refuse problems whose domain is missing or is no name of the tree's registry."""
    asked = tuple(problems)
    strange = [problem for problem in asked if problem.domain not in tree.domain_names]
    if strange:
        first = strange[0]
        has = f"the domain '{first.domain}'" if first.domain else "none"
        known = ", ".join(tree.domain_names) or "none"
        raise DataError(
            f"kace-oracle needs the tree's domains in the data: {len(strange)} of {len(asked)} problems have others, "
            f"the first is {first.name!r} with {has}",
            fix=f"give each problem a `domain` field with one of: {known}; or leave kace-oracle out",
        )


def open_random(bench: Bench) -> Tiered:
    """A domain drawn by hash of problem and seed, each as likely, the right one included."""
    names = several_domains(bench, "kace-random")

    def drawn(problem: Problem) -> tuple[str, ...]:
        digest = hashlib.sha256(f"random domain\x1f{problem.id}\x1f{bench.seed}".encode()).digest()
        return (names[int.from_bytes(digest[:8], "big") % len(names)],)

    return Tiered("kace-random", Placed(library_of(bench), drawn))


def several_domains(bench: Bench, name: str) -> tuple[str, ...]:
    """The registry's names; raises where there is no other domain to show, and the control would control nothing."""
    names = bench.grown.domain_names
    if len(names) < 2:
        raise UsageError(
            f"system '{name}' shows other domains, and the tree has {len(names)}",
            fix="use a tree of at least two domains",
        )
    return names
