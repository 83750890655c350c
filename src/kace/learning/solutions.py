"""`--teacher solutions`: cards without a model, from the training set's own worked solutions.

Failed problems that share words few everyday problems use make one card. Its triggers are those words, its
demonstrations are the problems with their solutions: what few-shot prompting would show, kept where it helps.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
from kace.errors import DataError, UsageError, one_line
from kace.ladder.relevance import vocabulary, weight
from kace.ladder.retrieve import MAX_SIGNAL_CHARS
from kace.learning.admit import Rulings
from kace.learning.partition import Partition
from kace.learning.propose import Proposals, Screen, TreeCell
from kace.problems import Problem

if TYPE_CHECKING:  # the study knows this teacher by name
    from kace.config import Config
    from kace.learning.settings import Settings

SOURCE = "solutions"
NO_CALLS = (
    "no teacher call is made: cards come from the training set's own worked solutions"
)
ONE_KIND = 0.45
"""The least cosine of two problems' weighted words at which they count as one kind."""
TRIGGERS = 3
SIGNALS = 40  # training problems that a domain is known by, as many as it may have
WHOLE = "mathematics"


def untaught(config: Config, settings: Settings) -> Settings:
    """The settings as this teacher can follow them: it neither curates nor imagines, and can only demonstrate.

    It retells no wording but those of training problems, which may be as near to held-out ones as the data has them.
    """
    if config.retrieval.placement != "demonstrations" or not settings.examples:
        what = "--teacher solutions writes demonstrations, and these settings show none"
        raise UsageError(
            what,
            fix="--set placement=demonstrations --set examples=2, as the default profile has it",
        )
    return settings.model_copy(
        update={"refine": 0, "imagine": False, "max_overlap": 1.0}
    )


def admit_fitting(proposals: Proposals, fits: Screen) -> Rulings:
    """The cards that no rule of code refuses. Nobody else judges them."""
    refused = {card.card_id: found for card in proposals.cards if (found := fits(card))}
    admitted = tuple(card for card in proposals.cards if card.card_id not in refused)
    return Rulings(admitted=admitted, refused=tuple(refused.values()))


def partition_by_label(train: Sequence[Problem]) -> Partition:
    """The gold domains of the data, where every problem has one; else a single one for all."""
    if not any(problem.solution for problem in train):
        raise DataError(
            "no training problem has a worked solution",
            fix="add the field 'solution', or name a teacher",
        )
    labels = [_snake(problem.domain or "") for problem in train]
    if not all(
        re.match(SNAKE, label) and len(label) <= 64 and label not in RESERVED
        for label in labels
    ):
        labels = [WHOLE] * len(train)
    held: dict[str, list[str]] = {}
    for label, problem in zip(labels, train, strict=True):
        held.setdefault(label, []).append(one_line(problem.text, MAX_SIGNAL_CHARS))
    domains = (
        Domain(
            name=name,
            description=name.replace("_", " "),
            share=round(len(texts) / len(train), 4),
            signals=tuple(texts[:SIGNALS]),
        )
        for name, texts in sorted(held.items())
    )
    return Partition(domains=tuple(domains))


def propose_solved(
    cell: TreeCell, failed: Sequence[Problem], count: int, epoch: int = 0
) -> Proposals:
    """One card for each kind of failed problem, with up to `count` demonstrations."""
    solved = [problem for problem in failed if problem.solution]
    found: dict[str, Card] = {}
    for kind in kinds(
        [
            {word: weight(word) for word in vocabulary(problem.text)}
            for problem in solved
        ]
    ):
        members = [solved[place] for place in kind]
        examples = [example for example in map(_example, members) if example][:count]
        if examples and (card := _card(cell, members, tuple(examples), epoch)):
            found.setdefault(card.card_id, card)
    return Proposals(cards=tuple(found.values()))


def kinds(vectors: Sequence[Mapping[str, float]]) -> list[list[int]]:
    """Groups of alike vectors: each joins the first group whose opening member is close enough."""
    groups: list[list[int]] = []
    for place, vector in enumerate(vectors):
        home = next(
            (
                group
                for group in groups
                if _cosine(vectors[group[0]], vector) >= ONE_KIND
            ),
            None,
        )
        if home is None:
            groups.append([place])
        else:
            home.append(place)
    return groups


def _card(
    cell: TreeCell,
    members: Sequence[Problem],
    examples: tuple[Example, ...],
    epoch: int,
) -> Card | None:
    told = Counter(word for member in members for word in vocabulary(member.text))
    ranked = sorted(told, key=lambda word: (-told[word] * weight(word), word))[
        : 2 * TRIGGERS
    ]
    ascii_words = [word.upper() for word in ranked if word.isascii()][:3]
    if len(ascii_words) < 2:
        return None
    header = "\n".join(
        f"- {' '.join(pair)}" for pair in zip(ranked[::2], ranked[1::2], strict=False)
    )
    about = ", ".join(ranked[:TRIGGERS])
    payload = f"Useful when:\n{header}\n\nProblems about {about} go by the steps of those worked here."
    card_id = "_".join(
        (
            "RUBRIC",
            *ascii_words,
            *(("HARD",) if cell.difficulty is Difficulty.HARD else ()),
        )
    )
    supporting = [member.name for member in members[:12]]
    provenance = {
        "source": SOURCE,
        "supporting_problems": supporting,
        "epoch_introduced": epoch,
    }
    try:
        return cell.new_card(card_id, with_examples(payload, examples), provenance)
    except (
        CardError
    ):  # such as a text too long for a card, or with characters that no card may hold
        return None


def worked_example(problem: Problem, solution: str) -> Example:
    """A problem with a solution that ends in its answer, without blank lines."""
    worked = solution.strip()
    if not last_boxed(worked):
        worked = f"{worked}\nThe answer is \\boxed{{{problem.answer}}}."
    return Example(
        re.sub(r"\n\s*\n", "\n", problem.text.strip()), re.sub(r"\n\s*\n", "\n", worked)
    )


def _example(problem: Problem) -> Example | None:
    """A problem with its own solution; one too long to be shown is none."""
    example = worked_example(problem, problem.solution or "")
    return example if line_count(example.text) - 2 <= EXAMPLE_LINES else None


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    shared = math.fsum(value**2 for word, value in one.items() if word in other)
    sizes = math.hypot(*one.values()) * math.hypot(*other.values())
    return shared / sizes if sizes else 0.0


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
