"""`kace tree`: look at a tree of cards, change it, and go back. Here are the verbs that change cards."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.options import GroupedVerbs
from kace.cli.streams import author, choice, decoded, note, read_input, source
from kace.cli.tree_history import NOTE, STORE, diff, flat, freeze, log, merge, print_diff, revert, store_at, thaw
from kace.cli.tree_show import card, cards, export, show, verify
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from kace.tree.card import Card
    from kace.tree.changes import Change
    from kace.tree.formats import Bundle, RefusedCard
    from kace.tree.tree import EpistemicTree

ABOUT = "Look at a tree of cards, change it, compare it, go back."
tree_app = typer.Typer(help=ABOUT, no_args_is_help=True, rich_markup_mode=None, cls=GroupedVerbs)
MAX_ADD_BYTES = 4 << 20
MAX_IMPORT_BYTES = 256 << 20
ID = typer.Argument(metavar="ID", help="The card's id.", show_default=False)


def init(
    folder: Path = typer.Argument(metavar="DIR", help="A new or empty directory.", show_default=False),
    domains: str = typer.Option(None, help="JSON list of {name, description, share, signals}; '-' is standard input."),
    starter: bool = typer.Option(False, "--starter", help="The five domains of the starter set."),
) -> None:
    """Begin an empty tree with its domains."""
    from kace.datasets.starter import starter_domains
    from kace.tree.formats import read_domains
    from kace.tree.store import TreeStore

    if (domains is None) == (not starter):
        raise UsageError("init needs the domains", fix="give --domains FILE.json, or --starter")
    given = starter_domains()
    if not starter:  # an exported tree names its domains too, hence the room
        given = read_input(domains, MAX_IMPORT_BYTES, lambda data: read_domains(decoded(data)))
    TreeStore.create(folder, given, author=author())
    note(f"{folder}: an empty tree; add cards with: kace tree add {folder} FILE.json")


def add(
    tree: Path = STORE,
    file: str = typer.Argument(help="One card or a list of them as JSON; '-' is standard input.", show_default=False),
    why: str = NOTE,
) -> None:
    """Add cards. Those that break a rule are listed with the reason, the rest are added; exit 1 if any was refused."""
    _bring(tree, file, MAX_ADD_BYTES, why)


def import_(
    tree: Path = STORE,
    file: str = typer.Argument(help="SPEC JSON, JSON lines or an ACE playbook; '-' is standard input."),
    experimental: bool = typer.Option(False, "--experimental", help="Validated cards arrive as experimental."),
    why: str = NOTE,
) -> None:
    """Add the domains and cards of a file. They keep their status; a card that is there already is left alone."""
    _bring(tree, file, MAX_IMPORT_BYTES, why or f"import of {source(file)}", experimental=experimental)


def edit(
    tree: Path = STORE,
    card_id: str = ID,
    file: str = typer.Option(None, help="The whole card as JSON; '-' is standard input."),
    payload: str = typer.Option(None, help="The card's new text; '-' is standard input."),
    editor: str = typer.Option("vi", envvar=["VISUAL", "EDITOR"], help="Opened on the text when no file is given."),
    why: str = NOTE,
) -> None:
    """Replace a card, or its text. In a terminal and without a file, the text opens in your editor."""
    from kace.tree.card import read_card
    from kace.tree.changes import Edit

    store = store_at(tree)
    before = store.load().card(card_id)
    if file is not None and payload is not None:
        raise UsageError("both --file and --payload were given", fix="give one of them")
    if file is not None:
        after = read_input(file, MAX_ADD_BYTES, read_card)
    elif payload is not None:
        after = before.with_payload(read_input(payload, MAX_ADD_BYTES, decoded).rstrip("\n"))
    else:
        after = _edited(before, editor)
    if after.card_id != card_id:
        said = f"the file holds {after.card_id}, not {card_id}"
        raise UsageError(said, fix="edit keeps the id; add makes a new card")
    _change(tree, Edit(after), why)


def relocate(
    tree: Path = STORE,
    card_id: str = ID,
    difficulty: str = typer.Option(None, help="medium, hard or universal; the present one without it."),
    domains: str = typer.Option(None, help="Domain names joined by commas; the present ones without it."),
    why: str = NOTE,
) -> None:
    """Move a card to another difficulty or other domains."""
    from kace.tree.card import Difficulty
    from kace.tree.changes import Relocate

    if difficulty is None and domains is None:
        raise UsageError("relocate needs a place", fix="give --difficulty, --domains or both")
    card = store_at(tree).load().card(card_id)
    kind = choice(difficulty, Difficulty, "--difficulty") or card.difficulty_tag
    names = card.domain_tags if domains is None else tuple(name.strip() for name in domains.split(",") if name.strip())
    _change(tree, Relocate(card_id, kind, names), why)


def deprecate(
    tree: Path = STORE,
    card_id: str = ID,
    why: str = typer.Option(..., "--note", help="Why, for the log.", show_default=False),
) -> None:
    """Keep a card in the tree but never show it again."""
    from kace.tree.changes import Deprecate

    _change(tree, Deprecate(card_id), why)


def _change(tree: Path, change: Change, why: str) -> None:
    """Make one change and show it as a diff."""
    from kace.tree.diff import diff as compared

    store = store_at(tree)
    before = store.load()
    print_diff(compared(before, store.apply(change, author=author(), note=flat(why))))


def _bring(tree: Path, file: str, limit: int, why: str, *, experimental: bool = False) -> None:
    """Add what fits of a file in one change; list the rest and exit 1."""
    from kace.tree.changes import Add, Batch, SetDomains
    from kace.tree.diff import as_import
    from kace.tree.formats import Bundle, read_exchange

    store = store_at(tree)
    before = store.load()
    bundle = read_input(file, limit, lambda data: read_exchange(data, before.domain_names))
    if experimental:
        bundle = Bundle(bundle.domains, tuple(map(as_import, bundle.cards)), bundle.refused)
    new = tuple(domain for domain in bundle.domains if domain.name not in before.domain_names)
    base = before.with_domains((*before.domains, *new))
    for domain in bundle.domains:
        if domain not in base.domains:
            note(f"domain {domain.name} is described otherwise here, and stays as it is")
    fitting, refused = _sorted_out(base, bundle)
    changes: list[Change] = [SetDomains(base.domains)] if new else []
    changes += [Add(card) for card in fitting.values()]
    if changes:
        store.apply(Batch(tuple(changes)) if len(changes) > 1 else changes[0], author=author(), note=flat(why))
    print(*(f"{name}\n" for name in fitting), sep="", end="")
    given = len(bundle.cards) + len(bundle.refused)
    same = given - len(fitting) - len(refused)
    note(f"{len(fitting)} added" + (f", {same} already there" if same else "") + f"; generation {store.generation}")
    for each in refused:
        note(f"refused {each}")
    if refused:
        raise KaceError(f"{len(refused)} of {given} cards were refused")


def _sorted_out(tree: EpistemicTree, bundle: Bundle) -> tuple[dict[str, Card], list[RefusedCard]]:
    """The cards that can be added, and those that cannot, with reasons. A card the tree has already is in neither."""
    from kace.tree.formats import RefusedCard
    from kace.tree.tree import EpistemicTree, TreeError

    fitting: dict[str, Card] = {}
    refused = list(bundle.refused)
    for each in bundle.cards:
        name = each.card_id
        if name in tree and tree.card(name) == each:
            continue
        try:
            if name in fitting:
                raise TreeError("the file has two cards of this id", fix="rename or remove one of them")
            if name in tree:
                raise TreeError("the tree has another card of this id", fix="kace tree edit, or choose another id")
            EpistemicTree.of(tree.domains, (each,))
            fitting[name] = each
        except TreeError as error:
            refused.append(RefusedCard(name, str(error).removeprefix(f"card {name}: ")))
    return fitting, refused


def _edited(card: Card, editor: str) -> Card:
    """The card after a person edited its text. A text that breaks a rule is kept, and the error says where."""
    import subprocess
    import tempfile

    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("nothing to edit with", fix="give --file CARD.json or --payload TEXT, or run it in a terminal")
    with tempfile.NamedTemporaryFile("w", suffix=f".{card.card_id}.txt", encoding="utf-8", delete=False) as draft:
        draft.write(card.payload + "\n")
    path = Path(draft.name)
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
    except (OSError, ValueError) as error:
        path.unlink()
        raise UsageError(f"cannot run the editor '{editor}': {error}", fix="set EDITOR, or give --payload") from None
    if done.returncode:
        raise KaceError(f"the editor ended with {done.returncode}; nothing changed", fix=f"your text is in {path}")
    try:
        text = read_input(str(path), MAX_ADD_BYTES, decoded).rstrip("\n")
        after = card.with_payload(card.payload if text == card.payload.rstrip("\n") else text)
    except KaceError as error:
        fix = f"{error.fix}; your text is kept: kace tree edit ... --payload {path}"
        raise UsageError(f"{error.message}; nothing changed", fix=fix) from None
    path.unlink()
    return after


for verb in (init, show, cards, card, add, edit, relocate, deprecate, log, diff, revert, merge, freeze, thaw, verify,
             import_, export):  # fmt: skip
    tree_app.command(verb.__name__.rstrip("_"))(verb)
