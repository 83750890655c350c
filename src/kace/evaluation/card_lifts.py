"""What a tree's cards are worth, read back from what the learner wrote on them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kace.tree.card import Card, Status

_FIGURE = r"([+-]?\d+(?:\.\d+)?)"
_LIFT = re.compile(
    rf"{_FIGURE} points \[{_FIGURE}, {_FIGURE}\], (\d+) attempts with, (\d+) without, (\d+) problems, ([\w-]+)"
)


@dataclass(frozen=True, slots=True)
class CardLift:
    """The change in the share of right attempts that a card causes, with its 95 % interval."""

    card_id: str
    place: str
    status: Status
    effect: float
    low: float
    high: float
    shown: int
    """Attempts with the card."""
    hidden: int
    """Attempts without it."""
    problems: int
    method: str

    @property
    def tells(self) -> bool:
        """Whether the interval leaves zero out."""
        return not self.low <= 0 <= self.high


def card_lifts(cards: Iterable[Card]) -> tuple[CardLift, ...]:
    """The lift of every card that carries one, highest first."""
    found = (lift for card in cards if (lift := _lift(card)))
    return tuple(sorted(found, key=lambda lift: (-lift.effect, lift.card_id)))


def _lift(card: Card) -> CardLift | None:
    match = _LIFT.match(card.provenance.validated_lift)
    if match is None:
        return None
    effect, low, high = (float(figure) / 100 for figure in match.groups()[:3])
    shown, hidden, problems = (int(figure) for figure in match.groups()[3:6])
    return CardLift(
        card_id=card.card_id,
        place=f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}",
        status=card.status,
        effect=effect,
        low=low,
        high=high,
        shown=shown,
        hidden=hidden,
        problems=problems,
        method=match[7],
    )
