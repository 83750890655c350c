"""Randomised card dropout: each attempt hides each card of its block with a known probability."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from kace.models.base import AttemptKey


@dataclass(frozen=True, slots=True)
class Dropout:
    """Which cards an attempt does not see: a pure function of the attempt and the card, so that a rerun hides the same.

    Draws are independent over attempts and cards. That is what makes the difference between attempts that saw a card
    and those that did not an unbiased estimate of what the card is worth.
    """

    rate: float = 0.5
    seed: int = 0

    def hidden(self, key: AttemptKey, card_ids: Sequence[str]) -> tuple[str, ...]:
        """The cards hidden from an attempt, in the order given."""
        return tuple(card_id for card_id in card_ids if self._draw(key, card_id) < self.rate)

    def _draw(self, key: AttemptKey, card_id: str) -> float:
        text = f"{self.seed}\x1f{key.problem}\x1f{key.seed}\x1f{key.tier}\x1f{key.index}\x1f{card_id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / (1 << 56)
