"""The ablation without distillation: a tree whose cards are the solver's own reflections on what it got wrong.

Trained like the method's tree up to the cards: a tiered run, then every problem that a cell did not deliver. There the
solver itself says what to remember. No teacher writes, judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kace.learner.cell import Cell
from kace.learner.failure import Failure, failures
from kace.learner.growth import Growth
from kace.learner.notebook import Step
from kace.learner.practice import Exercise, Practice
from kace.learner.teacher import side_by_side
from kace.learner.verdicts import Kept
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat
from kace.redact import one_line
from kace.retrieval.fence import fenced, quoted_line, shortened
from kace.retrieval.prompt import template
from kace.solver.tiers import TierName
from kace.systems.base import Bench
from kace.systems.tiered import Tiered, library_of
from kace.systems.training import Dials, Ground, registry
from kace.tree.card import BODY_CAPS, Card, CardError, Difficulty, card_of
from kace.tree.card_text import BULLET, TRIGGER_WORDS, USEFUL
from kace.tree.changes import Add
from kace.tree.tree import EpistemicTree

AUTHOR = "kace train reflections"
TIER = "REFLECT"
"""Where the solver's reflections stand among its attempts in a cache."""
MAX_TOKENS = 600
MAX_PROBLEM_CHARS, MAX_ATTEMPT_CHARS, MAX_LINE_CHARS = 4_000, 800, 400
SHOWN_ATTEMPTS = 3

_MARKS = r"[*_#>\- \t]*"
"""How a model may dress the two labels."""
_WHEN = re.compile(rf"^{_MARKS}when{_MARKS}:(.+)$", re.IGNORECASE | re.MULTILINE)
_LESSON = re.compile(rf"^{_MARKS}lesson{_MARKS}:[*_]*", re.IGNORECASE | re.MULTILINE)
_STRAY = re.compile(r"[^\w\s'-]")


class Reflected(Kept):
    """The reflections of a cell."""

    cards: tuple[Card, ...] = ()
    refused: tuple[str, ...] = ()
    """Reflections that break a rule of the card type, with the reason."""
    failed: int = 0
    """Calls that gave no reply."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What the training works with."""

    ground: Ground
    practice: Practice
    growth: Growth


def open_reflections(bench: Bench) -> Tiered:
    """The ladder, reading a tree of reflections as the method reads its own."""
    return Tiered("kace-reflections", library_of(bench))


async def train_reflections(ground: Ground, dials: Dials) -> EpistemicTree:
    """The frozen tree, in the plan's folder."""
    plan, session = ground.plan, ground.session
    shop = Workshop(
        ground,
        Practice(plan.folder, plan.config, session, ground.shop.calls),
        Growth(plan.out, ground.notebook, author=AUTHOR),
    )
    shop.growth.plant(await registry(ground))
    for epoch in range(1, dials.epochs + 1):
        for tier in (TierName.MS, TierName.HS):
            await _add(tier, epoch, shop)
        shop.growth.snapshot(epoch)
    return shop.growth.freeze()


async def _add(tier: TierName, epoch: int, shop: Workshop) -> None:
    """A tiered run, then a card for every problem that a cell of the tier did not deliver."""
    ground, tree = shop.ground, shop.growth.tree
    train = ground.plan.train
    run = Step("reflect", "run", epoch, tier.value)
    records = await shop.practice.run(Exercise(run, train, tree, ground.seed(epoch)), ground.notebook)
    by_id = {problem.id: problem for problem in train}
    cards: dict[str, Card] = {}
    for name in tree.domain_names:
        cell = Cell(tier, name)
        failed = failures(records, by_id, cell, shop.practice.text_of)
        step = Step("reflect", "write", epoch, str(cell))
        written = await ground.notebook.once(step, Reflected, partial(_reflected, step, cell, failed, shop))
        cards |= {card.card_id: card for card in written.cards if card.card_id not in tree}
    shop.growth.commit(Step("reflect", "commit", epoch, tier.value), [Add(card) for card in cards.values()])


async def _reflected(step: Step, cell: Cell, failed: Sequence[Failure], shop: Workshop) -> Reflected:
    cards: list[Card] = []
    refused: list[str] = []
    missing = 0
    window = shop.ground.session.window
    for start in range(0, len(failed), window):
        some = failed[start : start + window]
        for failure, said in zip(some, await side_by_side(_said(step, f, shop) for f in some), strict=True):
            if said is None:
                missing += 1
                continue
            try:
                cards.append(card_from(said, cell, failure, step.epoch))
            except CardError as error:
                refused.append(one_line(f"{failure.problem.name}: {error.message}"))
    return Reflected(cards=tuple(cards), refused=tuple(refused), failed=missing)


async def _said(step: Step, failure: Failure, shop: Workshop) -> str | None:
    """What the solver makes of its own failure."""
    kit = shop.ground.session.kit
    key = AttemptKey(failure.problem.id, shop.ground.seed(step.epoch), f"{TIER} {step.place}", 0)
    sampling = Sampling(kit.sampling[TierName.MS].temperature, MAX_TOKENS, key.sampling_seed())
    messages = chat(template("reflections/reflect"), _user(failure))
    try:
        return (await kit.model.complete(Request(messages, sampling, key))).text
    except ModelError:
        return None


def card_from(said: str, cell: Cell, failure: Failure, epoch: int) -> Card:
    """A reflection as a card of its cell: cut to the caps, and otherwise as it was said."""
    when, lesson = _parts(said)
    lines = [line.rstrip()[:MAX_LINE_CHARS] for line in lesson.split("\n") if line.strip()]
    body = "\n".join(lines[: BODY_CAPS[cell.difficulty]])
    words = _STRAY.sub(" ", when).split()[:TRIGGER_WORDS] or cell.domain.split("_")[:TRIGGER_WORDS]
    mark = hashlib.sha256(f"{failure.problem.id}\x1f{cell}\x1f{body}".encode()).hexdigest()[:10].upper()
    return card_of(
        {
            "card_id": f"{'RUBRIC' if cell.difficulty is Difficulty.HARD else 'MICRO'}_REFLECTION_{mark}",
            "payload": f"{USEFUL}\n{BULLET}{' '.join(words)}\n\n{body}",
            "routing_conditions": [],
            "difficulty_tag": cell.difficulty.value,
            "domain_tags": [cell.domain],
            "helpfulness_score": 0.0,
            "provenance": {
                "source": "the solver's own reflection",
                "supporting_problems": [one_line(failure.problem.name)],
                "epoch_introduced": epoch,
            },
        }
    )


def _parts(said: str) -> tuple[str, str]:
    """When a lesson applies, and the lesson; a reply without the two parts is a lesson as it stands."""
    when = _WHEN.search(said)
    lesson = _LESSON.search(said)
    if lesson:
        return when[1] if when and when.start() < lesson.start() else "", said[lesson.end() :].strip()
    return (when[1], _WHEN.sub("", said, count=1).strip()) if when else ("", said.strip())


def _user(failure: Failure) -> str:
    attempts = failure.attempts[:SHOWN_ATTEMPTS]
    return "\n\n".join(
        (
            fenced("problem", shortened(failure.problem.text, MAX_PROBLEM_CHARS)),
            f"Correct answer: {quoted_line(failure.problem.answer or '')}",
            *(fenced("attempt", attempt.tail[-MAX_ATTEMPT_CHARS:] or "(no text)") for attempt in attempts),
        )
    )
