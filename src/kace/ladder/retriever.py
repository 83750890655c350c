"""The retriever: what a tier of a solve reads. A router names the domains, a gate and a selector pick the cards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple, Protocol

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import UNIVERSAL, Difficulty, Status
from kace.cards.tree import EpistemicTree
from kace.config import RetrievalConfig
from kace.errors import UsageError
from kace.ladder.prompt import PromptContext
from kace.ladder.record import Attempt, RetrievedContext
from kace.ladder.relevance import Relevance
from kace.ladder.router import Route, Router, open_router
from kace.ladder.selector import NO_USAGE, BlockSelector, Budget, Selector, TextSize
from kace.ladder.tiers import FROM_MS, LOCKED, Tier, TierName
from kace.models.base import ChatModel, Usage
from kace.problems import Problem


class Retrieval(NamedTuple):
    """What one tier reads: the record of it, and what its attempts are shown."""

    record: RetrievedContext
    context: PromptContext


class ContextSource(Protocol):
    """Where a solve reads from: a tree, or whatever is compared with one."""

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Retrieval],
    ) -> Retrieval | None:
        """What a tier reads; `before` are the attempts made so far, `earlier` what tiers before it read."""
        ...


class Retriever:
    """A tree, opened for reading. Ablations and controls replace one of its three parts."""

    def __init__(
        self,
        tree: EpistemicTree,
        model: ChatModel,
        config: RetrievalConfig,
        *,
        seed: int = 0,
        router: Router | None = None,
        subject: Subject = MATHEMATICS,
    ) -> None:
        self.tree = tree
        self.config = config
        self.subject = subject
        self.relevance = Relevance(tree, config)
        self.budget = Budget(config, model)
        self.router = router or open_router(
            config, tree, self.relevance, model, seed, subject
        )
        self.blocks = BlockSelector(tree, self.relevance, self.budget)
        self.selector: Selector = self.blocks
        self._routes: dict[str, Route] = {}

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Retrieval],
    ) -> Retrieval | None:
        """Nothing at ES, ever; else the relevant cards of the tier and the problem's domain."""
        if tier is TierName.ES:
            return None
        route = await self._route(problem, before, earlier)
        read = [each.context.cards for each in earlier]
        selection = await self.selector.select(problem, tier, route.domains, read)
        context = PromptContext(
            selection.cards, placement=self.config.placement
        ).beside(problem.text)
        return retrieval(
            tier,
            context,
            await self.budget.size(context.cards),
            domains=route.domains,
            eligible=selection.eligible,
            calls=route.calls + selection.calls,
            usage=route.usage + selection.usage,
        )

    def asking(self, model: ChatModel, seed: int) -> Retriever:
        """The same tree and gate, routed by another model or seed. Costs nothing: the indexes are shared."""
        other = copy(self)
        other._routes = {}
        other.router = open_router(
            self.config, self.tree, self.relevance, model, seed, self.subject
        )
        return other

    async def covers(self, problem: Problem) -> bool:
        """Whether MS would read a card relevant to this problem. A universal card is to every one, and says nothing."""
        scores = self.relevance.scores(problem.text, self.relevance.skip_threshold)
        shown = (
            card
            for card in map(self.tree.card, scores)
            if card.status is not Status.DEPRECATED
        )
        relevant = [card for card in shown if card.difficulty_tag is Difficulty.MEDIUM]
        if (
            not PromptContext(tuple(relevant), placement=self.config.placement)
            .beside(problem.text)
            .cards
        ):
            return False
        route = await self.router(problem)
        covered = any(
            not {UNIVERSAL, *route.domains}.isdisjoint(card.domain_tags)
            for card in relevant
        )
        if covered:
            self._routes[problem.id] = (
                route  # MS is sure to come, and needs not ask again
            )
        return covered

    async def _route(
        self, problem: Problem, before: Sequence[Attempt], earlier: Sequence[Retrieval]
    ) -> Route:
        """Route once; after a failed MS again with its attempts in view, where that is asked for and can be said."""
        if not earlier:
            return self._routes.pop(problem.id, None) or await self.router(problem)
        kept = earlier[-1].record.domains
        if not self.config.refine_domain:
            return Route(kept)
        seen = [
            attempt.text
            for attempt in before
            if attempt.tier is TierName.MS and attempt.text
        ]
        route = await self.router(problem, seen)
        return route if route.domains else replace(route, domains=kept)


def retrieval(
    tier: TierName,
    context: PromptContext,
    size: TextSize,
    *,
    domains: tuple[str, ...] = (),
    eligible: int = 0,
    calls: int = 0,
    usage: Usage = NO_USAGE,
) -> Retrieval:
    """A retrieval with its record."""
    record = RetrievedContext(
        tier=tier,
        domains=domains,
        cards=tuple(card.card_id for card in context.cards),
        eligible=eligible,
        tokens=size.tokens,
        estimated=size.estimated,
        classifier_calls=calls,
        classifier_input=usage.input,
        classifier_cached=usage.cached,
        classifier_output=usage.output,
        notes=context.learned_hash,
    )
    return Retrieval(record, context)


class EsPolicy:
    """Which tiers a problem climbs where a card covers it. Anything but the locked ladder is beyond the paper.

    A wrong answer that both ES attempts agree on never reads a card. A card that is relevant to the problem can repair
    it: `skip` begins at MS.
    """

    def __init__(
        self,
        retriever: Retriever,
        covers: Callable[[Problem], Awaitable[bool]] | None = None,
    ) -> None:
        policy = retriever.config.es_policy
        if (
            policy != "locked"
            and covers is None
            and not retriever.config.relevance_threshold
        ):
            what = (
                f"es_policy '{policy}' needs a relevance gate, and the threshold is 0"
            )
            raise UsageError(what, fix="set relevance_threshold above 0")
        self.covers = covers or retriever.covers
        self.tiers = {"locked": LOCKED, "skip": FROM_MS}[policy]

    async def __call__(self, problem: Problem) -> Sequence[Tier]:
        """The tiers of a problem."""
        if self.tiers is LOCKED or not await self.covers(problem):
            return LOCKED
        return self.tiers
