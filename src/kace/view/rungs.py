"""A climb as data: what each tier tried, what it agreed on, and where the gate let the solve out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kace.solver.attempt import Outcome
from kace.solver.tiers import FALLBACK_GATE, LOCKED, ExitPath, TierName
from kace.solver.trace import AttemptRecord, RecallRecord, SolveRecord
from kace.view.marks import Mark, mark_of

FALLBACKS = (ExitPath.FALLBACK_PLURALITY, ExitPath.FALLBACK_LAST_HS)


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt, by its position among all of the solve."""

    position: int
    attempt: AttemptRecord

    @property
    def mark(self) -> Mark:
        """What came of it."""
        return mark_of(self.attempt.correct, self.attempt.outcome)


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts of one vote that gave the same answer, or none of which gave any."""

    answer: str | None
    tried: tuple[Tried, ...]
    support: int
    """Attempts that gave it in this tier and before."""
    leads: bool
    """Whether it wins the vote, with votes enough."""

    @property
    def votes(self) -> int:
        """Attempts of this vote that gave the answer."""
        return len(self.tried) if self.answer is not None else 0

    @property
    def mark(self) -> Mark:
        """What the answer is worth."""
        return self.tried[0].mark if self.answer is not None else Mark.NOTHING


@dataclass(frozen=True, slots=True)
class Rung:
    """A tier that was reached."""

    name: str
    groups: tuple[Group, ...]
    """The leader first; what has no answer last."""
    needed: int | None
    """Votes that open the gate; `None` for attempts that have no gate."""
    left: bool
    """Whether the solve left here."""
    recall: RecallRecord | None

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Its attempts, in their order."""
        return tuple(sorted((each for group in self.groups for each in group.tried), key=lambda t: t.position))

    @property
    def votes(self) -> int:
        """What the leader has."""
        return self.groups[0].votes if self.groups else 0

    @property
    def met(self) -> bool:
        """Whether enough attempts agree, wherever the solve left."""
        return self.needed is not None and self.votes >= self.needed


@dataclass(frozen=True, slots=True)
class Climb:
    """A solve from the first tier to its answer."""

    rungs: tuple[Rung, ...]
    below: tuple[TierName, ...]
    """Tiers of the ladder that were passed over: it began above them."""
    above: tuple[TierName, ...]
    """Tiers that were not needed."""
    fallback: tuple[Group, ...]
    """The vote over all attempts, where no gate opened."""
    agreed: bool
    """Whether some answer was given often enough in it."""


def climb_of(record: SolveRecord) -> Climb:
    """The climb that a record tells."""
    recalls = {recall.tier: recall for recall in record.recalls}
    tiers = {tier.name: tier for tier in LOCKED}
    rungs, start = [], 0
    for name in dict.fromkeys(attempt.tier for attempt in record.attempts):
        stop = start + sum(attempt.tier is name for attempt in record.attempts)
        tier = tiers.get(name)
        groups = _groups(record, (start, stop), tier.gate.votes if tier else 1)
        left = tier is not None and record.exit is tier.exit
        rungs.append(Rung(name.value, groups, tier.gate.votes if tier else None, left, recalls.get(name)))
        start = stop
    reached = {rung.name for rung in rungs}
    ladder = [tier.name for tier in LOCKED] if record.exit is not None else []
    places = [place for place, name in enumerate(ladder) if name.value in reached]
    fallback = _groups(record, (0, start), FALLBACK_GATE.votes) if record.exit in FALLBACKS else ()
    return Climb(
        rungs=tuple(rungs),
        below=tuple(ladder[: min(places, default=0)]),
        above=tuple(ladder[max(places, default=-1) + 1 :]),
        fallback=fallback,
        agreed=bool(fallback) and fallback[0].votes >= FALLBACK_GATE.votes,
    )


def _groups(record: SolveRecord, span: tuple[int, int], needed: int) -> tuple[Group, ...]:
    """The vote of the attempts of a span, with all before its end as support."""
    start, stop = span
    tried = {place: Tried(place, record.attempts[place]) for place in range(start, stop)}
    found = []
    for each in record.classes:
        here = tuple(tried[place] for place in each.positions if place in tried)
        if here:
            found.append((here, each.answer, sum(place < stop for place in each.positions), min(each.positions)))
    found.sort(key=lambda vote: (-len(vote[0]), -vote[2], vote[3]))
    groups = [
        Group(answer, here, support, leads=n == 0 and len(here) >= needed)
        for n, (here, answer, support, _) in enumerate(found)
    ]
    voted = {each.position for group in groups for each in group.tried}
    rest = tuple(each for place, each in tried.items() if place not in voted)
    return (*groups, Group(None, rest, 0, leads=False)) if rest else tuple(groups)


def failures(tried: tuple[Tried, ...]) -> Mapping[Outcome, int]:
    """How attempts without an answer ended."""
    found: dict[Outcome, int] = {}
    for each in tried:
        found[each.attempt.outcome] = found.get(each.attempt.outcome, 0) + 1
    return found
