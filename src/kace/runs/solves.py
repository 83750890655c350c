"""A run in a sidecar: one row a solve, followed as the run grows."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from kace.errors import DataError, KaceError
from kace.files import MAX_BYTES, open_plain, whole_lines
from kace.ladder.record import TRACE_VERSION, Damage, Solution
from kace.ladder.tiers import ExitPath
from kace.problems import SPLITS, Problem, load_bundled, problem_of
from kace.report.page import NotHere, StillReading
from kace.runs.calls import CallIndex
from kace.runs.index import FileState, Gain, Sidecar, is_held
from kace.runs.manifest import Manifest
from kace.runs.stats import Interval, wilson_of_share
from kace.runs.table import SolveRow, Table, row_of

TRACES = ("traces.jsonl",)
BATCH = 1_000  # solves read at a time
RECENT = 30.0  # seconds since the last solve within which a run counts as going on
MAX_MANIFEST = 8_000_000  # bytes that are read of a manifest for a page
PACKED = 10  # how much larger a compressed trace is once it is read, about
SHOWN = 200  # characters of an answer that are kept for lists
_FIELDS = tuple(
    field.name
    for field in fields(SolveRow)
    if field.name not in ("answer", "expected", "was")
)
_EXIT, _CARDS, *_TRUTHS = map(
    _FIELDS.index, ("exit", "cards", "correct", "failed", "estimated", "abstained")
)
_COLUMNS = tuple(name for name in _FIELDS if name != "cards")
_SAVED = (
    *_COLUMNS,
    "answer",
    "expected",
    "exit_rank",
    "n_cards",
    "card_set",
    "words",
    "place",
    "line",
)
_UPSERT = (
    f"INSERT INTO solves ({', '.join(_SAVED)}) VALUES ({', '.join(f':{name}' for name in _SAVED)}) "
    f"ON CONFLICT (problem, seed) DO UPDATE SET {', '.join(f'{name} = :{name}' for name in _SAVED)}, retried = 1"
)


class RunManifest(NamedTuple):
    """The parts of a manifest that pages show; empty where the run does not say."""

    system: str
    model: str
    preset: str
    data: str
    split: str
    data_hash: str  # the content hash of the problems it was run on
    problems: int | None  # of the data set
    tree_hash: str
    tree_cards: int | None
    kace: str


def setup_of(manifest: Mapping[str, object]) -> RunManifest:
    """What a manifest says. Every part may be missing: other tools write runs, too."""
    known = Manifest(manifest)
    return RunManifest._make(getattr(known, name) for name in RunManifest._fields)


def read_problems(folder: Path) -> Iterator[Problem]:
    """The problems whose texts a run keeps."""
    path = folder / "problems.jsonl"
    for _, _, line in whole_lines(path):
        with contextlib.suppress(DataError, ValueError, AttributeError, TypeError):
            yield problem_of(json.loads(line), "problems.jsonl")


def setup_at(path: Path) -> RunManifest:
    """What the manifest at a path says, read again when it changed; a `KaceError` where it cannot be read."""
    return _setup(path, FileState.of(path))


@lru_cache(maxsize=2048)
def _setup(path: Path, state: FileState) -> RunManifest:
    return setup_of(Manifest.read(path, MAX_MANIFEST).content)


def trace_in(folder: Path) -> Path | None:
    """The file of solves of a run; `None` where there is none."""
    return next((path for name in TRACES if (path := folder / name).is_file()), None)


def bytes_in(trace: Path) -> int:
    """About how much there is to read of a trace."""
    return FileState.of(trace).size * (PACKED if trace.suffix == ".gz" else 1)


class RunAccuracy(NamedTuple):
    """The mean over problems of the share of seeds that were right."""

    share: float
    interval: Interval
    problems: int


class RunIndex(Sidecar):
    """An opened run directory. Every figure is that of what is read so far."""

    schema = f"""
        CREATE TABLE IF NOT EXISTS solves (position INTEGER PRIMARY KEY, {", ".join(_SAVED)}, retried DEFAULT 0,
            UNIQUE (problem, seed));
        CREATE TABLE IF NOT EXISTS card_sets (id INTEGER PRIMARY KEY, cards TEXT UNIQUE);
        CREATE TABLE IF NOT EXISTS set_cards (card TEXT, card_set INTEGER, PRIMARY KEY (card, card_set)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS damage (line INTEGER PRIMARY KEY, reason TEXT);
    """
    texts: (
        CallIndex | None
    )  # what the attempts wrote, where the run or a folder above keeps it

    def __init__(self, folder: Path, *, within: Path | None = None) -> None:
        """Nothing outside `within` is read. A folder without a manifest that can be read is a `DataError`."""
        super().__init__("run", folder.resolve())
        self.folder = self.source
        self.within = (within or folder).resolve()
        self.manifest = Manifest.read(self.folder / "run.json", MAX_MANIFEST).content
        self.setup = setup_of(self.manifest)
        self.name = self.setup.system or self.folder.name
        above = (at / "calls" for at in (self.folder, *self.folder.parents))
        calls = next(
            (at.resolve() for at in above if at.is_dir() and self.holds(at)), None
        )
        self.texts = CallIndex(calls) if calls else None

    def holds(self, path: Path) -> bool:
        """Whether a path, its links resolved, lies where this run may read."""
        return path.resolve().is_relative_to(self.within)

    def files(self) -> tuple[Path, ...]:
        """The file of solves, where there is one inside the opened folder."""
        return tuple(
            path for path in (trace_in(self.folder),) if path and self.holds(path)
        )

    def step(self, db: sqlite3.Connection) -> bool:
        """Read the next solves; all of a compressed trace, which does not grow by lines."""
        path = next(iter(self.files()), None)
        if (
            path is None
            or db.execute(
                "SELECT 1 FROM followed WHERE name <> ?", (path.name,)
            ).fetchone()
        ):
            self.clear(db)  # gone, or no longer compressed
        try:
            return path is not None and self.follow(db, path, BATCH)
        except OSError as error:
            if path is None or path.suffix != ".gz":
                raise
            damaged = (
                "INSERT OR REPLACE INTO damage SELECT MAX(number) + 1, ? FROM followed"
            )
            db.execute(damaged, (error.strerror or str(error),))
            return False

    def take(
        self,
        db: sqlite3.Connection,
        path: Path,
        number: int,
        place: int | None,
        line: bytes,
    ) -> Gain | None:
        """Keep what a solve says."""
        found = solve_in(line)
        if isinstance(found, str):
            db.execute("INSERT OR REPLACE INTO damage VALUES (?, ?)", (number, found))
            return None
        row = row_of(found)
        values = {name: getattr(row, name) for name in _COLUMNS} | {
            "exit": row.exit.value if row.exit else None,
            "answer": found.answer and found.answer[:SHOWN],
            "expected": found.expected and found.expected[:SHOWN],
            "exit_rank": row.exit.rank if row.exit else -1,
            "n_cards": len(row.cards),
            "card_set": self._card_set(db, row.cards),
            "words": "\n".join(
                (row.label, row.family or "", row.domain or "")
            ).casefold(),
            "place": place,
            "line": None if place is not None else zlib.compress(line, 1),
        }
        db.execute(_UPSERT, values)
        return Gain(
            0.0,
            row.real_calls,
            found.seconds,
            max(0.0, found.seconds - _answering(found)),
            row.failed,
        )

    def _card_set(self, db: sqlite3.Connection, cards: tuple[str, ...]) -> int:
        """The number of a set of cards; solves share their sets."""
        text = json.dumps(cards)
        if known := db.execute(
            "SELECT id FROM card_sets WHERE cards = ?", (text,)
        ).fetchone():
            return int(known[0])
        made = db.execute("INSERT INTO card_sets (cards) VALUES (?)", (text,)).lastrowid
        db.executemany(
            "INSERT OR IGNORE INTO set_cards VALUES (?, ?)",
            ((card, made) for card in cards),
        )
        return int(made or 0)

    def solves(
        self, where: str = "1", order: str = "position", *values: object
    ) -> tuple[SolveRow, ...]:
        """Rows of solves, chosen and ordered by SQL over the table `solves`; values go in as parameters only."""
        sets: dict[
            str, tuple[str, ...]
        ] = {}  # solves that read the same cards share them

        def row(values: list[Any]) -> SolveRow:
            for place in _TRUTHS:
                values[place] = None if values[place] is None else bool(values[place])
            if (cards := values[_CARDS]) not in sets:
                sets[cards] = tuple(json.loads(cards))
            values[_EXIT], values[_CARDS] = (
                values[_EXIT] and ExitPath(values[_EXIT]),
                sets[cards],
            )
            return SolveRow(*values)

        chosen = f"FROM solves JOIN card_sets ON card_set = id WHERE {where} ORDER BY {order}"
        return tuple(
            row(list(each))
            for each in self.rows(f"SELECT {', '.join(_FIELDS)} {chosen}", *values)
        )

    def count(self, where: str = "1", *values: object) -> int:
        """How many solves there are, all or of a kind."""
        return int(
            self.rows(f"SELECT COUNT(*) FROM solves WHERE {where}", *values)[0][0]
        )

    def record(self, problem: str, seed: int) -> Solution:
        """The whole record of a solve. `NotHere` where there is none, `StillReading` where it may come."""
        for place, line in self.rows(
            "SELECT place, line FROM solves WHERE problem = ? AND seed = ?",
            problem,
            seed,
        ):
            found = zlib.decompress(line) if line else b""
            for path in () if line else self.files():
                with contextlib.suppress(OSError), open_plain(path) as file:
                    file.seek(place)
                    found = file.readline(MAX_BYTES)
            record = solve_in(
                found
            )  # of a file that is gone, or another one by now, nothing
            if isinstance(record, Solution) and (record.problem, record.seed) == (
                problem,
                seed,
            ):
                return record
        if not self.complete:
            raise StillReading(self.name)
        raise NotHere(
            f"no solve of problem '{problem[:40]}' with seed {seed} in {self.name}"
        )

    def statement(self, problem: str, label: str | None) -> str | None:
        """The problem's text, where the run keeps it or it is of the starter set; traces hold only its hash."""
        path = self.folder / "problems.jsonl"
        with contextlib.suppress(OSError, KaceError):
            if self.holds(path) and (
                kept := _kept(path, FileState.of(path)).get(problem)
            ):
                return kept
        return next(
            (text for split in SPLITS if (text := _starter(split).get(problem))), None
        )

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Lines that could not be read."""
        return tuple(
            Damage(*row)
            for row in self.rows("SELECT line, reason FROM damage ORDER BY line")
        )

    @property
    def progress(self) -> tuple[int, int]:
        """How many solves are read, and about how many there are."""
        read = self.count()
        file = self.rows("SELECT number * size / place FROM followed WHERE place")
        return read, max(
            read, *(int(row[0]) for row in file)
        ) if file and not self.complete else read

    @property
    def going(self) -> bool:
        """Whether the run seems to be under way: something was written to it just now, and it is not finished."""
        return self.missing != 0 and at_work(self.folder, *self.files())

    @property
    def missing(self) -> int | None:
        """Solves of its data set that it lacks on the seeds it has begun; `None` where that is not known."""
        if self.setup.problems is None or not self.complete:
            return None
        sql = "SELECT COUNT(*), MAX(1, COUNT(DISTINCT seed)) FROM solves"
        solves, seeds = map(int, self.kept("missing", lambda: self.rows(sql)[0]))
        return max(0, self.setup.problems * seeds - solves)

    def score(self) -> RunAccuracy | None:
        """How the run went, each family counted once where every solve has one, else each problem."""
        cluster = "CASE WHEN (SELECT COUNT(family) = COUNT(*) FROM solves) THEN family ELSE problem END"
        known = f"SELECT AVG(correct) AS share, {cluster} AS cluster FROM solves WHERE correct IS NOT NULL"
        sql = f"""
            WITH each AS ({known} GROUP BY problem), sizes AS (SELECT COUNT(*) AS n FROM each GROUP BY cluster)
            SELECT AVG(share), COUNT(share), (SELECT SUM(n * n) FROM sizes) FROM each
        """
        share, problems, squares = self.kept("score", lambda: self.rows(sql)[0])
        if share is None:
            return None
        return RunAccuracy(
            share, wilson_of_share(share, problems * problems // squares), problems
        )

    def arm(self) -> Table:
        """The run as comparisons take it."""
        try:
            return Table.open(self.folder, allow_empty=True)
        except KaceError:  # the page says why
            return Table.of((), name=self.name, manifest=self.manifest)


def _answering(found: Solution) -> float:
    """Seconds in which attempts were being answered: of each tier, those of the slowest, for they run together."""
    total = 0.0
    slowest = 0.0
    tier = None
    for made in found.attempts:
        if made.tier is not tier:
            total = total + slowest
            slowest = 0.0
            tier = made.tier
        if made.seconds > slowest and not made.from_cache:
            slowest = made.seconds
    return total + slowest


@lru_cache(maxsize=4)
def _kept(path: Path, state: FileState) -> Mapping[str, str]:
    return {problem.id: problem.text for problem in read_problems(path.parent)}


@lru_cache(maxsize=8)
def _starter(split: str) -> Mapping[str, str]:
    """Return the texts of a bundled split."""
    return {problem.id: problem.text for problem in load_bundled("starter", split)}


def at_work(folder: Path, *files: Path) -> bool:
    """Whether a process of this machine holds a run's folder, or one of any machine wrote to its files just now."""
    return bool(is_held(folder / "lock")) or any(
        FileState.of(path).within(RECENT) for path in files
    )


def solve_in(line: bytes) -> Solution | str:
    """The record in a line; the reason in words where it is damaged. A newer format is a `DataError`."""
    try:
        return Solution.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        if (version := json.loads(line)["v"]) > TRACE_VERSION:
            what = f"the trace is written by a newer kace (version {version}, this one reads {TRACE_VERSION})"
            raise DataError(what, fix="upgrade kace")
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
