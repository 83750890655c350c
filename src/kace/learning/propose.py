"""Ask the teacher for cards: from failures (`FindKnowledge`), or from imagination."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from kace.cards.card import Card, Difficulty, Provenance, cut_triggers
from kace.errors import one_line
from kace.ladder.prompt import card_block, neutral
from kace.learning import StepResult
from kace.learning.teacher import (
    Block,
    CardRefusal,
    FailedProblem,
    Grammar,
    Reading,
    TeacherStep,
    TreeCell,
    format_attempt,
    format_problem,
    instructions,
    read_each,
    read_numbers,
)

# The card that the prompt shows the form with.
EXAMPLE_ID = "RUBRIC_TEA_FOR_GUESTS"
MAX_PROBLEM_CHARS = 6_000
CARD = Grammar(
    "card",
    "id",
    ("id", "payload"),
    text="payload",
)


T = TypeVar("T")


class Proposals(StepResult):
    """The cards that a step leaves, and what was refused."""

    cards: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()


class CardRequest(NamedTuple):
    """What a card block is completed with and checked against."""

    cell: TreeCell
    context: TeacherStep
    labels: tuple[str, ...] = ()
    """The names of the problems; none if a card needs no support."""


def split(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in parts of at most `most`. No items are one empty part."""
    starts = range(0, max(1, len(items)), most)
    return [items[start : start + most] for start in starts]


async def find_knowledge(
    cell: TreeCell,
    failed: Sequence[FailedProblem],
    known: Sequence[Card],
    context: TeacherStep,
    gaps: Sequence[str] = (),
) -> Proposals:
    """Ask for cards against the first mistake of each failed problem.

    `known` are the cards already at the cell, and `gaps` what its curator found that no
    card covers.
    """
    lines = ["Cards already there:"]
    for card in known:
        trigger = next(iter(card.triggers), "")
        lines.append(f"- {card.card_id}: {neutral(trigger)}")
    if not known:
        lines.append("none")
    if gaps:
        lines.append("Gaps that no card covers:")
    for gap in gaps:
        lines.append(f"- {neutral(gap)}")
    parts = ["\n".join(lines)]
    for number, failure in enumerate(failed, 1):
        parts.append(format_failure(number, failure))
    labels = tuple(one_line(failure.problem.name) for failure in failed)
    request = CardRequest(cell, context, labels)
    return await _ask("propose", request, parts, len(failed), "for a problem")


async def imagine(
    cell: TreeCell, cards: Sequence[Card], context: TeacherStep
) -> Proposals:
    """Ask what else an expert finds obvious beside the cell's cards.

    Such cards rest on no problem.
    """
    request = CardRequest(cell, context)
    beside = "beside each of these"
    return await _ask(
        "imagine", request, [card_block(cards)], len(cards), beside
    )


def read_cards(reply: str, request: CardRequest) -> Reading[Card]:
    """Return the cards of a reply, each checked by the card type and the screen."""
    return read_each(reply, CARD, partial(_read_card, request))


async def _ask(
    kind: str,
    request: CardRequest,
    shown: Sequence[str],
    sources: int,
    each: str,
) -> Proposals:
    """Return the first cards within the quota of one request, and what was refused."""
    cell = request.cell
    context = request.context
    place = (
        f"Domain: {neutral(cell.domain)}\nDifficulty: {cell.difficulty.value}"
    )
    quota = context.cards_per_problem * sources
    limit = f"Write at most {quota} cards, at most {context.cards_per_problem} {each}."
    reading = await context.teacher.ask(
        context.name,
        instructions("cards", kind),
        (f"{place}, or universal", *shown, limit),
        lambda reply: read_cards(reply, request),
    )
    cards = tuple(reading.found.values())
    refused = list(reading.bad)
    for card in cards[quota:]:
        over = f"the request allowed {quota} cards, and {len(cards)} came"
        refused.append(
            CardRefusal(
                card_id=card.card_id, by="code", rule="over_quota", reason=over
            )
        )
    return Proposals(cards=cards[:quota], refused=tuple(refused))


def _read_card(request: CardRequest, block: Block) -> Card | CardRefusal:
    """Return the card of a block, if the screen lets it pass.

    A trigger that is too long is cut: another round with the teacher costs more.
    """
    own = request.cell.difficulty
    if block["id"] == EXAMPLE_ID:
        raise ValueError("it is the example of the form, not a card")
    difficulty = block.get("difficulty", "").lower() or own
    if difficulty not in (own, Difficulty.UNIVERSAL):
        given = one_line(difficulty, 20)
        raise ValueError(
            f"the difficulty here is {own.value} or universal, not {given!r}"
        )
    supporting = []
    if request.labels:
        value = block.get("problems", "")
        for number in read_numbers(value, len(request.labels)):
            supporting.append(request.labels[number - 1])
        if not supporting:
            raise ValueError(
                "the field problems is missing: name the problems this rule would "
                "have saved"
            )
    card = Card(
        card_id=block["id"],
        payload=cut_triggers(block["payload"]),
        routing_conditions=read_clauses(block.get("routing", "")),
        difficulty_tag=Difficulty(difficulty),
        domain_tags=read_names(block.get("domains", ""))
        or (request.cell.domain,),
        helpfulness_score=0.0,
        provenance=Provenance(
            source=request.context.teacher.source,
            supporting_problems=tuple(supporting),
            epoch_introduced=request.context.epoch,
        ),
    )
    return request.context.screen(card) or card


def read_clauses(value: str) -> tuple[str, ...]:
    """Return the clauses of the field `routing`."""
    return tuple(filter(None, map(str.strip, value.split(";"))))


def read_names(value: str) -> tuple[str, ...]:
    """Return the names of the field `domains`."""
    return tuple(value.replace(",", " ").split())


def format_failure(
    number: int, failure: FailedProblem, label: str = "", tail: int = 0
) -> str:
    """Return a failed problem, the cards read, and how its wrong attempts end."""
    record = failure.record
    read = []
    for recall in record.recalls:
        cards = ", ".join(recall.cards) or "none"
        read.append(f"{recall.tier.value} {cards}")
    shown = "; ".join(read) or "none"
    problem = format_problem(number, failure.problem, MAX_PROBLEM_CHARS, label)
    parts = [problem, f"Exit: {record.exit_name}. Cards read: {shown}."]
    for attempt in failure.attempts:
        title = f"Wrong attempt {attempt.index + 1} at {attempt.tier.value}"
        parts.append(format_attempt(title, attempt, tail))
    return "\n".join(parts)
