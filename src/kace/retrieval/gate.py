"""The relevance gate: is a card relevant enough to a problem to be shown, or does the retriever abstain?

A ranking cannot decide this, since some card is always the best one. The score is on one scale for every tree: the
words that a problem shares with what a card says of itself, each weighed against everyday problems, and the nearness in
meaning to the card's demonstrations and wordings; the lesser of the two. Trees learned before are read by an older
score: the words alone, each weighed by how few cards of the tree use it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from kace.retrieval.embed import vectors
from kace.retrieval.words import rarity, vocabulary, weight, words

if TYPE_CHECKING:
    import numpy as np

    from kace.config import RetrievalConfig
    from kace.retrieval.embed import Vectors
    from kace.tree.card import Card
    from kace.tree.tree import EpistemicTree

    Uses = tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.float64]]]

FULL_OVERLAP = 4.0
"""Shared words, counted in words that no everyday problem has, that count as much as the very same meaning."""
MOST_COMPARED = 200  # cards compared in meaning, those that share most: no block that is read has so many
KNOWN_CARDS = 20_000  # cards whose demonstrations' vectors are kept: 40 MB


def found_by(card: Card) -> tuple[str, ...]:
    """The texts that a card is found by: what it says of itself, with its demonstrations' problems; each wording."""
    told = (example.problem for example in card.examples)
    itself = "\n".join((card.card_id.replace("_", " "), *card.triggers, *card.routing_conditions, *told))
    return (itself, *card.wordings)


class RelevanceScore(Protocol):
    """How relevant each card of a tree is to a problem."""

    def __call__(self, problem: str, least: float = 0.0) -> Mapping[str, float]:
        """The scores by card id, of cards that share a word with the problem and reach `least`."""
        ...


class RelevanceGate:
    """The relevance scores of a tree's cards, and the thresholds that decide what is shown and what skips ES."""

    def __init__(self, tree: EpistemicTree, config: RetrievalConfig) -> None:
        self.threshold = config.relevance_threshold
        # Skipping ES gives up its attempts, so it may ask for more than showing a card does, and never for less.
        self.skip_threshold = max(self.threshold, config.skip_threshold or 0.0)
        self.scores: RelevanceScore = BackgroundScore(tree) if config.relevance == "background" else TreeScore(tree)

    def relevant(self, problem: str, cards: Sequence[Card]) -> Sequence[Card]:
        """The cards to show. A card without a demonstration is never held back: its triggers say too little of it."""
        if not self.threshold:
            return cards
        scores = self.scores(problem, self.threshold)
        return [card for card in cards if not card.examples or card.card_id in scores]


class TreeScore:
    """Shared words, each weighed by how few cards of the tree use it: a word of one card alone counts 1."""

    def __init__(self, tree: EpistemicTree) -> None:
        self._tree = tree

    @cached_property
    def _cards(self) -> Sequence[Card]:
        return tuple(self._tree)

    @cached_property
    def _uses(self) -> Mapping[str, Uses]:
        """Where in the tree a word is used, and how much it counts there: the root of the share of the card's texts.

        What a technique needs is in many of its wordings, what a story needs in one. Made on first need: a large tree
        takes a while.
        """
        import numpy as np

        found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, card in enumerate(self._cards):
            texts = found_by(card)
            for word, count in Counter(word for text in texts for word in frozenset(words(text))).items():
                found[word].append((place, math.sqrt(count / len(texts))))
        return {
            word: (np.array([at for at, _ in uses], dtype=np.int32), np.array([by for _, by in uses]))
            for word, uses in found.items()
        }

    def _weight(self, word: str) -> float:
        size = len(self._cards)
        return rarity(size, len(self._uses[word][0])) / rarity(size, 1)

    def _overlap(self, problem: str, least: float) -> dict[int, float]:
        """By place in the tree, what the words weigh that a card shares with the problem; none below `least`."""
        import numpy as np

        overlap = np.zeros(len(self._cards))
        for word in vocabulary(problem):
            if (uses := self._uses.get(word)) is not None:
                places, shares = uses
                overlap[places] += self._weight(word) * shares
        found = np.flatnonzero(overlap >= max(least, 1e-9))
        return dict(zip(found.tolist(), overlap[found].tolist(), strict=True))

    def __call__(self, problem: str, least: float = 0.0) -> Mapping[str, float]:
        """The scores of the cards that share a word with the problem."""
        return {self._cards[place].card_id: score for place, score in self._overlap(problem, least).items()}


class BackgroundScore(TreeScore):
    """Shared words, weighed against everyday problems, and nearness in meaning: the lesser of both, 0 to 1.

    Words alone call a story about the same things the same kind of problem; meaning alone is never quite unlike.
    """

    def __init__(self, tree: EpistemicTree) -> None:
        super().__init__(tree)
        self._told: dict[int, Vectors] = {}

    def _weight(self, word: str) -> float:
        return weight(word) / FULL_OVERLAP

    def __call__(self, problem: str, least: float = 0.0) -> Mapping[str, float]:
        """The scores of the cards that share enough words with the problem. Only of these is the meaning compared."""
        overlap = self._overlap(problem, least)
        if not overlap:
            return {}
        sharing = sorted(sorted(overlap, key=lambda place: -overlap[place])[:MOST_COMPARED])
        nearness = zip(sharing, self._nearness(problem, sharing), strict=True)
        scores = {self._cards[place].card_id: min(overlap[place], near) for place, near in nearness}
        return {name: score for name, score in scores.items() if score >= least}

    def _nearness(self, problem: str, places: Sequence[int]) -> list[float]:
        """How near the problem is to each card's nearest demonstration or wording; to the card itself without any."""
        if len(self._told) > KNOWN_CARDS:
            self._told.clear()
        new = [place for place in places if place not in self._told]
        texts = [_compared(self._cards[place]) for place in new]
        told, end = vectors([text for some in texts for text in some]) if new else None, 0
        for place, some in zip(new, texts, strict=True):
            assert told is not None
            self._told[place], end = told[end : end + len(some)], end + len(some)
        asked = vectors([problem])[0]
        return [max(0.0, float((self._told[place] @ asked).max())) for place in places]


def _compared(card: Card) -> list[str]:
    return [*(example.problem for example in card.examples), *card.wordings] or list(found_by(card))
