"""A teacher that says what a test wants it to say, and remembers what it was asked."""

from __future__ import annotations

from kace.cards.card import Card
from kace.models.base import Request
from kace.models.scripted import Scripted


def passes(card: Card) -> None:
    """A screen that refuses no card."""


class Said(Scripted):
    """Says the given texts in order. A text may be an error to raise instead."""

    def __init__(self, *says: str | Exception) -> None:
        super().__init__(self._next, name="teacher")
        self.says = list(says)
        self.requests: list[Request] = []

    def _next(self, request: Request) -> str:
        self.requests.append(request)
        said = self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said
