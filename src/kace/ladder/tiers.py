"""The locked ladder, which never varies: tiers, gates, exits. Data and pure code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from kace.ladder.vote import Standing, Vote

NEVER = 1 << 30


class TierName(StrEnum):
    """The rungs of the ladder."""

    ES = "ES"
    MS = "MS"
    HS = "HS"
    FLAT = "FLAT"  # no rung: the attempts of systems without a ladder


class Lens(StrEnum):
    """Short instructions that steer how an attempt reasons."""

    DOMAIN_PATTERNS = "domain_patterns"
    COMPUTATION_CHAIN = "computation_chain"
    PROBLEM_SETUP = "problem_setup"


class ExitPath(StrEnum):
    """Where a solve left the ladder."""

    ES_UNANIMOUS = "es_unanimous"
    MS_MAJORITY = "ms_majority"
    HS_PLURALITY = "hs_plurality"
    FALLBACK_PLURALITY = "fallback_plurality"
    FALLBACK_LAST_HS = "fallback_last_hs"

    @property
    def rank(self) -> int:
        """How easy the problem was, judged by this exit: 4 for the first gate, 0 for no agreement."""
        return 4 - list(ExitPath).index(self)


@dataclass(frozen=True, slots=True)
class Gate:
    """Opens when some answer has at least `votes` of the tier's attempts; with 0, always."""

    votes: int

    def opens(self, vote: Vote) -> bool:
        """Whether the leader has enough votes. Attempts without an answer never agree."""
        return (vote.leader.votes if vote.leader else 0) >= self.votes


@dataclass(frozen=True, slots=True)
class Tier:
    """One rung: how many attempts, how they differ, and when the ladder ends here."""

    name: TierName
    lenses: tuple[
        Lens | None, ...
    ]  # one attempt each; `None` is diversity by sampling only
    gate: Gate
    exit: ExitPath | None  # none for attempts without a ladder

    @property
    def attempts(self) -> int:
        """How many attempts the tier makes."""
        return len(self.lenses)


LOCKED = (
    Tier(
        TierName.ES,
        (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN),
        Gate(2),
        ExitPath.ES_UNANIMOUS,
    ),
    Tier(
        TierName.MS,
        (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN, Lens.PROBLEM_SETUP),
        Gate(2),
        ExitPath.MS_MAJORITY,
    ),
    Tier(TierName.HS, (None,) * 5, Gate(2), ExitPath.HS_PLURALITY),
)

FROM_MS = LOCKED[1:]  # beyond the paper: the ladder without ES

FALLBACK_GATE = Gate(2)
"""After the last tier: the plurality of all attempts, if some answer was given at least this often."""

PAPER_CALLS = MappingProxyType(
    dict(zip(ExitPath, (2, 5, 10, 10, 10), strict=True))
)


def is_decided(
    gate: Gate,
    vote: Vote,
    pending: Sequence[int],
) -> bool:
    """Whether the pending attempts (by position) can no longer change the gate or the winning class.

    Only if the gate is open: attempts of a tier that fails count in later tie-breaks and in the fallback. Never while
    an answer lacks an exact value, because a later answer could then regroup the classes.
    """
    leader = vote.leader
    if leader is None or not vote.exact or not gate.opens(vote):
        return False
    if not pending:
        return True
    gain = len(pending)
    newcomer = Standing(
        leader.answer,
        votes=0,
        support=0,
        first=NEVER,
    )
    for rival in (*vote.standings[1:], newcomer):
        # The most a rival can become: every pending attempt votes for it.
        first = min(rival.first, *pending)
        most = Standing(
            rival.answer, rival.votes + gain, rival.support + gain, first
        )
        if most.rank > leader.rank:
            return False
    return True
