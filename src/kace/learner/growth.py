"""The tree as it grows: the changes of every step reach the store once, also after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kace.errors import KaceError
from kace.learner.notebook import Notebook, Step
from kace.learner.verdicts import Kept
from kace.tree.card import Status
from kace.tree.changes import Batch, Change, Deprecate, applied
from kace.tree.store import TreeStore
from kace.tree.tree import Domain, EpistemicTree


class Grown(Kept):
    """The tree after a step."""

    hash: str
    cards: int
    """Cards that may be shown."""


class Growth:
    """The tree in memory and on disk, changed by named steps only."""

    def __init__(self, folder: Path, notebook: Notebook, *, author: str) -> None:
        self.folder = folder
        self.notebook = notebook
        self.author = author
        self.tree = EpistemicTree.of((), ())

    def plant(self, domains: Sequence[Domain]) -> None:
        """Begin the tree with its registry."""
        step = Step("plan", "plant")
        self.tree = EpistemicTree.of(domains, ())
        if self.notebook.recall(step, Grown) is None:
            store = TreeStore(self.folder)
            if not store.cards_path.exists():
                TreeStore.create(self.folder, domains, author=self.author, note=str(step))
            self._must_hold(store.load(), (self.tree,))
            self._done(step)

    def commit(self, step: Step, changes: Sequence[Change]) -> EpistemicTree:
        """Make the changes of a step, all or none."""
        before, batch = self.tree, Batch(tuple(changes))
        self.tree = applied(before, batch) if changes else before
        if known := self.notebook.recall(step, Grown):
            if known.hash != self.tree.content_hash():
                raise KaceError(f"{self.folder}: the step '{step}' does not repeat", fix="choose another --out")
        else:
            store = TreeStore.open(self.folder)
            found = store.load()
            self._must_hold(found, (before, self.tree))
            if found != self.tree:
                store.apply(batch, author=self.author, note=str(step))
            self._done(step)
        return self.tree

    def snapshot(self, epoch: int) -> None:
        """Keep the tree as it is after an epoch."""
        step = Step("close", "snapshot", epoch)
        if self.notebook.recall(step, Grown) is None:
            TreeStore.open(self.folder).snapshot(f"epoch-{epoch}")
            self._done(step)

    def freeze(self) -> EpistemicTree:
        """Close the tree to changes, under its content hash."""
        step = Step("close", "freeze")
        if self.notebook.recall(step, Grown) is None:
            TreeStore.open(self.folder).freeze(author=self.author, note=str(step))
            self._done(step)
        return self.tree

    def _must_hold(self, found: EpistemicTree, expected: tuple[EpistemicTree, ...]) -> None:
        if found not in expected:
            raise KaceError(
                f"{self.folder} holds another tree than the learner left there",
                fix="give an --out of its own; a tree is not edited while it is learned",
            )

    def _done(self, step: Step) -> None:
        shown = sum(card.status is not Status.DEPRECATED for card in self.tree)
        self.notebook.write(step, Grown(hash=self.tree.content_hash(), cards=shown))


def unproven(tree: EpistemicTree) -> tuple[Change, ...]:
    """The changes that leave only cards with a validated lift to be shown."""
    return tuple(Deprecate(card.card_id) for card in tree if card.status is Status.EXPERIMENTAL)
