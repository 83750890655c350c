"""Which cards of a block speak most of a problem: BM25 on the words of problem and trigger header.

Numbers do not count as words: in a problem they are the values it was told with, and a card that happens to name the
same value would outrank the one that names the technique. Single letters are variables and say as little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kace.tree.card import Card

K1 = 1.2
B = 0.75
SPEAKS = 2.0
"""Telling words that a problem shares with a card from which on the card speaks of it; see docs/results.md."""
KNOWN_TEXTS = 10_000
"""Problems whose words are kept: each is held against many cards."""
INDEXED_BLOCKS = 16
"""Blocks kept ready: both card tiers of seven domains, and two more. 5,000 cards take about 10 MB."""

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
    r"""The words of a text as they are compared: lower case, no plural s, `\binom` as `binom`."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


class Index:
    """Texts made ready to be scored against any number of problems."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts = [Counter(text) for text in texts]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        postings: dict[str, list[tuple[int, float]]] = {}
        for place, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            norm = K1 * (1 - B + B * length / mean)
            for word, times in count.items():
                postings.setdefault(word, []).append((place, times * (K1 + 1) / (times + norm)))
        self._size = len(counts)
        self._postings = postings

    def scores(self, problem: str) -> list[float]:
        """One score a text, in the order given. A word counts once, however often the problem says it."""
        scores = [0.0] * self._size
        for word in sorted(set(words(problem))):  # sorted: a sum of floats depends on its order
            found = self._postings.get(word, ())
            rarity = _rarity(self._size, len(found))
            for place, weight in found:
                scores[place] += rarity * weight
        return scores


class _Block:
    """Cards as a cache key: equal only where they are the very same values, which is cheap to tell of thousands."""

    __slots__ = ("_hash", "cards")

    def __init__(self, cards: Sequence[Card]) -> None:
        self.cards = tuple(cards)  # held, so that no identity is given to another card meanwhile
        self._hash = hash(tuple(map(id, self.cards)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Block)
            and len(self.cards) == len(other.cards)
            and all(mine is theirs for mine, theirs in zip(self.cards, other.cards, strict=True))
        )


@lru_cache(maxsize=INDEXED_BLOCKS)
def _indexed(block: _Block) -> Index:
    return Index(words(advertised(card)) for card in block.cards)


def advertised(card: Card) -> str:
    """What a card says of when it helps: its name, triggers and conditions, and the problems of its examples."""
    told = (example.problem for example in card.examples)
    return "\n".join((card.card_id.replace("_", " "), *card.triggers, *card.routing_conditions, *told))


def rank(problem: str, cards: Sequence[Card]) -> tuple[Card, ...]:
    """The cards, best match first; equal ones stay in the order they came in."""
    scores = _indexed(_Block(cards)).scores(problem)
    return tuple(cards[place] for place in sorted(range(len(scores)), key=lambda place: -scores[place]))


class Telling:
    """Whether a card of a tree fits a problem at all, which a ranking cannot say: some card is always the best.

    It is measured in telling words: a word that one card alone says counts 1, one that many say counts less.
    """

    def __init__(self, cards: Iterable[Card]) -> None:
        self._said = {card.card_id: frozenset(words(advertised(card))) for card in cards}
        size, rare = len(self._said), _rarity(len(self._said), 1)
        counts = Counter(word for said in self._said.values() for word in said)
        self._weights = {word: _rarity(size, count) / rare for word, count in counts.items()}

    def shared(self, problem: str, card: Card) -> float:
        """The telling words that a problem shares with a card."""
        shared = self._said[card.card_id] & _vocabulary(problem)
        return sum(self._weights[word] for word in sorted(shared))


@lru_cache(maxsize=KNOWN_TEXTS)
def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _rarity(texts: int, having: int) -> float:
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


Ranking = Callable[[str, Sequence["Card"]], tuple["Card", ...]]


def fit(
    problem: str, cards: Sequence[Card], limit: int, size: Callable[[Card], int], ranking: Ranking = rank
) -> tuple[Card, ...]:
    """The whole block where it has at most `limit` tokens, else its best-ranked cards that fit, in the block's order.

    A card too large for what is left is passed over for the next best.
    """
    sizes = {card.card_id: size(card) for card in cards}
    if sum(sizes.values()) <= limit:
        return tuple(cards)
    chosen, left = set(), limit
    for card in ranking(problem, cards):
        if sizes[card.card_id] <= left:
            chosen.add(card.card_id)
            left -= sizes[card.card_id]
    return tuple(card for card in cards if card.card_id in chosen)
