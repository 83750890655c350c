"""A learning run for pages: its report, what became of every proposal, and whether somebody is at work."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kace.learner.admit import Rulings
from kace.learner.blocks import CardRefusal
from kace.learner.consolidate import Merge, Merges
from kace.learner.costs import ROLES, RoleBill
from kace.learner.propose import Proposals
from kace.learner.report import EMPTY, Report, report_of
from kace.learner.steps import DoneSteps, StepLine, read_steps
from kace.models.budget import free_price
from kace.tree.card import Card, Status
from kace.tree.store import TreeStore
from kace.tree.tree import EpistemicTree
from kace.web.index import PATIENCE, Sidecar

REST = 4.0  # a learner at work is read again after so many times as long as reading took
LOCKS = Path("/proc/locks")
BLOCK = 8_000_000  # bytes of calls that are summed at a time
SUMS = ("calls", "input", "cached", "written", "output")


class Fate(Enum):
    """What became of a proposal: its words on pages, and their colour."""

    KEPT = "in the tree", "good"
    RETIRED = "retired", "plain"
    MERGED = "merged", "info"
    ADMITTED = "admitted", "info"  # it may enter the tree and has not yet
    REFUSED = "refused", "bad"
    WAITING = "waiting for a ruling", "warn"


class Proposal(NamedTuple):
    """A card proposed for a cell."""

    epoch: int
    place: str
    card_id: str  # as the teacher named it; empty where it gave no name
    card: Card | None  # none where the block could not be read as one
    fate: Fate
    refused: CardRefusal | None = None
    merge: Merge | None = None


class Learner(NamedTuple):
    """A learning run as far as it came."""

    report: Report
    lines: tuple[StepLine, ...]
    proposals: tuple[Proposal, ...]
    billed: bool  # whether the costs are those of its bill; while it works they are counted from its calls


class LearnerIndex(Sidecar):
    """The learner of a tree's folder, read again whenever it changed. Its calls are summed in the database."""

    schema = """
        CREATE TABLE IF NOT EXISTS files (file TEXT PRIMARY KEY, inode INTEGER, place INTEGER) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS used (file TEXT, role TEXT, calls, input, cached, written, output);
    """
    tables = ("files", "used")

    learner: Learner | None = None
    _state: object = None
    _rests_until = 0.0

    def __init__(self, folder: Path) -> None:
        super().__init__("learner", folder)

    def fresh(self, patience: float | None = PATIENCE) -> bool:
        """Read what is new and wait for it a moment, without `patience` to the end; whether it is up to date."""
        self._rests_until = self._rests_until if patience is not None else 0.0
        return self.look(patience) and (patience is None or self._state == _stamps(self.source))

    def stamp(self) -> object:
        """Changes with the files that pages are made from, but not at once again after they were read."""
        if time.monotonic() >= self._rests_until:
            self._state = _stamps(self.source)
        return self._state

    def step(self, db: sqlite3.Connection) -> bool:
        """Sum some calls, until all are; then read the rest."""
        began, learn, stamps = time.monotonic(), self.source / "learn", _stamps(self.source)
        calls, bill = [path for path in stamps if path.parent.name == "calls"], stamps.get(learn / "bill.json")
        billed = bill is not None and all(stamps[path][0] <= bill[0] for path in calls)
        if not billed and any(_sum_calls(db, path) for path in calls):
            return True
        report, store = report_of(self.source), TreeStore(self.source)
        steps = DoneSteps(learn, read_steps(learn / "steps.jsonl"))
        proposals = tuple(_proposals(steps, store.load() if store.cards_path.exists() else EMPTY))
        columns = ", ".join(f"SUM({name})" for name in SUMS)
        used = [] if billed else db.execute(f"SELECT role, {columns} FROM used GROUP BY role ORDER BY role").fetchall()
        models = {"solver": report.solver, "classifier": report.solver}  # prices are not recorded: only free is known
        free = {role: 0.0 if free_price(models.get(role, report.teacher)) else None for role, *_ in used}
        costs = tuple(RoleBill(role=role, usd=free[role], **dict(zip(SUMS, sums, strict=True))) for role, *sums in used)
        self.learner = Learner(replace(report, costs=costs or report.costs), steps.lines, proposals, billed)
        self._rests_until = time.monotonic() + REST * (time.monotonic() - began)
        return False


learner_index = lru_cache(maxsize=16)(LearnerIndex)  # the one index of a learner's folder


def last_sign(folder: Path) -> float:
    """When the learner last wrote something, in seconds since 1970; 0 where it never did."""
    signs = (stamp for path, stamp in _stamps(folder).items() if path.name not in ("cards.jsonl", "bill.json"))
    return max((changed / 1e9 for changed, _ in signs), default=0.0)


def is_held(lock: Path) -> bool | None:
    """Whether a process holds a lock file; `None` where the system does not say."""
    try:  # trying the lock would take it, and a learner that starts in that moment would be turned away
        inode = lock.stat().st_ino
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None if lock.exists() else False
    return any(" FLOCK " in line and line.split()[-3].endswith(f":{inode}") for line in lines)


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file that pages are made from last changed, and its size."""
    learn, found = folder / "learn", {}
    named = (folder / "cards.jsonl", learn / "learn.json", learn / "steps.jsonl", learn / "bill.json")
    for path in (*named, *sorted(learn.glob("*/traces.jsonl")), *sorted(learn.glob("calls/*.jsonl"))):
        with contextlib.suppress(OSError):
            info = path.stat()
            found[path] = info.st_mtime_ns, info.st_size
    return found


def _sum_calls(db: sqlite3.Connection, path: Path) -> bool:
    """Add the next calls of a file to the sums, each line once; whether there were any. A damaged line is left out."""
    try:
        info = path.stat()
        known = db.execute("SELECT inode, place FROM files WHERE file = ?", (path.name,)).fetchone()
        place = known[1] if known and known[0] == info.st_ino and known[1] <= info.st_size else 0
        with path.open("rb") as file:
            file.seek(place)
            lines = [line for line in file.readlines(BLOCK) if line.endswith(b"\n")]  # the last is perhaps unfinished
    except OSError:
        return False
    if not place:
        db.execute("DELETE FROM used WHERE file = ?", (path.name,))
    sums: dict[str, Counter[str]] = {}
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            call = json.loads(line)
            role = ROLES.get(str(call["tier"]), "solver")
            used = {name: int(call.get(name, 0)) for name in SUMS[1:]}
            sums.setdefault(role, Counter()).update(calls=1, **used)
    rows = [(path.name, role, *(used[name] for name in SUMS)) for role, used in sums.items()]
    db.executemany("INSERT INTO used VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    place += sum(map(len, lines))
    db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (path.name, info.st_ino, place))
    return bool(lines)


def _proposals(steps: DoneSteps, tree: EpistemicTree) -> Iterator[Proposal]:
    """All proposals in the order they were made."""
    for epoch in steps.epochs:
        rulings = {step.place: ruling for step, ruling in steps.of(Rulings, "admit", epoch=epoch)}
        merged = [(step.place.split("+"), done.merged) for step, done in steps.of(Merges, "merge", epoch=epoch)]
        merges = {(tier, merge.card_id): merge for tiers, done in merged for tier in tiers for merge in done}
        for step, found in steps.of(Proposals, "propose", "imagine", epoch=epoch):
            ruling = rulings.get(step.place)
            unfit, admitted = (list(ruling.refused), ruling.admitted) if ruling else ([], ())
            for card in found.cards:
                refused = next((r for r in unfit if r.card_id == card.card_id and card not in admitted), None)
                merge = merges.get((step.place.split(" ")[0], card.card_id))
                if ruling is None:
                    fate = Fate.WAITING
                elif refused:
                    unfit.remove(refused)
                    fate = Fate.REFUSED
                elif merge:
                    fate = Fate.MERGED
                elif card.card_id not in tree:  # it enters with the rest of its round, or is there under another id
                    fate = Fate.ADMITTED
                else:
                    fate = Fate.RETIRED if tree.card(card.card_id).status is Status.DEPRECATED else Fate.KEPT
                yield Proposal(epoch, step.place, card.card_id, card, fate, refused, merge)
            yield from (Proposal(epoch, step.place, r.card_id, None, Fate.REFUSED, r) for r in found.refused)
