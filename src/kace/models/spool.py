"""What a run knows of its batches, on disk, so that a kill at any instant loses nothing and repeats nothing.

RUN/batches.jsonl    what became of each batch: a line before it is submitted, one after, and one at its end
RUN/batches/TAG.in   the requests of a batch, until its results are here
RUN/batches/TAG.out  its results, until the replies among them are kept calls
"""

from __future__ import annotations

import secrets
import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import BaseModel, ValidationError

from kace.files import (
    LineLog,
    Unreadable,
    cannot_write,
    inside,
    open_plain,
    sync,
    whole_lines,
)
from kace.models.base import Reply
from kace.models.cache import KEY_LENGTH, CallStore, head_of
from kace.models.jobs import HEAD, Jobs, JobStatus, Unfinished, head_of_result

DAY = 86_400.0  # in which a provider ends a job
FULL = 0.98  # of the bytes that a job may have: there is a little around the requests


class BatchEvent(BaseModel):
    """A line of batches.jsonl. The last one of a tag holds."""

    tag: str
    event: Literal["gathered", "submitted", "dropped", "collected", "kept"]
    at: float = 0.0
    model: str = ""
    requests: int = 0
    since: str | None = None  # the newest job at the provider before this one
    job: str = ""  # what the provider calls it
    why: str = ""


@dataclass(slots=True, eq=False)
class RequestBatch:
    """Requests that go together."""

    tag: str
    requests: int = 0
    size: int = 0  # bytes
    job: str = ""
    since: str | None = None
    sure: bool = True  # whether `job` is its job; else its results will tell
    status: JobStatus = field(
        default_factory=lambda: JobStatus("")
    )  # as its provider told it last
    began: float = field(default_factory=time.time)
    due: float = 0.0  # not to be submitted before
    heads: array[int] = field(
        default_factory=lambda: array("Q")
    )  # the requests that have a result
    failed: set[int] = field(
        default_factory=set
    )  # those of them whose result is no reply

    @property
    def ends(self) -> float:
        """When its provider gives it up."""
        return self.status.expires or self.began + DAY


class Spool:
    """The batches of one model in a run. Requests are known by the heads of their keys."""

    def __init__(self, jobs: Jobs, calls: CallStore, size: int | None = None) -> None:
        self._jobs = jobs
        self._calls = calls
        self._model = jobs.remote.identity
        self._folder = inside(calls.folder.parent, "batches")
        self.part = (
            self._folder / "results.part"
        )  # where results are put while they come
        self._log = LineLog(calls.folder.parent / "batches.jsonl")
        self.most = min(size or jobs.MOST_REQUESTS, jobs.MOST_REQUESTS)
        self.gathering: tuple[RequestBatch, BinaryIO] | None = None
        self.held: list[RequestBatch] = []  # to be submitted
        self.open: list[RequestBatch] = []  # submitted; without a job, perhaps
        self.ended: list[RequestBatch] = []
        self.sent: dict[int, RequestBatch] = {}  # requests without a result
        self.results: dict[
            int, tuple[RequestBatch, int] | str
        ] = {}  # where each lies, or why there is none
        self._resume()

    def note(self, batch: RequestBatch, event: str, **more: object) -> None:
        """Write down what becomes of a batch. When this returns, it is on disk."""
        line = BatchEvent.model_validate(
            {"tag": batch.tag, "event": event, "at": round(time.time(), 3), **more}
        )
        self._log.append(line.model_dump_json(exclude_defaults=True))
        self._log.sync()

    def gather(self, head: int, line: bytes) -> None:
        """Add a request to the batch that is being gathered."""
        if self.gathering is not None:
            batch, _ = self.gathering
            if (
                batch.requests >= self.most
                or batch.size + len(line) > FULL * self._jobs.MOST_BYTES
            ):
                self.close_batch()
        try:
            if self.gathering is None:
                batch = RequestBatch(secrets.token_hex(12))
                self._folder.mkdir(parents=True, exist_ok=True)
                self.gathering = batch, self.asked(batch).open("xb")
            batch, file = self.gathering
            file.write(line)
        except OSError as error:
            raise cannot_write(self._folder, error) from None
        batch.requests, batch.size = batch.requests + 1, batch.size + len(line)
        self.sent[head] = batch

    def close_batch(self) -> None:
        """Make what is gathered a batch to be submitted."""
        if self.gathering is not None:
            batch, file = self.gathering
            file.flush()
            sync(file.fileno())
            file.close()
            self.held.append(batch)
            self.gathering = None

    def halve(self, batch: RequestBatch) -> None:
        """Make two batches of one that was not taken, and all later ones as small."""
        self.most = max(1, batch.requests // 2)
        for _, _, line in whole_lines(self.asked(batch)):
            self.gather(_head(line), line + b"\n")
        self.close_batch()
        for half in self.held:
            half.due, half.began = (
                max(half.due, batch.due),
                min(half.began, batch.began),
            )
        self._forget(batch)

    def drop(self, batch: RequestBatch, why: str) -> list[int]:
        """Give up a batch that nobody has submitted, or that was refused as a whole. Its requests are free again."""
        freed = [head for head in self.heads(batch) if self.sent.get(head) is batch]
        for head in freed:
            del self.sent[head]
        self.note(batch, "dropped", why=why)
        self._forget(batch)
        return freed

    def collected(self, batch: RequestBatch, outcome: str) -> list[int]:
        """Take over the results in `part` as those of a batch; returns the requests without one."""
        self.part.replace(self._answered(batch))
        self.note(batch, "collected", job=batch.job, why=outcome)
        for _, offset, line in whole_lines(self._answered(batch)):
            head = head_of_result(line)
            if head is not None and self.sent.get(head) is batch:
                self._place(batch, head, offset)
        missed = [
            head
            for head in self.heads(batch)
            if self.sent.pop(head, None) and head not in self.results
        ]
        why = f"its batch {'has no result for it' if outcome == 'completed' else f'is {outcome}'}"
        self.results |= dict.fromkeys(missed, why)
        self.asked(batch).unlink()
        self.open.remove(batch)
        self.ended.append(batch)
        return missed

    def take(self, head: int) -> Reply:
        """The reply to a request that has a result. Raises what the result says instead."""
        found = self.results.pop(head)
        if isinstance(found, str):
            raise Unfinished(found)
        batch, offset = found
        try:
            with open_plain(self._answered(batch)) as file:
                file.seek(offset)
                return self._jobs.read(file.readline())
        except BaseException:
            batch.failed.add(head)
            raise

    def asked(self, batch: RequestBatch) -> Path:
        """The requests of a batch."""
        return self._folder / f"{batch.tag}.in"

    def _answered(self, batch: RequestBatch) -> Path:
        """The results of a batch."""
        return self._folder / f"{batch.tag}.out"

    def heads(self, batch: RequestBatch) -> Iterator[int]:
        """The requests of a batch."""
        try:
            yield from (_head(line) for _, _, line in whole_lines(self.asked(batch)))
        except FileNotFoundError:
            fix = "put it back, or remove batches.jsonl: its requests are paid again"
            raise Unreadable.at(
                self.asked(batch), "missing, and its batch is under way", fix
            ) from None

    def close(self) -> None:
        """Let go. What was not submitted is forgotten, and results whose replies are all kept calls are removed."""
        if self.gathering is not None:
            self.gathering[1].close()
            self._forget(self.gathering[0])
            self.gathering = None
        for batch in self.held:
            self._forget(batch)
        for batch in self.ended:
            if all(head in self._calls or head in batch.failed for head in batch.heads):
                self.note(batch, "kept")
                self._forget(batch)
        self.held = []
        self.ended = []
        self._log.close()

    def _resume(self) -> None:
        """Go on from what the log says."""
        last: dict[str, BatchEvent] = {}
        first: dict[str, BatchEvent] = {}
        for _, _, line in whole_lines(self._log.path):
            with suppress(ValidationError):
                event = BatchEvent.model_validate_json(line)
                last[event.tag] = event
                if event.event == "gathered":
                    first[event.tag] = event
        for path in self._folder.glob("*.*"):
            if path.stem not in first or last[path.stem].event in ("dropped", "kept"):
                path.unlink()  # of a batch that was killed while it was gathered
        for tag, begin in first.items():
            end = last[tag]
            if begin.model != self._model or end.event in ("dropped", "kept"):
                continue
            batch = RequestBatch(
                tag, begin.requests, job=end.job, since=begin.since, began=end.at
            )
            if end.event == "collected":
                self._recall(batch)
            else:
                self.open.append(batch)
                self.sent |= dict.fromkeys(self.heads(batch), batch)

    def _recall(self, batch: RequestBatch) -> None:
        """Find the replies of an earlier process that are not kept calls yet. What failed there is asked again."""
        self.asked(batch).unlink(missing_ok=True)
        for _, offset, line in whole_lines(self._answered(batch)):
            if (head := head_of_result(line)) is not None and head not in self._calls:
                with suppress(Exception):
                    self._jobs.read(line)
                    self._place(batch, head, offset)
        self.ended.append(batch)

    def _place(self, batch: RequestBatch, head: int, offset: int) -> None:
        batch.heads.append(head)
        self.results[head] = batch, offset

    def _forget(self, batch: RequestBatch) -> None:
        for path in self._folder.glob(f"{batch.tag}.*"):
            path.unlink()
        for batches in (self.held, self.open):
            if batch in batches:
                batches.remove(batch)


def _head(line: bytes) -> int:
    return head_of(line[len(HEAD) : len(HEAD) + KEY_LENGTH].decode("ascii"))
