"""The `kace tree` verbs that only read: show, cards, card, verify, export."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kace.cli.streams import choice, columns, note, on_terminal, plain, print_lines, write_output
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.tree.card import Card
    from kace.tree.store import TreeStore
    from kace.tree.tree import EpistemicTree

TREE = typer.Argument(help="A tree's directory, or a JSON file of cards (read only).", show_default=False)
LABEL = 31  # columns for names, which leaves room for the figures in a terminal of 80
UNICODE, ASCII = ("├─ ", "└─ ", "│  "), ("|- ", "`- ", "|  ")
"""The strokes a tree is drawn with: at a fork, at the last of them, and beside what hangs below."""


def show(
    tree: Path = TREE, as_json: bool = typer.Option(False, "--json", help="The figures as one JSON object.")
) -> None:
    """Draw the tree: domains, difficulties, cards, tokens and status."""
    found, store = opened(tree)
    figures = _figures(tree, found, store)
    if as_json:
        print(json.dumps(figures, ensure_ascii=False))
        return
    encoding = sys.stdout.encoding if sys.stdout is not None else ""
    guides = UNICODE if encoding.lower().startswith("utf") else ASCII
    lines = [*_heading(figures), *(line for each in figures["domains"] for line in _branch(each, guides, columns()))]
    if any(len(card.domain_tags) > 1 for card in found):
        lines += ["", "A card with several domains is counted in each."]
    print_lines(lines, lambda line: "bold" if line.startswith(guides[:2]) else "")


def cards(
    tree: Path = TREE,
    domain: str = typer.Option(None, help="Only cards tagged with this domain."),
    difficulty: str = typer.Option(None, help="Only medium, hard or universal cards."),
    status: str = typer.Option(None, help="Only experimental, validated or deprecated cards."),
    search: str = typer.Option(None, help="Only cards that hold all of these words."),
    as_json: bool = typer.Option(False, "--json", help="One card a line, in the form that `import` reads."),
) -> None:
    """List cards, one a line."""
    from kace.tree.card import UNIVERSAL, Difficulty, Status, card_line

    found, _ = opened(tree)
    names = (*found.domain_names, UNIVERSAL)
    if domain is not None and domain not in names:
        raise UsageError(f"the tree has no domain '{domain[:40]}'", fix=f"choose one of {', '.join(names)}")
    kind = choice(difficulty, Difficulty, "--difficulty")
    state = choice(status, Status, "--status")
    words = (search or "").casefold().split()
    listed = [
        card
        for card in found
        if (domain is None or domain in card.domain_tags)
        and kind in (None, card.difficulty_tag)
        and state in (None, card.status)
        and all(word in _text(card) for word in words)
    ]
    for each in listed:
        print(card_line(each) if as_json else _card_row(each, columns() if on_terminal() else None))
    note(f"{len(listed)} of {len(found)} cards")


def card(
    tree: Path = TREE,
    card_id: str = typer.Argument(metavar="ID", help="The card's id.", show_default=False),
    as_json: bool = typer.Option(False, "--json", help="The card as one line of JSON."),
) -> None:
    """Show a whole card with its provenance and history."""
    from kace.cli.tree_history import entry_row
    from kace.tree.card import card_line

    found, store = opened(tree)
    chosen = found.card(card_id)
    if as_json:
        print(card_line(chosen))
        return
    print_lines(_card_lines(chosen), lambda line: "bold" if line == card_id else "")
    if store is not None:
        print("\n  history")
        for entry in store.log():
            if any(change.card_id == card_id for change in entry.cards):
                print(f"  {entry_row(entry)}")


def verify(
    tree: Path = TREE, as_json: bool = typer.Option(False, "--json", help="The problems as one JSON list.")
) -> None:
    """Check cards, journal and frozen hash. Exit 1 with the list of problems."""
    from kace.tree.store import TreeStore, open_tree

    if not tree.exists():
        raise UsageError(f"{tree}: no such file or directory", fix="name a tree's directory or a JSON file of cards")
    problems: Sequence[str] = []
    if tree.is_dir():
        problems = TreeStore.open(tree).verify()
    else:
        try:
            open_tree(tree)
        except KaceError as error:
            problems = [str(error)]
    print_lines([json.dumps(problems, ensure_ascii=False)] if as_json else map(plain, problems))
    if problems:
        note(f"kace: {len(problems)} {'problem' if len(problems) == 1 else 'problems'} in {tree}")
        raise typer.Exit(1)
    note(f"{tree}: all is well")


def export(
    tree: Path = TREE,
    to: str = typer.Option("json", help="json (the whole tree), playbook (ACE's text form) or skill (SKILL.md)."),
    out: Path = typer.Option(None, "--out", "-o", help="A file to write; standard output without it."),
    name: str = typer.Option(None, help="What a skill calls itself; the tree's name without it."),
) -> None:
    """Write the tree for another tool."""
    from kace.tree.formats import TreeFormat
    from kace.tree.formats import export as exported

    form = choice(to, TreeFormat, "--to") or TreeFormat.JSON
    found, _ = opened(tree)
    write_output(exported(found, form, name or _name(tree)), out)
    if out is not None:
        note(f"{len(found)} cards written to {out}")


def opened(path: Path) -> tuple[EpistemicTree, TreeStore | None]:
    """The tree at a path; with its store where the path is a directory."""
    from kace.tree.store import TreeStore, open_tree

    store = TreeStore.open(path) if path.is_dir() else None
    return (store.load() if store else open_tree(path)), store


def _figures(path: Path, tree: EpistemicTree, store: TreeStore | None) -> dict[str, Any]:
    """The tree in figures, by domain in the registry's order, `universal` last. A card with two tags is in both."""
    from kace.solver.tiers import TierName
    from kace.tree.card import UNIVERSAL, Difficulty
    from kace.tree.store import frozen_hash_of

    domains = []
    known = [(domain.name, domain.description, domain.share) for domain in tree.domains]
    for name, about, share in (*known, (UNIVERSAL, "read with every domain", None)):
        here = () if name == UNIVERSAL else (name,)
        reads = {tier.value: _counts(tree.project(tier, here))["tokens"] for tier in (TierName.MS, TierName.HS)}
        cards = [card for card in tree if name in card.domain_tags]
        kinds = {kind.value: [card for card in cards if card.difficulty_tag is kind] for kind in Difficulty}
        leaves = {kind: _counts(some) for kind, some in kinds.items() if some}
        domains.append({"name": name, "description": about, "share": share, "reads": reads, "difficulties": leaves})
    generation, frozen = store.generation if store else None, frozen_hash_of(path)
    history = {"generation": generation, "frozen": frozen, "hash": tree.content_hash()}
    return {"name": _name(path), **_counts(tree), "tokens_estimated": True, **history, "domains": domains}


def _counts(cards: Iterable[Card]) -> dict[str, Any]:
    """Cards, estimated tokens of those that can be shown, and how many have come how far."""
    from kace.retrieval.selector import estimate
    from kace.tree.card import Status

    found = list(cards)
    tokens = sum(estimate(card) for card in found if card.status is not Status.DEPRECATED)
    status = {kind.value: sum(card.status is kind for card in found) for kind in Status}
    return {"cards": len(found), "tokens": tokens, "status": status}


def _heading(figures: dict[str, Any]) -> Iterator[str]:
    status = ", ".join(f"{count:,} {kind}" for kind, count in figures["status"].items() if count)
    history = f"generation {figures['generation']}"
    yield f"cards        {figures['cards']:,}" + (f" ({status})" if status else "")
    yield f"tokens       ~{figures['tokens']:,} (~ is an estimate: characters over four)"
    yield f"history      {'a file, without history' if figures['generation'] is None else history}"
    yield f"frozen       {figures['frozen'] or 'no'}"
    yield f"content      {figures['hash']}"
    yield ""
    kinds = "".join(f" {kind}" for kind in figures["status"])
    yield f"{plain(figures['name'], LABEL - 1):{LABEL}}{'cards':>6}{'tokens':>9}{kinds}"


def _branch(domain: dict[str, Any], guides: tuple[str, str, str], width: int) -> Iterator[str]:
    from kace.tree.card import UNIVERSAL

    (fork, last, bar), leaves = guides, domain["difficulties"]
    final = domain["name"] == UNIVERSAL
    inner, share = "   " if final else bar, "" if domain["share"] is None else f" {domain['share']:.0%}"
    yield _row(f"{last if final else fork}{domain['name']}{share}", leaves.values())
    reads = f"MS reads ~{domain['reads']['MS']:,} tokens here, HS ~{domain['reads']['HS']:,}"
    for text in (domain["description"], reads):
        yield f"{inner}{bar if leaves else ''}{plain(text, width - 6)}"
    for number, (kind, leaf) in enumerate(leaves.items(), 1):
        yield _row(f"{inner}{last if number == len(leaves) else fork}{kind}", [leaf])


def _row(label: str, leaves: Iterable[dict[str, Any]]) -> str:
    from kace.tree.card import Status

    some = list(leaves)
    counts = "".join(f"{sum(leaf['status'][kind] for leaf in some) or '-':>{len(kind) + 1}}" for kind in Status)
    cards, tokens = (sum(leaf[figure] for leaf in some) for figure in ("cards", "tokens"))
    label = label if len(label) <= LABEL else label[: LABEL - 1] + "…"
    return f"{label:{LABEL}}{cards:>6}{f'~{tokens:,}':>9}{counts}"


def _card_row(card: Card, width: int | None) -> str:
    """A card on one line: id, place, status, triggers; cut to a width, but never inside the id."""
    head = f"{card.card_id}  {card.difficulty_tag.value}/{'+'.join(card.domain_tags)}  {card.status.value}"
    row = f"{head}  {'; '.join(plain(trigger, 200) for trigger in card.triggers)}"
    return row if width is None or len(row) <= width else row[: max(width - 1, len(card.card_id))] + "…"


def _card_lines(card: Card) -> list[str]:
    """The whole card as a person reads it."""
    from kace.retrieval.selector import estimate

    known = card.provenance
    facts = [
        ("place", f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"),
        ("status", card.status.value),
        ("tokens", f"~{estimate(card):,} (estimate)"),
        ("helpfulness", f"{card.helpfulness_score:g}"),
        ("record", f"{known.n_uses} uses, {known.n_wins} wins, {known.n_losses} losses"),
        ("lift", known.validated_lift or "not measured"),
        ("source", f"{known.source or 'unknown'}, epoch {known.epoch_introduced}"),
        ("problems", ", ".join(known.supporting_problems) or "none named"),
        *(("choose by", condition) for condition in card.routing_conditions),
    ]
    lines = [card.card_id, *(f"  {name:12} {plain(value, 300)}" for name, value in facts)]
    return [*lines, "", *(f"  {line}".rstrip() for line in plain(card.payload.strip("\n")).split("\n"))]


def _name(path: Path) -> str:
    return path.resolve().name.removesuffix(".json")


def _text(card: Card) -> str:
    return "\n".join((card.card_id, card.payload, *card.routing_conditions, *card.domain_tags)).casefold()
