"""Picking single cards out of a whole pool instead of a block: the nearest, those of a gate, or an LLM's choice."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kace.answers.kinds import MATHEMATICS, Subject
from kace.baselines.registry import CANDIDATES, Bench, Spec
from kace.cards.card import Card
from kace.errors import UsageError
from kace.ladder.prompt import Context, fenced, shortened, subject_of, template
from kace.ladder.relevance import Relevance
from kace.ladder.retrieve import Budget, Ranking, Retriever, rank
from kace.ladder.tiers import TierName
from kace.models.base import (
    AskResult,
    Message,
    Question,
    Role,
    after_thinking,
    ask,
    chat,
)
from kace.problems import Problem

TIER = "ROUTE"  # where the calls of an LLM that picks cards stand among a problem's attempts
MAX_PROBLEM_CHARS = 3_000
UNBOUNDED = 1 << 40  # more tokens than any tree has
_ID = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){2,5}")
BY_MEANING: Ranking = partial(rank, by="meaning")
_WRAPPING = " \t\r`'\"[]*-."


def pool_selector(
    spec: Spec, bench: Bench, retriever: Retriever, ranking: Ranking
) -> PoolSelector:
    """The row's way to pick single cards."""
    gate = retriever.relevance if spec.selector == "nearest_relevant" else None
    if gate and not gate.threshold:
        said = f"system '{spec.name}' needs a relevance gate, and the threshold is 0"
        raise UsageError(
            said,
            fix=f"set relevance_threshold above 0, or use {spec.name.replace('-gated', '')}",
        )
    config = bench.config.retrieval
    if spec.selector == "everything":
        config = config.model_copy(update={"max_card_tokens": UNBOUNDED})
    counts = {
        "nearest": bench.k,
        "nearest_relevant": bench.k,
        "llm_of_nearest": max(CANDIDATES, bench.k),
    }
    budget = Budget(
        config, bench.classifier, ranking=lambda problem, cards: tuple(cards)
    )
    return PoolSelector(
        pool=retriever.tree.shown,
        budget=budget,
        bench=bench,
        ranking=ranking,
        nearest=counts.get(spec.selector),
        picks=spec.selector.startswith("llm"),
        gate=gate,
    )


@dataclass(frozen=True, slots=True)
class PoolSelector:
    """Picks single cards out of the whole tree, of any difficulty and domain.

    The choice depends on the problem alone, so HS reads what MS read and nobody is asked twice. Where the picked cards
    do not fit, the last picked go first.
    """

    pool: tuple[Card, ...]
    budget: Budget
    bench: Bench
    ranking: Ranking
    nearest: int | None  # only so many cards, the nearest first
    picks: bool  # whether an LLM picks among them
    gate: Relevance | None  # only cards that it lets pass

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Sequence[Context],
    ) -> Context:
        """All cards, the nearest, an LLM's choice, or an LLM's choice among the nearest."""
        if earlier:
            return replace(routed, cards=earlier[-1].cards, eligible=len(self.pool))
        pool = (
            tuple(self.gate.relevant(problem.text, self.pool))
            if self.gate
            else self.pool
        )
        cards = (
            self.ranking(problem.text, pool)[: self.nearest] if self.nearest else pool
        )
        if not cards or not self.picks:
            fits = await self.budget.fit(problem.text, cards)
            return replace(routed, cards=fits, eligible=len(self.pool))
        pick = await pick_cards(problem, cards, self.bench)
        # Where its replies cannot be used, the nearest cards stand in for its choice.
        chosen = (
            cards[: self.bench.k]
            if self.nearest and pick.value is None
            else pick.value or ()
        )
        fits = await self.budget.fit(problem.text, chosen)
        calls = routed.calls + pick.calls
        usage = routed.usage + pick.usage
        return replace(
            routed, cards=fits, eligible=len(self.pool), calls=calls, usage=usage
        )


async def pick_cards(
    problem: Problem, pool: Sequence[Card], bench: Bench
) -> AskResult[tuple[Card, ...]]:
    """At most `k` cards that the helper names, the most wanted first; nothing said where no reply can be used."""
    known = {card.card_id: card for card in pool}

    def read(reply: str) -> tuple[Card, ...] | None:
        ids = read_ids(reply, known, bench.k)
        return None if ids is None else tuple(known[card_id] for card_id in ids)

    system, user = picking_prompt(problem.text, pool, bench.k, subject_of(bench.config))
    # The reply itself is not shown again, since a problem may have dictated it.
    again = (
        system,
        Message(Role.USER, f"{user.content}\n\n{template('systems/route_retry')}"),
    )
    question = Question(
        (system, user),
        problem.id,
        bench.seed,
        TIER,
        read,
        lambda messages, reply: again,
    )
    return await ask(bench.helper, question)


def picking_prompt(
    problem: str, pool: Sequence[Card], k: int, subject: Subject = MATHEMATICS
) -> tuple[Message, ...]:
    """What all problems share, instructions and ids with triggers, then the problem, so that prefix caches hit."""
    lines = "\n".join(f"{card.card_id}: {'; '.join(card.triggers)}" for card in pool)
    instructions = template("systems/route", subject).format(k=k)
    return chat(
        f"{instructions}\n\n{fenced('cards', lines)}",
        fenced("problem", shortened(problem, MAX_PROBLEM_CHARS)),
    )


def read_ids(reply: str, known: Collection[str], k: int) -> tuple[str, ...] | None:
    """The first `k` known ids of a reply, each once; nothing for `none`.

    Ids that are not known are passed over. `None` for a reply that is not a list of ids, or names no known one.
    """
    text = after_thinking(reply).strip()
    if text.strip(_WRAPPING).casefold() == "none":
        return ()
    named = [
        part
        for part in (part.strip(_WRAPPING) for part in re.split(r"[,;\n]", text))
        if part
    ]
    if not all(map(_ID.fullmatch, named)):
        return None
    return tuple(dict.fromkeys(name for name in named if name in known))[:k] or None
