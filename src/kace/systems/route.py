"""An LLM that picks cards by id.

What all problems share comes first (instructions, the list of cards), the problem last, so that prefix caches hit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kace.models.ask import Question, ask
from kace.models.base import ChatModel, Message, Role, Usage, chat
from kace.problem import Problem
from kace.retrieval.fence import fenced, shortened
from kace.retrieval.prompt import template
from kace.tree.card import Card

TIER = "ROUTE"
"""Where the calls stand among a problem's attempts."""
MAX_PROBLEM_CHARS = 3_000

NO_USAGE = Usage()

_ID = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){2,5}")
_BETWEEN = re.compile(r"[,;\n]")
_WRAPPING = " \t\r`'\"[]*-."
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pick:
    """Chosen cards, the most wanted first, and what it cost to choose them."""

    cards: tuple[Card, ...]
    calls: int = 0
    """Calls made, failed ones too. They are not solver calls."""
    usage: Usage = NO_USAGE
    usable: bool = True
    """False where the model said nothing that names cards, nor that none helps."""


NO_PICK = Pick(())


@dataclass(frozen=True, slots=True)
class Router:
    """A model that is shown ids and triggers, and names the cards that a problem needs."""

    model: ChatModel
    k: int
    seed: int

    async def choose(self, problem: Problem, pool: Sequence[Card]) -> Pick:
        """At most `k` cards; none where the call fails or two replies cannot be used."""
        known = {card.card_id: card for card in pool}
        question = Question(
            messages=routing_prompt(problem.text, pool, self.k),
            problem=problem.id,
            seed=self.seed,
            tier=TIER,
            read=lambda reply: read_ids(reply, known, self.k),
            again=_asked_again,
        )
        heard = await ask(self.model, question)
        cards = tuple(known[card_id] for card_id in heard.said or ())
        return Pick(cards, heard.calls, heard.usage, heard.said is not None)


def routing_prompt(problem: str, pool: Sequence[Card], k: int) -> tuple[Message, ...]:
    """Instructions and the list of cards, then the problem."""
    lines = "\n".join(f"{card.card_id}: {'; '.join(card.triggers)}" for card in pool)
    instructions = template("systems/route").format(k=k)
    return chat(f"{instructions}\n\n{fenced('cards', lines)}", fenced("problem", shortened(problem, MAX_PROBLEM_CHARS)))


def read_ids(reply: str, known: Collection[str], k: int) -> tuple[str, ...] | None:
    """The first `k` known ids of a reply, each once; nothing for `none`.

    Ids that are not known are passed over. `None` for a reply that is not a list of ids, or names no known one.
    """
    text = _THOUGHT_END.split(reply)[-1].strip()
    if text.strip(_WRAPPING).casefold() == "none":
        return ()
    named = [part for part in (part.strip(_WRAPPING) for part in _BETWEEN.split(text)) if part]
    if not all(map(_ID.fullmatch, named)):
        return None
    return tuple(dict.fromkeys(name for name in named if name in known))[:k] or None


def _asked_again(messages: tuple[Message, ...], reply: str) -> tuple[Message, ...]:
    # The reply itself is not shown again, since a problem may have dictated it.
    system, user = messages
    return (system, Message(Role.USER, f"{user.content}\n\n{template('systems/route_retry')}"))
