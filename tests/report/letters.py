"""Requests as the learner writes them, in a folder: made by the very code that asks, and read by the very code that
reads the reply."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kace.cards.card import Card
from kace.errors import Outstanding
from kace.ladder.prompt import card_text, fenced
from kace.learning.teacher import instructions
from kace.models.base import AttemptKey, Request, Sampling, chat
from kace.models.exchange import Exchange, request_name
from tests.card_samples import a_card


def request(name: str, system_text: str, user: str, index: int = 0) -> Request:
    """A teacher's request."""
    return Request(chat(system_text, user), Sampling(0.0, 16_000, 1), AttemptKey(name, 0, "TEACHER", index))


def asking_for_rulings(*cards: Card) -> Request:
    """Rulings on cards of algebra."""
    quoted = [fenced("card", card_text(card)) for card in cards or (a_card(), a_card("RUBRIC_MIDPOINT_OF_CHORD"))]
    user = "\n\n".join(("Domain: algebra\nDifficulty: medium, or universal", *quoted))
    return request("epoch 1 add MS algebra admit", instructions("judge"), user)


def asking_for_cards(*problems: str, number: int = 1) -> Request:
    """Cards for problems that went wrong."""
    shown = [
        f"## Problem {n}\n{fenced('problem', text)}\nExpected answer: 4\nExit: hs_plurality. Cards read: none.\n"
        f"Wrong attempt 1 at HS answered 5. It ends:\n{fenced('attempt', f'So it is 5. {text}')}"
        for n, text in enumerate(problems or (r"What is $\frac{8}{2}$?",), 1)
    ]
    user = "\n\n".join(("Domain: algebra\nDifficulty: hard, or universal", "Cards already there:\nnone", *shown))
    return request(f"epoch {number} add HS algebra propose", instructions("cards", "propose"), user)


def put(folder: Path, *requests: Request) -> tuple[str, ...]:
    """Lay the requests into the folder as the learner does; their names."""
    for each in requests:
        with pytest.raises(Outstanding):
            asyncio.run(Exchange(folder, wait=False).complete(each))
    return tuple(map(request_name, requests))


def taken(folder: Path, each: Request) -> str:
    """The reply as the learner finds it."""
    return asyncio.run(Exchange(folder, wait=False).complete(each)).text


RULINGS = (
    "<ruling>\nid: EXACT_SUM_OF_SQUARES\nverdict: admit\nreason: true for every n\n</ruling>\n\n"
    "<ruling>\nid: RUBRIC_MIDPOINT_OF_CHORD\nverdict: reject\nrule: vague\nreason: nothing to write down\n</ruling>"
)
