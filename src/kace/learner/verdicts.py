"""What became of the cards a teacher proposed."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from kace.tree.card import Card


class Kept(BaseModel):
    """A value that the learner writes to disk between steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Refused(Kept):
    """A proposal that did not become a card, by whom and why."""

    card_id: str
    """As the teacher named it; empty where the block gave no name."""
    by: Literal["parser", "code", "teacher"]
    rule: str
    """The name of the rule, such as `answer_leak`."""
    reason: str


class Proposals(Kept):
    """Cards that a teacher's reply held, and blocks that held none."""

    cards: tuple[Card, ...] = ()
    refused: tuple[Refused, ...] = ()


class Rulings(Kept):
    """Cards that may enter the tree, and those that may not."""

    admitted: tuple[Card, ...] = ()
    refused: tuple[Refused, ...] = ()
