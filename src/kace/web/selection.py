"""What of a run a page lists: filters, order and page, all in the address and all answered by SQL."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kace.solver.tiers import ExitPath
from kace.web.runs import RunIndex

MAX_WORDS = 200
NO_LADDER = "none"
EXITS = (*(path.value for path in ExitPath), NO_LADDER)
RESULTS = {"yes": "correct = 1", "no": "correct = 0", "failed": "failed"}
CARDS = {"shown": "n_cards > 0", "abstained": "abstained"}
CHANGES = {"gained": "correct = 1 AND was = 0", "lost": "correct = 0 AND was = 1"}
ORDERS: Mapping[str, tuple[str, ...]] = {
    "problem": ("label", "problem", "seed"),
    "seed": ("seed",),
    "result": ("CASE correct WHEN 1 THEN 2 WHEN 0 THEN 0 ELSE 1 END",),
    "exit": ("exit_rank",),
    "calls": ("paper_calls", "real_calls"),
    "tokens": ("input + output",),
    "cards": ("n_cards",),
    "seconds": ("seconds",),
}
"""What a table may be sorted by; a minus sign before the name turns it round. Equals stay in the run's order."""


class Choice(NamedTuple):
    """What was asked for. A value that means nothing is as good as none, so that no address is an error."""

    exit: str = ""
    right: str = ""
    cards: str = ""  # whether cards were shown, or a tier had some and none was
    against: str = ""  # another run, by its name in the workspace
    change: str = ""  # `gained`: right here and wrong there; `lost`: the other way round
    q: str = ""  # words that the label, the family or the domain must hold, or the beginning of the problem's hash
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """The choice that an address makes."""

        def one_of(name: str, known: Collection[str]) -> str:
            return value if (value := query.get(name, "")) in known else ""

        page, against = query.get("page", ""), query.get("against", "")
        number = max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 10 else 1
        change, q = one_of("change", CHANGES) if against else "", " ".join(query.get("q", "")[:MAX_WORDS].split())
        sort = one_of("sort", {*ORDERS, *(f"-{name}" for name in ORDERS)})
        exit, right, cards = one_of("exit", EXITS), one_of("right", RESULTS), one_of("cards", CARDS)
        return cls(exit, right, cards, against, change, q, sort, number)

    @property
    def filtered(self) -> bool:
        """Whether some solves are left out."""
        return bool(self.exit or self.right or self.cards or self.change or self.q)

    def query(self, **changes: str | int) -> dict[str, str | int | None]:
        """The query of an address with some of it changed; another filter or order begins at the first page."""
        return self._asdict() | {"page": 1} | changes


class ChosenSolves(NamedTuple):
    """The solves of a run that a choice leaves; `base` is the run that it is held against."""

    run: RunIndex
    choice: Choice
    base: RunIndex | None = None

    @property
    def positions(self) -> Sequence[int]:
        """Which solves those are, in the order chosen."""
        choice = self.choice._replace(page=1, against="")
        return _positions(self.run, self.run.version, self.base, self.base and self.base.version, choice)

    def rows(self, limit: int, offset: int) -> list[sqlite3.Row]:
        """Some of them, each with `was`: whether it was right in the base."""
        wanted = json.dumps(list(self.positions[offset : offset + limit]))
        return self.found("*", "JOIN json_each(?) ON value = position ORDER BY key", wanted)

    def found(self, columns: str, rest: str, *values: object) -> list[sqlite3.Row]:
        """What SQL finds in the solves with `was`."""
        was = "LEFT JOIN (SELECT problem, seed, correct AS was FROM other.solves) USING (problem, seed)"
        solves = f"SELECT * FROM solves {was}" if self.base else "SELECT *, NULL AS was FROM solves"
        with self.run.reading(self.base) as db:
            return db.execute(f"SELECT {columns} FROM ({solves}) {rest}", values).fetchall()

    def changes(self) -> tuple[int, int]:
        """How many solves the run gained and lost against the base."""
        gained, lost = (len(self._replace(choice=Choice(change=change)).positions) for change in CHANGES)
        return gained, lost

    def beside(self, problem: str, seed: int) -> tuple[int, list[sqlite3.Row | None]]:
        """Where a solve stands among them, from 1, with that before and that after; 0 where it is not chosen."""
        here = self.run.rows("SELECT position FROM solves WHERE problem = ? AND seed = ?", problem, seed)
        if not here or here[0][0] not in (chosen := self.positions):
            return 0, []
        place = chosen.index(here[0][0])
        near = [self.rows(1, each) if each >= 0 else [] for each in (place - 1, place + 1)]
        return place + 1, [next(iter(rows), None) for rows in near]


@lru_cache(maxsize=16)
def _positions(run: RunIndex, v: int, base: RunIndex | None, base_v: int | None, choice: Choice) -> Sequence[int]:
    """Kept for the last few choices: a reader goes from page to page, and from solve to solve, of the same one."""
    kinds = ((RESULTS, choice.right), (CARDS, choice.cards), (CHANGES, choice.change))
    parts = ["1", *(known[value] for known, value in kinds if value)]
    words = choice.q.casefold().split()
    parts += ["COALESCE(exit, 'none') = ?"] * bool(choice.exit)
    parts += ["(instr(words, ?) OR substr(problem, 1, length(?)) = ?)"] * len(words)
    turned = " DESC" if choice.sort.startswith("-") else ""
    keys = (*(f"{key}{turned}" for key in ORDERS.get(choice.sort.removeprefix("-"), ())), "position")
    values = [*filter(None, [choice.exit]), *(each for word in words for each in [word] * 3)]
    solves = ChosenSolves(run, choice, base if choice.change else None)
    found = solves.found("position", f"WHERE {' AND '.join(parts)} ORDER BY {', '.join(keys)}", *values)
    return array("q", (row[0] for row in found))
