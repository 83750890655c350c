"""Records of solves, as few words as a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import ExitPath, TierName

MS, HS = TierName.MS, TierName.HS
CLASSIFIED = {"classifier_calls": 0, "classifier_input": 0, "classifier_output": 0}
RECALLED = {"domains": ("algebra",), "tokens": 0, "estimated": True, **CLASSIFIED}


def a_try(
    right: bool | None,
    hidden: Sequence[str] = (),
    *,
    tier: TierName = MS,
    index: int = 0,
    outcome: Outcome = Outcome.ANSWERED,
) -> Attempt:
    """An attempt that is right or wrong, and did not see some cards."""
    return Attempt(
        tier=tier,
        index=index,
        lens=None,
        outcome=outcome,
        answer=None,
        call="",
        input=0,
        cached=0,
        output=0,
        seconds=0.0,
        from_cache=False,
        detail="",
        correct=right,
        hidden=tuple(hidden),
    )


def a_solve(
    name: str,
    tries: Sequence[Attempt] = (),
    read: Mapping[TierName, Sequence[str]] | None = None,
    *,
    correct: bool | None = True,
    seed: int = 0,
) -> Solution:
    """A problem solved once, with the cards each tier read."""
    recalls = tuple(
        RetrievedContext(tier=tier, cards=tuple(cards), eligible=len(cards), **RECALLED)
        for tier, cards in (read or {}).items()
    )
    return Solution(
        problem=name,
        label=name.upper(),
        family=None,
        domain=None,
        seed=seed,
        exit=ExitPath.MS_MAJORITY,
        answer=None,
        expected=None if correct is None else "1",
        verdict=None,
        correct=correct,
        paper_calls=5,
        real_calls=5,
        seconds=0.0,
        failed=any(a.outcome is Outcome.PROVIDER_ERROR for a in tries),
        recalls=recalls,
        classes=(),
        attempts=tuple(tries),
    )
