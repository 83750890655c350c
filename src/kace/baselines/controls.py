"""Ways to choose cards that the method is compared with: controls and ablations of retrieval."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from kace.answers.extract import last_boxed
from kace.answers.kinds import Subject
from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    Example,
    Provenance,
    with_examples,
)
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.errors import DataError, one_line
from kace.ladder.prompt import NOTHING, Context, fenced, shortened, template
from kace.ladder.relevance import Relevance
from kace.ladder.retrieve import Budget, Retriever, rank
from kace.ladder.tiers import TierName
from kace.models.base import (
    AskResult,
    AttemptKey,
    ChatModel,
    Message,
    after_thinking,
    ask,
    chat,
)
from kace.problems import Problem

TIER = "ROUTE"  # under which the calls of a model that picks cards are kept
MAX_PROBLEM_CHARS = 3_000
_ID = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){2,}")
_WRAPPING = " \t\r`'\"[]*-."


# Single cards instead of a block


@dataclass(frozen=True, slots=True)
class CardPicker:
    """Picks single cards out of the whole tree, of any difficulty and domain.

    The choice depends on the problem alone, so HS reads what MS read. If the cards do not fit, the last ones are left
    out.
    """

    cards: tuple[Card, ...]
    budget: Budget
    by: Literal["words", "meaning"]
    nearest: int | None = None  # only so many cards, the nearest first
    relevance: Relevance | None = None  # only cards that reach its threshold
    model: ModelPicker | None = None  # picks among them

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Context | None,
    ) -> Context:
        """Return all cards, the nearest, or a model's choice among them."""
        routed = replace(routed, eligible=len(self.cards))
        if earlier:
            return replace(routed, cards=earlier.cards)
        cards: Sequence[Card] = self.cards
        if self.relevance:
            cards = self.relevance.relevant(problem.text, cards)
        if self.nearest:
            cards = rank(problem.text, cards, self.by)[: self.nearest]
        if self.model:
            picked = await self.model.pick(problem, cards)
            # Without a usable reply: the nearest, where cards are ranked.
            best = cards[: self.model.k if self.nearest else 0]
            cards = best if picked.value is None else picked.value
            routed = replace(routed, calls=picked.calls, usage=picked.usage)
        fitting = self.budget.fit(problem.text, cards, ranked=cards)
        return replace(routed, cards=fitting)


@dataclass(frozen=True, slots=True)
class ModelPicker:
    """Asks a model which cards a problem needs."""

    model: ChatModel
    k: int  # the most cards it may pick
    seed: int
    subject: Subject

    async def pick(
        self,
        problem: Problem,
        cards: Sequence[Card],
    ) -> AskResult[tuple[Card, ...]]:
        """Return the cards that the model names, the most wanted first; no value if no reply is usable."""
        known = {card.card_id: card for card in cards}

        def read(reply: str) -> tuple[Card, ...] | None:
            ids = read_ids(reply, known, self.k)
            return None if ids is None else tuple(known[name] for name in ids)

        prompt = picking_prompt(problem.text, cards, self.k, self.subject)
        retry = template("systems/route_retry")
        key = AttemptKey(problem.id, self.seed, TIER, 0)
        return await ask(self.model, prompt, key, read, retry)


def picking_prompt(
    problem: str,
    cards: Sequence[Card],
    k: int,
    subject: Subject,
) -> tuple[Message, ...]:
    """Return the prompt: ids with triggers, which all problems share, then the problem, so prefix caches hit."""
    lines = [f"{card.card_id}: {'; '.join(card.triggers)}" for card in cards]
    listed = fenced("cards", "\n".join(lines))
    instructions = template("systems/route", subject).format(k=k)
    quoted = fenced("problem", shortened(problem, MAX_PROBLEM_CHARS))
    return chat(f"{instructions}\n\n{listed}", quoted)


def read_ids(
    reply: str,
    known: Collection[str],
    k: int,
) -> tuple[str, ...] | None:
    """Return the first `k` known ids of a reply, each once; none for `none`.

    `None` for a reply that is not a list of ids, or names no known one.
    """
    text = after_thinking(reply).strip()
    if text.strip(_WRAPPING).casefold() == "none":
        return ()
    found = []
    for part in re.split(r"[,;\n]", text):
        name = part.strip(_WRAPPING)
        if name and not _ID.fullmatch(name):
            return None
        if name in known and name not in found:
            found.append(name)
    return tuple(found[:k]) or None


# Demonstrations


def demonstration_tree(train: Sequence[Problem]) -> EpistemicTree:
    """Return a tree in memory with a card per solved training problem, numbered as in the file.

    So relevance, budget, prompt and record treat demonstrations like a tree's.
    """
    cards = []
    for number, problem in enumerate(train, 1):
        if problem.solution:
            # Without validation: it has no rule and no trigger, and its solution may be long.
            card = Card.model_construct(
                card_id=f"DEMO_NO_{number:05d}",
                payload=with_examples("", (worked_example(problem),)),
                routing_conditions=(),
                difficulty_tag=Difficulty.MEDIUM,
                domain_tags=(UNIVERSAL,),
                helpfulness_score=0.0,
                provenance=Provenance(source="a solved training problem"),
            )
            cards.append(card)
    if not cards:
        raise DataError(
            "no training problem has a worked solution",
            fix="add the field 'solution'",
        )
    return EpistemicTree.of((), cards)


def worked_example(problem: Problem) -> Example:
    """Return a problem with its solution, which ends in its answer, without blank lines."""
    worked = (problem.solution or "").strip()
    if not last_boxed(worked):
        worked = f"{worked}\nThe answer is \\boxed{{{problem.answer}}}."
    text = re.sub(r"\n\s*\n", "\n", problem.text.strip())
    return Example(text, re.sub(r"\n\s*\n", "\n", worked))


# Another domain's cards


@dataclass(frozen=True, slots=True)
class Placebo:
    """Routes as the method does, then shows another domain's block.

    The record keeps the routed domain and the cards that were shown. Universal cards are shown as always, and as many
    cards as the method would show, so that the two arms differ in the domain's own knowledge alone.
    """

    blocks: Retriever

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: object,
    ) -> Context:
        """Return the block of the other domains, without what is also the routed domain's."""
        tree = self.blocks.tree
        budget = self.blocks.budget
        domains = routed.domains
        others = other_domains(domains, tree.domain_names)
        block = []
        for card in tree.project(tier, others):
            if set(card.domain_tags).isdisjoint(domains):
                block.append(card)
        cards: Sequence[Card] = block
        whole, wanted = self.blocks.wanted(problem, tier, domains)
        if len(wanted) < len(whole):
            cards = budget.best(problem.text, block, len(wanted))
        fitting = budget.fit(problem.text, cards)
        return replace(routed, cards=fitting, eligible=len(block))


def other_domains(
    routed: Sequence[str], registry: Sequence[str]
) -> tuple[str, ...]:
    """Return, per routed domain, the next one in the registry's order that is not routed; fewer if none is left."""
    chosen: list[str] = []
    for name in routed:
        place = registry.index(name)
        others = [*registry[place + 1 :], *registry[:place]]
        free = [each for each in others if each not in {*routed, *chosen}]
        chosen += free[:1]
    return tuple(chosen)


def random_domain(
    problem: Problem,
    registry: Sequence[str],
    seed: int,
) -> str:
    """Return a domain drawn by problem and seed."""
    return Random(f"{problem.id} {seed}").choice(registry)  # noqa: S311


# What no retriever could know


@dataclass(frozen=True, slots=True)
class FamilyCards:
    """The ceiling: shows the tier's cards that came from training problems of the problem's family."""

    cards: Mapping[str, set[str]]  # card ids by family
    blocks: Retriever

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: object,
    ) -> Context:
        """Return the cards, of any domain and relevance, as many as fit."""
        tree = self.blocks.tree
        budget = self.blocks.budget
        own = self.cards.get(problem.family or "", ())
        every = tree.project(tier, tree.domain_names)
        block = [card for card in every if card.card_id in own]
        best = budget.best(problem.text, block)
        fitting = budget.fit(problem.text, best)
        return replace(routed, cards=fitting, eligible=len(block))

    async def covers(self, problem: Problem) -> bool:
        """Whether MS reads any."""
        found = await self.select(problem, TierName.MS, NOTHING, None)
        return bool(found.cards)


def cards_by_family(
    tree: EpistemicTree, train: Iterable[Problem]
) -> dict[str, set[str]]:
    """Return, by family, the cards that its training problems support."""
    sources = cards_by_source(tree)
    found: dict[str, set[str]] = {}
    for problem in train:
        cards = sources.get(one_line(problem.name), ())
        if problem.family and cards:
            found.setdefault(problem.family, set()).update(cards)
    return found


def require_families(problems: Sequence[Problem]) -> None:
    """Refuse problems of which none has a family."""
    if not any(problem.family for problem in problems):
        raise DataError(
            "oracle-card needs families, and no problem has one",
            fix="give problems the field 'family'",
        )


def require_gold_domains(
    problems: Sequence[Problem], names: Sequence[str]
) -> None:
    """Refuse problems whose domain is missing or not in the tree's registry."""
    for problem in problems:
        if problem.domain not in names:
            raise DataError(
                f"kace-oracle needs the tree's domains in the data, and {problem.name!r} has"
                f" {problem.domain or 'none'}",
                fix=f"give each problem a `domain` field with one of: {', '.join(names)}",
            )
