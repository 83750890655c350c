"""What of a run a page shows: filters, order and page, all in the address."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from kace.evaluation.arm import Row
from kace.solver.tiers import ExitPath
from kace.view.run_changes import Changes, changes_of
from kace.view.run_index import Key, RunIndex

PER_PAGE = 100
MAX_WORDS = 200
KEPT = 8
"""Selections that are kept."""

RESULTS: Final = ("yes", "no", "failed")
CHANGES: Final = ("gained", "lost")
NO_LADDER = "none"
_RANKS = {path: path.rank for path in ExitPath}
EXITS = (*(path.value for path in ExitPath), NO_LADDER)

_ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "problem": attrgetter("label", "problem", "seed"),
    "seed": attrgetter("seed"),
    "result": lambda row: 1 if row.correct is None else 2 * row.correct,
    "exit": lambda row: -1 if row.exit is None else _RANKS[row.exit],
    "calls": attrgetter("paper_calls", "real_calls"),
    "tokens": lambda row: row.input + row.output,
    "cards": lambda row: len(row.cards),
    "seconds": attrgetter("seconds"),
}
"""What a table may be sorted by; a minus sign before the name turns it round. Equals stay in the run's order."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for. A value that means nothing is as good as none, so that no address is an error."""

    page: int = 1
    exit: str = ""
    right: str = ""
    against: str = ""
    """Another run, by its name on the shelf."""
    change: str = ""
    """`gained`: right here and wrong there; `lost`: the other way round."""
    q: str = ""
    """Words that the label, the family or the domain must hold, or the beginning of the problem's hash."""
    sort: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """The choice that an address makes."""
        against = query.get("against", "")
        return cls(
            page=_page(query.get("page", "")),
            exit=_one_of(query.get("exit", ""), EXITS),
            right=_one_of(query.get("right", ""), RESULTS),
            against=against,
            change=_one_of(query.get("change", ""), CHANGES) if against else "",
            q=" ".join(query.get("q", "")[:MAX_WORDS].split()),
            sort=query.get("sort", "") if query.get("sort", "").removeprefix("-") in _ORDERS else "",
        )

    @property
    def filtered(self) -> bool:
        """Whether some solves are left out."""
        return bool(self.exit or self.right or self.change or self.q)

    def query(self, **changes: str | int) -> dict[str, str | int | None]:
        """The query of an address with some of it changed; another filter or order begins at the first page."""
        now = replace(self, **({"page": 1} | changes))  # type: ignore[arg-type]
        return {
            "exit": now.exit or None,
            "right": now.right or None,
            "against": now.against or None,
            "change": now.change or None,
            "q": now.q or None,
            "sort": now.sort or None,
            "page": now.page if now.page > 1 else None,
        }


class _Kept:
    """The last few selections: a reader goes from page to page, and from solve to solve, of the same one."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Sequence[Row]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Sequence[Row] | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Hashable, rows: Sequence[Row]) -> None:
        with self._lock:
            self._found[key] = rows
            while len(self._found) > KEPT:
                self._found.popitem(last=False)


_kept = _Kept()


def selected(index: RunIndex, choice: Choice, base: RunIndex | None) -> Sequence[Row]:
    """The rows of a run that a choice leaves, in its order. `base` is the run that it is held against."""
    if not choice.filtered and not choice.sort:
        return index.rows
    if not choice.change:
        base = None
    changes = None if base is None else changes_of(index, base)
    key = (index.version, base and base.version, replace(choice, page=1, against=""))
    rows = _kept.get(key)
    if rows is None:
        rows = chosen(index.rows, choice, changes)
        _kept.put(key, rows)
    return rows


def chosen(rows: Iterable[Row], choice: Choice, changes: Changes | None) -> Sequence[Row]:
    """The rows that a choice leaves, in its order."""
    found = rows
    if choice.exit:
        wanted = None if choice.exit == NO_LADDER else ExitPath(choice.exit)
        found = [row for row in found if row.exit is wanted]
    if choice.right == "failed":
        found = [row for row in found if row.failed]
    elif choice.right:
        right = choice.right == "yes"
        found = [row for row in found if row.correct is right]
    if choice.change:
        none: frozenset[Key] = frozenset()
        keys = none if changes is None else changes.gained if choice.change == "gained" else changes.lost
        found = [row for row in found if (row.problem, row.seed) in keys]
    if choice.q:
        found = _holding(found, choice.q)
    if not choice.sort:
        return tuple(found)
    return sorted(found, key=_ORDERS[choice.sort.removeprefix("-")], reverse=choice.sort.startswith("-"))


def _holding(rows: Iterable[Row], words: str) -> list[Row]:
    """The rows that hold every word. Families and domains are few, so each is searched once."""
    wanted = words.casefold().split()
    kept: dict[tuple[str | None, str | None], str] = {}
    found = []
    for row in rows:
        kind = (row.family, row.domain)
        if kind not in kept:
            kept[kind] = f"\n{row.family or ''}\n{row.domain or ''}".casefold()
        text = row.label.casefold() + kept[kind]
        if all(word in text or row.problem.startswith(word) for word in wanted):
            found.append(row)
    return found


def _page(value: str) -> int:
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 10 else 1


def _one_of(value: str, known: Sequence[str]) -> str:
    return value if value in known else ""
