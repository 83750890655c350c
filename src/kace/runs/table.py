"""The read model of a run: one SQLite file that follows the run's append-only files.

A run directory is plain JSONL. `Table.open` indexes it once, in the user's cache
directory, and later opens read only what was appended. Reports, comparisons, pages,
`kace.load_run` and MCP read runs through it. The cache file is disposable: a missing,
damaged or outdated one is built again.

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
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import chain, groupby, islice, starmap
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kace.config import user_cache
from kace.errors import DataError, KaceError
from kace.files import (
    Unreadable,
    cannot_write,
    open_plain,
    whole_lines,
)
from kace.ladder.record import (
    Attempt,
    Damage,
    Outcome,
    Solution,
    parse_solution,
)
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.models.cache import KEY_LENGTH, CallStore
from kace.problems import Problem, problem_of
from kace.runs.manifest import Manifest
from kace.words import counted

if TYPE_CHECKING:
    from kace.config import Price
    from kace.runs.metrics import Clusters, Metrics

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of the file."""

TRACE = "traces.jsonl"
PROBLEMS = "problems.jsonl"
VERSION = 1  # of the schema; another version uses another cache file
BATCH = 1_000  # lines read in one transaction
CHUNK = 2_000  # rows fetched at a time when all are read
MARK = 4_096  # bytes before the reading position that identify a file
TIMEOUT = (
    20.0  # seconds to wait for another process that writes the same cache file
)
OLD = 30 * 86_400  # seconds after which an unused cache file is removed
RECENT = (
    30.0  # seconds since the last write within which a run counts as running
)
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_PLACE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
)
"""Errors of the cache folder, not of the file in it."""
MAX_DAMAGED = 10_000  # damaged lines after which a file is refused
LIMIT = 1 << 40  # numbers from here on are damage: sums must stay exact
MOST_SEED = 1 << 63
MAX_WORDS = 200  # characters of a search text
NO_LADDER = "none"
FIRST = ("problem", "label", "text", "seed", "answer", "expected", "correct")
"""The columns that rows for people begin with."""


@dataclass(frozen=True, slots=True)
class SolveRow:
    """One problem solved once, in figures."""

    problem: str
    label: str
    family: str | None
    domain: str | None
    seed: int
    correct: bool | None
    failed: bool  # whether a call was lost to the provider
    exit: ExitPath | None
    paper_calls: int
    real_calls: int
    attempts: int  # attempts that ended; cancelled ones are not counted
    right_attempts: int
    input: int  # prompt tokens of the solver, cached ones included
    cached: int
    output: int
    classifier_calls: int
    classifier_input: int
    classifier_cached: int
    classifier_output: int
    card_tokens: (
        int  # tokens of learned text in the fullest prompt of the solve
    )
    read_tokens: int  # tokens of learned text over all tiers
    estimated: bool  # whether those tokens are estimated from the text's length
    cards: tuple[str, ...]  # ids of the cards shown, each once, in order
    abstained: bool  # whether no card was shown though some were eligible
    seconds: float
    batch_input: int = 0  # tokens of calls made in batches, part of those above
    batch_cached: int = 0
    batch_output: int = 0
    answer: str | None = None
    expected: str | None = None
    was: bool | None = (
        None  # `correct` of the same solve in the base run, if given
    )

    @property
    def name(self) -> str:
        """The problem's name in tables."""
        return self.label or self.problem[:8]


def row_of(solution: Solution) -> SolveRow:
    """Return the figures of a solution."""
    usage = solution.usage
    routing = Usage()
    classifier_calls = 0
    read = [0]  # tokens of learned text, by tier
    estimated = False
    shown: dict[str, None] = {}
    for recall in solution.recalls:
        read.append(recall.tokens)
        estimated |= recall.estimated
        shown.update(dict.fromkeys(recall.cards))
        classifier_calls += recall.classifier_calls
        routing += Usage(
            recall.classifier_input,
            recall.classifier_cached,
            recall.classifier_output,
        )
    ended = 0
    right = 0
    for attempt in solution.attempts:
        if attempt.outcome is not Outcome.CANCELLED:
            ended += 1
            right += attempt.correct is True
    batch = Usage()
    for attempt in solution.made:
        if attempt.batch:
            batch += attempt.usage
    return SolveRow(
        problem=solution.problem,
        label=solution.label,
        family=solution.family,
        domain=solution.domain,
        seed=solution.seed,
        correct=solution.correct,
        failed=solution.failed,
        exit=solution.exit,
        paper_calls=solution.paper_calls,
        real_calls=solution.real_calls,
        attempts=ended,
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
        estimated=estimated,
        cards=tuple(shown),
        abstained=solution.abstained,
        seconds=solution.seconds,
        batch_input=batch.input,
        batch_cached=batch.cached,
        batch_output=batch.output,
        answer=solution.answer,
        expected=solution.expected,
    )


RESULTS = {"yes": "correct = 1", "no": "correct = 0", "failed": "failed"}
CARDS = {"shown": "cards <> '[]'", "abstained": "abstained"}
CHANGES = {
    "gained": "correct = 1 AND was = 0",
    "lost": "correct = 0 AND was = 1",
}
EXITS = (*map(str, ExitPath), NO_LADDER)
TEXTS = ("problem", "label", "family", "domain", "answer", "expected")
FIGURES = {
    "seed": "seed",
    "input": "input",
    "cached": "cached",
    "output": "output",
    "attempts": "attempts",
    "card_tokens": "card_tokens",
    "seconds": "seconds",
    "calls": "paper_calls",
    "tokens": "(input + output)",
    "cards": "json_array_length(cards)",
    "right": "right_attempts",
}
"""What a search term such as `tokens>800` may compare."""
_TERM = re.compile(r"([a-z_]+)([=<>])(.+)")


@dataclass(frozen=True, slots=True)
class SolveFilter:
    """Which solves to list. An empty field selects all."""

    right: str = ""  # a key of RESULTS
    exit: str = ""  # one of EXITS
    cards: str = ""  # a key of CARDS
    change: str = ""  # a key of CHANGES; needs a base run
    text: str = (
        ""  # words of label, family, domain or hash; terms: card=ID, tokens>800
    )
    problem: str = ""  # the hash of one problem

    def sql(self) -> tuple[str, list[object]]:
        """Return the condition in SQL and its parameters."""
        parts = ["1"]
        values: list[object] = []
        if self.right:
            parts.append(RESULTS[self.right])
        if self.cards:
            parts.append(CARDS[self.cards])
        if self.change:
            parts.append(CHANGES[self.change])
        if self.exit:
            parts.append("COALESCE(exit, 'none') = ?")
            values.append(self.exit)
        if self.problem:
            parts.append("problem = ?")
            values.append(self.problem)
        for word in self.text[:MAX_WORDS].casefold().split():
            sql, value = _term_sql(word)
            parts.append(sql)
            values += [value] * sql.count("?")
        return " AND ".join(f"({part})" for part in parts), values


def _term_sql(word: str) -> tuple[str, str]:
    """Return the condition of one search word and its parameter."""
    match = _TERM.fullmatch(word)
    if match:
        name, sign, value = match.groups()
        if name in FIGURES and value.replace(".", "", 1).isdecimal():
            return f"{FIGURES[name]} {sign} CAST(? AS REAL)", value
        if name in TEXTS and sign == "=":
            return f"lower(COALESCE({name}, 'none')) = ?", value
        if name == "card" and sign == "=":
            ids = "SELECT lower(value) FROM json_each(cards)"
            return f"? IN ({ids})", value
    return "instr(words, ?) OR substr(problem, 1, length(?)) = ?", word


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

ORDERS: Mapping[str, tuple[str, ...]] = {
    "": (
        "CASE WHEN correct = 0 AND was = 1 THEN cards = '[]'"
        " WHEN correct = 1 AND was = 0 THEN 2"
        " WHEN correct = 0 THEN 3 + (cards = '[]') ELSE 5 END",
    ),
    "problem": ("label", "problem", "seed"),
    "seed": ("seed",),
    "result": ("CASE correct WHEN 1 THEN 2 WHEN 0 THEN 0 ELSE 1 END",),
    "exit": ("exit_rank",),
    "calls": ("paper_calls", "real_calls"),
    "tokens": ("input + output",),
    "cards": ("json_array_length(cards)",),
    "seconds": ("seconds",),
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


class CardUse(NamedTuple):
    """How often a card was shown, over the solves of a run."""

    card: str
    shown: int
    right: int
    wrong: int
    gained: int = 0  # wrong in the base run and right here, of those shown
    broken: int = 0  # right in the base run and wrong here


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
    unlabelled: int  # solves without a known answer
    failed: int  # solves that lost a call to the provider
    without_family: int
    shown: int  # solves that were shown a card
    abstained: int
    retried: (
        int  # solves that replace an earlier one of the same problem and seed
    )

    @property
    def labelled(self) -> int:
        """Solves with a known answer."""
        return self.solves - self.unlabelled

    @property
    def complete(self) -> bool:
        """Whether every problem was solved on every seed."""
        return self.solves == self.problems * len(self.seeds)


_FIELDS = tuple(field.name for field in fields(SolveRow) if field.name != "was")
_BOOLS = ("correct", "failed", "estimated", "abstained", "was")
_COLUMNS = (*_FIELDS, "exit_rank", "words", "place", "length")
_SCHEMA = f"""
    CREATE TABLE IF NOT EXISTS files (name PRIMARY KEY, place, number, mark, size, changed);
    CREATE TABLE IF NOT EXISTS solves (position INTEGER PRIMARY KEY, {", ".join(_COLUMNS)},
        retried DEFAULT 0, UNIQUE (problem, seed));
    CREATE TABLE IF NOT EXISTS damage (line INTEGER PRIMARY KEY, reason);
    CREATE TABLE IF NOT EXISTS problems (problem PRIMARY KEY, line);
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

    Opening reads what was appended to the trace since the last time; `refresh` reads on.
    A torn last line is left for the next read. Safe to use from several threads and
    processes.
    """

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        folder: Path | None,
    ) -> None:
        """Use `Table.open` or `Table.of`."""
        self.name = name
        self.manifest = manifest
        self.folder = folder
        self.within = folder
        self._path: Path | None = None
        self._memory: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._kept: dict[object, tuple[object, Any]] = {}
        self.version = FileState()  # of the trace when it was last read

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
        table = cls(
            manifest.system or given.resolve().name, manifest, given.resolve()
        )
        table.within = (within or given).resolve()
        key = f"{VERSION}\0{table.folder}".encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(key).hexdigest()[:24]
        table._path = cache_folder() / f"run-{digest}.sqlite"
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
        """Return a table of rows in a temporary database; later rows replace earlier."""
        table = cls(name, Manifest(manifest or {}), folder)
        db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.executescript(_SCHEMA)
        db.execute("BEGIN")
        db.executemany(_UPSERT, (_columns_of(row, 0, 0) for row in rows))
        db.execute("COMMIT")
        table._memory = db
        return table

    def named(self, name: str) -> Table:
        """Return the same table under another name."""
        found = copy.copy(self)
        found.name = name
        return found

    # Reading the files

    def refresh(self, progress: Progress | None = None) -> None:
        """Read what was appended since the last read."""
        if self.folder is None or self._memory is not None:
            return
        state = FileState.of(self.folder / TRACE)
        self._follow("solves", self.folder / TRACE, progress)
        self.version = state

    def _follow(
        self,
        kind: str,
        path: Path,
        progress: Progress | None = None,
    ) -> None:
        """Index the new lines of a file, BATCH lines per transaction."""
        with self._lock:
            try:
                self._read_on(kind, path, progress)
                return
            except sqlite3.DatabaseError as error:
                self._discard(error)
            try:
                self._read_on(kind, path, progress)
            except sqlite3.DatabaseError as error:
                raise self._unusable(error) from None

    def _read_on(
        self,
        kind: str,
        path: Path,
        progress: Progress | None,
    ) -> None:
        reader = _Reader(kind, path)
        with self._database() as db:
            db.executescript(_SCHEMA)
            more = True
            while more:
                db.execute("BEGIN IMMEDIATE")
                try:
                    more = reader.read_batch(db)
                except KaceError:  # what was read before the error counts
                    db.execute("COMMIT")
                    raise
                db.execute("COMMIT")
                if progress and more:
                    progress(reader.place, reader.state.size)

    def _discard(self, error: sqlite3.DatabaseError) -> None:
        """Delete the damaged cache file, or use another folder if this one is unusable.

        Raises `KaceError` if the file is only in use.
        """
        if self._path is None:
            raise error
        code = _error_code(error)
        if code in IN_USE:
            raise self._unusable(error) from None
        try:
            if code not in NO_PLACE:
                self._path.unlink(missing_ok=True)
                return
        except OSError:
            pass  # a folder that cannot be written
        self._path = spare_folder() / self._path.name

    def _unusable(self, error: sqlite3.DatabaseError) -> KaceError:
        """Return the error of a cache file that cannot be used."""
        fix = "check free space and permissions, or set XDG_CACHE_HOME"
        if _error_code(error) in IN_USE:
            fix = "wait for the other process that reads this run, or end it"
        what = f"cannot index {self.folder} in {self._path}: {error}"
        return KaceError(what, fix=fix)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        if self._path is None:
            assert self._memory is not None
            yield self._memory
            return
        self._path.parent.mkdir(
            parents=True,
            exist_ok=True,
            mode=0o700,
        )
        connection = sqlite3.connect(
            self._path,
            timeout=TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
        )
        with closing(connection) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA synchronous = OFF")  # it can be built again
            yield db

    def select(
        self,
        sql: str,
        values: Sequence[object] = (),
        base: Table | None = None,
    ) -> list[sqlite3.Row]:
        """Return the rows of a query. The tables of `base` are `other.NAME`.

        Text from outside must be passed in `values`.
        """
        with self._lock:
            try:
                return self._select(sql, values, base)
            except sqlite3.DatabaseError as error:
                for table in (self, base):
                    if table is not None:
                        table._discard(error)
                        table.refresh()
            try:
                return self._select(sql, values, base)
            except sqlite3.DatabaseError as error:
                raise self._unusable(error) from None

    def _select(
        self,
        sql: str,
        values: Sequence[object],
        base: Table | None,
    ) -> list[sqlite3.Row]:
        self._build_if_missing()
        with self._database() as db:
            if base is not None:
                base._build_if_missing()
                db.execute("ATTACH DATABASE ? AS other", [str(base._path)])
            return db.execute(sql, values).fetchall()

    def _build_if_missing(self) -> None:
        """Read the run again if the cache file was deleted or emptied."""
        if self._path is not None and not FileState.of(self._path).size:
            self.refresh()

    # Solves

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a run without solves is still a run

    def __iter__(self) -> Iterator[SolveRow]:
        """Iterate over the last solve of every problem and seed, ordered by both."""
        columns = ", ".join(_FIELDS)
        last: tuple[object, object] = ("", -MOST_SEED)
        sql = (
            f"SELECT {columns} FROM solves WHERE (problem, seed) > (?, ?)"
            f" ORDER BY problem, seed LIMIT {CHUNK}"
        )
        while found := self.select(sql, last):
            yield from map(_row, found)
            last = (found[-1]["problem"], found[-1]["seed"])

    def by_problem(self) -> Iterator[tuple[str, list[SolveRow]]]:
        """Iterate over the problems in order, each with its solves."""
        for problem, solves in groupby(self, attrgetter("problem")):
            yield problem, list(solves)

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
        condition, values = where.sql()
        order = ", ".join(_order_keys(sort))
        sql = (
            f"SELECT * FROM {_with_base(base)} WHERE {condition}"
            f" ORDER BY {order} LIMIT ? OFFSET ?"
        )
        values += [limit, offset]
        return list(map(_row, self.select(sql, values, base)))

    def count(
        self, where: SolveFilter = ALL, *, base: Table | None = None
    ) -> int:
        """Count the solves that pass a filter."""
        condition, values = where.sql()
        sql = f"SELECT COUNT(*) FROM {_with_base(base)} WHERE {condition}"
        return int(self.select(sql, values, base)[0][0])

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
        condition, values = where.sql()
        order = ", ".join(_order_keys(sort))
        numbered = (
            f"WITH list AS (SELECT *, ROW_NUMBER() OVER (ORDER BY {order}) AS number"
            f" FROM {_with_base(base)} WHERE {condition})"
        )
        here = (
            f"{numbered} SELECT number FROM list WHERE problem = ? AND seed = ?"
        )
        found = self.select(here, [*values, problem, seed], base)
        if not found:
            return 0, None, None
        number = found[0][0]
        beside = f"{numbered} SELECT * FROM list WHERE number IN (?, ?)"
        near = {}
        for row in self.select(beside, [*values, number - 1, number + 1], base):
            near[row["number"]] = _row(row)
        return number, near.get(number - 1), near.get(number + 1)

    def counts(self) -> Counts:
        """Count problems, seeds and solves by kind."""
        return self._once("counts", self._count_all)

    def _count_all(self) -> Counts:
        row = self.select(
            "SELECT COUNT(*), COUNT(DISTINCT problem),"
            " COUNT(*) FILTER (WHERE correct IS NULL),"
            " COUNT(*) FILTER (WHERE failed),"
            " COUNT(*) FILTER (WHERE COALESCE(family, '') = ''),"
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
        found: dict[str, int] = {}
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
        """Count the solves that were shown each card, or one card, by id."""
        sql = (
            "SELECT value AS card, COUNT(*), COUNT(*) FILTER (WHERE correct = 1),"
            " COUNT(*) FILTER (WHERE correct = 0),"
            f" COUNT(*) FILTER (WHERE {CHANGES['gained']}),"
            f" COUNT(*) FILTER (WHERE {CHANGES['lost']})"
            f" FROM {_with_base(base)}, json_each(cards)"
            " WHERE ? IN ('', value) GROUP BY value ORDER BY value"
        )
        return list(starmap(CardUse, self.select(sql, [card], base)))

    # Records and texts

    def solution(self, problem: str, seed: int) -> Solution | None:
        """Read one record from the trace; `None` if the run has no such solve."""
        sql = "SELECT place, length FROM solves WHERE problem = ? AND seed = ?"
        found = self.select(sql, (problem, seed))
        return next(self._read(found), None)

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
        for line in self._problem_lines():
            yield problem_of(json.loads(line), PROBLEMS)

    def problem_text(self, problem: str) -> str | None:
        """Return the text of a problem, if the run keeps it."""
        for line in self._problem_lines(" WHERE problem = ?", problem):
            return problem_of(json.loads(line), PROBLEMS).text
        return None

    def problem_field(self, name: str) -> dict[str, str]:
        """Return a field of the lines in problems.jsonl, by problem."""
        found = {}
        for line in self._problem_lines():
            row = json.loads(line)
            if row.get(name) not in (None, ""):
                found[problem_of(row, PROBLEMS).id] = str(row[name])
        return found

    def _problem_lines(self, where: str = "", *values: object) -> list[bytes]:
        if self.folder is not None and self._memory is None:
            self._follow("problems", self.folder / PROBLEMS)
        rows = self.select(f"SELECT line FROM problems{where}", values)
        return list(chain.from_iterable(rows))

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

    def call_text(self, key: str) -> str | None:
        """Return what the model replied to a call, if the run keeps it."""
        calls = self._calls()
        if not calls or len(key) != KEY_LENGTH:
            return None
        reply = calls.get(key)
        return reply.text if reply else None

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
    def size(self) -> int:
        """Bytes of the trace."""
        return FileState.of(self.folder / TRACE).size if self.folder else 0

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
        key = (
            "metrics",
            self.name,
            price,
            field,
            None if base is None else (base.name, base.version),
        )
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
        value: T = known[1]
        return value

    def rows(self) -> list[dict[str, object]]:
        """Return one flat row per problem and seed, ready for `pandas.DataFrame`.

        `text` is `None` if the run keeps no problem texts, `correct` if no answer is
        expected.
        """
        texts = {problem.id: problem.text for problem in self.problems()}
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
    """Return a solution whose attempts have what the model wrote."""

    def with_text(attempt: Attempt) -> Attempt:
        reply = (
            calls.get(attempt.call)
            if attempt.call and not attempt.text
            else None
        )
        return (
            attempt.model_copy(update={"text": reply.text})
            if reply
            else attempt
        )

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

    A run is named after its system, or by the end of its path if two share one.
    """
    tables = [Table.open(folder, progress=progress) for folder in folders]
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        times = Counter(table.name for table in tables)
        for at, table in enumerate(tables):
            if times[table.name] > 1:
                tables[at] = table.named(str(Path(*parts[at][-depth:])))
    for name, times_given in Counter(table.name for table in tables).items():
        if times_given > 1:
            raise DataError(f"{name} is given twice", fix="name every run once")
    return tuple(tables)


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


def recently_written(*paths: Path) -> bool:
    """Whether any of the files was written within the last RECENT seconds."""
    now = time.time()
    last = max(FileState.of(path).changed for path in paths)
    return now - last < RECENT


class _Reader:
    """Reads one file of a run into the database, from where it was last read to."""

    def __init__(
        self,
        kind: str,
        path: Path,
    ) -> None:
        self.kind = kind
        self.path = path
        self.state = FileState()
        self.name = f"{kind}/{path.name}"
        self.place = 0
        self.number = 0

    def read_batch(self, db: sqlite3.Connection) -> bool:
        """Index the next lines; return whether there may be more."""
        # Inside the transaction: with an older state, what another process has read
        # since would look like more than the file holds.
        self.state = FileState.of(self.path)
        known = db.execute(
            "SELECT place, number, mark, size, changed FROM files WHERE name = ?",
            [self.name],
        ).fetchone()
        self.place = 0
        self.number = 0
        if known:
            if (known["size"], known["changed"]) == self.state[1:]:
                return False
            if self._is_replaced(known):
                self._forget(db)
            else:
                self.place = known["place"]
                self.number = known["number"]
        if self.state == FileState():
            return False
        first = self.number
        done = False
        try:
            self._read_lines(db)
            done = self.number - first < BATCH
        finally:  # after an error, the next read meets it again
            size, changed = self.state[1:] if done else (-1, 0.0)
            mark = _mark(self.path, self.place)
            values = (self.name, self.place, self.number, mark, size, changed)
            db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", values
            )
        return not done

    def _read_lines(self, db: sqlite3.Connection) -> None:
        damaged = 0
        if self.kind == "solves":
            found = db.execute("SELECT COUNT(*) FROM damage").fetchone()
            damaged = found[0]
        self._check_damage(damaged)
        for _, offset, line in islice(
            whole_lines(self.path, self.place), BATCH
        ):
            self.number += 1
            taken = self._take(db, offset, line)
            self.place = offset + len(line) + 1
            if not taken:
                damaged += 1
                self._check_damage(damaged)

    def _check_damage(self, damaged: int) -> None:
        """Raise `Unreadable` for a file with too many damaged lines."""
        if damaged > MAX_DAMAGED:
            what = f"{MAX_DAMAGED:,} of its first {self.number:,} lines"
            raise Unreadable.at(
                self.path,
                f"{what} are damaged",
                "is it the right file?",
            )

    def _is_replaced(self, known: sqlite3.Row) -> bool:
        """Whether the file no longer begins with what was read of it."""
        size, changed = self.state[1:]
        rewritten = known["size"] == size and known["changed"] != changed
        shrunk = known["place"] > size
        replaced = known["mark"] != _mark(self.path, known["place"])
        return bool(rewritten or shrunk or replaced)

    def _forget(self, db: sqlite3.Connection) -> None:
        """Delete what was read of a file that is gone or another one by now."""
        db.execute(f"DELETE FROM {self.kind}")
        db.execute("DELETE FROM files WHERE name = ?", [self.name])
        if self.kind == "solves":
            db.execute("DELETE FROM damage")

    def _take(
        self,
        db: sqlite3.Connection,
        place: int,
        line: bytes,
    ) -> bool:
        """Index one line; return whether it is not damaged."""
        if self.kind == "problems":
            with suppress(
                ValueError, RecursionError, TypeError, AttributeError, KaceError
            ):
                problem = problem_of(json.loads(line), PROBLEMS)
                values: tuple[object, ...] = (problem.id, line)
                db.execute(
                    "INSERT OR REPLACE INTO problems VALUES (?, ?)", values
                )
            return True
        found = parse_solution(line, f"{self.path}:{self.number}")
        if isinstance(found, Solution):
            row = row_of(found)
            reason = out_of_range(row)
            if not reason:
                db.execute(_UPSERT, _columns_of(row, place, len(line)))
                return True
        else:
            reason = found
        damage = (self.number, reason)
        db.execute("INSERT OR REPLACE INTO damage VALUES (?, ?)", damage)
        return False


def out_of_range(row: SolveRow) -> str:
    """Return which number of a row is out of range, or nothing."""
    for name in _FIELDS:
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
    words = (row.label, row.family or "", row.domain or "")
    values: dict[str, object] = {name: getattr(row, name) for name in _FIELDS}
    values["exit"] = row.exit.value if row.exit else None
    values["exit_rank"] = row.exit.rank if row.exit else -1
    values["cards"] = json.dumps(row.cards)
    values["words"] = "\n".join(words).casefold()
    values["place"] = place
    values["length"] = length
    return values


def _row(found: sqlite3.Row) -> SolveRow:
    """Return the typed row of a row in the database."""
    names = found.keys()
    values = {name: found[name] for name in _FIELDS}
    values["was"] = found["was"] if "was" in names else None
    for name in _BOOLS:
        if values[name] is not None:
            values[name] = bool(values[name])
    values["exit"] = ExitPath(values["exit"]) if values["exit"] else None
    values["cards"] = tuple(json.loads(values["cards"]))
    return SolveRow(**values)


def _with_base(base: Table | None) -> str:
    """Return the table of solves with `was`, as SQL."""
    if base is None:
        return "(SELECT *, NULL AS was FROM solves)"
    other = "SELECT problem, seed, correct AS was FROM other.solves"
    return f"(SELECT * FROM solves LEFT JOIN ({other}) USING (problem, seed))"


def _order_keys(sort: str | None) -> list[str]:
    """Return the sort keys of a name in ORDERS; `None` is the run's order."""
    if sort is None:
        return ["position"]
    direction = " DESC" if sort.startswith("-") else ""
    keys = ORDERS.get(sort.removeprefix("-"), ())
    return [*(key + direction for key in keys), "position"]


def _read_at(
    path: Path,
    place: int,
    length: int,
) -> bytes:
    """Return bytes of a plain file; none if the file is gone."""
    try:
        with open_plain(path) as file:
            return os.pread(file.fileno(), length, place)
    except FileNotFoundError:
        return b""


def _mark(path: Path, place: int) -> str:
    """Return a hash of the bytes before a place, which tells a replaced file."""
    start = max(0, place - MARK)
    return hashlib.sha256(_read_at(path, start, place - start)).hexdigest()


@cache
def cache_folder() -> Path:
    """Return where tables are kept: in the user's cache directory.

    Falls back to a temporary folder if that cannot be written. Old files are removed.
    """
    folder = user_cache() / "runs"
    try:
        folder.mkdir(
            parents=True,
            exist_ok=True,
            mode=0o700,
        )
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return spare_folder()
    for path in folder.iterdir():
        if time.time() - FileState.of(path).changed > OLD:
            with suppress(OSError):
                path.unlink()
    return folder


def spare_folder() -> Path:
    """Return a temporary folder for tables, which is removed when the process ends."""
    return Path(_temporary().name)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="kace-runs-")
    except OSError as error:
        raise cannot_write(Path(tempfile.gettempdir()), error) from None


def _error_code(error: sqlite3.DatabaseError) -> int:
    """Return the primary result code of SQLite; 0 if it gave none."""
    code = getattr(error, "sqlite_errorcode", 0)
    return int(code) & 0xFF
