"""Two trees into one, card by card. Pure.

    in one tree only        kept; a card of the other tree arrives experimental, whatever it was there
    same content            one card; where what is known about it differs, counters are summed and problems united
    different content       a conflict, which the caller decides: nothing merges until a side is preferred

Content is what a solve can notice: text, routing conditions, place, and whether the card is shown at all. There is no
common ancestor to compare with, so merging the same tree twice counts its uses twice.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kace.tree.card import Card, Provenance, Status
from kace.tree.tree import Domain, EpistemicTree

MAX_COUNT = 1 << 53
MAX_NOTE = 300


class Prefer(StrEnum):
    """The side that wins where both trees have their own content for one name."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A card or a domain that the two trees tell differently."""

    name: str
    fields: tuple[str, ...]
    lines: tuple[str, ...]
    """The difference, `-` ours and `+` theirs."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge gives. With conflicts and no side preferred, `tree` is ours as it was."""

    tree: EpistemicTree
    added: tuple[str, ...] = ()
    united: tuple[str, ...] = ()
    """Cards of equal content whose records were put together."""
    replaced: tuple[str, ...] = ()
    """Cards that theirs won."""
    domains: tuple[str, ...] = ()
    """Domains that came with the other tree, or that theirs won."""
    conflicts: tuple[Conflict, ...] = ()


def merge(ours: EpistemicTree, theirs: EpistemicTree, prefer: Prefer | None = None) -> Merged:
    """Bring the other tree's domains and cards into ours."""
    shared = [(ours.cards[name], card) for name, card in theirs.cards.items() if name in ours]
    conflicts = (
        *_domain_conflicts(ours, theirs),
        *(_card_conflict(mine, other) for mine, other in shared if _content(mine) != _content(other)),
    )
    if conflicts and prefer is None:
        return Merged(tree=ours, conflicts=conflicts)
    domains = _domains(ours, theirs, prefer)
    added = {name: as_import(card) for name, card in theirs.cards.items() if name not in ours}
    united = {mine.card_id: _unite(mine, other) for mine, other in shared if _content(mine) == _content(other)}
    united = {name: card for name, card in united.items() if card != ours.cards[name]}
    replaced: dict[str, Card] = {}
    if prefer is Prefer.THEIRS:
        replaced = {other.card_id: as_import(other) for mine, other in shared if _content(mine) != _content(other)}
    known = {domain.name: domain for domain in ours.domains}
    return Merged(
        tree=EpistemicTree.of(domains, ({**ours.cards, **added, **united, **replaced}).values()),
        added=tuple(added),
        united=tuple(united),
        replaced=tuple(replaced),
        domains=tuple(domain.name for domain in domains if known.get(domain.name) != domain),
        conflicts=conflicts,
    )


def as_import(card: Card) -> Card:
    """A card from elsewhere: experimental until it is validated here. A deprecated one stays deprecated."""
    return card.with_status(Status.EXPERIMENTAL) if card.status is Status.VALIDATED else card


def _content(card: Card) -> tuple[object, ...]:
    deprecated = card.status is Status.DEPRECATED
    return (card.payload, card.routing_conditions, card.difficulty_tag, frozenset(card.domain_tags), deprecated)


def _unite(mine: Card, other: Card) -> Card:
    ours, theirs = mine.provenance, other.provenance
    if ours.model_copy(update={"promotion_status": theirs.promotion_status}) == theirs:
        return mine  # the same record: nothing to add up
    record = Provenance(
        source=_joined(ours.source, theirs.source),
        supporting_problems=tuple(dict.fromkeys((*ours.supporting_problems, *theirs.supporting_problems))),
        validated_lift=_joined(ours.validated_lift, theirs.validated_lift),
        promotion_status=ours.promotion_status,
        n_uses=min(MAX_COUNT, ours.n_uses + theirs.n_uses),
        n_wins=min(MAX_COUNT, ours.n_wins + theirs.n_wins),
        n_losses=min(MAX_COUNT, ours.n_losses + theirs.n_losses),
        epoch_introduced=min(ours.epoch_introduced, theirs.epoch_introduced),
    )
    return mine.model_copy(update={"provenance": record, "helpfulness_score": _score(mine, other)})


def _score(mine: Card, other: Card) -> float:
    """The mean of the two scores, each weighing as much as its card was used."""
    uses = (
        (mine.provenance.n_uses, other.provenance.n_uses)
        if mine.provenance.n_uses + other.provenance.n_uses
        else (1, 1)
    )
    share = uses[0] / sum(uses)
    return mine.helpfulness_score * share + other.helpfulness_score * (1 - share)


def _joined(mine: str, other: str) -> str:
    if not other or other in mine.split("; "):
        return mine
    joined = f"{mine}; {other}" if mine else other
    return joined if len(joined) <= MAX_NOTE else mine


def _domains(ours: EpistemicTree, theirs: EpistemicTree, prefer: Prefer | None) -> tuple[Domain, ...]:
    found = {domain.name: domain for domain in ours.domains}
    for domain in theirs.domains:
        if domain.name not in found or (prefer is Prefer.THEIRS and _meaning(domain) != _meaning(found[domain.name])):
            found[domain.name] = domain
    return tuple(found.values())


def _domain_conflicts(ours: EpistemicTree, theirs: EpistemicTree) -> Iterator[Conflict]:
    known = {domain.name: domain for domain in ours.domains}
    for other in theirs.domains:
        mine = known.get(other.name)
        if mine is None or _meaning(mine) == _meaning(other):
            continue
        fields = tuple(name for name in ("description", "signals") if getattr(mine, name) != getattr(other, name))
        lines = _changes([mine.description, *mine.signals], [other.description, *other.signals])
        yield Conflict(f"domain {other.name}", fields, lines)


def _meaning(domain: Domain) -> tuple[object, ...]:
    """What a domain is. Its share describes a corpus, so two trees may differ there in peace."""
    return (domain.description, domain.signals)


def _card_conflict(mine: Card, other: Card) -> Conflict:
    before, after = _told(mine), _told(other)
    fields = tuple(name for name in before if before[name] != after[name])
    lines = tuple(line for name in fields for line in _changes(before[name], after[name]))
    return Conflict(f"card {mine.card_id}", fields, lines)


def _told(card: Card) -> dict[str, list[str]]:
    shown = "deprecated" if card.status is Status.DEPRECATED else "shown"
    return {
        "place": [f"{card.difficulty_tag.value}: {', '.join(sorted(card.domain_tags))}"],
        "status": [shown],
        "routing_conditions": list(card.routing_conditions),
        "payload": card.payload.split("\n"),
    }


def _changes(mine: list[str], other: list[str]) -> tuple[str, ...]:
    # difflib's own header lines and context would only repeat what the conflict already names.
    return tuple(line for line in difflib.ndiff(mine, other) if line.startswith(("- ", "+ ")))
