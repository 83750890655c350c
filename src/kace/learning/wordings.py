"""Wordings: problems of a card's kind in other stories, written by the teacher, by which the card is found.

Words alone do not recognise a technique in another story. So each card is indexed under problems that might be asked of
it, as doc2query expands documents before they are searched. No solver reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kace.cards.card import MAX_LINE, Card
from kace.cards.tree import Edit, EpistemicTree
from kace.ladder.prompt import card_text, fenced, neutral
from kace.learning.admit import NOT_SHOWN
from kace.learning.blocks import Block, Grammar
from kace.learning.propose import EXAMPLE_ID
from kace.learning.steps import Kept, StepLog, StepName
from kace.learning.teacher import (
    Reading,
    Teacher,
    instructions,
    read_each,
    side_by_side,
)

WORDINGS = Grammar("wordings", "id", ("id", "text"), text="text")
WORDINGS_AT_ONCE = 320  # a reply of 16,000 tokens has room for so many


class CardWordings(Kept):
    """The wordings that each card of a request was given, by its id."""

    wordings: dict[str, tuple[str, ...]]
    refused: int = 0  # wordings that retell a problem held out


async def find_wordings(
    tree: EpistemicTree,
    count: int,
    teacher: Teacher,
    log: StepLog,
    retells: Callable[[str], bool],
) -> tuple[Edit, ...]:
    """The edits that give every shown card without wordings its own. What was asked before is not asked again.

    A wording that retells a problem held out is left out.
    """
    cards = [card for card in tree.shown if not card.wordings]
    at_once = WORDINGS_AT_ONCE // count
    asked = []
    for domain in sorted({card.domain_tags[0] for card in cards}):
        own = [card for card in cards if card.domain_tags[0] == domain]
        for number, start in enumerate(range(0, len(own), at_once)):
            step = StepName("close", "wordings", place=domain, number=number)
            some = own[start : start + at_once]
            ask = partial(_ask, some, count, teacher, str(step), retells)
            asked.append(log.once(step, CardWordings, ask))
    found = {
        name: lines
        for each in await side_by_side(asked)
        for name, lines in each.wordings.items()
    }
    return tuple(
        Edit(card.worded(found[card.card_id]))
        for card in cards
        if found.get(card.card_id)
    )


async def _ask(
    cards: Sequence[Card],
    count: int,
    teacher: Teacher,
    name: str,
    retells: Callable[[str], bool],
) -> CardWordings:
    known = {card.card_id: card for card in cards}
    shown = []
    for card in cards:
        told = (
            fenced("problem", neutral(example.problem)) for example in card.examples
        )
        shown.append("\n".join((fenced("card", card_text(card)), *told)))
    user = "\n\n".join((*shown, f"Write {count} wordings for each of these cards."))
    reading = await teacher.ask(
        name,
        instructions("wordings"),
        user,
        lambda reply: read_wordings(reply, known, count),
    )
    found = {
        card: tuple(line for line in lines if not retells(line))
        for card, lines in reading.found.items()
    }
    refused = sum(
        len(lines) - len(found[card]) for card, lines in reading.found.items()
    )
    return CardWordings(wordings=found, refused=refused)


def read_wordings(
    reply: str, known: Mapping[str, Card], count: int
) -> Reading[tuple[str, ...]]:
    """The wordings of a reply by card. A card with fewer than half of those asked for is asked for again."""

    def make(block: Block) -> tuple[str, ...]:
        name = block.fields["id"]
        if name == EXAMPLE_ID or name not in known:
            raise ValueError(NOT_SHOWN)
        lines = tuple(
            dict.fromkeys(
                line.strip() for line in block.text.split("\n") if line.strip()
            )
        )[:count]
        if long := next((line for line in lines if len(line) > MAX_LINE), None):
            raise ValueError(
                f"the wording {long[:40]!r} is longer than {MAX_LINE} characters"
            )
        if 2 * len(lines) < count:
            raise ValueError(
                f"it holds {len(lines)} wordings, and {count} are asked for"
            )
        known[name].worded(lines)  # raises where a line cannot be part of a card
        return lines

    return read_each(reply, WORDINGS, make).expecting(
        known, "there are no wordings for this card"
    )
