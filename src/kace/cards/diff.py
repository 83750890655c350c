"""Compare two trees for review, and merge one into the other card by card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import NamedTuple

from kace.cards.card import Card, Status
from kace.cards.tree import Domain, EpistemicTree

# Differences


class CardPair(NamedTuple):
    """A card before and after."""

    before: Card
    after: Card

    @property
    def deprecated(self) -> bool:
        """Whether the card became deprecated."""
        now = self.after.status is Status.DEPRECATED
        return now and self.before.status is not Status.DEPRECATED


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """Cards by what changed. A card that moved and was rewritten is in two groups."""

    added: tuple[Card, ...]
    edited: tuple[CardPair, ...]
    relocated: tuple[CardPair, ...]
    deprecated: tuple[CardPair, ...]
    removed: tuple[Card, ...]
    domains_before: tuple[Domain, ...]
    domains_after: tuple[Domain, ...]

    def __bool__(self) -> bool:
        return self.summary() != "no change"

    def __repr__(self) -> str:
        return f"<TreeDiff: {self.summary()}>"

    def lines(self) -> list[str]:
        """Return the change as text.

        `+` marks what was added, `~` edited, `>` relocated, `x` deprecated, `-` removed.
        """
        lines = _domain_lines(self.domains_before, self.domains_after)
        for card in self.added:
            lines.append(f"+ {card.card_id}  {place(card)}")
            lines += _indented(
                _changed((), card.payload.strip("\n").split("\n"))
            )
        for pair in self.edited:
            lines.append(f"~ {pair.after.card_id}  {place(pair.after)}")
            lines += _indented(_details(pair))
        for before, after in self.relocated:
            lines.append(
                f"> {after.card_id}  {place(before)} -> {place(after)}"
            )
        for before, after in self.deprecated:
            lines.append(
                f"x {after.card_id}  deprecated, was {before.status.value}"
            )
        for card in self.removed:
            lines.append(f"- {card.card_id}  {place(card)}")
        return lines

    def summary(self) -> str:
        """Return the counts in one line."""
        parts = []
        for name in ("added", "edited", "relocated", "deprecated", "removed"):
            count = len(getattr(self, name))
            if count:
                parts.append(f"{count} {name}")
        if self.domains_before != self.domains_after:
            parts.append("domains changed")
        return ", ".join(parts) or "no change"


def diff(before: EpistemicTree, after: EpistemicTree) -> TreeDiff:
    """Return what turns one tree into the other."""
    pairs = []
    for card in after:
        if card.card_id in before and before.card(card.card_id) != card:
            pairs.append(CardPair(before.card(card.card_id), card))
    return TreeDiff(
        added=tuple(card for card in after if card.card_id not in before),
        edited=tuple(pair for pair in pairs if _details(pair)),
        relocated=tuple(
            pair for pair in pairs if place(pair[0]) != place(pair[1])
        ),
        deprecated=tuple(pair for pair in pairs if pair.deprecated),
        removed=tuple(card for card in before if card.card_id not in after),
        domains_before=before.domains,
        domains_after=after.domains,
    )


def place(card: Card) -> str:
    """Return the place of a card, for people."""
    return f"{card.difficulty_tag.value} · {', '.join(card.domain_tags)}"


def _details(pair: CardPair) -> list[str]:
    """Return what changed in a card, without its place and its deprecation."""
    before, after = pair
    if pair.deprecated:
        after = after.with_status(before.status)
    return _changed(_card_lines(before), _card_lines(after))


def _card_lines(card: Card) -> list[str]:
    lines = card.payload.split("\n")
    lines += _labelled("routing", card.routing_conditions)
    lines += _labelled("wording", card.wordings)
    lines.append(f"helpfulness_score: {card.helpfulness_score:g}")
    for name, value in card.provenance:
        text = ", ".join(value) if isinstance(value, tuple) else value
        lines.append(f"{name}: {text}")
    return lines


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{label}: {line}" for line in lines]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]


def _changed(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that went and came, with `-` and `+`."""
    lines = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            lines += [f"- {line}" for line in before[start:end]]
            lines += [f"+ {line}" for line in after[new_start:new_end]]
    return lines


def _domain_lines(
    before: tuple[Domain, ...], after: tuple[Domain, ...]
) -> list[str]:
    old = {domain.name: _facts(domain) for domain in before}
    new = {domain.name: _facts(domain) for domain in after}
    lines = []
    for name, facts in new.items():
        if name not in old:
            lines.append(f"+ domain {name}: {facts[0]}")
    for name, facts in old.items():
        if name not in new:
            lines.append(f"- domain {name}: {facts[0]}")
        elif facts != new[name]:
            lines.append(f"~ domain {name}")
            lines += _indented(_changed(facts, new[name]))
    if before != after and not lines:
        lines.append(f"~ domains reordered: {', '.join(new)}")
    return lines


def _facts(domain: Domain) -> list[str]:
    facts = [domain.description, f"share {domain.share:.0%}"]
    return facts + _labelled("signal", domain.signals)


# Merging


class Prefer(StrEnum):
    """The side that wins where both trees have a different content for one name."""

    OURS = "ours"
    THEIRS = "theirs"


class Conflict(NamedTuple):
    """A card or a domain that differs between the two trees."""

    name: str
    fields: tuple[str, ...]
    lines: tuple[str, ...]  # the difference, `-` ours and `+` theirs


class Merged(NamedTuple):
    """The result of a merge. With conflicts and no side preferred, `tree` is ours."""

    tree: EpistemicTree
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()  # cards taken from theirs in a conflict
    domains: tuple[str, ...] = ()  # domains taken from theirs
    conflicts: tuple[Conflict, ...] = ()


def merge(
    ours: EpistemicTree, theirs: EpistemicTree, prefer: Prefer | None = None
) -> Merged:
    """Bring the other tree's domains and cards into ours.

    A new card arrives experimental, and of cards with equal content ours is kept. Others
    conflict, and nothing merges until a side is preferred.
    """
    domains = {domain.name: domain for domain in ours.domains}
    cards = dict(ours.cards)
    conflicts = []
    new_domains = []
    added = []
    replaced = []
    for domain in theirs.domains:
        name = domain.name
        conflict = _conflict(f"domain {name}", domains.get(name), domain)
        if conflict:
            conflicts.append(conflict)
        if name not in domains or (conflict and prefer is Prefer.THEIRS):
            new_domains.append(name)
            domains[name] = domain
    for name, card in theirs.cards.items():
        mine = ours.cards.get(name)
        conflict = _conflict(f"card {name}", mine, card)
        if mine is None:
            added.append(name)
            cards[name] = as_import(card)
        elif conflict:
            conflicts.append(conflict)
            if prefer is Prefer.THEIRS:
                replaced.append(name)
                cards[name] = as_import(card)
    if conflicts and prefer is None:
        return Merged(ours, conflicts=tuple(conflicts))
    return Merged(
        EpistemicTree.of(domains.values(), cards.values()),
        tuple(added),
        tuple(replaced),
        tuple(new_domains),
        tuple(conflicts),
    )


def as_import(card: Card) -> Card:
    """Return a card as experimental, unless it is deprecated."""
    if card.status is Status.DEPRECATED:
        return card
    return card.with_status(Status.EXPERIMENTAL)


def _conflict(
    name: str, ours: Card | Domain | None, theirs: Card | Domain
) -> Conflict | None:
    """Return how two parts of one name differ in what a solve can notice."""
    if ours is None:
        return None
    fields = []
    lines = []
    before = _content(ours)
    for field, after in _content(theirs).items():
        if list(before[field]) != list(after):
            fields.append(field)
            lines += _changed(before[field], after)
    return Conflict(name, tuple(fields), tuple(lines)) if fields else None


def _content(part: Card | Domain) -> Mapping[str, Sequence[str]]:
    """Return what a solve can notice of a card or a domain, by field.

    The share of a domain describes a corpus, so two trees may differ there.
    """
    if isinstance(part, Domain):
        return {"description": [part.description], "signals": part.signals}
    tags = ", ".join(sorted(part.domain_tags))
    status = "deprecated" if part.status is Status.DEPRECATED else "shown"
    return {
        "place": [f"{part.difficulty_tag.value}: {tags}"],
        "status": [status],
        "routing_conditions": part.routing_conditions,
        "wordings": part.wordings,
        "payload": part.payload.split("\n"),
    }
