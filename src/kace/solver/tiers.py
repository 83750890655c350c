"""The locked ladder: its tiers, gates and exits. Data and pure functions; nothing here varies between experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from kace.solver.vote import Standing, Vote

NEVER = 1 << 30


class TierName(StrEnum):
    """The rungs of the ladder."""

    ES = "ES"
    MS = "MS"
    HS = "HS"
    FLAT = "FLAT"
    """No rung: the attempts of systems without a ladder."""


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
        """How easy this exit says the problem was: 4 for the first gate, 0 for no agreement at all."""
        return 4 - list(ExitPath).index(self)


@dataclass(frozen=True, slots=True)
class Gate:
    """Opens when some answer has at least `votes` of the tier's attempts."""

    votes: int

    def opens(self, vote: Vote) -> bool:
        """Whether the leader has enough votes. Attempts without an answer never agree."""
        return vote.leader is not None and vote.leader.votes >= self.votes


@dataclass(frozen=True, slots=True)
class Tier:
    """One rung: how many attempts, how they differ, and when the ladder ends here."""

    name: TierName
    lenses: tuple[Lens | None, ...]
    """One attempt each; `None` is diversity by sampling only."""
    gate: Gate
    exit: ExitPath

    @property
    def attempts(self) -> int:
        """How many attempts the tier makes."""
        return len(self.lenses)


LOCKED = (
    Tier(TierName.ES, (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN), Gate(2), ExitPath.ES_UNANIMOUS),
    Tier(
        TierName.MS,
        (Lens.DOMAIN_PATTERNS, Lens.COMPUTATION_CHAIN, Lens.PROBLEM_SETUP),
        Gate(2),
        ExitPath.MS_MAJORITY,
    ),
    Tier(TierName.HS, (None,) * 5, Gate(2), ExitPath.HS_PLURALITY),
)

FROM_MS = LOCKED[1:]
"""Beyond the paper: the ladder without ES."""
NO_EXIT_AT_ES = (replace(LOCKED[0], gate=Gate(LOCKED[0].attempts + 1)), *LOCKED[1:])
"""Beyond the paper: a first gate that never opens, since it asks for more votes than there are attempts."""

FALLBACK_GATE = Gate(2)
"""After the last tier: the plurality of all attempts, if some answer was given at least this often."""

PAPER_CALLS: Mapping[ExitPath, int] = MappingProxyType(
    {
        ExitPath.ES_UNANIMOUS: 2,
        ExitPath.MS_MAJORITY: 5,
        ExitPath.HS_PLURALITY: 10,
        ExitPath.FALLBACK_PLURALITY: 10,
        ExitPath.FALLBACK_LAST_HS: 10,
    }
)


def paper_calls_per_problem(exits: Mapping[ExitPath, int]) -> float:
    """Mean solver calls a problem under the paper's accounting (2, 5 or 10), from counts of exits."""
    problems = sum(exits.values())
    return sum(PAPER_CALLS[path] * n for path, n in exits.items()) / problems if problems else 0.0


def decided(gate: Gate, vote: Vote, pending: Sequence[int]) -> bool:
    """Whether the pending attempts (by position) can no longer change the gate or the winning class.

    True only once the gate is open: a tier that fails hands all its attempts to later tie-breaks and to the fallback,
    so none of them may be dropped. False while any answer lacks an exact value, because a later answer could then
    regroup the classes.
    """
    leader = vote.leader
    if leader is None or not vote.exact or not gate.opens(vote):
        return False
    if not pending:
        return True
    newcomer = Standing(leader.answer, votes=0, support=0, first=NEVER)
    rivals = (*vote.standings[1:], newcomer)
    return not any(_at_best(rival, pending).beats(leader) for rival in rivals)


def _at_best(rival: Standing, pending: Sequence[int]) -> Standing:
    """The rival if every pending attempt voted for it, which is the most it can become."""
    gain = len(pending)
    return Standing(rival.answer, rival.votes + gain, rival.support + gain, min(rival.first, min(pending)))
