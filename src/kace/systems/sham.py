"""Ladders that look like the method and lack its knowledge: what they gain, the prompt's shape gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kace.problem import Problem
from kace.retrieval.prompt import Position
from kace.retrieval.retriever import Library, Recall
from kace.solver.attempt import Attempt
from kace.solver.tiers import TierName
from kace.systems.base import Bench
from kace.systems.placed import several_domains
from kace.systems.tiered import Tiered, library_of
from kace.tree.card import Card


class Placebo(Library):
    """Classifies as the method does, then shows another domain's block.

    `Recall.domains` keeps where the classifier placed the problem; the cards say what was shown. Cards that pass any
    domain are shown as ever: the two arms differ in the domain's own cards and in nothing else.
    """

    def _choose(
        self, problem: Problem, tier: TierName, domains: tuple[str, ...]
    ) -> tuple[Sequence[Card], Sequence[Card]]:
        """The block of the stand-ins, less what is also the classified domain's, and as much of it as of one's own.

        The arms differ in knowledge, not in length: where the method chooses cards, as many are chosen here.
        """
        shown = self.tree.project(tier, stand_ins(domains, self.tree.domain_names))
        block = [card for card in shown if set(card.domain_tags).isdisjoint(domains)]
        whole, own = super()._choose(problem, tier, domains)
        return block, block if len(own) == len(whole) else self._best(problem, block, len(own))


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
    return Tiered("kace-placebo", placebo_of(bench, "kace-placebo"))


def placebo_of(bench: Bench, system: str) -> Placebo:
    """The bench's tree, one domain off; raises where there is no other domain to show."""
    several_domains(bench, system)
    like = library_of(bench)
    return Placebo(like.tree, like.model, seed=like.seed, appetite=like.appetite)


def open_scaffold(bench: Bench) -> Tiered:
    """The prompt of a block, empty."""
    return Tiered("kace-scaffold", EmptyBlock(bench.config.cards_at))
