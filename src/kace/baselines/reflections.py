"""The ablation without distillation: a learned tree, its cards replaced by raw reflections.

For each card the solver writes what to remember of a problem that the card was written
from and that it failed. Domains, places and number of cards stay those of the tree. No
teacher writes, judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

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
from kace.ladder.record import Solution
from kace.ladder.tiers import TierName
from kace.learning import StepResult
from kace.learning.study import RunReading, StepName, TreeWriter, gather_all
from kace.models.base import (
    AttemptKey,
    ModelError,
    Request,
    Sampling,
    after_thinking,
    chat,
)
from kace.problems import Problem

SOURCE = "the solver's own reflection"
TIER = "REFLECT"  # under which the solver's reflections are kept
MAX_TOKENS = 600
MAX_PROBLEM_CHARS = 4_000
MAX_ATTEMPT_CHARS = 800
MAX_LINE_CHARS = 400
SHOWN_ATTEMPTS = 3


class Reflected(StepResult):
    """The cards of a tree, as the solver's reflections."""

    cards: tuple[Card, ...] = ()
    missing: int = 0  # cards without a usable reflection

    @property
    def summary(self) -> str:
        """How many cards there are."""
        return f"{len(self.cards)} cards, {self.missing} without"


class Failure(NamedTuple):
    """A problem that a card was written from, and a tier that did not solve it."""

    problem: Problem
    record: Solution
    tier: TierName


TIERS = {
    Difficulty.MEDIUM: (TierName.MS,),
    Difficulty.HARD: (TierName.HS,),
    Difficulty.UNIVERSAL: (TierName.MS, TierName.HS),
}
"""Where the failures lie that a card was written from."""


async def train_reflections(training: Training) -> EpistemicTree:
    """Write the frozen tree of reflections to the plan's folder."""
    plan = training.plan
    sources: set[str] = set()
    for card in plan.tree.shown:
        sources.update(card.provenance.supporting_problems)
    named = {one_line(problem.name): problem for problem in plan.train}
    problems = [named[name] for name in sorted(sources & named.keys())]
    if sources and not problems:
        raise DataError(
            "no card of the tree came from a training problem",
            fix="name the tree (--tree) and the file that it was learned from",
        )
    run = StepName("reflect", "run")
    records = await training.run(run, problems, RunReading(), training.seed(1))
    work = partial(_reflect_all, training, problems, records)
    step = StepName("reflect", "write")
    written = await training.log.once(step, Reflected, work)
    writer = TreeWriter(plan.out, training.log)
    writer.plant(EpistemicTree.of(plan.tree.domains, written.cards))
    return writer.freeze()


async def _reflect_all(
    training: Training,
    problems: Sequence[Problem],
    records: Sequence[Solution],
) -> Reflected:
    """Return the tree's cards as reflections on the first problem failed at their tier."""
    plan = training.plan
    by_id = {record.problem: record for record in records}
    failures: dict[str, list[Failure]] = {}  # by the problem's name
    for problem in problems:
        record = by_id[problem.id]
        for tier in (TierName.MS, TierName.HS):
            if is_failed(record, tier, plan.failures):
                known = failures.setdefault(one_line(problem.name), [])
                known.append(Failure(problem, record, tier))
    pairs = []
    for card in plan.tree.shown:
        found = []
        for name in card.provenance.supporting_problems:
            for failure in failures.get(name, ()):
                if failure.tier in TIERS[card.difficulty_tag]:
                    found.append((card, failure))
        pairs += found[:1]
    texts = await gather_all(map(partial(_reflect, training), pairs))
    cards = []
    for (card, failure), text in zip(pairs, texts, strict=True):
        with suppress(CardError):
            cards.append(reflected_card(card, failure.problem, text))
    missing = len(plan.tree.shown) - len(cards)
    return Reflected(cards=tuple(cards), missing=missing)


def is_failed(record: Solution, tier: TierName, failures: str) -> bool:
    """Whether a tier was reached and did not solve the problem; if `final`, no tier did."""
    tiers = [attempt.tier for attempt in record.attempts]
    solved = record.correct and (failures == "final" or tiers[-1] is tier)
    return tier in tiers and not solved


async def _reflect(training: Training, pair: tuple[Card, Failure]) -> str:
    """Return the solver's reflection on a problem; empty if the call fails."""
    card, failure = pair
    kit = training.session.kit
    problem = failure.problem
    key = AttemptKey(problem.id, training.seed(1), f"{TIER} {card.card_id}", 0)
    parts = [
        fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
        f"Correct answer: {quoted_line(problem.answer or '')}",
    ]
    wrong = []
    for attempt in failure.record.attempts:
        if attempt.tier is failure.tier and not attempt.correct:
            tail = training.text_of(attempt)[-MAX_ATTEMPT_CHARS:]
            wrong.append(fenced("attempt", tail or "(no text)"))
    parts += wrong[:SHOWN_ATTEMPTS]
    system = template("reflections/reflect", kit.subject)
    messages = chat(system, "\n\n".join(parts))
    temperature = kit.sampling[TierName.MS].temperature
    sampling = Sampling(temperature, MAX_TOKENS, key.sampling_seed())
    try:
        return (await kit.model.complete(Request(messages, sampling, key))).text
    except ModelError:
        return ""


def reflected_card(card: Card, problem: Problem, text: str) -> Card:
    """Return a card with a reflection for its payload, cut to the caps."""
    lines = []
    for line in after_thinking(text).strip().split("\n"):
        if line.strip():
            lines.append(line.rstrip()[:MAX_LINE_CHARS])
    body = "\n".join(lines[: BODY_CAPS[card.difficulty_tag]])
    words = card.domain_tags[0].split("_")[:TRIGGER_WORDS]
    return card_of(
        {
            "card_id": card.card_id,
            "payload": f"{USEFUL}\n{BULLET}{' '.join(words)}\n\n{body}",
            "routing_conditions": [],
            "difficulty_tag": card.difficulty_tag.value,
            "domain_tags": list(card.domain_tags),
            "helpfulness_score": 0.0,
            "provenance": {
                "source": SOURCE,
                "supporting_problems": [one_line(problem.name)],
                "epoch_introduced": card.provenance.epoch_introduced,
            },
        }
    )
