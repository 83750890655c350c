"""What of a run a page lists: filters, order and page, all in the address and all answered by SQL."""

from __future__ import annotations

import json
import re
import sqlite3
from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kace.ladder.tiers import ExitPath
from kace.runs.solves import RunIndex

MAX_WORDS = 200
NO_LADDER = "none"
EXITS = (*(path.value for path in ExitPath), NO_LADDER)
RESULTS = {"yes": "correct = 1", "no": "correct = 0", "failed": "failed"}
CARDS = {"shown": "n_cards > 0", "abstained": "abstained"}
CHANGES = {"gained": "correct = 1 AND was = 0", "lost": "correct = 0 AND was = 1"}
TEXTS = ("problem", "label", "family", "domain", "answer", "expected")
FIGURES = {
    name: name
    for name in (
        "seed",
        "input",
        "cached",
        "output",
        "attempts",
        "card_tokens",
        "seconds",
    )
}
FIGURES |= {
    "calls": "paper_calls",
    "tokens": "(input + output)",
    "cards": "n_cards",
    "right": "right_attempts",
}
_TERM = re.compile(r"([a-z_]+)([=<>])(.+)")
ORDERS: Mapping[str, tuple[str, ...]] = {
    "": (
        "CASE WHEN correct = 0 AND was = 1 THEN NOT n_cards WHEN correct = 1 AND was = 0 THEN 2 "
        "WHEN correct = 0 THEN 3 + NOT n_cards ELSE 5 END",
    ),
    "problem": ("label", "problem", "seed"),
    "seed": ("seed",),
    "result": ("CASE correct WHEN 1 THEN 2 WHEN 0 THEN 0 ELSE 1 END",),
    "exit": ("exit_rank",),
    "calls": ("paper_calls", "real_calls"),
    "tokens": ("input + output",),
    "cards": ("n_cards",),
    "seconds": ("seconds",),
}
"""What a table may be sorted by; a minus sign before the name turns it round. Equals stay in the run's order.
By itself, what cards broke comes first, then what else was lost, what was gained, and what is wrong."""


class Choice(NamedTuple):
    """What was asked for. A value that means nothing is as good as none, so that no address is an error."""

    exit: str = ""
    right: str = ""
    cards: str = ""  # whether cards were shown, or a tier had some and none was
    against: str = ""  # another run, by its name in the workspace
    change: str = (
        ""  # `gained`: right here and wrong there; `lost`: the other way round
    )
    q: str = ""  # words of the label, family, domain or hash, and terms over any field such as tokens>800 or card=ID
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """The choice that an address makes."""

        def one_of(name: str, known: Collection[str]) -> str:
            return value if (value := query.get(name, "")) in known else ""

        page = query.get("page", "")
        against = query.get("against", "")
        number = (
            max(1, int(page))
            if page.isascii() and page.isdigit() and len(page) < 10
            else 1
        )
        change = one_of("change", CHANGES) if against else ""
        q = " ".join(query.get("q", "")[:MAX_WORDS].split())
        sort = one_of("sort", {*ORDERS, *(f"-{name}" for name in ORDERS)})
        exit = one_of("exit", EXITS)
        right = one_of("right", RESULTS)
        cards = one_of("cards", CARDS)
        return cls(exit, right, cards, against, change, q, sort, number)

    @property
    def filtered(self) -> bool:
        """Whether some solves are left out."""
        return bool(self.exit or self.right or self.cards or self.change or self.q)

    def query(self, **changes: str | int) -> dict[str, str | int | None]:
        """The query of an address with some of it changed; another filter or order begins at the first page."""
        return self._asdict() | {"page": 1} | changes


VIEWS = {
    "broken by a card": Choice(change="lost", cards="shown"),
    "lost": Choice(change="lost"),
    "gained": Choice(change="gained"),
    "wrong": Choice(right="no"),
    "wrong, the right answer outvoted": Choice(right="no", q="right>0"),
    "wrong, all agreed at ES": Choice(right="no", exit=ExitPath.ES_UNANIMOUS.value),
    "without an answer": Choice(right="no", q="answer=none"),
}
"""What somebody looks for in a run."""


class ChosenSolves(NamedTuple):
    """The solves of a run that a choice leaves; `base` is the run that it is held against."""

    run: RunIndex
    choice: Choice
    base: RunIndex | None = None

    @property
    def positions(self) -> Sequence[int]:
        """Which solves those are, in the order chosen; kept, since a reader goes from page to page of one choice."""
        choice = self.choice._replace(page=1, against="")

        def find() -> Sequence[int]:
            where, values = _where(choice)
            turned = " DESC" if choice.sort.startswith("-") else ""
            keys = (
                *(
                    f"{key}{turned}"
                    for key in ORDERS.get(choice.sort.removeprefix("-"), ())
                ),
                "position",
            )
            solves = (
                self if choice.change or not choice.sort else self._replace(base=None)
            )
            found = solves.found(
                "position", f"WHERE {where} ORDER BY {', '.join(keys)}", *values
            )
            return array("q", (row[0] for row in found))

        return self.run.kept(
            ("positions", choice, self.base, self.base and self.base.version), find
        )

    def rows(self, limit: int, offset: int) -> list[sqlite3.Row]:
        """Some of them, each with `was`: whether it was right in the base."""
        wanted = json.dumps(list(self.positions[offset : offset + limit]))
        return self.found(
            "*", "JOIN json_each(?) ON value = position ORDER BY key", wanted
        )

    def found(self, columns: str, rest: str, *values: object) -> list[sqlite3.Row]:
        """What SQL finds in the solves with `was`."""
        was = "LEFT JOIN (SELECT problem, seed, correct AS was FROM other.solves) USING (problem, seed)"
        solves = (
            f"SELECT * FROM solves {was}"
            if self.base
            else "SELECT *, NULL AS was FROM solves"
        )
        with self.run.reading(self.base) as db:
            return db.execute(
                f"SELECT {columns} FROM ({solves}) {rest}", values
            ).fetchall()

    def views(self) -> dict[str, int]:
        """How many solves there are of each of `VIEWS`; those are left out that have none."""
        wheres = [*map(_where, VIEWS.values())]
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {sql})" for sql, _ in wheres)
        values = [each for _, found in wheres for each in found]
        found = dict(zip(VIEWS, self.found(counts, "", *values)[0], strict=True))
        found["lost"] *= (
            found["lost"] != found["broken by a card"]
        )  # else the same solves twice
        return {name: count for name, count in found.items() if count}

    def by_card(self, most: int) -> list[sqlite3.Row]:
        """Cards whose solves were right in the base and are wrong here: solves, those lost, and those gained."""
        sums = ", ".join(
            f"COUNT(*) FILTER (WHERE {sql}) AS {change}"
            for change, sql in CHANGES.items()
        )
        rest = "JOIN set_cards USING (card_set) GROUP BY card HAVING lost ORDER BY lost - gained DESC, card LIMIT ?"
        return self.found(f"card, COUNT(*) AS solves, {sums}", rest, most)

    def beside(self, problem: str, seed: int) -> tuple[int, list[sqlite3.Row | None]]:
        """Where a solve stands among them, from 1, with that before and that after; 0 where it is not chosen."""
        here = self.run.rows(
            "SELECT position FROM solves WHERE problem = ? AND seed = ?", problem, seed
        )
        if not here or here[0][0] not in (chosen := self.positions):
            return 0, []
        place = chosen.index(here[0][0])
        near = [
            self.rows(1, each) if each >= 0 else [] for each in (place - 1, place + 1)
        ]
        return place + 1, [next(iter(rows), None) for rows in near]


def _where(choice: Choice) -> tuple[str, list[object]]:
    """The solves of a choice in SQL, with its values."""
    kinds = ((RESULTS, choice.right), (CARDS, choice.cards), (CHANGES, choice.change))
    parts = [f"({known[value]})" for known, value in kinds if value]
    values = list[object]()
    if choice.exit:
        parts = [*parts, "COALESCE(exit, 'none') = ?"]
        values = [choice.exit]
    for word in choice.q.casefold().split():
        name, sign, value = (
            found.groups() if (found := _TERM.fullmatch(word)) else ("", "", word)
        )
        if name in FIGURES and value.replace(".", "", 1).isdecimal():
            sql = f"{FIGURES[name]} {sign} CAST(? AS REAL)"
        elif name in TEXTS and sign == "=":
            sql = f"lower(COALESCE({name}, 'none')) = ?"
        elif name == "card" and sign == "=":
            sql = "card_set IN (SELECT card_set FROM set_cards WHERE card = ? COLLATE NOCASE)"
        else:
            sql = "(instr(words, ?) OR substr(problem, 1, length(?)) = ?)"
            value = word
        parts.append(sql)
        values += [value] * sql.count("?")
    return " AND ".join(parts) or "1", values
