"""Ask the teacher for cards: from failures, from imagination, or from worked solutions.

`FindKnowledge` of the paper is `find_knowledge`. `propose_solved` needs no teacher: it
makes cards of the training set's own worked solutions (`--teacher solutions`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from kace.answers.extract import last_boxed
from kace.cards.card import (
    EXAMPLE_LINES,
    SNAKE,
    Card,
    CardError,
    Difficulty,
    Example,
    line_count,
    with_examples,
)
from kace.cards.tree import RESERVED, Domain
from kace.config import Config
from kace.errors import DataError, UsageError, one_line
from kace.ladder.prompt import card_block, fenced, neutral, quoted_line
from kace.ladder.record import Solution
from kace.ladder.relevance import vocabulary, weight
from kace.ladder.retrieve import MAX_SIGNAL_CHARS
from kace.ladder.tiers import ExitPath
from kace.learning import StepResult
from kace.learning.study import Settings
from kace.learning.teacher import (
    SOLUTIONS,
    Block,
    CardRefusal,
    FailedProblem,
    Grammar,
    Partition,
    Reading,
    TeacherStep,
    TreeCell,
    format_problem,
    instructions,
    read_each,
    read_numbers,
)
from kace.problems import Problem

EXAMPLE_ID = (
    "RUBRIC_TEA_FOR_GUESTS"  # the card that the prompt shows the form with
)
NOT_SHOWN = (
    "no card of that id was shown; copy the id between the square brackets"
)
MAX_PROBLEM_CHARS = 6_000
FAILURES_AT_ONCE = 50
"""Failed problems of one request: as much as a teacher takes in, with room to reply."""
CARD = Grammar(
    "card",
    "id",
    ("id", "payload"),
    ("difficulty", "domains", "problems", "routing"),
    text="payload",
)

T = TypeVar("T")


class Proposals(StepResult):
    """The cards of a teacher's reply, and the blocks that held none."""

    cards: tuple[Card, ...] = ()
    refused: tuple[CardRefusal, ...] = ()

    @property
    def summary(self) -> str:
        """Return the number of cards."""
        unusable = f", {len(self.refused)} unusable" if self.refused else ""
        return f"{len(self.cards)} cards{unusable}"


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


def wrong_at_es(record: Solution) -> bool:
    """Whether both ES attempts gave the same wrong answer: no card can mend that."""
    return record.exit is ExitPath.ES_UNANIMOUS and record.correct is False


async def find_knowledge(
    cell: TreeCell,
    failed: Sequence[FailedProblem],
    known: Sequence[Card],
    context: TeacherStep,
) -> Proposals:
    """Ask for cards against the first mistake of each failed problem.

    `known` are the cards already at the cell. Without failures nothing is asked.
    """
    if not failed:
        return Proposals()
    lines = ["Cards already there:"]
    for card in known:
        trigger = next(iter(card.triggers), "")
        lines.append(f"- {card.card_id}: {neutral(trigger)}")
    if not known:
        lines.append("none")
    parts = ["\n".join(lines)]
    for number, failure in enumerate(failed, 1):
        parts.append(_format_failure(number, failure))
    request = CardRequest(
        cell,
        context,
        labels=tuple(one_line(failure.problem.name) for failure in failed),
    )
    shown = "\n\n".join(parts)
    return await _ask("propose", request, shown, len(failed), "for a problem")


async def imagine(
    cell: TreeCell, cards: Sequence[Card], context: TeacherStep
) -> Proposals:
    """Ask what else an expert finds obvious beside the cell's cards.

    Such cards rest on no problem.
    """
    if not cards:
        return Proposals()
    request = CardRequest(cell, context)
    shown = card_block(cards)
    return await _ask(
        "imagine", request, shown, len(cards), "beside each of these"
    )


def place(cell: TreeCell) -> str:
    """Return where the cards of a request belong."""
    difficulty = f"Difficulty: {cell.difficulty.value}, or universal"
    return f"Domain: {neutral(cell.domain)}\n{difficulty}"


def read_cards(reply: str, request: CardRequest) -> Reading[Card]:
    """Return the cards of a reply, each checked by the card type and the screen."""

    def make(block: Block) -> Card | CardRefusal:
        card = _read_card(block, request)
        return request.context.screen(card) or card

    return read_each(reply, CARD, make)


async def _ask(
    kind: str, request: CardRequest, shown: str, sources: int, each: str
) -> Proposals:
    """Return the first cards within the quota of one request, and what was refused."""
    context = request.context
    quota = context.cards_per_problem * sources
    limit = f"Write at most {quota} cards, at most {context.cards_per_problem} {each}."
    reading = await context.teacher.ask(
        context.name,
        instructions("cards", kind),
        "\n\n".join((place(request.cell), shown, limit)),
        lambda reply: read_cards(reply, request),
    )
    cards = tuple(reading.found.values())
    refused = [bad.refusal() for bad in reading.bad]
    for card in cards[quota:]:
        over = f"the request allowed {quota} cards, and {len(cards)} came"
        refused.append(CardRefusal.by_code(card.card_id, "over_quota", over))
    return Proposals(cards=cards[:quota], refused=tuple(refused))


def _read_card(block: Block, request: CardRequest) -> Card:
    fields = block.fields
    labels = request.labels
    own = request.cell.difficulty.value
    if fields["id"] == EXAMPLE_ID:
        raise ValueError("it is the example of the form, not a card")
    difficulty = fields.get("difficulty", "").lower() or own
    if difficulty not in (own, Difficulty.UNIVERSAL.value):
        given = one_line(difficulty, 20)
        raise ValueError(
            f"the difficulty here is {own} or universal, not {given!r}"
        )
    supporting = []
    if labels:
        for number in read_numbers(fields.get("problems", ""), len(labels)):
            supporting.append(labels[number - 1])
        if not supporting:
            raise ValueError(
                "the field problems is missing: name the problems this rule would have "
                "saved"
            )
    provenance = {
        "source": request.context.teacher.source,
        "supporting_problems": supporting,
        "epoch_introduced": request.context.epoch,
    }
    clauses = map(str.strip, fields.get("routing", "").split(";"))
    domains = fields.get("domains", "").replace(",", " ").split()
    return request.cell.new_card(
        fields["id"],
        block.text,
        provenance,
        routing_conditions=list(filter(None, clauses)),
        difficulty_tag=difficulty,
        domain_tags=domains or [request.cell.domain],
    )


def _format_failure(number: int, failure: FailedProblem) -> str:
    problem = format_problem(number, failure.problem, MAX_PROBLEM_CHARS)
    lines = [problem, failure.outcome]
    for attempt in failure.attempts:
        answered = "gave no answer"
        if attempt.answer:
            answered = f"answered {quoted_line(attempt.answer)}"
        where = f"Wrong attempt {attempt.index + 1} at {attempt.tier.value}"
        lines.append(f"{where} {answered}. It ends:")
        lines.append(fenced("attempt", attempt.tail or "(no text)"))
    return "\n".join(lines)


# `--teacher solutions`: cards without a model. Failed problems that share words that few
# everyday problems use make one card. Its triggers are those words, its demonstrations
# the problems with their solutions.

NO_CALLS = "no teacher call is made: cards come from the training set's own worked solutions"
ONE_KIND = 0.45
"""The least cosine of two problems' weighted words that makes them one kind."""
TRIGGERS = 3
SIGNALS = 40  # training problems that a domain is known by
WHOLE = "mathematics"


def untaught_settings(config: Config, settings: Settings) -> Settings:
    """Return the settings as far as this teacher can follow them.

    It neither curates nor imagines, and can only demonstrate. It retells training
    problems, which may be as near to held-out ones as the data has them.
    """
    if config.retrieval.placement != "demonstrations" or not settings.examples:
        raise UsageError(
            "--teacher solutions writes demonstrations, and these settings show none",
            fix="--set placement=demonstrations --set examples=2, as by default",
        )
    update = {"refine": 0, "imagine": False, "max_overlap": 1.0}
    return settings.model_copy(update=update)


def partition_by_label(train: Sequence[Problem]) -> Partition:
    """Return the gold domains of the data if every problem has one, else one for all."""
    if not any(problem.solution for problem in train):
        raise DataError(
            "no training problem has a worked solution",
            fix="add the field 'solution', or name a teacher",
        )
    labels = []
    for problem in train:
        label = re.sub(
            r"[^a-z0-9]+", "_", (problem.domain or "").lower()
        ).strip("_")
        labels.append(label)
    if not all(map(_is_domain_name, labels)):
        labels = [WHOLE] * len(train)
    held: dict[str, list[str]] = {}
    for label, problem in zip(labels, train, strict=True):
        held.setdefault(label, []).append(
            one_line(problem.text, MAX_SIGNAL_CHARS)
        )
    domains = []
    for name, texts in sorted(held.items()):
        domain = Domain(
            name=name,
            description=name.replace("_", " "),
            share=round(len(texts) / len(train), 4),
            signals=tuple(texts[:SIGNALS]),
        )
        domains.append(domain)
    return Partition(domains=tuple(domains))


def _is_domain_name(label: str) -> bool:
    known = re.match(SNAKE, label) is not None and len(label) <= 64
    return known and label not in RESERVED


def propose_solved(
    cell: TreeCell, failed: Sequence[Problem], count: int, epoch: int = 0
) -> Proposals:
    """Return one card for each kind of failed problem, with `count` demonstrations."""
    solved = [problem for problem in failed if problem.solution]
    vectors = []
    for problem in solved:
        vectors.append(
            {word: weight(word) for word in vocabulary(problem.text)}
        )
    found: dict[str, Card] = {}
    for kind in group_kinds(vectors):
        members = [solved[place] for place in kind]
        examples = list(filter(None, map(_short_example, members)))[:count]
        card = _solved_card(cell, members, tuple(examples), epoch)
        if card:
            found.setdefault(card.card_id, card)
    return Proposals(cards=tuple(found.values()))


def group_kinds(vectors: Sequence[Mapping[str, float]]) -> list[list[int]]:
    """Return groups of alike vectors: each joins the first group that it is near."""
    groups: list[list[int]] = []
    for place, vector in enumerate(vectors):
        for group in groups:
            if _cosine(vectors[group[0]], vector) >= ONE_KIND:
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def _solved_card(
    cell: TreeCell,
    members: Sequence[Problem],
    examples: tuple[Example, ...],
    epoch: int,
) -> Card | None:
    """Return the card of a kind; `None` if it has no example or is no valid card."""
    counts: Counter[str] = Counter()
    for member in members:
        counts.update(vocabulary(member.text))

    def rank(word: str) -> tuple[float, str]:
        return -counts[word] * weight(word), word

    ranked = sorted(counts, key=rank)[: 2 * TRIGGERS]
    tokens = [word.upper() for word in ranked if word.isascii()][:3]
    if len(tokens) < 2 or not examples:
        return None
    if cell.difficulty is Difficulty.HARD:
        tokens.append("HARD")
    lines = ["Useful when:"]
    for pair in zip(ranked[::2], ranked[1::2], strict=False):
        lines.append(f"- {' '.join(pair)}")
    topic = ", ".join(ranked[:TRIGGERS])
    lines += [
        "",
        f"Problems about {topic} go by the steps of those worked here.",
    ]
    provenance = {
        "source": SOLUTIONS,
        "supporting_problems": [member.name for member in members[:12]],
        "epoch_introduced": epoch,
    }
    payload = with_examples("\n".join(lines), examples)
    try:
        return cell.new_card("_".join(("RUBRIC", *tokens)), payload, provenance)
    except (
        CardError
    ):  # a text too long for a card, or with characters it may not hold
        return None


def worked_example(problem: Problem, solution: str) -> Example:
    """Return a problem with a solution that ends in its answer, without blank lines."""
    worked = solution.strip()
    if not last_boxed(worked):
        worked = f"{worked}\nThe answer is \\boxed{{{problem.answer}}}."
    text = re.sub(r"\n\s*\n", "\n", problem.text.strip())
    return Example(text, re.sub(r"\n\s*\n", "\n", worked))


def _short_example(problem: Problem) -> Example | None:
    example = worked_example(problem, problem.solution or "")
    return example if line_count(example.text) - 2 <= EXAMPLE_LINES else None


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    shared = math.fsum(one[word] ** 2 for word in one.keys() & other.keys())
    sizes = math.hypot(*one.values()) * math.hypot(*other.values())
    return shared / sizes if sizes else 0.0
