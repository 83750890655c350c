"""Sidecars: what pages need of a source, in a disposable SQLite database in the user's cache directory.

It is built in a thread, continued when its source grows, and made anew when that is replaced or it is damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import re
import sqlite3
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from kace.config import user_cache
from kace.errors import KaceError, redact
from kace.files import open_plain, whole_lines
from kace.runs.table import MAX_DAMAGED

log = logging.getLogger(__name__)
T = TypeVar("T")
_in_turn = ThreadPoolExecutor(
    1, thread_name_prefix="kace-index"
)  # reads what nobody waits for, one by one

VERSION = 9  # of every schema together: another version has other files
OLD = 30 * 86_400  # seconds after which a sidecar that nobody used is removed
PATIENCE = (
    0.25  # seconds that a page waits for a source, so that a small one is whole at once
)
TIMEOUT = 20.0  # seconds that whoever asks waits for whoever writes
KEPT = 24  # values of one source that are kept in memory
MARK = 4_096  # bytes by which what was read last is known again
# bytes of a large source, seconds that a page waits for it, and for others
LARGE = 4_000_000
SHORT = 0.1
LONG = 0.5
FOLLOWING = """CREATE TABLE IF NOT EXISTS gains (at REAL PRIMARY KEY, calls, busy, waited, lost) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS followed (name PRIMARY KEY, place, number, mark, size, changed, done) WITHOUT ROWID;"""
LOCKS = Path("/proc/locks")
_TABLE = re.compile(r"TABLE IF NOT EXISTS (\w+)")


class Gain(NamedTuple):
    """What a source had gained when it was read, and when it had last changed then."""

    at: float
    calls: int = 0
    busy: float = 0.0  # seconds that its solves took
    waited: float = 0.0  # of them, those in which no attempt was being answered
    lost: int = 0  # solves that lost a call for good

    def __add__(self, more: tuple[Any, ...]) -> Gain:
        """Both together, at the time of this one."""
        return Gain(
            self.at, *(here + new for here, new in zip(self[1:], more[1:], strict=True))
        )


class Sidecar(ABC):
    """The database of one source. Any number of threads may ask; one builds."""

    schema: str  # tables, each `IF NOT EXISTS`
    texts: Sidecar | None = (
        None  # another source that belongs to this one, waited for and closed with it
    )

    def __init__(self, kind: str, source: Path) -> None:
        name = hashlib.sha256(
            f"{VERSION}\0{kind}\0{source}".encode("utf-8", "surrogateescape")
        ).hexdigest()[:24]
        self.path = cache_folder() / f"{kind}-{name}.sqlite"
        self.source = source
        self.error: KaceError | None = (
            None  # why reading stopped before the end, if it did
        )
        self.version = 0  # changes whenever the tables do
        self._asked: object = None
        # over starting to build
        self._lock = threading.Lock()
        self._closed = False
        self._making = threading.Lock()  # over making the tables
        # set once all, once something was read
        self._done = threading.Event()
        self._begun = threading.Event()
        self._done.set()
        self._kept: dict[Hashable, tuple[int, object]] = {}

    def files(self) -> tuple[Path, ...]:
        """What is read; the first is the one that makes it large."""
        return (self.source,)

    def stamp(self) -> object:
        """Changes when the source does; costs no more than asking for its size."""
        return [FileState.of(path) for path in self.files()]

    @property
    def size(self) -> int:
        """Bytes of the source."""
        return sum(FileState.of(path).size for path in self.files()[:1])

    @abstractmethod
    def step(self, db: sqlite3.Connection) -> bool:
        """Read the next part of the source; whether there is more. It runs in one transaction of its own."""

    def look(self, patience: float | None = PATIENCE, *, urgent: bool = True) -> bool:
        """Read what is new, in a thread (or in turn, if not urgent), and wait a moment; whether everything is read."""
        with self._lock:
            idle = self._done.is_set() and not self._closed
            if idle and (
                (now := self.stamp()) != self._asked or not self.path.exists()
            ):
                self._asked = now
                self._done.clear()
                if urgent:
                    threading.Thread(
                        target=self._build, name="kace-index", daemon=True
                    ).start()
                else:
                    _in_turn.submit(self._build)
        return self._done.wait(patience)

    def glimpse(self) -> bool:
        """Look, and wait as long as a page may: for all of a small source, for the first rows of a large one."""
        return (
            self.look(LONG)
            if self.size <= LARGE
            else self.look(0) or (self._begun.wait(SHORT) and self.complete)
        )

    def wait(self) -> None:
        """Until everything there is has been read."""
        self.look(None)
        if self.texts:
            self.texts.wait()

    @property
    def complete(self) -> bool:
        """Whether everything that was there when last looked has been read."""
        return self._done.is_set()

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        if self.texts:
            self.texts.close()

    @contextmanager
    def reading(self, other: Sidecar | None = None) -> Iterator[sqlite3.Connection]:
        """A connection on which all questions see the same state; another sidecar's tables are `other.name`."""
        with closing(self._connected()) as db:
            db.row_factory = sqlite3.Row
            if other is None:
                db.execute("BEGIN")
            else:
                other._connected().close()  # its tables are there
                db.execute("ATTACH DATABASE ? AS other", (str(other.path),))
                _begin(db)
            yield db

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """The rows of one question."""
        with self.reading() as db:
            return db.execute(sql, values).fetchall()

    def kept(self, name: Hashable, make: Callable[[], T]) -> T:
        """What `make` finds, kept in memory until the tables change: for figures over many rows."""
        version = self.version
        known = self._kept.get(name)
        if known is None or known[0] != version:
            known = (version, make())
            self._kept = {**dict(list(self._kept.items())[-KEPT:]), name: known}
        return cast("T", known[1])

    def gains(self) -> list[Gain]:
        """All of them, the earliest first."""
        return [Gain(*row) for row in self.rows("SELECT * FROM gains ORDER BY at")]

    def clear(self, db: sqlite3.Connection) -> None:
        """Forget everything: the source is another one."""
        schema = FOLLOWING + self.schema
        for sql in (
            *(f"DROP TABLE {table}" for table in _TABLE.findall(schema)),
            *schema.split(";"),
        ):
            db.execute(sql)

    def follow(self, db: sqlite3.Connection, path: Path, batch: int) -> bool:
        """Take the next lines of a file, or all of a compressed one; whether there was anything to read.

        Everything is forgotten first where it is another file by now. What comes before an error counts.
        """
        now = FileState.of(path)
        packed = path.suffix == ".gz"
        columns = "SELECT place, number, mark, size, changed, done FROM followed WHERE name = ?"
        known = db.execute(columns, (path.name,)).fetchone()
        place, number, mark, size, changed, done = known or (
            0,
            0,
            _mark(path, 0),
            -1,
            0.0,
            0,
        )
        if done and (size, changed) == now[1:]:
            return False
        if known and (
            packed
            or (size == now.size and changed != now.changed)
            or _mark(path, place) != mark
        ):
            self.clear(db)
            place = number = 0
        gained = Gain(now.changed)
        damaged = 0
        first = number
        done = 0
        try:
            for _, at, line in islice(
                whole_lines(path, place), None if packed else batch
            ):
                found = self.take(db, path, number + 1, None if packed else at, line)
                number = number + 1
                place = 0 if packed else at + len(line) + 1
                if found:
                    gained += found
                elif (damaged := damaged + 1) > MAX_DAMAGED:
                    raise KaceError(f"{MAX_DAMAGED} damaged lines")
            done = int(packed or number - first < batch)
        finally:
            if before := db.execute(
                "SELECT * FROM gains WHERE at = ?", (gained.at,)
            ).fetchone():
                gained += before
            db.execute("INSERT OR REPLACE INTO gains VALUES (?, ?, ?, ?, ?)", gained)
            row = (path.name, place, number, _mark(path, place), *now[1:], done)
            db.execute(
                "INSERT OR REPLACE INTO followed VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
        return True

    def take(
        self,
        db: sqlite3.Connection,
        path: Path,
        number: int,
        place: int | None,
        line: bytes,
    ) -> Gain | None:
        """Keep what a line of a followed file says; nothing comes of one that cannot be read.

        A compressed file has no places: its lines are kept themselves.
        """
        raise NotImplementedError

    def _build(self) -> None:
        try:
            try:
                self._steps()
            except (
                sqlite3.DatabaseError
            ) as error:  # damaged, or of another program: it is made anew once
                log.info("sidecar of %s made anew: %s", self.source, error)
                self.path.unlink(missing_ok=True)
                self._steps()
        except Exception as error:
            log.error("%s", redact(f"reading {self.source} failed: {error!r}"))
            self.error = KaceError(
                f"{self.source.name} cannot be read", fix="the terminal says more"
            )
        finally:
            self._done.set()
            self._begun.set()

    def _steps(self) -> None:
        self.error = None
        more = True
        with (
            self.path.with_suffix(".lock").open("w") as lock,
            closing(self._connected()) as db,
        ):
            fcntl.flock(
                lock, fcntl.LOCK_EX
            )  # no other process builds the same sidecar at the same time
            while more and not self._closed:
                db.execute(
                    "BEGIN IMMEDIATE"
                )  # closing the connection takes back what is not committed
                before = db.total_changes
                try:
                    more = self.step(db)
                except KaceError as error:
                    self.error = error
                    more = False
                db.execute("COMMIT")
                self.version += db.total_changes != before
                self._begun.set()
                time.sleep(0)  # pages first

    def _connected(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in (
                "journal_mode=DELETE",
                "synchronous=OFF",
                "cache_size=-32000",
            ):  # it can be made again
                db.execute(f"PRAGMA {pragma}")
            with self._making:  # else a page that finds no tables yet waits for all that the first step reads
                if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    db.executescript(
                        f"BEGIN IMMEDIATE; {FOLLOWING} {self.schema} COMMIT;"
                    )
        except BaseException:
            db.close()
            raise
        return db


def _begin(db: sqlite3.Connection) -> None:
    """Begin to read of both databases at once: who holds one and waits for another may wait for ever."""
    until = time.monotonic() + TIMEOUT
    db.execute("PRAGMA busy_timeout=100")
    while True:
        db.execute("BEGIN")
        try:
            db.execute("SELECT 1 FROM main.gains, other.gains LIMIT 1").fetchone()
            return
        except sqlite3.OperationalError:
            db.execute("ROLLBACK")
            if time.monotonic() > until:
                raise


class FileState(NamedTuple):
    """A file as it is: another one, or a changed one, has another state. All 0 where there is none."""

    inode: int = 0
    size: int = 0
    changed: float = 0.0

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of the file at a path."""
        try:
            found = path.stat()
        except OSError:
            return cls()
        return cls(found.st_ino, found.st_size, found.st_mtime)

    def within(self, seconds: float) -> bool:
        """Whether it changed just now."""
        return time.time() - self.changed < seconds


def is_held(lock: Path) -> bool | None:
    """Whether a process holds a lock file; `None` where the system does not say."""
    try:  # trying the lock would take it, and whoever starts in that moment would be turned away
        inode = lock.stat().st_ino
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None if lock.exists() else False
    return any(
        " FLOCK " in line and line.split()[-3].endswith(f":{inode}") for line in lines
    )


def _mark(path: Path, place: int) -> str:
    """Tells whether a file still has what was read of it last, up to a place."""
    with open_plain(path) as file:
        file.seek(max(0, place - MARK))
        return hashlib.sha256(file.read(min(MARK, place))).hexdigest()


@cache
def cache_folder() -> Path:
    """Where sidecars lie: the user's cache directory, or a temporary one where that cannot be written."""
    folder = user_cache() / "view"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return Path(tempfile.mkdtemp(prefix="kace-view-"))
    for path in folder.iterdir():
        if not FileState.of(path).within(OLD):
            with contextlib.suppress(OSError):
                path.unlink()
    return folder
