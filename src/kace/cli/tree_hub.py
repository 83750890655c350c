"""Trees that go to a hub, and come from one."""

from __future__ import annotations

from pathlib import Path

import typer

from kace.cli.options import Typed
from kace.cli.streams import note
from kace.cli.tree_card import TREE
from kace.errors import KaceError
from kace.redact import keep_secret
from kace.tree.remote import Repository
from kace.tree.store import open_tree
from kace.words import counted

URI = typer.Argument(
    metavar="URI", help="A repository of a hub: hf://[datasets/]owner/name[@revision].", show_default=False
)


def push(
    typed: Typed,
    tree: Path = TREE,
    uri: str = URI,
    public: bool = typer.Option(False, "--public", help="A repository that is not there yet is made public."),
) -> None:
    """Commit a tree's cards, and how they are read, to a repository of a hub: kace tree push my-tree hf://me/my-tree.

    Nothing else is sent: no history, no runs. HF_TOKEN is the token. A new repository is private.
    """
    config = typed.config()
    for key in config.secrets.values():
        keep_secret(key.get_secret_value())
    found = open_tree(tree)
    print(Repository.at(uri, config).push(found, tree, public=public))
    note(f"{counted(len(found), 'card')} pushed to {uri}")


def pull(
    typed: Typed,
    uri: str = URI,
    folder: Path = typer.Argument(metavar="DIR", help="A new directory.", show_default=False),
) -> None:
    """Make a tree of the cards in a repository of a hub: kace tree pull hf://someone/their-tree their-tree.

    Cards are screened as those of `kace tree add` are, and none counts as validated here. Exit 1 if any was refused.
    """
    done = Repository.at(uri, typed.config()).pull(folder)
    for name, changes in done.changed.items():
        note(f"changed {name}: {'; '.join(changes)}")
    for each in done.refused:
        note(f"refused {each}")
    print(folder)
    note(f"{counted(len(done.tree), 'card')} of {uri} at {done.commit[:12]}. Read them first: kace view {folder}")
    if done.refused:
        raise KaceError(f"{len(done.refused)} of {len(done.tree) + len(done.refused)} cards were refused")
