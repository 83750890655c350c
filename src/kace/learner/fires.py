"""Fire statistics: which cards were shown, and how those solves ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kace.learner.lift import Fire
from kace.solver.attempt import Outcome
from kace.solver.tiers import TierName
from kace.solver.trace import SolveRecord


def fires(records: Sequence[SolveRecord]) -> tuple[Fire, ...]:
    """How often each card was shown, by id. A card that a dropout run hid from every attempt of a tier was not."""
    seen: defaultdict[str, list[tuple[SolveRecord, tuple[TierName, ...]]]] = defaultdict(list)
    for record in records:
        tiers: defaultdict[str, list[TierName]] = defaultdict(list)
        for recall in record.recalls:
            for card_id in recall.cards:
                if _shown(record, recall.tier, card_id):
                    tiers[card_id].append(recall.tier)
        for card_id, found in tiers.items():
            seen[card_id].append((record, tuple(found)))
    return tuple(_fire(card_id, seen[card_id]) for card_id in sorted(seen))


def _shown(record: SolveRecord, tier: TierName, card_id: str) -> bool:
    made = (a for a in record.attempts if a.tier is tier and a.outcome is not Outcome.CANCELLED)
    return any(card_id not in a.hidden for a in made)


def _fire(card_id: str, seen: Sequence[tuple[SolveRecord, tuple[TierName, ...]]]) -> Fire:
    counts = {tier: sum(tier in tiers for _, tiers in seen) for tier in TierName}
    return Fire(
        card_id=card_id,
        n_shown=len(seen),
        shown_correct=sum(record.correct is True for record, _ in seen),
        shown_wrong=sum(record.correct is False for record, _ in seen),
        tiers={tier: count for tier, count in counts.items() if count},
        problems=tuple(dict.fromkeys(record.label or record.problem[:8] for record, _ in seen)),
    )
