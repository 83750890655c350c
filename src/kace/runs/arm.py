"""An arm: one system's recorded solves, one row each, kept on disk so that memory does not grow with them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from heapq import merge
from itertools import chain, groupby
from operator import add, attrgetter, eq
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple
from weakref import finalize

from kace.baselines.registry import Spec, spec_of
from kace.errors import DataError, UsageError
from kace.ladder.record import Damage, Outcome, Solution, read_trace, trace_of
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage, total
from kace.runs.manifest import manifest_part, manifest_text, read_manifest
from kace.runs.run import kept_field
from kace.words import counted

_TEXTS = ("problem", "label", "family", "domain")
_ROUTING = (
    "classifier_calls",
    "classifier_input",
    "classifier_cached",
    "classifier_output",
)
_SAME = (
    "seed",
    "correct",
    "failed",
    "exit",
    "paper_calls",
    "real_calls",
    "abstained",
    "seconds",
    "ahead_calls",
)
TOKENS = ("input", "cached", "output")
MOST_SEED = 1 << 63


@dataclass(frozen=True, slots=True)
class SolveRow:
    """One problem solved once, as its record says it."""

    problem: str
    label: str
    family: str | None
    domain: str | None
    seed: int
    correct: bool | None
    failed: bool
    exit: ExitPath | None
    paper_calls: int
    real_calls: int
    attempts: int  # attempts that ran to an end; one that early stop cancelled is not evidence of anything
    right_attempts: int
    input: int  # the solver's prompt tokens, cached ones included
    cached: int
    output: int
    classifier_calls: int
    classifier_input: int
    classifier_cached: int
    classifier_output: int
    card_tokens: int  # tokens of learned text in the fullest prompt of the solve: its active context
    read_tokens: int  # tokens of learned text over all tiers of the solve
    estimated: bool  # whether those tokens are an estimate from the length of the text
    cards: tuple[str, ...]  # ids of the cards it read, each once, in order
    abstained: bool  # whether it read none though some tier had eligible ones
    seconds: float
    batch_input: int = 0  # of the solver's tokens, those of calls in batches, which have a price of their own
    batch_cached: int = 0
    batch_output: int = 0
    ahead_calls: int = 0  # sent ahead by a batch and not needed, with their tokens: part of no other figure
    ahead_input: int = 0
    ahead_cached: int = 0
    ahead_output: int = 0

    @property
    def name(self) -> str:
        """What to call the problem in a table."""
        return self.label or self.problem[:8]


_FIELDS = tuple(field.name for field in fields(SolveRow))
_EXIT, _CARDS = map(_FIELDS.index, ("exit", "cards"))


class SolveTable(Sequence[SolveRow]):
    """The last row of every problem and seed, ordered by both, in a temporary file of SQLite's."""

    retried: int  # rows that replace an earlier one of the same problem and seed

    def __init__(self, rows: Iterable[SolveRow]) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        finalize(self, self._db.close)
        sets = dict[tuple[str, ...], int]()  # of cards, which many rows share

        def packed(row: SolveRow) -> tuple[str, int, str]:
            values = [getattr(row, name) for name in _FIELDS]
            values[_CARDS] = sets.setdefault(row.cards, len(sets))
            return row.problem, row.seed, json.dumps(values)

        self._db.execute("CREATE TABLE found (problem, seed, row)")
        self._db.executemany("INSERT INTO found VALUES (?, ?, ?)", map(packed, rows))
        # Beside MAX, SQLite takes the other columns from the row that has it.
        last = "SELECT row, COUNT(*) AS times, MAX(rowid) FROM found GROUP BY problem, seed ORDER BY problem, seed"
        self._db.execute(f"CREATE TABLE solves AS {last}")
        self._db.execute("DROP TABLE found")
        sql = "SELECT COUNT(*), IFNULL(SUM(times > 1), 0) FROM solves"
        self._size, self.retried = map(int, self._db.execute(sql).fetchone())
        self._cards = [*sets]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[SolveRow]:
        for (row,) in self._db.execute("SELECT row FROM solves ORDER BY rowid"):
            yield self._unpacked(row)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(self)[place]
        number = range(1, self._size + 1)[place]
        return self._unpacked(
            *self._db.execute(
                "SELECT row FROM solves WHERE rowid = ?", (number,)
            ).fetchone()
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(map(eq, self, other))
        )

    def _unpacked(self, row: str) -> SolveRow:
        values = json.loads(row)
        values[_EXIT], values[_CARDS] = (
            values[_EXIT] and ExitPath(values[_EXIT]),
            self._cards[values[_CARDS]],
        )
        return SolveRow(*values)


class ArmCounts(NamedTuple):
    """How many there are of what."""

    problems: int
    seeds: int
    unlabelled: int  # solves without a known answer
    failed: int  # solves that lost a call to the provider
    without_family: int  # solves


@dataclass(frozen=True)
class Arm:
    """A system as it was recorded: the last row of every problem and seed, ordered by both."""

    name: str
    rows: Sequence[SolveRow]
    manifest: Mapping[str, object]  # what produced it, as `run.json` has it.
    damage: tuple[Damage, ...] = ()
    retried: int = 0  # solves that replace an earlier one of the same problem and seed, which had lost a call
    folder: Path | None = None

    @property
    def model(self) -> str:
        """The solver, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "config").get("model"))

    @property
    def data(self) -> str:
        """The content hash of the problems it was run on, or nothing where the run does not say."""
        return manifest_text(manifest_part(self.manifest, "data").get("hash"))

    @property
    def spec(self) -> Spec | None:
        """The row of its system; `None` for one that nobody here knows."""
        with suppress(UsageError):
            return spec_of(
                manifest_text(manifest_part(self.manifest, "system").get("name"))
            )
        return None

    @cached_property
    def counts(self) -> ArmCounts:
        """Counted once."""
        problems = 0
        seeds = set[int]()
        found = Counter[str]()
        for _, solves in self.by_problem():
            problems += 1
            for row in solves:
                seeds.add(row.seed)
                found["unlabelled"] += row.correct is None
                found["failed"] += row.failed
                found["without_family"] += not row.family
        return ArmCounts(
            problems,
            len(seeds),
            found["unlabelled"],
            found["failed"],
            found["without_family"],
        )

    @property
    def complete(self) -> bool:
        """Whether every problem was solved on every seed."""
        return len(self.rows) == self.counts.problems * self.counts.seeds

    def by_problem(self) -> Iterator[tuple[str, list[SolveRow]]]:
        """The solves of one problem after the other."""
        return (
            (problem, [*solves])
            for problem, solves in groupby(self.rows, attrgetter("problem"))
        )


@dataclass(frozen=True, slots=True)
class Clusters:
    """What counts as one observation: all problems that share a field, with all their seeds."""

    field: str
    names: Mapping[str, str]  # the cluster of each problem whose row does not say it

    def of(self, row: SolveRow | Solution) -> str:
        """The cluster of a solve."""
        return self.names.get(row.problem) or getattr(row, self.field)

    def count(self, arms: Iterable[Arm]) -> int:
        """How many there are."""
        if self.field != "problem":
            return len({self.of(row) for arm in arms for row in arm.rows})
        return sum(
            1
            for _ in groupby(
                merge(*(map(attrgetter("problem"), arm.rows) for arm in arms))
            )
        )


class ClusterSums:
    """Values summed up by cluster, given problem by problem."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._named = dict[str, tuple[Any, ...]]()
        self._alike = Counter[tuple[Any, ...]]()

    def add(self, row: SolveRow, *values: Any) -> None:
        """Add the values of a problem, of which this is a solve."""
        if self._clusters.field == "problem":
            self._alike[values] += (
                1  # it does not come again, so its name need not be kept
            )
        else:
            name = self._clusters.of(row)
            self._named[name] = (
                tuple(map(add, self._named[name], values))
                if name in self._named
                else values
            )

    def alike(self) -> Counter[tuple[Any, ...]]:
        """How many clusters have the same sums."""
        return self._alike or Counter(self._named.values())


def clusters_of(arms: Sequence[Arm], field: str | None = None) -> Clusters:
    """By any field that every problem has; left out, by family where every solve has one, else by problem."""
    if field is None:
        everywhere = any(arm.rows for arm in arms) and not any(
            arm.counts.without_family for arm in arms
        )
        return Clusters("family" if everywhere else "problem", {})
    own = (
        field in _TEXTS
    )  # a field of the rows, of which only gaps need be filled from elsewhere
    bare = {
        row.problem
        for arm in arms
        for row in arm.rows
        if not (own and getattr(row, field))
    }
    told = (
        (row.problem, getattr(row, field))
        for arm in arms
        if own and bare
        for row in arm.rows
    )
    kept = (
        pair
        for arm in arms
        if arm.folder and not own
        for pair in kept_field(arm.folder, field)
    )
    names = {
        problem: intern(name)
        for problem, name in chain(told, kept)
        if name and problem in bare
    }
    if lacking := len(bare - names.keys()):
        said = f"{lacking:,} of {counted(Clusters('problem', {}).count(arms), 'problem')} have no field '{field[:40]}'"
        raise UsageError(
            said,
            fix="--cluster problem, family, domain, or a field of the runs' problems.jsonl",
        )
    return Clusters(field, names)


def read_arm(folder: Path) -> Arm:
    """Read a run directory line by line. Damaged lines are left out and counted."""
    manifest = read_manifest(folder / "run.json")
    damage: list[Damage] = []

    def rows() -> Iterator[SolveRow]:
        for number, line in enumerate(read_trace(trace_of(folder)), start=1):
            if isinstance(line.content, Damage):
                damage.append(line.content)
            elif abs(line.content.seed) >= MOST_SEED:
                damage.append(Damage(number, "seed: not a number of 64 bits"))
            else:
                yield row_of(line.content)

    table = SolveTable(rows())
    name = (
        manifest_text(manifest_part(manifest, "system").get("name"))
        or folder.resolve().name
    )
    return Arm(name, table, manifest, tuple(damage), table.retried, folder)


def read_arms(folders: Sequence[Path]) -> tuple[Arm, ...]:
    """Read several, each under a name of its own: the system's, or where two share it the end of the folder's path."""
    arms = [read_arm(folder) for folder in folders]
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        times = Counter(arm.name for arm in arms)
        called = [str(Path(*each[-depth:])) for each in parts]
        arms = [
            replace(a, name=name) if times[a.name] > 1 else a
            for a, name in zip(arms, called, strict=True)
        ]
    name, most = (
        Counter(arm.name for arm in arms).most_common(1)[0] if arms else ("", 0)
    )
    if most > 1:
        raise DataError(f"{name} is given twice", fix="name every run once")
    return tuple(arms)


def row_of(record: Solution) -> SolveRow:
    """The row of a record."""
    recalls = record.recalls
    read = [recall.tokens for recall in record.recalls]
    ran = [
        attempt
        for attempt in record.attempts
        if attempt.outcome is not Outcome.CANCELLED
    ]
    batched = total([attempt.usage for attempt in record.made if attempt.batch])
    taken: dict[str, Any] = {name: getattr(record, name) for name in (*_TEXTS, *_SAME)}
    taken |= (
        _tokens("", record.usage)
        | _tokens("batch_", batched)
        | _tokens("ahead_", record.ahead_usage)
    )
    taken |= {
        name: sum(getattr(recall, name) for recall in recalls) for name in _ROUTING
    }
    return SolveRow(
        **taken,
        attempts=len(ran),
        right_attempts=sum(attempt.correct is True for attempt in ran),
        card_tokens=max(read, default=0),
        read_tokens=sum(read),
        estimated=any(recall.estimated for recall in recalls),
        cards=tuple(dict.fromkeys(card for recall in recalls for card in recall.cards)),
    )


def _tokens(prefix: str, usage: Usage) -> dict[str, int]:
    return {prefix + kind: getattr(usage, kind) for kind in TOKENS}
