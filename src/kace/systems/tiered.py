"""Systems on the ladder: but for a few that doubt ES, they differ only in what MS and HS read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kace.problem import Problem
from kace.retrieval.retriever import Library, Recall, Shelf
from kace.solver.attempt import Attempt
from kace.solver.ladder import Kit, Rungs, climb, locked
from kace.solver.session import open_library
from kace.solver.solution import Solution
from kace.solver.tiers import TierName
from kace.systems.base import Bench


@dataclass(frozen=True, slots=True)
class Tiered:
    """The ladder with one shelf, or with none."""

    name: str
    shelf: Shelf | None = None
    admit: Callable[[Problem], None] | None = None
    """Raises for a problem that this system cannot take, before anything is paid for it."""
    rungs: Rungs = locked
    """What a problem climbs."""

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Climb, reading from this system's shelf and no other."""
        if self.admit:
            self.admit(problem)
        library = AboveES(self.shelf) if self.shelf else None
        return await climb(problem, replace(kit, library=library, rungs=self.rungs))


@dataclass(frozen=True, slots=True)
class AboveES:
    """A shelf that ES cannot reach. Held here, so that it holds for every shelf there will be."""

    shelf: Shelf

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """Nothing at ES, ever; else what the shelf gives."""
        return None if tier is TierName.ES else await self.shelf.read(problem, tier, before, earlier)


def open_tiered(bench: Bench) -> Tiered:
    """The ladder on the problem alone."""
    return Tiered("tiered")


def open_kace(bench: Bench) -> Tiered:
    """The method: the block of the tier and of the domain that the classifier names."""
    return Tiered("kace", library_of(bench))


def library_of(bench: Bench) -> Library:
    """The bench's tree as a solve reads it, with the configured budget and ranking."""
    return open_library(bench.grown, bench.classifier, bench.config.model_copy(update={"seed": bench.seed}))
