"""Compare two trees for review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from kace.cards.card import Card, Status
from kace.cards.tree import Domain, EpistemicTree


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
    return _changed(
        [_domain_line(each) for each in before],
        [_domain_line(each) for each in after],
    )


def _domain_line(domain: Domain) -> str:
    signals = "; ".join(("", *domain.signals))
    return f"domain {domain.name} ({domain.share:.0%}): {domain.description}{signals}"
