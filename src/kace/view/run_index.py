"""A run for pages: one compact row a solve, read beside the pages and followed as the run grows."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import NamedTuple

from kace.errors import KaceError
from kace.evaluation.arm import TRACES, Arm, Row, row_of
from kace.solver.manifest import read_manifest
from kace.solver.trace import Damage, SolveRecord
from kace.view.background import Background, page_asked
from kace.view.call_texts import CallTexts
from kace.view.line_source import FoundLine, LineSource, line_source
from kace.view.page import NotHere
from kace.view.run_manifest import MAX_BYTES, setup_of
from kace.view.run_tally import Tally
from kace.view.trace_line import solve_in

BATCH = 100
"""Solves read before others may go on: a few milliseconds of work."""
OFTEN = 0.5
"""Seconds between two looks at the file."""
SOON = 4_000_000
"""Bytes that are read in about the time that a page may wait for."""
RECENT = 30.0
"""Seconds since the last solve within which a run counts as going on."""

Key = tuple[str, int]
"""A problem and a seed."""
_serials = count()


class NotYet(NotHere):
    """A solve that may be there but has not been read yet."""


class Progress(NamedTuple):
    """How much of a run is read."""

    read: int
    about: int
    """Solves in the file, told from its size until all are read."""


class RunIndex:
    """An opened run directory. Reading starts at once, in a thread; every figure is that of what is read so far."""

    def __init__(self, folder: Path, *, within: Path | None = None) -> None:
        """`within` is the opened folder that holds the run: nothing outside it is read; calls may lie above the run.

        A folder without a manifest that can be read is a `DataError`; anything else is told by the pages.
        """
        self.folder = folder.resolve()
        self._within = (within or folder).resolve()
        self.manifest: Mapping[str, object] = read_manifest(self.folder / "run.json", MAX_BYTES)
        self.setup = setup_of(self.manifest)
        self.name = self.setup.system or self.folder.name
        self._guard = threading.Lock()
        """Over what `_clear` makes: a page never sees half of a step."""
        self._looking = threading.Lock()
        """Over looking at the file: only one page starts to read it."""
        self._looked = -OFTEN
        self._source: LineSource | None = None
        self._clear()
        self._calls = self._find_calls()
        self._reading = Background(self._step)
        self._look()

    def _clear(self) -> None:
        self._serial = next(_serials)
        self._rows: list[Row] = []
        self._places = array("q")
        """The offset of each row's line."""
        self._found: dict[str, list[int]] = {}
        """Positions in `_rows` of every problem's solves."""
        self._tally = Tally()
        self._damage: list[Damage] = []
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._retried: set[int] = set()
        self._error: KaceError | None = None
        self._lines: list[FoundLine] = []
        """Lines taken from the file and not read yet, last first."""
        self._number = 0
        """Lines read."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The last word on every problem and seed read so far, in the order they first finished."""
        self._look()
        with self._guard:
            return tuple(self._rows)

    @property
    def complete(self) -> bool:
        """Whether all that is in the file now has been read."""
        self._look()
        return not self._reading.busy

    @property
    def progress(self) -> Progress:
        """How many solves are read, and about how many there are."""
        with self._guard:
            read, lines, source = len(self._rows), self._number + len(self._lines), self._source
        if source is None or not self._reading.busy or not source.taken:
            return Progress(read, read)
        return Progress(read, max(read, round(lines * max(1.0, source.size / source.taken))))

    @property
    def tally(self) -> Tally:
        """The figures of what is read so far: a copy, which stays as it is."""
        with self._guard:
            return deepcopy(self._tally)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Lines that could not be read."""
        return tuple(self._damage)

    @property
    def retried(self) -> int:
        """Solves that replace an earlier one, which had lost a call."""
        return len(self._retried)

    @property
    def error(self) -> KaceError | None:
        """Why reading stopped before the end, if it did."""
        return self._error

    @property
    def going(self) -> bool:
        """Whether the run seems to be under way: something was written to it just now."""
        try:
            return self._source is not None and time.time() - self._source.path.stat().st_mtime < RECENT
        except OSError:
            return False

    @property
    def version(self) -> Hashable:
        """Changes whenever rows do, and is no other run's."""
        return self._serial, self._number

    @property
    def model(self) -> str:
        """The solver, or nothing where the run does not say."""
        return self.setup.model

    @property
    def tree_hash(self) -> str:
        """The content hash of the tree it read from, or nothing."""
        return self.setup.tree_hash

    def arm(self) -> Arm:
        """The run as comparisons take it, with what is read so far."""
        rows = sorted(self.rows, key=lambda row: (row.problem, row.seed))
        return Arm(self.name, tuple(rows), self.manifest, self.damage, self.retried, self.folder)

    def solves_of(self, problem: str) -> tuple[Row, ...]:
        """A problem's solves read so far, by seed."""
        with self._guard:
            rows = [self._rows[position] for position in self._found.get(problem, ())]
        return tuple(sorted(rows, key=lambda row: row.seed))

    def row(self, problem: str, seed: int) -> Row | None:
        """A solve's row, where it is read."""
        return next((row for row in self.solves_of(problem) if row.seed == seed), None)

    def record(self, problem: str, seed: int) -> SolveRecord:
        """The whole record of a solve, read from where it lies. `NotHere` where there is none, `NotYet` before that."""
        found = self.records([(problem, seed)])[0]
        if found is not None:
            return found
        missing = NotHere if self.complete else NotYet
        raise missing(f"no solve of problem '{problem[:40]}' with seed {seed} in {self.name}")

    def records(self, keys: Sequence[Key]) -> list[SolveRecord | None]:
        """Several records; nothing where one is not read, or its line is not there any more."""
        with self._guard:
            source, positions = self._source, [self._position(*key) for key in keys]
            offsets = [None if position is None else self._places[position] for position in positions]
        if source is None:
            return [None] * len(offsets)
        found = [None if offset is None else solve_in(source.line_at(offset)) for offset in offsets]
        return [
            record if isinstance(record, SolveRecord) and (record.problem, record.seed) == key else None
            for key, record in zip(keys, found, strict=True)
        ]

    def text_of(self, call: str) -> str | None:
        """What the model replied in a call, where the run's calls are there."""
        kept = self._calls.get(call) if self._calls and call else None
        return kept.text if kept else None

    @property
    def keeps_texts(self) -> bool:
        """Whether there is a folder of calls at all."""
        return self._calls is not None

    @property
    def texts_complete(self) -> bool:
        """Whether every call there is can be found by now."""
        return self._calls is None or self._calls.complete

    def catch_up(self, patience: float = 0.15) -> bool:
        """Give reading a moment before a page is drawn, so that a small run is whole at once; whether it is."""
        self._look()
        self._reading.go_first()
        source, until = self._source, time.monotonic() + patience
        soon = source is not None and source.size - source.taken < SOON
        # A large run is not waited for, but for its first rows.
        while self._reading.busy and (soon or not self._rows) and time.monotonic() < until:
            self._reading.wait(0.01)
        page_asked()
        return not self._reading.busy

    def wait(self) -> None:
        """Until everything there is has been read, texts included."""
        self._look(now=True)
        self._reading.wait()
        if self._calls:
            self._calls.wait()

    def close(self) -> None:
        """Stop reading."""
        self._reading.stop()
        if self._calls:
            self._calls.close()

    def _look(self, *, now: bool = False) -> None:
        """Begin to read where the file has more than was read; from the start where it is another file."""
        if self._reading.busy or not self._looking.acquire(blocking=False):
            return
        try:
            moment = time.monotonic()
            if not self._reading.busy and (now or moment - self._looked >= OFTEN):
                self._looked = moment
                self._begin()
        finally:
            self._looking.release()

    def _begin(self) -> None:
        with self._guard:
            if self._source is None or self._source.replaced:
                self._clear()
                self._source = self._find_trace()
            source = self._source
        if source is not None and self._error is None and source.grown:
            self._reading.start()

    def _find_trace(self) -> LineSource | None:
        path = next((path for name in TRACES if (path := self.folder / name).is_file()), None)
        return line_source(path) if path and path.resolve().is_relative_to(self._within) else None

    def _find_calls(self) -> CallTexts | None:
        """The run's own, or those of a folder above it that several runs share."""
        for folder in (self.folder, *self.folder.parents):
            if not folder.is_relative_to(self._within):
                break
            calls = folder / "calls"
            if calls.is_dir() and calls.resolve().is_relative_to(self._within):
                return CallTexts(calls)
        return None

    def _step(self) -> bool:
        """Read a batch; whether there may be more."""
        source = self._source
        if source is None or self._error is not None:
            return False
        if not self._lines:
            self._lines = source.more()[::-1]
            if not self._lines:
                return False
        batch = [self._lines.pop() for _ in range(min(BATCH, len(self._lines)))]
        records = [(offset, solve_in(line)) for offset, line in batch]
        with self._guard:
            for offset, found in records:
                self._number += 1
                self._take(offset, found)
        return self._error is None

    def _take(self, offset: int, found: SolveRecord | str | KaceError) -> None:
        match found:
            case SolveRecord():
                self._add(row_of(found, self._shared), offset)
            case KaceError():
                self._error = found
            case reason:
                self._damage.append(Damage(self._number, reason))

    def _add(self, row: Row, offset: int) -> None:
        positions = self._found.setdefault(row.problem, [])
        again = self._position(row.problem, row.seed)
        others = [self._rows[position] for position in positions if position != again]
        if again is None:
            self._tally.take(row, others)
            positions.append(len(self._rows))
            self._rows.append(row)
            self._places.append(offset)
        else:
            self._tally.take(row, others, self._rows[again])
            self._rows[again], self._places[again] = row, offset
            self._retried.add(again)

    def _position(self, problem: str, seed: int) -> int | None:
        return next((p for p in self._found.get(problem, ()) if self._rows[p].seed == seed), None)
