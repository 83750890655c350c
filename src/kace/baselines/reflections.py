"""The ablation without distillation: a tree whose cards are the solver's own reflections on what it got wrong.

After a tiered run, the solver itself says what to remember of every problem that a cell did not deliver. No teacher
writes, judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial

from kace.baselines.training import Training
from kace.cards.card import (
    BODY_CAPS,
    BULLET,
    TRIGGER_WORDS,
    USEFUL,
    Card,
    CardError,
    Difficulty,
)
from kace.cards.tree import Add, EpistemicTree
from kace.errors import one_line
from kace.ladder.prompt import fenced, quoted_line, shortened, template
from kace.ladder.tiers import TierName
from kace.learning.steps import StepName, StepResult, TreeWriter
from kace.learning.study import RunReading
from kace.learning.teacher import FailedProblem, TreeCell, failures
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat

AUTHOR = "kace learn --method reflections"
TIER = "REFLECT"  # where the solver's reflections stand among its attempts in a cache
MAX_TOKENS = 600
MAX_PROBLEM_CHARS = 4_000
MAX_ATTEMPT_CHARS = 800
MAX_LINE_CHARS = 400
SHOWN_ATTEMPTS = 3

_MARKS = r"[*_#>\- \t]*"  # how a model may dress the two labels
_WHEN = re.compile(rf"^{_MARKS}when{_MARKS}:(.+)$", re.IGNORECASE | re.MULTILINE)
_LESSON = re.compile(rf"^{_MARKS}lesson{_MARKS}:[*_]*", re.IGNORECASE | re.MULTILINE)
_STRAY = re.compile(r"[^\w\s'-]")


class Reflected(StepResult):
    """The reflections of a cell."""

    cards: tuple[Card, ...] = ()
    refused: tuple[
        str, ...
    ] = ()  # reflections that break a rule of the card type, with the reason
    failed: int = 0  # calls that gave no reply

    @property
    def summary(self) -> str:
        """Return the number of cards."""
        counts = f"{len(self.cards)} cards, {len(self.refused)} refused"
        return f"{counts}, {self.failed} failed"


async def train_reflections(training: Training) -> EpistemicTree:
    """The frozen tree, in the plan's folder."""
    writer = TreeWriter(training.plan.out, training.log, author=AUTHOR)
    writer.plant(await training.domains())
    for epoch in range(1, training.plan.settings.epochs + 1):
        for tier in (TierName.MS, TierName.HS):
            await _add(tier, epoch, training, writer)
        writer.snapshot(epoch)
    return writer.freeze()


async def _add(
    tier: TierName, epoch: int, training: Training, writer: TreeWriter
) -> None:
    """A tiered run, then a card for every problem that a cell of the tier did not deliver."""
    train = training.plan.train
    tree = writer.tree
    records = await training.run(
        StepName("reflect", "run", epoch, tier.value),
        train,
        RunReading(tree),
        training.seed(epoch),
    )
    by_id = {problem.id: problem for problem in train}
    cards: dict[str, Card] = {}
    for name in tree.domain_names:
        cell = TreeCell(tier, name)
        failed = failures(records, by_id, cell, training.text_of)
        step = StepName("reflect", "write", epoch, str(cell))
        written = await training.log.once(
            step, Reflected, partial(_reflected, step, cell, failed, training)
        )
        cards |= {
            card.card_id: card for card in written.cards if card.card_id not in tree
        }
    writer.commit(
        StepName("reflect", "commit", epoch, tier.value),
        [Add(card) for card in cards.values()],
    )


async def _reflected(
    step: StepName, cell: TreeCell, failed: Sequence[FailedProblem], training: Training
) -> Reflected:
    cards: list[Card] = []
    refused: list[str] = []
    said = await training.each(failed, lambda failure: _said(step, failure, training))
    for failure, text in zip(failed, said, strict=True):
        try:
            cards += (
                [card_from(text, cell, failure, step.epoch)] if text is not None else []
            )
        except CardError as error:
            refused.append(one_line(f"{failure.problem.name}: {error.message}"))
    return Reflected(
        cards=tuple(cards), refused=tuple(refused), failed=said.count(None)
    )


async def _said(
    step: StepName, failure: FailedProblem, training: Training
) -> str | None:
    kit = training.session.kit
    problem = failure.problem
    key = AttemptKey(problem.id, training.seed(step.epoch), f"{TIER} {step.place}", 0)
    sampling = Sampling(
        kit.sampling[TierName.MS].temperature, MAX_TOKENS, key.sampling_seed()
    )
    tails = (
        attempt.tail[-MAX_ATTEMPT_CHARS:]
        for attempt in failure.attempts[:SHOWN_ATTEMPTS]
    )
    shown = (
        fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
        f"Correct answer: {quoted_line(problem.answer or '')}",
        *(fenced("attempt", tail or "(no text)") for tail in tails),
    )
    messages = chat(template("reflections/reflect", kit.subject), "\n\n".join(shown))
    try:
        return (await kit.model.complete(Request(messages, sampling, key))).text
    except ModelError:
        return None


def card_from(said: str, cell: TreeCell, failure: FailedProblem, epoch: int) -> Card:
    """A reflection as a card of its cell: cut to the caps, and otherwise as it was said."""
    when = _WHEN.search(said)
    label = _LESSON.search(said)
    lesson = said[label.end() :] if label else _WHEN.sub("", said, count=1)
    # A reply without the two parts is a lesson as it stands; what stands behind the lesson is part of it.
    useful = when[1] if when and (not label or when.start() < label.start()) else ""
    lines = [
        line.rstrip()[:MAX_LINE_CHARS]
        for line in lesson.strip().split("\n")
        if line.strip()
    ]
    body = "\n".join(lines[: BODY_CAPS[cell.difficulty]])
    words = (
        _STRAY.sub(" ", useful).split()[:TRIGGER_WORDS]
        or cell.domain.split("_")[:TRIGGER_WORDS]
    )
    mark = (
        hashlib.sha256(f"{failure.problem.id}\x1f{cell}\x1f{body}".encode())
        .hexdigest()[:10]
        .upper()
    )
    provenance = {
        "source": "the solver's own reflection",
        "supporting_problems": [one_line(failure.problem.name)],
        "epoch_introduced": epoch,
    }
    card_id = f"{'RUBRIC' if cell.difficulty is Difficulty.HARD else 'MICRO'}_REFLECTION_{mark}"
    return cell.new_card(
        card_id, f"{USEFUL}\n{BULLET}{' '.join(words)}\n\n{body}", provenance
    )
