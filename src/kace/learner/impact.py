"""Paired leave-one-out: a tier's attempts, made again on the same keys with one card taken away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kace.errors import UsageError
from kace.learner.effects import judged, paired_lift, uncut
from kace.learner.fires import fires
from kace.learner.lift import Impact, Lift
from kace.learner.teacher import side_by_side
from kace.problem import Problem
from kace.retrieval.prompt import Context
from kace.solver.attempt import Outcome
from kace.solver.ladder import Kit, classes_of, right_positions, sample
from kace.solver.tiers import LOCKED, Tier, TierName
from kace.solver.trace import SolveRecord
from kace.tree.card import Card
from kace.tree.tree import EpistemicTree

TIERS: Mapping[TierName, Tier] = {tier.name: tier for tier in LOCKED}


@dataclass(frozen=True, slots=True)
class Rerun:
    """A tier of a solve, to be made again with these cards."""

    record: SolveRecord
    problem: Problem
    tier: Tier
    cards: tuple[Card, ...]


async def leave_one_out(
    base: Sequence[SolveRecord], tree: EpistemicTree, problems: Mapping[str, Problem], kit: Kit, *, max_calls: int
) -> Impact:
    """The lift of each card that the base run showed, beside all its neighbours; most shown first.

    A card is measured whole or, where its reruns no longer fit into the calls left, not at all. Calls read from a cache
    count as well, so that a resumed run measures the same cards. Raises where the base run stopped early or hid cards.
    """
    if any(a.hidden for record in base for a in record.attempts):
        raise UsageError(
            "the base run hid cards at random, so there is nothing to leave one out of",
            fix="give leave-one-out a base run without dropout",
        )
    shown = fires(base)
    wanted = _reruns(uncut(base), tree, problems)
    lifts: list[Lift] = []
    calls, unmeasured = 0, []
    for fire in sorted(shown, key=lambda fire: (-fire.n_shown, fire.card_id)):
        reruns = wanted[fire.card_id]
        cost = sum(rerun.tier.attempts for rerun in reruns)
        lift = await _measured(fire.card_id, reruns, kit) if calls + cost <= max_calls else None
        if lift is None:
            unmeasured.append(fire.card_id)
            continue
        calls += cost
        lifts.append(lift)
    return Impact(
        fires=shown,
        lifts=tuple(sorted(lifts, key=lambda lift: lift.card_id)),
        calls=calls,
        unmeasured=tuple(sorted(unmeasured)),
    )


def _reruns(
    base: Sequence[SolveRecord], tree: EpistemicTree, problems: Mapping[str, Problem]
) -> Mapping[str, list[Rerun]]:
    """Per card, every tier that read it, with the cards that were beside it."""
    found: defaultdict[str, list[Rerun]] = defaultdict(list)
    for record in base:
        if record.correct is None:
            continue
        for recall in record.recalls:
            for card_id in recall.cards:
                others = tuple(tree.card(name) for name in recall.cards if name != card_id)
                found[card_id].append(Rerun(record, problems[record.problem], TIERS[recall.tier], others))
    return found


async def _measured(card_id: str, reruns: Sequence[Rerun], kit: Kit) -> Lift | None:
    return paired_lift(
        card_id,
        [[bool(a.correct) for a in judged(rerun.record, rerun.tier.name)] for rerun in reruns],
        await side_by_side([_results(rerun, kit) for rerun in reruns]),
        problems=[rerun.problem.id for rerun in reruns],
    )


async def _results(rerun: Rerun, kit: Kit) -> list[bool]:
    """Right or wrong, for the attempts of the rerun that the provider did not fail."""
    same = replace(kit, seed=rerun.record.seed, early_stop=False, dropout=None)
    attempts = await sample(rerun.problem, rerun.tier, Context(tuple(rerun.cards)), (), same)
    classes = await classes_of([a.answer for a in attempts], kit.judge)
    right = await right_positions(rerun.problem, classes, kit.judge)
    made = enumerate(attempts)
    return [position in right for position, a in made if a.outcome is not Outcome.PROVIDER_ERROR]
