"""Beyond the paper: agreement at ES is not enough where the tree has a card that speaks of the problem.

The ladder's blind spot is a wrong answer that both first attempts agree on: no card is ever read there. A card that was
kept because it repairs such problems knows them by its words, so the problem climbs on and reads it. Attempts at ES
then decide next to nothing: a second system saves them, and begins at MS.

Two controls of the first climb at the same problems, one past empty shelves and one past another domain's: what they
gain, the climbing gained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kace.cards import Difficulty
from kace.knowledge import Library
from kace.problem import Problem
from kace.rank import SPEAKS
from kace.systems.base import Bench
from kace.systems.sham import placebo_of
from kace.systems.tiered import Tiered, library_of
from kace.tiers import LOCKED, Gate, Tier, TierName

PAST_ES = (replace(LOCKED[0], gate=Gate(LOCKED[0].attempts + 1)), *LOCKED[1:])
"""The ladder whose first gate never opens: it asks for more votes than there are attempts."""
FROM_MS = LOCKED[1:]
"""The ladder without ES."""


def open_wary(bench: Bench) -> Tiered:
    """The method; past ES also where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    return Tiered("kace-wary", library, rungs=_where_doubted(PAST_ES, library))


def open_direct(bench: Bench) -> Tiered:
    """The method; without ES where a card of MS shares enough telling words with the problem."""
    library = library_of(bench)
    return Tiered("kace-direct", library, rungs=_where_doubted(FROM_MS, library))


def open_wary_bare(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads nothing."""
    return Tiered("kace-wary-bare", rungs=_where_doubted(PAST_ES, library_of(bench)))


def open_wary_placebo(bench: Bench) -> Tiered:
    """Climbs as the wary ladder does, and reads another domain's block."""
    placebo = placebo_of(bench, "kace-wary-placebo")
    return Tiered("kace-wary-placebo", placebo, rungs=_where_doubted(PAST_ES, library_of(bench)))


def _where_doubted(rungs: Sequence[Tier], library: Library) -> Callable[[Problem], Sequence[Tier]]:
    """The rungs for a problem that a card speaks of; the locked ladder for any other."""
    doubts = _doubts(library)
    return lambda problem: rungs if doubts(problem) else LOCKED


def _doubts(library: Library) -> Callable[[Problem], bool]:
    """Whether a card of MS speaks of a problem."""
    block = library.tree.project(TierName.MS, library.tree.domain_names)
    # A universal card speaks of every problem, and so of none in particular.
    speaking = [card for card in block if card.difficulty_tag is Difficulty.MEDIUM]
    return lambda problem: any(library.telling.shared(problem.text, card) >= SPEAKS for card in speaking)
