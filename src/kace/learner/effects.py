"""What a card does to the rate of right attempts: one estimator, fed by a dropout run or by paired reruns.

Attempts are compared within strata, a problem at a tier: there, whether an attempt saw the card is chance alone, and
how hard the problem is cancels out. Seeds of the same stratum are pooled, which compares more attempts with each other;
tiers are not, because how many HS attempts there are depends on what MS attempts saw. A stratum weighs what its
comparison tells, n1 n0 / (n1 + n0). The interval is a jackknife over problems, with t on problems - 1 degrees of
freedom. The p-value is the larger of that t test's, which asks whether the effect carries over to other problems of the
kind, and of the exact randomisation test's, which holds at any size and any rate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kace.errors import UsageError
from kace.evaluation.stats import Table, stratified_exact, t_p_value, t_quantile
from kace.learner.lift import Lift, Method
from kace.solver.attempt import Outcome
from kace.solver.tiers import TierName
from kace.solver.trace import AttemptRecord, SolveRecord

MIN_PROBLEMS = 5
"""Below this many compared problems an effect is reported, but nothing is claimed of it."""
DOUBT = math.sqrt(0.5)
"""Joins the standard error of the successes a card adds, in attempts: as if one attempt with it and one without it
had gone the other way. Attempts that all agree would otherwise look exact, and rates near 0 or 1 too sure."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Attempts at one problem and tier, with a card and without it."""

    problem: str
    table: Table


def dropout_lifts(records: Sequence[SolveRecord], *, level: float = 0.95) -> tuple[Lift, ...]:
    """The lift of every card that a dropout run both showed and hid within a stratum, by id.

    It is the card's effect averaged over random choices of its neighbours. Raises where early stop cut attempts off.
    """
    found: defaultdict[str, defaultdict[tuple[str, TierName], list[int]]]
    found = defaultdict(lambda: defaultdict(lambda: [0, 0, 0, 0]))
    for record in uncut(records):
        for recall in record.recalls:
            for attempt in judged(record, recall.tier):
                for card_id in recall.cards:
                    counts = found[card_id][record.problem, recall.tier]
                    arm = 2 if card_id in attempt.hidden else 0
                    counts[arm] += bool(attempt.correct)
                    counts[arm + 1] += 1
    lifts = (
        lift_of(card_id, "dropout", [Comparison(p, Table(*counts)) for (p, _), counts in strata.items()], level=level)
        for card_id, strata in sorted(found.items())
    )
    return tuple(lift for lift in lifts if lift)


def paired_lift(
    card_id: str,
    with_card: Sequence[Sequence[bool]],
    without: Sequence[Sequence[bool]],
    *,
    problems: Sequence[str] = (),
    level: float = 0.95,
) -> Lift | None:
    """The lift of a card from attempts (right or wrong) with it and without it, paired by position.

    `problems` says which problem each pair belongs to; left out, each is a problem of its own. `None` where no pair
    has attempts on both sides.
    """
    names = problems or [str(position) for position in range(len(with_card))]
    return lift_of(
        card_id,
        "leave_one_out",
        [
            Comparison(name, Table(sum(one), len(one), sum(other), len(other)))
            for name, one, other in zip(names, with_card, without, strict=True)
        ],
        level=level,
    )


def lift_of(card_id: str, method: Method, comparisons: Iterable[Comparison], *, level: float = 0.95) -> Lift | None:
    """The weighted difference over all comparisons, with its interval; `None` where nothing can be compared."""
    fair = [c for c in comparisons if c.table.weight]
    if not fair:
        return None
    effect, low, high, p = effect_of(fair), -1.0, 1.0, 1.0
    problems = len({c.problem for c in fair})
    if problems >= MIN_PROBLEMS:
        error, df = _standard_error(fair), problems - 1
        half = error * t_quantile(0.5 + level / 2, df)
        low, high = max(-1.0, effect - half), min(1.0, effect + half)
        p = max(t_p_value(effect / error, df), stratified_exact(c.table for c in fair))
    return Lift(
        card_id=card_id,
        method=method,
        effect=effect,
        low=low,
        high=high,
        p=p,
        shown=sum(c.table.n for c in fair),
        hidden=sum(c.table.other_n for c in fair),
        problems=problems,
    )


def effect_of(comparisons: Sequence[Comparison]) -> float:
    """The weighted difference of the rates with and without the card."""
    return math.fsum(c.table.excess for c in comparisons) / math.fsum(c.table.weight for c in comparisons)


def _standard_error(comparisons: Sequence[Comparison]) -> float:
    """Of the weighted difference, by leaving out one problem at a time."""
    excess: defaultdict[str, float] = defaultdict(float)
    weight: defaultdict[str, float] = defaultdict(float)
    for c in comparisons:
        excess[c.problem] += c.table.excess
        weight[c.problem] += c.table.weight
    gained, total, n = math.fsum(excess.values()), math.fsum(weight.values()), len(weight)
    left_out = (((gained - excess[name]) / (total - weight[name]) - gained / total) ** 2 for name in weight)
    return math.hypot(math.sqrt((n - 1) / n * math.fsum(left_out)), DOUBT / total)


def judged(record: SolveRecord, tier: TierName) -> list[AttemptRecord]:
    """The tier's attempts that say something of the cards they saw: not those that the provider failed."""
    return [
        a
        for a in record.attempts
        if a.tier is tier and a.correct is not None and a.outcome is not Outcome.PROVIDER_ERROR
    ]


def uncut(records: Sequence[SolveRecord]) -> Sequence[SolveRecord]:
    """The records, if every attempt ran to its end.

    Early stop keeps attempts that agree and cancels the rest, so what is left of a tier is not a fair sample.
    """
    for record in records:
        if any(a.outcome is Outcome.CANCELLED for a in record.attempts):
            raise UsageError(
                f"early stop cut off attempts at {record.label or record.problem[:8]}, so no card can be measured",
                fix="learn without early stop",
            )
    return records
