"""A learning run for pages: its report, its proposals, where it stands, and whether anybody is at work on it."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kace.learner.epoch import Steps
from kace.learner.findings import Cost
from kace.learner.notebook import Line, read_steps
from kace.learner.report import EMPTY, Report, report_of
from kace.tree.store import TreeStore
from kace.view.call_meter import CallMeter
from kace.view.later import Found, Later, Tell
from kace.view.proposals import Proposal, proposals_of

RECENT = 60.0
"""Seconds since the last sign of life within which a learner counts as at work, where its lock cannot be looked at."""
LOCKS = Path("/proc/locks")
METERS = 32


class Pulse(StrEnum):
    """Whether somebody is at work."""

    FINISHED = "finished"
    WORKING = "working"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Learner:
    """A learning run as far as it came."""

    report: Report
    teacher: str
    """The model that writes cards, or where its requests lie."""
    lines: tuple[Line, ...]
    """The steps that are done, in order."""
    proposals: tuple[Proposal, ...]
    costs: tuple[Cost, ...]
    billed: bool
    """Whether the costs are those of its bill; while it works they are counted from its calls."""


_LEARNERS: Later[Learner] = Later(keep=8)


def learner_at(folder: Path, *, patience: float | None = 0.3) -> Found[Learner]:
    """The learner of a tree's folder, read beside the pages and again whenever something of it has changed."""
    return _LEARNERS.ask(folder, state_of(folder), lambda tell: read_learner(folder, tell), patience=patience)


def read_learner(folder: Path, tell: Tell = lambda words: None) -> Learner:
    """All that is known of a learner. Reads only, takes no lock, and minds no half-written line."""
    tell("reading its steps")
    report = report_of(folder)
    learn = folder / "learn"
    steps = Steps(learn, read_steps(learn / "steps.jsonl"))
    store = TreeStore(folder)
    tree = store.load() if store.cards_path.exists() else EMPTY
    teacher = _manifest(learn).teacher or report.teacher
    billed = _is_billed(learn)
    models = {"solver": report.solver, "classifier": report.solver, "teacher": teacher, "synthesis": teacher}
    tell("counting its calls")
    costs = report.costs if billed else _meter(learn / "calls").costs(models)
    return Learner(report, teacher, steps.lines, proposals_of(steps, tree), costs or report.costs, billed)


def state_of(folder: Path) -> Hashable:
    """What changes whenever a page about the learner would."""
    learn = folder / "learn"
    files = [folder / "cards.jsonl", *(learn / name for name in ("learn.json", "steps.jsonl", "bill.json"))]
    return tuple(_stamp(path) for path in (*files, *sorted(learn.glob("*/traces.jsonl")), *_calls(learn)))


def at_work(folder: Path) -> bool:
    """Whether somebody holds the learner's lock; nothing is locked to find out.

    To be asked before the learner is read: then one that is let go and not finished has stopped for good.
    """
    held = is_held(folder / "learn" / "lock")
    return time.time() - last_sign(folder) < RECENT if held is None else held


def pulse(report: Report, held: bool) -> Pulse:
    """What can be said of a learner by its report and by whether somebody was at work before it was read."""
    return Pulse.FINISHED if report.finished else Pulse.WORKING if held else Pulse.STOPPED


def last_sign(folder: Path) -> float:
    """When the learner last wrote something, in seconds since 1970; 0 where it never did."""
    learn = folder / "learn"
    paths = (learn / "steps.jsonl", learn / "learn.json", *learn.glob("*/traces.jsonl"), *_calls(learn))
    return max((stamp[0] / 1e9 for path in paths if (stamp := _stamp(path))), default=0.0)


def is_held(lock: Path) -> bool | None:
    """Whether a process holds a lock file; `None` where the system does not say.

    Trying the lock would take it for a moment, and a learner that starts in that moment would be turned away.
    """
    try:
        inode = lock.stat().st_ino
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None if lock.exists() else False
    return any(" FLOCK " in line and line.split()[-3].endswith(f":{inode}") for line in lines)


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    teacher: str | None = None


def _manifest(learn: Path) -> _Manifest:
    try:
        return _Manifest.model_validate_json((learn / "learn.json").read_bytes())
    except (OSError, ValidationError):
        return _Manifest()


def _is_billed(learn: Path) -> bool:
    bill = _stamp(learn / "bill.json")
    return bill is not None and all(stamp[0] <= bill[0] for path in _calls(learn) if (stamp := _stamp(path)))


def _calls(learn: Path) -> list[Path]:
    return sorted((learn / "calls").glob("*.jsonl"))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size


@lru_cache(maxsize=METERS)
def _meter(calls: Path) -> CallMeter:
    return CallMeter(calls)
