"""What a measured impact writes on the cards: counters, scores, and who is validated or deprecated."""

from __future__ import annotations

from kace.evaluation.stats import holm
from kace.learner.effects import MIN_PROBLEMS
from kace.learner.lift import Fire, Impact, Lift
from kace.tree.card import Card, Provenance, Status
from kace.tree.changes import Change, Edit
from kace.tree.tree import EpistemicTree

METHODS = {"dropout": "dropout", "leave_one_out": "leave-one-out"}


def credit(tree: EpistemicTree, impact: Impact, *, epoch: int, alpha: float) -> tuple[Change, ...]:
    """Edits of the cards that were shown or measured, in order of id.

    A card is validated where it helps, and deprecated where it harms, significantly after Holm's correction over all
    cards measured in this impact: at most `alpha` is the chance that any card without effect is called either. A
    learner of several epochs that wants this of the whole run gives each its share, such as `alpha / epochs`.
    """
    fired = {fire.card_id: fire for fire in impact.fires}
    lifts = {lift.card_id: lift for lift in impact.lifts}
    called = _called(impact, alpha)
    edits = []
    for card in tree:
        fire, lift = fired.get(card.card_id), lifts.get(card.card_id)
        if fire or lift:
            status = _status(card, lift, called.get(card.card_id))
            edits.append(Edit(_credited(card, fire, lift, status, epoch)))
    return tuple(edits)


def lift_text(lift: Lift, epoch: int) -> str:
    """A lift in words, as `validated_lift` holds it."""
    return (
        f"{_points(lift.effect)} points [{_points(lift.low)}, {_points(lift.high)}], {lift.shown} attempts with, "
        f"{lift.hidden} without, {lift.problems} problems, {METHODS[lift.method]}, epoch {epoch}"
    )


def _called(impact: Impact, alpha: float) -> dict[str, Status]:
    """The cards whose effect is significant. Those with too few problems claim nothing, so they cost nothing either."""
    family = [lift for lift in impact.lifts if lift.problems >= MIN_PROBLEMS]
    adjusted = holm([lift.p for lift in family])
    return {
        lift.card_id: Status.VALIDATED if lift.effect > 0 else Status.DEPRECATED
        for lift, p in zip(family, adjusted, strict=True)
        if p <= alpha and lift.effect
    }


def _status(card: Card, lift: Lift | None, called: Status | None) -> Status:
    """What the card is now: as called, or as it was.

    A deprecated card stays so. A validated one that fails to repeat keeps its rank unless the new interval lies below
    zero: a measurement that shows nothing does not undo one that did, one that contradicts it does.
    """
    if card.status is Status.DEPRECATED:
        return Status.DEPRECATED
    if called:
        return called
    if card.status is Status.VALIDATED and lift and lift.high < 0:
        return Status.EXPERIMENTAL
    return card.status


def _credited(card: Card, fire: Fire | None, lift: Lift | None, status: Status, epoch: int) -> Card:
    told: dict[str, object] = {"promotion_status": status}
    if fire:
        told["n_uses"] = card.provenance.n_uses + fire.n_shown
        told["n_wins"] = card.provenance.n_wins + fire.shown_correct
        told["n_losses"] = card.provenance.n_losses + fire.shown_wrong
    if lift:
        told["validated_lift"] = lift_text(lift, epoch)
    provenance = Provenance.model_validate({**dict(card.provenance), **told})
    # Rounded: the last bits of a sum differ between machines, and a replayed run must give the identical tree.
    score = round(lift.effect, 4) + 0.0 if lift else card.helpfulness_score
    return card.model_copy(update={"provenance": provenance, "helpfulness_score": score})


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # adding zero turns -0.0 into 0.0
