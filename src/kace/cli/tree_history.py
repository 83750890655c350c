"""The `kace tree` verbs about time and other trees: log, diff, revert, merge, freeze, thaw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import author, choice, note, one_line, print_lines
from kace.cli.tree_show import TREE, opened
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.tree.diff import TreeDiff
    from kace.tree.journal import Entry
    from kace.tree.merge import Merged
    from kace.tree.store import Change, TreeStore

STORE = typer.Argument(metavar="TREE", help="A tree's directory.", show_default=False)
COLOURS = {"+": "green", "-": "red", "~": "bold", ">": "cyan", "x": "yellow"}


def log(
    tree: Path = STORE,
    card: str = typer.Option(None, "--card", help="Only changes of this card."),
    limit: int = typer.Option(None, min=1, help="Only the newest N changes."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a change, with before and after."),
) -> None:
    """List the changes of a tree, newest first."""
    entries = [
        entry
        for entry in reversed(store_at(tree).log())
        if card is None or any(change.card_id == card for change in entry.cards)
    ]
    for entry in entries[:limit]:
        print(entry.model_dump_json() if as_json else entry_row(entry))
    if card is not None and not entries:
        raise UsageError(f"no change of a card '{card[:64]}'", fix="list the ids with: kace tree cards")


def diff(
    tree: Path = TREE,
    other: Path = typer.Argument(None, help="The tree to compare with."),
    since: int = typer.Option(None, min=0, help="Compare with the same tree at this generation."),
    as_json: bool = typer.Option(False, "--json", help="Ids by what happened to them, as one JSON object."),
) -> None:
    """Show what changed between trees or since a generation."""
    from kace.tree.diff import diff as compared

    if (other is None) == (since is None):
        raise UsageError("diff needs a second tree or --since", fix="kace tree diff A B, or kace tree diff A --since 3")
    if since is not None:
        store = store_at(tree)
        changes = compared(store.at(since), store.load())
    else:
        changes = compared(opened(tree)[0], opened(other)[0])
    if as_json:
        print(json.dumps(_ids(changes), ensure_ascii=False))
    else:
        print_diff(changes)


def revert(
    tree: Path = STORE,
    to: int = typer.Option(..., "--to", min=0, help="The generation to go back to."),
    why: str = typer.Option("", "--note", help="Why, for the log."),
) -> None:
    """Make the tree what it was at a generation, as a new change."""
    from kace.tree.diff import diff as compared

    store = store_at(tree)
    before = store.load()
    after = store.revert(to, author=author(), note=one_line(why))
    print_diff(compared(before, after))
    note(f"{tree} is as it was at generation {to}; now generation {store.generation}")


def merge(
    tree: Path = STORE,
    other: Path = typer.Argument(help="The tree to take cards from: a directory or a JSON file.", show_default=False),
    prefer: str = typer.Option(None, help="Who wins a conflict: ours or theirs."),
) -> None:
    """Bring another tree's cards into this one. They arrive as experimental; a conflict stops it and is listed."""
    from kace.tree.merge import Prefer
    from kace.tree.merge import merge as merged

    side = choice(prefer, Prefer, "--prefer") if prefer is not None else None
    store = store_at(tree)
    theirs, _ = opened(other)
    mark = f"merge of {theirs.content_hash()[:16]}"
    if (done := _merged_at(store, mark)) is not None:
        note(f"{other} was merged at generation {done}; merging it again would count its uses twice. Nothing changed")
        return
    found = merged(store.load(), theirs, side)
    print_lines(_conflict_lines(found), _colour)
    if found.conflicts and side is None:
        count = len(found.conflicts)
        raise KaceError(
            f"{count} {'conflict' if count == 1 else 'conflicts'} between {tree} and {other}; nothing changed",
            fix="choose a side with --prefer ours or --prefer theirs, or edit one of the trees",
        )
    before = store.generation
    _apply(store, found, mark)
    note(
        f"{len(found.added)} added, {len(found.united)} united, {len(found.replaced)} replaced,"
        f" {len(found.domains)} domains changed"
        + (f"; now generation {store.generation}" if store.generation > before else "; nothing changed")
    )


def freeze(tree: Path = STORE, why: str = typer.Option("", "--note", help="Why, for the log.")) -> None:
    """Refuse changes from now on and print the content hash."""
    print(store_at(tree).freeze(author=author(), note=one_line(why)))


def thaw(tree: Path = STORE, why: str = typer.Option("", "--note", help="Why, for the log.")) -> None:
    """Allow changes again."""
    store = store_at(tree)
    frozen = store.frozen_hash
    store.thaw(author=author(), note=one_line(why))
    note(f"{tree} can be changed again" if frozen else f"{tree} was not frozen")


def entry_row(entry: Entry) -> str:
    """A change on one line: generation, when, who, what, why."""
    from kace.cli.show import plain

    names = [change.card_id for change in entry.cards]
    what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    when = entry.time[:16].replace("T", " ")
    parts = (
        f"{entry.generation:>5}",
        when,
        plain(entry.author, 20),
        f"{entry.kind.value:9}",
        what,
        plain(entry.note, 200),
    )
    return "  ".join(part for part in parts if part).rstrip()


def print_diff(changes: TreeDiff) -> None:
    """A diff on standard output and its counts on standard error."""
    from kace.cli.show import plain

    print_lines((plain(line) for line in changes.lines()), _colour)
    note(changes.summary())


def _conflict_lines(found: Merged) -> Iterator[str]:
    from kace.cli.show import plain

    for conflict in found.conflicts:
        yield plain(f"! {conflict.name}  {', '.join(conflict.fields)}")
        yield from (plain(f"    {line}") for line in conflict.lines)


def _apply(store: TreeStore, found: Merged, mark: str) -> None:
    from kace.tree.store import Add, Batch, Edit, SetDomains

    changes: list[Change] = [SetDomains(found.tree.domains)] if found.domains else []
    changes += [Add(found.tree.card(name)) for name in found.added]
    changes += [Edit(found.tree.card(name)) for name in (*found.united, *found.replaced)]
    store.apply(Batch(tuple(changes)), author=author(), note=mark)


def _merged_at(store: TreeStore, mark: str) -> int | None:
    """The generation that a merge of the same content made, unless the tree has gone back since."""
    from kace.tree.journal import Kind

    for entry in reversed(store.log()):
        if entry.kind is Kind.REVERT:
            return None
        if entry.kind is Kind.BATCH and entry.note == mark:
            return entry.generation
    return None


def store_at(path: Path) -> TreeStore:
    """The store in a directory; a JSON file is refused, since it can only be read."""
    from kace.tree.store import TreeStore

    if path.is_file():
        raise UsageError(f"{path} is a file, which can only be read", fix="kace tree init DIR, then kace tree import")
    return TreeStore.open(path)


def _ids(changes: TreeDiff) -> dict[str, object]:
    return {
        "added": [card.card_id for card in changes.added],
        "edited": [pair.after.card_id for pair in changes.edited],
        "relocated": [pair.after.card_id for pair in changes.relocated],
        "deprecated": [pair.after.card_id for pair in changes.deprecated],
        "removed": [card.card_id for card in changes.removed],
        "domains_changed": changes.domains_before != changes.domains_after,
    }


def _colour(line: str) -> str:
    return COLOURS.get(line.lstrip()[:1], "")
