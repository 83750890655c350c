"""The relevance gate: is a card relevant enough to a problem to be shown, or does the retriever abstain?

A ranking cannot decide this, since some card is always the best one. The score is on one scale for every tree: the
words that a problem shares with what a card says of itself, each weighed against everyday problems, and the nearness in
meaning to the card's demonstrations; the lesser of the two. A card with wordings is found by them as well. Trees
learned before are read by an older score: the words alone, each weighed by how few cards of the tree use it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kace.ladder.embed import vectors
from kace.ladder.words import rarity, vocabulary, weight, words

if TYPE_CHECKING:
    import numpy as np

    from kace.cards.card import Card
    from kace.cards.tree import EpistemicTree
    from kace.config import RetrievalConfig
    from kace.ladder.embed import Vectors

    Uses = tuple[
        np.ndarray[tuple[int], np.dtype[np.int32]],
        np.ndarray[tuple[int], np.dtype[np.float64]],
    ]

FULL_OVERLAP = 4.0
"""Shared words, counted in words that no everyday problem has, that count as much as the very same meaning."""
OWN_TEXT = 0.7
"""What a match with a card's own text counts where it has wordings too: one text is matched by chance more often than
seventeen are. The most that shows no more wrong cards on validation (commit a80fb0c, `experiments/gate/floor.py`)."""
MOST_COMPARED = 200  # cards compared in meaning, those that share most: no block that is read has so many
KNOWN_CARDS = 20_000  # cards whose demonstrations' vectors are kept: 40 MB


def found_by(card: Card) -> tuple[str, ...]:
    """The texts that a card is found by: what it says of itself, with its demonstrations' problems; each wording."""
    told = (example.problem for example in card.examples)
    itself = "\n".join(
        (
            card.card_id.replace("_", " "),
            *card.triggers,
            *card.routing_conditions,
            *told,
        )
    )
    return (itself, *card.wordings)


class Match(NamedTuple):
    """One of the ways to find a card: by what it says of itself, or by that and all its wordings."""

    card: Card
    worded: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Whose words count."""
        return found_by(self.card) if self.worded else found_by(self.card)[:1]

    @property
    def told(self) -> tuple[str, ...]:
        """Whose meaning counts: problems, where the card has any."""
        told = tuple(example.problem for example in self.card.examples)
        return (*told, *self.card.wordings) if self.worded else told or self.texts

    @property
    def share(self) -> float:
        """How much it counts."""
        return OWN_TEXT if self.card.wordings and not self.worded else 1.0


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
        self.scores: RelevanceScore = (
            BackgroundScore(tree)
            if config.relevance == "background"
            else TreeScore(tree)
        )

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
    def _matches(self) -> Sequence[Match]:
        return [Match(card) for card in self._tree]

    @cached_property
    def _uses(self) -> Mapping[str, Uses]:
        """By word, the matches that it is in, and how much it counts there: the root of the share of the texts.

        What a technique needs is in many of its wordings, what a story needs in one. Made on first need: a large tree
        takes a while.
        """
        import numpy as np

        uses: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, match in enumerate(self._matches):
            texts = match.texts
            for word, count in Counter(
                word for text in texts for word in frozenset(words(text))
            ).items():
                uses[word].append((at, math.sqrt(count / len(texts))))
        return {
            word: (
                np.array([at for at, _ in each], dtype=np.int32),
                np.array([by for _, by in each]),
            )
            for word, each in uses.items()
        }

    def _weight(self, word: str) -> float:
        size = len(self._tree)
        return rarity(size, len(self._uses[word][0])) / rarity(size, 1)

    def _overlap(self, problem: str, least: float) -> dict[int, float]:
        """By place in `_matches`, what the words weigh that are shared with the problem; none below `least`."""
        import numpy as np

        overlap = np.zeros(len(self._matches))
        for word in vocabulary(problem):
            if (uses := self._uses.get(word)) is not None:
                places, shares = uses
                overlap[places] += self._weight(word) * shares
        found = np.flatnonzero(overlap >= max(least, 1e-9))
        return dict(zip(found.tolist(), overlap[found].tolist(), strict=True))

    def __call__(self, problem: str, least: float = 0.0) -> Mapping[str, float]:
        """The scores of the cards that share a word with the problem."""
        return {
            self._matches[at].card.card_id: score
            for at, score in self._overlap(problem, least).items()
        }


class BackgroundScore(TreeScore):
    """Shared words, weighed against everyday problems, and nearness in meaning: the lesser of both, 0 to 1.

    Words alone call a story about the same things the same kind of problem; meaning alone is never quite unlike. A card
    with wordings has the better of two scores: by its own text alone, and by that and all its wordings.
    """

    def __init__(self, tree: EpistemicTree) -> None:
        super().__init__(tree)
        self._told: dict[int, Vectors] = {}

    @cached_property
    def _matches(self) -> Sequence[Match]:
        return [
            Match(card, worded)
            for card in self._tree
            for worded in ((False, True) if card.wordings else (False,))
        ]

    def _weight(self, word: str) -> float:
        return weight(word) / FULL_OVERLAP

    def __call__(self, problem: str, least: float = 0.0) -> Mapping[str, float]:
        """The scores of the cards that share enough words with the problem. Only of these is the meaning compared."""
        overlap = self._overlap(problem, least)
        if not overlap:
            return {}
        sharing = sorted(sorted(overlap, key=lambda at: -overlap[at])[:MOST_COMPARED])
        scores: dict[str, float] = {}
        for at, near in zip(sharing, self._nearness(problem, sharing), strict=True):
            match = self._matches[at]
            name = match.card.card_id
            score = match.share * min(overlap[at], near)
            if score >= max(least, scores.get(name, 0.0)):
                scores[name] = score
        return scores

    def _nearness(self, problem: str, places: Sequence[int]) -> list[float]:
        """How near in meaning the problem is to the nearest text of each match."""
        if len(self._told) > KNOWN_CARDS:
            self._told.clear()
        new = [at for at in places if at not in self._told]
        texts = [self._matches[at].told for at in new]
        told = vectors([text for some in texts for text in some]) if new else None
        end = 0
        for at, some in zip(new, texts, strict=True):
            assert told is not None
            self._told[at], end = told[end : end + len(some)], end + len(some)
        asked = vectors([problem])[0]
        return [max(0.0, float((self._told[at] @ asked).max())) for at in places]
