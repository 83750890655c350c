"""What changed between two trees, and how to say it so that a person can review it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from kace.tree.card import Card, Status

if TYPE_CHECKING:  # the tree hands out its own diff, so it imports this file and not the other way round
    from kace.tree.tree import Domain, EpistemicTree


class Pair(NamedTuple):
    """A card before and after."""

    before: Card
    after: Card


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """Cards by what happened to them. A card that moved and was also rewritten is both relocated and edited."""

    added: tuple[Card, ...]
    edited: tuple[Pair, ...]
    relocated: tuple[Pair, ...]
    deprecated: tuple[Pair, ...]
    removed: tuple[Card, ...]
    domains_before: tuple[Domain, ...]
    domains_after: tuple[Domain, ...]

    def __bool__(self) -> bool:
        cards = self.added or self.edited or self.relocated or self.deprecated or self.removed
        return bool(cards) or self.domains_before != self.domains_after

    def lines(self) -> list[str]:
        """The change as text: `+` added, `~` edited line by line, `>` relocated, `x` deprecated, `-` removed."""
        return [
            *_domain_lines(self.domains_before, self.domains_after),
            *(line for card in self.added for line in _added(card)),
            *(line for pair in self.edited for line in _edited(pair)),
            *(f"> {p.after.card_id}  {place(p.before)} -> {place(p.after)}" for p in self.relocated),
            *(f"x {p.after.card_id}  deprecated, was {p.before.status.value}" for p in self.deprecated),
            *(f"- {card.card_id}  {place(card)}" for card in self.removed),
        ]

    def summary(self) -> str:
        """The counts in one line."""
        counts = {
            "added": self.added,
            "edited": self.edited,
            "relocated": self.relocated,
            "deprecated": self.deprecated,
            "removed": self.removed,
        }
        said = [f"{len(cards)} {name}" for name, cards in counts.items() if cards]
        if self.domains_before != self.domains_after:
            said.append("domains changed")
        return ", ".join(said) or "no change"


def diff(before: EpistemicTree, after: EpistemicTree) -> TreeDiff:
    """What turns one tree into the other."""
    old, new = before.cards, after.cards
    pairs = [Pair(old[name], card) for name, card in new.items() if name in old and old[name] != card]
    return TreeDiff(
        added=tuple(card for name, card in new.items() if name not in old),
        edited=tuple(pair for pair in pairs if _rewritten(pair)),
        relocated=tuple(pair for pair in pairs if _cell(pair.before) != _cell(pair.after)),
        deprecated=tuple(pair for pair in pairs if _newly_deprecated(pair)),
        removed=tuple(card for name, card in old.items() if name not in new),
        domains_before=before.domains,
        domains_after=after.domains,
    )


def place(card: Card) -> str:
    """Where a card lives, for people."""
    return f"{card.difficulty_tag.value} · {', '.join(card.domain_tags)}"


def _cell(card: Card) -> tuple[str, tuple[str, ...]]:
    return card.difficulty_tag.value, card.domain_tags


def _newly_deprecated(pair: Pair) -> bool:
    return pair.after.status is Status.DEPRECATED and pair.before.status is not Status.DEPRECATED


def _rewritten(pair: Pair) -> bool:
    return any(True for _ in _field_changes(pair)) or pair.before.payload != pair.after.payload


def _field_changes(pair: Pair) -> Iterator[str]:
    """The fields that changed, but for the payload, the place, and a deprecation, which have lines of their own."""
    before, after = pair
    if before.routing_conditions != after.routing_conditions:
        yield from _line_changes("routing", before.routing_conditions, after.routing_conditions)
    if before.helpfulness_score != after.helpfulness_score:
        yield f"    helpfulness_score: {before.helpfulness_score:g} -> {after.helpfulness_score:g}"
    for name, value in before.provenance:
        now = getattr(after.provenance, name)
        if value == now or (name == "promotion_status" and _newly_deprecated(pair)):
            continue
        yield f"    {name}: {_shown(value)} -> {_shown(now)}"


def _added(card: Card) -> Iterator[str]:
    yield f"+ {card.card_id}  {place(card)}"
    for line in card.payload.strip("\n").split("\n"):
        yield f"    + {line}".rstrip()


def _edited(pair: Pair) -> Iterator[str]:
    yield f"~ {pair.after.card_id}  {place(pair.after)}"
    before, after = pair.before.payload.split("\n"), pair.after.payload.split("\n")
    if before != after:
        yield from _line_changes("", before, after)
    yield from _field_changes(pair)


def _line_changes(label: str, before: list[str] | tuple[str, ...], after: list[str] | tuple[str, ...]) -> Iterator[str]:
    mark = f"{label}: " if label else ""
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (f"    - {mark}{line}".rstrip() for line in before[i:j])
            yield from (f"    + {mark}{line}".rstrip() for line in after[k:m])


def _domain_lines(before: tuple[Domain, ...], after: tuple[Domain, ...]) -> Iterator[str]:
    old, new = ({domain.name: domain for domain in domains} for domains in (before, after))
    yield from (f"+ domain {name}: {domain.description}" for name, domain in new.items() if name not in old)
    yield from (f"- domain {name}: {domain.description}" for name, domain in old.items() if name not in new)
    for name, domain in new.items():
        if name in old and old[name] != domain:
            yield f"~ domain {name}"
            yield from _line_changes("", _facts(old[name]), _facts(domain))
    if before != after and old == new:
        yield f"~ domains reordered: {', '.join(new)}"


def _facts(domain: Domain) -> list[str]:
    return [domain.description, f"share {domain.share:.0%}", *(f"signal: {signal}" for signal in domain.signals)]


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value) if value != "" else "none"
