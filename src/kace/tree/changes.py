"""The changes a tree can undergo, as values, and the tree after them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kace.tree.card import Card, Difficulty, Status
from kace.tree.tree import Domain, EpistemicTree, TreeError


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
            tree, cards = tree.revised(cards).revised({}, each.domains), {}
        else:
            card = _card_after(each, tree, cards)
            cards[card.card_id] = card
    return tree.revised(cards)


def _card_after(change: Add | Edit | Relocate | Deprecate, tree: EpistemicTree, changed: Mapping[str, Card]) -> Card:
    name = change.card.card_id if isinstance(change, Add | Edit) else change.card_id
    if isinstance(change, Add):
        if name in changed or name in tree:
            raise TreeError(f"the tree already has a card {name}", fix="edit it, or choose another id")
        return change.card
    now = changed.get(name) or tree.card(name)
    match change:
        case Edit(card):
            return card
        case Relocate(_, difficulty, domains):
            return now.at(difficulty, domains)
        case Deprecate():
            return now.with_status(Status.DEPRECATED)


def touched(change: Change) -> tuple[str, ...]:
    """The ids of the cards a change may alter."""
    singles = (each for each in _single(change) if not isinstance(each, SetDomains))
    return tuple(dict.fromkeys(each.card.card_id if isinstance(each, Add | Edit) else each.card_id for each in singles))


def _single(change: Change) -> Iterator[Add | Edit | Relocate | Deprecate | SetDomains]:
    """The changes that a change is made of, in order."""
    if isinstance(change, Batch):
        for each in change.changes:
            yield from _single(each)
    else:
        yield change
