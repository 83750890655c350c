"""Ways to choose cards that the method is compared with: controls and ablations of retrieval."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

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
from kace.ladder.prompt import Context, fenced, shortened, template
from kace.ladder.retrieve import Retriever, rank
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

T = TypeVar("T")

TIER = "ROUTE"  # under which the calls of a model that picks cards are kept
MAX_PROBLEM_CHARS = 3_000
_ID = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){2,}")
_WRAPPING = " \t\r`'\"[]*-."


# Single cards instead of a block


Picker = Callable[
    [Problem, Sequence[Card]], Awaitable[AskResult[tuple[Card, ...]]]
]
"""Picks some of the cards for a problem."""


@dataclass(frozen=True, slots=True)
class CardPicker:
    """Picks single cards out of the whole tree, of any difficulty and domain.

    The choice depends on the problem alone, so HS reads what MS read. If the cards do not fit, the last ones are left
    out.
    """

    blocks: Retriever
    by: Literal["words", "meaning"]
    nearest: int | None = None  # only so many cards, the nearest first
    gated: bool = False  # only cards that reach the relevance threshold
    pick: Picker | None = None  # picks among them

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Context | None,
    ) -> Context:
        """Return all cards, the nearest, or a model's choice among them; none without a usable reply of the model."""
        cards: Sequence[Card] = self.blocks.tree.shown
        routed = replace(routed, eligible=len(cards))
        if earlier:
            return replace(routed, cards=earlier.cards)
        if self.gated:
            cards = self.blocks.relevance.relevant(problem.text, cards)
        if self.nearest:
            cards = rank(problem.text, cards, self.by)[: self.nearest]
        if self.pick:
            picked = await self.pick(problem, cards)
            cards = picked.value or ()
            routed = replace(routed, calls=picked.calls, usage=picked.usage)
        fitting = self.blocks.fit(problem.text, cards, ranked=cards)
        return replace(routed, cards=fitting)


async def pick_by_model(
    model: ChatModel,
    k: int,
    seed: int,
    subject: Subject,
    problem: Problem,
    cards: Sequence[Card],
) -> AskResult[tuple[Card, ...]]:
    """Return up to `k` cards that a model names, the most wanted first; no value if no reply is usable."""
    known = {card.card_id: card for card in cards}
    read = partial(read_ids, known=known, k=k)
    prompt = picking_prompt(problem.text, cards, k, subject)
    retry = template("systems/route_retry")
    key = AttemptKey(problem.id, seed, TIER, 0)
    return await ask(model, prompt, key, read, retry)


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
    known: Mapping[str, T],
    k: int,
) -> tuple[T, ...] | None:
    """Return what the first `k` known ids of a reply name, each once; nothing for `none`.

    `None` for a reply that is not a list of ids, or names no known one.
    """
    text = after_thinking(reply).strip(_WRAPPING)
    if text.casefold() == "none":
        return ()
    parts = [part.strip(_WRAPPING) for part in re.split(r"[,;\n]+", text)]
    if not all(map(_ID.fullmatch, filter(None, parts))):
        return None
    found = dict.fromkeys(filter(known.__contains__, parts))
    return tuple(known[name] for name in found)[:k] or None


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


async def show_other_domains(
    blocks: Retriever,
    problem: Problem,
    tier: TierName,
    routed: Context,
    earlier: object,
) -> Context:
    """Return another domain's block, after routing as the method does.

    The record keeps the routed domain and the cards that were shown. Universal cards are shown as always, and as many
    cards as the method would show, so that the two arms differ in the domain's own knowledge alone.
    """
    names = blocks.tree.domain_names
    domains = routed.domains
    block = []
    for card in blocks.tree.project(tier, other_domains(domains, names)):
        if set(card.domain_tags).isdisjoint(domains):
            block.append(card)
    whole, wanted = blocks.wanted(problem, tier, domains)
    most = len(block) if len(wanted) == len(whole) else len(wanted)
    return _show(blocks, problem, routed, block, most)


def _show(
    blocks: Retriever,
    problem: Problem,
    routed: Context,
    block: Sequence[Card],
    most: int | None = None,
) -> Context:
    """Return the context with the cards of a block, the best if too many or too long."""
    best = blocks.best(problem.text, block, most)
    fitting = blocks.fit(problem.text, best)
    return replace(routed, cards=fitting, eligible=len(block))


def other_domains(
    routed: Sequence[str], registry: Sequence[str]
) -> tuple[str, ...]:
    """Return, per routed domain, the next one in the registry's order that is not routed; fewer if none is left."""
    chosen: list[str] = []
    for name in routed:
        place = registry.index(name)
        for other in (*registry[place:], *registry[:place]):
            if other not in (*routed, *chosen):
                chosen.append(other)
                break
    return tuple(chosen)


# What no retriever could know


async def show_family(
    blocks: Retriever,
    cards: Mapping[str, set[str]],
    problem: Problem,
    tier: TierName,
    routed: Context,
    earlier: object,
) -> Context:
    """Return the tier's cards that came from training problems of the problem's family: the ceiling.

    They are of any domain and relevance, as many as fit. `cards` has their ids by family.
    """
    own = cards.get(problem.family or "", ())
    every = blocks.tree.project(tier, blocks.tree.domain_names)
    block = [card for card in every if card.card_id in own]
    return _show(blocks, problem, routed, block)


def cards_by_family(
    tree: EpistemicTree, train: Iterable[Problem]
) -> dict[str, set[str]]:
    """Return, by family, the cards that its training problems support."""
    sources = cards_by_source(tree)
    found = defaultdict[str, set[str]](set)
    for problem in train:
        cards = sources.get(one_line(problem.name), ())
        if problem.family and cards:
            found[problem.family] |= cards
    return found
