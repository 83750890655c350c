"""What evidence changes in the tree: which cards are validated or deprecated, and which revision is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from kace.evaluation.stats import holm, sign_flip
from kace.learner.effects import MIN_PROBLEMS, Fire, Impact, Lift
from kace.learner.steps import Kept
from kace.solver.records import Solution
from kace.tree.card import Card, Provenance, Status
from kace.tree.changes import Change, Deprecate, Edit
from kace.tree.tree import EpistemicTree


def credit(tree: EpistemicTree, impact: Impact, *, epoch: int, alpha: float) -> tuple[Change, ...]:
    """Edits of the cards that were shown or measured, in order of id.

    A card is validated where it helps, and deprecated where it harms, significantly after Holm's correction over all
    cards measured in this impact: `alpha` bounds the family-wise error rate. A learner of several epochs that wants
    this of the whole run gives each its share, such as `alpha / epochs`.
    """
    fired = {fire.card_id: fire for fire in impact.fires}
    lifts = {lift.card_id: lift for lift in impact.lifts}
    # Cards with too few problems claim nothing, so they cost nothing either.
    family = [lift for lift in impact.lifts if lift.problems >= MIN_PROBLEMS]
    called = {
        lift.card_id: Status.VALIDATED if lift.effect > 0 else Status.DEPRECATED
        for lift, p in zip(family, holm([lift.p for lift in family]), strict=True)
        if p <= alpha and lift.effect
    }
    seen = [(card, fired.get(card.card_id), lifts.get(card.card_id)) for card in tree]
    credited = (_credited(*each, called.get(each[0].card_id), epoch) for each in seen if any(each[1:]))
    return tuple(map(Edit, credited))


def unproven(tree: EpistemicTree) -> tuple[Change, ...]:
    """The changes that leave only cards with a validated lift to be shown."""
    return tuple(Deprecate(card.card_id) for card in tree if card.status is Status.EXPERIMENTAL)


def lift_text(lift: Lift, epoch: int) -> str:
    """A lift in words, as `validated_lift` of a card holds it for people."""
    return (
        f"{_points(lift.effect)} points [{_points(lift.low)}, {_points(lift.high)}], {lift.shown} attempts with, "
        f"{lift.hidden} without, {lift.problems} problems, {lift.method.replace('_', '-')}, epoch {epoch}"
    )


def _credited(card: Card, fire: Fire | None, lift: Lift | None, called: Status | None, epoch: int) -> Card:
    """The card with its figures and its status: as called, or as it was.

    A deprecated card stays so. A validated one that fails to repeat keeps its rank unless the new interval lies below
    zero: a measurement that shows nothing does not undo one that did, one that contradicts it does.
    """
    known = dict(card.provenance)
    contradicted = card.status is Status.VALIDATED and lift and lift.high < 0
    if card.status is not Status.DEPRECATED:
        known["promotion_status"] = called or (Status.EXPERIMENTAL if contradicted else card.status)
    if fire:
        counts = {"n_uses": fire.n_shown, "n_wins": fire.shown_correct, "n_losses": fire.shown_wrong}
        known |= {name: known[name] + count for name, count in counts.items()}
    if lift:
        known["validated_lift"] = lift_text(lift, epoch)
    provenance = Provenance.model_validate(known)
    # Rounded: the last bits of a sum differ between machines, and a replayed run must give the identical tree.
    score = round(lift.effect, 4) + 0.0 if lift else card.helpfulness_score
    return card.model_copy(update={"provenance": provenance, "helpfulness_score": score})


class CommitRule(NamedTuple):
    """What a candidate tree must show: a least lift, at a family-wise error rate that all interim analyses share."""

    threshold: float
    alpha: float
    """1 asks for the threshold only."""
    analyses: int


class InterimAnalysis(Kept):
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


def analyse(
    base: Sequence[Solution],
    rerun: Sequence[Solution],
    *,
    domain: str,
    number: int,
    rule: CommitRule,
    removes_only: bool,
) -> InterimAnalysis:
    """Compare a rerun with the base run, pair by pair.

    A candidate that adds or rewrites claims to help, and must show it: lift at or above the threshold, and an exact
    sign-flip test over problems (McNemar's, with one seed) at the share of alpha. One that only removes cards claims
    nothing, and passes if nothing is lost. Pairs that the provider failed on either side say nothing and are left out.

    The test is exact where candidate and base are alike and which problems are drawn anew does not depend on how the
    base run went on them: so it is when every solve of a domain reads the whole block.
    """
    again = {(record.problem, record.seed): record for record in rerun}
    both = ((record, again.get((record.problem, record.seed))) for record in base if record.correct is not None)
    pairs = [(before, after) for before, after in both if after and not before.failed and not after.failed]
    net: defaultdict[str, int] = defaultdict(int)
    changed: dict[int, dict[str, None]] = {-1: {}, 0: {}, 1: {}}
    for before, after in pairs:
        change = bool(after.correct) - bool(before.correct)
        net[before.problem] += change
        changed[change][before.label or before.problem[:8]] = None
    lift = sum(net.values()) / len(pairs) if pairs else 0.0
    p = sign_flip(net.values())
    accepted, reason = _ruling(len(pairs), lift, p, rule, removes_only)
    return InterimAnalysis(
        domain=domain,
        number=number,
        n=len(pairs),
        lift=lift,
        p=p,
        gained=tuple(changed[1]),
        lost=tuple(changed[-1]),
        accepted=accepted,
        reason=reason,
    )


def _ruling(n: int, lift: float, p: float, rule: CommitRule, removes_only: bool) -> tuple[bool, str]:
    if not n:
        return False, "no problem could be compared"
    measured = f"lift {_points(lift)} points on {n} solves"
    if removes_only:
        return lift >= 0, f"{measured}; a removal must not lose"
    if lift < rule.threshold:
        return False, f"{measured}, below the threshold of {_points(rule.threshold)}"
    bar = rule.alpha / rule.analyses if rule.alpha < 1 else 1.0
    if p > bar:
        return False, f"{measured}, but p = {p:.3g} exceeds {bar:.3g}: it may be chance"
    return True, f"{measured}, p = {p:.3g}, at most {bar:.3g}"


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns -0.0 into 0.0
