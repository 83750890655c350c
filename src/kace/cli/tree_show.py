"""A tree and its cards as a person reads them in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kace.cards.card import UNIVERSAL, Card, Difficulty, Status, card_line
from kace.cards.diff import TreeDiff
from kace.cards.journal import JournalEntry
from kace.cards.store import CALIBRATION, TreeStore, frozen_hash_of
from kace.cards.tree import EpistemicTree
from kace.cli.streams import columns, json_of, note, on_terminal, plain, print_lines
from kace.errors import UsageError
from kace.ladder.selector import estimate
from kace.ladder.tiers import TierName

COLOURS = {"+": "green", "-": "red", "~": "bold", ">": "cyan", "x": "yellow"}
LABEL = 31  # columns for names, which leaves room for the figures in a terminal of 80
UNICODE = ("├─ ", "└─ ", "│  ")
ASCII = ("|- ", "`- ", "|  ")
"""The strokes a tree is drawn with: at a fork, at the last of them, and beside what hangs below."""


def figures_of(
    path: Path, tree: EpistemicTree, store: TreeStore | None
) -> dict[str, Any]:
    """The tree in figures, by domain in the registry's order, `universal` last. A card with two tags is in both."""
    domains = []
    known = [(domain.name, domain.description, domain.share) for domain in tree.domains]
    for name, about, share in (*known, (UNIVERSAL, "read with every domain", None)):
        here = () if name == UNIVERSAL else (name,)
        reads = {
            tier.value: _counts(tree.project(tier, here))["tokens"]
            for tier in (TierName.MS, TierName.HS)
        }
        cards = [card for card in tree if name in card.domain_tags]
        kinds = {
            kind.value: [card for card in cards if card.difficulty_tag is kind]
            for kind in Difficulty
        }
        leaves = {kind: _counts(some) for kind, some in kinds.items() if some}
        domains.append(
            {
                "name": name,
                "description": about,
                "share": share,
                "reads": reads,
                "difficulties": leaves,
            }
        )
    generation = store.generation if store else None
    frozen = frozen_hash_of(path)
    gate = None
    if (path / CALIBRATION).exists():
        from kace.learning.calibrate import (
            thresholds_of,  # most trees have none, and need no learner to be drawn
        )

        gate = thresholds_of(path)
    history = {
        "generation": generation,
        "frozen": frozen,
        "hash": tree.content_hash(),
        "gate": gate,
    }
    name = path.resolve().name.partition(".json")[0]
    return {
        "name": name,
        **_counts(tree),
        "tokens_estimated": True,
        **history,
        "domains": domains,
    }


def _counts(cards: Iterable[Card]) -> dict[str, Any]:
    """Cards, estimated tokens of those that can be shown, and how many have come how far."""
    found = list(cards)
    tokens = sum(
        estimate(card) for card in found if card.status is not Status.DEPRECATED
    )
    status = {kind.value: sum(card.status is kind for card in found) for kind in Status}
    return {"cards": len(found), "tokens": tokens, "status": status}


def drawing(figures: dict[str, Any]) -> Iterator[str]:
    """The tree drawn: domains, difficulties, cards, tokens and status."""
    encoding = sys.stdout.encoding if sys.stdout is not None else ""
    guides = UNICODE if encoding.lower().startswith("utf") else ASCII
    status = ", ".join(
        f"{count:,} {kind}" for kind, count in figures["status"].items() if count
    )
    history = f"generation {figures['generation']}"
    yield f"cards        {figures['cards']:,}" + (f" ({status})" if status else "")
    yield f"tokens       ~{figures['tokens']:,} (~ is an estimate: characters over four)"
    yield f"history      {'a file, without history' if figures['generation'] is None else history}"
    yield f"frozen       {figures['frozen'] or 'no'}"
    yield f"content      {figures['hash']}"
    if gate := figures["gate"]:
        yield f"gate         shows from {gate['threshold']:.3f}, skips ES from {gate['skip_threshold']:.3f}, calibrated"
    yield ""
    kinds = "".join(f" {kind}" for kind in figures["status"])
    yield f"{plain(figures['name'], LABEL - 1):{LABEL}}{'cards':>6}{'tokens':>9}{kinds}"
    for domain in figures["domains"]:
        yield from _branch(domain, guides)
    tagged = sum(
        leaf["cards"]
        for domain in figures["domains"]
        for leaf in domain["difficulties"].values()
    )
    if tagged > figures["cards"]:
        yield from ("", "A card with several domains is counted in each.")


def _branch(domain: dict[str, Any], guides: tuple[str, str, str]) -> Iterator[str]:
    (fork, last, bar), leaves = guides, domain["difficulties"]
    final = domain["name"] == UNIVERSAL
    inner = "   " if final else bar
    share = "" if domain["share"] is None else f" {domain['share']:.0%}"
    yield _row(f"{last if final else fork}{domain['name']}{share}", leaves.values())
    reads = f"MS reads ~{domain['reads']['MS']:,} tokens here, HS ~{domain['reads']['HS']:,}"
    for text in (domain["description"], reads):
        yield f"{inner}{bar if leaves else ''}{plain(text, columns() - 6)}"
    for number, (kind, leaf) in enumerate(leaves.items(), 1):
        yield _row(f"{inner}{last if number == len(leaves) else fork}{kind}", [leaf])


def _row(label: str, leaves: Iterable[dict[str, Any]]) -> str:
    some = list(leaves)
    counts = "".join(
        f"{sum(leaf['status'][kind] for leaf in some) or '-':>{len(kind) + 1}}"
        for kind in Status
    )
    cards, tokens = (
        sum(leaf[figure] for leaf in some) for figure in ("cards", "tokens")
    )
    label = label if len(label) <= LABEL else label[: LABEL - 1] + "…"
    return f"{label:{LABEL}}{cards:>6}{f'~{tokens:,}':>9}{counts}"


def cards_of(
    tree: EpistemicTree, filters: Sequence[str], search: str, as_json: bool
) -> Iterator[str]:
    """Cards of some places that hold some words, one a line; on a terminal cut to its width, never inside the id."""
    known = dict.fromkeys((*tree.domain_names, UNIVERSAL, *Difficulty, *Status))
    if strange := next(
        (word for word in filters if word not in known and word != "cards"), None
    ):
        fix = f"choose one of {', '.join(known)}, or cards"
        raise UsageError(f"the tree has no card and no place '{strange[:40]}'", fix=fix)
    wanted = set(filters) - {"cards"}
    words = search.casefold().split()
    count = 0
    for card in tree:
        text = "\n".join(
            (
                card.card_id,
                card.payload,
                *card.routing_conditions,
                *card.wordings,
                *card.domain_tags,
            )
        ).casefold()
        places = {*card.domain_tags, card.difficulty_tag.value, card.status.value}
        if wanted <= places and all(word in text for word in words):
            count += 1
            head = f"{card.card_id}  {card.difficulty_tag.value}/{'+'.join(card.domain_tags)}  {card.status.value}"
            row = (
                f"{head}  {'; '.join(plain(trigger, 200) for trigger in card.triggers)}"
            )
            cut = max(columns(), len(card.card_id) + 1) if on_terminal() else len(row)
            yield (
                json_of(card_line(card))
                if as_json
                else row
                if len(row) <= cut
                else row[: cut - 1] + "…"
            )
    note(f"{count} of {len(tree)} cards")


def card_lines(card: Card, store: TreeStore | None) -> list[str]:
    """The whole card, with its history where there is one."""
    known = card.provenance
    facts = [
        ("place", f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"),
        ("status", card.status.value),
        ("tokens", f"~{estimate(card):,} (estimate)"),
        ("helpfulness", f"{card.helpfulness_score:g}"),
        (
            "record",
            f"{known.n_uses} uses, {known.n_wins} wins, {known.n_losses} losses",
        ),
        ("lift", known.validated_lift or "not measured"),
        ("source", f"{known.source or 'unknown'}, epoch {known.epoch_introduced}"),
        ("problems", ", ".join(known.supporting_problems) or "none named"),
        *(("choose by", condition) for condition in card.routing_conditions),
        *(("found by", wording) for wording in card.wordings),
    ]
    lines = [
        card.card_id,
        *(f"  {name:12} {plain(value, 300)}" for name, value in facts),
    ]
    lines += [
        "",
        *(f"  {line}".rstrip() for line in plain(card.payload.strip("\n")).split("\n")),
    ]
    if store is not None:
        lines += [
            "",
            "  history",
            *(f"  {entry_row(entry)}" for entry in changes_of(store, card.card_id)),
        ]
    return lines


def changes_of(store: TreeStore, card_id: str | None) -> list[JournalEntry]:
    """The changes of a card, or all."""
    return [
        e
        for e in store.log()
        if card_id is None or any(change.card_id == card_id for change in e.cards)
    ]


def entry_row(entry: JournalEntry) -> str:
    """A change on one line: generation, when, who, what, why."""
    names = [change.card_id for change in entry.cards]
    what = ", ".join(names[:3]) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )
    head = (
        f"{entry.generation:>5}",
        entry.time[:16].replace("T", " "),
        plain(entry.author, 20),
    )
    parts = (*head, f"{entry.kind.value:9}", what, plain(entry.note, 200))
    return "  ".join(part for part in parts if part).rstrip()


def print_diff(changes: TreeDiff) -> None:
    """A diff on standard output and its counts on standard error."""
    print_lines(
        map(plain, changes.lines()), lambda line: COLOURS.get(line.lstrip()[:1], "")
    )
    note(changes.summary())
