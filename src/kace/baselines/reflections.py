"""The ablation without distillation: a learned tree, its cards replaced by raw reflections.

For each card the solver writes what to remember of a problem that the card was written
from and that it failed. Domains, places and number of cards stay those of the tree. No
teacher writes, judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    card_of,
)
from kace.cards.tree import EpistemicTree
from kace.errors import DataError, one_line
from kace.ladder.prompt import fenced, quoted_line, shortened, template
from kace.ladder.tiers import TierName
from kace.learning import StepResult
from kace.learning.study import RunReading, StepName, TreeWriter
from kace.learning.teacher import FailedProblem
from kace.models.base import AttemptKey, ModelError, Request, Sampling, chat
from kace.problems import Problem

AUTHOR = "kace learn --method reflections"
SOURCE = "the solver's own reflection"
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
    """The cards of a tree, as the solver's reflections."""

    cards: tuple[Card, ...] = ()
    missing: tuple[str, ...] = ()  # cards without a reflection, with the reason

    @property
    def summary(self) -> str:
        """How many cards there are."""
        return f"{len(self.cards)} cards, {len(self.missing)} without"


def problems_behind(
    tree: EpistemicTree, train: Sequence[Problem]
) -> list[Problem]:
    """Return the training problems that cards of a tree were written from, by name."""
    sources: set[str] = set()
    for card in tree.shown:
        sources.update(card.provenance.supporting_problems)
    by_name = {one_line(problem.name): problem for problem in train}
    return [by_name[name] for name in sorted(sources & by_name.keys())]


async def train_reflections(training: Training) -> EpistemicTree:
    """Write the frozen tree of reflections to the plan's folder."""
    plan = training.plan
    problems = problems_behind(plan.tree, plan.train)
    if plan.tree.shown and not problems:
        raise DataError(
            "no card of the tree came from a training problem",
            fix="name the tree (--tree) and the file that it was learned from",
        )
    run = StepName("reflect", "run")
    records = await training.run(run, problems, RunReading(), training.seed(1))
    by_id = {problem.id: problem for problem in problems}
    failed: dict[str, dict[TierName, FailedProblem]] = {}
    for record in records:
        problem = by_id[record.problem]
        failures = failed.setdefault(one_line(problem.name), {})
        for tier in (TierName.MS, TierName.HS):
            tiers = [attempt.tier for attempt in record.attempts]
            delivered = record.correct and (
                plan.failures == "final" or tiers[-1] is tier
            )
            if tier in tiers and not delivered:
                failure = FailedProblem.of(
                    record, problem, tier, training.text_of
                )
                failures[tier] = failure
    work = partial(_reflect_all, training, failed)
    step = StepName("reflect", "write")
    written = await training.log.once(step, Reflected, work)
    writer = TreeWriter(plan.out, training.log, author=AUTHOR)
    writer.plant(plan.tree.domains, written.cards)
    return writer.freeze()


async def _reflect_all(
    training: Training, failed: Mapping[str, Mapping[TierName, FailedProblem]]
) -> Reflected:
    """Return the tree's cards as reflections on the first problem failed at their tier."""
    cards = []
    missing = []
    pairs = []
    for card in training.plan.tree.shown:
        failure = _failure_of(card, failed)
        if failure is None:
            missing.append(f"{card.card_id}: its problems were solved")
        else:
            pairs.append((card, failure))
    texts = await training.each(pairs, partial(_reflect, training))
    for (card, failure), text in zip(pairs, texts, strict=True):
        try:
            cards.append(reflected_card(card, failure, text))
        except CardError as error:
            missing.append(one_line(f"{card.card_id}: {error.message}"))
    return Reflected(cards=tuple(cards), missing=tuple(missing))


def _failure_of(
    card: Card, failed: Mapping[str, Mapping[TierName, FailedProblem]]
) -> FailedProblem | None:
    tiers: Sequence[TierName] = (TierName.MS, TierName.HS)
    if card.difficulty_tag is Difficulty.MEDIUM:
        tiers = (TierName.MS,)
    elif card.difficulty_tag is Difficulty.HARD:
        tiers = (TierName.HS,)
    for name in card.provenance.supporting_problems:
        for tier in tiers:
            if tier in failed.get(name, {}):
                return failed[name][tier]
    return None


async def _reflect(training: Training, pair: tuple[Card, FailedProblem]) -> str:
    """Return the solver's reflection on a problem; empty if the call fails."""
    card, failure = pair
    kit = training.session.kit
    problem = failure.problem
    tier = f"{TIER} {card.card_id}"
    key = AttemptKey(problem.id, training.seed(1), tier, 0)
    parts = [
        fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
        f"Correct answer: {quoted_line(problem.answer or '')}",
    ]
    for attempt in failure.attempts[:SHOWN_ATTEMPTS]:
        tail = attempt.tail[-MAX_ATTEMPT_CHARS:]
        parts.append(fenced("attempt", tail or "(no text)"))
    system = template("reflections/reflect", kit.subject)
    messages = chat(system, "\n\n".join(parts))
    temperature = kit.sampling[TierName.MS].temperature
    sampling = Sampling(temperature, MAX_TOKENS, key.sampling_seed())
    try:
        return (await kit.model.complete(Request(messages, sampling, key))).text
    except ModelError:
        return ""


def reflected_card(card: Card, failure: FailedProblem, text: str) -> Card:
    """Return a card with a reflection for its payload, cut to the caps."""
    when = _WHEN.search(text)
    label = _LESSON.search(text)
    # A reply without the two parts is a lesson as it is.
    lesson = text[label.end() :] if label else _WHEN.sub("", text, count=1)
    useful = ""
    if when and (not label or when.start() < label.start()):
        useful = when[1]
    lines = []
    for line in lesson.strip().split("\n"):
        if line.strip():
            lines.append(line.rstrip()[:MAX_LINE_CHARS])
    body = "\n".join(lines[: BODY_CAPS[card.difficulty_tag]])
    words = _STRAY.sub(" ", useful).split() or card.domain_tags[0].split("_")
    trigger = " ".join(words[:TRIGGER_WORDS])
    return card_of(
        {
            "card_id": card.card_id,
            "payload": f"{USEFUL}\n{BULLET}{trigger}\n\n{body}",
            "routing_conditions": [],
            "difficulty_tag": card.difficulty_tag.value,
            "domain_tags": list(card.domain_tags),
            "helpfulness_score": 0.0,
            "provenance": {
                "source": SOURCE,
                "supporting_problems": [one_line(failure.problem.name)],
                "epoch_introduced": card.provenance.epoch_introduced,
            },
        }
    )
