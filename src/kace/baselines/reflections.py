"""The ablation without distillation: a learned tree, its cards replaced by raw reflections.

For each card the solver writes what to remember of a problem that the card was written
from and that it failed. Domains, places and number of cards stay those of the tree. No
teacher writes, judges or revises a card; only the rules of the card type hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from kace.baselines.evaluate import Training
from kace.cards.card import (
    BODY_CAPS,
    BULLET,
    TRIGGER_WORDS,
    USEFUL,
    VISIBLE,
    Card,
    CardError,
    Provenance,
)
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.errors import DataError, one_line
from kace.ladder.prompt import fenced, quoted_line, shortened, template
from kace.ladder.record import Solution
from kace.ladder.tiers import TierName
from kace.learning.propose import Proposals
from kace.learning.study import (
    ADD,
    RunReading,
    StepName,
    TreeWriter,
    gather_all,
)
from kace.learning.teacher import FailedProblem, is_failed
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


async def train_reflections(training: Training) -> EpistemicTree:
    """Write the frozen tree of reflections to the plan's folder."""
    plan = training.plan
    sources = cards_by_source(plan.tree.shown)
    problems = [p for p in plan.train if one_line(p.name) in sources]
    if sources and not problems:
        raise DataError(
            "no card of the tree came from a training problem",
            fix="name the tree (--tree) and the file that it was learned from",
        )
    run = StepName("reflect", "run")
    seed = training.seed_of(1, ADD)
    records = await training.run(run, problems, RunReading(), seed)
    work = partial(_reflect_all, training, zip(problems, records, strict=True))
    step = StepName("reflect", "write")
    written = await training.log.once(step, Proposals, work)
    writer = TreeWriter(plan.out, training.log)
    writer.plant(EpistemicTree.of(plan.tree.domains, written.cards))
    return writer.freeze()


async def _reflect_all(
    training: Training, solved: Iterable[tuple[Problem, Solution]]
) -> Proposals:
    """Return the tree's cards as reflections on the first problem failed at their tier."""
    plan = training.plan
    named = {
        one_line(problem.name): (problem, record) for problem, record in solved
    }
    works = []
    for card in plan.tree.shown:
        for name in card.provenance.supporting_problems:
            if name in named:
                problem, record = named[name]
                tier = failed_tier(card, record, plan.failures)
                if tier:
                    failure = training.failure(record, problem, tier)
                    works.append(_reflect(training, card, failure))
                    break
    cards = tuple(filter(None, await gather_all(works)))
    return Proposals(cards=cards)


def failed_tier(card: Card, record: Solution, failures: str) -> TierName | None:
    """Return the first tier that reads a card and failed at the problem."""
    for tier in (TierName.MS, TierName.HS):
        reads = card.difficulty_tag in VISIBLE[tier.value]
        if reads and is_failed(record, tier, failures):
            return tier
    return None


async def _reflect(
    training: Training, card: Card, failure: FailedProblem
) -> Card | None:
    """Return a card with the solver's reflection; none if the call fails or makes no card."""
    kit = training.session.kit
    problem = failure.problem
    key = AttemptKey(
        problem.id, failure.record.seed, f"{TIER} {card.card_id}", 0
    )
    parts = [
        fenced("problem", shortened(problem.text, MAX_PROBLEM_CHARS)),
        f"Correct answer: {quoted_line(problem.answer or '')}",
    ]
    for attempt in failure.attempts[:SHOWN_ATTEMPTS]:
        tail = attempt.text[-MAX_ATTEMPT_CHARS:] or "(no text)"
        parts.append(fenced("attempt", tail))
    system = template("reflections/reflect", kit.subject)
    messages = chat(system, "\n\n".join(parts))
    temperature = kit.sampling[TierName.MS].temperature
    sampling = Sampling(temperature, MAX_TOKENS, key.sampling_seed())
    with suppress(ModelError, CardError):
        reply = await kit.model.complete(Request(messages, sampling, key))
        return reflected_card(card, problem, reply.text)
    return None


def reflected_card(card: Card, problem: Problem, text: str) -> Card:
    """Return a card with a reflection for its payload, cut to the caps."""
    lines = []
    for line in after_thinking(text).strip().split("\n"):
        if line.strip():
            lines.append(line.rstrip()[:MAX_LINE_CHARS])
    body = "\n".join(lines[: BODY_CAPS[card.difficulty_tag]])
    words = card.domain_tags[0].split("_")[:TRIGGER_WORDS]
    return card.revised(
        payload=f"{USEFUL}\n{BULLET}{' '.join(words)}\n\n{body}",
        routing_conditions=(),
        helpfulness_score=0.0,
        wordings=(),
        provenance=Provenance(
            source=SOURCE,
            supporting_problems=(one_line(problem.name),),
            epoch_introduced=card.provenance.epoch_introduced,
        ),
    )
