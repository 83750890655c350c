"""A tree counted once for its pages: what lies in each cell, what reading it costs, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from typing import NamedTuple

from kace.retrieval.retriever import estimate
from kace.tree.card import UNIVERSAL, Card, Difficulty, Status
from kace.tree.tree import EpistemicTree
from kace.view.once import Once

COUNTED_TREES = 4
"""Trees whose counts are kept."""
EXTREMES = 5
"""Cards named as those of highest and lowest lift."""
HASHED = 5_000
"""Cards up to which a page works out the content hash."""
SORTS = ("lift", "id", "uses")
"""Orders of a list of cards; with a minus sign, the other way round."""


class Figures(NamedTuple):
    """A card's lift: the change in the share of right attempts, with its 95 % interval."""

    effect: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Cell:
    """The cards of one difficulty in one domain."""

    domain: str
    difficulty: Difficulty
    cards: tuple[Card, ...]
    """In order of id, deprecated ones included."""
    status: Mapping[Status, int]
    tokens: int
    """Estimated, of the cards that can be shown."""
    measured: int
    """Cards that can be shown and have a lift."""
    lift: float | None
    """The mean lift of those."""

    @property
    def shown(self) -> int:
        """Cards that a solve may read."""
        return len(self.cards) - self.status[Status.DEPRECATED]


@dataclass(frozen=True, slots=True)
class Atlas:
    """A tree's cells, and the tree as a whole."""

    cells: Mapping[tuple[str, Difficulty], Cell]
    """Every domain at every difficulty, empty cells too. A card of two domains lies in both."""
    whole: Cell
    """All cards, each once; its domain and difficulty are the universal ones."""
    lifts: Mapping[str, float]
    """By card; a card without a measured lift is not in it."""
    helping: int
    """Cards whose interval lies above zero."""
    harming: int
    """Cards whose interval lies below zero."""
    highest: tuple[Card, ...]
    lowest: tuple[Card, ...]
    """The cards of highest and of lowest lift; none is in both."""

    def ordered(self, cards: Iterable[Card], sort: str) -> list[Card]:
        """Cards, given in order of id, in another order; those without a lift come last in an order by lift."""
        back = sort.startswith("-")
        match sort.removeprefix("-"):
            case "lift":
                sign = 1 if back else -1
                return sorted(cards, key=lambda card: self._by_lift(card, sign))
            case "uses":
                sign = 1 if back else -1
                return sorted(cards, key=lambda card: sign * card.provenance.n_uses)
            case _:
                return list(cards)[:: -1 if back else 1]

    def _by_lift(self, card: Card, sign: int) -> tuple[bool, float]:
        lift = self.lifts.get(card.card_id)
        return (True, 0.0) if lift is None else (False, sign * lift)


def atlas_of(tree: EpistemicTree) -> Atlas:
    """The tree's counts, made when first asked for and kept: a hundred thousand cards take a third of a second."""
    return _ATLASES.of(tree)


def known_hash(tree: EpistemicTree) -> str:
    """The tree's content hash; nothing for a large tree, where a page should not wait for it."""
    return tree.content_hash() if len(tree) <= HASHED else ""


def figures_of(card: Card) -> Figures | None:
    """The lift that the learner wrote on a card; `None` where there is none, or one in other words."""
    effect, points, rest = card.provenance.validated_lift.partition(" points [")
    if not points:
        return None
    low, _, high = rest.partition("]")[0].partition(", ")
    try:
        return Figures(float(effect) / 100, float(low) / 100, float(high) / 100)
    except ValueError:
        return None


class Same:
    """A tree as a cache key: equal only to the very same value, whatever its size."""

    __slots__ = ("tree",)

    def __init__(self, tree: EpistemicTree) -> None:
        self.tree = tree

    def __hash__(self) -> int:
        return id(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.tree is other.tree


@dataclass(slots=True)
class _Count:
    """A cell while it is counted."""

    cards: list[Card] = field(default_factory=list)
    gone: int = 0
    validated: int = 0
    tokens: int = 0
    measured: int = 0
    lift: float = 0.0

    def take(self, card: Card, tokens: int, lift: float | None) -> None:
        status = card.provenance.promotion_status
        self.cards.append(card)
        if status is Status.DEPRECATED:
            self.gone += 1
            return
        self.validated += status is Status.VALIDATED
        self.tokens += tokens
        if lift is not None:
            self.measured += 1
            self.lift += lift

    def cell(self, domain: str, difficulty: Difficulty) -> Cell:
        tried = len(self.cards) - self.gone - self.validated
        status = {Status.EXPERIMENTAL: tried, Status.VALIDATED: self.validated, Status.DEPRECATED: self.gone}
        mean = self.lift / self.measured if self.measured else None
        return Cell(domain, difficulty, tuple(self.cards), status, self.tokens, self.measured, mean)


def _atlas(tree: EpistemicTree) -> Atlas:
    whole = _Count()
    counts = {(domain, kind): _Count() for domain in (*tree.domain_names, UNIVERSAL) for kind in Difficulty}
    lifts: dict[str, float] = {}
    helping = harming = 0
    for card in tree:
        effect, figures, tokens = None, figures_of(card), estimate(card)
        if figures is not None:
            lifts[card.card_id] = effect = figures.effect
            helping += figures.low > 0
            harming += figures.high < 0
        whole.take(card, tokens, effect)
        for domain in card.domain_tags:
            counts[domain, card.difficulty_tag].take(card, tokens, effect)
    highest, lowest = _extremes(whole.cards, lifts)
    cells = {place: count.cell(*place) for place, count in counts.items()}
    return Atlas(cells, whole.cell(UNIVERSAL, Difficulty.UNIVERSAL), lifts, helping, harming, highest, lowest)


def _extremes(cards: Sequence[Card], lifts: Mapping[str, float]) -> tuple[tuple[Card, ...], tuple[Card, ...]]:
    measured = [card for card in cards if card.card_id in lifts]
    most = min(EXTREMES, len(measured) // 2)

    def effect(card: Card) -> float:
        return lifts[card.card_id]

    return tuple(nlargest(most, measured, key=effect)), tuple(nsmallest(most, measured, key=effect))


_ATLASES = Once(_atlas, COUNTED_TREES)
