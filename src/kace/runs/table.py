"""The read model of a run: one SQLite file that follows the run's append-only files.

A run directory is plain JSONL. `Table.open` indexes its trace once, in the user's
cache directory, and later opens read only what was appended. Reports, comparisons,
pages, `kace.load_run` and MCP read runs through it. The index is disposable: a
missing, damaged or unusable one is built again.

Run directories may come from strangers: only plain files are read, links are never
followed, lines and damage are bounded, and every value reaches SQL as a parameter.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import chain, starmap
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kace.config import user_cache
from kace.errors import DataError, KaceError, counted
from kace.files import Unreadable, cannot_write, open_plain, whole_lines
from kace.ladder.record import (
    Attempt,
    Damage,
    Outcome,
    Solution,
    parse_solution,
)
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.models.cache import CallStore
from kace.problems import Problem, problem_of
from kace.runs.manifest import Manifest

if TYPE_CHECKING:
    from kace.config import Price
    from kace.runs.metrics import Clusters, Metrics

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of the file."""

TRACE = "traces.jsonl"
PROBLEMS = "problems.jsonl"
VERSION = 2  # of the schema; another version uses another index
BATCH = 1_000  # lines between two calls of `progress`
MARK = 4_096  # bytes before the reading position that identify a file
TIMEOUT = 20.0  # seconds to wait for another process that writes the index
OLD = 30 * 86_400  # seconds after which an unused index is removed
RECENT = 30.0  # seconds since the last write within which a run is running
MAX_DAMAGED = 10_000  # damaged lines after which a file is refused
LIMIT = 1 << 40  # numbers from here on are damage: sums must stay exact
MOST_SEED = 1 << 63
MAX_WORDS = 200  # characters of a search text
NO_LADDER = "none"
FIRST = ("problem", "label", "text", "seed", "answer", "expected", "correct")
"""The columns that rows for people begin with."""


@dataclass(frozen=True, slots=True)
class SolveRow:
    """One problem solved once, in figures; 0 where they are not known."""

    problem: str
    label: str
    family: str | None
    domain: str | None
    seed: int
    correct: bool | None
    failed: bool = False  # whether a call was lost to the provider
    exit: ExitPath | None = None
    paper_calls: int = 0
    real_calls: int = 0
    attempts: int = 0  # attempts that ended; cancelled ones are not counted
    right_attempts: int = 0
    input: int = 0  # prompt tokens of the solver, cached ones included
    cached: int = 0
    output: int = 0
    classifier_calls: int = 0
    classifier_input: int = 0
    classifier_cached: int = 0
    classifier_output: int = 0
    card_tokens: int = 0  # of learned text in the fullest prompt of the solve
    read_tokens: int = 0  # of learned text over all tiers
    estimated: bool = (
        False  # whether those are estimated from the text's length
    )
    cards: tuple[str, ...] = ()  # ids of the cards shown, each once, in order
    abstained: bool = (
        False  # whether no card was shown though some were eligible
    )
    seconds: float = 0.0
    truncated: int = 0  # attempts that the token cap cut before an answer
    batch_input: int = 0  # tokens of calls made in batches, part of those above
    batch_cached: int = 0
    batch_output: int = 0
    answer: str | None = None
    expected: str | None = None
    was: bool | None = None  # `correct` of the same solve in the base run

    @property
    def name(self) -> str:
        """The problem's name in tables."""
        return self.label or self.problem[:8]


_SHARED = (
    "problem",
    "label",
    "family",
    "domain",
    "seed",
    "correct",
    "failed",
    "exit",
    "paper_calls",
    "real_calls",
    "abstained",
    "seconds",
    "answer",
    "expected",
)
"""Fields that a row has of the solution under the same names."""


def row_of(solution: Solution) -> SolveRow:
    """Return the figures of a solution."""
    usage = solution.usage
    routing = Usage()
    classifier_calls = 0
    read = [0]  # tokens of learned text, by tier
    shown = {}
    for recall in solution.recalls:
        read.append(recall.tokens)
        shown.update(dict.fromkeys(recall.cards))
        classifier_calls += recall.classifier_calls
        routing += Usage(
            recall.classifier_input,
            recall.classifier_cached,
            recall.classifier_output,
        )
    outcomes = Counter(attempt.outcome for attempt in solution.attempts)
    right = 0
    for attempt in solution.attempts:
        ended = attempt.outcome is not Outcome.CANCELLED
        right += ended and attempt.correct is True
    batch = Usage()
    for attempt in solution.made:
        if attempt.batch:
            batch += attempt.usage
    shared = {name: getattr(solution, name) for name in _SHARED}
    return SolveRow(
        **shared,
        attempts=outcomes.total() - outcomes[Outcome.CANCELLED],
        right_attempts=right,
        input=usage.input,
        cached=usage.cached,
        output=usage.output,
        classifier_calls=classifier_calls,
        classifier_input=routing.input,
        classifier_cached=routing.cached,
        classifier_output=routing.output,
        card_tokens=max(read),
        read_tokens=sum(read),
        estimated=any(recall.estimated for recall in solution.recalls),
        cards=tuple(shown),
        truncated=outcomes[Outcome.TRUNCATED],
        batch_input=batch.input,
        batch_cached=batch.cached,
        batch_output=batch.output,
    )


# What may be listed

RESULTS = {"yes": "correct = 1", "no": "correct = 0", "failed": "failed"}
CARDS = {"shown": "cards <> '[]'", "abstained": "abstained"}
CHANGES = {
    "gained": "correct = 1 AND was = 0",
    "lost": "correct = 0 AND was = 1",
}
FIELDS = {
    "problem": "problem",
    "label": "label",
    "family": "family",
    "domain": "domain",
    "answer": "answer",
    "expected": "expected",
    "seed": "seed",
    "input": "input",
    "output": "output",
    "attempts": "attempts",
    "seconds": "seconds",
    "calls": "paper_calls",
    "tokens": "(input + output)",
    "cards": "json_array_length(cards)",
    "right": "right_attempts",
}
"""What a search term such as `tokens>800` or `family=sums` may name."""
_TERM = re.compile(r"([a-z_]+)([=<>])(.+)")


@dataclass(frozen=True, slots=True)
class SolveFilter:
    """Which solves to list. An empty field selects all."""

    right: str = ""  # a key of RESULTS
    exit: str = ""  # a value of ExitPath, or NO_LADDER
    cards: str = ""  # a key of CARDS
    change: str = ""  # a key of CHANGES; needs a base run
    text: str = (
        ""  # words of label, family or domain; terms: card=ID, tokens>800
    )
    problem: str = ""  # the hash of one problem

    def sql(self) -> tuple[str, list[object]]:
        """Return the condition in SQL and its parameters."""
        parts = ["1"]
        values: list[object] = []
        for choices, name in (
            (RESULTS, self.right),
            (CARDS, self.cards),
            (CHANGES, self.change),
        ):
            if name:
                parts.append(choices[name])
        if self.exit:
            parts.append("COALESCE(exit, 'none') = ?")
            values.append(self.exit)
        if self.problem:
            parts.append("problem = ?")
            values.append(self.problem)
        for word in self.text[:MAX_WORDS].casefold().split():
            parts.append(_term_sql(word))
            values.append(_TERM.sub(r"\3", word))
        return " AND ".join(f"({part})" for part in parts), values


def _term_sql(word: str) -> str:
    """Return the condition of one search word, with one parameter."""
    match = _TERM.fullmatch(word)
    if match is None:
        return "instr(words, ?)"
    name, sign, _ = match.groups()
    if name == "card" and sign == "=":
        return "? IN (SELECT lower(value) FROM json_each(cards))"
    if name not in FIELDS:
        return "0 AND ?"
    if sign == "=":
        return f"lower(COALESCE({FIELDS[name]}, 'none')) = ?"
    return f"{FIELDS[name]} {sign} CAST(? AS REAL)"


ALL = SolveFilter()
VIEWS = {
    "broken by a card": SolveFilter(change="lost", cards="shown"),
    "lost": SolveFilter(change="lost"),
    "gained": SolveFilter(change="gained"),
    "wrong": SolveFilter(right="no"),
    "wrong, the right answer outvoted": SolveFilter(right="no", text="right>0"),
    "wrong, all agreed at ES": SolveFilter(
        right="no", exit=ExitPath.ES_UNANIMOUS.value
    ),
    "without an answer": SolveFilter(right="no", text="answer=none"),
}
"""Groups of solves that people look for, by name."""

ORDERS: Mapping[str, str] = {
    "": (
        "CASE WHEN correct = 0 AND was = 1 THEN cards = '[]'"
        " WHEN correct = 1 AND was = 0 THEN 2"
        " WHEN correct = 0 THEN 3 + (cards = '[]') ELSE 5 END"
    ),
    "problem": "label || problem",
    "seed": "seed",
    "result": "CASE correct WHEN 1 THEN 2 WHEN 0 THEN 0 ELSE 1 END",
    "exit": "exit_rank",
    "calls": "paper_calls + real_calls / 1000.0",
    "tokens": "input + output",
    "cards": "json_array_length(cards)",
    "seconds": "seconds",
}
"""Sort keys by name; a minus sign before the name reverses. Ties keep the run's order.
The default puts solves broken by cards first, then other losses, gains, and wrong ones."""
GROUPS = {
    "exit": "exit_rank DESC",
    "domain": "domain",
    "family": "SUM(correct) - COUNT(correct), family",
    "seed": "seed",
}
"""Columns that solves may be grouped by, with the order of the groups."""


@dataclass(frozen=True, slots=True)
class CardUse:
    """How often a card was shown, over the solves of a run."""

    card: str
    shown: int
    right: int
    wrong: int
    gained: int = 0  # wrong in the base run and right here, of those shown
    broken: int = 0  # right in the base run and wrong here

    def __add__(self, other: CardUse) -> CardUse:
        return CardUse(
            self.card,
            self.shown + other.shown,
            self.right + other.right,
            self.wrong + other.wrong,
            self.gained + other.gained,
            self.broken + other.broken,
        )

    @property
    def flagged(self) -> bool:
        """Whether it breaks more than it gains."""
        return self.broken > self.gained


class Share(NamedTuple):
    """The right solves of one group, such as a domain."""

    group: Any
    right: int
    labelled: int


class Place(NamedTuple):
    """The position of a record in the trace."""

    offset: int
    length: int
    failed: bool


class Counts(NamedTuple):
    """How many problems, seeds and solves of each kind a run has."""

    solves: int
    problems: int
    seeds: tuple[int, ...]
    labelled: int  # solves with a known answer
    failed: int  # solves that lost a call to the provider
    shown: int  # solves that were shown a card
    abstained: int
    retried: (
        int  # solves that replace an earlier one of the same problem and seed
    )

    @property
    def complete(self) -> bool:
        """Whether every problem was solved on every seed."""
        return self.solves == self.problems * len(self.seeds)


class FileState(NamedTuple):
    """What identifies the content of a file cheaply. All 0 if there is none."""

    inode: int = 0
    size: int = 0
    changed: float = 0.0

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Return the state of the file at a path."""
        try:
            found = path.stat(follow_symlinks=False)
        except OSError:
            return cls()
        return cls(found.st_ino, found.st_size, found.st_mtime)


# The index

_NAMES = tuple(field.name for field in fields(SolveRow) if field.name != "was")
_BOOLS = ("correct", "failed", "estimated", "abstained", "was")
_COLUMNS = (*_NAMES, "exit_rank", "words", "place", "length")
_SCHEMA = f"""
    CREATE TABLE IF NOT EXISTS trace (place, number, mark, size, changed);
    CREATE TABLE IF NOT EXISTS solves (position INTEGER PRIMARY KEY,
        {", ".join(_COLUMNS)}, retried DEFAULT 0, UNIQUE (problem, seed));
    CREATE TABLE IF NOT EXISTS damage (line INTEGER PRIMARY KEY, reason);
"""
_UPSERT = (
    f"INSERT INTO solves ({', '.join(_COLUMNS)})"
    f" VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"
    " ON CONFLICT (problem, seed) DO UPDATE SET "
    + ", ".join(f"{name} = :{name}" for name in _COLUMNS)
    + ", retried = 1"
)


class Table:
    """A run as rows, texts and figures.

    Opening reads what was appended to the trace since the last time; `refresh` reads
    on. A torn last line is left for the next read. Safe to use from several threads
    and processes.
    """

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        folder: Path | None,
        index: Path | None,
    ) -> None:
        """Use `Table.open` or `Table.of`."""
        self.name = name
        self.manifest = manifest
        self.folder = folder
        self.within = folder
        self.version = FileState()  # of the trace when it was last read
        self._index = index or _spare_index()
        self._on_disk = index is not None
        self._kept: dict[object, tuple[object, Any]] = {}

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        within: Path | None = None,
        allow_empty: bool = False,
        progress: Progress | None = None,
    ) -> Table:
        """Open the run in `folder` and read what is new in it.

        `within` is a folder above it that may hold its calls. A run without solves yet
        is an error unless `allow_empty`. Raises `DataError` if there is no readable run.
        """
        given = Path(folder)
        manifest = Manifest.read(given / "run.json")
        if not allow_empty and not (given / TRACE).is_file():
            raise DataError(
                f"{given}: no {TRACE} in it",
                fix="give the --out of kace eval, solve or select",
            )
        place = given.resolve()
        name = manifest.system or place.name
        table = cls(name, manifest, place, _index_path(place))
        table.within = (within or given).resolve()
        table.refresh(progress)
        return table

    @classmethod
    def of(
        cls,
        rows: Iterable[SolveRow],
        *,
        name: str,
        manifest: Mapping[str, object] | None = None,
        folder: Path | None = None,
    ) -> Table:
        """Return a table of rows in a temporary file; later rows replace earlier."""
        table = cls(name, Manifest(manifest or {}), folder, None)
        with table._database() as db:
            db.executescript(_SCHEMA)
            db.execute("BEGIN")
            db.executemany(_UPSERT, (_columns_of(row, 0, 0) for row in rows))
            db.execute("COMMIT")
        return table

    def named(self, name: str) -> Table:
        """Return the same table under another name."""
        found = copy.copy(self)
        found.name = name
        return found

    def refresh(self, progress: Progress | None = None) -> None:
        """Read what was appended since the last read."""
        if not self._on_disk:
            return
        try:
            self._read_on(progress)
        except KaceError:
            raise
        except (sqlite3.DatabaseError, OSError) as error:
            self._replace_index(error)
            try:
                self._read_on(progress)
            except (sqlite3.DatabaseError, OSError) as again:
                if isinstance(again, sqlite3.DatabaseError):
                    again = OSError(str(again))  # of a full disk
                raise cannot_write(self._index, again) from None

    def select(
        self,
        sql: str,
        values: Sequence[object] = (),
        base: Table | None = None,
    ) -> list[sqlite3.Row]:
        """Return the rows of a query. The tables of `base` are `other.NAME`.

        Text from outside must be passed in `values`.
        """
        try:
            return self._select(sql, values, base)
        except (sqlite3.DatabaseError, OSError) as error:
            for table in (self, base):
                if table is not None and table._on_disk:
                    table._replace_index(error)
                    table.refresh()
        return self._select(sql, values, base)

    def _select(
        self,
        sql: str,
        values: Sequence[object],
        base: Table | None,
    ) -> list[sqlite3.Row]:
        with self._database() as db:
            if base is not None:
                db.execute("ATTACH DATABASE ? AS other", [str(base._index)])
            return db.execute(sql, values).fetchall()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        self._index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(
            self._index, timeout=TIMEOUT, isolation_level=None
        )
        with closing(connection) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA synchronous = OFF")  # it can be built again
            yield db

    def _replace_index(self, error: Exception) -> None:
        """Use a temporary index, whatever is wrong with the one in the cache."""
        if type(error) is sqlite3.DatabaseError:  # its content, not its folder
            with suppress(OSError):
                self._index.unlink()
        self._index = _spare_index()

    def _read_on(self, progress: Progress | None) -> None:
        """Index the new lines of the trace, all or none."""
        assert self.folder is not None
        path = self.folder / TRACE
        with self._database() as db:
            db.executescript(_SCHEMA)
            db.execute("BEGIN IMMEDIATE")
            # Inside the transaction: with an older state, what another process has
            # read since would look like more than the file holds.
            state = FileState.of(path)
            known = db.execute("SELECT * FROM trace").fetchone()
            place = number = 0
            if known and (known["size"], known["changed"]) == state[1:]:
                self.version = state
                return
            if known and _is_replaced(path, state, known):
                db.execute("DELETE FROM solves")
                db.execute("DELETE FROM damage")
            elif known:
                place = known["place"]
                number = known["number"]
            if state != FileState():
                place, number = _read_lines(db, path, place, number, progress)
            db.execute("DELETE FROM trace")
            values = (place, number, _mark(path, place), *state[1:])
            db.execute("INSERT INTO trace VALUES (?, ?, ?, ?, ?)", values)
            db.execute("COMMIT")
        self.version = state

    # Solves

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a run without solves is still a run

    def __iter__(self) -> Iterator[SolveRow]:
        """Iterate over the last solve of every problem and seed, ordered by both."""
        sql = f"SELECT * FROM {_with_base(None)} ORDER BY problem, seed"
        yield from map(_row, self.select(sql))

    def solves(
        self,
        where: SolveFilter = ALL,
        *,
        sort: str | None = None,
        limit: int = -1,
        offset: int = 0,
        base: Table | None = None,
    ) -> list[SolveRow]:
        """List the solves that pass a filter, in the run's order or sorted by ORDERS.

        With `base`, each row has `was`: whether the same solve was right there.
        """
        found, values = _list_sql("*", where, sort, base)
        values += [limit, offset]
        rows = self.select(f"{found} LIMIT ? OFFSET ?", values, base)
        return list(map(_row, rows))

    def count(
        self, where: SolveFilter = ALL, *, base: Table | None = None
    ) -> int:
        """Count the solves that pass a filter."""
        found, values = _list_sql("COUNT(*)", where, None, base)
        return int(self.select(found, values, base)[0][0])

    def neighbours(
        self,
        problem: str,
        seed: int,
        where: SolveFilter = ALL,
        *,
        sort: str | None = None,
        base: Table | None = None,
    ) -> tuple[int, SolveRow | None, SolveRow | None]:
        """Return the position of a solve in a list, from 1, and the rows beside it.

        The position is 0 if the solve does not pass the filter.
        """
        rows = self.solves(where, sort=sort, base=base)
        for place, row in enumerate(rows, 1):
            if (row.problem, row.seed) == (problem, seed):
                before = rows[place - 2] if place > 1 else None
                after = rows[place] if place < len(rows) else None
                return place, before, after
        return 0, None, None

    def counts(self) -> Counts:
        """Count problems, seeds and solves by kind."""
        row = self.select(
            "SELECT COUNT(*), COUNT(DISTINCT problem), COUNT(correct),"
            " COUNT(*) FILTER (WHERE failed),"
            " COUNT(*) FILTER (WHERE cards <> '[]'),"
            " COUNT(*) FILTER (WHERE abstained),"
            " COUNT(*) FILTER (WHERE retried) FROM solves"
        )[0]
        seeds = self.select("SELECT DISTINCT seed FROM solves ORDER BY seed")
        return Counts(
            row[0], row[1], tuple(chain.from_iterable(seeds)), *row[2:]
        )

    def views(self, base: Table | None = None) -> dict[str, int]:
        """Count the solves of each of VIEWS, leaving out empty groups."""
        found = {}
        for name, where in VIEWS.items():
            if base is not None or not where.change:
                found[name] = self.count(where, base=base)
        if found.get("lost") == found.get("broken by a card"):
            found.pop("lost", None)  # the same solves
        return {name: count for name, count in found.items() if count}

    def shares(self, column: str, limit: int = 200) -> list[Share]:
        """Count the right and the labelled solves by one of GROUPS."""
        order = GROUPS[column]
        sql = (
            f"SELECT {column}, SUM(correct), COUNT(correct) FROM solves"
            f" WHERE correct IS NOT NULL AND {column} <> ''"
            f" GROUP BY {column} ORDER BY {order} LIMIT ?"
        )
        return list(starmap(Share, self.select(sql, [limit])))

    def exits(self) -> set[str]:
        """Return the exits that occur, NO_LADDER for systems without a ladder."""
        rows = self.select("SELECT DISTINCT COALESCE(exit, 'none') FROM solves")
        return set(chain.from_iterable(rows))

    def cards(
        self, card: str = "", *, base: Table | None = None
    ) -> list[CardUse]:
        """Count the solves that were shown each card, or one card, by id.

        With `base`, only labelled solves count that the base has, too.
        """
        paired = "1"
        if base is not None:
            paired = "was IS NOT NULL AND correct IS NOT NULL"
        sql = (
            "SELECT value AS card, COUNT(*), COUNT(*) FILTER (WHERE correct = 1),"
            " COUNT(*) FILTER (WHERE correct = 0),"
            f" COUNT(*) FILTER (WHERE {CHANGES['gained']}),"
            f" COUNT(*) FILTER (WHERE {CHANGES['lost']})"
            f" FROM {_with_base(base)}, json_each(cards)"
            f" WHERE ? IN ('', value) AND {paired} GROUP BY value ORDER BY value"
        )
        return list(starmap(CardUse, self.select(sql, [card], base)))

    # Records and texts

    def solution(self, problem: str, seed: int) -> Solution | None:
        """Read one record from the trace; `None` if the run has no such solve.

        Attempts have what was sent and what the model wrote, as far as the run keeps
        its calls.
        """
        sql = "SELECT place, length FROM solves WHERE problem = ? AND seed = ?"
        found = next(self._read(self.select(sql, (problem, seed))), None)
        calls = self._calls() if found else None
        return with_texts(found, calls) if found and calls else found

    def solutions(self, *, texts: bool = True) -> Iterator[Solution]:
        """Iterate over the last record of every problem and seed, ordered by both.

        With `texts`, attempts have what the model wrote, if the run keeps its calls.
        """
        sql = "SELECT place, length FROM solves ORDER BY problem, seed"
        calls = self._calls() if texts else None
        for found in self._read(self.select(sql)):
            yield with_texts(found, calls) if calls else found

    def _read(self, places: Sequence[sqlite3.Row]) -> Iterator[Solution]:
        """Read the records at some places of the trace."""
        if self.folder is None or not places:
            return
        with open_plain(self.folder / TRACE) as trace:
            for place, length in places:
                line = os.pread(trace.fileno(), length, place)
                found = parse_solution(line, str(self.folder / TRACE))
                if isinstance(found, Solution):
                    yield found

    def places(self) -> dict[tuple[str, int], Place]:
        """Return where every record lies, by problem and seed, in the run's order."""
        sql = "SELECT problem, seed, place, length, failed FROM solves ORDER BY position"
        found = {}
        for problem, seed, place, length, failed in self.select(sql):
            found[problem, seed] = Place(place, length, bool(failed))
        return found

    def problems(self) -> Iterator[Problem]:
        """Iterate over the problems whose texts the run keeps."""
        for problem, _ in self._problem_rows():
            yield problem

    def problem_text(self, problem: str) -> str | None:
        """Return the text of a problem, if the run keeps it."""
        return self._texts().get(problem)

    def problem_field(self, name: str) -> dict[str, str]:
        """Return a field of the problems that have it, by problem."""
        column = name
        if self.folder is None and name not in FIELDS:
            column = "family"  # as it was read from another tool's scores
        if column in ("label", "family", "domain"):
            sql = f"SELECT problem, {column} FROM solves WHERE {column} <> ''"
            return dict(map(tuple, self.select(sql)))
        found = {}
        for problem, row in self._problem_rows():
            if row.get(name) not in (None, ""):
                found[problem.id] = str(row[name])
        return found

    def _texts(self) -> dict[str, str]:
        def read() -> dict[str, str]:
            return {problem.id: problem.text for problem in self.problems()}

        state = self.folder and FileState.of(self.folder / PROBLEMS)
        return self._once("texts", read, state)

    def _problem_rows(self) -> Iterator[tuple[Problem, dict[str, Any]]]:
        """Iterate over the lines of problems.jsonl that hold a problem."""
        if self.folder is None or not (self.folder / PROBLEMS).exists():
            return
        for _, _, line in whole_lines(self.folder / PROBLEMS):
            with suppress(
                ValueError, RecursionError, TypeError, AttributeError, KaceError
            ):
                row = json.loads(line)
                yield problem_of(row, PROBLEMS), row

    @property
    def calls_folder(self) -> Path | None:
        """The folder of recorded calls: the run's, or one above it inside `within`."""
        if self.folder is None or self.within is None:
            return None
        for folder in (self.folder, *self.folder.parents):
            calls = folder / "calls"
            if not calls.resolve().is_relative_to(self.within):
                return None
            if calls.is_dir() and not calls.is_symlink():
                return calls
        return None

    def _calls(self) -> CallStore | None:
        """Open the recorded calls; again if there are new ones."""
        folder = self.calls_folder
        if folder is None:
            return None
        state = list(map(FileState.of, sorted(folder.glob("*.jsonl"))))
        with suppress(KaceError):
            return self._once("calls", lambda: CallStore(folder), state)
        return None

    # What the run is

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Lines of the trace that could not be read."""
        rows = self.select("SELECT line, reason FROM damage ORDER BY line")
        return tuple(starmap(Damage, rows))

    @property
    def missing(self) -> int | None:
        """Solves the run lacks on the seeds it has begun; `None` if not known."""
        if self.manifest.problems is None:
            return None
        counts = self.counts()
        wanted = self.manifest.problems * max(1, len(counts.seeds))
        return max(0, wanted - counts.solves)

    @property
    def running(self) -> bool:
        """Whether the run is unfinished and was written to just now."""
        if self.folder is None or self.missing == 0:
            return False
        return recently_written(self.folder / TRACE, self.folder / "lock")

    def metrics(
        self,
        price: Price | None = None,
        clusters: Clusters | None = None,
        base: Table | None = None,
    ) -> Metrics:
        """Return every figure of the run; computed once for each state of it.

        With `base`, the buckets sort problems by how hard that run found them.
        """
        from kace.runs.metrics import metrics_of

        field = clusters and clusters.field
        other = base and (base.name, base.version)
        key = ("metrics", self.name, price, field, other)
        return self._once(key, lambda: metrics_of(self, price, clusters, base))

    def _once(
        self,
        key: object,
        make: Callable[[], T],
        version: object = None,
    ) -> T:
        """Return a value computed once for each state of the run, or for a version."""
        version = version or self.version
        known = self._kept.get(key)
        if known is None or known[0] != version:
            known = (version, make())
            self._kept[key] = known
        value = known[1]
        return value

    def rows(self) -> list[dict[str, object]]:
        """Return one flat row per problem and seed, ready for `pandas.DataFrame`.

        `text` is `None` if the run keeps no problem texts, `correct` if no answer is
        expected.
        """
        texts = self._texts()
        found = []
        for row in self:
            values = asdict(row)
            del values["was"]
            values["exit"] = row.exit.value if row.exit else None
            values["cards"] = " ".join(row.cards)
            values["text"] = texts.get(row.problem)
            first = {name: values.pop(name) for name in FIRST}
            found.append({**first, **values})
        return found

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        counts = self.counts()
        folder = self.folder.name if self.folder else ""
        text = "" if self.name == folder else f"{self.name}, "
        text += counted(counts.solves, "solve")
        if counts.labelled:
            right = self.count(SolveFilter(right="yes"))
            text += f", {right} of {counts.labelled} right"
        return f"<RecordedRun {folder}: {text}>"


RecordedRun = Table
"""What `load_run` returns, as users call it."""


def load_run(folder: str | Path) -> RecordedRun:
    """Open a run directory. Raises `DataError` if there is none."""
    return Table.open(folder)


def with_texts(solution: Solution, calls: CallStore) -> Solution:
    """Return a solution whose attempts have what was sent and what came back."""
    records = {}
    sent = {}
    for attempt in solution.made:
        record = calls.record(attempt.call)
        if record:
            records[attempt.call] = record
        if record and record.messages:
            sent[record.prompt] = record.messages

    def with_text(attempt: Attempt) -> Attempt:
        record = records.get(attempt.call)
        if record is None or attempt.text:
            return attempt
        messages = sent.get(record.prompt, ())
        update = {"text": record.text, "messages": messages}
        return attempt.model_copy(update=update)

    update: dict[str, object] = {
        "attempts": tuple(map(with_text, solution.attempts))
    }
    if solution.synthesis:
        update["synthesis"] = with_text(solution.synthesis)
    return solution.model_copy(update=update)


def open_tables(
    folders: Sequence[Path], *, progress: Progress | None = None
) -> tuple[Table, ...]:
    """Open several runs, each under its own name.

    A run is named after its system, or by its path if two share a system.
    """
    tables = [Table.open(folder, progress=progress) for folder in folders]
    return name_apart(tables, [str(folder) for folder in folders])


def name_apart(
    tables: Sequence[Table], places: Sequence[str]
) -> tuple[Table, ...]:
    """Return tables under their own names, or by their places where two share one."""
    found = list(tables)
    times = Counter(table.name for table in tables)
    for at, table in enumerate(tables):
        if times[table.name] > 1:
            found[at] = table.named(places[at])
    if len({table.name for table in found}) < len(found):
        raise DataError("a run is given twice", fix="name every run once")
    return tuple(found)


def recently_written(*paths: Path) -> bool:
    """Whether any of the files was written within the last RECENT seconds."""
    last = max(FileState.of(path).changed for path in paths)
    return time.time() - last < RECENT


# Reading the trace


def _read_lines(
    db: sqlite3.Connection,
    path: Path,
    place: int,
    number: int,
    progress: Progress | None,
) -> tuple[int, int]:
    """Index the lines from a place on; return the place and the line after the last."""
    size = FileState.of(path).size
    damaged = db.execute("SELECT COUNT(*) FROM damage").fetchone()[0]
    for _, offset, line in whole_lines(path, place):
        number += 1
        place = offset + len(line) + 1
        reason = _index_line(db, line, offset, f"{path}:{number}")
        if reason:
            values = (number, reason)
            db.execute("INSERT OR REPLACE INTO damage VALUES (?, ?)", values)
            damaged += 1
        if damaged > MAX_DAMAGED:
            raise Unreadable.at(
                path,
                f"{MAX_DAMAGED:,} of its first {number:,} lines are damaged",
                "is it the right file?",
            )
        if progress and number % BATCH == 0:
            progress(place, size)
    return place, number


def _index_line(
    db: sqlite3.Connection,
    line: bytes,
    offset: int,
    where: str,
) -> str:
    """Index one line of the trace; return why it is damaged, or nothing."""
    found = parse_solution(line, where)
    if not isinstance(found, Solution):
        return found
    row = row_of(found)
    reason = out_of_range(row)
    if not reason:
        db.execute(_UPSERT, _columns_of(row, offset, len(line)))
    return reason


def out_of_range(row: SolveRow) -> str:
    """Return which number of a row is out of range, or nothing."""
    for name in _NAMES:
        value = getattr(row, name)
        limit = MOST_SEED if name == "seed" else LIMIT
        if isinstance(value, int | float) and not abs(value) < limit:
            return f"{name}: too large a number"
    return ""


def _columns_of(
    row: SolveRow,
    place: int,
    length: int,
) -> dict[str, object]:
    """Return the values of a row in the database."""
    named = (row.label, row.family or "", row.domain or "", row.problem[:16])
    values = {name: getattr(row, name) for name in _NAMES}
    values["exit"] = row.exit.value if row.exit else None
    values["exit_rank"] = row.exit.rank if row.exit else -1
    values["cards"] = json.dumps(row.cards)
    values["words"] = "\n".join(named).casefold()
    values["place"] = place
    values["length"] = length
    return values


def _row(found: sqlite3.Row) -> SolveRow:
    """Return the typed row of a row in the database."""
    values = {name: found[name] for name in (*_NAMES, "was")}
    for name in _BOOLS:
        if values[name] is not None:
            values[name] = bool(values[name])
    values["exit"] = ExitPath(values["exit"]) if values["exit"] else None
    values["cards"] = tuple(json.loads(values["cards"]))
    return SolveRow(**values)


def _list_sql(
    columns: str,
    where: SolveFilter,
    sort: str | None,
    base: Table | None,
) -> tuple[str, list[object]]:
    """Return the query of the solves that pass a filter, and its parameters."""
    condition, values = where.sql()
    order = "position"
    if sort is not None:
        key = ORDERS.get(sort.removeprefix("-"), order)
        direction = "DESC" if sort.startswith("-") else "ASC"
        order = f"{key} {direction}, position"
    source = _with_base(base)
    sql = f"SELECT {columns} FROM {source} WHERE {condition} ORDER BY {order}"
    return sql, values


def _with_base(base: Table | None) -> str:
    """Return the table of solves with `was`, as SQL."""
    if base is None:
        return "(SELECT *, NULL AS was FROM solves)"
    other = "SELECT problem, seed, correct AS was FROM other.solves"
    return f"(SELECT * FROM solves LEFT JOIN ({other}) USING (problem, seed))"


# Where the index is


def _is_replaced(path: Path, state: FileState, known: sqlite3.Row) -> bool:
    """Whether the file no longer begins with what was read of it."""
    if known["size"] == state.size or known["place"] > state.size:
        return True
    return bool(known["mark"] != _mark(path, known["place"]))


def _mark(path: Path, place: int) -> str:
    """Return a hash of the bytes before a place, which identifies a replaced file."""
    start = max(0, place - MARK)
    content = b""
    with suppress(FileNotFoundError), open_plain(path) as file:
        content = os.pread(file.fileno(), place - start, start)
    return hashlib.sha256(content).hexdigest()


def _index_path(run: Path) -> Path:
    """Return where the index of a run is cached. Removes old ones of other runs."""
    key = f"{VERSION}\0{run}".encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(key).hexdigest()[:24]
    folder = user_cache() / "runs"
    path = folder / f"run-{digest}.sqlite"
    with suppress(OSError):
        if not path.exists():
            for other in folder.iterdir():
                if time.time() - FileState.of(other).changed > OLD:
                    other.unlink()
    return path


def _spare_index() -> Path:
    """Return a temporary path for an index, removed when the process ends."""
    return Path(mkdtemp(dir=_temporary().name)) / "run.sqlite"


@cache
def _temporary() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="kace-runs-")
    except OSError as error:
        raise cannot_write(Path(gettempdir()), error) from None
