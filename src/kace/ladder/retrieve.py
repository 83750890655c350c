"""Retrieval: what a tier of a solve reads.

A router names the domains of a problem, a selector picks cards of the tier's block, and the budget bounds them. One
router is the coarse classifier, a model call. Its prompt begins with what all problems share (instructions, registry,
examples) and ends with the problem, so that prefix caches hit. The examples are the registry's own signals: given only
descriptions, a 0.5B model names two domains for every problem. The paper's classifier has none.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, starmap, zip_longest
from typing import Literal, TypeAlias

import numpy as np

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import UNIVERSAL, Card
from kace.cards.tree import Domain, EpistemicTree
from kace.config import RetrievalConfig
from kace.ladder.prompt import (
    CHARS_PER_TOKEN,
    Context,
    Hide,
    Prompts,
    card_text,
    fenced,
    neutral,
    shortened,
    template,
)
from kace.ladder.record import Attempt
from kace.ladder.relevance import Floats, Relevance, embed, own_text, words
from kace.ladder.tiers import TierName
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Message,
    Role,
    ask,
)
from kace.problems import Problem

SEPARATOR = 1  # tokens between two cards

Router: TypeAlias = Callable[..., Awaitable[Context]]
"""Returns a context with the domains of a problem, and after a failed tier of a problem and its attempts."""
Selector: TypeAlias = Callable[
    [Problem, TierName, Context, Context | None], Awaitable[Context]
]
"""Returns a routed context with the cards to read. The last argument is what an earlier tier read."""


class Retriever:
    """A tree, opened for reading. Ablations and controls replace its router or its selector."""

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
        self.router = router or self._open_router(model, seed)
        self.selector: Selector = self.select
        self.hide: Hide | None = None
        self._routed: dict[str, Context] = {}

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Context | None,
    ) -> Context | None:
        """Return the relevant cards of the tier and the problem's domain."""
        routed = await self._route(problem, before, earlier)
        placement = self.config.placement
        routed = replace(routed, placement=placement, hide=self.hide)
        found = await self.selector(problem, tier, routed, earlier)
        return found.beside(problem.text)

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Context | None,
    ) -> Context:
        """Return the relevant cards of the block of the tier and domains, as many as fit."""
        block, wanted = self.wanted(problem, tier, routed.domains)
        cards = self.fit(problem.text, wanted)
        return replace(routed, cards=cards, eligible=len(block))

    def wanted(
        self, problem: Problem, tier: TierName, domains: Sequence[str]
    ) -> tuple[Sequence[Card], Sequence[Card]]:
        """Return the block, and its relevant cards before the token budget."""
        block = self.readable(tier, domains)
        relevant = self.relevance.relevant(problem.text, block)
        return block, self.best(problem.text, relevant)

    def readable(
        self, tier: TierName, domains: Sequence[str]
    ) -> Sequence[Card]:
        """Return the block of a tier and domains; a card tried first may be of either tier."""
        block = self.tree.project(tier, domains)
        if self.config.es_policy != "try":
            return block
        every = {card.card_id: card for card in block}
        for other in (TierName.MS, TierName.HS):
            for card in self.tree.project(other, domains):
                if card.examples:
                    every.setdefault(card.card_id, card)
        return list(every.values())

    def best(
        self,
        problem: str,
        cards: Sequence[Card],
        most: int | None = None,
    ) -> Sequence[Card]:
        """Return at most `most` cards (default `max_cards`): the best-ranked, in their order."""
        most = self.config.max_cards if most is None else most
        if most is None or len(cards) <= most:
            return cards
        best = rank(problem, cards)[:most]
        return [card for card in cards if card in best]

    def fit(
        self,
        problem: str,
        cards: Sequence[Card],
        ranked: Sequence[Card] | None = None,
    ) -> tuple[Card, ...]:
        """Return all cards if they have few enough tokens, else the best-ranked that fit, in their order.

        A card too large for what is left is skipped for the next best.
        """
        left = self.config.max_card_tokens
        if self.size(cards) <= left:
            return tuple(cards)
        chosen = []
        for card in ranked or rank(problem, cards):
            size = self.size((card,)) + SEPARATOR
            if size <= left:
                chosen.append(card)
                left -= size
        return tuple(card for card in cards if card in chosen)

    def size(self, cards: Sequence[Card]) -> int:
        """Return the tokens of cards as an attempt reads them."""
        return Context(tuple(cards), placement=self.config.placement).tokens

    def routed_by(
        self,
        model: ChatModel,
        seed: int,
    ) -> Retriever:
        """Return a retriever of the same tree, routed by another model or seed. The indexes are shared."""
        other = copy(self)
        other._routed = {}
        other.router = other._open_router(model, seed)
        return other

    async def covers(self, problem: Problem) -> bool:
        """Whether MS would read a card whose demonstrations are near to this problem."""
        scores = self.relevance.scores(problem.text)
        least = self.relevance.skip_threshold
        if max(scores.values(), default=0.0) < least:
            return False
        routed = await self.router(problem)
        near = []
        for card in self.readable(TierName.MS, routed.domains):
            if card.examples and scores.get(card.card_id, 0.0) >= least:
                near.append(card)
        context = Context(tuple(near), placement=self.config.placement)
        if not context.beside(problem.text).cards:
            return False
        # MS follows, and does not route again.
        self._routed[problem.id] = routed
        return True

    async def _route(
        self,
        problem: Problem,
        before: Sequence[Attempt],
        earlier: Context | None,
    ) -> Context:
        """Route once; if configured, again after a failed MS with its attempts in view."""
        if not earlier:
            return self._routed.pop(problem.id, None) or await self.router(
                problem
            )
        domains = earlier.domains
        if not self.config.refine_domain:
            return Context(domains=domains)
        seen = []
        for attempt in before:
            if attempt.tier is TierName.MS and attempt.text:
                seen.append(attempt.text)
        routed = await self.router(problem, seen)
        return routed if routed.domains else replace(routed, domains=domains)

    def _open_router(self, model: ChatModel, seed: int) -> Router:
        if self.config.router == "cards":
            return self._route_by_cards
        domains = self.tree.domains
        return registry_router(self.config, domains, model, seed, self.subject)

    async def _route_by_cards(
        self, problem: Problem, seen: Sequence[str] = ()
    ) -> Context:
        """Return the domain of the most relevant card, if its score reaches the threshold; else route by words."""
        scores = self.relevance.scores(problem.text)
        best = 0.0
        domains = route_by_words(problem, self.tree.domains)
        for card in self.tree.shown:
            own = [tag for tag in card.domain_tags if tag != UNIVERSAL]
            score = scores.get(card.card_id, 0.0)
            if own and score > best and score >= self.relevance.threshold:
                best = score
                domains = (own[0],)
        return Context(domains=domains)


# Routers


def fixed_router(rule: Callable[[Problem], tuple[str, ...]]) -> Router:
    """Return a router that follows a rule without a call: a control."""

    async def route(problem: Problem, seen: Sequence[str] = ()) -> Context:
        return Context(domains=rule(problem))

    return route


def route_by_words(
    problem: Problem, domains: Sequence[Domain]
) -> tuple[str, ...]:
    """Return the domain whose name, description and signals share most with the problem; none if none does."""
    if len(domains) < 2:
        return tuple(domain.name for domain in domains)
    registry = sorted(domains, key=lambda domain: domain.name)
    scores = bm25(problem.text, map(_domain_words, registry))
    best = max(scores)
    return (registry[scores.index(best)].name,) if best > 0 else ()


@lru_cache(maxsize=256)
def _domain_words(domain: Domain) -> Counter[str]:
    name = domain.name.replace("_", " ")
    text = "\n".join((name, domain.description, *domain.signals))
    return Counter(words(text))


# The classifier

# Under these tiers its calls are kept.
FIRST = "DOMAIN"
REFINED = "DOMAIN2"
MAX_EXAMPLES = 30  # signals shown in all, the same number of each domain
MAX_PROBLEM_CHARS = 3_000
MAX_ATTEMPT_CHARS = 800
MAX_SIGNAL_CHARS = 120
"""At most about 3,700 tokens with seven domains: a small local model has room for 4,096."""

_OBJECT = re.compile(r"\{[^{}]*\}")


def registry_router(
    config: RetrievalConfig,
    domains: Sequence[Domain],
    model: ChatModel,
    seed: int,
    subject: Subject = MATHEMATICS,
) -> Router:
    """Return the configured router over a registry alone; words replace cards.

    After an unusable reply, the classifier calls once more with the reason. A call that fails names no domain.
    """
    registry = sorted(domains, key=lambda domain: domain.name)
    names = tuple(domain.name for domain in registry)
    if config.router != "model" or len(names) < 2:
        return fixed_router(lambda problem: route_by_words(problem, registry))

    async def classify(problem: Problem, seen: Sequence[str] = ()) -> Context:
        text = problem.text
        found = await ask(
            model,
            classifier_prompt(text, registry, seen, config.prompts, subject),
            AttemptKey(problem.id, seed, REFINED if seen else FIRST, 0),
            read=lambda reply: read_domains(reply, names) or None,
            retry=template("classify_retry"),
            choices=choices_of(names),
        )
        return Context(
            domains=found.value or (), calls=found.calls, usage=found.usage
        )

    return classify


def classifier_prompt(
    problem: str,
    registry: Sequence[Domain],
    attempts: Sequence[str] = (),
    prompts: Prompts = "default",
    subject: Subject = MATHEMATICS,
) -> tuple[Message, ...]:
    """Return instructions and registry, examples, then the problem and the attempts at it."""
    instructions = [template("classify", subject), "", "Domains:"]
    for domain in registry:
        instructions.append(f"- {domain.name}: {neutral(domain.description)}")
    parts = [fenced("problem", shortened(problem, MAX_PROBLEM_CHARS))]
    if attempts:
        for attempt in attempts:
            parts.append(
                fenced("attempt", shortened(attempt, MAX_ATTEMPT_CHARS))
            )
        parts.append(template("reclassify"))
    return (
        Message(Role.SYSTEM, "\n".join(instructions)),
        *(() if prompts == "paper" else _examples(registry)),
        Message(Role.USER, "\n\n".join(parts)),
    )


def _examples(registry: Sequence[Domain]) -> list[Message]:
    """Return an exchange per signal, the domains in turn, always in the same order: best for a small model."""
    most = max(1, MAX_EXAMPLES // len(registry))
    turns = []
    for signals in zip_longest(*(domain.signals[:most] for domain in registry)):
        for domain, signal in zip(registry, signals, strict=True):
            if signal:
                shown = fenced("problem", shortened(signal, MAX_SIGNAL_CHARS))
                turns.append(Message(Role.USER, shown))
                turns.append(Message(Role.ASSISTANT, _reply(domain.name)))
    return turns


def _reply(*names: str) -> str:
    return json.dumps(dict(zip(("domain", "second"), names, strict=False)))


def choices_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return every valid reply: a name, or a pair of names, each pair in one order to keep the list short."""
    return (*map(_reply, names), *starmap(_reply, combinations(names, 2)))


def read_domains(reply: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the domains that the JSON object in a reply names; none if there are objects that disagree."""
    found = {_read_object(text, names) for text in _OBJECT.findall(reply)}
    found.discard(())
    return found.pop() if len(found) == 1 else ()


def _read_object(text: str, names: Sequence[str]) -> tuple[str, ...]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    # The paper's own form has `primary`.
    first = content.get("domain") or content.get("primary")
    given = {str(first).strip().casefold()}
    if content.get("second"):
        given.add(str(content["second"]).strip().casefold())
    found = tuple(name for name in names if name.casefold() in given)
    return found if len(found) == len(given) else ()


def estimate(card: Card) -> int:
    """Return the tokens of a card as the solver reads it, estimated from its length."""
    return len(card_text(card)) // CHARS_PER_TOKEN + 1


# Ranking

K1 = 1.2
B = 0.75
KNOWN_CARDS = 20_000  # whose words and embeddings are cached


def bm25(problem: str, texts: Iterable[Counter[str]]) -> list[float]:
    """Return a score per text, given as its words. A word of the problem counts once."""
    counts = list(texts)
    lengths = [count.total() for count in counts]
    mean = (sum(lengths) or 1) / len(counts)
    scores = [0.0] * len(counts)
    # A sum of floats depends on its order.
    for word in sorted(set(words(problem))):
        holders = [i for i, count in enumerate(counts) if word in count]
        rest = len(counts) - len(holders)
        rarity = math.log(1 + (rest + 0.5) / (len(holders) + 0.5))
        for place in holders:
            times = counts[place][word]
            norm = K1 * (1 - B + B * lengths[place] / mean)
            scores[place] += rarity * times * (K1 + 1) / (times + norm)
    return scores


def rank(
    problem: str,
    cards: Sequence[Card],
    by: Literal["words", "meaning"] = "words",
) -> tuple[Card, ...]:
    """Return the cards by `words` (BM25) or `meaning` (embeddings), best match first; ties keep their order."""
    if not cards:
        return ()
    if by == "words":
        scores = bm25(problem, map(_card_words, cards))
    else:
        known = np.array([_card_meaning(card) for card in cards])
        scores = list(known @ embed([problem])[0])
    order = sorted(range(len(cards)), key=lambda place: -scores[place])
    return tuple(cards[place] for place in order)


def _found_by(card: Card) -> str:
    return "\n".join((own_text(card), *card.wordings))


@lru_cache(maxsize=KNOWN_CARDS)
def _card_words(card: Card) -> Counter[str]:
    return Counter(words(_found_by(card)))


@lru_cache(maxsize=KNOWN_CARDS)
def _card_meaning(card: Card) -> Floats:
    (meaning,) = embed([_found_by(card)])
    return np.asarray(meaning)
