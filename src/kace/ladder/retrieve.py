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
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations, starmap, zip_longest
from operator import is_
from typing import Literal, NamedTuple, Protocol

from kace.answers.kinds import MATHEMATICS, Subject
from kace.cards.card import UNIVERSAL, VISIBLE, Card, Status
from kace.cards.tree import Domain, EpistemicTree
from kace.config import RetrievalConfig
from kace.ladder.prompt import (
    Context,
    Prompts,
    card_text,
    fenced,
    neutral,
    shortened,
    shown_text,
    template,
)
from kace.ladder.record import Attempt
from kace.ladder.relevance import Relevance, embed, own_text, words
from kace.ladder.tiers import TierName
from kace.models.base import (
    ChatModel,
    Message,
    Messages,
    Question,
    Role,
    Tokenizer,
    ask,
)
from kace.problems import Problem


class Router(Protocol):
    """Names the domains whose cards a problem may read."""

    async def __call__(
        self,
        problem: Problem,
        seen: Sequence[str] = (),
    ) -> Context:
        """Return a context with the problem's domains. `seen` are failed attempts, for a second look."""
        ...


class Selector(Protocol):
    """Chooses among the cards of a tree."""

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Sequence[Context],
    ) -> Context:
        """Return the routed context with the cards to read; `earlier` is what earlier tiers read."""
        ...


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
        self.budget = Budget(config, model)
        self.router = router or self._open_router(model, seed)
        self.blocks = BlockSelector(tree, self.relevance, self.budget)
        self.selector: Selector = self.blocks
        self._routed: dict[str, Context] = {}

    async def retrieve(
        self,
        problem: Problem,
        tier: TierName,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context | None:
        """Return the relevant cards of the tier and the problem's domain; nothing at ES, ever."""
        if tier is TierName.ES:
            return None
        routed = await self._route(problem, before, earlier)
        routed = replace(routed, placement=self.config.placement)
        found = await self.selector.select(problem, tier, routed, earlier)
        found = found.beside(problem.text)
        size = await self.budget.size(found.cards)
        return replace(found, tokens=size.tokens, estimated=size.estimated)

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
        scores = self.relevance.scores(
            problem.text, self.relevance.skip_threshold
        )
        relevant = []
        for card in map(self.tree.card, scores):
            shown = card.status is not Status.DEPRECATED
            if shown and card.examples and card.difficulty_tag in VISIBLE["MS"]:
                relevant.append(card)
        context = Context(tuple(relevant), placement=self.config.placement)
        if not context.beside(problem.text).cards:
            return False
        routed = await self.router(problem)
        domains = {UNIVERSAL, *routed.domains}
        if all(domains.isdisjoint(card.domain_tags) for card in relevant):
            return False
        self._routed[problem.id] = (
            routed  # MS follows, and does not route again
        )
        return True

    async def _route(
        self,
        problem: Problem,
        before: Sequence[Attempt],
        earlier: Sequence[Context],
    ) -> Context:
        """Route once; if configured, again after a failed MS with its attempts in view."""
        if not earlier:
            return self._routed.pop(problem.id, None) or await self.router(
                problem
            )
        domains = earlier[-1].domains
        if not self.config.refine_domain:
            return Context(domains=domains)
        seen = []
        for attempt in before:
            if attempt.tier is TierName.MS and attempt.text:
                seen.append(attempt.text)
        routed = await self.router(problem, seen)
        return routed if routed.domains else replace(routed, domains=domains)

    def _open_router(
        self,
        model: ChatModel,
        seed: int,
    ) -> Router:
        if self.config.router == "cards":
            return partial(
                route_by_cards, tree=self.tree, relevance=self.relevance
            )
        domains = self.tree.domains
        return registry_router(self.config, domains, model, seed, self.subject)


# Routers


def fixed_router(rule: Callable[[Problem], tuple[str, ...]]) -> Router:
    """Return a router that follows a rule without a call: a control."""

    async def route(problem: Problem, seen: Sequence[str] = ()) -> Context:
        return Context(domains=rule(problem))

    return route


def registry_router(
    config: RetrievalConfig,
    domains: Sequence[Domain],
    model: ChatModel,
    seed: int,
    subject: Subject = MATHEMATICS,
) -> Router:
    """Return the configured router over a registry alone; words replace cards."""
    if config.router == "model":
        return Classifier(domains, model, seed, config.prompts, subject)
    return fixed_router(lambda problem: route_by_words(problem, domains))


async def route_by_cards(
    problem: Problem,
    seen: Sequence[str] = (),
    *,
    tree: EpistemicTree,
    relevance: Relevance,
) -> Context:
    """Return the domain of the most relevant card, if its score reaches the threshold; else route by words."""
    scores = relevance.scores(problem.text, relevance.threshold)
    scored = []
    for card in tree.shown:
        if card.card_id in scores and set(card.domain_tags) != {UNIVERSAL}:
            scored.append(card)
    best = max(scored, key=lambda card: scores[card.card_id], default=None)
    if best is None:
        return Context(domains=route_by_words(problem, tree.domains))
    domains = [tag for tag in best.domain_tags if tag != UNIVERSAL]
    return Context(domains=tuple(domains[:1]))


def route_by_words(
    problem: Problem, domains: Sequence[Domain]
) -> tuple[str, ...]:
    """Return the domain whose name, description and signals share most with the problem; none if none does."""
    registry = tuple(sorted(domains, key=lambda domain: domain.name))
    if len(registry) < 2:
        return tuple(domain.name for domain in registry)
    scores = _registry_index(registry).scores(problem.text)
    best = max(scores)
    return (registry[scores.index(best)].name,) if best > 0 else ()


@lru_cache(maxsize=16)
def _registry_index(registry: tuple[Domain, ...]) -> Index:
    texts = []
    for domain in registry:
        name = domain.name.replace("_", " ")
        texts.append("\n".join((name, domain.description, *domain.signals)))
    return Index(map(words, texts))


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


@dataclass(frozen=True, slots=True)
class Classifier:
    """Routes with a model call. After an unusable reply, calls once more with the reason."""

    domains: Sequence[Domain]
    model: ChatModel
    seed: int
    prompts: Prompts = "default"
    subject: Subject = MATHEMATICS

    async def __call__(
        self,
        problem: Problem,
        seen: Sequence[str] = (),
    ) -> Context:
        """Return the problem's domains; with attempts in view after a tier failed. None if the call fails."""
        registry = sorted(self.domains, key=lambda domain: domain.name)
        names = tuple(domain.name for domain in registry)
        if len(names) < 2:
            return Context(domains=names)
        messages = classifier_prompt(
            problem.text, registry, seen, self.prompts, self.subject
        )
        question = Question(
            messages=messages,
            problem=problem.id,
            seed=self.seed,
            tier=REFINED if seen else FIRST,
            read=lambda reply: read_domains(reply, names) or None,
            again=_retry_prompt,
            choices=choices_of(names),
        )
        found = await ask(self.model, question)
        domains = found.value or ()
        return Context(
            domains=domains,
            calls=found.calls,
            usage=found.usage,
        )


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


def _retry_prompt(messages: Messages, reply: str) -> Messages:
    # The reply itself is not shown again, since a problem may have dictated it.
    last = messages[-1]
    retry = template("classify_retry")
    return (*messages[:-1], Message(last.role, f"{last.content}\n\n{retry}"))


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
    known = {name.casefold(): name for name in names}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    # The paper's own form has `primary`.
    given = [content.get("domain") or content.get("primary")]
    if content.get("second"):
        given.append(content["second"])
    found = {known.get(str(name).strip().casefold()) for name in given}
    return () if None in found else tuple(n for n in names if n in found)


# Selecting cards


@dataclass(frozen=True, slots=True)
class BlockSelector:
    """Selects as the method does: the block of the tier and domains, its relevant cards, ranked and cut."""

    tree: EpistemicTree
    relevance: Relevance
    budget: Budget

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        routed: Context,
        earlier: Sequence[Context],
    ) -> Context:
        """Return the relevant cards of the block, as many as fit."""
        block, wanted = self.wanted(problem, tier, routed.domains)
        cards = await self.budget.fit(problem.text, wanted)
        return replace(routed, cards=cards, eligible=len(block))

    def wanted(
        self,
        problem: Problem,
        tier: TierName,
        domains: tuple[str, ...],
    ) -> tuple[Sequence[Card], Sequence[Card]]:
        """Return the block, and its relevant cards before the token budget."""
        block = self.tree.project(tier, domains)
        relevant = self.relevance.relevant(problem.text, block)
        return block, self.budget.best(problem.text, relevant)


CHARS_PER_TOKEN = 4
SEPARATOR = 1  # tokens between two cards


class TextSize(NamedTuple):
    """The size of a text."""

    tokens: int
    estimated: bool  # true without a tokenizer of the model; then tokens are characters over four


class TokenCounter:
    """Counts the tokens of texts for one model, each text once."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._sizes: dict[str, TextSize] = {}

    async def __call__(self, text: str) -> TextSize:
        """Return the size of a text."""
        if not text:
            return TextSize(0, False)
        if text not in self._sizes:
            size = TextSize(len(text) // CHARS_PER_TOKEN, True)
            if isinstance(self.model, Tokenizer):
                counted = await self.model.count_tokens(text)
                if counted is not None:
                    size = TextSize(counted, False)
            self._sizes[text] = size
        return self._sizes[text]


class Budget:
    """Bounds what a tier reads, in cards and in tokens."""

    def __init__(
        self,
        config: RetrievalConfig,
        model: ChatModel,
    ) -> None:
        self.config = config
        self.count = TokenCounter(model)

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
        return _in_order(cards, rank(problem, cards)[:most])

    async def fit(
        self,
        problem: str,
        cards: Sequence[Card],
        ranked: Sequence[Card] | None = None,
    ) -> tuple[Card, ...]:
        """Return all cards if they have few enough tokens, else the best-ranked that fit, in their order.

        A card too large for what is left is skipped for the next best.
        """
        left = self.config.max_card_tokens
        if (await self.size(cards)).tokens <= left:
            return tuple(cards)
        chosen = []
        for card in rank(problem, cards) if ranked is None else ranked:
            size = (await self.size((card,))).tokens + SEPARATOR
            if size <= left:
                chosen.append(card)
                left -= size
        return _in_order(cards, chosen)

    async def size(self, cards: Sequence[Card]) -> TextSize:
        """Return the size of cards as an attempt reads them."""
        if not cards:
            return TextSize(0, False)
        return await self.count(shown_text(cards, self.config.placement))


def estimate(card: Card) -> int:
    """Return the tokens of a card as the solver reads it, estimated from its length."""
    return len(card_text(card)) // CHARS_PER_TOKEN + 1


def _in_order(
    cards: Sequence[Card], chosen: Sequence[Card]
) -> tuple[Card, ...]:
    """Return the chosen cards in the order of all."""
    ids = {card.card_id for card in chosen}
    return tuple(card for card in cards if card.card_id in ids)


# Ranking

K1 = 1.2
B = 0.75
INDEXED_BLOCKS = 16  # cached: both card tiers of seven domains, and two more


class Index:
    """Texts prepared for BM25 scoring against any number of problems."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts = [Counter(text) for text in texts]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._size = len(counts)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for place, count in enumerate(counts):
            norm = K1 * (1 - B + B * lengths[place] / mean)
            for word, times in count.items():
                frequency = times * (K1 + 1) / (times + norm)
                self._postings.setdefault(word, []).append((place, frequency))

    def scores(self, problem: str) -> list[float]:
        """Return a score per text. A word counts once, however often it is in the problem."""
        scores = [0.0] * self._size
        for word in sorted(
            set(words(problem))
        ):  # a sum of floats depends on its order
            found = self._postings.get(word, ())
            rest = self._size - len(found)
            rarity = math.log(1 + (rest + 0.5) / (len(found) + 0.5))
            for place, frequency in found:
                scores[place] += rarity * frequency
        return scores


def rank(
    problem: str,
    cards: Sequence[Card],
    by: Literal["words", "meaning"] = "words",
) -> tuple[Card, ...]:
    """Return the cards by `words` (BM25) or `meaning` (embeddings), best match first; ties keep their order."""
    if not cards:
        return ()
    scores = _block_scorer(_Block(cards), by)(problem)
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    return tuple(cards[place] for place in order)


@lru_cache(maxsize=INDEXED_BLOCKS)
def _block_scorer(block: _Block, by: str) -> Callable[[str], list[float]]:
    texts = ["\n".join((own_text(card), *card.wordings)) for card in block]
    if by == "words":
        return Index(map(words, texts)).scores
    known = embed(texts)
    return lambda problem: list(known @ embed([problem])[0])


class _Block(tuple[Card, ...]):
    """Cards as a cache key, equal only if they are the same objects: hashing thousands by value is slow."""

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Block) or len(self) != len(other):
            return False
        return all(map(is_, self, other))
