"""Imagination: what else an expert would find obvious beside each card. Off unless asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kace.learner.cell import Cell
from kace.learner.propose import Lesson, Mould, place, proposals, read_cards, system
from kace.learner.verdicts import Proposals
from kace.retrieval.prompt import card_block
from kace.tree.card import Card


async def imagine(cell: Cell, cards: Sequence[Card], lesson: Lesson) -> Proposals:
    """Ask for the neighbours of the cell's cards, in the same blocks. They rest on no problem, and say so."""
    if not cards:
        return Proposals()
    quota = lesson.cards_per_problem * len(cards)
    mould = Mould(cell, lesson, tuple(card.payload for card in cards))
    asked = f"Write at most {quota} cards, at most {lesson.cards_per_problem} beside each of these."
    user = "\n\n".join((place(cell), card_block(cards), asked))
    reading = await lesson.teacher.ask(lesson.name, system("imagine"), user, lambda reply: read_cards(reply, mould))
    return proposals(reading, quota, mould)
