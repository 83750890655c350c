"""`kace tree`: create a tree of cards, write and try cards; show, change and compare trees."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from kace.api import solve_cached
from kace.cards import formats
from kace.cards.card import (
    Card,
    card_line,
    read_card,
    text_of,
)
from kace.cards.formats import TEMPLATE, starter_domains
from kace.cards.store import (
    JournalEntry,
    TreeStore,
    author,
    located,
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
from kace.cli.models import prepare
from kace.cli.options import PATH, Options, takes
from kace.cli.solve import side_by_side
from kace.cli.terminal import (
    RunProgress,
    aligned,
    cells_of,
    note,
    print_lines,
    run_async,
)
from kace.config import tree_path
from kace.errors import UsageError, plain
from kace.files import write_atomic
from kace.ladder.retrieve import estimate
from kace.problems import Problem, check_problem_text

T = TypeVar("T")


def _to_path(
    context: click.Context, param: click.Parameter, value: str
) -> Path:
    return tree_path(value)


def _flat(context: click.Context, param: click.Parameter, value: str) -> str:
    return " ".join(value.split())


TREE = click.argument("tree", callback=_to_path)
NOTE = click.option(
    "--note", "why", default="", callback=_flat, help="Why, for the log."
)


@click.group("tree")
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
        given = _read_input(domains, formats.read_exchange).domains
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
@click.pass_context
def new_card(context: click.Context, tree: Path, file: str) -> None:
    """Write a card: its name, when it helps, a rule, examples.

    The rest has defaults: the card is universal, of every domain, and experimental. See
    docs/quickstart.md.
    """
    if file != "-" and not Path(file).exists():
        write_atomic(Path(file), TEMPLATE)
        again = f"kace tree new-card {tree} --file {file}"
        note(f"{file} is a template: fill it in, then: {again}")
        return
    context.invoke(add, tree=tree, file=file, why="new card")
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
    prepare(config)
    solutions = []
    with RunProgress(2) as progress:
        # Attempts that read no card are the same in both: they are made once and cached.
        for each in (config.model_copy(update={"tree": None}), config):
            work = solve_cached([asked], each, observer=progress)
            solutions += run_async(work)
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
            line = f"{card.card_id}  {card.status}  {'; '.join(card.triggers)}"
            options.show(card_line(card), [plain(line)])
        note(f"{len(found)} cards")
    elif what is not None:
        card = found.card(what)
        options.show(card_line(card), _card_lines(card))
    else:
        figures = _figures(tree)
        options.show(figures, _drawing(figures))


@command.command()
@TREE
@click.argument("file")
@NOTE
def add(tree: Path, file: str, why: str) -> None:
    """Add the cards and domains of a file.

    FILE holds a card's text, cards as JSON or JSON lines, or a tree's JSON; '-' is
    standard input.
    Cards in the form of papers are mended, with a note.
    Cards keep their status; those that are there already are left alone. Where a card
    breaks a rule, nothing is added.
    """
    store = TreeStore.open(tree)
    before = store.load()
    read = partial(formats.read_exchange, source=f"written by {author()}")
    bundle = _read_input(file, read)
    changes: list[Change] = []
    named = before.domain_names
    new = [domain for domain in bundle.domains if domain.name not in named]
    if new:
        changes.append(SetDomains((*before.domains, *new)))
    cards = [
        card for card in bundle.cards if before.cards.get(card.card_id) != card
    ]
    changes += map(Add, cards)
    if changes:
        why = why or f"import of {file}"
        store.apply(*changes, author=author(), note=why)
    print_lines(card.card_id for card in cards)
    same = len(bundle.cards) - len(cards)
    note(
        f"{len(cards)} added, {same} already there; generation {store.generation}"
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
    store = TreeStore.open(tree)
    card = store.load().card(card_id)
    change: Change = Deprecate(card_id)
    if file is not None:
        change = Edit(_read_input(file, partial(_edited, card)))
    store.apply(change, author=author(), note=why)
    note(f"{card_id}: generation {store.generation}")


@command.command()
@TREE
@click.argument("card", required=False, metavar="[ID]")
@takes("json")
def log(options: Options, tree: Path, card: str | None) -> None:
    """List the changes of a tree, or of one card, newest first.

    As JSON, each change has the cards before and after.
    """
    for entry in reversed(TreeStore.open(tree).log()):
        if card in (None, *(change.card_id for change in entry.cards)):
            options.show(entry.model_dump_json(), [_entry_row(entry)])


@command.command()
@TREE
def freeze(tree: Path) -> None:
    """Refuse changes from now on and print the content hash."""
    print(TreeStore.open(tree).freeze(author=author()))


@command.command()
@TREE
def thaw(tree: Path) -> None:
    """Allow changes again."""
    TreeStore.open(tree).thaw(author=author())
    note(f"{tree} can be changed")


@command.command()
@TREE
def export(tree: Path) -> None:
    """Write the whole tree as JSON to standard output."""
    # As bytes, it is the same in every locale.
    click.echo(formats.to_json(open_tree(tree)).encode(), nl=False)


def _read_input(name: str, parse: Callable[[bytes], T]) -> T:
    """Read and parse a file, or standard input for `-`."""
    path = Path("/dev/stdin" if name == "-" else name)
    with located(path):
        return parse(path.read_bytes())


def _edited(card: Card, data: bytes) -> Card:
    """Return the card that a file holds, or the card with the text that it holds."""
    if not data.lstrip().startswith(b"{"):
        return card.revised(payload=text_of(data).rstrip("\n"))
    after = read_card(data)
    if after.card_id != card.card_id:
        raise UsageError(
            f"the file holds {after.card_id}, not {card.card_id}",
            fix="edit keeps the id; add makes a new card",
        )
    return after


# Showing


def _figures(path: Path) -> dict[str, Any]:
    """Return the tree in figures."""
    state = open_state(path)
    tree = state.tree
    return {
        "name": path.resolve().name.partition(".json")[0],
        "cards": len(tree),
        "status": Counter(str(card.status) for card in tree),
        "generation": state.generation if path.is_dir() else None,
        "frozen": state.frozen,
        "hash": tree.content_hash(),
        "places": tree_sizes(tree),
    }


def tree_sizes(tree: EpistemicTree) -> list[dict[str, object]]:
    """Return the cards and tokens of every place that has some, and of the whole tree."""
    places = defaultdict[str, list[int]](list)
    for card in tree.shown:
        for domain in card.domain_tags:
            place = f"{card.difficulty_tag.value} {domain}"
            places[place].append(estimate(card))
    places["all"] = list(map(estimate, tree.shown))
    rows: list[dict[str, object]] = []
    for place, sizes in places.items():
        row = {
            "place": place,
            "cards": len(sizes),
            "tokens": sum(sizes),
            "tokens per card": round(sum(sizes) / max(1, len(sizes))),
        }
        rows.append(row)
    return rows


def _drawing(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of a tree, then a table of its places."""
    kinds = [f"{kind} {count}" for kind, count in figures["status"].items()]
    shown = {**figures, "status": ", ".join(kinds)}
    places = shown.pop("places")
    for name, value in shown.items():
        yield f"{name:12} {'no' if value is None else value}"
    yield ""
    yield from aligned(cells_of(places))


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
