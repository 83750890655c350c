"""Learned text that is the same for every problem: notes beside the instructions, or instructions of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kace.problem import Problem
from kace.retrieval.retriever import Recall
from kace.solver.attempt import Attempt
from kace.solver.tiers import TierName
from kace.systems.base import Bench
from kace.systems.measure import Measure


@dataclass(frozen=True, slots=True)
class Learned:
    """A shelf with one text on it, read at one tier only."""

    tier: TierName
    measure: Measure
    notes: str = ""
    instructions: str = ""

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """The text at its tier, nothing at any other."""
        text = self.notes or self.instructions
        if tier is not self.tier or not text:
            return None
        size = await self.measure(text)
        return Recall(tier, (), (), 0, size.tokens, size.estimated, notes=self.notes, instructions=self.instructions)


def made(bench: Bench) -> Path:
    """What training made, for a system that needs it."""
    assert bench.artefact is not None, "open_system checks what a system needs"
    return bench.artefact
