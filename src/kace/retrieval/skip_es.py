"""Beyond the paper: ladders that do not trust ES where the tree has a card that speaks of the problem.

The ladder's blind spot is a wrong answer that both first attempts agree on: no card is ever read there. A card that was
kept because it repairs such problems knows them by its words, so the problem climbs on and reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kace.retrieval.retriever import Library
from kace.retrieval.selector import SPEAKS
from kace.solver.ladder import Rungs
from kace.solver.tiers import LOCKED, Gate, Tier, TierName
from kace.tree.card import Difficulty

_PAST_ES = (replace(LOCKED[0], gate=Gate(LOCKED[0].attempts + 1)), *LOCKED[1:])
"""The ladder whose first gate never opens: it asks for more votes than there are attempts."""
_FROM_MS = LOCKED[1:]


def past_es(library: Library) -> Rungs:
    """Past an agreed ES where a card of MS speaks of the problem."""
    return _where_doubted(_PAST_ES, library)


def from_ms(library: Library) -> Rungs:
    """Without ES where a card of MS speaks of the problem: attempts that would decide next to nothing are saved."""
    return _where_doubted(_FROM_MS, library)


def _where_doubted(rungs: Sequence[Tier], library: Library) -> Rungs:
    block = library.tree.project(TierName.MS, library.tree.domain_names)
    # A universal card speaks of every problem, and so of none in particular.
    speaking = [card for card in block if card.difficulty_tag is Difficulty.MEDIUM]
    return lambda problem: (
        rungs if any(library.telling.shared(problem.text, card) >= SPEAKS for card in speaking) else LOCKED
    )
