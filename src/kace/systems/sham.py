"""Ladders that look like the method and lack its knowledge: what they gain, the prompt's shape gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kace.attempt import Attempt
from kace.cards import Card
from kace.knowledge import Library, Recall
from kace.problem import Problem
from kace.prompt import Position
from kace.systems.base import Bench
from kace.systems.placed import several_domains
from kace.systems.tiered import Tiered, library_of
from kace.tiers import TierName


class Placebo(Library):
    """Classifies as the method does, then shows another domain's block.

    `Recall.domains` keeps where the classifier placed the problem; the cards say what was shown. Cards that pass any
    domain are shown as ever: the two arms differ in the domain's own cards and in nothing else.
    """

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """The block of the stand-ins, less what is also the classified domain's."""
        if tier is TierName.ES:
            return None
        placement = await self._place(problem, before, earlier)
        others = stand_ins(placement.domains, self.tree.domain_names)
        shown = self.tree.project(tier, others)
        block = [card for card in shown if set(card.domain_tags).isdisjoint(placement.domains)]
        cards, tokens, estimated = await self._fit(problem, self._as_many(problem, block, tier, placement.domains))
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

    def _as_many(
        self, problem: Problem, block: Sequence[Card], tier: TierName, domains: tuple[str, ...]
    ) -> Sequence[Card]:
        """As many cards as the method would choose of its own block: the arms differ in knowledge, not in length."""
        if self.appetite.max_cards is None and not self.appetite.min_relevance:
            return block
        return self._best(problem, block, len(self._wanted(problem, self.tree.project(tier, domains))))


def stand_ins(placed: Sequence[str], registry: Sequence[str]) -> tuple[str, ...]:
    """For each domain the next in the registry's order, round its end, that is not one of them; fewer if none is left.

    None for none: a problem without a domain is shown what the method shows it.
    """
    chosen: list[str] = []
    for name in placed:
        at = registry.index(name)
        following = (*registry[at + 1 :], *registry[:at])
        chosen += [other for other in following if other not in placed and other not in chosen][:1]
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class EmptyBlock:
    """The words that introduce cards, and no cards."""

    at: Position = "instructions"

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        """The empty block; nobody is asked for a domain."""
        if tier is TierName.ES:
            return None
        return Recall(tier, domains=(), cards=(), eligible=0, tokens=0, estimated=False, scaffold=True, at=self.at)


def open_placebo(bench: Bench) -> Tiered:
    """Another domain's block instead of the problem's."""
    several_domains(bench, "kace-placebo")
    like = library_of(bench)
    return Tiered("kace-placebo", Placebo(like.tree, like.model, seed=like.seed, appetite=like.appetite))


def open_scaffold(bench: Bench) -> Tiered:
    """The prompt of a block, empty."""
    return Tiered("kace-scaffold", EmptyBlock(bench.config.cards_at))
