"""`kace tree`: create a tree of cards, write and try cards; show, change and compare trees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kace.api import solve_cached
from kace.cards import formats
from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    Status,
    card_line,
    read_card,
)
from kace.cards.formats import TEMPLATE, read_text_card, starter_domains
from kace.cards.store import (
    JournalEntry,
    TreeStore,
    author,
    open_state,
    open_tree,
)
from kace.cards.tree import (
    Add,
    Change,
    Deprecate,
    Domain,
    Edit,
    EpistemicTree,
    SetDomains,
)
from kace.cli.models import ensure_weights
from kace.cli.options import PATH, Commands, Options, takes
from kace.cli.solve import side_by_side
from kace.cli.terminal import (
    RunProgress,
    aligned,
    decoded,
    note,
    plain,
    print_lines,
    read_input,
    run_async,
)
from kace.config import tree_path
from kace.errors import KaceError, UsageError
from kace.files import write_atomic
from kace.problems import Problem, check_problem_text


def _to_path(
    context: click.Context, param: click.Parameter, value: str
) -> Path:
    return tree_path(value)


TREE = click.argument("tree", callback=_to_path)
NOTE = click.option("--note", "why", default="", help="Why, for the log.")


@click.group("tree", cls=Commands, no_args_is_help=True)
def command() -> None:
    """Create a tree, write and try cards, show and change trees.

    TREE is a tree's directory. Commands that only read also take a JSON file of cards,
    or `starter`.
    """


@command.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.argument("domains", required=False)
def init(folder: Path, domains: str | None) -> None:
    """Create an empty tree in a new or empty directory.

    DOMAINS is a JSON file with a list `domains` of {name, description, share, signals}
    ('-' is standard input), or `starter`. A small tree needs none: every problem then
    sees every card that fits it.
    """
    given: tuple[Domain, ...] = ()
    if domains == "starter":
        given = starter_domains()
    elif domains is not None:
        given = read_input(domains, formats.read_exchange).domains
    TreeStore.create(folder, given, author=author())
    note(
        f"{folder}: an empty tree. Write a card with: kace tree new-card {folder}"
    )


@command.command("new-card")
@TREE
@click.option(
    "--file",
    "-f",
    default="-",
    help="The card's text; '-' is standard input. A file that does not exist is "
    "written as a template to fill in.",
)
def new_card(tree: Path, file: str) -> None:
    """Write a card: its name, when it helps, a rule, examples.

    The rest has defaults: the card is universal, of every domain, and experimental. See
    docs/quickstart.md.
    """
    store = _open_store(tree)
    again = f"kace tree new-card {tree} --file {file}"
    if file != "-" and not Path(file).exists():
        write_atomic(Path(file), TEMPLATE)
        note(f"{file} is a template: fill it in, then: {again}")
        return
    text = read_input(file, decoded)
    try:
        card = read_text_card(text, f"written by {author()}")
    except KaceError as error:
        raise KaceError(
            f"{error.message}; nothing was added",
            fix=f"{error.fix}; mend the text, then: {again}",
        ) from None
    store.apply(Add(card), author=author(), note="new card")
    print(card.card_id)
    note(f'try it with: kace tree try {tree} "A PROBLEM" --answer N')


@command.command("try")
@TREE
@click.argument("problem")
@click.option(
    "--answer",
    help="The expected answer: results are then marked right or wrong.",
)
@takes("model", "base_url")
def try_card(
    options: Options, tree: Path, problem: str, answer: str | None
) -> None:
    """Solve a problem without and with the tree, side by side."""
    check_problem_text(problem)
    config = options.config(tree=str(tree))
    cards = open_tree(tree)
    asked = Problem(problem, answer)
    ensure_weights(config)
    solutions = []
    with RunProgress(2) as progress:
        # Attempts that read no card are the same in both: they are made once and cached.
        for each in (config.model_copy(update={"tree": None}), config):
            work = solve_cached([asked], each, observer=progress)
            solutions += run_async(work, resumable=True)
    print_lines(side_by_side(cards, asked, *solutions))


@command.command()
@TREE
@click.argument("what", required=False, metavar="[ID | cards]")
@takes("json")
def show(options: Options, tree: Path, what: str | None) -> None:
    """Draw the tree, show one card, or list the cards.

    Listed as JSON, cards have the form that `kace tree add` reads.
    """
    found = open_tree(tree)
    if what == "cards":
        for card in found:
            options.show(card_line(card), [_card_row(card)])
        note(f"{len(found)} cards")
    elif what is not None:
        card = found.card(what)
        options.show(card_line(card), _card_lines(card))
    else:
        figures = _figures(tree, found)
        options.show(figures, _drawing(figures))


@command.command()
@TREE
@click.argument("file")
@NOTE
def add(tree: Path, file: str, why: str) -> None:
    """Add the cards and domains of a file.

    FILE holds cards as JSON or JSON lines, or a tree's JSON; '-' is standard input.
    Cards in the form of papers are mended, with a note.
    Cards keep their status; those that are there already are left alone. Where a card
    breaks a rule, nothing is added.
    """
    store = _open_store(tree)
    before = store.load()
    bundle = read_input(file, formats.read_exchange)
    named = {domain.name: domain for domain in bundle.domains}
    named |= {domain.name: domain for domain in before.domains}
    changes: list[Change] = []
    if len(named) > len(before.domains):
        changes.append(SetDomains(tuple(named.values())))
    added = []
    for card in bundle.cards:
        if before.cards.get(card.card_id) != card:
            changes.append(Add(card))
            added.append(card.card_id)
    if changes:
        why = _flat(why or f"import of {file}")
        store.apply(*changes, author=author(), note=why)
    for name in added:
        print(name)
    same = len(bundle.cards) - len(added)
    note(
        f"{len(added)} added, {same} already there; generation {store.generation}"
    )
    for each in bundle.mended:
        note(f"mended {each}")


@command.command()
@TREE
@click.argument("card_id", metavar="ID")
@click.argument("file", required=False)
@click.option(
    "--deprecate",
    is_flag=True,
    help="Keep the card but never show it again; say why with --note.",
)
@NOTE
def edit(
    tree: Path,
    card_id: str,
    file: str | None,
    deprecate: bool,
    why: str,
) -> None:
    """Replace a card or its text, or deprecate it.

    FILE is the new text, or the card as `kace tree show TREE ID --json` prints it; '-'
    is standard input.
    """
    if deprecate == (file is not None) or (deprecate and not why.strip()):
        raise UsageError(
            "a card is edited or deprecated, one at a time",
            fix="name a FILE with the card or its text, or give --deprecate "
            "and say why with --note",
        )
    store = _open_store(tree)
    card = store.load().card(card_id)
    change: Change = Deprecate(card_id)
    if file is not None:
        change = Edit(_edited(card, read_input(file, decoded)))
    store.apply(change, author=author(), note=_flat(why))
    note(f"{card_id}: generation {store.generation}")


@command.command()
@TREE
@click.argument("card", required=False, metavar="[ID]")
@takes("json")
def log(options: Options, tree: Path, card: str | None) -> None:
    """List the changes of a tree, or of one card, newest first.

    As JSON, each change has the cards before and after.
    """
    for entry in reversed(_open_store(tree).log()):
        if card in (None, *(change.card_id for change in entry.cards)):
            options.show(entry.model_dump_json(), [_entry_row(entry)])


@command.command()
@TREE
def freeze(tree: Path) -> None:
    """Refuse changes from now on and print the content hash."""
    print(_open_store(tree).freeze(author=author()))


@command.command()
@TREE
def thaw(tree: Path) -> None:
    """Allow changes again."""
    _open_store(tree).thaw(author=author())
    note(f"{tree} can be changed")


@command.command()
@TREE
def export(tree: Path) -> None:
    """Write the whole tree as JSON to standard output."""
    # As bytes, it is the same in every locale.
    click.echo(formats.to_json(open_tree(tree)).encode(), nl=False)


def _open_store(path: Path) -> TreeStore:
    """Return the store in a directory; a JSON file is refused, since it can only be read."""
    if path.is_file():
        raise UsageError(
            f"{path} is a file, which can only be read",
            fix="kace tree init DIR FILE, then kace tree add",
        )
    return TreeStore.open(path)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _edited(card: Card, text: str) -> Card:
    """Return the card that a file holds, or the card with the text that it holds."""
    if not text.lstrip().startswith("{"):
        return card.revised(payload=text.rstrip("\n"))
    after = read_card(text.encode())
    if after.card_id != card.card_id:
        raise UsageError(
            f"the file holds {after.card_id}, not {card.card_id}",
            fix="edit keeps the id; add makes a new card",
        )
    return after


# Showing


def _figures(path: Path, tree: EpistemicTree) -> dict[str, Any]:
    """Return the tree in figures, with a row per domain, `universal` last."""
    from kace.learning.calibrate import thresholds_of

    store = TreeStore.open(path) if path.is_dir() else None
    status = dict.fromkeys(map(str, Status), 0)
    domains: dict[str, dict[str, Any]] = {}
    for name in (*tree.domain_names, UNIVERSAL):
        domains[name] = {
            "domain": name,
            **dict.fromkeys(map(str, Difficulty), 0),
        }
    for card in tree:
        status[card.status] += 1
        for name in card.domain_tags:
            domains[name][card.difficulty_tag] += 1
    return {
        "name": path.resolve().name.partition(".json")[0],
        "cards": len(tree),
        "status": status,
        "generation": store.generation if store else None,
        "frozen": open_state(path).frozen,
        "hash": tree.content_hash(),
        "gate": thresholds_of(path) if store else None,
        "domains": list(domains.values()),
    }


def _drawing(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of a tree, then a table of its domains."""
    domains = figures["domains"]
    for name, value in figures.items():
        shown = "no" if value is None else value
        if isinstance(value, dict):
            parts = [f"{kind} {count:.4g}" for kind, count in value.items()]
            shown = ", ".join(parts)
        if value is not domains:
            yield f"{name:12} {shown}"
    yield ""
    rows = [list(domains[0])]
    for row in domains:
        rows.append([plain(str(cell), 31) for cell in row.values()])
    yield from aligned(rows)


def _card_row(card: Card) -> str:
    """Return a card on one line."""
    place = f"{card.difficulty_tag.value}/{'+'.join(card.domain_tags)}"
    triggers = plain("; ".join(card.triggers), 200)
    return f"{card.card_id}  {place}  {card.status.value}  {triggers}"


def _card_lines(card: Card) -> Iterator[str]:
    """Yield the fields of a card, then its text."""
    record = json.loads(card_line(card))
    text = record.pop("payload").strip("\n")
    yield record.pop("card_id")
    for name, value in (record.pop("provenance") | record).items():
        shown = "; ".join(value) if isinstance(value, list) else value
        yield f"  {name:20} {plain(str(shown), 300)}".rstrip()
    yield ""
    for line in plain(text).split("\n"):
        yield f"  {line}".rstrip()


def _entry_row(entry: JournalEntry) -> str:
    """Return a change on one line: generation, time, author, kind, cards, note."""
    names = [change.card_id for change in entry.cards]
    row = (
        f"{entry.generation:>5}  {entry.time[:16]}  {entry.author}  "
        f"{entry.kind:9}  {', '.join(names)}  {entry.note}"
    )
    return plain(row).rstrip()
