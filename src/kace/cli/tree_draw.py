"""A tree of cards drawn as text: domains, the difficulties in them, and what a solve would read of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kace.cli.show import plain
from kace.retrieval.retriever import estimate
from kace.solver.tiers import TierName
from kace.tree.card import UNIVERSAL, Card, Difficulty, Status
from kace.tree.tree import EpistemicTree


@dataclass(frozen=True, slots=True)
class Guides:
    """The strokes a tree is drawn with."""

    fork: str
    last: str
    bar: str


UNICODE = Guides("├─ ", "└─ ", "│  ")
ASCII = Guides("|- ", "`- ", "|  ")
LABEL = 31
"""Columns for names, which leaves room for the figures in a terminal of 80."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The cards of one difficulty in one domain."""

    difficulty: Difficulty
    cards: int
    """Deprecated ones included."""
    tokens: int
    """Of the cards that can be shown."""
    status: Mapping[Status, int]


@dataclass(frozen=True, slots=True)
class Branch:
    """A domain with its leaves, and the tokens a tier reads there."""

    name: str
    about: str
    share: float | None
    reads: Mapping[TierName, int]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a tree beside its content."""

    name: str
    generation: int | None
    """None for a file, which has no history."""
    frozen: str | None
    hash: str


def branches(tree: EpistemicTree) -> tuple[Branch, ...]:
    """The tree by domain, in the registry's order, `universal` last. A card with two tags is in both branches."""
    found = [_branch(tree, domain.name, domain.description, domain.share) for domain in tree.domains]
    return (*found, _branch(tree, UNIVERSAL, "read with every domain", None))


def drawing(tree: EpistemicTree, facts: Facts, guides: Guides = UNICODE, width: int = 80) -> list[str]:
    """The lines of `kace tree show`."""
    lines = [*_heading(tree, facts), ""]
    shown = branches(tree)
    lines.append(
        f"{plain(facts.name, LABEL - 1):{LABEL}}{'cards':>6}{'tokens':>9}{''.join(f' {s.value}' for s in Status)}"
    )
    for branch in shown:
        last = branch is shown[-1]
        lines += _branch_lines(branch, guides, last=last, width=width)
    if any(len(card.domain_tags) > 1 for card in tree):
        lines += ["", "A card with several domains is counted in each."]
    return lines


def card_row(card: Card, width: int | None = None) -> str:
    """A card on one line: id, place, status, triggers; cut to a width, but never inside the id."""
    places = "+".join(card.domain_tags)
    head = f"{card.card_id}  {card.difficulty_tag.value}/{places}  {card.status.value}"
    row = f"{head}  {'; '.join(plain(trigger, 200) for trigger in card.triggers)}"
    return row if width is None or len(row) <= width else row[: max(width - 1, len(card.card_id))] + "…"


def card_lines(card: Card) -> list[str]:
    """The whole card as a person reads it."""
    known = card.provenance
    record = f"{known.n_uses} uses, {known.n_wins} wins, {known.n_losses} losses"
    facts = {
        "place": f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}",
        "status": card.status.value,
        "tokens": f"~{estimate(card):,} (estimate)",
        "helpfulness": f"{card.helpfulness_score:g}",
        "record": record,
        "lift": known.validated_lift or "not measured",
        "source": f"{known.source or 'unknown'}, epoch {known.epoch_introduced}",
        "problems": ", ".join(known.supporting_problems) or "none named",
    }
    lines = [card.card_id, *(f"  {name:12} {plain(value, 300)}" for name, value in facts.items())]
    lines += [f"  {'choose by':12} {plain(condition, 300)}" for condition in card.routing_conditions]
    return [*lines, "", *(f"  {line}".rstrip() for line in plain(card.payload.strip("\n")).split("\n"))]


def _branch(tree: EpistemicTree, name: str, about: str, share: float | None) -> Branch:
    cards = [card for card in tree if name in card.domain_tags]
    reads = {
        tier: tokens_of(tree.project(tier, () if name == UNIVERSAL else (name,))) for tier in (TierName.MS, TierName.HS)
    }
    leaves = (_leaf(kind, [card for card in cards if card.difficulty_tag is kind]) for kind in Difficulty)
    return Branch(name, about, share, reads, tuple(leaf for leaf in leaves if leaf.cards))


def _leaf(difficulty: Difficulty, cards: Sequence[Card]) -> Leaf:
    return Leaf(difficulty, len(cards), tokens_of(cards), status_counts(cards))


def tokens_of(cards: Iterable[Card]) -> int:
    """Estimated tokens of the cards that can be shown."""
    return sum(estimate(card) for card in cards if card.status is not Status.DEPRECATED)


def status_counts(cards: Iterable[Card]) -> dict[Status, int]:
    """How many cards have come how far."""
    found = Counter(card.status for card in cards)
    return {status: found[status] for status in Status}


def _heading(tree: EpistemicTree, facts: Facts) -> list[str]:
    status = ", ".join(f"{count:,} {kind.value}" for kind, count in status_counts(tree).items() if count)
    history = "a file, without history" if facts.generation is None else f"generation {facts.generation}"
    return [
        f"cards        {len(tree):,}" + (f" ({status})" if status else ""),
        f"tokens       ~{tokens_of(tree):,} (~ is an estimate: characters over four)",
        f"history      {history}",
        f"frozen       {facts.frozen or 'no'}",
        f"content      {facts.hash}",
    ]


def _branch_lines(branch: Branch, guides: Guides, *, last: bool, width: int) -> list[str]:
    share = "" if branch.share is None else f" {branch.share:.0%}"
    inner = "   " if last else guides.bar
    reads = f"MS reads ~{branch.reads[TierName.MS]:,} tokens here, HS ~{branch.reads[TierName.HS]:,}"
    lines = [
        _row(f"{guides.last if last else guides.fork}{branch.name}{share}", branch.leaves),
        *(f"{inner}{guides.bar if branch.leaves else ''}{plain(text, width - 6)}" for text in (branch.about, reads)),
    ]
    for leaf in branch.leaves:
        mark = guides.last if leaf is branch.leaves[-1] else guides.fork
        lines.append(_row(f"{inner}{mark}{leaf.difficulty.value}", [leaf]))
    return lines


def _row(label: str, leaves: Sequence[Leaf]) -> str:
    tokens = f"~{sum(leaf.tokens for leaf in leaves):,}"
    counts = "".join(f"{sum(leaf.status[kind] for leaf in leaves) or '-':>{len(kind.value) + 1}}" for kind in Status)
    if len(label) > LABEL:
        label = label[: LABEL - 1] + "…"
    return f"{label:{LABEL}}{sum(leaf.cards for leaf in leaves):>6}{tokens:>9}{counts}"
