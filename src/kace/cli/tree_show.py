"""The `kace tree` verbs that only read: show, cards, card, verify, export."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import choice, columns, note, on_terminal, print_lines, write_output
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.cli.tree_draw import Facts
    from kace.tree.card import Card
    from kace.tree.store import TreeStore
    from kace.tree.tree import EpistemicTree

TREE = typer.Argument(help="A tree's directory, or a JSON file of cards (read only).", show_default=False)


def show(
    tree: Path = TREE,
    as_json: bool = typer.Option(False, "--json", help="The figures as one JSON object."),
) -> None:
    """Draw the tree: domains, difficulties, cards, tokens and status."""
    from kace.cli.tree_draw import ASCII, UNICODE, drawing

    found, store = opened(tree)
    facts = _facts(tree, found, store)
    if as_json:
        print(json.dumps(_figures(found, facts), ensure_ascii=False))
        return
    encoding = sys.stdout.encoding if sys.stdout is not None else ""
    guides = UNICODE if encoding.lower().startswith("utf") else ASCII

    def style(line: str) -> str:
        return "bold" if line.startswith((guides.fork, guides.last)) else ""

    print_lines(drawing(found, facts, guides, columns()), style)


def cards(
    tree: Path = TREE,
    domain: str = typer.Option(None, help="Only cards tagged with this domain."),
    difficulty: str = typer.Option(None, help="Only medium, hard or universal cards."),
    status: str = typer.Option(None, help="Only experimental, validated or deprecated cards."),
    search: str = typer.Option(None, help="Only cards that hold all of these words."),
    as_json: bool = typer.Option(False, "--json", help="One card a line, in the form that `import` reads."),
) -> None:
    """List cards, one a line."""
    from kace.cli.tree_draw import card_row
    from kace.tree.card import UNIVERSAL, Difficulty, Status, card_line

    found, _ = opened(tree)
    if domain is not None and domain not in (*found.domain_names, UNIVERSAL):
        known = ", ".join((*found.domain_names, UNIVERSAL))
        raise UsageError(f"the tree has no domain '{domain[:40]}'", fix=f"choose one of {known}")
    kind = choice(difficulty, Difficulty, "--difficulty") if difficulty is not None else None
    state = choice(status, Status, "--status") if status is not None else None
    words = (search or "").casefold().split()
    listed = [
        card
        for card in found
        if (domain is None or domain in card.domain_tags)
        and (kind is None or card.difficulty_tag is kind)
        and (state is None or card.status is state)
        and all(word in _text(card) for word in words)
    ]
    for each in listed:
        print(card_line(each) if as_json else card_row(each, columns() if on_terminal() else None))
    note(f"{len(listed)} of {len(found)} cards")


def card(
    tree: Path = TREE,
    card_id: str = typer.Argument(metavar="ID", help="The card's id.", show_default=False),
    as_json: bool = typer.Option(False, "--json", help="The card as one line of JSON."),
) -> None:
    """Show a whole card with its provenance and history."""
    from kace.cli.tree_draw import card_lines
    from kace.cli.tree_history import entry_row
    from kace.tree.card import card_line

    found, store = opened(tree)
    chosen = found.card(card_id)
    if as_json:
        print(card_line(chosen))
        return
    print_lines(card_lines(chosen), lambda line: "bold" if line == card_id else "")
    if store is not None:
        print("\n  history")
        for entry in store.log():
            if any(change.card_id == card_id for change in entry.cards):
                print(f"  {entry_row(entry)}")


def verify(
    tree: Path = TREE,
    as_json: bool = typer.Option(False, "--json", help="The problems as one JSON list."),
) -> None:
    """Check cards, journal and frozen hash. Exit 1 with the list of problems."""
    from kace.cli.show import plain
    from kace.tree.store import TreeStore, open_tree

    if tree.is_dir():
        problems = TreeStore.open(tree).verify()
    elif not tree.exists():
        raise UsageError(f"{tree}: no such file or directory", fix="name a tree's directory or a JSON file of cards")
    else:
        try:
            open_tree(tree)
            problems = []
        except KaceError as error:
            problems = [str(error)]
    if as_json:
        print(json.dumps(problems, ensure_ascii=False))
    else:
        for problem in problems:
            print(plain(problem))
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
    from kace.tree.export import Format
    from kace.tree.export import export as exported

    form = choice(to, Format, "--to")
    found, _ = opened(tree)
    write_output(exported(found, form, name or _name(tree)), out)
    if out is not None:
        note(f"{len(found)} cards written to {out}")


def opened(path: Path) -> tuple[EpistemicTree, TreeStore | None]:
    """The tree at a path; with its store where the path is a directory."""
    from kace.tree.store import TreeStore, open_tree

    if not path.is_dir():
        return open_tree(path), None
    store = TreeStore.open(path)
    return store.load(), store


def _facts(path: Path, tree: EpistemicTree, store: TreeStore | None) -> Facts:
    from kace.cli.tree_draw import Facts
    from kace.tree.store import frozen_hash_of

    return Facts(
        name=_name(path),
        generation=store.generation if store else None,
        frozen=frozen_hash_of(path),
        hash=tree.content_hash(),
    )


def _figures(tree: EpistemicTree, facts: Facts) -> dict[str, object]:
    from kace.cli.tree_draw import branches, status_counts, tokens_of

    return {
        "name": facts.name,
        "cards": len(tree),
        "tokens": tokens_of(tree),
        "tokens_estimated": True,
        "status": status_counts(tree),
        "generation": facts.generation,
        "frozen": facts.frozen,
        "hash": facts.hash,
        "domains": [
            {
                "name": branch.name,
                "description": branch.about,
                "share": branch.share,
                "reads": {tier.value: tokens for tier, tokens in branch.reads.items()},
                "difficulties": {
                    leaf.difficulty.value: {"cards": leaf.cards, "tokens": leaf.tokens, "status": dict(leaf.status)}
                    for leaf in branch.leaves
                },
            }
            for branch in branches(tree)
        ],
    }


def _name(path: Path) -> str:
    return path.resolve().name.removesuffix(".json")


def _text(card: Card) -> str:
    return "\n".join((card.card_id, card.payload, *card.routing_conditions, *card.domain_tags)).casefold()
