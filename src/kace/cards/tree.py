"""The epistemic tree: a registry of domains and the cards that live at (difficulty, domain). An immutable value."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from kace.cards.card import (
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
from kace.cards.card_text import LINE
from kace.errors import DataError
from kace.ladder.tiers import TierName

RESERVED = frozenset(
    {UNIVERSAL, "mixed", "unknown"}
)  # names that mean something else to the classifier

Block = Mapping[str, Card]
"""The cards that may be shown of one difficulty and one choice of domains, by id, in order of id."""

Cell = tuple[Difficulty, frozenset[str]]
"""A difficulty and the very domains a card is tagged with: each card lies in one block, so none is read twice."""
Blocks = Mapping[Cell, Block]


class TreeError(DataError):
    """A tree that breaks a rule, or a change that would."""


class Domain(StrictRecord):
    """A branch of the tree: a family of techniques."""

    name: Name
    description: Annotated[
        str, StringConstraints(pattern=LINE, min_length=1, max_length=300)
    ]
    share: Annotated[float, Field(ge=0, le=1)] = (
        0.0  # the part of the corpus that belongs here
    )
    signals: Annotated[
        tuple[Line, ...], Field(max_length=40)
    ] = ()  # what a problem of this domain looks like


class EpistemicTree:
    """Domains and cards. Every change gives a new tree and leaves the old one as it was."""

    __slots__ = ("_blocks", "_cards", "_hash", "_projections", "_sorted", "domains")

    def __init__(
        self,
        domains: tuple[Domain, ...],
        cards: dict[str, Card],
        blocks: Blocks,
        *,
        in_order: bool,
    ) -> None:
        self.domains = domains
        self._cards = cards
        self._sorted = in_order
        self._blocks = blocks
        self._projections: dict[tuple[TierName, frozenset[str]], tuple[Card, ...]] = {}
        self._hash = ""

    @classmethod
    def of(
        cls, domains: Iterable[Domain], cards: Iterable[Card], digest: str = ""
    ) -> EpistemicTree:
        """A tree from its parts, and its content hash where that is known; raises `TreeError` where they do not fit."""
        registry = _registry(domains)
        found: dict[str, Card] = {}
        for card in cards:
            if found.setdefault(card.card_id, card) is not card:
                raise TreeError(
                    f"two cards are called {card.card_id}",
                    fix="rename or remove one of them",
                )
        _check_tags(found.values(), registry)
        ordered = dict(sorted(found.items()))
        tree = cls(
            registry,
            ordered,
            _moved({}, ((None, card) for card in ordered.values())),
            in_order=True,
        )
        tree._hash = digest
        return tree

    @property
    def cards(self) -> Mapping[str, Card]:
        """All cards by id, in order of id, deprecated ones included."""
        if (
            not self._sorted
        ):  # an added card was appended; sorting waits until somebody looks
            self._cards = dict(sorted(self._cards.items()))
            self._sorted = True
        return MappingProxyType(self._cards)

    @property
    def shown(self) -> tuple[Card, ...]:
        """The cards that a solve may read, in order of id."""
        return tuple(card for card in self if card.status is not Status.DEPRECATED)

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
        return (
            isinstance(other, EpistemicTree)
            and self.domains == other.domains
            and self._cards == other._cards
        )

    def __hash__(self) -> int:
        return hash(self.content_hash())

    def __repr__(self) -> str:
        return f"<EpistemicTree of {len(self.domains)} domains and {len(self)} cards>"

    def card(self, card_id: str) -> Card:
        """The card of that name; raises `TreeError` where there is none."""
        if card_id not in self._cards:
            raise TreeError(
                f"the tree has no card {card_id[:64]!r}",
                fix="see the ids: kace tree show TREE cards",
            )
        return self._cards[card_id]

    def revised(
        self, cards: Mapping[str, Card | None], domains: Iterable[Domain] | None = None
    ) -> EpistemicTree:
        """The tree after many changes at once: cards by id, `None` for one that is gone; perhaps another registry."""
        if not cards and domains is None:
            return self
        kept = {name: card for name, card in cards.items() if card is not None}
        gone = [name for name in cards if name not in kept and name in self._cards]
        merged = self._cards | kept
        for name in gone:
            del merged[name]
        registry = self.domains if domains is None else _registry(domains)
        _check_tags((kept if domains is None else merged).values(), registry)
        in_order = self._sorted and len(merged) + len(gone) == len(self._cards)
        blocks = _moved(
            self._blocks,
            ((self._cards.get(name), card) for name, card in cards.items()),
        )
        return EpistemicTree(registry, merged, blocks, in_order=in_order)

    def with_domains(self, domains: Iterable[Domain]) -> EpistemicTree:
        """The tree with another registry, which must still name every domain a card is tagged with."""
        return self.revised({}, domains)

    def project(self, tier: TierName, domains: Sequence[str]) -> tuple[Card, ...]:
        """The cards a tier may read in these domains, each once: the universal ones only where no domain is named.

        ES reads none, ever, and a deprecated card is never read. What prompts share comes first: universal difficulty,
        then the tier's own; within each, cards of every domain, then by their domains, then by id.
        """
        names = frozenset(domains).intersection(self.domain_names) | {UNIVERSAL}
        found = self._projections.get((tier, names))
        if found is None:
            visible = VISIBLE[tier]
            cells = [
                cell
                for cell in self._blocks
                if cell[0] in visible and not names.isdisjoint(cell[1])
            ]
            cells.sort(
                key=lambda c: (
                    c[0] is not Difficulty.UNIVERSAL,
                    UNIVERSAL not in c[1],
                    sorted(c[1]),
                )
            )
            blocks = (self._blocks[cell].values() for cell in cells)
            found = self._projections[tier, names] = tuple(chain.from_iterable(blocks))
        return found

    def content_hash(self) -> str:
        """The sha256 of the domains and cards in canonical form, whatever edits led to them."""
        if not self._hash:
            text = "\n".join((domains_line(self.domains), *map(card_line, self), ""))
            self._hash = hashlib.sha256(text.encode()).hexdigest()
        return self._hash


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
    names = Counter(domain.name for domain in registry)
    for name, times in names.items():
        if times > 1:
            raise TreeError(
                f"two domains are called {name}", fix="rename or remove one of them"
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
        if not known.issuperset(card.domain_tags):
            what = f"the tree has no domain {next(tag for tag in card.domain_tags if tag not in known)!r}"
            raise TreeError(
                f"card {card.card_id}: {what}",
                fix=f"use one of {', '.join(sorted(known))}",
            )


def _moved(blocks: Blocks, pairs: Iterable[tuple[Card | None, Card | None]]) -> Blocks:
    """The blocks after cards changed from one to the other: only those that a card left or entered are copied."""
    left: defaultdict[Cell, set[str]] = defaultdict(set)
    entered: defaultdict[Cell, dict[str, Card]] = defaultdict(dict)
    for before, after in pairs:
        if before is not None and before.status is not Status.DEPRECATED:
            left[before.difficulty_tag, frozenset(before.domain_tags)].add(
                before.card_id
            )
        if after is not None and after.status is not Status.DEPRECATED:
            entered[after.difficulty_tag, frozenset(after.domain_tags)][
                after.card_id
            ] = after
    changed: dict[Cell, Block] = {}
    for cell in left.keys() | entered.keys():
        old = blocks.get(cell, {})
        new = entered[cell]
        gone = left[cell] - new.keys()
        block = {name: card for name, card in old.items() if name not in gone} | new
        changed[cell] = (
            block
            if new.keys() <= old.keys()
            else dict(sorted(block.items(), key=itemgetter(0)))
        )
    return {**blocks, **changed}


@dataclass(frozen=True, slots=True)
class Add:
    """A new card."""

    card: Card


@dataclass(frozen=True, slots=True)
class Edit:
    """The card of the same id says something else."""

    card: Card


@dataclass(frozen=True, slots=True)
class Relocate:
    """A card moves to another difficulty or other domains."""

    card_id: str
    difficulty: Difficulty
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deprecate:
    """A card is never shown again."""

    card_id: str


@dataclass(frozen=True, slots=True)
class SetDomains:
    """Another registry of domains."""

    domains: tuple[Domain, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Several changes, in order, that happen together or not at all."""

    changes: tuple[Change, ...]


Change = Add | Edit | Relocate | Deprecate | SetDomains | Batch


def applied(tree: EpistemicTree, change: Change) -> EpistemicTree:
    """The tree after a change; raises `TreeError` or `CardError` where the change breaks a rule."""
    cards: dict[str, Card] = {}  # gathered, so that importing many stays quick
    for each in _single(change):
        if isinstance(each, SetDomains):
            tree = tree.revised(cards).revised({}, each.domains)
            cards = {}
        else:
            card = _card_after(each, tree, cards)
            cards[card.card_id] = card
    return tree.revised(cards)


def _card_after(
    change: Add | Edit | Relocate | Deprecate,
    tree: EpistemicTree,
    changed: Mapping[str, Card],
) -> Card:
    name = _name(change)
    if isinstance(change, Add):
        if name in changed or name in tree:
            raise TreeError(
                f"the tree already has a card {name}",
                fix="edit it, or choose another id",
            )
        return change.card
    now = changed.get(name) or tree.card(name)
    match change:
        case Edit(card):
            return card
        case Relocate(_, difficulty, domains):
            return now.at(difficulty, domains)
        case Deprecate():
            return now.with_status(Status.DEPRECATED)


def _name(change: Add | Edit | Relocate | Deprecate) -> str:
    return change.card.card_id if isinstance(change, Add | Edit) else change.card_id


def touched(change: Change) -> tuple[str, ...]:
    """The ids of the cards a change may alter."""
    return tuple(
        dict.fromkeys(
            _name(each) for each in _single(change) if not isinstance(each, SetDomains)
        )
    )


def _single(change: Change) -> Iterator[Add | Edit | Relocate | Deprecate | SetDomains]:
    if isinstance(change, Batch):
        for each in change.changes:
            yield from _single(each)
    else:
        yield change


def cards_by_source(tree: EpistemicTree) -> Mapping[str, frozenset[str]]:
    """By the name of a training problem, the ids of the cards that it gave rise to."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for card in tree:
        for name in card.provenance.supporting_problems:
            found[name].add(card.card_id)
    return {name: frozenset(cards) for name, cards in found.items()}
