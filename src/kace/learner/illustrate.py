"""Illustrate: worked examples for cards, which a solver is shown as turns of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kace.answers.extract import last_boxed
from kace.learner.blocks import BadBlock, Block, Grammar, read_blocks
from kace.learner.propose import EXAMPLE_ID, Lesson, malformed
from kace.learner.teacher import Reading
from kace.learner.verdicts import Kept, Refused
from kace.problem import Problem
from kace.retrieval.fence import fenced, neutral, shortened
from kace.retrieval.prompt import card_text, template
from kace.tree.card import Card, CardError
from kace.tree.card_text import EXAMPLE, Example, read_example

MAX_SHOWN = 2
"""Problems that a card came from, as the teacher sees them."""
MAX_PROBLEM_CHARS = 1_000

EXAMPLES = Grammar("example", name="id", required=("id", "text"), text="text")


class Illustrated(Kept):
    """Cards after their examples were asked for, and the examples that could not be used."""

    cards: tuple[Card, ...] = ()
    refused: tuple[Refused, ...] = ()


async def illustrate(cards: Sequence[Card], count: int, problems: Mapping[str, Problem], lesson: Lesson) -> Illustrated:
    """Ask for `count` examples of each card in one request. A card whose examples code refuses stays without.

    `problems` are the training problems by the names that cards know them by.
    """
    if not cards:
        return Illustrated()
    known = {card.card_id: card for card in cards}
    each = "one example" if count == 1 else f"{count} examples, each with a story of its own,"
    user = "\n\n".join((*(_shown(card, problems) for card in cards), f"Write {each} for each of these cards."))
    reading = await lesson.teacher.ask(
        lesson.name, system(), user, lambda reply: read_examples(reply, known, count, lesson)
    )
    return Illustrated(
        cards=tuple(reading.found.get(card.card_id, card) for card in cards),
        refused=tuple(malformed(bad) for bad in reading.bad),
    )


def system() -> str:
    """What all requests for examples share."""
    return "\n\n".join(template(f"teacher/{name}") for name in ("preface", "illustrate"))


def read_examples(reply: str, known: Mapping[str, Card], count: int, lesson: Lesson) -> Reading[Card]:
    """The cards of a reply with their examples; a card without any is listed, so that it is asked for again."""
    blocks, bad = read_blocks(reply, EXAMPLES)
    found: dict[str, Card] = {}
    wrong = list(bad)
    for block in blocks:
        name = block.fields["id"]
        try:
            found[name] = _illustrated(block, known, count, lesson)
        except CardError as error:
            wrong.append(BadBlock.of(block, name, f"{error.message}; {error.fix}"))
        except ValueError as error:
            wrong.append(BadBlock.of(block, name, str(error)))
    listed = {each.name for each in wrong}
    missing = [name for name in known if name not in found and name not in listed]
    wrong += [BadBlock("example", 0, name, "there is no example for this card", "") for name in missing]
    return Reading(found, tuple(wrong))


def _illustrated(block: Block, known: Mapping[str, Card], count: int, lesson: Lesson) -> Card:
    name = block.fields["id"]
    if name == EXAMPLE_ID or name not in known:
        raise ValueError("no card of that id was shown; copy the id between the square brackets")
    parts = [part for part in f"\n{block.text}\n".split(f"\n{EXAMPLE}\n") if part.strip()]
    if len(parts) != count:
        raise ValueError(f"it holds {len(parts)} examples, and {count} are asked for")
    card = known[name].illustrated(tuple(map(_example, parts)))
    if unfit := lesson.screen(card):
        raise ValueError(unfit.reason)
    return card


def _example(text: str) -> Example:
    example = read_example(text)
    if example is None:
        raise ValueError("an example is a problem, a line `Worked:` and a solution")
    if not last_boxed(example.worked):
        raise ValueError(r"the solution does not end with its answer in \boxed{}")
    return example


def _shown(card: Card, problems: Mapping[str, Problem]) -> str:
    support = [problems[name] for name in card.provenance.supporting_problems if name in problems][:MAX_SHOWN]
    told = (neutral(shortened(problem.text, MAX_PROBLEM_CHARS)) for problem in support)
    return "\n".join((fenced("card", card_text(card)), *(fenced("problem", text) for text in told)))
