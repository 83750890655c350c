"""A cell of the tree as the learner fills it: what one tier reads in one domain."""

from __future__ import annotations

from dataclasses import dataclass

from kace.solver.tiers import TierName
from kace.tree.card import Difficulty

DIFFICULTY = {TierName.MS: Difficulty.MEDIUM, TierName.HS: Difficulty.HARD}


@dataclass(frozen=True, slots=True)
class Cell:
    """A tier that reads cards, and a domain."""

    tier: TierName
    domain: str

    @property
    def difficulty(self) -> Difficulty:
        """The difficulty of the cards that only this tier reads."""
        return DIFFICULTY[self.tier]

    def __str__(self) -> str:
        return f"{self.tier.value} {self.domain}"
