"""FindKnowledge: from what a cell got wrong to cards that may prevent it, and imagination beside them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from kace.cards.card import Card, Difficulty, card_of
from kace.errors import one_line
from kace.ladder.prompt import card_block, fenced, neutral, quoted_line, shortened
from kace.ladder.record import Attempt, Solution
from kace.ladder.tiers import ExitPath, TierName
from kace.learning.blocks import Block, CardRefusal, Grammar, read_numbers
from kace.learning.steps import Kept
from kace.learning.teacher import Reading, Teacher, instructions, read_each
from kace.problems import Problem

EXAMPLE_ID = "RUBRIC_TEA_FOR_GUESTS"  # the card that the prompt shows the form with
MAX_PROBLEM_CHARS = 6_000
FAILURES_AT_ONCE = 50
"""Failed problems of one request: with their attempts as much as a teacher takes in, and room for a reply on all."""
TAIL_CHARS = 1_500  # what is shown of a wrong attempt: its end, where it commits itself
FOREIGN_SHARE = 0.2
"""Of a card's letters, those in a script that nothing shown was written in. More, and the solver cannot read it."""
CARD = Grammar(
    "card",
    "id",
    ("id", "payload"),
    ("difficulty", "domains", "problems", "routing"),
    text="payload",
)
_COMMON_SCRIPTS = ("LATIN", "GREEK", "MATHEMATICAL")

T = TypeVar("T")
Screen = Callable[[Card], CardRefusal | None]
TextOf = Callable[[Attempt], str]


class TreeCell(NamedTuple):
    """A cell of the tree as the learner fills it: what one tier reads in one domain."""

    tier: TierName
    domain: str

    @property
    def difficulty(self) -> Difficulty:
        """The difficulty of the cards that only this tier reads."""
        return {TierName.MS: Difficulty.MEDIUM, TierName.HS: Difficulty.HARD}[self.tier]

    def new_card(
        self,
        card_id: str,
        payload: str,
        provenance: Mapping[str, object],
        **given: object,
    ) -> Card:
        """A card of this cell that nobody has measured; raises `CardError` where it breaks a rule of cards."""
        record = {
            "card_id": card_id,
            "payload": payload,
            "routing_conditions": [],
            "difficulty_tag": self.difficulty.value,
            "domain_tags": [self.domain],
            "helpfulness_score": 0.0,
            "provenance": provenance,
        }
        return card_of({**record, **given})

    def __str__(self) -> str:
        return f"{self.tier.value} {self.domain}"


@dataclass(frozen=True, slots=True)
class WrongAttempt:
    """An attempt that did not give the expected answer."""

    tier: TierName
    index: int
    answer: str | None
    tail: str


class FailedProblem(NamedTuple):
    """A training problem that a tier did not deliver, and the ids of the cards each tier was shown."""

    problem: Problem
    exit: str
    attempts: tuple[WrongAttempt, ...]
    shown: Mapping[TierName, tuple[str, ...]]

    @classmethod
    def of(
        cls, record: Solution, problem: Problem, tier: TierName, text_of: TextOf
    ) -> FailedProblem:
        """A failure with the tier's attempts that lack the expected answer."""
        wrong = (a for a in record.attempts if a.tier is tier and not a.correct)
        attempts = tuple(
            WrongAttempt(tier, a.index, a.answer, text_of(a)[-TAIL_CHARS:])
            for a in wrong
        )
        return cls(
            problem,
            record.exit_name,
            attempts,
            {recall.tier: recall.cards for recall in record.recalls},
        )

    @property
    def outcome(self) -> str:
        """Where the problem left the ladder, and which cards were read on the way."""
        read = "; ".join(
            f"{t.value} {', '.join(self.shown[t]) or 'none'}"
            for t in TierName
            if t in self.shown
        )
        return f"Exit: {self.exit}. Cards read: {read or 'none'}."


class Proposals(Kept):
    """Cards that a teacher's reply held, and blocks that held none."""

    cards: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()


class AdmissionContext(NamedTuple):
    """What every teacher request of a step shares, and what its cards are held against."""

    teacher: Teacher
    name: str  # of the step; also names its request
    epoch: int
    screen: Screen  # what code holds against a card; the teacher hears of it once, and may mend the card
    cards_per_problem: int = 2


class CardSpec(NamedTuple):
    """What a card block is completed with, and held against, to become a card: also the texts the teacher was shown."""

    cell: TreeCell
    context: AdmissionContext
    shown: tuple[str, ...]
    labels: tuple[
        str, ...
    ] = ()  # the numbered problems; none where a card needs no problem to support it


def failures(
    records: Iterable[Solution],
    problems: Mapping[str, Problem],
    cell: TreeCell,
    text_of: TextOf,
) -> tuple[FailedProblem, ...]:
    """The problems of a cell that reached its tier without the tier delivering the right answer.

    A problem that left at ES is beyond the tree's reach, right or wrong: ES reads no card.
    """
    found = []
    for record in (record for record in records if cell.domain in record.domains):
        reached = [a.tier for a in record.attempts]
        if cell.tier in reached and not (reached[-1] is cell.tier and record.correct):
            found.append(
                FailedProblem.of(record, problems[record.problem], cell.tier, text_of)
            )
    return tuple(found)


def split(things: Sequence[T], most: int) -> list[Sequence[T]]:
    """The things in parts of about the same size, none larger than `most`; one empty part where there are none."""
    size = math.ceil(len(things) / max(1, math.ceil(len(things) / most))) or 1
    return [
        things[start : start + size] for start in range(0, max(1, len(things)), size)
    ]


def wrong_at_es(record: Solution) -> bool:
    """Whether ES left with a wrong answer that both attempts gave: no tree can mend the problem itself."""
    return record.exit is ExitPath.ES_UNANIMOUS and record.correct is False


async def find_knowledge(
    cell: TreeCell,
    failed: Sequence[FailedProblem],
    known: Sequence[Card],
    context: AdmissionContext,
) -> Proposals:
    """Ask for cards against the first mistake of each failed problem. What cannot be a card is listed with its reason.

    `known` are the cards already at the cell. Nothing failed: nothing is asked.
    """
    if not failed:
        return Proposals()
    labels = tuple(one_line(failure.problem.name) for failure in failed)
    spec = CardSpec(
        cell, context, tuple(failure.problem.text for failure in failed), labels
    )
    listed = [
        f"- {card.card_id}: {neutral(next(iter(card.triggers), ''))}" for card in known
    ]
    there = "\n".join(("Cards already there:", *(listed or ["none"])))
    shown = "\n\n".join(
        (
            there,
            *(_failure(number, failure) for number, failure in enumerate(failed, 1)),
        )
    )
    return await _ask("propose", spec, shown, len(failed), "for a problem")


async def imagine(
    cell: TreeCell, cards: Sequence[Card], context: AdmissionContext
) -> Proposals:
    """Ask what else an expert finds obvious beside the cell's cards. Such cards rest on no problem, and say so."""
    if not cards:
        return Proposals()
    spec = CardSpec(cell, context, tuple(card.payload for card in cards))
    return await _ask(
        "imagine", spec, card_block(cards), len(cards), "beside each of these"
    )


def place(cell: TreeCell) -> str:
    """Where the cards of a request belong."""
    return f"Domain: {neutral(cell.domain)}\nDifficulty: {cell.difficulty.value}, or universal"


def numbered(
    number: int,
    problem: Problem,
    limit: int,
    label: str = "",
    unknown: str = "not known",
) -> str:
    """A problem with its answer as the teacher is shown it, under a number."""
    text = fenced("problem", shortened(problem.text, limit))
    return f"## Problem {number}{label}\n{text}\nExpected answer: {quoted_line(problem.answer or unknown)}"


def read_cards(reply: str, spec: CardSpec) -> Reading[Card]:
    """The cards of a reply, each through every rule of the card type and of the screen."""

    def make(block: Block) -> Card | CardRefusal:
        card = _card(block, spec)
        return spec.context.screen(card) or card

    reading = read_each(reply, CARD, make)
    return replace(reading, bad=tuple(sorted(reading.bad, key=lambda bad: bad.line)))


async def _ask(
    kind: str, spec: CardSpec, shown: str, sources: int, each: str
) -> Proposals:
    """The cards of one request within its quota, the first ones, and everything else with its reason."""
    context = spec.context
    quota = context.cards_per_problem * sources
    asked = f"Write at most {quota} cards, at most {context.cards_per_problem} {each}."
    user = "\n\n".join((place(spec.cell), shown, asked))
    system = instructions("cards", kind)
    reading = await context.teacher.ask(
        context.name, system, user, lambda reply: read_cards(reply, spec)
    )
    cards = tuple(reading.found.values())
    over = f"the request allowed {quota} cards, and {len(cards)} came"
    refused = [bad.refusal() for bad in reading.bad]
    refused += [
        CardRefusal.by_code(card.card_id, "over_quota", over) for card in cards[quota:]
    ]
    return Proposals(cards=cards[:quota], refused=tuple(refused))


def _card(block: Block, spec: CardSpec) -> Card:
    fields = block.fields
    labels = spec.labels
    own = spec.cell.difficulty.value
    if fields["id"] == EXAMPLE_ID:
        raise ValueError("it is the example of the form, not a card")
    if _foreign(block.text, spec.shown):
        raise ValueError(
            "it is in another language than the problems; write it in theirs"
        )
    difficulty = fields.get("difficulty", "").lower() or own
    if difficulty not in (own, Difficulty.UNIVERSAL.value):
        raise ValueError(
            f"the difficulty here is {own} or universal, not {one_line(difficulty, 20)!r}"
        )
    numbers = read_numbers(fields.get("problems", ""), len(labels)) if labels else ()
    if labels and not numbers:
        raise ValueError(
            "the field problems is missing: name the problems this rule would have saved"
        )
    provenance = {
        "source": spec.context.teacher.source,
        "supporting_problems": [labels[number - 1] for number in numbers],
        "epoch_introduced": spec.context.epoch,
    }
    return spec.cell.new_card(
        fields["id"],
        block.text,
        provenance,
        routing_conditions=[
            part.strip()
            for part in fields.get("routing", "").split(";")
            if part.strip()
        ],
        difficulty_tag=difficulty,
        domain_tags=fields.get("domains", "").replace(",", " ").split()
        or [spec.cell.domain],
    )


def _foreign(text: str, shown: Sequence[str]) -> bool:
    def scripts(letters: Iterable[str]) -> list[str]:
        return [
            unicodedata.name(char, "UNNAMED").split()[0]
            for char in letters
            if char.isalpha()
        ]

    written = scripts(text)
    read = {*_COMMON_SCRIPTS, *scripts(set("".join(shown)))}
    return sum(script not in read for script in written) > FOREIGN_SHARE * len(written)


def _failure(number: int, failure: FailedProblem) -> str:
    lines = [numbered(number, failure.problem, MAX_PROBLEM_CHARS), failure.outcome]
    for attempt in failure.attempts:
        answered = (
            f"answered {quoted_line(attempt.answer)}"
            if attempt.answer
            else "gave no answer"
        )
        lines.append(
            f"Wrong attempt {attempt.index + 1} at {attempt.tier.value} {answered}. It ends:"
        )
        lines.append(fenced("attempt", attempt.tail or "(no text)"))
    return "\n".join(lines)
