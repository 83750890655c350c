"""A run as time goes by: its calls a minute, how long its solves wait, and its batches, from what the run writes.

A run keeps no time of a call, nor one that was refused. What its files have gained whenever they were read counts to
the time since they were read before, by the times of their last changes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from kace.errors import KaceError
from kace.files import whole_lines
from kace.models.batch import BatchEvent
from kace.report.scale import Scale
from kace.runs.index import FileState, Gain
from kace.runs.solves import RunIndex

FINEST = 120  # stretches that are told apart
STEPS = (
    1,
    5,
    15,
    60,
    120,
    300,
    600,
    1_800,
    3_600,
    7_200,
    14_400,
    43_200,
    86_400,
    604_800,
    10**8,
    10**9,
)
"""Seconds between two labels."""
LABELS = 7
FAR = 4e9  # seconds since 1970 from which on a time is none
ENDED = {"dropped": "dropped", "collected": "collected", "kept": "collected"}


class Stretch(NamedTuple):
    """What happened from one time to another."""

    begin: float
    end: float
    what: Gain

    @property
    def rate(self) -> float:
        """Calls a minute."""
        return 60 * self.what.calls / max(1.0, self.end - self.begin)

    @property
    def waiting(self) -> float:
        """The share of the solves' time in which no attempt of theirs was being answered."""
        return min(1.0, self.what.waited / self.what.busy) if self.what.busy else 0.0


class BatchSpan(NamedTuple):
    """A batch from when it was gathered until its results came; `end` is none while it is at the provider."""

    begin: float
    end: float | None
    requests: int
    state: str
    why: str


class Timeline(NamedTuple):
    """A run from its beginning until its last change, or until now while it goes on."""

    scale: Scale
    calls: list[Stretch]
    solves: list[Stretch]
    batches: list[BatchSpan]

    @property
    def fastest(self) -> float:
        """The most calls a minute."""
        return max((each.rate for each in self.calls), default=0.0)


def timeline_of(run: RunIndex, now: float | None) -> Timeline | None:
    """The timeline of a run that goes on, was watched while it did, or has batches. A file has no `now`."""
    solves = run.gains()
    batches = _batches(run)
    until = now if run.going else None
    if not (until or len(solves) > 1 or batches):
        return None
    own = run.texts if run.texts and run.texts.source.parent == run.folder else run
    own.look(0)
    calls = own.gains()
    times = [gain.at for gain in (*solves, *calls)] + [
        batch.end or batch.begin for batch in batches
    ]
    begun = [
        FileState.of(run.folder / "run.json").changed,
        *times,
        *(batch.begin for batch in batches),
    ]
    begin = max(0.0, min(begun))
    end = max(begin + 1, min(FAR, max([until or 0.0, *times])))
    step = next((step for step in STEPS if (end - begin) / step <= LABELS), STEPS[-1])
    return Timeline(
        Scale(begin, end, step),
        _stretches(begin, end, calls),
        _stretches(begin, end, solves),
        batches,
    )


def _stretches(begin: float, end: float, gains: list[Gain]) -> list[Stretch]:
    """What came from one time to the next; those are joined that are too near each other to be seen apart."""
    found = list[Stretch]()
    since = begin
    held = Gain(begin)
    for gain in gains:
        held += gain
        if gain.at - since >= (end - begin) / FINEST or gain is gains[-1]:
            found.append(Stretch(since, gain.at, held))
            since = gain.at
            held = Gain(gain.at)
    return found


def _batches(run: RunIndex) -> list[BatchSpan]:
    """The batches of a run in the order in which they were gathered."""
    path = run.folder / "batches.jsonl"
    events = dict[str, list[BatchEvent]]()
    with suppress(OSError, KaceError):
        for _, _, line in whole_lines(path) if run.holds(path) else ():
            with suppress(ValidationError):
                if 0 < (event := BatchEvent.model_validate_json(line)).at < FAR:
                    events.setdefault(event.tag, []).append(event)
    found = []
    for told in events.values():
        ended = next((event for event in told if event.event in ENDED), None)
        state = ENDED[ended.event] if ended else told[-1].event
        requests = max(event.requests for event in told)
        found.append(
            BatchSpan(
                told[0].at,
                ended.at if ended else None,
                requests,
                state,
                ended.why if ended else "",
            )
        )
    return found
