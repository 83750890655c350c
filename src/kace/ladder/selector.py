"""Selectors: which of the eligible cards a tier reads, ranked and cut to the budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import is_
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kace.ladder.prompt import Placement, card_text, shown_text
from kace.ladder.relevance import embed, own_text, words
from kace.models.base import ChatModel, Tokenizer, Usage

if TYPE_CHECKING:
    from kace.cards.card import Card
    from kace.cards.tree import EpistemicTree
    from kace.config import RetrievalConfig
    from kace.ladder.relevance import Relevance
    from kace.ladder.tiers import TierName
    from kace.problems import Problem

K1 = 1.2
B = 0.75
INDEXED_BLOCKS = 16  # blocks kept ready: both card tiers of seven domains, and two more. 5,000 cards take about 10 MB
CHARS_PER_TOKEN = 4
EXACT_TRIES = 3
NO_USAGE = Usage()

Ranking = Callable[[str, Sequence["Card"]], tuple["Card", ...]]


class SelectedCards(NamedTuple):
    """The cards to read, and what it cost to choose them."""

    cards: tuple[Card, ...]
    eligible: int  # cards there were to choose from
    calls: int = 0
    usage: Usage = NO_USAGE


class Selector(Protocol):
    """Chooses among the cards of a tree."""

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        domains: tuple[str, ...],
        earlier: Sequence[Sequence[Card]],
    ) -> SelectedCards:
        """The cards for a problem at a tier, routed to these domains; `earlier` is what the tiers before it read."""
        ...


@dataclass(frozen=True, slots=True)
class BlockSelector:
    """The method: the block of the tier and domains, gated, ranked, and cut to the budget."""

    tree: EpistemicTree
    relevance: Relevance
    budget: Budget

    async def select(
        self,
        problem: Problem,
        tier: TierName,
        domains: tuple[str, ...],
        earlier: Sequence[Sequence[Card]],
    ) -> SelectedCards:
        """The relevant cards of the block, as many as fit."""
        block, wanted = self.wanted(problem, tier, domains)
        return SelectedCards(await self.budget.fit(problem.text, wanted), len(block))

    def wanted(
        self, problem: Problem, tier: TierName, domains: tuple[str, ...]
    ) -> tuple[Sequence[Card], Sequence[Card]]:
        """The block, and its relevant cards before the token budget."""
        block = self.tree.project(tier, domains)
        return block, self.budget.best(
            problem.text, self.relevance.relevant(problem.text, block)
        )


class Budget:
    """How much a tier may read, counted by the model's own tokenizer where it has one."""

    def __init__(
        self, config: RetrievalConfig, model: ChatModel, ranking: Ranking | None = None
    ) -> None:
        self.config = config
        self.ranking = ranking or partial(rank, by=config.ranking)
        self.count = TokenCounter(model)

    def best(
        self, problem: str, cards: Sequence[Card], most: int | None = None
    ) -> Sequence[Card]:
        """At most `max_cards` (or so many) of the cards: the best-ranked, in their order."""
        most = self.config.max_cards if most is None else most
        if most is None or len(cards) <= most:
            return cards
        best = {card.card_id for card in self.ranking(problem, cards)[:most]}
        return [card for card in cards if card.card_id in best]

    async def fit(self, problem: str, cards: Sequence[Card]) -> tuple[Card, ...]:
        """Cut by estimate, then count exactly and cut again if the estimate was too low."""
        most = limit = self.config.max_card_tokens
        for _ in range(EXACT_TRIES):
            kept = fit(
                problem,
                cards,
                limit,
                lambda card: estimate(card, self.config.placement),
                self.ranking,
            )
            tokens = (await self.size(kept)).tokens
            if tokens <= most or not kept:
                break
            limit = limit * most // (tokens + 1)
        return kept

    async def size(self, cards: Sequence[Card]) -> TextSize:
        """The size of cards as an attempt reads them."""
        return (
            await self.count(shown_text(cards, self.config.placement))
            if cards
            else TextSize(0, False)
        )


class TextSize(NamedTuple):
    """The size of a text."""

    tokens: int
    estimated: bool  # true when the model has no tokenizer we can ask, and `tokens` is characters over four


class TokenCounter:
    """Counts the tokens of texts for one model, each text once."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._sizes: dict[str, TextSize] = {}

    async def __call__(self, text: str) -> TextSize:
        """The size of a text."""
        if not text:
            return TextSize(0, False)
        if text not in self._sizes:
            counted = (
                await self.model.count_tokens(text)
                if isinstance(self.model, Tokenizer)
                else None
            )
            estimated = TextSize(len(text) // CHARS_PER_TOKEN, True)
            self._sizes[text] = (
                estimated if counted is None else TextSize(counted, False)
            )
        return self._sizes[text]


def estimate(card: Card, placement: Placement = "instructions") -> int:
    """Tokens of a card as the solver reads it, from its length."""
    text = (
        shown_text((card,), placement)
        if placement == "demonstrations" and card.examples
        else card_text(card)
    )
    return len(text) // CHARS_PER_TOKEN + 1


class Index:
    """Texts made ready to be scored by BM25 against any number of problems."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts = [Counter(text) for text in texts]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        postings: dict[str, list[tuple[int, float]]] = {}
        for place, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            norm = K1 * (1 - B + B * length / mean)
            for word, times in count.items():
                postings.setdefault(word, []).append(
                    (place, times * (K1 + 1) / (times + norm))
                )
        self._size = len(counts)
        self._postings = postings

    def scores(self, problem: str) -> list[float]:
        """One score a text, in the order given. A word counts once, however often the problem says it."""
        scores = [0.0] * self._size
        for word in sorted(
            set(words(problem))
        ):  # sorted: a sum of floats depends on its order
            found = self._postings.get(word, ())
            weight = _rarity(self._size, len(found))
            for place, frequency in found:
                scores[place] += weight * frequency
        return scores


def _rarity(texts: int, having: int) -> float:
    """Return BM25's inverse document frequency of a word that so many of the texts have."""
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


class _Block(tuple["Card", ...]):
    """Cards as a cache key: equal only where they are the very same values, which is cheap to tell of thousands."""

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Block)
            and len(self) == len(other)
            and all(map(is_, self, other))
        )


def scores_by(name: str, texts: Sequence[str]) -> Callable[[str], list[float]]:
    """What scores texts against a problem, one score each: `words` (BM25) or `meaning` (embeddings)."""
    if name == "words":
        return Index(map(words, texts)).scores
    known = embed(texts)

    def nearness(problem: str) -> list[float]:
        found: list[float] = (known @ embed([problem])[0]).tolist()
        return found

    return nearness


@lru_cache(maxsize=INDEXED_BLOCKS)
def _indexed(block: _Block, by: str) -> Callable[[str], list[float]]:
    return scores_by(
        by, ["\n".join((own_text(card), *card.wordings)) for card in block]
    )


def rank(problem: str, cards: Sequence[Card], by: str = "words") -> tuple[Card, ...]:
    """The cards by `words` or `meaning`, best match first; equal ones stay in the order they came in."""
    scores = _indexed(_Block(cards), by)(problem) if cards else ()
    return tuple(
        cards[place]
        for place in sorted(range(len(scores)), key=lambda place: -scores[place])
    )


def fit(
    problem: str,
    cards: Sequence[Card],
    limit: int,
    size: Callable[[Card], int],
    ranking: Ranking = rank,
) -> tuple[Card, ...]:
    """All cards where they have at most `limit` tokens, else the best-ranked that fit, in their order.

    A card too large for what is left is passed over for the next best.
    """
    sizes = {card.card_id: size(card) for card in cards}
    if sum(sizes.values()) <= limit:
        return tuple(cards)
    chosen = set()
    left = limit
    for card in ranking(problem, cards):
        if sizes[card.card_id] <= left:
            chosen.add(card.card_id)
            left -= sizes[card.card_id]
    return tuple(card for card in cards if card.card_id in chosen)
