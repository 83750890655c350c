"""`kace tree`: look at a tree of cards, change it, compare it, go back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from kace.cards import diff as diffs
from kace.cards import formats
from kace.cards.card import Difficulty, card_line
from kace.cards.journal import ChangeKind, author
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import (
    Add,
    Batch,
    Change,
    Deprecate,
    Domain,
    Edit,
    Relocate,
    SetDomains,
)
from kace.cli.options import command, new_app
from kace.cli.streams import (
    choice,
    decoded,
    json_of,
    note,
    plain,
    print_lines,
    read_input,
    source,
    write_output,
)
from kace.cli.tree_card import (
    MAX_BYTES,
    STORE,
    TREE,
    edited,
    given_card,
    new_card,
    store_at,
    try_card,
)
from kace.cli.tree_show import (
    card_lines,
    cards_of,
    changes_of,
    drawing,
    entry_row,
    figures_of,
    print_diff,
)
from kace.config import tree_path
from kace.datasets.starter import starter_domains
from kace.errors import KaceError, UsageError
from kace.words import counted

app = new_app(
    help="Begin a tree of cards, write one, try it; look at a tree, change it, compare it, go back.",
    no_args_is_help=True,
)
ID = typer.Argument(metavar="ID", help="The card's id.", show_default=False)
NOTE = typer.Option("", "--note", help="Why, for the log.")


@command(app)
def init(
    folder: Path = typer.Argument(
        metavar="DIR", help="A new or empty directory.", show_default=False
    ),
    domains: str = typer.Argument(
        None,
        metavar="DOMAINS",
        help="JSON list of {name, description, share, signals}; '-' is standard input; or: starter.",
    ),
) -> None:
    """Begin an empty tree. A small one needs no domains: every problem then sees every card that fits it."""
    given: tuple[Domain, ...] = ()
    if domains == "starter":
        given = starter_domains()
    elif domains is not None:  # an exported tree names its domains too, hence the room
        given = read_input(
            domains, MAX_BYTES, lambda data: formats.read_domains(decoded(data))
        )
    TreeStore.create(folder, given, author=author())
    note(f"{folder}: an empty tree. Write a card with: kace tree new-card {folder}")


command(app, name="new-card")(new_card)
command(app, "model", "base_url", name="try")(try_card)


@command(app)
def show(
    as_json: bool,
    tree: Path = TREE,
    what: list[str] = typer.Argument(
        None,
        metavar="[ID | cards | FILTER...]",
        help="A card's id; or cards, a domain, a difficulty or a status.",
    ),
    search: str = typer.Option(
        None, help="List only cards that hold all of these words."
    ),
) -> None:
    """Draw the tree, show a card whole with its history, or list cards: kace tree show TREE geometry hard.

    Listed as JSON, cards have the form that `kace tree add` reads.
    """
    store = TreeStore.open(tree) if tree.is_dir() else None
    found = store.load() if store else open_tree(tree)
    if what and (what[0] in found or what[0].isupper()):
        card = found.card(what[0])
        print_lines([json_of(card_line(card))] if as_json else card_lines(card, store))
    elif what or search is not None:
        print_lines(cards_of(found, what or [], search or "", as_json))
    else:
        figures = figures_of(tree, found, store)
        print_lines([json_of(figures)] if as_json else drawing(figures))


@command(app)
def add(
    tree: Path = STORE,
    file: str = typer.Argument(
        help="Cards as JSON or JSON lines, a tree's JSON, an ACE playbook; '-' is standard input."
    ),
    experimental: bool = typer.Option(
        False, "--experimental", help="Validated cards arrive as experimental."
    ),
    why: str = NOTE,
) -> None:
    """Add the cards and domains of a file. They keep their status; a card that is there already is left alone.

    A card in the looser form of papers and other stores is made to fit, and what was changed is said. Cards that break
    a rule are listed with the reason, the rest are added; exit 1 if any was refused.
    """
    store = store_at(tree)
    before = store.load()
    bundle = read_input(
        file, MAX_BYTES, lambda data: formats.read_exchange(data, before.domain_names)
    )
    if experimental:
        bundle = bundle._replace(cards=tuple(map(diffs.as_import, bundle.cards)))
    new = tuple(
        domain for domain in bundle.domains if domain.name not in before.domain_names
    )
    base = before.with_domains((*before.domains, *new))
    for domain in bundle.domains:
        if domain not in base.domains:
            note(
                f"domain {domain.name} is described otherwise here, and stays as it is"
            )
    fitting, refused = formats.sorted_out(base, bundle)
    for name in fitting:
        if name in bundle.changed:
            note(f"changed {name}: {'; '.join(map(plain, bundle.changed[name]))}")
    changes: list[Change] = [SetDomains(base.domains)] if new else []
    changes += [Add(card) for card in fitting.values()]
    if changes:
        change = Batch(tuple(changes)) if len(changes) > 1 else changes[0]
        store.apply(
            change, author=author(), note=_flat(why or f"import of {source(file)}")
        )
    print(*(f"{name}\n" for name in fitting), sep="", end="")
    given = len(bundle.cards) + len(bundle.refused)
    same = given - len(fitting) - len(refused)
    note(
        f"{len(fitting)} added"
        + (f", {same} already there" if same else "")
        + f"; generation {store.generation}"
    )
    for each in refused:
        note(f"refused {each}")
    if refused:
        raise KaceError(f"{len(refused)} of {given} cards were refused")


@command(app)
def edit(
    tree: Path = STORE,
    card_id: str = ID,
    file: str = typer.Argument(
        None,
        metavar="[FILE]",
        help="The card as JSON, or its new text; '-' is standard input.",
    ),
    difficulty: str = typer.Option(None, help="Move it to medium, hard or universal."),
    domains: str = typer.Option(
        None, help="Move it to these domains, joined by commas."
    ),
    deprecate: bool = typer.Option(
        False,
        "--deprecate",
        help="Keep it but never show it again; say why with --note.",
    ),
    why: str = NOTE,
) -> None:
    """Replace a card or its text, move it, or deprecate it. In a terminal, its text opens in your $EDITOR."""
    store = store_at(tree)
    before = store.load()
    card = before.card(card_id)
    moved = difficulty is not None or domains is not None
    if moved + deprecate + (file is not None) > 1:
        raise UsageError(
            "a card is replaced, moved or deprecated, one at a time",
            fix="run kace tree edit for each",
        )
    if deprecate and not why.strip():
        raise UsageError("a card is deprecated for a reason", fix="say why with --note")
    change: Change = Deprecate(card_id)
    if moved:
        kind = choice(difficulty, Difficulty, "--difficulty") or card.difficulty_tag
        names = [name.strip() for name in (domains or "").split(",") if name.strip()]
        change = Relocate(
            card_id, kind, card.domain_tags if domains is None else tuple(names)
        )
    elif not deprecate:
        change = Edit(
            edited(card)
            if file is None
            else read_input(file, MAX_BYTES, lambda data: given_card(card, data))
        )
    print_diff(
        diffs.diff(before, store.apply(change, author=author(), note=_flat(why)))
    )


@command(app)
def log(
    as_json: bool,
    tree: Path = STORE,
    card: str = typer.Argument(None, metavar="[ID]", help="Only changes of this card."),
    limit: int = typer.Option(None, min=1, help="Only the newest N changes."),
) -> None:
    """List the changes of a tree, newest first; as JSON, each with before and after."""
    entries = list(reversed(changes_of(store_at(tree), card)))
    print_lines(
        json_of(entry.model_dump_json()) if as_json else entry_row(entry)
        for entry in entries[:limit]
    )
    if card is not None and not entries:
        raise UsageError(
            f"no change of a card '{card[:64]}'",
            fix="list the ids with: kace tree show TREE cards",
        )


@command(app)
def diff(
    as_json: bool,
    tree: Path = TREE,
    other: str = typer.Argument(
        metavar="OTHER",
        help="The tree to compare with, or a generation of the same tree.",
    ),
) -> None:
    """Show what changed between trees, or since a generation: kace tree diff A B, kace tree diff A 3."""
    if other.isdecimal() and not Path(other).exists():
        store = store_at(tree)
        changes = diffs.diff(store.at(int(other)), store.load())
    else:
        changes = diffs.diff(open_tree(tree), open_tree(tree_path(other)))
    if not as_json:
        return print_diff(changes)
    ids: dict[str, object] = {}
    for kind in ("added", "edited", "relocated", "deprecated", "removed"):
        ids[kind] = [
            getattr(each, "after", each).card_id for each in getattr(changes, kind)
        ]
    print(
        json_of(
            ids | {"domains_changed": changes.domains_before != changes.domains_after}
        )
    )


@command(app)
def revert(
    tree: Path = STORE,
    generation: int = typer.Argument(
        metavar="GENERATION", min=0, help="The generation to go back to."
    ),
    why: str = NOTE,
) -> None:
    """Make the tree what it was at a generation, as a new change."""
    store = store_at(tree)
    before = store.load()
    print_diff(
        diffs.diff(before, store.revert(generation, author=author(), note=_flat(why)))
    )
    note(
        f"{tree} is as it was at generation {generation}; now generation {store.generation}"
    )


@command(app)
def merge(
    tree: Path = STORE,
    other: Path = typer.Argument(
        help="The tree to take cards from: a directory or a JSON file.",
        show_default=False,
    ),
    prefer: str = typer.Option(None, help="Who wins a conflict: ours or theirs."),
) -> None:
    """Bring another tree's cards into this one. They arrive as experimental; a conflict stops it and is listed."""
    side = choice(prefer, diffs.Prefer, "--prefer")
    store = store_at(tree)
    theirs = open_tree(other)
    mark = f"merge of {theirs.content_hash()[:16]}"
    for entry in reversed(store.log()):
        if entry.kind is ChangeKind.REVERT:  # the tree has gone back since
            break
        if entry.kind is ChangeKind.BATCH and entry.note == mark:
            done = f"{other} was merged at generation {entry.generation}"
            return note(
                f"{done}; merging it again would count its uses twice. Nothing changed"
            )
    found = diffs.merge(store.load(), theirs, side)
    for conflict in found.conflicts:
        lines = (
            f"! {conflict.name}  {', '.join(conflict.fields)}",
            *(f"    {line}" for line in conflict.lines),
        )
        print_lines(map(plain, lines))
    if found.conflicts and side is None:
        said = f"{counted(len(found.conflicts), 'conflict')} between {tree} and {other}; nothing changed"
        raise KaceError(
            said,
            fix="choose a side with --prefer ours or --prefer theirs, or edit one of the trees",
        )
    before = store.generation
    changes: list[Change] = [SetDomains(found.tree.domains)] if found.domains else []
    changes += [Add(found.tree.card(name)) for name in found.added]
    changes += [
        Edit(found.tree.card(name)) for name in (*found.united, *found.replaced)
    ]
    store.apply(Batch(tuple(changes)), author=author(), note=mark)
    counts = f"{len(found.added)} added, {len(found.united)} united, {len(found.replaced)} replaced"
    now = (
        f"now generation {store.generation}"
        if store.generation > before
        else "nothing changed"
    )
    note(f"{counts}, {len(found.domains)} domains changed; {now}")


@command(app)
def freeze(tree: Path = STORE, why: str = NOTE) -> None:
    """Refuse changes from now on and print the content hash."""
    print(store_at(tree).freeze(author=author(), note=_flat(why)))


@command(app)
def thaw(tree: Path = STORE, why: str = NOTE) -> None:
    """Allow changes again."""
    store = store_at(tree)
    frozen = store.frozen_hash
    store.thaw(author=author(), note=_flat(why))
    note(f"{tree} can be changed again" if frozen else f"{tree} was not frozen")


@command(app)
def verify(as_json: bool, tree: Path = TREE) -> None:
    """Check cards, journal and frozen hash. Exit 1 with the list of problems."""
    if not tree.exists():
        raise UsageError(
            f"{tree}: no such file or directory",
            fix="name a tree's directory or a JSON file of cards",
        )
    problems: Sequence[str] = []
    if tree.is_dir():
        problems = TreeStore.open(tree).verify()
    else:
        try:
            open_tree(tree)
        except KaceError as error:
            problems = [str(error)]
    print_lines([json_of(problems)] if as_json else map(plain, problems))
    if problems:
        note(f"kace: {counted(len(problems), 'problem')} in {tree}")
        raise typer.Exit(1)
    note(f"{tree}: all is well")


@command(app)
def export(
    tree: Path = TREE,
    to: str = typer.Option(
        "json",
        help="json (the whole tree), playbook (ACE's text form) or skill (SKILL.md).",
    ),
    out: Path = typer.Option(
        None, "--out", "-o", help="A file to write; standard output without it."
    ),
    name: str = typer.Option(
        None, help="What a skill calls itself; the tree's name without it."
    ),
) -> None:
    """Write the tree for another tool."""
    form = choice(to, formats.TreeFormat, "--to") or formats.TreeFormat.JSON
    found = open_tree(tree)
    write_output(
        formats.export(found, form, name or tree.resolve().name.partition(".json")[0]),
        out,
    )
    if out is not None:
        note(f"{len(found)} cards written to {out}")


def _flat(text: str) -> str:
    return " ".join(text.split())
