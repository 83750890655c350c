"""Whether a revised tree is kept: a paired look at a rerun of the training problems against the base run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kace.evaluation.stats import sign_flip
from kace.learner.verdicts import Kept
from kace.solver.trace import SolveRecord


@dataclass(frozen=True, slots=True)
class CommitRule:
    """What a candidate must show."""

    threshold: float
    """The least lift in accuracy."""
    alpha: float
    """How often chance alone may pass, over all looks together. 1 asks for the threshold only."""
    looks: int
    """Looks that share alpha."""

    @property
    def bar(self) -> float:
        """The p-value that one look must not exceed."""
        return self.alpha / self.looks if self.alpha < 1 else 1.0


class Look(Kept):
    """One comparison of a candidate with the base run."""

    domain: str
    number: int
    n: int
    """Solves of the same problem and seed that were compared."""
    lift: float
    p: float
    """One-sided: how often chance alone would gain as much."""
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    accepted: bool
    reason: str


def look(
    base: Sequence[SolveRecord],
    rerun: Sequence[SolveRecord],
    *,
    domain: str,
    number: int,
    rule: CommitRule,
    removes_only: bool,
) -> Look:
    """Compare a rerun with the base run, pair by pair.

    A candidate that adds or rewrites claims to help, and must show it: lift at or above the threshold, and an exact
    sign-flip test over problems (McNemar's, with one seed) at alpha / looks. One that only removes cards claims
    nothing, and passes if nothing is lost. Pairs that the provider failed on either side say nothing and are left out.

    The test is exact where candidate and base are alike and which problems are drawn anew does not depend on how the
    base run went on them: so it is when every solve of a domain reads the whole block.
    """
    pairs = _pairs(base, rerun)
    net: defaultdict[str, int] = defaultdict(int)
    for before, after in pairs:
        net[before.problem] += bool(after.correct) - bool(before.correct)
    lift = sum(net.values()) / len(pairs) if pairs else 0.0
    p = sign_flip(net.values())
    accepted, reason = _ruling(len(pairs), lift, p, rule, removes_only)
    return Look(
        domain=domain,
        number=number,
        n=len(pairs),
        lift=lift,
        p=p,
        gained=_names(before for before, after in pairs if after.correct and not before.correct),
        lost=_names(before for before, after in pairs if before.correct and not after.correct),
        accepted=accepted,
        reason=reason,
    )


def _pairs(base: Sequence[SolveRecord], rerun: Sequence[SolveRecord]) -> list[tuple[SolveRecord, SolveRecord]]:
    again = {(record.problem, record.seed): record for record in rerun}
    both = ((record, again.get((record.problem, record.seed))) for record in base if record.correct is not None)
    return [(before, after) for before, after in both if after and not before.failed and not after.failed]


def _ruling(n: int, lift: float, p: float, rule: CommitRule, removes_only: bool) -> tuple[bool, str]:
    if not n:
        return False, "no problem could be compared"
    measured = f"lift {round(100 * lift, 1) + 0.0:+.1f} points on {n} solves"
    if removes_only:
        return lift >= 0, f"{measured}; a removal must not lose"
    if lift < rule.threshold:
        return False, f"{measured}, below the threshold of {100 * rule.threshold:+.1f}"
    if p > rule.bar:
        return False, f"{measured}, but p = {p:.3g} exceeds {rule.bar:.3g}: it may be chance"
    return True, f"{measured}, p = {p:.3g}, at most {rule.bar:.3g}"


def _names(records: Iterable[SolveRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.label or record.problem[:8] for record in records))
