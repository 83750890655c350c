"""Beyond the paper: agreement at ES is not enough where the tree has a card that speaks of the problem.

The ladder's blind spot is a wrong answer that both first attempts agree on: no card is ever read there. A card that was
kept because it repairs such problems knows them by its words, so the problem climbs on and reads it.

Two controls climb at the same problems, one past empty shelves and one past another domain's: what they gain, the
climbing gained.
"""

from __future__ import annotations

from collections.abc import Callable

from kace.cards import Difficulty
from kace.knowledge import Library
from kace.problem import Problem
from kace.rank import SPEAKS
from kace.systems.base import Bench
from kace.systems.sham import placebo_of
from kace.systems.tiered import Tiered, library_of
from kace.tiers import TierName


def open_wary(bench: Bench) -> Tiered:
    """The method; past ES also where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    return Tiered("kace-wary", library, doubts=_doubts(library))


def open_wary_bare(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads nothing."""
    return Tiered("kace-wary-bare", doubts=_doubts(library_of(bench)))


def open_wary_placebo(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads another domain's block."""
    return Tiered("kace-wary-placebo", placebo_of(bench, "kace-wary-placebo"), doubts=_doubts(library_of(bench)))


def _doubts(library: Library) -> Callable[[Problem], bool]:
    """Whether a card of MS speaks of a problem."""
    block = library.tree.project(TierName.MS, library.tree.domain_names)
    # A universal card speaks of every problem, and so of none in particular.
    speaking = [card for card in block if card.difficulty_tag is Difficulty.MEDIUM]
    return lambda problem: any(library.telling.shared(problem.text, card) >= SPEAKS for card in speaking)
