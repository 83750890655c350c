"""How relevant each card of a tree is to a problem.

A ranking cannot decide whether a card is shown, since some card always comes first. So relevance is a score from 0 to 1
on one scale for every tree: the lesser of the words that a problem shares with what a card is found by, each weighted
against everyday problems, and the nearness in meaning to the card's demonstrations. A card is shown where its score
reaches the relevance threshold.

The background is a table that ships with the package: in how many of 11,450 everyday problems (the training splits of
GSM8K and of MATH, levels 4 and 5) a word occurs. So the weight of a word does not depend on the tree.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from kace.cards.card import Card
    from kace.cards.tree import EpistemicTree
    from kace.config import RetrievalConfig

Vectors: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float32]]"
Scores: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
Places: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.intp]]"

BACKGROUND = Path(__file__).with_name("background.txt")
KNOWN_TEXTS = (
    10_000  # problems whose words are cached: each is compared with many cards
)
FULL_OVERLAP = 4.0
"""Shared words, counted in words that no everyday problem has, that count as much as identical meaning."""
OWN_TEXT = 0.7
"""Weight of a match with a card's own text if it has wordings too: one text is matched by chance more often than
seventeen are. The largest weight that shows no more wrong cards on validation."""
MOST_COMPARED = 200  # texts compared in meaning, those with the largest overlap
LEAST_OVERLAP = 1e-9  # below it, no word is shared

_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMON = frozenset(
    _WORD.findall(
        "an and any are as at be been by can do does for from has have if in into is it its let many may must no not of"
        " on or out so such than that the their them then there these they this to was we were what when where which"
        " will with you your"
    )
)
"""Words of any sentence. In a block of short headers they would be rare and count too much."""


def words(text: str) -> list[str]:
    r"""Split a text into comparable words: lower case, no plural s, `\binom` as `binom`.

    Numbers are left out, since in a problem they are only its values; so are single letters, which are variables.
    """
    found = _WORD.findall(text.lower())
    return [_stem(word) for word in found if word not in _COMMON]


def _stem(word: str) -> str:
    plural = len(word) > 3 and word[-1] == "s" and word[-2] != "s"
    return word[:-1] if plural else word


@lru_cache(maxsize=KNOWN_TEXTS)
def vocabulary(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text, sorted: a sum of floats depends on its order."""
    return tuple(sorted(set(words(text))))


def weight(word: str) -> float:
    """Return the weight of a shared word: 1 if no background problem has it, 0 if all have."""
    return _weights().get(word, 1.0)


@cache
def _weights() -> Mapping[str, float]:
    head, *lines = BACKGROUND.read_text(encoding="utf-8").splitlines()
    most = math.log(int(head.split()[0]) + 1)
    weights = {}
    for line in lines:
        word, count = line.split()
        weights[word] = 1 - math.log(int(count) + 1) / most
    return weights


def embed(texts: Sequence[str]) -> Vectors:
    """Return one vector of length 1 per text: static embeddings that ship in `wordllama`."""
    found: Vectors = _encoder().embed(list(texts), norm=True)
    return found


@cache
def _encoder() -> Any:
    root = logging.getLogger()
    level = root.level
    handlers = root.handlers[:]
    import wordllama

    # Importing it reconfigures the root logger, which would print a line per call to a provider.
    root.setLevel(level)
    root.handlers[:] = handlers
    # Its own folder is named as the cache, so that it uses the files it ships and never downloads others.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def own_text(card: Card) -> str:
    """Return the text a card is found by without wordings: id, triggers, routing conditions and examples."""
    examples = (example.problem for example in card.examples)
    name = card.card_id.replace("_", " ")
    return "\n".join(
        (name, *card.triggers, *card.routing_conditions, *examples)
    )


class SearchKey(NamedTuple):
    """One way to find a card: by its own text, or by that and all its wordings."""

    card_id: str
    texts: tuple[str, ...]  # compared by words
    problems: tuple[str, ...]  # compared by meaning
    share: float  # weight of the score


def search_keys(card: Card) -> list[SearchKey]:
    """Return the ways to find a card."""
    name = card.card_id
    own = own_text(card)
    examples = tuple(example.problem for example in card.examples)
    if not card.wordings:
        return [SearchKey(name, (own,), examples or (own,), 1.0)]
    return [
        SearchKey(name, (own,), examples or (own,), OWN_TEXT),
        SearchKey(
            name, (own, *card.wordings), (*examples, *card.wordings), 1.0
        ),
    ]


class RelevanceScore(Protocol):
    """Scores the cards of a tree for a problem."""

    def __call__(
        self,
        problem: str,
        least: float = 0.0,
    ) -> Mapping[str, float]:
        """Return the scores that reach `least`, by card id, of cards that share a word with the problem."""
        ...


class BackgroundScore:
    """Scores by shared words and by meaning: the lesser of both, 0 to 1.

    Words alone confuse stories about the same things with the same kind of problem, and meaning alone is never quite
    zero. A card with wordings has the better of two scores: by its own text, and by that and all its wordings.
    """

    def __init__(self, tree: EpistemicTree) -> None:
        self._keys = [key for card in tree for key in search_keys(card)]
        self._vectors: dict[int, Vectors] = {}

    def __call__(
        self,
        problem: str,
        least: float = 0.0,
    ) -> Mapping[str, float]:
        """Return the scores that reach `least`, by card id. Meaning is compared only where enough words are shared."""
        import numpy as np

        overlap = self.overlap(problem)
        found = np.flatnonzero(overlap >= max(least, LEAST_OVERLAP))
        if not found.size:
            return {}
        best_first = np.argsort(-overlap[found], kind="stable")
        compared = np.sort(found[best_first[:MOST_COMPARED]])
        nearness = self._nearness(problem, compared)
        scores: dict[str, float] = {}
        for place, near in zip(compared.tolist(), nearness, strict=True):
            key = self._keys[place]
            score = key.share * min(float(overlap[place]), near)
            if score >= least:
                scores[key.card_id] = max(score, scores.get(key.card_id, 0.0))
        return scores

    def overlap(self, problem: str) -> Scores:
        """Return the weight of the words shared with the problem, per search key."""
        import numpy as np

        overlap = np.zeros(len(self._keys))
        for word in vocabulary(problem):
            if word in self._index:
                places, weights = self._index[word]
                overlap[places] += weights
        return overlap

    @cached_property
    def _index(self) -> Mapping[str, tuple[Places, Scores]]:
        """By word, the keys that have it and its weight there, times the root of the share of the key's texts.

        What a technique needs is in many of its wordings, what a story needs in one. Built on first use, since a large
        tree takes a while.
        """
        import numpy as np

        places = defaultdict[str, list[int]](list)
        shares = defaultdict[str, list[float]](list)
        for place, key in enumerate(self._keys):
            counts = Counter(
                word for text in key.texts for word in set(words(text))
            )
            for word, count in counts.items():
                places[word].append(place)
                shares[word].append(math.sqrt(count / len(key.texts)))
        index = {}
        for word, found in places.items():
            weights = weight(word) / FULL_OVERLAP * np.array(shares[word])
            index[word] = (np.array(found), weights)
        return index

    def _nearness(
        self,
        problem: str,
        places: Places,
    ) -> list[float]:
        """Return the nearness in meaning of the problem to the nearest text of each key."""
        self._embed_keys(
            [place for place in places.tolist() if place not in self._vectors]
        )
        vector = embed([problem])[0]
        nearness = []
        for place in places.tolist():
            product = self._vectors[place] @ vector
            nearness.append(max(0.0, float(product.max())))
        return nearness

    def _embed_keys(self, places: Sequence[int]) -> None:
        """Embed the texts of keys, all in one call."""
        if not places:
            return
        vectors = embed(
            [text for place in places for text in self._keys[place].problems]
        )
        start = 0
        for place in places:
            end = start + len(self._keys[place].problems)
            self._vectors[place] = vectors[start:end]
            start = end


class Relevance:
    """The relevance scores of a tree's cards, and the thresholds for showing a card and for skipping ES."""

    def __init__(
        self,
        tree: EpistemicTree,
        config: RetrievalConfig,
    ) -> None:
        self.scores: RelevanceScore = BackgroundScore(tree)
        self.threshold = config.relevance_threshold
        # Skipping ES gives up its attempts, so it may require more than showing a card does, and never less.
        self.skip_threshold = max(self.threshold, config.skip_threshold or 0.0)

    def relevant(
        self,
        problem: str,
        cards: Sequence[Card],
    ) -> Sequence[Card]:
        """Return the cards to show. A card without a demonstration always is: its triggers are too short to score."""
        if not self.threshold:
            return cards
        scores = self.scores(problem, self.threshold)
        return [
            card
            for card in cards
            if not card.examples or card.card_id in scores
        ]
