"""What Python holds of the files of kace: a tree, and a recorded run. Each shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kace.cards.card import Card, CardError
from kace.cards.diff import TreeDiff, diff, place
from kace.cards.draft import read_draft
from kace.cards.journal import author
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import Add, Domain, EpistemicTree
from kace.config import tree_path
from kace.errors import DataError, UsageError
from kace.ladder.record import Solution
from kace.ladder.tiers import TierName
from kace.markup import Html, join, tag
from kace.problems import MAX_LINE_BYTES
from kace.runs.metrics import Metrics
from kace.runs.table import SolveFilter, Table
from kace.words import counted

SHOWN = 20  # rows of a table in a notebook
NO_STORE = "begin one with kace.Tree.create, or open a tree's directory"


class Tree:
    """A tree of cards: a directory; or a file of cards or `starter`, which can only be read.

    It is what the `tree` of `solve`, `solve_many` and `evaluate` may be.
    """

    def __init__(self, path: str | Path) -> None:
        """The tree at a path, which must hold one. `Tree.open` says so in words."""
        self.path = tree_path(path)
        self._store = TreeStore.open(self.path) if self.path.is_dir() else None
        self._read = open_tree(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Tree:
        """The tree at a path, or `starter`, which ships with kace."""
        return cls(path)

    @classmethod
    def create(cls, path: str | Path, domains: Iterable[Domain] = ()) -> Tree:
        """Begin an empty tree in a new directory. A small one needs no domains."""
        TreeStore.create(Path(path), domains, author=author())
        return cls(path)

    @property
    def now(self) -> EpistemicTree:
        """The tree as it is on disk now, as a value that never changes."""
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
        """Add a card: its text as `kace tree new-card` takes it, a file of such a text, or a `Card`.

        A text with faults raises `CardError`, which tells all of them, and nothing is added.
        """
        if self._store is None:
            raise UsageError(f"{self.path} can only be read", fix=NO_STORE)
        if not isinstance(card, Card):
            card = self._drafted(_text(card) if isinstance(card, Path) else card)
        self._store.apply(Add(card), author=author(), note=note)
        return card

    def project(self, tier: str, *domains: str) -> tuple[Card, ...]:
        """The cards that a tier may read in these domains: ES none, MS medium ones, HS hard ones."""
        if tier not in list(TierName):
            raise UsageError(
                f"there is no tier '{tier[:20]}'", fix="choose ES, MS or HS"
            )
        tree = self.now
        if strange := next(
            (name for name in domains if name not in tree.domain_names), None
        ):
            known = (
                ", ".join(tree.domain_names)
                or "none: the tree has no domains, and every problem sees every card"
            )
            raise UsageError(
                f"the tree has no domain '{strange[:40]}'", fix=f"choose of {known}"
            )
        return tree.project(TierName(tier), domains)

    def diff(self, other: Tree | str | Path | int) -> TreeDiff:
        """What turns this tree into the other one; or, for a number, what changed here since that generation."""
        if not isinstance(other, int):
            return diff(
                self.now, other.now if isinstance(other, Tree) else Tree.open(other).now
            )
        if self._store is None:
            raise UsageError(
                f"{self.path} is a file, which has no generations", fix=NO_STORE
            )
        return diff(self._store.at(other), self.now)

    def _drafted(self, text: str) -> Card:
        draft = read_draft(text, f"written by {author()}", self.now)
        if draft.card is None:
            told = "; ".join(f"it {fault.what}" for fault in draft.faults)
            fixes = "; ".join(dict.fromkeys(fault.fix for fault in draft.faults))
            raise CardError(
                f"{counted(len(draft.faults), 'fault')} in the card, nothing was added: {told}",
                fix=fixes,
            )
        return draft.card

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
        size = f"{counted(len(self), 'card')}, {counted(len(self.domains), 'domain')}"
        return f"<Tree {self.path.name.partition('.jsonl')[0]}: {size}>"

    def _repr_html_(self) -> str:
        rows = [
            (card.card_id, card.body.partition("\n")[0], place(card), card.status.value)
            for card in self
        ]
        return _page(self, ("card", "rule", "place", "status"), rows)


class RecordedRun:
    """A run directory, of `evaluate`, of `solve_many` with `out`, or of a command."""

    def __init__(self, folder: str | Path) -> None:
        """Open the run in a folder. Raises `DataError` if there is none."""
        self.folder = Path(folder)
        self.table = Table.open(self.folder)

    def rows(self) -> list[dict[str, object]]:
        """Return one flat row per problem and seed, ready for `pandas.DataFrame`.

        `text` is `None` if the run keeps no problem texts, `correct` if no answer is
        expected.
        """
        return self.table.as_dicts()

    def solutions(self) -> Iterator[Solution]:
        """Iterate over the solutions, with their working if the run keeps its calls."""
        return self.table.solutions(texts=True)

    def metrics(self) -> Metrics:
        """Return every figure: accuracy with its intervals, calls, tokens, exits."""
        return self.table.metrics()

    def __len__(self) -> int:
        return len(self.table)

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        counts = self.table.counts()
        labelled = counts.solves - counts.unlabelled
        right = self.table.count(SolveFilter(right="yes"))
        score = f", {right} of {labelled} right" if labelled else ""
        name = self.table.name
        system = "" if name == self.folder.name else f"{name}, "
        solves = counted(counts.solves, "solve")
        return f"<RecordedRun {self.folder.name}: {system}{solves}{score}>"

    def _repr_html_(self) -> str:
        names = (
            "label",
            "text",
            "answer",
            "expected",
            "correct",
            "exit",
            "real_calls",
            "cards",
        )
        rows = []
        for row in self.rows():
            rows.append(["" if row[name] is None else str(row[name]) for name in names])
        return _page(self, names, rows)


def load_run(folder: str | Path) -> RecordedRun:
    """Open a run directory. Raises `DataError` if there is none."""
    return RecordedRun(folder)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_LINE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8", fix="save it as UTF-8") from None
    except OSError as error:
        raise DataError(
            f"{path}: {(error.strerror or str(error)).lower()}",
            fix="name a file that is there",
        ) from None


def _page(of: object, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """A headline and a table of the first rows."""
    told = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows[:SHOWN]]
    more = tag("p", f"and {len(rows) - SHOWN:,} more") if len(rows) > SHOWN else Html()
    return join(
        [
            tag("p", repr(of)[1:-1]),
            tag("table", tag("tr", *(tag("th", name) for name in names)), *told),
            more,
        ]
    )
