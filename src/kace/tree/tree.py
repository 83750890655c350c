"""The epistemic tree: a registry of domains and the cards that live at (difficulty, domain). An immutable value."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from kace.errors import DataError
from kace.solver.tiers import TierName
from kace.tree.card import UNIVERSAL, VISIBLE, Card, Difficulty, Line, Name, Status, card_line
from kace.tree.card_text import LINE
from kace.tree.diff import TreeDiff, diff
from kace.tree.refusal import refusal

__all__ = ["RESERVED", "Block", "Domain", "EpistemicTree", "TreeDiff", "TreeError", "diff", "domain_of", "domains_line"]

RESERVED = frozenset({UNIVERSAL, "mixed", "unknown"})
"""Names that mean something else to the classifier."""

Block = Mapping[str, Card]
"""The cards that may be shown of one difficulty and one choice of domains, by id, in order of id."""


class TreeError(DataError):
    """A tree that breaks a rule, or a change that would."""


class Domain(BaseModel):
    """A branch of the tree: a family of techniques."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Name
    description: Annotated[str, StringConstraints(pattern=LINE, min_length=1, max_length=300)]
    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The part of the corpus that belongs here."""
    signals: Annotated[tuple[Line, ...], Field(max_length=40)] = ()
    """What a problem of this domain looks like."""


class EpistemicTree:
    """Domains and cards. Every change gives a new tree and leaves the old one as it was."""

    __slots__ = ("_blocks", "_cards", "_hash", "_projections", "_sorted", "domains")

    domains: tuple[Domain, ...]
    _cards: dict[str, Card]
    _sorted: bool
    _blocks: dict[_Cell, Block]
    _projections: dict[tuple[TierName, frozenset[str]], tuple[Card, ...]]
    _hash: str

    @classmethod
    def of(cls, domains: Iterable[Domain], cards: Iterable[Card]) -> EpistemicTree:
        """A tree from its parts; raises `TreeError` on a repeated id or a tag that is no domain."""
        registry = _registry(domains)
        found: dict[str, Card] = {}
        for card in cards:
            if found.setdefault(card.card_id, card) is not card:
                raise TreeError(f"two cards are called {card.card_id}", fix="rename or remove one of them")
        _check_tags(found.values(), registry)
        ordered = dict(sorted(found.items()))
        return cls._of(registry, ordered, _blocks(ordered.values()), in_order=True)

    @classmethod
    def hashed(cls, domains: Iterable[Domain], cards: Iterable[Card], digest: str) -> EpistemicTree:
        """A tree whose content hash the caller has just computed from its canonical lines."""
        tree = cls.of(domains, cards)
        tree._hash = digest
        return tree

    @classmethod
    def _of(
        cls, domains: tuple[Domain, ...], cards: dict[str, Card], blocks: dict[_Cell, Block], *, in_order: bool
    ) -> EpistemicTree:
        tree = object.__new__(cls)
        tree.domains = domains
        tree._cards = cards
        tree._sorted = in_order
        tree._blocks = blocks
        tree._projections = {}
        tree._hash = ""
        return tree

    @property
    def cards(self) -> Mapping[str, Card]:
        """All cards by id, in order of id, deprecated ones included."""
        if not self._sorted:  # an added card was appended; sorting waits until somebody looks
            self._cards = dict(sorted(self._cards.items()))
            self._sorted = True
        return MappingProxyType(self._cards)

    @property
    def domain_names(self) -> tuple[str, ...]:
        """The names in the registry, in its order."""
        return tuple(domain.name for domain in self.domains)

    def __len__(self) -> int:
        return len(self._cards)

    def __contains__(self, card_id: object) -> bool:
        return card_id in self._cards

    def __iter__(self) -> Iterator[Card]:
        return iter(self.cards.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EpistemicTree):
            return NotImplemented
        return self.domains == other.domains and self._cards == other._cards

    def __hash__(self) -> int:
        return hash(self.content_hash())

    def __repr__(self) -> str:
        return f"<EpistemicTree of {len(self.domains)} domains and {len(self)} cards>"

    def card(self, card_id: str) -> Card:
        """The card of that name; raises `TreeError` where there is none."""
        try:
            return self._cards[card_id]
        except KeyError:
            raise TreeError(
                f"the tree has no card {card_id[:64]!r}", fix="list the ids with: kace tree cards"
            ) from None

    def add(self, card: Card) -> EpistemicTree:
        """The tree with one more card."""
        if card.card_id in self._cards:
            raise TreeError(f"the tree already has a card {card.card_id}", fix="edit it, or choose another id")
        return self._with(card)

    def edit(self, card: Card) -> EpistemicTree:
        """The tree with the card of the same id replaced."""
        self.card(card.card_id)
        return self._with(card)

    def relocate(self, card_id: str, difficulty: Difficulty, domains: Sequence[str]) -> EpistemicTree:
        """The tree with a card at another difficulty or in other domains."""
        return self._with(self.card(card_id).at(difficulty, domains))

    def deprecate(self, card_id: str) -> EpistemicTree:
        """The tree with a card that is never shown again."""
        return self._with(self.card(card_id).with_status(Status.DEPRECATED))

    def revised(self, cards: Mapping[str, Card | None], domains: Iterable[Domain] | None = None) -> EpistemicTree:
        """The tree after many changes at once: cards by id, `None` for one that is gone."""
        if not cards and domains is None:
            return self
        kept = {name: card for name, card in cards.items() if card is not None}
        gone = [name for name in cards if name not in kept and name in self._cards]
        merged = self._cards | kept
        for name in gone:
            del merged[name]
        in_order = self._sorted and len(merged) + len(gone) == len(self._cards)
        pairs = [(self._cards.get(name), card) for name, card in cards.items()]
        tree = self._of(self.domains, merged, self._moved(pairs), in_order=in_order)
        if domains is not None:
            return tree.with_domains(domains)
        _check_tags(kept.values(), tree.domains)
        return tree

    def with_domains(self, domains: Iterable[Domain]) -> EpistemicTree:
        """The tree with another registry, which must still name every domain a card is tagged with."""
        registry = _registry(domains)
        _check_tags(self._cards.values(), registry)
        return self._of(registry, self._cards, self._blocks, in_order=self._sorted)

    def project(self, tier: TierName, domains: Sequence[str]) -> tuple[Card, ...]:
        """The cards a tier may read in these domains, each once, in an order that depends on nothing else.

        No domain means the cards tagged `universal` only; two mean both branches. ES reads none, ever, and a
        deprecated card is never read. Universal difficulty comes first, then the tier's own; within each, cards of
        every domain, then by their domains, then by id: what prompts share stands at their front.
        """
        names = frozenset(domains).intersection(self.domain_names) | {UNIVERSAL}
        found = self._projections.get((tier, names))
        if found is None:
            visible = VISIBLE[tier]
            cells = (cell for cell in self._blocks if cell[0] in visible and not names.isdisjoint(cell[1]))
            blocks = (self._blocks[cell].values() for cell in sorted(cells, key=_reading_order))
            found = self._projections[tier, names] = tuple(chain.from_iterable(blocks))
        return found

    def content_hash(self) -> str:
        """The sha256 of the domains and cards in canonical form, whatever edits led to them."""
        if not self._hash:
            digest = hashlib.sha256(domains_line(self.domains).encode() + b"\n")
            for card in self:
                digest.update(card_line(card).encode() + b"\n")
            self._hash = digest.hexdigest()
        return self._hash

    def _with(self, card: Card) -> EpistemicTree:
        return self.revised({card.card_id: card})

    def _moved(self, pairs: Iterable[tuple[Card | None, Card | None]]) -> dict[_Cell, Block]:
        """The blocks after cards changed from one to the other: only those that a card left or entered are copied."""
        left: defaultdict[_Cell, set[str]] = defaultdict(set)
        entered: defaultdict[_Cell, dict[str, Card]] = defaultdict(dict)
        for before, after in pairs:
            if before is not None and before.status is not Status.DEPRECATED:
                left[_cell(before)].add(before.card_id)
            if after is not None and after.status is not Status.DEPRECATED:
                entered[_cell(after)][after.card_id] = after
        blocks = dict(self._blocks)
        for cell in left.keys() | entered.keys():
            old, new = blocks.get(cell, {}), entered[cell]
            gone = left[cell] - new.keys()
            block = {name: card for name, card in old.items() if name not in gone} | new
            in_order = new.keys() <= old.keys()
            blocks[cell] = block if in_order else dict(sorted(block.items(), key=_first))
        return blocks


_Cell = tuple[Difficulty, frozenset[str]]
"""A difficulty and the very domains a card is tagged with: each card lies in one block, so none is read twice."""
_DOMAINS = TypeAdapter(tuple[Domain, ...])


def domains_line(domains: tuple[Domain, ...]) -> str:
    """The registry as canonical JSON on one line."""
    return _DOMAINS.dump_json(domains).decode()


def domain_of(value: object) -> Domain:
    """The domain that a decoded JSON value describes; raises `TreeError`."""
    try:
        return Domain.model_validate_json(json.dumps(value))
    except ValidationError as error:
        what, fix = refusal(error)
        raise TreeError(f"a domain is refused: {what}", fix=fix) from None


def _registry(domains: Iterable[Domain]) -> tuple[Domain, ...]:
    registry = tuple(domains)
    seen: set[str] = set()
    for domain in registry:
        if domain.name in seen:
            raise TreeError(f"two domains are called {domain.name}", fix="rename or remove one of them")
        if domain.name in RESERVED:
            raise TreeError(f"a domain may not be called {domain.name!r}", fix="the name is reserved; choose another")
        seen.add(domain.name)
    return registry


def _check_tags(cards: Iterable[Card], domains: tuple[Domain, ...]) -> None:
    known = {UNIVERSAL, *(domain.name for domain in domains)}
    for card in cards:
        if not known.issuperset(card.domain_tags):
            tag = next(tag for tag in card.domain_tags if tag not in known)
            named = ", ".join(sorted(known))
            raise TreeError(f"card {card.card_id}: the tree has no domain {tag!r}", fix=f"use one of {named}")


def _cell(card: Card) -> _Cell:
    return card.difficulty_tag, frozenset(card.domain_tags)


def _reading_order(cell: _Cell) -> tuple[bool, bool, list[str]]:
    difficulty, tags = cell
    return difficulty is not Difficulty.UNIVERSAL, UNIVERSAL not in tags, sorted(tags)


def _blocks(cards: Iterable[Card]) -> dict[_Cell, Block]:
    blocks: defaultdict[_Cell, dict[str, Card]] = defaultdict(dict)
    for card in cards:
        if card.provenance.promotion_status is not Status.DEPRECATED:
            blocks[_cell(card)][card.card_id] = card
    return dict(blocks)


def _first(item: tuple[str, Card]) -> str:
    return item[0]
