"""Cards that a person writes: from a file or in an editor, and tried on a problem without and with the tree."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from kace.api import asolve_config
from kace.cards.card import Card, read_card
from kace.cards.draft import TEMPLATE, read_draft
from kace.cards.journal import author
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add
from kace.cli.models import ensure_weights
from kace.cli.options import DATA, Typed, option
from kace.cli.side_by_side import SideBySide, colour_of
from kace.cli.streams import decoded, note, print_lines, read_input, run_async
from kace.cli.terminal import RunProgress
from kace.config import tree_path
from kace.errors import KaceError, UsageError
from kace.problems import Problem, check_problem_text
from kace.words import counted

MAX_BYTES = 256 << 20
TREE = typer.Argument(
    metavar="TREE",
    help="A tree's directory; or a JSON file of cards or `starter` (read only).",
    parser=tree_path,
)
STORE = typer.Argument(
    metavar="TREE", help="A tree's directory.", show_default=False, parser=tree_path
)


def new_card(
    tree: Path = STORE,
    file: str = option(
        DATA,
        None,
        "--file",
        "-f",
        help="The card's text; '-' or a pipe is standard input.",
    ),
) -> None:
    """Write a card: a name, when it helps, the rule, two worked examples. In a terminal, a template opens in $EDITOR.

    The rest has defaults: the card is medium, of every domain, and experimental. See docs/quickstart.md.
    """
    store = store_at(tree)
    known = store.load()
    source = f"written by {author()}"
    own = (
        None
        if file is not None or sys.stdin is None or not sys.stdin.isatty()
        else draft_file(TEMPLATE, ".card.md")
    )
    while True:
        if own:
            open_editor(own)
        draft = read_draft(
            read_input(str(own or file or "-"), MAX_BYTES, decoded), source, known
        )
        for change in draft.changes:
            note(f"changed: {change}")
        for fault in draft.faults:
            note(f"- the card {fault.what}. Fix: {fault.fix}")
        if draft.card:
            break
        if not own or not typer.confirm("Edit it again?", default=True, err=True):
            fix = (
                f"mend the text, then: kace tree new-card {tree} --file {own or 'FILE'}"
            )
            raise KaceError(
                f"{counted(len(draft.faults), 'fault')}; nothing was added", fix=fix
            )
    store.apply(Add(draft.card), author=author(), note="new card")
    if own:
        own.unlink()
    print(draft.card.card_id)
    note(f'try it with: kace tree try {tree} "A PROBLEM" --answer N')


def try_card(
    typed: Typed,
    tree: Path = TREE,
    problem: str = typer.Argument(help="The problem's text."),
    answer: str = option(
        DATA, None, help="The expected answer: right and wrong are then marked."
    ),
) -> None:
    """Solve a problem without the tree and with it, side by side: what did the cards change?"""
    check_problem_text(problem)
    config = typed.config(tree=str(tree))
    cards = open_tree(tree)
    asked = Problem(problem, answer)
    ensure_weights(config)
    with RunProgress(2) as progress:
        # Attempts that read no card are the same in both: they are made once, and kept.
        alone = config.model_copy(update={"tree": None})
        solved = [
            run_async(asolve_config(asked, each, observer=progress), resumable=True)
            for each in (alone, config)
        ]
    print_lines(SideBySide(cards, config.retrieval).lines(asked, *solved), colour_of)


def given_card(card: Card, data: bytes) -> Card:
    """The card that a file holds, or the card with the text that it holds."""
    if not data.lstrip().startswith(b"{"):
        return card.with_payload(decoded(data).rstrip("\n"))
    after = read_card(data)
    if after.card_id != card.card_id:
        fix = "edit keeps the id; add makes a new card"
        raise UsageError(f"the file holds {after.card_id}, not {card.card_id}", fix=fix)
    return after


def edited(card: Card) -> Card:
    """The card after a person edited its text. A text that breaks a rule is kept, and the error says where."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nothing to edit with",
            fix="name a FILE with the card or its text, or run it in a terminal",
        )
    draft = draft_file(card.payload + "\n", f".{card.card_id}.txt")
    open_editor(draft)
    try:
        text = read_input(str(draft), MAX_BYTES, decoded).rstrip("\n")
        after = card.with_payload(
            card.payload if text == card.payload.rstrip("\n") else text
        )
    except KaceError as error:
        fix = f"{error.fix}; your text is kept: kace tree edit TREE {card.card_id} {draft}"
        raise UsageError(f"{error.message}; nothing changed", fix=fix) from None
    draft.unlink()
    return after


def draft_file(text: str, suffix: str) -> Path:
    """A new file of its own to edit."""
    with tempfile.NamedTemporaryFile(
        "w", suffix=suffix, encoding="utf-8", delete=False
    ) as draft:
        draft.write(text)
    return Path(draft.name)


def open_editor(draft: Path) -> None:
    """Let the user edit a file, which stays whatever happens."""
    done = subprocess.run(
        ["sh", "-c", '${VISUAL:-${EDITOR:-vi}} "$1"', "sh", str(draft)], check=False
    )
    if done.returncode:
        said = f"the editor ended with {done.returncode}; nothing changed"
        raise KaceError(
            said, fix=f"set EDITOR, or name a FILE; your text is in {draft}"
        )


def store_at(path: Path) -> TreeStore:
    """The store in a directory; a JSON file is refused, since it can only be read."""
    if path.is_file():
        raise UsageError(
            f"{path} is a file, which can only be read",
            fix="kace tree init DIR FILE, then kace tree add",
        )
    return TreeStore.open(path)
