"""Systems without a ladder: a fixed number of attempts, and the plurality of their answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kace.errors import UsageError
from kace.problem import Problem
from kace.retrieval.prompt import NOTHING
from kace.retrieval.retriever import Shelf
from kace.solver.ladder import Kit, classes_of, grade, right_positions, sample
from kace.solver.preset import TierSampling
from kace.solver.solution import Solution
from kace.solver.tiers import ExitPath, Gate, Tier, TierName
from kace.solver.vote import count
from kace.systems.base import SYSTEMS, Bench, Spec

LEAST, MOST = 2, 100
"""Attempts of best-of-N."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Makes its attempts side by side, without lenses, drawn as MS draws; ties go to the lowest attempt index."""

    name: str
    attempts: int = 1
    shelf: Shelf | None = None
    """Asked once, for `TierName.FLAT`; its context goes to every attempt."""

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Sample, then count. An attempt that failed is counted among the attempts and votes for nothing."""
        began = time.monotonic()
        if kit.observer:
            kit.observer.started(problem)
        recall = await self.shelf.read(problem, TierName.FLAT, (), ()) if self.shelf else None
        context = recall.context if recall else NOTHING
        attempts = await sample(problem, flat_tier(self.attempts), context, (), as_medium(kit))
        classes = await classes_of([a.answer for a in attempts], kit.judge)
        leader = count(classes, 0, len(attempts)).leader
        answer = leader.answer if leader else None
        solution = Solution(
            problem=problem,
            seed=kit.seed,
            exit=None,
            answer=answer,
            verdict=await grade(problem, answer, kit.judge),
            attempts=tuple(attempts),
            classes=classes,
            right=await right_positions(problem, classes, kit.judge),
            recalls=(recall,) if recall else (),
            seconds=time.monotonic() - began,
        )
        if kit.observer:
            kit.observer.solved(solution)
        return solution


def flat_tier(attempts: int) -> Tier:
    """A tier that is no rung.

    Its gate opens at the first answer, so that early stop, where it is on, ends exactly when the plurality is decided.
    Its exit is never read: such a solution has none.
    """
    return Tier(TierName.FLAT, (None,) * attempts, Gate(1), ExitPath.HS_PLURALITY)


def as_medium(kit: Kit) -> Kit:
    """The kit with flat attempts drawn as the medium tier's are."""
    sampling: Mapping[TierName, TierSampling] = {**kit.sampling, TierName.FLAT: kit.sampling[TierName.MS]}
    return replace(kit, sampling=MappingProxyType(sampling))


def open_single(bench: Bench) -> Flat:
    """One attempt."""
    return Flat("single")


def open_best_of_5(bench: Bench) -> Flat:
    """The paper's fixed self-consistency."""
    return best_of(5)


def best_of(attempts: int) -> Flat:
    """Fixed self-consistency of any size."""
    return Flat(f"best-of-{attempts}", attempts)


def best_of_spec(attempts: int) -> Spec:
    """The table's line for a size that the table does not list."""
    if not LEAST <= attempts <= MOST:
        fix = "use single for one attempt" if attempts == 1 else f"choose N from {LEAST} to {MOST}"
        raise UsageError(f"best-of-N makes {LEAST} to {MOST} attempts, not {attempts}", fix=fix)
    listed = SYSTEMS["best-of-5"]
    about = f"{attempts} attempts, the plurality wins"
    return Spec(f"best-of-{attempts}", about, listed.needs, lambda bench: best_of(attempts))
