"""Beyond the paper: agreement at ES is not enough where the tree has a card that speaks of the problem.

The ladder's blind spot is a wrong answer that both first attempts agree on: no card is ever read there. A card that was
kept because it repairs such problems knows them by its triggers, so the problem climbs on and reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kace.cards import Difficulty
from kace.knowledge import Library
from kace.ladder import Kit, climb
from kace.problem import Problem
from kace.rank import relevance
from kace.solution import Solution
from kace.systems.base import WARY, Bench
from kace.systems.tiered import AboveES, library_of
from kace.tiers import TierName


@dataclass(frozen=True, slots=True)
class Wary:
    """The method with a second look at what ES is sure of."""

    name: str
    library: Library

    async def solve(self, problem: Problem, kit: Kit) -> Solution:
        """Climb; past ES also where a card of MS has most of a trigger in the problem."""
        tree = self.library.tree
        block = tree.project(TierName.MS, tree.domain_names)
        # A universal card speaks of every problem, and so of none in particular.
        speaking = (card for card in block if card.difficulty_tag is Difficulty.MEDIUM)
        known = any(relevance(problem.text, card) >= WARY for card in speaking)
        return await climb(problem, replace(kit, library=AboveES(self.library), trust_es=not known))


def open_wary(bench: Bench) -> Wary:
    """The method, less sure of ES."""
    return Wary("kace-wary", library_of(bench))
