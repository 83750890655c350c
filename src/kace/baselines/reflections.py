"""The ablation without distillation: a tree whose cards are the solver's own reflections on what it got wrong.

After a tiered run, the solver writes what to remember of every problem that a cell did not deliver. No teacher writes,
judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial

from kace.baselines.evaluate import Training
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
from kace.learning import StepResult
from kace.learning.study import RunReading, StepName, TreeWriter
from kace.learning.teacher import FailedProblem, TreeCell, failures
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat

AUTHOR = "kace learn --method reflections"
TIER = "REFLECT"  # under which the solver's reflections are kept
MAX_TOKENS = 600
MAX_PROBLEM_CHARS = 4_000
MAX_ATTEMPT_CHARS = 800
MAX_LINE_CHARS = 400
SHOWN_ATTEMPTS = 3

_MARKS = r"[*_#>\- \t]*"  # markup that models put around the two labels
_WHEN = re.compile(
    rf"^{_MARKS}when{_MARKS}:(.+)$", re.IGNORECASE | re.MULTILINE
)
_LESSON = re.compile(
    rf"^{_MARKS}lesson{_MARKS}:[*_]*", re.IGNORECASE | re.MULTILINE
)
_STRAY = re.compile(r"[^\w\s'-]")


class Reflected(StepResult):
    """The reflections of a cell."""

    cards: tuple[Card, ...] = ()
    refused: tuple[
        str, ...
    ] = ()  # reflections that break a rule of the card type
    failed: int = 0  # calls without a reply

    @property
    def summary(self) -> str:
        """How many cards there are."""
        counts = f"{len(self.cards)} cards, {len(self.refused)} refused"
        return f"{counts}, {self.failed} failed"


async def train_reflections(training: Training) -> EpistemicTree:
    """Write the frozen tree to the plan's folder."""
    writer = TreeWriter(training.plan.out, training.log, author=AUTHOR)
    writer.plant(await training.domains())
    for epoch in range(1, training.plan.epochs + 1):
        for tier in (TierName.MS, TierName.HS):
            await _add(tier, epoch, training, writer)
        writer.snapshot(epoch)
    return writer.freeze()


async def _add(
    tier: TierName,
    epoch: int,
    training: Training,
    writer: TreeWriter,
) -> None:
    """Run the ladder, then add a card for every problem that a cell of the tier did not deliver."""
    train = training.plan.train
    tree = writer.tree
    run = StepName("reflect", "run", epoch, tier.value)
    seed = training.seed(epoch)
    records = await training.run(run, train, RunReading(tree), seed)
    by_id = {problem.id: problem for problem in train}
    cards: dict[str, Card] = {}
    for name in tree.domain_names:
        cell = TreeCell(tier, name)
        failed = failures(records, by_id, cell, training.text_of)
        step = StepName("reflect", "write", epoch, str(cell))
        write = partial(_reflect_all, step, cell, failed, training)
        written = await training.log.once(step, Reflected, write)
        for card in written.cards:
            if card.card_id not in tree:
                cards[card.card_id] = card
    commit = StepName("reflect", "commit", epoch, tier.value)
    writer.commit(commit, [Add(card) for card in cards.values()])


async def _reflect_all(
    step: StepName,
    cell: TreeCell,
    failed: Sequence[FailedProblem],
    training: Training,
) -> Reflected:
    texts = await training.each(failed, partial(_reflect, step, training))
    cards: list[Card] = []
    refused: list[str] = []
    for failure, text in zip(failed, texts, strict=True):
        if text is None:
            continue
        try:
            cards.append(card_from(text, cell, failure, step.epoch))
        except CardError as error:
            refused.append(one_line(f"{failure.problem.name}: {error.message}"))
    return Reflected(
        cards=tuple(cards),
        refused=tuple(refused),
        failed=texts.count(None),
    )


async def _reflect(
    step: StepName,
    training: Training,
    failure: FailedProblem,
) -> str | None:
    """Return the solver's reflection on a problem; `None` if the call fails."""
    kit = training.session.kit
    problem = failure.problem
    key = AttemptKey(
        problem.id, training.seed(step.epoch), f"{TIER} {step.place}", 0
    )
    temperature = kit.sampling[TierName.MS].temperature
    parts = [
        fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
        f"Correct answer: {quoted_line(problem.answer or '')}",
    ]
    for attempt in failure.attempts[:SHOWN_ATTEMPTS]:
        tail = attempt.tail[-MAX_ATTEMPT_CHARS:]
        parts.append(fenced("attempt", tail or "(no text)"))
    messages = chat(
        template("reflections/reflect", kit.subject), "\n\n".join(parts)
    )
    sampling = Sampling(temperature, MAX_TOKENS, key.sampling_seed())
    try:
        return (await kit.model.complete(Request(messages, sampling, key))).text
    except ModelError:
        return None


def card_from(
    text: str,
    cell: TreeCell,
    failure: FailedProblem,
    epoch: int,
) -> Card:
    """Return a reflection as a card of its cell, cut to the caps and otherwise as written."""
    when = _WHEN.search(text)
    label = _LESSON.search(text)
    # A reply without the two parts is a lesson as it is; what follows the lesson is part of it.
    lesson = text[label.end() :] if label else _WHEN.sub("", text, count=1)
    useful = ""
    if when and (not label or when.start() < label.start()):
        useful = when[1]
    lines = []
    for line in lesson.strip().split("\n"):
        if line.strip():
            lines.append(line.rstrip()[:MAX_LINE_CHARS])
    body = "\n".join(lines[: BODY_CAPS[cell.difficulty]])
    words = _STRAY.sub(" ", useful).split() or cell.domain.split("_")
    trigger = " ".join(words[:TRIGGER_WORDS])
    content = f"{failure.problem.id}\x1f{cell}\x1f{body}"
    mark = hashlib.sha256(content.encode()).hexdigest()[:10].upper()
    prefix = "RUBRIC" if cell.difficulty is Difficulty.HARD else "MICRO"
    provenance = {
        "source": "the solver's own reflection",
        "supporting_problems": [one_line(failure.problem.name)],
        "epoch_introduced": epoch,
    }
    payload = f"{USEFUL}\n{BULLET}{trigger}\n\n{body}"
    return cell.new_card(f"{prefix}_REFLECTION_{mark}", payload, provenance)
