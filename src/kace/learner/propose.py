"""FindKnowledge: from what a cell got wrong to cards that may prevent it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kace.learner.blocks import BadBlock, Block, Grammar, read_blocks, read_numbers
from kace.learner.cell import Cell
from kace.learner.failure import Failure, WrongAttempt
from kace.learner.teacher import Reading, Teacher
from kace.learner.verdicts import Proposals, Refused
from kace.redact import one_line
from kace.retrieval.fence import fenced, neutral, quoted_line, shortened
from kace.retrieval.prompt import template
from kace.solver.tiers import TierName
from kace.tree.card import Card, CardError, Difficulty, card_of

EXAMPLE_ID = "RUBRIC_TEA_FOR_GUESTS"
"""The card that the prompt shows the form with."""
MAX_PROBLEM_CHARS = 6_000
FOREIGN_SHARE = 0.2
"""Of a card's letters, those in a script that nothing shown was written in. More, and the solver cannot read it."""

CARD = Grammar(
    "card",
    name="id",
    required=("id", "payload"),
    optional=("difficulty", "domains", "problems", "routing"),
    text="payload",
)
_COMMON = ("LATIN", "GREEK", "MATHEMATICAL")

Screen = Callable[[Card], Refused | None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What every teacher request of a step shares."""

    teacher: Teacher
    name: str
    """Of the step; also names its request."""
    epoch: int
    cards_per_problem: int = 2
    screen: Screen = lambda card: None
    """What code holds against a card. The teacher hears of it once, and may mend the card."""


@dataclass(frozen=True, slots=True)
class Mould:
    """What a card block is completed with, and held against, to become a card."""

    cell: Cell
    lesson: Lesson
    shown: tuple[str, ...]
    """The texts the teacher was shown."""
    labels: tuple[str, ...] = ()
    """The numbered problems; none where a card needs no problem to support it."""
    unfit: dict[tuple[str, str], Refused] = field(default_factory=dict)
    """What code refused, by the card's id and the reason the teacher was given."""


async def find_knowledge(cell: Cell, failed: Sequence[Failure], known: Sequence[Card], lesson: Lesson) -> Proposals:
    """Ask for cards against the first mistake of each failed problem. What cannot be a card is listed with its reason.

    `known` are the cards already at the cell. Nothing failed: nothing is asked.
    """
    if not failed:
        return Proposals()
    quota = lesson.cards_per_problem * len(failed)
    labels = tuple(one_line(failure.problem.name) for failure in failed)
    mould = Mould(cell, lesson, tuple(failure.problem.text for failure in failed), labels)
    user = "\n\n".join(
        (
            place(cell),
            _listed("Cards already there", known),
            *(_failure(number, failure) for number, failure in enumerate(failed, 1)),
            f"Write at most {quota} cards, at most {lesson.cards_per_problem} for a problem.",
        )
    )
    reading = await lesson.teacher.ask(lesson.name, system("propose"), user, lambda reply: read_cards(reply, mould))
    return proposals(reading, quota, mould)


def system(kind: str) -> str:
    """What all requests of one kind share, first in the prompt so that prefix caches hold it."""
    return "\n\n".join(template(f"teacher/{name}") for name in ("preface", "cards", kind))


def place(cell: Cell) -> str:
    """Where the cards of a request belong."""
    return f"Domain: {neutral(cell.domain)}\nDifficulty: {cell.difficulty.value}, or universal"


def read_cards(reply: str, mould: Mould) -> Reading[Card]:
    """The cards of a reply, each through every rule of the card type."""
    blocks, bad = read_blocks(reply, CARD)
    cards: dict[str, Card] = {}
    refused = list(bad)
    for block in blocks:
        name = block.fields["id"]
        try:
            card = _card(block, mould)
            if unfit := mould.lesson.screen(card):
                mould.unfit[name, unfit.reason] = unfit
                refused.append(BadBlock.of(block, name, unfit.reason))
            else:
                cards[name] = card
        except CardError as error:
            what = error.message.removeprefix(f"card {name[:64]!r}: ")
            refused.append(BadBlock.of(block, name, f"{what}; {error.fix}"))
        except ValueError as error:
            refused.append(BadBlock.of(block, name, str(error)))
    return Reading(cards, tuple(sorted(refused, key=lambda bad: bad.line)))


def proposals(reading: Reading[Card], quota: int, mould: Mould) -> Proposals:
    """The cards within the quota, the first ones, and everything else with its reason."""
    cards = tuple(reading.found.values())
    over = f"the request allowed {quota} cards, and {len(cards)} came"
    return Proposals(
        cards=cards[:quota],
        refused=(
            *(mould.unfit.get((bad.name, bad.reason)) or malformed(bad) for bad in reading.bad),
            *(Refused(card_id=c.card_id, by="code", rule="over_quota", reason=over) for c in cards[quota:]),
        ),
    )


def _card(block: Block, mould: Mould) -> Card:
    fields = block.fields
    if fields["id"] == EXAMPLE_ID:
        raise ValueError("it is the example of the form, not a card")
    if _foreign(block.text, mould.shown):
        raise ValueError("it is in another language than the problems; write it in theirs")
    own = mould.cell.difficulty
    difficulty = fields.get("difficulty", "").lower() or own.value
    if difficulty not in (own.value, Difficulty.UNIVERSAL.value):
        raise ValueError(f"the difficulty here is {own.value} or universal, not {one_line(difficulty, 20)!r}")
    numbers = read_numbers(fields.get("problems", ""), len(mould.labels)) if mould.labels else ()
    if mould.labels and not numbers:
        raise ValueError("the field problems is missing: name the problems this rule would have saved")
    return card_of(
        {
            "card_id": fields["id"],
            "payload": block.text,
            "routing_conditions": [part.strip() for part in fields.get("routing", "").split(";") if part.strip()],
            "difficulty_tag": difficulty,
            "domain_tags": fields.get("domains", "").replace(",", " ").split() or [mould.cell.domain],
            "helpfulness_score": 0.0,
            "provenance": {
                "source": mould.lesson.teacher.source,
                "supporting_problems": [mould.labels[number - 1] for number in numbers],
                "epoch_introduced": mould.lesson.epoch,
            },
        }
    )


def _foreign(text: str, shown: Sequence[str]) -> bool:
    letters = [_script(char) for char in text if char.isalpha()]
    read = {*_COMMON, *(_script(char) for seen in shown for char in set(seen) if char.isalpha())}
    return sum(script not in read for script in letters) > FOREIGN_SHARE * len(letters)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNNAMED").split()[0]


def malformed(bad: BadBlock) -> Refused:
    """A block that the reader could not use, as the report lists it."""
    reason = f"{bad.reason} (it reads: {bad.excerpt})" if bad.excerpt else bad.reason
    return Refused(card_id=bad.name, by="parser", rule="bad_block", reason=reason)


def _failure(number: int, failure: Failure) -> str:
    read = "; ".join(
        f"{tier.value} {', '.join(failure.shown[tier]) or 'none'}" for tier in TierName if tier in failure.shown
    )
    return "\n".join(
        (
            f"## Problem {number}",
            fenced("problem", shortened(failure.problem.text, MAX_PROBLEM_CHARS)),
            f"Expected answer: {quoted_line(failure.problem.answer or 'not known')}",
            f"Exit: {failure.exit}. Cards read: {read or 'none'}.",
            *(_attempt(attempt) for attempt in failure.attempts),
        )
    )


def _attempt(attempt: WrongAttempt) -> str:
    answered = f"answered {quoted_line(attempt.answer)}" if attempt.answer else "gave no answer"
    return f"Wrong attempt {attempt.index + 1} at {attempt.tier.value} {answered}. It ends:\n" + fenced(
        "attempt", attempt.tail or "(no text)"
    )


def _listed(title: str, cards: Sequence[Card]) -> str:
    lines = [f"- {card.card_id}: {neutral(next(iter(card.triggers), ''))}" for card in cards]
    return "\n".join((f"{title}:", *(lines or ["none"])))
