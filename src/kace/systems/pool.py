"""Ladders that read single cards out of one pool, instead of the block of a tier and a domain.

The pool is every card that is not deprecated, of any difficulty and domain. What is chosen depends on the problem
alone, so HS reads what MS read and nobody is asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kace.models.base import Usage
from kace.problem import Problem
from kace.retrieval.embed import rank_by_meaning, require_embeddings
from kace.retrieval.retriever import Library, Recall
from kace.solver.attempt import Attempt
from kace.solver.tiers import TierName
from kace.systems.base import Bench, candidates
from kace.systems.route import NO_PICK, Pick, Router
from kace.systems.tiered import Tiered, library_of
from kace.tree.card import Card, Status
from kace.tree.tree import EpistemicTree

UNBOUNDED = 1 << 40
"""More tokens than any tree has."""


class Chooser(Protocol):
    """Picks cards for a problem, the most wanted first."""

    async def choose(self, problem: Problem, pool: Sequence[Card]) -> Pick:
        """The cards, and what it cost to choose them."""
        ...


class Pool(Library):
    """A library without blocks: a chooser picks from all cards, and the last picked go first where they do not fit."""

    def __init__(self, like: Library, chooser: Chooser, max_tokens: int | None = None) -> None:
        most = like.appetite.max_tokens if max_tokens is None else max_tokens
        appetite = replace(like.appetite, max_tokens=most, ranking=as_chosen)
        super().__init__(like.tree, like.model, seed=like.seed, appetite=appetite)
        self.chooser = chooser
        self.pool = pool_of(like.tree)

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """What the chooser picks, once for MS and HS."""
        if tier is TierName.ES:
            return None
        if earlier:
            return replace(earlier[-1], tier=tier, classifier_calls=0, classifier_usage=Usage())
        pick = await self.chooser.choose(problem, self.pool) if self.pool else NO_PICK
        cards, tokens, estimated = await self._fit(problem, pick.cards)
        return Recall(tier, (), cards, len(self.pool), tokens, estimated, pick.calls, pick.usage, at=self.appetite.at)


def pool_of(tree: EpistemicTree) -> tuple[Card, ...]:
    """Every card that may be shown, in order of id."""
    return tuple(card for card in tree if card.status is not Status.DEPRECATED)


def as_chosen(problem: str, cards: Sequence[Card]) -> tuple[Card, ...]:
    """A ranking that leaves the choice in its order."""
    return tuple(cards)


@dataclass(frozen=True, slots=True)
class Everything:
    """No choice at all."""

    async def choose(self, problem: Problem, pool: Sequence[Card]) -> Pick:
        """The whole pool."""
        return Pick(tuple(pool))


@dataclass(frozen=True, slots=True)
class Retriever:
    """The cards nearest in meaning, by embedding."""

    k: int

    async def choose(self, problem: Problem, pool: Sequence[Card]) -> Pick:
        """The nearest `k`, nearest first."""
        return Pick(rank_by_meaning(problem.text, pool)[: self.k])


@dataclass(frozen=True, slots=True)
class Reranker:
    """An LLM's choice among what a retriever found."""

    retriever: Retriever
    router: Router

    async def choose(self, problem: Problem, pool: Sequence[Card]) -> Pick:
        """As the LLM picks; where its replies cannot be used, the retriever's own first cards."""
        found = await self.retriever.choose(problem, pool)
        pick = await self.router.choose(problem, found.cards)
        return pick if pick.usable else replace(pick, cards=found.cards[: self.router.k])


def open_monolithic(bench: Bench) -> Tiered:
    """Every card in one context; the token budget does not apply."""
    return Tiered("kace-monolithic", Pool(library_of(bench), Everything(), UNBOUNDED))


def open_retriever(bench: Bench) -> Tiered:
    """The k nearest cards."""
    require_embeddings()
    return Tiered("kace-retriever", Pool(library_of(bench), Retriever(bench.k)))


def open_router(bench: Bench) -> Tiered:
    """The cards an LLM picks from all."""
    return Tiered("kace-router", Pool(library_of(bench), Router(bench.helper, bench.k, bench.seed)))


def open_reranked(bench: Bench) -> Tiered:
    """The cards an LLM picks from the nearest."""
    require_embeddings()
    reranker = Reranker(Retriever(candidates(bench.k)), Router(bench.helper, bench.k, bench.seed))
    return Tiered("kace-reranked", Pool(library_of(bench), reranker))
