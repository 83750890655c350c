"""Finished calls on disk, keyed by what was asked and which attempt it was, and models that replay them.

A store is a folder of append-only segments, one per process: no lock, and a kill costs at most the line being written.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kace.errors import DataError, KaceError
from kace.files import MAX_BYTES, LineLog, Unreadable, inside, open_plain, whole_lines
from kace.models.base import (
    AttemptKey,
    ChatModel,
    Confidence,
    Finish,
    Reply,
    Request,
    Usage,
    Wrapper,
)

TEACHER = (
    "TEACHER"  # the tier under which a teacher's calls are kept beside the solver's
)
KEY_AT = len('{"key":"')
KEY_LENGTH = 64


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
    finish: Annotated[str, AfterValidator(lambda name: Finish(name).value)]
    input: int
    cached: int
    output: int
    written: int = Field(
        default=0, exclude_if=lambda written: written == 0
    )  # 0 is left out, as in older records
    seconds: float
    confidence: Confidence | None = Field(
        default=None, exclude_if=lambda told: told is None
    )
    batch: bool = Field(
        default=False, exclude_if=lambda batch: not batch
    )  # answered by a batch, at its price

    @classmethod
    def of(cls, key: str, model: str, attempt: AttemptKey, reply: Reply) -> CallRecord:
        """The record of a reply that has just arrived."""
        text = reply.text.encode("utf-8", "replace").decode()
        drawn = {
            name: getattr(part, name)
            for part in (attempt, reply.usage)
            for name in part.__slots__
        }
        fields = {
            **drawn,
            "text": text,
            "finish": reply.finish.value,
            "seconds": round(reply.seconds, 4),
        }
        return cls(
            key=key,
            model=model,
            confidence=reply.confidence,
            batch=reply.batch,
            **fields,
        )

    def reply(self) -> Reply:
        """The reply as it was, marked as read from disk."""
        usage = Usage(self.input, self.cached, self.output, self.written)
        said = Reply(
            self.text,
            Finish(self.finish),
            usage,
            self.seconds,
            confidence=self.confidence,
        )
        return replace(said, cached=True, call=self.key, batch=self.batch)


class CallStore:
    """Finished calls by key, held in memory by their places only, so that a store may be large.

    Every segment in the folder is read, and one of its own written. A call of other folders is copied when it is used.
    """

    def __init__(self, folder: Path, also: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._own: LineLog | None = None
        self._places: dict[int, tuple[Path, int]] = {}
        for segment in (
            path for each in (*also, folder) for path in sorted(each.glob("*.jsonl"))
        ):
            for _, offset, line in whole_lines(segment):
                with suppress(ValueError):  # a damaged line costs itself only
                    self._places[
                        head_of(line[KEY_AT : KEY_AT + KEY_LENGTH].decode("ascii"))
                    ] = segment, offset

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, head: int) -> bool:
        return head in self._places

    def records(self) -> Iterator[CallRecord]:
        """Every kept call that can be read, one at a time."""
        for segment in dict.fromkeys(path for path, _ in [*self._places.values()]):
            for _, _, line in whole_lines(segment):
                with suppress(ValidationError):
                    yield CallRecord.model_validate_json(line)

    def get(self, key: str) -> Reply | None:
        """The reply kept under a key."""
        return record.reply() if (record := self.record(key)) else None

    def record(self, key: str) -> CallRecord | None:
        """The call kept under a key. A damaged record is as good as none: the call is made again."""
        if (place := self._places.get(head_of(key))) is None:
            return None
        segment, offset = place
        with suppress(ValidationError), open_plain(segment) as file:
            file.seek(offset)
            if (
                record := CallRecord.model_validate_json(file.readline(MAX_BYTES))
            ).key == key:
                if segment.parent != self.folder:
                    self.put(record)
                return record
        return None

    def put(self, record: CallRecord) -> None:
        """Keep a finished call. When this returns, a kill can no longer lose it."""
        self.put_line(record.key, record.model_dump_json())

    def put_line(self, key: str, line: str) -> None:
        """The same for a record that is a line of JSON already."""
        if self._own is None:
            self._own = LineLog(self.folder / f"{secrets.token_hex(8)}.jsonl")
        self._places[head_of(key)] = self._own.path, self._own.append(line)

    def close(self) -> None:
        """Make everything durable."""
        if self._own is not None:
            self._own.close()


def head_of(key: str) -> int:
    """Enough of a key to find it by."""
    if len(key) != KEY_LENGTH:
        raise ValueError(f"not a key: {key[:20]!r}")
    return int(key[:15], 16)


class Cached(Wrapper):
    """A model that never pays twice for the same attempt."""

    def __init__(self, model: ChatModel, store: CallStore) -> None:
        super().__init__(model)
        self.store = store
        self._under_way: dict[str, asyncio.Lock] = {}

    async def complete(self, request: Request) -> Reply:
        """Read the reply from disk, or make the call and keep it. Failures are not kept: the next run tries again.

        Whoever asks the same while the call is under way waits for it, and reads what it kept.
        """
        key = request.digest(self.identity)
        async with self._under_way.setdefault(key, asyncio.Lock()):
            try:
                return self.store.get(key) or await self._call(key, request)
            finally:
                self._under_way.pop(key, None)

    async def _call(self, key: str, request: Request) -> Reply:
        reply = await self.model.complete(request)
        record = CallRecord.of(key, self.identity, request.attempt, reply)
        self.store.put(record)
        return replace(
            record.reply(), cached=reply.cached
        )  # what a later run will read, to the letter

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
                what = (
                    f"{path}:{number}: not a call record ({error.errors()[0]['msg']})"
                )
                fix = "cut that line out"
                raise DataError(what, fix=fix) from None
    except Unreadable:
        raise
    except OSError as error:
        raise DataError(
            f"{path}: {(error.strerror or str(error)).lower()}",
            fix="name a recorded calls file",
        ) from None
    return records


class Replay:
    """Answers from records; a request that was never recorded stops the run, since a guess would be a false result."""

    def __init__(self, records: Sequence[CallRecord], source: str) -> None:
        if not records:
            raise DataError(
                f"{source}: no recorded calls", fix="name the calls folder of a run"
            )
        self.source = source
        self.name = f"replay/{source}"
        self._replies = {record.key: record for record in records}
        self._models = tuple(dict.fromkeys(record.model for record in records))
        self.identity = self._models[
            0
        ]  # the recorded model's: requests hash to the keys they were recorded under

    @classmethod
    def open(cls, path: Path, *, teacher: bool = False) -> Replay:
        """Read one segment, or all of a calls folder or run; what the teacher said is for a teacher only."""
        folder = inside(path, "calls") if (path / "calls").is_dir() else path
        files = sorted(folder.glob("*.jsonl*")) if folder.is_dir() else [folder]
        records = (record for file in files for record in read_calls(file))
        return cls(
            [record for record in records if (record.tier == TEACHER) is teacher],
            str(path),
        )

    async def complete(self, request: Request) -> Reply:
        """The recorded reply."""
        for model in self._models:
            if record := self._replies.get(request.digest(model)):
                return record.reply()
        at = request.attempt
        raise KaceError(
            f"{self.source}: no recording of problem {at.problem} {at.tier} attempt {at.index} seed {at.seed}",
            fix="replay with the problems, seed, preset, settings and kace version of the recorded run",
        )

    async def aclose(self) -> None:
        """Nothing is held."""
