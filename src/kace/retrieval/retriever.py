"""What a solve reads of the tree: the block of its tier and domain, cut to a budget, and never anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from kace.models.base import ChatModel, Tokenizer, Usage
from kace.problem import Problem
from kace.retrieval.prompt import Context, Position, card_text, shown_text
from kace.retrieval.router import PlaceBy, Placement, place
from kace.retrieval.selector import SPEAKS, Ranking, Telling, fit, rank
from kace.solver.attempt import Attempt
from kace.solver.tiers import TierName
from kace.tree.card import UNIVERSAL, Card, Status
from kace.tree.tree import EpistemicTree

CHARS_PER_TOKEN = 4
EXACT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Recall:
    """What one tier of a solve read, and how it was found."""

    tier: TierName
    domains: tuple[str, ...]
    cards: tuple[Card, ...]
    eligible: int
    """Cards of the block before it was cut to the budget."""
    tokens: int
    """Of everything read: cards, notes and instructions."""
    estimated: bool
    """True when the model has no tokenizer we can ask, and `tokens` is characters over four."""
    classifier_calls: int = 0
    """Calls made for this recall; an earlier tier's placement is used again without one."""
    classifier_usage: Usage = field(default_factory=Usage)
    notes: str = ""
    instructions: str = ""
    scaffold: bool = False
    at: Position = "instructions"

    @property
    def context(self) -> Context:
        """What the tier's attempts read."""
        return Context(self.cards, self.notes, self.instructions, self.scaffold, self.at)


class Shelf(Protocol):
    """What a solve reads from: a tree, or whatever is compared with one."""

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """What a tier reads; `before` are the attempts made so far, `earlier` what tiers before it read."""
        ...


@dataclass(frozen=True, slots=True)
class Appetite:
    """How much of a block is read, and how it is chosen."""

    max_tokens: int = 5_000
    """A larger block is ranked and cut to this."""
    max_cards: int | None = None
    """The same for the number of cards."""
    min_relevance: float = 0.0
    """A card with a worked example is left out where it shares fewer telling words with the problem, if that leaves
    none. One without is never: its triggers say too little of what it is for."""
    ranking: Ranking = rank
    place_by: PlaceBy = "model"
    refine: bool = False
    """Classify again after a failed MS, with its attempts in view."""
    at: Position = "instructions"


class Library:
    """A tree, opened for solving with one model."""

    def __init__(
        self, tree: EpistemicTree, model: ChatModel, *, seed: int = 0, appetite: Appetite | None = None
    ) -> None:
        self.tree = tree
        self.model = model
        self.seed = seed
        self.appetite = appetite or Appetite()
        self._sizes: dict[tuple[str, ...], tuple[int, bool]] = {}

    @cached_property
    def telling(self) -> Telling:
        """How well each card of the tree fits a problem."""
        return Telling(self.tree)

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """The recall of a tier: none at ES, ever; else the block of the tier and the problem's domain."""
        if tier is TierName.ES:
            return None
        placement = await self._place(problem, before, earlier)
        block, wanted = self._choose(problem, tier, placement.domains)
        cards, tokens, estimated = await self._fit(problem, wanted)
        return Recall(
            tier,
            placement.domains,
            cards,
            len(block),
            tokens,
            estimated,
            placement.calls,
            placement.usage,
            at=self.appetite.at,
        )

    async def _place(self, problem: Problem, before: Sequence[Attempt], earlier: Sequence[Recall]) -> Placement:
        """Classify once; after a failed MS again with its attempts in view, where that is asked for."""
        if earlier and not self.appetite.refine:
            return Placement(earlier[-1].domains, 0, Usage(), ())
        if self.appetite.place_by == "cards" and (home := self._home(problem)):
            return Placement(home)
        seen = [a.reply.text for a in before if a.reply and a.key.tier == TierName.MS.value] if earlier else []
        return await place(problem, self.tree.domains, self.model, by=self.appetite.place_by, seed=self.seed, seen=seen)

    def _home(self, problem: Problem) -> tuple[str, ...]:
        """The domain of the card that ranks first for the problem, if it speaks of it at all."""
        best = rank(problem.text, self._at_home)[:1]
        tags = (tag for card in best if self.telling.shared(problem.text, card) >= SPEAKS for tag in card.domain_tags)
        return tuple(tag for tag in tags if tag != UNIVERSAL)[:1]

    @cached_property
    def _at_home(self) -> tuple[Card, ...]:
        """The cards that are shown and have a domain."""
        shown = (card for card in self.tree if card.status is not Status.DEPRECATED)
        return tuple(card for card in shown if set(card.domain_tags) != {UNIVERSAL})

    def _choose(
        self, problem: Problem, tier: TierName, domains: tuple[str, ...]
    ) -> tuple[Sequence[Card], Sequence[Card]]:
        """The block that a solve reads from, and what it wants of it."""
        block = self.tree.project(tier, domains)
        return block, self._wanted(problem, block)

    async def _fit(self, problem: Problem, block: Sequence[Card]) -> tuple[tuple[Card, ...], int, bool]:
        """Cut by estimate, then count with the model's own tokenizer and cut again if the estimate was too low."""
        limit = most = self.appetite.max_tokens
        at = self.appetite.at
        for _ in range(EXACT_TRIES):
            cards = fit(problem.text, block, limit, lambda card: estimate(card, at), self.appetite.ranking)
            tokens, estimated = await self._size(cards)
            if tokens <= most or not cards:
                break
            limit = limit * most // (tokens + 1)
        return cards, tokens, estimated

    def _wanted(self, problem: Problem, block: Sequence[Card]) -> Sequence[Card]:
        """The block without cards that speak too little of the problem, and no more of them than are wanted."""
        close, most = [card for card in block if self._fits(problem, card)], self.appetite.max_cards
        return close if most is None else self._best(problem, close, most)

    def _fits(self, problem: Problem, card: Card) -> bool:
        least = self.appetite.min_relevance
        return not least or not card.examples or self.telling.shared(problem.text, card) >= least

    def _best(self, problem: Problem, block: Sequence[Card], most: int) -> Sequence[Card]:
        if len(block) <= most:
            return block
        best = {card.card_id for card in self.appetite.ranking(problem.text, block)[:most]}
        return [card for card in block if card.card_id in best]

    async def _size(self, cards: Sequence[Card]) -> tuple[int, bool]:
        if not cards:
            return 0, False
        key = tuple(card.card_id for card in cards)
        if key not in self._sizes:
            text = shown_text(cards, self.appetite.at)
            counted = await self.model.count_tokens(text) if isinstance(self.model, Tokenizer) else None
            self._sizes[key] = (len(text) // CHARS_PER_TOKEN, True) if counted is None else (counted, False)
        return self._sizes[key]


def estimate(card: Card, at: Position = "instructions") -> int:
    """Tokens of a card as the solver reads it, from its length."""
    text = shown_text((card,), at) if at == "turns" and card.examples else card_text(card)
    return len(text) // CHARS_PER_TOKEN + 1
