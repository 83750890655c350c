"""The epistemic tree: domains, and the cards at each (difficulty, domain). Immutable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kace.cards.card import (
    PLAIN,
    UNIVERSAL,
    VISIBLE,
    Card,
    Difficulty,
    Line,
    Name,
    Status,
    StrictRecord,
    card_line,
    refusal,
)
from kace.errors import DataError

RESERVED = frozenset({UNIVERSAL, "mixed", "unknown"})
"""Names with another meaning for the classifier."""


class Domain(StrictRecord):
    """A branch of the tree: a family of techniques."""

    name: Name
    description: Annotated[str, Field(min_length=1, max_length=300), PLAIN]
    share: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the corpus
    signals: Annotated[tuple[Line, ...], Field(max_length=40)] = ()
    """What a problem of this domain looks like."""


@dataclass(slots=True, repr=False)
class EpistemicTree:
    """Domains and cards. Every change returns a new tree."""

    domains: tuple[Domain, ...]
    cards: Mapping[str, Card]
    """All cards by id, in order of id, deprecated ones included."""
    index_path: Path | None = field(default=None, compare=False)
    """The file beside the tree that a trained relevance index is kept in."""
    _projections: dict[object, tuple[Card, ...]] = field(
        default_factory=dict, compare=False
    )

    @classmethod
    def of(
        cls, domains: Iterable[Domain], cards: Iterable[Card]
    ) -> EpistemicTree:
        """Build a tree; raise `DataError` where the parts do not fit."""
        registry = tuple(domains)
        names = {UNIVERSAL}
        for domain in registry:
            if domain.name in names | RESERVED:
                raise DataError(
                    f"there is another domain {domain.name!r}",
                    fix="choose another name",
                )
            names.add(domain.name)
        found: dict[str, Card] = {}
        for card in sorted(cards, key=lambda card: card.card_id):
            if card.card_id in found:
                raise DataError(
                    f"two cards are called {card.card_id}",
                    fix="rename or remove one of them",
                )
            found[card.card_id] = card
            for tag in card.domain_tags:
                if tag not in names:
                    raise DataError(
                        f"card {card.card_id}: the tree has no domain {tag!r}",
                        fix=f"use one of {', '.join(sorted(names))}",
                    )
        return cls(registry, found)

    @property
    def shown(self) -> tuple[Card, ...]:
        """The cards that a solve may read, in order of id."""
        return tuple(
            card for card in self if card.status is not Status.DEPRECATED
        )

    @property
    def domain_names(self) -> tuple[str, ...]:
        """The names in the registry, in its order."""
        return tuple(domain.name for domain in self.domains)

    def __len__(self) -> int:
        return len(self.cards)

    def __contains__(self, card_id: object) -> bool:
        return card_id in self.cards

    def __iter__(self) -> Iterator[Card]:
        return iter(self.cards.values())

    def __hash__(self) -> int:
        return hash(self.content_hash())

    def __repr__(self) -> str:
        return f"<EpistemicTree of {len(self.domains)} domains and {len(self)} cards>"

    def card(self, card_id: str) -> Card:
        """Return the card of that id; raise `DataError` without one."""
        return _card_in(self.cards, card_id)

    def project(self, tier: str, domains: Sequence[str]) -> tuple[Card, ...]:
        """Return the cards a tier may read in these domains, each once.

        Without a domain these are the universal cards. ES reads none, and a deprecated
        card is never read. What prompts share comes first: universal difficulty, then
        the tier's own; within each, cards of every domain, then by their domains, then
        by id.
        """
        names = frozenset(domains).intersection(self.domain_names) | {UNIVERSAL}
        if (tier, names) not in self._projections:
            cards = []
            for card in self.shown:
                visible = card.difficulty_tag in VISIBLE[tier]
                if visible and names.intersection(card.domain_tags):
                    cards.append(card)
            cards.sort(key=_reading_order)
            self._projections[tier, names] = tuple(cards)
        return self._projections[tier, names]

    def content_hash(self) -> str:
        """Return the sha256 of the domains and cards in canonical form."""
        lines = [domains_line(self.domains), *map(card_line, self), ""]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _reading_order(card: Card) -> tuple[bool, bool, list[str]]:
    own = card.difficulty_tag is not Difficulty.UNIVERSAL
    return own, UNIVERSAL not in card.domain_tags, sorted(set(card.domain_tags))


_DOMAINS = TypeAdapter(tuple[Domain, ...])


def domains_line(domains: tuple[Domain, ...]) -> str:
    """Return the registry as canonical JSON on one line."""
    return _DOMAINS.dump_json(domains).decode()


def domains_of(value: object) -> tuple[Domain, ...]:
    """Return the domains that a decoded JSON list describes; raise `DataError`."""
    try:
        return _DOMAINS.validate_json(json.dumps(value))
    except ValidationError as error:
        what, fix = refusal(error)
        raise DataError(f"the list of domains: {what}", fix=fix) from None


# Changes


@dataclass(frozen=True, slots=True)
class Add:
    """Add a new card."""

    card: Card


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the card of the same id."""

    card: Card


@dataclass(frozen=True, slots=True)
class Deprecate:
    """Never show a card again."""

    card_id: str


@dataclass(frozen=True, slots=True)
class SetDomains:
    """Replace the registry of domains."""

    domains: tuple[Domain, ...]


Change = Add | Edit | Deprecate | SetDomains


def applied(tree: EpistemicTree, *changes: Change) -> EpistemicTree:
    """Return the tree after changes, all or none.

    Raise `DataError` if the result would break a rule.
    """
    domains = tree.domains
    cards = dict(tree.cards)
    for change in changes:
        match change:
            case Add(card):
                if card.card_id in cards:
                    raise DataError(
                        f"the tree already has a card {card.card_id}",
                        fix="edit it, or choose another id",
                    )
                cards[card.card_id] = card
            case Edit(card):
                _card_in(cards, card.card_id)
                cards[card.card_id] = card
            case Deprecate(name):
                card = _card_in(cards, name)
                cards[name] = card.with_status(Status.DEPRECATED)
            case SetDomains():
                domains = change.domains
    return EpistemicTree.of(domains, cards.values())


def _card_in(cards: Mapping[str, Card], card_id: str) -> Card:
    if card_id not in cards:
        raise DataError(
            f"the tree has no card {card_id[:64]!r}",
            fix="see the ids: kace tree show TREE cards",
        )
    return cards[card_id]


def cards_by_source(cards: Iterable[Card]) -> Mapping[str, set[str]]:
    """Return the ids of the cards that each training problem has led to."""
    found: dict[str, set[str]] = {}
    for card in cards:
        for name in card.provenance.supporting_problems:
            found.setdefault(name, set()).add(card.card_id)
    return found
