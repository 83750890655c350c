"""Two trees side by side: what changed between them, for review, and one merged into the other, card by card.

A merge has no common ancestor to compare with: merging the same tree twice counts its uses twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from kace.cards.card import MAX_COUNT, Card, Provenance, Status
from kace.cards.tree import Domain, EpistemicTree

MAX_NOTE = 300


class CardPair(NamedTuple):
    """A card before and after."""

    before: Card
    after: Card


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """Cards by what happened to them. A card that moved and was also rewritten is both relocated and edited."""

    added: tuple[Card, ...]
    edited: tuple[CardPair, ...]
    relocated: tuple[CardPair, ...]
    deprecated: tuple[CardPair, ...]
    removed: tuple[Card, ...]
    domains_before: tuple[Domain, ...]
    domains_after: tuple[Domain, ...]

    def __bool__(self) -> bool:
        cards = (
            self.added
            or self.edited
            or self.relocated
            or self.deprecated
            or self.removed
        )
        return bool(cards) or self.domains_before != self.domains_after

    def __repr__(self) -> str:
        return f"<TreeDiff: {self.summary()}>"

    def _repr_html_(self) -> str:
        from kace.markup import tag

        return tag("pre", "\n".join(self.lines()) or "no change")

    def lines(self) -> list[str]:
        """The change as text: `+` added, `~` edited line by line, `>` relocated, `x` deprecated, `-` removed."""
        added = (
            (c, _changed_lines((), c.payload.strip("\n").split("\n")))
            for c in self.added
        )
        return [
            *_domain_lines(self.domains_before, self.domains_after),
            *chain.from_iterable(
                _block(f"+ {c.card_id}  {place(c)}", lines) for c, lines in added
            ),
            *chain.from_iterable(
                _block(f"~ {p.after.card_id}  {place(p.after)}", _details(p))
                for p in self.edited
            ),
            *(
                f"> {p.after.card_id}  {place(p.before)} -> {place(p.after)}"
                for p in self.relocated
            ),
            *(
                f"x {p.after.card_id}  deprecated, was {p.before.status.value}"
                for p in self.deprecated
            ),
            *(f"- {card.card_id}  {place(card)}" for card in self.removed),
        ]

    def summary(self) -> str:
        """The counts in one line."""
        names = ("added", "edited", "relocated", "deprecated", "removed")
        parts = [
            f"{len(getattr(self, name))} {name}"
            for name in names
            if getattr(self, name)
        ]
        return (
            ", ".join(
                parts
                + ["domains changed"] * (self.domains_before != self.domains_after)
            )
            or "no change"
        )


class Prefer(StrEnum):
    """The side that wins where both trees have their own content for one name."""

    OURS = "ours"
    THEIRS = "theirs"


class Conflict(NamedTuple):
    """A card or a domain that differs between the two trees."""

    name: str
    fields: tuple[str, ...]
    lines: tuple[str, ...]  # the difference, `-` ours and `+` theirs


class Merged(NamedTuple):
    """What a merge gives. With conflicts and no side preferred, `tree` is ours as it was."""

    tree: EpistemicTree
    added: tuple[str, ...] = ()
    united: tuple[
        str, ...
    ] = ()  # cards of equal content whose records were put together
    replaced: tuple[str, ...] = ()  # cards that theirs won
    domains: tuple[
        str, ...
    ] = ()  # domains that came with the other tree, or that theirs won
    conflicts: tuple[Conflict, ...] = ()


def diff(before: EpistemicTree, after: EpistemicTree) -> TreeDiff:
    """What turns one tree into the other."""
    old = before.cards
    new = after.cards
    pairs = [
        CardPair(old[name], card)
        for name, card in new.items()
        if name in old and old[name] != card
    ]
    return TreeDiff(
        added=tuple(card for name, card in new.items() if name not in old),
        edited=tuple(pair for pair in pairs if any(_details(pair))),
        relocated=tuple(
            pair for pair in pairs if place(pair.before) != place(pair.after)
        ),
        deprecated=tuple(pair for pair in pairs if _newly_deprecated(pair)),
        removed=tuple(card for name, card in old.items() if name not in new),
        domains_before=before.domains,
        domains_after=after.domains,
    )


def place(card: Card) -> str:
    """Where a card lives, for people."""
    return f"{card.difficulty_tag.value} · {', '.join(card.domain_tags)}"


def _newly_deprecated(pair: CardPair) -> bool:
    return (
        pair.after.status is Status.DEPRECATED
        and pair.before.status is not Status.DEPRECATED
    )


def _details(pair: CardPair) -> Iterator[str]:
    """What changed in a card, but for its place and a deprecation, which have lines of their own."""
    before, after = pair
    yield from _changed_lines(before.payload.split("\n"), after.payload.split("\n"))
    yield from _changed_lines(
        before.routing_conditions, after.routing_conditions, "routing: "
    )
    yield from _changed_lines(before.wordings, after.wordings, "wording: ")
    if before.helpfulness_score != after.helpfulness_score:
        yield f"helpfulness_score: {before.helpfulness_score:g} -> {after.helpfulness_score:g}"
    for name, value in before.provenance:
        now = getattr(after.provenance, name)
        if value != now and not (
            name == "promotion_status" and _newly_deprecated(pair)
        ):
            yield f"{name}: {_shown(value)} -> {_shown(now)}"


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    return chain([head], (f"    {line}".rstrip() for line in lines))


def _changed_lines(
    before: Sequence[str], after: Sequence[str], label: str = ""
) -> Iterator[str]:
    for kind, i, j, k, m in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            yield from (f"- {label}{line}" for line in before[i:j])
            yield from (f"+ {label}{line}" for line in after[k:m])


def _domain_lines(
    before: tuple[Domain, ...], after: tuple[Domain, ...]
) -> Iterator[str]:
    old, new = (
        {domain.name: domain for domain in domains} for domains in (before, after)
    )
    yield from (
        f"+ domain {name}: {domain.description}"
        for name, domain in new.items()
        if name not in old
    )
    yield from (
        f"- domain {name}: {domain.description}"
        for name, domain in old.items()
        if name not in new
    )
    for name, domain in new.items():
        if name in old and old[name] != domain:
            yield from _block(
                f"~ domain {name}", _changed_lines(_facts(old[name]), _facts(domain))
            )
    if before != after and old == new:
        yield f"~ domains reordered: {', '.join(new)}"


def _facts(domain: Domain) -> list[str]:
    return [
        domain.description,
        f"share {domain.share:.0%}",
        *(f"signal: {signal}" for signal in domain.signals),
    ]


def _shown(value: object) -> str:
    return (
        ", ".join(value)
        if isinstance(value, tuple)
        else str(value)
        if value != ""
        else "none"
    )


def merge(
    ours: EpistemicTree, theirs: EpistemicTree, prefer: Prefer | None = None
) -> Merged:
    """Bring the other tree's domains and cards into ours; a new card arrives experimental.

    Cards of equal content become one, their records united. Others conflict: nothing merges until a side is preferred.
    """
    domains = {domain.name: domain for domain in ours.domains}
    others = {domain.name: domain for domain in theirs.domains}
    both = {
        name
        for name, card in theirs.cards.items()
        if name in ours and _content(card) == _content(ours.card(name))
    }
    conflicts = (
        *_conflicts("domain", domains, others),
        *_conflicts(
            "card",
            ours.cards,
            {name: card for name, card in theirs.cards.items() if name not in both},
        ),
    )
    if conflicts and prefer is None:
        return Merged(tree=ours, conflicts=conflicts)
    added = {
        name: as_import(card) for name, card in theirs.cards.items() if name not in ours
    }
    pairs = (
        (name, _united(ours.card(name), card))
        for name, card in theirs.cards.items()
        if name in both
    )
    united = {name: card for name, card in pairs if card != ours.card(name)}
    new = {name: domain for name, domain in others.items() if name not in domains}
    replaced: dict[str, Card] = {}
    if prefer is Prefer.THEIRS:
        replaced = {
            name: as_import(theirs.card(name))
            for name in theirs.cards
            if name in ours and name not in both
        }
        new = {
            name: domain
            for name, domain in others.items()
            if _content(domain) != _content(domains.get(name))
        }
    tree = EpistemicTree.of(
        (domains | new).values(),
        ({**ours.cards, **added, **united, **replaced}).values(),
    )
    names = tuple(name for name in domains | new if name in new)
    return Merged(tree, tuple(added), tuple(united), tuple(replaced), names, conflicts)


def as_import(card: Card) -> Card:
    """A card from elsewhere: experimental until it is validated here. A deprecated one stays deprecated."""
    return (
        card.with_status(Status.EXPERIMENTAL)
        if card.status is Status.VALIDATED
        else card
    )


def _content(part: Card | Domain | None) -> Mapping[str, Sequence[str]]:
    """What a solve can notice, by field. The share of a domain describes a corpus, so two trees may differ there."""
    if part is None:
        return {}
    if isinstance(part, Domain):
        return {"description": [part.description], "signals": part.signals}
    return {
        "place": [
            f"{part.difficulty_tag.value}: {', '.join(sorted(part.domain_tags))}"
        ],
        "status": ["deprecated" if part.status is Status.DEPRECATED else "shown"],
        "routing_conditions": part.routing_conditions,
        "wordings": part.wordings,
        "payload": part.payload.split("\n"),
    }


def _conflicts(
    kind: str, ours: Mapping[str, Card | Domain], theirs: Mapping[str, Card | Domain]
) -> Iterator[Conflict]:
    for name, other in theirs.items():
        if name in ours:
            before = _content(ours[name])
            after = _content(other)
            fields = tuple(field for field in before if before[field] != after[field])
            lines = tuple(
                line
                for field in fields
                for line in _changed_lines(before[field], after[field])
            )
            if fields:
                yield Conflict(f"{kind} {name}", fields, lines)


def _united(mine: Card, other: Card) -> Card:
    """Our card with what is known about both; the score is the mean, weighed by how much each card was used."""
    ours = mine.provenance
    theirs = other.provenance
    if ours.model_copy(update={"promotion_status": theirs.promotion_status}) == theirs:
        return mine  # the same record: nothing to add up
    counters = ("n_uses", "n_wins", "n_losses")
    record = Provenance(
        source=_joined(ours.source, theirs.source),
        supporting_problems=tuple(
            dict.fromkeys((*ours.supporting_problems, *theirs.supporting_problems))
        ),
        validated_lift=_joined(ours.validated_lift, theirs.validated_lift),
        promotion_status=ours.promotion_status,
        epoch_introduced=min(ours.epoch_introduced, theirs.epoch_introduced),
        **{
            name: min(MAX_COUNT, getattr(ours, name) + getattr(theirs, name))
            for name in counters
        },
    )
    uses = ours.n_uses + theirs.n_uses
    share = ours.n_uses / uses if uses else 0.5
    score = mine.helpfulness_score * share + other.helpfulness_score * (1 - share)
    return mine.model_copy(update={"provenance": record, "helpfulness_score": score})


def _joined(mine: str, other: str) -> str:
    if not other or other in mine.split("; "):
        return mine
    joined = f"{mine}; {other}" if mine else other
    return joined if len(joined) <= MAX_NOTE else mine
