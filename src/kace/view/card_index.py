"""Search over the cards of a tree: their texts laid end to end, so that a word is found at the speed of memory.

A word matches where a word begins with it, in whatever case: `prim` finds `Prime` and not `comprise`. A card is found
where it holds all words of a query. One that holds them in its id comes before one that names them as triggers, and
that before one whose body holds them.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kace.tree.card import Card
from kace.tree.tree import EpistemicTree
from kace.view.once import Once

MAX_QUERY = 200
MAX_WORDS = 8
INDEXED_TREES = 2
"""Trees kept ready. An index is about as large as the texts of its cards."""
IN_ID, IN_HEADER, IN_BODY = 100, 10, 1
"""What a word counts in the id, in the header or a routing condition, and in the body."""
_EDGE = "\"'“”‘’,;:!?()[]"
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for."""

    words: tuple[str, ...]
    """In lower case, each once."""
    cut: bool
    """Whether something was left off because it was too much."""

    @classmethod
    def of(cls, asked: str) -> Query:
        """The words of what somebody typed."""
        words = (word.strip(_EDGE) or word for word in asked[:MAX_QUERY].lower().split())
        found = tuple(dict.fromkeys(words))
        return cls(found[:MAX_WORDS], len(asked) > MAX_QUERY or len(found) > MAX_WORDS)

    def pattern(self) -> re.Pattern[str]:
        """Finds the words in a text, in whatever case."""
        longest = sorted(self.words, key=len, reverse=True)
        each = (("" if _free(word) else "(?<![A-Za-z0-9])") + re.escape(word) for word in longest)
        return re.compile("|".join(each), re.IGNORECASE)


class CardIndex:
    """The texts of a tree's cards, end to end: of each the id, the header and routing conditions, the body.

    No word goes over a line's end, so none is found across two cards.
    """

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards = tuple(cards)
        self._starts, self._heads, self._bodies = array("Q"), array("Q"), array("Q")
        """Where each card, its header and its body begin."""
        lines: list[bytes] = []
        at = 0
        for card in self.cards:
            name, header, body = _fields(card)
            self._starts.append(at)
            self._heads.append(at := at + len(name) + 1)
            self._bodies.append(at := at + len(header) + 1)
            at += len(body) + 1
            lines += (name, header, body)
        self._starts.append(at)
        self._text = b"\n".join(lines)

    def find(self, query: Query) -> tuple[Card, ...]:
        """The cards that hold all words, best first."""
        if not query.words:
            return ()
        # The longest word first: it is likely the rarest, and the others are looked for only where it was found.
        first, *rest = sorted(query.words, key=len, reverse=True)
        scores = {place: self._weight(place, at) for place, at in self._finds(first)}
        for word in rest:
            scores = self._narrowed(scores, word)
        return tuple(self.cards[place] for place in sorted(scores, key=lambda place: (-scores[place], place)))

    def holds(self, word: str) -> bool:
        """Whether any card holds a word."""
        return next(self._finds(word), None) is not None

    def _finds(self, word: str) -> Iterator[tuple[int, int]]:
        """The cards that hold a word, in order, and where each holds it first."""
        text, starts, free, sought = self._text, self._starts, _free(word), _plain(word)
        place, at = 0, text.find(sought)
        while at >= 0:
            if free or not at or text[at - 1] not in _LETTERS:
                place = bisect_right(starts, at, place) - 1
                yield place, at
                place += 1
                at = text.find(sought, starts[place])
            else:
                at = text.find(sought, at + 1)

    def _narrowed(self, scores: dict[int, int], word: str) -> dict[int, int]:
        """The scores of the cards that hold one more word."""
        text, starts, free, sought = self._text, self._starts, _free(word), _plain(word)
        kept = {}
        for place, score in scores.items():
            end = starts[place + 1]
            at = text.find(sought, starts[place], end)
            while at > 0 and not free and text[at - 1] in _LETTERS:
                at = text.find(sought, at + 1, end)
            if at >= 0:
                kept[place] = score + self._weight(place, at)
        return kept

    def _weight(self, place: int, at: int) -> int:
        """What a find counts. The fields stand in the order of their weights, so the first find is the best."""
        return IN_ID if at < self._heads[place] else IN_HEADER if at < self._bodies[place] else IN_BODY


def card_index(tree: EpistemicTree) -> CardIndex:
    """The tree's index, made when first searched and kept."""
    return _INDEXES.of(tree)


def _free(word: str) -> bool:
    r"""Whether a word may stand anywhere because it begins with no letter, such as `\frac`."""
    return not (word[:1].isascii() and word[:1].isalnum())


def _fields(card: Card) -> tuple[bytes, bytes, bytes]:
    header, _, body = card.payload.partition("\n\n")
    said = "\n".join((header, *card.routing_conditions))
    return _plain(card.card_id), _plain(said), _plain(body)


def _plain(text: str) -> bytes:
    return text.lower().encode("utf-8", "replace")


def _indexed(tree: EpistemicTree) -> CardIndex:
    return CardIndex(tree)


_INDEXES = Once(_indexed, INDEXED_TREES)
