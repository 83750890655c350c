"""The `kace tree` verbs that change cards: init, add, edit, relocate, deprecate, import."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kace.cli.streams import author, choice, decoded, naming, note, one_line, read_input, source
from kace.cli.tree_history import STORE, store_at
from kace.errors import KaceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kace.tree.bundle import Bundle, Refused
    from kace.tree.card import Card
    from kace.tree.store import Change
    from kace.tree.tree import Domain, EpistemicTree

MAX_ADD_BYTES = 4 << 20
MAX_IMPORT_BYTES = 256 << 20
ID = typer.Argument(metavar="ID", help="The card's id.", show_default=False)
NOTE = typer.Option("", "--note", help="Why, for the log.")


def init(
    folder: Path = typer.Argument(metavar="DIR", help="A new or empty directory.", show_default=False),
    domains: str = typer.Option(None, help="JSON list of {name, description, share, signals}; '-' is standard input."),
    starter: bool = typer.Option(False, "--starter", help="The five domains of the starter set."),
) -> None:
    """Begin an empty tree with its domains."""
    from kace.tree.store import TreeStore

    if (domains is None) == (not starter):
        raise UsageError("init needs the domains", fix="give --domains FILE.json, or --starter")
    TreeStore.create(folder, _domains(domains), author=author())
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
    from kace.tree.store import Edit

    store = store_at(tree)
    before = store.load().card(card_id)
    if file is not None and payload is not None:
        raise UsageError("both --file and --payload were given", fix="give one of them")
    if file is not None:
        data = read_input(file, MAX_ADD_BYTES)
        with naming(file):
            after = read_card(data)
    elif payload is not None:
        after = before.with_payload(decoded(read_input(payload, MAX_ADD_BYTES), payload).rstrip("\n"))
    else:
        after = _edited(before, editor)
    if after.card_id != card_id:
        raise UsageError(
            f"the file holds {after.card_id}, not {card_id}", fix="edit keeps the id; add makes a new card"
        )
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
    from kace.tree.store import Relocate

    if difficulty is None and domains is None:
        raise UsageError("relocate needs a place", fix="give --difficulty, --domains or both")
    card = store_at(tree).load().card(card_id)
    kind = choice(difficulty, Difficulty, "--difficulty") if difficulty is not None else card.difficulty_tag
    names = card.domain_tags if domains is None else tuple(name.strip() for name in domains.split(",") if name.strip())
    _change(tree, Relocate(card_id, kind, names), why)


def deprecate(
    tree: Path = STORE,
    card_id: str = ID,
    why: str = typer.Option(..., "--note", help="Why, for the log.", show_default=False),
) -> None:
    """Keep a card in the tree but never show it again."""
    from kace.tree.store import Deprecate

    _change(tree, Deprecate(card_id), why)


def _domains(name: str | None) -> tuple[Domain, ...]:
    from kace.datasets.starter.domains import starter_domains
    from kace.tree.bundle import read_domains

    if name is None:
        return starter_domains()
    text = decoded(read_input(name, MAX_IMPORT_BYTES), name)  # an exported tree names its domains too
    with naming(name):
        return read_domains(text)


def _change(tree: Path, change: Change, why: str) -> None:
    """Make one change and show it as a diff."""
    from kace.cli.tree_history import print_diff
    from kace.tree.diff import diff

    store = store_at(tree)
    before = store.load()
    print_diff(diff(before, store.apply(change, author=author(), note=one_line(why))))


def _bring(tree: Path, file: str, limit: int, why: str, *, experimental: bool = False) -> None:
    """Add what fits of a file in one change; list the rest and exit 1."""
    from kace.tree.bundle import Bundle
    from kace.tree.export import read_exchange
    from kace.tree.merge import as_import
    from kace.tree.store import Add, Batch, SetDomains

    store = store_at(tree)
    before = store.load()
    data = read_input(file, limit)
    with naming(file):
        bundle = read_exchange(data, before.domain_names)
    if experimental:
        bundle = Bundle(bundle.domains, tuple(map(as_import, bundle.cards)), bundle.refused)
    new = tuple(domain for domain in bundle.domains if domain.name not in before.domain_names)
    base = before.with_domains((*before.domains, *new))
    for domain in bundle.domains:
        if domain not in base.domains:
            note(f"domain {domain.name} is described otherwise here, and stays as it is")
    fitting, refused = _sorted_out(base, bundle)
    changes: list[Change] = [SetDomains(base.domains)] if new else []
    changes += [Add(card) for card in fitting]
    if changes:
        store.apply(Batch(tuple(changes)) if len(changes) > 1 else changes[0], author=author(), note=one_line(why))
    for card in fitting:
        print(card.card_id)
    same = len(bundle.cards) + len(bundle.refused) - len(fitting) - len(refused)
    note(f"{len(fitting)} added" + (f", {same} already there" if same else "") + f"; generation {store.generation}")
    for each in refused:
        note(f"refused {each}")
    if refused:
        raise KaceError(f"{len(refused)} of {len(bundle.cards) + len(bundle.refused)} cards were refused")


def _sorted_out(tree: EpistemicTree, bundle: Bundle) -> tuple[list[Card], Sequence[Refused]]:
    """The cards that can be added, and those that cannot, with reasons. A card the tree has already is in neither."""
    from kace.tree.bundle import Refused
    from kace.tree.tree import EpistemicTree, TreeError

    fitting: dict[str, Card] = {}
    refused = list(bundle.refused)
    for card in bundle.cards:
        name = card.card_id
        if name in tree and tree.card(name) == card:
            continue
        try:
            if name in fitting:
                raise TreeError("the file has two cards of this id", fix="rename or remove one of them")
            if name in tree:
                raise TreeError("the tree has another card of this id", fix="kace tree edit, or choose another id")
            EpistemicTree.of(tree.domains, (card,))
            fitting[name] = card
        except TreeError as error:
            refused.append(Refused(name, str(error).removeprefix(f"card {name}: ")))
    return list(fitting.values()), refused


def _edited(card: Card, editor: str) -> Card:
    """The card after a person edited its text. A text that breaks a rule is kept, and the error says where."""
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
        text = decoded(path.read_bytes(), str(path)).rstrip("\n")
        after = card.with_payload(card.payload if text == card.payload.rstrip("\n") else text)
    except KaceError as error:
        raise UsageError(
            f"{error.message}; nothing changed",
            fix=f"{error.fix}; your text is kept: kace tree edit ... --payload {path}",
        ) from None
    path.unlink()
    return after
