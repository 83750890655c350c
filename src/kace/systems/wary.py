"""Beyond the paper: agreement at ES is not enough where the tree has a card that speaks of the problem.

The ladder's blind spot is a wrong answer that both first attempts agree on: no card is ever read there. A card that was
kept because it repairs such problems knows them by its words, so the problem climbs on and reads it.
"""

from __future__ import annotations

from kace.cards import Difficulty
from kace.problem import Problem
from kace.rank import SPEAKS
from kace.systems.base import Bench
from kace.systems.tiered import Tiered, library_of
from kace.tiers import TierName


def open_wary(bench: Bench) -> Tiered:
    """The method; past ES also where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    block = library.tree.project(TierName.MS, library.tree.domain_names)
    # A universal card speaks of every problem, and so of none in particular.
    speaking = [card for card in block if card.difficulty_tag is Difficulty.MEDIUM]

    def doubts(problem: Problem) -> bool:
        return any(library.telling.shared(problem.text, card) >= SPEAKS for card in speaking)

    return Tiered("kace-wary", library, doubts=doubts)
