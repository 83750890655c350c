"""What can be said of an item at a glance, without reading all of it: the first page must not wait for anything."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kace.errors import KaceError
from kace.evaluation.stats import Interval
from kace.solver.manifest import read_manifest
from kace.view.run_manifest import MAX_BYTES, setup_of
from kace.view.shelf import Item, Shelf

EXACT = 16_000_000
"""Bytes of a file up to which its lines are counted; in a larger one they are told from the start of it."""
SAMPLE = 1_000_000
SMALL = 4_000_000
"""Bytes of a trace up to which a run is read just to say on the first page how it went."""
MAX_LINE = 4_000_000
NEWS = 60.0
"""Seconds since the last change within which something counts as going on."""

_counted: dict[tuple[Path, int, int], Count] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Count:
    """How many lines a file has."""

    lines: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.lines:,}" if self.exact else f"about {round(self.lines, -3):,}"

    def of(self, noun: str) -> str:
        """The number with its noun."""
        return f"{self} {noun}{'' if self.lines == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Score:
    """How a run went."""

    share: float
    interval: Interval
    problems: int


@dataclass(frozen=True, slots=True)
class Glance:
    """An item in a line or two."""

    holds: tuple[str, ...] = ()
    """What it has how many of."""
    about: tuple[str, ...] = ()
    """Where it comes from."""
    changed: float | None = None
    """When its files last changed, in seconds since 1970."""
    frozen: bool = False
    waiting: int = 0
    score: Score | None = None

    @property
    def going(self) -> bool:
        """Whether it changed just now, so that somebody seems to be at work on it."""
        return self.changed is not None and time.time() - self.changed < NEWS


def glance(shelf: Shelf, item: Item) -> Glance:
    """What is known of an item. Nothing here raises: a damaged item says more on its own page."""
    look = {"tree": _tree, "run": _run, "learner": _learner, "inbox": _inbox}[item.kind]
    try:
        return look(shelf, item)
    except (OSError, ValueError, RecursionError, KaceError):
        return Glance(about=("cannot be read",))


def _tree(shelf: Shelf, item: Item) -> Glance:
    path = shelf.inside(item.path / "cards.jsonl" if item.path.is_dir() else item.path)
    if path.suffix == ".json":
        return Glance(about=("a JSON file",), changed=path.stat().st_mtime)
    with path.open("rb") as file:
        header = _mapping(json.loads(file.readline(MAX_LINE)))
    lines, domains = lines_of(path), header.get("domains")
    holds = [Count(max(0, lines.lines - 1), lines.exact).of("card")]
    if isinstance(domains, list):
        holds.append(Count(len(domains)).of("domain"))
    return Glance(tuple(holds), changed=path.stat().st_mtime, frozen=bool(header.get("frozen")))


def _run(shelf: Shelf, item: Item) -> Glance:
    path = shelf.inside(item.path / "run.json")
    setup = setup_of(read_manifest(path, MAX_BYTES))
    about = tuple(word[:80] for word in (setup.system, setup.model, setup.data) if word and word != item.name)
    trace = item.path / "traces.jsonl"
    if not trace.is_file():
        return Glance(about=about, changed=path.stat().st_mtime)
    trace = shelf.inside(trace)
    score = _score(shelf, item) if trace.stat().st_size <= SMALL or item.name in shelf.runs() else None
    return Glance((lines_of(trace).of("solve"),), about, trace.stat().st_mtime, score=score)


def _score(shelf: Shelf, item: Item) -> Score | None:
    tally = shelf.run(item.name).tally
    share, interval = tally.accuracy, tally.interval
    return None if share is None or interval is None else Score(share, interval, tally.problems)


def _learner(shelf: Shelf, item: Item) -> Glance:
    learn = item.path / "learn"
    with shelf.inside(learn / "learn.json").open("rb") as file:
        config = _mapping(_mapping(json.loads(file.read(MAX_LINE))).get("config"))
    model = config.get("model")
    about = (model[:80],) if isinstance(model, str) else ()
    steps = shelf.inside(learn / "steps.jsonl")
    if not steps.is_file():
        return Glance(("nothing done yet",), about)
    return Glance((lines_of(steps).of("step"),), about, steps.stat().st_mtime)


def _inbox(shelf: Shelf, item: Item) -> Glance:
    from kace.view.inbox import Inbox

    entries = Inbox(shelf.inside(item.path)).entries()
    waiting = sum(entry.answered is None for entry in entries)
    changed = max((entry.answered or entry.asked for entry in entries), default=None)
    return Glance((f"{waiting:,} waiting", f"{len(entries) - waiting:,} answered"), (), changed, waiting=waiting)


def lines_of(path: Path) -> Count:
    """The lines of a file; of a large one, as many as its start lets expect."""
    now = path.stat()
    key = (path, now.st_size, now.st_mtime_ns)
    with _lock:
        known = _counted.get(key)
    if known is None:
        with path.open("rb") as file:
            if now.st_size <= EXACT:
                known = Count(sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(SAMPLE), b"")))
            else:
                start = file.read(SAMPLE)
                known = Count(round(start.count(b"\n") * now.st_size / len(start)), exact=False)
        with _lock:
            if len(_counted) > 10_000:
                _counted.clear()
            _counted[key] = known
    return known


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
