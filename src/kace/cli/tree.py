"""`kace tree`: look at a tree of cards, change it, and go back."""

from __future__ import annotations

import typer

from kace.cli import tree_edit, tree_history, tree_show

tree_app = typer.Typer(
    help="Look at a tree of cards, change it, compare it, go back.", no_args_is_help=True, rich_markup_mode=None
)
tree_app.command()(tree_edit.init)
tree_app.command()(tree_show.show)
tree_app.command()(tree_show.cards)
tree_app.command()(tree_show.card)
tree_app.command()(tree_edit.add)
tree_app.command()(tree_edit.edit)
tree_app.command()(tree_edit.relocate)
tree_app.command()(tree_edit.deprecate)
tree_app.command()(tree_history.log)
tree_app.command()(tree_history.diff)
tree_app.command()(tree_history.revert)
tree_app.command()(tree_history.merge)
tree_app.command()(tree_history.freeze)
tree_app.command()(tree_history.thaw)
tree_app.command()(tree_show.verify)
tree_app.command("import")(tree_edit.import_)
tree_app.command()(tree_show.export)
