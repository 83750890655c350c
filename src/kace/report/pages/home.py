"""The first page: what is open, each with what can be said of it without reading all of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kace.errors import KaceError
from kace.files import open_plain
from kace.report.learner import at_work
from kace.report.page import Page, PageRequest
from kace.report.replies import Inbox
from kace.report.workspace import KINDS, Item
from kace.runs.index import FileState
from kace.runs.manifest import Manifest
from kace.runs.solves import RunAccuracy, bytes_in, setup_at, trace_in
from kace.runs.solves import at_work as run_at_work
from kace.words import counted

ABOUT = {
    "tree": "Cards by domain and difficulty, with what each was measured to do.",
    "run": "Recorded solves: how far each climbed, what it answered, what it cost.",
    "learner": "What kace learn proposed, tried and kept.",
    "inbox": "Requests to a teacher. Somebody writes the reply here, in the page.",
}
FEW = 12  # items from which on there is a field to find one
MOST = 1_000  # runs that are listed
REFRESH = 5.0
# bytes up to which lines are counted, and of what they are told from
EXACT = 16_000_000
SAMPLE = 1_000_000
SMALL = 32_000_000  # bytes of a trace up to which a run is read just to say on the first page how it went
PATIENCE = 0.15  # seconds that the page waits for such runs, for all together
MAX_LINE = 4_000_000
LAST = 4_000  # bytes at the end of a learner's steps, which tell whether it is finished
GOING = ("going on", "good")


class ItemSummary(NamedTuple):
    """An item in a line or two: what it has how many of, where it comes from, and when its files last changed."""

    item: Item
    holds: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    changed: float | None = None
    badge: tuple[str, str] | None = None
    score: RunAccuracy | None = None
    unread: str = ""  # why a run's accuracy is not there


def home_page(request: PageRequest) -> Page:
    """Everything that is open, or what matches a search."""
    wanted = "" if request.static else request.query.get("q", "").strip()[:100]
    every = {kind: request.workspace.items(kind) for kind in KINDS}
    shown = {
        kind: [item for item in items if wanted.lower() in item.name.lower()]
        for kind, items in every.items()
    }
    until = time.monotonic() + PATIENCE
    values = {
        "wanted": wanted,
        "searchable": not request.static
        and (wanted or sum(map(len, every.values())) >= FEW),
        "heads": KINDS,
        "about": ABOUT,
        "shown": {kind: len(items) for kind, items in shown.items()},
        "summaries": {
            kind: [summary(request, item, until) for item in shown[kind]]
            for kind in KINDS
            if kind != "run"
        },
        "groups": _groups(request, shown["run"], until),
    }
    return Page("home.html", "What is open", values, crumbs=(), refresh=REFRESH)


def _groups(
    request: PageRequest, items: Sequence[Item], until: float
) -> list[tuple[str, int, list[ItemSummary]]]:
    """Runs by the learner that made them, under its name; runs of nobody's first. Of each group, those listed."""
    learners = {
        learner.path / "learn": learner.name
        for learner in request.workspace.items("learner")
    }
    groups: dict[str, list[Item]] = {name: [] for name in ("", *learners.values())}
    for item in items:
        groups[learners.get(item.path.parent, "")].append(item)
    listed = {
        name: [summary(request, item, until) for item in found[:MOST]]
        for name, found in groups.items()
    }
    return [(name, len(found), listed[name]) for name, found in groups.items() if found]


def summary(request: PageRequest, item: Item, until: float) -> ItemSummary:
    """What is known of an item. Nothing here raises: a damaged item says more on its own page."""
    try:
        return {"tree": _tree, "run": _run, "learner": _learner, "inbox": _inbox}[
            item.kind
        ](request, item, until)
    except (OSError, ValueError, RecursionError, KaceError):
        return ItemSummary(item, about=("cannot be read",))


def _tree(request: PageRequest, item: Item, until: float) -> ItemSummary:
    path = request.workspace.inside(
        item.path / "cards.jsonl" if item.path.is_dir() else item.path
    )
    if path.suffix == ".json":
        return ItemSummary(item, about=("a JSON file",), changed=path.stat().st_mtime)
    header = _first(path)
    domains = header.get("domains")
    holds = (
        _lines(path, "card", less=1),
        *([counted(len(domains), "domain")] if isinstance(domains, list) else []),
    )
    return ItemSummary(
        item,
        holds,
        (),
        path.stat().st_mtime,
        ("frozen", "info") if header.get("frozen") else None,
    )


def _run(request: PageRequest, item: Item, until: float) -> ItemSummary:
    path = request.workspace.inside(item.path / "run.json")
    setup = setup_at(path)
    about = tuple(
        word[:80]
        for word in (setup.system, setup.model, setup.data)
        if word and word != item.name
    )
    if (trace := trace_in(item.path)) is None:
        return ItemSummary(item, about=about, changed=path.stat().st_mtime)
    trace = request.workspace.inside(trace)
    holds = () if trace.suffix == ".gz" else (_lines(trace, "solve"),)
    told = ItemSummary(item, holds, about, trace.stat().st_mtime)
    unread = "open it to count"
    missing = None
    score = None
    if bytes_in(trace) <= SMALL or item.name in request.workspace.runs():
        run = request.workspace.run(item.name)
        if run.look(request.patience(until - time.monotonic()), urgent=False):
            missing = run.missing
            score = run.score()
            unread = ""
            done = f"{run.count():,} of " if missing else ""
            told = told._replace(
                holds=(f"{done}{counted(run.count() + (missing or 0), 'solve')}",)
            )
        else:
            unread = "being read"
    badge = (
        GOING
        if missing != 0 and run_at_work(item.path, trace)
        else ("unfinished", "warn")
        if missing
        else None
    )
    return told._replace(badge=badge, score=score, unread=unread)


def _learner(request: PageRequest, item: Item, until: float) -> ItemSummary:
    learn = item.path / "learn"
    first = _first(request.workspace.inside(learn / "learn.json"), lines=False)
    model = Manifest(first).model
    about = (model[:80],) if model else ()
    steps = request.workspace.inside(learn / "steps.jsonl")
    if not steps.is_file():
        return ItemSummary(item, ("nothing done yet",), about)
    with open_plain(steps) as file:
        file.seek(max(0, steps.stat().st_size - LAST))
        finished = b'"what":"freeze"' in file.read().rstrip().rpartition(b"\n")[2]
    badge = (
        ("finished", "info")
        if finished
        else GOING
        if at_work(item.path)
        else ("stopped", "warn")
    )
    return ItemSummary(
        item, (_lines(steps, "step"),), about, steps.stat().st_mtime, badge
    )


def _inbox(request: PageRequest, item: Item, until: float) -> ItemSummary:
    entries = Inbox(request.workspace.inside(item.path)).entries()
    waiting = sum(entry.answered is None for entry in entries)
    changed = max((entry.answered or entry.asked for entry in entries), default=None)
    holds = (f"{waiting:,} waiting", f"{len(entries) - waiting:,} answered")
    return ItemSummary(
        item, holds, (), changed, ("waiting", "warn") if waiting else None
    )


def _first(path: Path, *, lines: bool = True) -> Mapping[str, object]:
    """What the first line of a file says, or all of it; nothing where that is no object."""
    with open_plain(path) as file:
        found = json.loads(file.readline(MAX_LINE) if lines else file.read(MAX_LINE))
    return found if isinstance(found, dict) else {}


def _lines(path: Path, noun: str, less: int = 0) -> str:
    """How many lines a file has, in words; of a large one, as many as its start lets expect."""
    now = FileState.of(path)
    lines = max(0, _count(path, now) - less)
    said = f"{lines:,}" if now.size <= EXACT else f"about {round(lines, -3):,}"
    return f"{said} {noun}{'' if lines == 1 else 's'}"


@lru_cache(maxsize=10_000)
def _count(path: Path, state: FileState) -> int:
    with open_plain(path) as file:
        if state.size <= EXACT:
            return sum(
                chunk.count(b"\n") for chunk in iter(lambda: file.read(SAMPLE), b"")
            )
        start = file.read(SAMPLE)
        return round(start.count(b"\n") * state.size / len(start))


ROUTES = {"/": home_page}
