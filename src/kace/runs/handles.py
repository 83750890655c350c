"""The tree of cards that `kace.Tree` opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kace.cards.card import Card, CardError
from kace.cards.diff import TreeDiff, diff
from kace.cards.formats import read_draft
from kace.cards.store import TreeStore, author, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import tree_path
from kace.errors import DataError, UsageError
from kace.ladder.tiers import TierName
from kace.problems import MAX_LINE_BYTES
from kace.words import counted

NO_STORE = "begin one with kace.Tree.create, or open a tree's directory"


class Tree:
    """A tree of cards: a directory, or a read-only file of cards or `starter`.

    It may be the `tree` of `solve`, `solve_many` and `evaluate`.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the tree at a path, or `starter`, which ships with kace."""
        self.path = tree_path(path)
        self._store = TreeStore.open(self.path) if self.path.is_dir() else None
        self._read = open_tree(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Tree:
        """Open the tree at a path, or `starter`, which ships with kace."""
        return cls(path)

    @classmethod
    def create(cls, path: str | Path, domains: Iterable[Domain] = ()) -> Tree:
        """Create an empty tree in a new directory. A small one needs no domains."""
        TreeStore.create(Path(path), domains, author=author())
        return cls(path)

    @property
    def now(self) -> EpistemicTree:
        """The tree as it is on disk now, as an immutable value."""
        return self._store.load() if self._store else self._read

    @property
    def cards(self) -> Mapping[str, Card]:
        """All cards by id."""
        return self.now.cards

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The branches of the tree."""
        return self.now.domains

    def add(self, card: str | Path | Card, note: str = "new card") -> Card:
        """Add a card: a `Card`, its text, or a file of its text.

        A text with faults raises `CardError`, which lists all of them.
        """
        if self._store is None:
            raise UsageError(f"{self.path} can only be read", fix=NO_STORE)
        if isinstance(card, Path):
            card = _read_text(card)
        if isinstance(card, str):
            card = self._parse_card(card)
        self._store.apply(Add(card), author=author(), note=note)
        return card

    def project(self, tier: str, *domains: str) -> tuple[Card, ...]:
        """Return the cards that a tier may read in these domains."""
        if tier not in list(TierName):
            what = f"there is no tier '{tier[:20]}'"
            raise UsageError(what, fix="choose ES, MS or HS")
        tree = self.now
        for name in domains:
            if name not in tree.domain_names:
                known = ", ".join(tree.domain_names)
                none = (
                    "none: the tree has no domains, and every problem sees every card"
                )
                what = f"the tree has no domain '{name[:40]}'"
                raise UsageError(what, fix=f"choose of {known or none}")
        return tree.project(TierName(tier), domains)

    def diff(self, other: Tree | str | Path | int) -> TreeDiff:
        """Return what turns this tree into another one.

        For a number, return what changed here since that generation.
        """
        if isinstance(other, int):
            if self._store is None:
                what = f"{self.path} is a file, which has no generations"
                raise UsageError(what, fix=NO_STORE)
            return diff(self._store.at(other), self.now)
        tree = other if isinstance(other, Tree) else Tree.open(other)
        return diff(self.now, tree.now)

    def _parse_card(self, text: str) -> Card:
        draft = read_draft(text, f"written by {author()}", self.now)
        if draft.card is not None:
            return draft.card
        faults = "; ".join(f"it {fault.what}" for fault in draft.faults)
        fixes = "; ".join(dict.fromkeys(fault.fix for fault in draft.faults))
        count = counted(len(draft.faults), "fault")
        raise CardError(
            f"{count} in the card, nothing was added: {faults}",
            fix=fixes,
        )

    def __len__(self) -> int:
        return len(self.now)

    def __iter__(self) -> Iterator[Card]:
        return iter(self.now)

    def __contains__(self, card_id: object) -> bool:
        return card_id in self.now

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        cards = counted(len(self), "card")
        name = self.path.name.partition(".jsonl")[0]
        return f"<Tree {name}: {cards}, {counted(len(self.domains), 'domain')}>"


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_LINE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8", fix="save it as UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"{path}: {reason}", fix="name a file that is there") from None
