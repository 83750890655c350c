"""Finished calls on disk, and models that replay them.

A store is a folder of append-only segments, one per process: it needs no lock, and a
kill costs at most the line being written.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kace.errors import DataError, KaceError
from kace.files import (
    MAX_BYTES,
    LineLog,
    cannot_write,
    inside,
    open_plain,
    readable,
    whole_lines,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Confidence,
    Finish,
    Messages,
    Reply,
    Request,
    Usage,
    Wrapper,
)

TEACHER = "TEACHER"  # the tier of a teacher's calls
KEY_START = len('{"key":"')
HEAD = 15  # characters of a key by which it is found
MIN_FREE = 16_000_000  # bytes on the disk; replies under way may need as much
RECENT = (
    4_096  # prompts remembered, so that attempts that share one write it once
)


class CallRecord(BaseModel):
    """One finished call. Attempts of a solve that share a prompt keep it once."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: str  # first in the line, so that a store is indexed without parsing replies
    v: Literal[1]
    model: str  # the identity of the model that replied
    problem: str
    seed: int
    tier: str
    index: int
    text: str
    finish: Finish
    input: int
    cached: int
    output: int
    # The defaults of the following are not written, as in older records.
    written: int = 0
    seconds: float
    confidence: Confidence | None = None
    batch: bool = False
    # What was sent, by its hash, and in full in one record of the solve.
    prompt: str = ""
    messages: Messages = ()

    @classmethod
    def of(
        cls, key: str, model: str, attempt: AttemptKey, reply: Reply
    ) -> CallRecord:
        """Return the record of a new reply."""
        return cls(
            key=key,
            v=1,
            model=model,
            **asdict(attempt),
            text=reply.text.encode("utf-8", "replace").decode(),
            finish=reply.finish,
            **asdict(reply.usage),
            seconds=round(reply.seconds, 4),
            confidence=reply.confidence,
            batch=reply.batch,
        )

    def reply(self) -> Reply:
        """Return the reply, marked as read from disk."""
        return Reply(
            self.text,
            self.finish,
            Usage(self.input, self.cached, self.output, self.written),
            self.seconds,
            cached=True,
            call=self.key,
            confidence=self.confidence,
            batch=self.batch,
        )


class CallStore:
    """Finished calls by key. Only their places are in memory, so a store may be large.

    Reads every segment of its folder and of the folders `also`, and writes one of its
    own. A call in another folder is copied when it is used.
    """

    def __init__(self, folder: Path, also: Sequence[Path] = ()) -> None:
        self.folder = folder
        self.prompts = True  # whether what is sent is kept, too
        self._recent: set[str] = set()
        self._own: LineLog | None = None
        self._broken: KaceError | None = None  # a reply could not be kept
        self._places: dict[str, tuple[Path, int]] = {}
        for each in (*also, folder):
            for segment in sorted(each.glob("*.jsonl")):
                for _, offset, line in whole_lines(segment):
                    head = line[KEY_START : KEY_START + HEAD]
                    place = (segment, offset)
                    self._places[head.decode("ascii", "replace")] = place

    def __contains__(self, key: str) -> bool:
        return key[:HEAD] in self._places

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under a key."""
        record = self.record(key)
        return record.reply() if record else None

    def record(self, key: str) -> CallRecord | None:
        """Return the call kept under a key, `None` if it is missing or damaged."""
        if key not in self:
            return None
        segment, offset = self._places[key[:HEAD]]
        with suppress(ValidationError), open_plain(segment) as file:
            file.seek(offset)
            record = CallRecord.model_validate_json(file.readline(MAX_BYTES))
            if record.key != key:
                return None
            if segment.parent != self.folder:
                self.put(record)
            return record
        return None

    def keep(self, record: CallRecord, request: Request) -> CallRecord:
        """Keep a record with what was sent, in full if no recent call has it."""
        if self.prompts:
            attempt = request.attempt
            content = repr((attempt.problem, attempt.seed, request.messages))
            prompt = sha256(content.encode()).hexdigest()[:16]
            messages = () if prompt in self._recent else request.messages
            if len(self._recent) >= RECENT:
                self._recent.clear()
            self._recent.add(prompt)
            sent = {"prompt": prompt, "messages": messages}
            record = record.model_copy(update=sent)
        self.put(record)
        return record

    def put(self, record: CallRecord) -> None:
        """Keep a finished call. When this returns, a kill no longer loses it."""
        try:
            if self._own is None:
                name = f"{secrets.token_hex(8)}.jsonl"
                self._own = LineLog(self.folder / name)
            line = record.model_dump_json(exclude_defaults=True)
            offset = self._own.append(line)
        except KaceError as error:
            self._broken = error
            raise
        self._places[record.key[:HEAD]] = (self._own.path, offset)

    def check_room(self) -> None:
        """Raise `KaceError` if a reply could not be kept: it is not paid for then."""
        if self._broken is not None:
            raise self._broken
        place = self.folder
        while not place.exists():
            place = place.parent
        if shutil.disk_usage(place).free < MIN_FREE:
            full = OSError(errno.ENOSPC, "no space left on device")
            raise cannot_write(self.folder, full)

    def close(self) -> None:
        """Make everything durable."""
        if self._own is not None:
            self._own.close()


class Cached(Wrapper):
    """A model that never pays twice for the same attempt."""

    def __init__(self, model: ChatModel, store: CallStore) -> None:
        super().__init__(model)
        self.store = store
        self._under_way: dict[str, asyncio.Lock] = {}

    async def complete(self, request: Request) -> Reply:
        """Read the reply from disk, or make the call and keep it.

        Failures are not kept. The same request made meanwhile waits for the reply.
        """
        key = request.digest(self.identity)
        async with self._under_way.setdefault(key, asyncio.Lock()):
            try:
                record = self.store.record(key)
                if record is not None:
                    if not record.prompt and self.store.prompts:
                        self.store.keep(
                            record, request
                        )  # a batch had no request
                    return record.reply()
                self.store.check_room()
                reply = await self.model.complete(request)
                if key in self.store:  # a batch keeps its replies itself
                    return reply
                record = CallRecord.of(
                    key, self.identity, request.attempt, reply
                )
                self.store.keep(record, request)
                # Exactly what a later run will read.
                return replace(record.reply(), cached=reply.cached)
            finally:
                self._under_way.pop(key, None)

    async def aclose(self) -> None:
        """Close the inner model and the store."""
        await super().aclose()
        self.store.close()


def read_calls(place: Path) -> Iterator[CallRecord]:
    """Yield the records of a segment, or of each segment in a folder.

    Raises `DataError` for a malformed line.
    """
    segments = [place] if place.is_file() else sorted(place.glob("*.jsonl"))
    for segment in segments:
        with readable(segment, "name a recorded calls file"):
            for number, _, line in whole_lines(segment):
                try:
                    yield CallRecord.model_validate_json(line)
                except ValidationError as error:
                    reason = error.errors()[0]["msg"]
                    raise DataError(
                        f"{segment}:{number}: not a call record ({reason})",
                        fix="cut that line out",
                    ) from None


class Replay:
    """A model that answers from records; an unrecorded request stops the run.

    Reads a segment, a calls folder or a run: its solver's calls or its teacher's.
    """

    def __init__(self, path: Path, *, teacher: bool = False) -> None:
        folder = inside(path, "calls") if (path / "calls").is_dir() else path
        self._records: dict[str, CallRecord] = {}
        self.name = f"replay/{path}"
        # The recorded model's, so that requests have the keys of the recording.
        self.identity = ""
        for record in read_calls(folder):
            if (record.tier == TEACHER) is teacher:
                self._records[record.key] = record
                self.identity = record.model
        if not self._records:
            raise DataError(
                f"{path}: no recorded calls",
                fix="name the calls folder of a run",
            )

    async def complete(self, request: Request) -> Reply:
        """Return the recorded reply."""
        record = self._records.get(request.digest(self.identity))
        if record is not None:
            return record.reply()
        at = request.attempt
        raise KaceError(
            f"{self.name}: no recording of problem {at.problem} {at.tier} "
            f"attempt {at.index} seed {at.seed}",
            fix="replay with the problems, seed, preset, settings and kace version of the "
            "recorded run",
        )

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""
