"""The epistemic tree: domains, and the cards at each (difficulty, domain). Immutable."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
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


class TreeError(DataError):
    """A tree that breaks a rule, or a change that would."""


class Domain(StrictRecord):
    """A branch of the tree: a family of techniques."""

    name: Name
    description: Annotated[str, Field(min_length=1, max_length=300), PLAIN]
    share: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the corpus
    signals: Annotated[tuple[Line, ...], Field(max_length=40)] = ()
    """What a problem of this domain looks like."""


class EpistemicTree:
    """Domains and cards. Every change returns a new tree."""

    __slots__ = ("_hash", "_projections", "cards", "domains", "index_path")

    def __init__(
        self,
        domains: tuple[Domain, ...],
        cards: Mapping[str, Card],
        digest: str = "",
    ) -> None:
        self.domains = domains
        self.cards: Mapping[str, Card] = MappingProxyType(
            dict(sorted(cards.items()))
        )
        """All cards by id, in order of id, deprecated ones included."""
        self.index_path: Path | None = None
        """The file beside the tree that a trained relevance index is kept in."""
        self._hash = digest
        self._projections: dict[
            tuple[str, frozenset[str]], tuple[Card, ...]
        ] = {}

    @classmethod
    def of(
        cls, domains: Iterable[Domain], cards: Iterable[Card], digest: str = ""
    ) -> EpistemicTree:
        """Build a tree; `digest` is its content hash where that is known.

        Raise `TreeError` where the parts do not fit.
        """
        registry = _registry(domains)
        found: dict[str, Card] = {}
        for card in cards:
            if found.setdefault(card.card_id, card) is not card:
                raise TreeError(
                    f"two cards are called {card.card_id}",
                    fix="rename or remove one of them",
                )
        _check_tags(found.values(), registry)
        return cls(registry, found, digest)

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EpistemicTree):
            return NotImplemented
        return (self.domains, self.cards) == (other.domains, other.cards)

    def __hash__(self) -> int:
        return hash(self.content_hash())

    def __reduce__(self) -> tuple[object, ...]:
        return EpistemicTree, (self.domains, dict(self.cards), self._hash)

    def __repr__(self) -> str:
        return f"<EpistemicTree of {len(self.domains)} domains and {len(self)} cards>"

    def card(self, card_id: str) -> Card:
        """Return the card of that id; raise `TreeError` without one."""
        if card_id not in self.cards:
            raise TreeError(
                f"the tree has no card {card_id[:64]!r}",
                fix="see the ids: kace tree show TREE cards",
            )
        return self.cards[card_id]

    def revised(
        self,
        cards: Mapping[str, Card | None],
        domains: Iterable[Domain] | None = None,
    ) -> EpistemicTree:
        """Return the tree after many changes at once.

        Cards are given by id, `None` for one to remove. `domains` replaces the registry.
        """
        if not cards and domains is None:
            return self
        merged = dict(self.cards)
        changed = []
        for name, card in cards.items():
            if card is None:
                merged.pop(name, None)
            else:
                merged[name] = card
                changed.append(card)
        if domains is None:
            _check_tags(changed, self.domains)
            return EpistemicTree(self.domains, merged)
        registry = _registry(domains)
        _check_tags(merged.values(), registry)
        return EpistemicTree(registry, merged)

    def with_domains(self, domains: Iterable[Domain]) -> EpistemicTree:
        """Return the tree with another registry, which must name every tag in use."""
        return self.revised({}, domains)

    def project(self, tier: str, domains: Sequence[str]) -> tuple[Card, ...]:
        """Return the cards a tier may read in these domains, each once.

        Without a domain these are the universal cards. ES reads none, and a deprecated
        card is never read. What prompts share comes first: universal difficulty, then
        the tier's own; within each, cards of every domain, then by their domains, then
        by id.
        """
        names = frozenset(domains).intersection(self.domain_names) | {UNIVERSAL}
        found = self._projections.get((tier, names))
        if found is None:
            visible = VISIBLE[tier]
            cards = []
            for card in self.shown:
                if card.difficulty_tag in visible and names.intersection(
                    card.domain_tags
                ):
                    cards.append(card)
            found = tuple(sorted(cards, key=_reading_order))
            self._projections[tier, names] = found
        return found

    def content_hash(self) -> str:
        """Return the sha256 of the domains and cards in canonical form."""
        if not self._hash:
            digest = hashlib.sha256(f"{domains_line(self.domains)}\n".encode())
            for card in self:
                digest.update(f"{card_line(card)}\n".encode())
            self._hash = digest.hexdigest()
        return self._hash


def _reading_order(card: Card) -> tuple[bool, bool, list[str]]:
    own = card.difficulty_tag is not Difficulty.UNIVERSAL
    return own, UNIVERSAL not in card.domain_tags, sorted(set(card.domain_tags))


_DOMAINS = TypeAdapter(tuple[Domain, ...])


def domains_line(domains: tuple[Domain, ...]) -> str:
    """Return the registry as canonical JSON on one line."""
    return _DOMAINS.dump_json(domains).decode()


def domain_of(value: object) -> Domain:
    """Return the domain that a decoded JSON value describes; raise `TreeError`."""
    try:
        return Domain.model_validate_json(json.dumps(value))
    except ValidationError as error:
        what, fix = refusal(error)
        raise TreeError(
            f"a domain is refused: {what}",
            fix=fix,
        ) from None


def _registry(domains: Iterable[Domain]) -> tuple[Domain, ...]:
    registry = tuple(domains)
    names = Counter(domain.name for domain in registry)
    for name, times in names.items():
        if times > 1:
            raise TreeError(
                f"two domains are called {name}",
                fix="rename or remove one of them",
            )
        if name in RESERVED:
            raise TreeError(
                f"a domain may not be called {name!r}",
                fix="the name is reserved; choose another",
            )
    return registry


def _check_tags(cards: Iterable[Card], domains: tuple[Domain, ...]) -> None:
    known = {UNIVERSAL, *(domain.name for domain in domains)}
    for card in cards:
        for tag in card.domain_tags:
            if tag not in known:
                raise TreeError(
                    f"card {card.card_id}: the tree has no domain {tag!r}",
                    fix=f"use one of {', '.join(sorted(known))}",
                )


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Make several changes in order, all or none."""

    changes: tuple[Change, ...]


Change = Add | Edit | Deprecate | SetDomains | Batch


def applied(tree: EpistemicTree, change: Change) -> EpistemicTree:
    """Return the tree after a change; raise `TreeError` or `CardError` if it breaks a rule."""
    # Gathered, so that importing many cards stays quick.
    cards: dict[str, Card | None] = {}

    def now(name: str) -> Card:
        return cards.get(name) or tree.card(name)

    for each in change.changes if isinstance(change, Batch) else (change,):
        match each:
            case Add(card):
                if card.card_id in cards or card.card_id in tree:
                    raise TreeError(
                        f"the tree already has a card {card.card_id}",
                        fix="edit it, or choose another id",
                    )
                cards[card.card_id] = card
            case Edit(card):
                cards[now(card.card_id).card_id] = card
            case Deprecate(name):
                cards[name] = now(name).with_status(Status.DEPRECATED)
            case SetDomains(domains):
                tree = tree.revised(cards).with_domains(domains)
                cards = {}
            case Batch():
                tree = applied(tree.revised(cards), each)
                cards = {}
    return tree.revised(cards)


def cards_by_source(cards: Iterable[Card]) -> Mapping[str, frozenset[str]]:
    """Return the ids of the cards that each training problem has led to."""
    found = defaultdict(set)
    for card in cards:
        for name in card.provenance.supporting_problems:
            found[name].add(card.card_id)
    return {name: frozenset(ids) for name, ids in found.items()}
