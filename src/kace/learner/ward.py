"""What the curator of a domain sees: its cards, how they fared, and the problems that are still wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kace.learner.failure import Failure, WrongAttempt
from kace.learner.lift import Fire, Impact, Lift
from kace.learner.propose import Lesson
from kace.learner.verdicts import Refused
from kace.redact import one_line
from kace.retrieval.fence import fenced, neutral, quoted_line, shortened
from kace.solver.tiers import TierName
from kace.tree.card import UNIVERSAL, Card

MOST_PROBLEMS = 30
"""Problems shown in full; the rest are counted."""
MOST_ATTEMPTS = 2
PROBLEM_CHARS, TAIL_CHARS = 2_000, 600
MOST_LABELS = 12


@dataclass(frozen=True, slots=True)
class Ward:
    """The cards of a domain under one curator, with everything known about them."""

    domain: str
    """`universal` for the cards that every domain reads."""
    cards: tuple[Card, ...]
    impact: Impact
    failed: tuple[Failure, ...]
    lesson: Lesson
    screen: Callable[[Card], Refused | None]
    """What code holds against a card with another text or another place."""


def ward_page(ward: Ward) -> str:
    """The cards with their figures, then the problems still wrong."""
    fires = {fire.card_id: fire for fire in ward.impact.fires}
    lifts = {lift.card_id: lift for lift in ward.impact.lifts}
    where = "every domain" if ward.domain == UNIVERSAL else neutral(ward.domain)
    return "\n\n".join(
        (
            f"Domain: {where}\nThis epoch: {ward.lesson.epoch}\nCards: {len(ward.cards)}",
            *(_card(card, fires.get(card.card_id), lifts.get(card.card_id)) for card in ward.cards),
            failures_page("Problems still wrong", ward.failed),
        )
    )


def failures_page(title: str, failed: tuple[Failure, ...]) -> str:
    """Problems that no tier delivered, the first ones in full."""
    shown = [_failure(number, failure) for number, failure in enumerate(failed[:MOST_PROBLEMS], 1)]
    more = [f"And {len(failed) - MOST_PROBLEMS} more."] if len(failed) > MOST_PROBLEMS else []
    return "\n\n".join((f"# {title}: {len(failed)}", *shown, *more))


def labels(names: tuple[str, ...]) -> str:
    """Labels of problems on one line."""
    shown = [neutral(one_line(name, 60)) for name in names[:MOST_LABELS]]
    return ", ".join((*shown, f"{len(names) - MOST_LABELS} more") if len(names) > MOST_LABELS else shown) or "none"


def _card(card: Card, fire: Fire | None, lift: Lift | None) -> str:
    provenance = card.provenance
    head = (
        f"id: {card.card_id}",
        f"difficulty: {card.difficulty_tag.value}",
        f"domains: {' '.join(card.domain_tags)}",
        f"routing: {'; '.join(card.routing_conditions) or 'none'}",
        f"status: {card.status.value}, introduced in epoch {provenance.epoch_introduced}",
        "payload:",
        card.payload,
    )
    return "\n".join((fenced("card", "\n".join(head)), _fired(fire), _measured(lift)))


def _fired(fire: Fire | None) -> str:
    if fire is None or not fire.n_shown:
        return "Fired: never."
    tiers = ", ".join(f"{tier.value} {fire.tiers[tier]}" for tier in TierName if tier in fire.tiers)
    return (
        f"Fired: n_shown {fire.n_shown}, shown_correct {fire.shown_correct}, shown_wrong {fire.shown_wrong}"
        f" ({tiers}). Problems: {labels(fire.problems)}."
    )


def _measured(lift: Lift | None) -> str:
    if lift is None:
        return "Lift: not measured."
    return (
        f"Lift: {100 * lift.effect:+.1f} points [{100 * lift.low:+.1f}, {100 * lift.high:+.1f}] of right attempts,"
        f" {lift.shown} with the card, {lift.hidden} without, {lift.problems} problems."
    )


def _failure(number: int, failure: Failure) -> str:
    read = "; ".join(f"{t.value} {', '.join(failure.shown[t]) or 'none'}" for t in TierName if t in failure.shown)
    return "\n".join(
        (
            f"## Problem {number}, {labels((failure.problem.name,))}",
            fenced("problem", shortened(failure.problem.text, PROBLEM_CHARS)),
            f"Expected answer: {_inline(failure.problem.answer)}",
            f"Exit: {failure.exit}. Cards read: {read or 'none'}.",
            *(_attempt(attempt) for attempt in failure.attempts[:MOST_ATTEMPTS]),
        )
    )


def _attempt(attempt: WrongAttempt) -> str:
    said = f"Wrong attempt at {attempt.tier.value}, answer {_inline(attempt.answer)}. It ends:"
    return f"{said}\n{fenced('attempt', attempt.tail[-TAIL_CHARS:] or '(no text)')}"


def _inline(answer: str | None) -> str:
    return quoted_line(answer) if answer else "none"
