"""The changes a tree can undergo, as values."""

from __future__ import annotations

from dataclasses import dataclass

from kace.tree.card import Card, Difficulty
from kace.tree.tree import Domain, EpistemicTree


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
    match change:
        case Add(card):
            return tree.add(card)
        case Edit(card):
            return tree.edit(card)
        case Relocate(card_id, difficulty, domains):
            return tree.relocate(card_id, difficulty, domains)
        case Deprecate(card_id):
            return tree.deprecate(card_id)
        case SetDomains(domains):
            return tree.with_domains(domains)
        case Batch(changes):
            return _all_applied(tree, changes)


def _all_applied(tree: EpistemicTree, changes: tuple[Change, ...]) -> EpistemicTree:
    """The tree after changes in order. New and rewritten cards are gathered, so that importing many stays quick."""
    gathered: dict[str, Card] = {}
    for change in changes:
        if isinstance(change, Add | Edit):
            name = change.card.card_id
            if (name in tree or name in gathered) is isinstance(change, Edit):
                gathered[name] = change.card
                continue
        tree = applied(tree.revised(gathered), change)
        gathered = {}
    return tree.revised(gathered)


def touched(change: Change) -> tuple[str, ...]:
    """The ids of the cards a change may alter."""
    match change:
        case Add(card) | Edit(card):
            return (card.card_id,)
        case Relocate(card_id) | Deprecate(card_id):
            return (card_id,)
        case SetDomains():
            return ()
        case Batch(changes):
            return tuple(dict.fromkeys(name for each in changes for name in touched(each)))
