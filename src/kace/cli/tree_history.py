"""The `kace tree` verbs about time and other trees: log, diff, revert, merge, freeze, thaw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import author, choice, note, plain, print_lines
from kace.cli.tree_show import TREE, opened
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.tree.changes import Change
    from kace.tree.diff import TreeDiff
    from kace.tree.journal import JournalEntry
    from kace.tree.store import TreeStore

STORE = typer.Argument(metavar="TREE", help="A tree's directory.", show_default=False)
NOTE = typer.Option("", "--note", help="Why, for the log.")
COLOURS = {"+": "green", "-": "red", "~": "bold", ">": "cyan", "x": "yellow"}


def log(
    tree: Path = STORE,
    card: str = typer.Option(None, "--card", help="Only changes of this card."),
    limit: int = typer.Option(None, min=1, help="Only the newest N changes."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a change, with before and after."),
) -> None:
    """List the changes of a tree, newest first."""
    entries = list(reversed(store_at(tree).log()))
    if card is not None:
        entries = [entry for entry in entries if any(change.card_id == card for change in entry.cards)]
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
    if not as_json:
        return print_diff(changes)
    ids: dict[str, object] = {}
    for kind in ("added", "edited", "relocated", "deprecated", "removed"):
        ids[kind] = [getattr(each, "after", each).card_id for each in getattr(changes, kind)]
    print(json.dumps(ids | {"domains_changed": changes.domains_before != changes.domains_after}, ensure_ascii=False))


def revert(
    tree: Path = STORE,
    to: int = typer.Option(..., "--to", min=0, help="The generation to go back to."),
    why: str = NOTE,
) -> None:
    """Make the tree what it was at a generation, as a new change."""
    from kace.tree.diff import diff as compared

    store = store_at(tree)
    before = store.load()
    print_diff(compared(before, store.revert(to, author=author(), note=flat(why))))
    note(f"{tree} is as it was at generation {to}; now generation {store.generation}")


def merge(
    tree: Path = STORE,
    other: Path = typer.Argument(help="The tree to take cards from: a directory or a JSON file.", show_default=False),
    prefer: str = typer.Option(None, help="Who wins a conflict: ours or theirs."),
) -> None:
    """Bring another tree's cards into this one. They arrive as experimental; a conflict stops it and is listed."""
    from kace.tree.changes import Add, Batch, Edit, SetDomains
    from kace.tree.diff import Prefer
    from kace.tree.diff import merge as merged

    side = choice(prefer, Prefer, "--prefer")
    store = store_at(tree)
    theirs, _ = opened(other)
    mark = f"merge of {theirs.content_hash()[:16]}"
    if (done := _merged_at(store, mark)) is not None:
        note(f"{other} was merged at generation {done}; merging it again would count its uses twice. Nothing changed")
        return
    found = merged(store.load(), theirs, side)
    for conflict in found.conflicts:
        lines = (f"! {conflict.name}  {', '.join(conflict.fields)}", *(f"    {line}" for line in conflict.lines))
        print_lines(map(plain, lines), _colour)
    if (count := len(found.conflicts)) and side is None:
        said = f"{count} {'conflict' if count == 1 else 'conflicts'} between {tree} and {other}; nothing changed"
        raise KaceError(said, fix="choose a side with --prefer ours or --prefer theirs, or edit one of the trees")
    before = store.generation
    changes: list[Change] = [SetDomains(found.tree.domains)] if found.domains else []
    changes += [Add(found.tree.card(name)) for name in found.added]
    changes += [Edit(found.tree.card(name)) for name in (*found.united, *found.replaced)]
    store.apply(Batch(tuple(changes)), author=author(), note=mark)
    counts = f"{len(found.added)} added, {len(found.united)} united, {len(found.replaced)} replaced"
    now = f"now generation {store.generation}" if store.generation > before else "nothing changed"
    note(f"{counts}, {len(found.domains)} domains changed; {now}")


def freeze(tree: Path = STORE, why: str = NOTE) -> None:
    """Refuse changes from now on and print the content hash."""
    print(store_at(tree).freeze(author=author(), note=flat(why)))


def thaw(tree: Path = STORE, why: str = NOTE) -> None:
    """Allow changes again."""
    store = store_at(tree)
    frozen = store.frozen_hash
    store.thaw(author=author(), note=flat(why))
    note(f"{tree} can be changed again" if frozen else f"{tree} was not frozen")


def entry_row(entry: JournalEntry) -> str:
    """A change on one line: generation, when, who, what, why."""
    names = [change.card_id for change in entry.cards]
    what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    head = (f"{entry.generation:>5}", entry.time[:16].replace("T", " "), plain(entry.author, 20))
    parts = (*head, f"{entry.kind.value:9}", what, plain(entry.note, 200))
    return "  ".join(part for part in parts if part).rstrip()


def print_diff(changes: TreeDiff) -> None:
    """A diff on standard output and its counts on standard error."""
    print_lines(map(plain, changes.lines()), _colour)
    note(changes.summary())


def flat(text: str) -> str:
    """A note on one line, as the log keeps it."""
    return " ".join(text.split())


def store_at(path: Path) -> TreeStore:
    """The store in a directory; a JSON file is refused, since it can only be read."""
    from kace.tree.store import TreeStore

    if path.is_file():
        raise UsageError(f"{path} is a file, which can only be read", fix="kace tree init DIR, then kace tree import")
    return TreeStore.open(path)


def _merged_at(store: TreeStore, mark: str) -> int | None:
    """The generation that a merge of the same content made, unless the tree has gone back since."""
    from kace.tree.journal import ChangeKind

    for entry in reversed(store.log()):
        if entry.kind is ChangeKind.REVERT:
            return None
        if entry.kind is ChangeKind.BATCH and entry.note == mark:
            return entry.generation
    return None


def _colour(line: str) -> str:
    return COLOURS.get(line.lstrip()[:1], "")
