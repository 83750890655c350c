"""The read model of a run: its append-only files as rows in memory.

`Table.open` reads the trace of a run directory, and `refresh` reads what was appended
since. Reports, comparisons, pages, `kace.load_run` and MCP read runs through it.

Run directories may come from strangers: only plain files are read, links are never
followed, and lines, numbers and damage are bounded.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from operator import attrgetter, itemgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kace.errors import DataError, KaceError, counted
from kace.files import Unreadable, open_plain, readable, whole_lines
from kace.ladder.record import (
    Attempt,
    Damage,
    Outcome,
    Solution,
    parse_solution,
)
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage, total
from kace.models.cache import CallStore
from kace.problems import Problem, problem_of
from kace.runs.manifest import Manifest

if TYPE_CHECKING:
    from kace.config import Price
    from kace.runs.metrics import Clusters, Metrics

T = TypeVar("T")
Key = tuple[str, int]
"""A problem and a seed."""
Place = tuple[int, int]
"""The offset and the length of a record in the trace."""

TRACE = "traces.jsonl"
PROBLEMS = "problems.jsonl"
RECENT = 30.0  # seconds since the last write within which a run is running
MAX_DAMAGED = 10_000  # damaged lines after which a file is refused
LIMIT = 1 << 62  # numbers from here on are damage
MAX_WORDS = 200  # characters of a search text
NO_LADDER = "none"
NO_USAGE = Usage()


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
    attempts: int = 0
    right_attempts: int = 0
    truncated: int = 0  # attempts that the token cap cut off
    usage: Usage = NO_USAGE  # of the solver
    classifier_calls: int = 0
    classifier: Usage = NO_USAGE
    batch: Usage = NO_USAGE  # of calls made in batches, part of the solver's
    card_tokens: int = 0  # of learned text in the fullest prompt of the solve
    estimated: bool = (
        False  # whether those are estimated from the text's length
    )
    cards: tuple[str, ...] = ()  # ids of the cards shown, each once, in order
    abstained: bool = (
        False  # whether no card was shown though some were eligible
    )
    seconds: float = 0.0
    answer: str | None = None
    expected: str | None = None
    was: bool | None = None  # `correct` of the same solve in the base run

    @property
    def name(self) -> str:
        """The problem's name in tables."""
        return self.label or self.problem[:8]

    @property
    def gained(self) -> bool:
        """Whether it is right here and wrong in the base run."""
        return self.correct is True and self.was is False

    @property
    def lost(self) -> bool:
        """Whether it is wrong here and right in the base run."""
        return self.correct is False and self.was is True


SHARED = (
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
    routing = Usage()
    classifier_calls = 0
    read = [0]  # tokens of learned text, by tier
    cards: dict[str, None] = {}
    for recall in solution.recalls:
        read.append(recall.tokens)
        cards.update(dict.fromkeys(recall.cards))
        classifier_calls += recall.classifier_calls
        routing += Usage(
            recall.classifier_input,
            recall.classifier_cached,
            recall.classifier_output,
        )
    batched = [each.usage for each in solution.made if each.batch]
    outcomes = [each.outcome for each in solution.attempts]
    return SolveRow(
        **{name: getattr(solution, name) for name in SHARED},
        attempts=len(solution.attempts),
        right_attempts=sum(each.correct is True for each in solution.attempts),
        truncated=outcomes.count(Outcome.TRUNCATED),
        usage=solution.usage,
        classifier_calls=classifier_calls,
        classifier=routing,
        batch=total(batched),
        card_tokens=max(read),
        estimated=any(recall.estimated for recall in solution.recalls),
        cards=tuple(cards),
    )


# What may be listed

SEARCHED = ("label", "family", "domain", "seed", "answer", "expected")
"""What a search term such as `family=sums` may name, besides `card`."""


FILTERS: Mapping[str, Sequence[str]] = {
    "right": ("yes", "no", "failed"),
    "exit": (*ExitPath, NO_LADDER),
    "cards": ("shown", "abstained"),
    "change": ("gained", "lost"),  # needs a base run
}
"""The values of each filter of solves, by the words of an address."""


def is_listed(row: SolveRow, where: Mapping[str, str]) -> bool:
    """Whether a solve passes filters; empty ones let all pass.

    Besides FILTERS there is `text`: words of label, family or domain, or terms such as
    card=ID.
    """
    holds = {
        row.exit or NO_LADDER: True,
        "yes": row.correct,
        "no": row.correct is False,
        "failed": row.failed,
        "shown": row.cards,
        "abstained": row.abstained,
        "gained": row.gained,
        "lost": row.lost,
    }
    for name in FILTERS:
        value = where.get(name)
        if value and not holds.get(value):
            return False
    words = where.get("text", "")[:MAX_WORDS].casefold().split()
    return all(_matches(row, word) for word in words)


def _matches(row: SolveRow, word: str) -> bool:
    """Whether a solve matches one word of a search."""
    name, equals, wanted = word.partition("=")
    if equals and name == "card":
        return wanted in map(str.casefold, row.cards)
    if equals and name in SEARCHED:
        return str(getattr(row, name)).casefold() == wanted
    names = f"{row.label}\n{row.family}\n{row.domain}\n{row.problem}"
    return word in names.casefold()


def worst_first(row: SolveRow) -> tuple[bool, ...]:
    """Return a sort key: lost, gained, wrong, the rest; with cards first of those wrong."""
    wrong = row.correct is False
    return not row.lost, not row.gained, not wrong, wrong and not row.cards


ORDERS: Mapping[str, Callable[[SolveRow], Any]] = {
    "": worst_first,
    "seed": attrgetter("seed"),
    "seconds": attrgetter("seconds"),
    "cards": lambda row: len(row.cards),
    "tokens": lambda row: row.usage.input + row.usage.output,
    "problem": lambda row: row.label + row.problem,
    "result": lambda row: (row.correct is not False) + (row.correct is True),
    "exit": lambda row: row.exit.rank if row.exit else -1,
    "calls": attrgetter("paper_calls", "real_calls"),
}
"""Sort keys by name; a minus sign before the name reverses."""


@dataclass(slots=True)
class CardUse:
    """How often a card was shown, over the solves of a run."""

    card: str
    shown: int = 0
    right: int = 0
    wrong: int = 0
    gained: int = 0  # wrong in the base run and right here, of those shown
    broken: int = 0  # right in the base run and wrong here
    astray: int = (
        0  # shown to problems of other families, where these are known
    )

    @property
    def flagged(self) -> bool:
        """Whether it breaks more than it gains."""
        return self.broken > self.gained

    @property
    def warning(self) -> str:
        """Why the card may do harm; empty without a reason."""
        reasons = []
        if self.flagged:
            reasons.append("breaks more than it gains")
        if 2 * self.astray > self.shown:
            reasons.append(f"{self.astray:,} of other families")
        return "; ".join(reasons)


def cards_of(rows: Iterable[SolveRow]) -> list[tuple[str, SolveRow]]:
    """Return the cards that solves were shown, each with its solve."""
    return [(card, row) for row in rows for card in row.cards]


def uses_of(shown: Iterable[tuple[str, SolveRow]]) -> dict[str, CardUse]:
    """Count what solves made of what they were shown, by name and in its order."""
    uses: dict[str, CardUse] = {}
    for name, row in sorted(shown, key=itemgetter(0)):
        use = uses.setdefault(name, CardUse(name))
        use.shown += 1
        use.right += row.correct is True
        use.wrong += row.correct is False
        use.gained += row.gained
        use.broken += row.lost
    return uses


class Share(NamedTuple):
    """The right solves of one group, such as a domain or a seed."""

    group: Any
    right: int
    labelled: int

    @property
    def accuracy(self) -> float:
        """The share that is right. A failed call counts as a wrong answer."""
        return self.right / self.labelled


SHARE_ORDERS: Mapping[str, Callable[[Share], int]] = {
    "exit": lambda share: -share.group.rank,
    "family": lambda share: share.right - share.labelled,  # most wrong first
}
"""Sort keys of shares by column; other columns are sorted by group."""


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


class Table:
    """A run as rows, texts and figures.

    A table changes only when it is refreshed. A torn last line is left for the next
    read. Safe to use from several threads.
    """

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        folder: Path | None = None,
        within: Path = Path(),
    ) -> None:
        """Use `Table.open` or `Table.of`."""
        self.name = name
        self.manifest = manifest
        self.folder = folder
        self.within = within
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        """Forget everything that was read."""
        self.version = FileState()  # of the trace when it was last read
        self.found: dict[Key, SolveRow] = {}  # in the run's order
        self.places: dict[Key, Place] = {}
        self.damage: list[Damage] = []  # lines that could not be read
        self.retried: set[Key] = set()  # solved again after a failure
        self._lines = 0
        self._end = 0  # bytes that were read
        self._kept: dict[object, Any] = {}

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        within: Path | None = None,
        allow_empty: bool = False,
    ) -> Table:
        """Open the run in `folder` and read it.

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
        table = cls(name, manifest, place, (within or given).resolve())
        table.refresh()
        return table

    @classmethod
    def of(
        cls,
        rows: Iterable[SolveRow],
        *,
        name: str,
        manifest: Mapping[str, object] | None = None,
    ) -> Table:
        """Return a table of rows; later ones replace earlier ones."""
        table = cls(name, Manifest(manifest))
        for number, row in enumerate(rows):
            table.put(row, (number, 0))
        return table

    def named(self, name: str) -> Table:
        """Return the same table under another name."""
        found = copy.copy(self)
        found.name = name
        return found

    def put(self, row: SolveRow, place: Place) -> None:
        """Add a row, in place of an earlier one of its problem and seed."""
        key = (row.problem, row.seed)
        if self.places.get(key, place) != place:
            self.retried.add(key)
        self.found[key] = row
        self.places[key] = place

    def refresh(self) -> None:
        """Read what was appended since the last read."""
        if self.folder is None:
            return
        path = self.folder / TRACE
        with self._lock:
            state = FileState.of(path)
            if state == self.version:
                return
            known = self.version
            grown = state.inode == known.inode and state.size > known.size
            if not grown:  # another file, or none
                self._forget()
            self._kept = {}
            if state.inode:
                with readable(path, "check its permissions"):
                    for _, offset, line in whole_lines(path, self._end):
                        self._read_line(path, offset, line)
            self.version = state

    def _read_line(self, path: Path, offset: int, line: bytes) -> None:
        self._lines += 1
        self._end = offset + len(line) + 1
        found = parse_solution(line, f"{path}:{self._lines}")
        if isinstance(found, Solution):
            row = row_of(found)
            found = out_of_range(row)
            if not found:
                self.put(row, (offset, len(line)))
                return
        self.damage.append(Damage(self._lines, found))
        if len(self.damage) > MAX_DAMAGED:
            raise Unreadable(
                path,
                f"{MAX_DAMAGED:,} of its first {self._lines:,} lines are damaged",
                "is it the right file?",
            )

    # Solves

    def __len__(self) -> int:
        return len(self.found)

    def __bool__(self) -> bool:
        return True  # a run without solves is still a run

    def __iter__(self) -> Iterator[SolveRow]:
        """Iterate over the last solve of every problem and seed, ordered by both."""
        found = dict(self.found)
        for key in sorted(found):
            yield found[key]

    def solves(
        self,
        where: Mapping[str, str] | None = None,
        *,
        sort: str | None = None,
        base: Table | None = None,
    ) -> list[SolveRow]:
        """List the solves that pass a filter, in the run's order or sorted by ORDERS.

        Ties keep the run's order. With `base`, each row has `was`: whether the same
        solve was right there.
        """
        rows = []
        for key, row in list(self.found.items()):
            theirs = base.found.get(key) if base else None
            if theirs:
                row = replace(row, was=theirs.correct)
            if not where or is_listed(row, where):
                rows.append(row)
        if sort is not None:
            order = ORDERS[sort.removeprefix("-")]
            rows.sort(key=order, reverse=sort.startswith("-"))
        return rows

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds the run has begun."""
        return tuple(sorted({seed for _, seed in list(self.found)}))

    @property
    def solved(self) -> set[str]:
        """The problems that were solved on some seed."""
        return {problem for problem, _ in list(self.found)}

    @property
    def complete(self) -> bool:
        """Whether every problem was solved on every seed."""
        return len(self) == len(self.solved) * len(self.seeds)

    @property
    def labelled(self) -> int:
        """The number of solves with a known answer."""
        return sum(row.correct is not None for row in self.solves())

    @property
    def failed(self) -> int:
        """The number of solves that lost a call to the provider."""
        return sum(row.failed for row in self.solves())

    def shares(self, column: str) -> list[Share]:
        """Count the right and the labelled solves by exit, domain, family or seed."""
        groups: dict[Any, list[bool]] = {}
        for row in self.solves():
            group = getattr(row, column)
            if row.correct is not None and group not in (None, ""):
                groups.setdefault(group, []).append(row.correct)
        found = []
        for group, right in sorted(groups.items()):
            found.append(Share(group, sum(right), len(right)))
        order = SHARE_ORDERS.get(column)
        return sorted(found, key=order) if order else found

    # Records and texts

    def solution(
        self, problem: str, seed: int, *, texts: bool = True
    ) -> Solution | None:
        """Read one record from the trace; `None` if the run has no such solve.

        With `texts`, attempts have what was sent and what the model wrote, as far as
        the run keeps its calls.
        """
        return next(self._records([(problem, seed)], texts), None)

    def solutions(self, *, texts: bool = True) -> Iterator[Solution]:
        """Iterate over the last record of every problem and seed, ordered by both.

        With `texts`, attempts have what the model wrote, if the run keeps its calls.
        """
        return self._records(sorted(self.places), texts)

    def _records(self, keys: Sequence[Key], texts: bool) -> Iterator[Solution]:
        """Read records from the trace, as far as it has them."""
        places = [self.places[key] for key in keys if key in self.places]
        if self.folder is None or not places:
            return
        path = self.folder / TRACE
        calls = None
        folder = self.calls_folder if texts else None
        if folder:
            with suppress(KaceError):
                calls = self._once("calls", lambda: CallStore(folder))
        with open_plain(path) as trace:
            for offset, length in places:
                line = os.pread(trace.fileno(), length, offset)
                found = parse_solution(line, str(path))
                if isinstance(found, Solution):
                    yield with_texts(found, calls) if calls else found

    def problems(self) -> Iterator[Problem]:
        """Iterate over the problems whose texts the run keeps."""
        if self.folder is None or not (self.folder / PROBLEMS).exists():
            return
        for _, _, line in whole_lines(self.folder / PROBLEMS):
            with suppress(
                ValueError, RecursionError, TypeError, AttributeError, KaceError
            ):
                yield problem_of(json.loads(line), PROBLEMS)

    def problem_text(self, problem: str) -> str | None:
        """Return the text of a problem, if the run keeps it."""
        return self._texts().get(problem)

    def problem_field(self, name: str) -> dict[str, str]:
        """Return a column of the problems that have it, by problem."""
        if self.folder is None and name not in SEARCHED:
            name = "family"  # scores of other tools have their cluster there
        found = {}
        for row in self.solves():
            value = getattr(row, name, None)
            if value:
                found[row.problem] = str(value)
        return found

    def _texts(self) -> dict[str, str]:
        if self.folder is None:
            return {}
        return self._once(
            ("texts", FileState.of(self.folder / PROBLEMS)),
            lambda: {problem.id: problem.text for problem in self.problems()},
        )

    @property
    def calls_folder(self) -> Path | None:
        """The folder of recorded calls: the run's, or that of its learner."""
        if self.folder is None:
            return None
        for folder in (self.folder, self.folder.parent):
            calls = folder / "calls"
            allowed = folder.is_relative_to(self.within)
            if allowed and calls.is_dir() and not calls.is_symlink():
                return calls
        return None

    # What the run is

    @property
    def missing(self) -> int | None:
        """Solves the run lacks on the seeds it has begun; `None` if not known."""
        if self.manifest.problems is None:
            return None
        wanted = self.manifest.problems * max(1, len(self.seeds))
        return max(0, wanted - len(self))

    @property
    def running(self) -> bool:
        """Whether the run is unfinished and was written to just now."""
        if self.folder is None or self.missing == 0:
            return False
        files = (self.folder / TRACE, self.folder / "lock")
        last = max(FileState.of(file).changed for file in files)
        return time.time() - last < RECENT

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
        return self._once(
            ("metrics", self.name, price, field, other),
            lambda: metrics_of(self, price, clusters, base),
        )

    def _once(self, key: object, make: Callable[[], T]) -> T:
        """Return a value that is made once for each state of the trace."""
        kept: dict[object, T] = self._kept
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def rows(self) -> list[dict[str, object]]:
        """Return one flat row per problem and seed, ready for `pandas.DataFrame`.

        `text` is `None` if the run keeps no problem texts, `correct` if no answer is
        expected.
        """
        texts = self._texts()
        found = []
        for row in self:
            values = asdict(row)
            for name in ("was", "classifier", "batch"):
                del values[name]
            values |= values.pop("usage")
            values["cards"] = " ".join(row.cards)
            values["text"] = texts.get(row.problem)
            found.append(values)
        return found

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"<RecordedRun {self.name}: {counted(len(self), 'solve')}>"


RecordedRun = Table
"""What `load_run` returns, as users call it."""


def load_run(folder: str | Path) -> RecordedRun:
    """Open a run directory. Raises `DataError` if there is none."""
    return Table.open(folder)


def out_of_range(row: SolveRow) -> str:
    """Return which number of a row is out of range, or nothing."""
    for name, value in (asdict(row) | asdict(row.usage)).items():
        if isinstance(value, int | float) and not abs(value) < LIMIT:
            return f"{name}: too large a number"
    return ""


def with_texts(solution: Solution, calls: CallStore) -> Solution:
    """Return a solution whose attempts have what was sent and what came back."""
    records = {each.call: calls.record(each.call) for each in solution.made}
    sent = {}
    for record in records.values():
        if record and record.messages:
            sent[record.prompt] = record.messages

    def restore(attempt: Attempt) -> Attempt:
        record = records[attempt.call]
        if record is None or attempt.text:
            return attempt
        messages = sent.get(record.prompt, ())
        texts = {"text": record.text, "messages": messages}
        return attempt.model_copy(update=texts)

    made = solution.synthesis
    texts = {
        "attempts": tuple(map(restore, solution.attempts)),
        "synthesis": restore(made) if made else None,
    }
    return solution.model_copy(update=texts)
