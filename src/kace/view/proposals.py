"""Every card that a teacher proposed, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kace.learner.consolidate import Merge, Merges
from kace.learner.epoch import Steps
from kace.learner.notebook import Step
from kace.learner.verdicts import Proposals, Refused, Rulings
from kace.tree.card import Card, Status
from kace.tree.tree import EpistemicTree


class Verdict(StrEnum):
    """What became of a proposal."""

    KEPT = "kept"
    """It is a card of the tree that a solve may read."""
    RETIRED = "retired"
    """It was a card of the tree, and is not shown any more."""
    MERGED = "merged"
    """It was admitted, and another card says the same."""
    ADMITTED = "admitted"
    """It may enter the tree and has not yet."""
    REFUSED = "refused"
    WAITING = "waiting"
    """Nobody has ruled on it yet."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed card."""

    epoch: int
    place: str
    """The cell it was proposed for."""
    card_id: str
    """As the teacher named it; empty where it gave no name."""
    card: Card | None
    """The card as proposed; `None` where the block could not be read as one."""
    verdict: Verdict
    by: str = ""
    """Who refused it: parser, code or teacher."""
    rule: str = ""
    reason: str = ""
    into: str = ""
    """The card it was merged into."""


def proposals_of(steps: Steps, tree: EpistemicTree) -> tuple[Proposal, ...]:
    """All proposals in the order they were made."""
    return tuple(each for epoch in steps.epochs for each in _of_epoch(epoch, steps, tree))


def _of_epoch(epoch: int, steps: Steps, tree: EpistemicTree) -> Iterator[Proposal]:
    ruled = {step.place: ruling for step, ruling in steps.of(Rulings, "admit", epoch=epoch)}
    merges = {
        (tier, merge.card_id): merge
        for step, found in steps.of(Merges, "merge", epoch=epoch)
        for tier in step.place.split("+")
        for merge in found.merged
    }
    for step, found in steps.of(Proposals, "propose", "imagine", epoch=epoch):
        ruling = ruled.get(step.place)
        refused = list(ruling.refused) if ruling else []
        for card in found.cards:
            unfit = next((each for each in refused if each.card_id == card.card_id), None)
            if ruling is None:
                yield Proposal(epoch, step.place, card.card_id, card, Verdict.WAITING)
            elif card not in ruling.admitted and unfit is not None:
                refused.remove(unfit)
                yield _refused(step, card, unfit)
            else:
                yield _admitted(step, card, merges.get((step.place.split(" ")[0], card.card_id)), tree)
        yield from (_refused(step, None, each) for each in found.refused)


def _refused(step: Step, card: Card | None, why: Refused) -> Proposal:
    return Proposal(step.epoch, step.place, why.card_id, card, Verdict.REFUSED, why.by, why.rule, why.reason)


def _admitted(step: Step, card: Card, merge: Merge | None, tree: EpistemicTree) -> Proposal:
    if merge is not None:
        verdict, reason, into = Verdict.MERGED, merge.reason, merge.into
        return Proposal(step.epoch, step.place, card.card_id, card, verdict, reason=reason, into=into)
    if card.card_id not in tree:  # it enters with the rest of its round, or stands there under an id of its own
        return Proposal(step.epoch, step.place, card.card_id, card, Verdict.ADMITTED)
    retired = tree.card(card.card_id).status is Status.DEPRECATED
    return Proposal(step.epoch, step.place, card.card_id, card, Verdict.RETIRED if retired else Verdict.KEPT)
