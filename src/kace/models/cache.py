"""Finished calls on disk, keyed by what was asked and which attempt it was.

A store is a folder of append-only segments, one per process that wrote to it, so that any number of processes share
it without a lock and a kill costs at most the line being written. Nothing in it is ever rewritten.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kace.errors import DataError
from kace.io import LineLog, whole_lines
from kace.models.base import AttemptKey, ChatModel, Finish, Reply, Request, Usage, Wrapper

KEY_AT = len('{"key":"')
KEY_LENGTH = 64
SEGMENT_BYTES = 1 << 44  # larger than any segment: a place is the segment's number times this, plus the offset in it


class CallRecord(BaseModel):
    """One finished call. The prompt is not kept: `key` is its hash, and the run's manifest says how to render it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: str  # first in the line, so that a store is indexed without parsing replies
    v: Literal[1] = 1
    model: str  # the identity of the model that replied
    problem: str
    seed: int
    tier: str
    index: int
    text: str
    finish: str
    input: int
    cached: int
    output: int
    written: int = Field(default=0, exclude_if=lambda written: written == 0)  # 0 is left out, as in older records
    seconds: float

    @classmethod
    def of(cls, key: str, model: str, attempt: AttemptKey, reply: Reply) -> CallRecord:
        """The record of a reply that has just arrived."""
        text = reply.text.encode("utf-8", "replace").decode()
        fields = {**asdict(attempt), **asdict(reply.usage), "text": text, "finish": reply.finish.value}
        return cls(key=key, model=model, seconds=round(reply.seconds, 4), **fields)

    def reply(self) -> Reply:
        """The reply as it was, marked as read from disk."""
        usage = Usage(self.input, self.cached, self.output, self.written)
        return Reply(self.text, Finish(self.finish), usage, self.seconds, cached=True, call=self.key)


class CallStore:
    """Finished calls by key. Reads every segment in the folder, writes to one of its own.

    A call is held in memory as two integers, the head of its key and its place, so that a store may be large. Calls of
    other folders are read too, and copied when they are used: the store stays whole without them.
    """

    def __init__(self, folder: Path, also: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._segments = [path for each in (*also, folder) if each.is_dir() for path in sorted(each.glob("*.jsonl"))]
        self._own: LineLog | None = None
        self._places: dict[int, int] = {}
        for number, segment in enumerate(self._segments):
            for _, offset, line in whole_lines(segment):
                with suppress(ValueError):  # a damaged line costs itself only
                    head = _head(line[KEY_AT : KEY_AT + KEY_LENGTH].decode("ascii"))
                    self._places[head] = number * SEGMENT_BYTES + offset

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Reply | None:
        """The reply kept under a key. A damaged record is as good as none: the call is made again."""
        if (place := self._places.get(_head(key))) is None:
            return None
        number, offset = divmod(place, SEGMENT_BYTES)
        with self._segments[number].open("rb") as file:
            file.seek(offset)
            line = file.readline()
        with suppress(ValidationError):
            if (record := CallRecord.model_validate_json(line)).key == key:
                if self._segments[number].parent != self.folder:
                    self.put(record)
                return record.reply()
        return None

    def put(self, record: CallRecord) -> None:
        """Keep a finished call. When this returns, a kill can no longer lose it."""
        if self._own is None:
            self._own = LineLog(self.folder / f"{secrets.token_hex(8)}.jsonl")
            self._segments.append(self._own.path)
        offset = self._own.append(record.model_dump_json())
        self._places[_head(record.key)] = (len(self._segments) - 1) * SEGMENT_BYTES + offset

    def close(self) -> None:
        """Make everything durable."""
        if self._own is not None:
            self._own.close()


def _head(key: str) -> int:
    """Enough of a key to find it by; the record itself is compared in full."""
    if len(key) != KEY_LENGTH:
        raise ValueError(f"not a key: {key[:20]!r}")
    return int(key[:15], 16)


class Cached(Wrapper):
    """A model that never pays twice for the same attempt."""

    def __init__(self, model: ChatModel, store: CallStore) -> None:
        super().__init__(model)
        self.store = store

    async def complete(self, request: Request) -> Reply:
        """Read the reply from disk, or make the call and keep it. Failures are not kept: the next run tries again."""
        key = request.digest(self.identity)
        if kept := self.store.get(key):
            return kept
        reply = await self.model.complete(request)
        record = CallRecord.of(key, self.identity, request.attempt, reply)
        self.store.put(record)
        return replace(record.reply(), cached=reply.cached)  # what a later run will read, to the letter

    async def aclose(self) -> None:
        """Close the inner model and the store."""
        await super().aclose()
        self.store.close()


def read_calls(path: Path) -> list[CallRecord]:
    """All records of one segment; the first malformed line raises `DataError`."""
    records = []
    try:
        for number, _, line in whole_lines(path):
            try:
                records.append(CallRecord.model_validate_json(line))
            except ValidationError as error:
                raise DataError(f"{path}:{number}: not a call record ({error.errors()[0]['msg']})") from None
    except OSError as error:
        raise DataError(f"{path}: {(error.strerror or str(error)).lower()}", fix="name a recorded calls file") from None
    return records
