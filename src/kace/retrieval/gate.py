"""The relevance gate: is a card relevant enough to a problem to be shown, or does the retriever abstain?

The relevance score counts the words that a problem shares with what a card says of itself, each weighted by how few
cards of the tree use it: a word of one card alone counts 1. A ranking cannot decide this, since some card is always
the best one.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kace.tree.card import Card
    from kace.tree.tree import EpistemicTree

KNOWN_TEXTS = 10_000  # problems whose words are kept: each is compared with many cards

_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMON = frozenset(
    _WORD.findall(
        "an and any are as at be been by can do does for from has have if in into is it its let many may must no not of"
        " on or out so such than that the their them then there these they this to was we were what when where which"
        " will with you your"
    )
)
"""Words of any sentence. In a block of short headers they would be rare, and count for more than they say."""


def words(text: str) -> list[str]:
    r"""The words of a text as they are compared: lower case, no plural s, `\binom` as `binom`.

    Numbers do not count: in a problem they are only its values. Single letters are variables and say as little.
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def advertised(card: Card) -> str:
    """What a card says of when it helps: its name, triggers and conditions, and the problems of its demonstrations."""
    told = (example.problem for example in card.examples)
    return "\n".join((card.card_id.replace("_", " "), *card.triggers, *card.routing_conditions, *told))


class RelevanceGate:
    """The relevance scores of a tree's cards, and the one threshold that decides what is shown."""

    def __init__(self, tree: EpistemicTree, threshold: float) -> None:
        self.threshold = threshold
        self._tree = tree

    @cached_property
    def _cards_with(self) -> Mapping[str, Sequence[str]]:
        """The ids of the cards that use a word. Made on first need: a large tree takes a while."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for card in self._tree:
            for word in frozenset(words(advertised(card))):
                found[word].append(card.card_id)
        return found

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        size = len(self._tree)
        return {word: rarity(size, len(cards)) / rarity(size, 1) for word, cards in self._cards_with.items()}

    def scores(self, problem: str) -> Mapping[str, float]:
        """The relevance score of every card that shares a word with the problem, by card id."""
        found: defaultdict[str, float] = defaultdict(float)
        for word in _vocabulary(problem):
            for card_id in self._cards_with.get(word, ()):
                found[card_id] += self._weights[word]
        return found

    def relevant(self, problem: str, cards: Sequence[Card]) -> Sequence[Card]:
        """The cards to show. A card without a demonstration is never held back: its triggers say too little of it."""
        if not self.threshold:
            return cards
        scores = self.scores(problem)
        return [card for card in cards if not card.examples or self.passes(scores, card)]

    def passes(self, scores: Mapping[str, float], card: Card) -> bool:
        """Whether a card's score reaches the threshold."""
        return scores.get(card.card_id, 0.0) >= self.threshold


@lru_cache(maxsize=KNOWN_TEXTS)
def _vocabulary(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(words(text))))  # sorted: a sum of floats depends on its order


def rarity(texts: int, having: int) -> float:
    """The weight of a word that so many of the texts have: BM25's inverse document frequency."""
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
