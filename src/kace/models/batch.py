"""Half price within a day: requests are gathered and sent as jobs of a batch API.

A request waits for the batch that holds it, whichever process submitted that batch. The
same command, from another shell or on another day, collects what is finished and submits
only what is missing. `Batched` is the model and `Jobs` the two APIs. One file per batch
lets a kill at any instant lose nothing and submit nothing twice: `RUN/batches/TAG.json`
is written before the batch is submitted, again with its job, and deleted when every
reply is a kept call.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from kace.errors import (
    KaceError,
    Submitted,
    UsageError,
    counted,
    one_line,
)
from kace.files import Unreadable, inside, read_plain, remove, write_atomic
from kace.models.base import (
    AttemptKey,
    ChatModel,
    ModelError,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import Ledger, sent_again
from kace.models.cache import CallRecord, CallStore
from kace.models.http import (
    MALFORMED,
    AnthropicModel,
    OpenAIModel,
    Remote,
    Response,
    read_body,
)

log = logging.getLogger(__name__)

FULL = 0.98  # of a job's bytes: there is a little around the requests
MISSES = 60  # failures in a row, mostly a minute apart
LATER = "run the same command later: nothing that was submitted is lost"
OWN_FILE = re.compile(r"([0-9a-f]{24})\.json")

# Seconds
QUIET = 2.0  # without a new request, after which a batch is closed
FIRST = 1.0  # between the first two looks at the jobs
LONGEST = 60.0  # between two looks
SETTLE = 5.0  # until a new job is surely listed
READ_SECONDS = 60.0  # without a byte of a reply
LONGEST_PAUSE = 3600.0  # a provider may name any number

T = TypeVar("T")


class Unfinished(Transient):
    """A request that its job did not answer and that costs nothing."""

    billed = False


# The model


class RequestBatch(BaseModel):
    """Requests that are submitted together. `TAG.json` holds all but the excluded."""

    model: str  # its identity
    attempts: dict[str, AttemptKey]  # of its requests, by their keys
    since: str = ""  # a job at the provider that is older than this one
    job: str = ""  # the provider's id
    tag: str = Field(
        default_factory=lambda: secrets.token_hex(12), exclude=True
    )
    done: int = Field(default=0, exclude=True)  # requests that are finished


class Batched(Wrapper):
    """A model that answers through batches, and by a live call what a batch did not.

    One task submits, waits and keeps replies, as long as requests wait. Without `wait`,
    it submits everything, collects what is finished, and raises `Submitted` for the
    rest.
    """

    def __init__(
        self,
        model: ChatModel,
        jobs: Jobs,
        calls: CallStore,
        *,
        ledger: Ledger,
        wait: bool = True,
        size: int | None = None,
    ) -> None:
        super().__init__(model)
        self._jobs = jobs
        self._calls = calls
        self._ledger = ledger
        self._wait = wait
        self._most = min(size or jobs.MOST_REQUESTS, jobs.MOST_REQUESTS)
        self._folder = inside(calls.folder.parent, "batches")
        self._waiting: dict[str, tuple[Request, asyncio.Future[Reply]]] = {}
        self._open = self._read_left()  # submitted, or perhaps
        self._work: asyncio.Task[None] | None = None
        self._broken: Exception | None = None

    async def complete(self, request: Request) -> Reply:
        """Queue the request, wait for its batch to finish, and return the reply."""
        key = request.digest(self.identity)
        while True:
            left_out = self._jobs.remote.left_out
            try:
                reply = await self._wait_for(key, request)
                return replace(reply, cached=False)
            except Unfinished as error:
                fault = error
            await sent_again(fault)
            # If a parameter is left out since, another batch may answer.
            if self._jobs.remote.left_out == left_out:
                return await self.model.complete(request)

    async def aclose(self) -> None:
        """Close everything. Jobs under way stay with their provider."""
        if self._work:
            self._work.cancel()
            await asyncio.wait([self._work])
        await super().aclose()

    async def _wait_for(self, key: str, request: Request) -> Reply:
        # Perhaps from an earlier process's batch, since this call was looked up.
        kept = self._calls.get(key)
        if kept:
            return kept
        if self._broken:
            raise self._broken
        reply = asyncio.Future[Reply]()
        self._waiting[key] = (request, reply)
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        try:
            return await reply
        finally:
            self._waiting.pop(key, None)

    async def _run(self) -> None:
        """Submit what waits and collect what is finished, until no request waits.

        Each step may be done again after a fault of the connection.
        """
        delay = FIRST
        misses = 0
        try:
            while self._waiting:
                pause = delay
                try:
                    await self._submit_waiting()
                    if await self._collect_finished():
                        delay = FIRST  # callers continue, and may request more
                        continue
                    misses = 0
                    if not self._wait:
                        raise Submitted(self.progress(), fix=LATER)
                    log.info("batch: %s", self.progress())
                except Transient as error:
                    misses += 1
                    if misses > MISSES:
                        raise
                    log.info("batch: retrying: %s", error.message)
                    pause = min(error.retry_after or delay, LONGEST_PAUSE)
                await asyncio.sleep(pause)
                delay = min(LONGEST, 1.5 * delay)
        except Exception as error:
            self._broken = error
            if isinstance(error, ModelError | OSError):
                self._broken = KaceError(str(error), fix=LATER)
            for key in self._waiting:
                self._resolve(key, self._broken)
        self._work = None

    def _resolve(self, key: str, outcome: Reply | Exception) -> None:
        """Let a request continue with its reply, or fail."""
        _, reply = self._waiting[key]
        if reply.done():
            return
        if isinstance(outcome, Reply):
            reply.set_result(outcome)
        else:
            reply.set_exception(outcome)

    async def _submit_waiting(self) -> None:
        """Wait until no new request comes, then submit those that are in no batch."""
        seen = -1
        while seen != len(self._waiting):
            seen = len(self._waiting)
            await asyncio.sleep(QUIET)
        submitted: set[str] = set()
        for batch in self._open:
            submitted |= batch.attempts.keys()
        lines: list[bytes] = []
        attempts: dict[str, AttemptKey] = {}
        size = 0
        for key, (request, _) in list(self._waiting.items()):
            if key in submitted:
                continue
            line = self._jobs.encode(key, request)
            full = size + len(line) > FULL * self._jobs.MOST_BYTES
            if lines and (full or len(lines) == self._most):
                await self._submit(lines, attempts)
                lines = []
                attempts = {}
                size = 0
            size += len(line) + 2
            lines.append(line)
            attempts[key] = request.attempt
        if lines:
            await self._submit(lines, attempts)

    async def _submit(
        self, lines: list[bytes], attempts: dict[str, AttemptKey]
    ) -> None:
        """Submit a batch. After a lost reply, `_find` looks for its job."""
        batch = RequestBatch(model=self.identity, attempts=attempts)
        newest = await anext(self._jobs.list_newest(), None)
        batch.since = newest.id if newest else ""
        self._note(batch)
        self._open.append(batch)
        try:
            batch.job = await self._jobs.submit(lines, batch.tag)
        except Transient:
            raise
        except (ModelError, KaceError):
            self._drop(batch)
            raise
        self._note(batch)
        log.warning(
            "batch: %s submitted as %s; %.2f USD so far",
            counted(len(attempts), "request"),
            batch.job,
            self._ledger.usd,
        )

    async def _collect_finished(self) -> bool:
        """Look at each job once; return whether one has ended."""
        before = len(self._open)
        refused = ""
        for batch in self._open.copy():
            if not batch.job and not await self._find(batch):
                self._drop(batch)
                continue
            job = await self._jobs.look_up(batch.job)
            batch.done = job.done
            if job.refused:
                self._drop(batch)
                refused = f"{job.id} is refused: {job.refused}"
            elif job.outcome:
                await self._collect(batch, job)
        if refused:
            raise KaceError(
                refused,
                fix="change what it names; if the queue is full, run the same "
                "command later, or send less with --set batch_size=N",
            )
        return len(self._open) < before

    async def _find(self, batch: RequestBatch) -> bool:
        """Look for the job of a batch that may have been submitted."""
        known = {other.job for other in self._open}
        for wait in (0.0, SETTLE):  # it may not be listed at once
            await asyncio.sleep(wait)
            async for job in self._jobs.list_newest():
                if job.id == batch.since:
                    break
                ours = job.mark in (batch.tag, len(batch.attempts))
                if ours and job.id not in known:
                    batch.job = job.id  # the oldest such one
            if batch.job:
                return True
        return False

    async def _collect(self, batch: RequestBatch, job: Job) -> None:
        """Keep the replies of a job, unless it is not that of the batch."""
        answered: set[str] = set()
        strange = False
        faults: dict[str, Exception] = {}
        async for key, result in self._jobs.results(job):
            if key not in batch.attempts:
                strange = True
                continue
            answered.add(key)
            if key in self._calls:
                continue
            try:
                reply = self._jobs.read(result)
            except (ModelError, KaceError) as error:
                faults[key] = error
                continue
            attempt = batch.attempts[key]
            record = CallRecord.of(key, self.identity, attempt, reply)
            if key in self._waiting:
                self._calls.keep(record, self._waiting[key][0])
            else:  # requested by an earlier process
                self._calls.put(record)
        if strange and not answered:  # an untagged job of somebody else
            batch.since = batch.job
            batch.job = ""
            return
        what = (
            f"{job.id} is {job.outcome}, {len(answered):,} of "
            f"{counted(len(batch.attempts), 'request')} answered"
        )
        log.warning("batch: %s", what)
        self._drop(batch)
        missed: Exception = Unfinished(what)
        if job.outcome == "cancelled":
            fix = "run the same command to submit the others again"
            missed = KaceError(what, fix=fix)
        for key in batch.attempts.keys() & self._waiting.keys():
            outcome = self._calls.get(key) or faults.get(key, missed)
            self._resolve(key, outcome)

    def progress(self) -> str:
        """Describe the jobs under way, their requests and the money."""
        done = sum(batch.done for batch in self._open)
        requests = sum(len(batch.attempts) for batch in self._open)
        return (
            f"{counted(len(self._open), 'job')} under way, {done:,} of "
            f"{counted(requests, 'request')} done; {self._ledger.usd:.2f} USD so far"
        )

    # The files

    def _path(self, batch: RequestBatch) -> Path:
        return self._folder / f"{batch.tag}.json"

    def _note(self, batch: RequestBatch) -> None:
        """Write the state of a batch, durably."""
        write_atomic(self._path(batch), batch.model_dump_json())

    def _drop(self, batch: RequestBatch) -> None:
        """Forget a batch that is done, refused or was not submitted."""
        self._open.remove(batch)
        remove(self._path(batch))

    def _read_left(self) -> list[RequestBatch]:
        """Return the batches that an earlier process left, and delete what is done."""
        left = []
        for path in sorted(self._folder.glob("*.json")):
            own = OWN_FILE.fullmatch(path.name)
            if not own:
                continue
            try:
                batch = RequestBatch.model_validate_json(read_plain(path))
            except ValidationError:
                fix = "remove it: its requests are paid again"
                raise Unreadable(path, "not a batch", fix) from None
            batch.tag = own[1]
            if batch.model != self.identity:
                continue
            if all(key in self._calls for key in batch.attempts):
                remove(path)
            else:
                left.append(batch)
        return left


# The two APIs


PAGES = 20  # of the list of jobs that are searched
PAGE = 100
ENDED = ("completed", "expired", "cancelled", "failed")


@dataclass(frozen=True, slots=True)
class Job:
    """A job, as its provider reports it."""

    id: str
    mark: object  # the tag it carries; without tags, the number of its requests
    outcome: str  # once it has ended: completed, expired, cancelled or failed
    done: int  # requests that are finished
    answered: int  # of those, with a reply
    results: tuple[str, ...]  # the paths of its results
    refused: str = ""  # why it ended without having begun


class Jobs(ABC):
    """The jobs of one model at its provider. Nothing here is retried."""

    MOST_REQUESTS: ClassVar[int]
    MOST_BYTES: ClassVar[int]
    PATH: ClassVar[str]  # where jobs are created, listed and looked up
    NEXT: ClassVar[str]  # the parameter of the next page of the list
    ENTRY: ClassVar[Mapping[str, str]] = {}  # what each request of a job has
    BODY: ClassVar[str]  # the name of its body there

    def __init__(self, remote: Remote) -> None:
        self.remote = remote

    @abstractmethod
    async def submit(self, lines: Sequence[bytes], tag: str) -> str:
        """Create a job of encoded requests and return its id.

        After a `Transient`, it may exist and is looked for in the list.
        """

    @abstractmethod
    def _read_job(self, fields: Any) -> Job: ...

    @abstractmethod
    def _read_result(self, line: Any) -> tuple[int, Any]:
        """Return the status and the body of a result."""

    def encode(self, key: str, request: Request) -> bytes:
        """Return a request as a line of a job."""
        body = self.remote.build_body(request)
        entry = {"custom_id": key, **self.ENTRY, self.BODY: body}
        return json.dumps(entry, separators=(",", ":")).encode()

    async def look_up(self, name: str) -> Job:
        """Return a job by its id."""
        path = f"{self.PATH}/{quote(name, safe='')}"
        job = await self._call(self._read_job, "GET", path)
        if job.answered:
            self.remote.answered = True
        return job

    async def list_newest(self) -> AsyncIterator[Job]:
        """Yield the jobs of the account, newest first."""

        def read(page: Any) -> tuple[Sequence[Job], bool]:
            jobs = [self._read_job(fields) for fields in page["data"]]
            return jobs, bool(page.get("has_more"))

        path = f"{self.PATH}?limit={PAGE}"
        after = ""
        for _ in range(PAGES):
            jobs, more = await self._call(read, "GET", path + after)
            for job in jobs:
                yield job
                after = f"&{self.NEXT}={quote(job.id, safe='')}"
            if not more:
                break

    async def results(self, job: Job) -> AsyncIterator[tuple[str, Any]]:
        """Yield the keys and results of a job."""
        for path in job.results:
            try:
                async with self._open("GET", path) as response:
                    async for line in response.content:
                        try:
                            result = json.loads(line)
                            key = str(result["custom_id"])
                        except MALFORMED:
                            continue
                        yield key, result
            except ValueError:  # aiohttp's, of a line longer than a body may be
                raise KaceError(
                    "the results of a job are too large",
                    fix="is the base URL right?",
                ) from None

    def read(self, result: Any) -> Reply:
        """Return the reply in a result, or raise as a live call would.

        `Unfinished` is raised for what may be tried again.
        """
        try:
            status, body = self._read_result(result)
        except MALFORMED:
            raise Unfinished("unreadable result") from None
        data = json.dumps(body).encode()
        if status == 200:
            try:
                return replace(self.remote.read_reply(data, 0.0), batch=True)
            except ModelError as fault:
                raise Unfinished(fault.message) from None
        response = Response(status, {}, data)
        error = self.remote.error_of(response)
        rejected = self.remote.leave_out_rejected(response, frozenset())
        if rejected or isinstance(error, Transient):
            raise Unfinished(error.message)
        if isinstance(error, ModelError):
            error.billed = False
        raise error

    async def _call(
        self, read: Callable[[Any], T], method: str, path: str, **sent: Any
    ) -> T:
        """Send a request and return what `read` finds in its JSON reply."""
        async with self._open(method, path, **sent) as response:
            body = await read_body(response)
        try:
            return read(json.loads(body))
        except MALFORMED:
            start = body[:200].decode("utf-8", "replace")
            raise Transient(
                one_line(f"unreadable reply of {self.remote.url}: {start}")
            ) from None

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, **sent: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield a successful response."""
        timeout = aiohttp.ClientTimeout(None, sock_read=READ_SECONDS)
        async with self.remote.client.open(
            method, path, timeout=timeout, **sent
        ) as response:
            if response.status == 404:
                raise KaceError(
                    f"{self.remote.url} has no batch API, or no such batch under this "
                    "key",
                    fix=f"leave out --batch, or set {self.remote.KEY} to the key that "
                    "submitted it",
                )
            if response.status >= 300:
                start = await response.content.read(10_000)
                failed = Response(response.status, response.headers, start)
                raise self.remote.error_of(failed)
            yield response


def open_jobs(model: ChatModel) -> Jobs:
    """Return the jobs of a model. Raises `UsageError` if its provider has none."""
    inner = model.model if isinstance(model, Wrapper) else model
    if isinstance(inner, OpenAIModel):
        return OpenAIJobs(inner)
    if isinstance(inner, AnthropicModel):
        return AnthropicJobs(inner)
    raise UsageError(
        f"'{model.name}' has no batch API",
        fix="name an openai/ or anthropic/ model at one address, or leave out --batch",
    )


class OpenAIJobs(Jobs):
    """OpenAI's Batch API, and that of compatible servers."""

    MOST_REQUESTS = 50_000
    MOST_BYTES = 200_000_000
    PATH = "/batches"
    NEXT = "after"
    ENTRY: ClassVar[Mapping[str, str]] = {
        "method": "POST",
        "url": "/v1/chat/completions",
    }
    BODY = "body"

    async def submit(self, lines: Sequence[bytes], tag: str) -> str:
        """Upload the requests, and create a job of them that carries the tag."""
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        file = io.BytesIO(b"\n".join(lines) + b"\n")
        form.add_field("file", file, filename=f"kace-{tag}.jsonl")
        name = itemgetter("id")
        uploaded = await self._call(name, "POST", "/files", data=form)
        fields = {
            "input_file_id": uploaded,
            "endpoint": self.ENTRY["url"],
            "completion_window": "24h",
            "metadata": {"kace": tag},
        }
        job = await self._call(self._read_job, "POST", self.PATH, json=fields)
        return job.id

    def _read_job(self, fields: Any) -> Job:
        state = str(fields["status"])
        counts = fields.get("request_counts") or {}
        answered = counts.get("completed") or 0
        output = fields.get("output_file_id")
        results = []
        for file in (output, fields.get("error_file_id")):
            if file:
                results.append(f"/files/{quote(file, safe='')}/content")
        refused = ""
        if state == "failed" and not results:
            errors = (fields.get("errors") or {}).get("data") or [{}]
            refused = one_line(str(errors[0].get("message") or state))
        # A completed job that has no file of its paid replies yet has not ended.
        missing = state == "completed" and answered and not output
        return Job(
            str(fields["id"]),
            (fields.get("metadata") or {}).get("kace"),
            state if state in ENDED and not missing else "",
            answered + (counts.get("failed") or 0),
            answered,
            tuple(results),
            refused,
        )

    def _read_result(self, line: Any) -> tuple[int, Any]:
        response = line.get("response")
        if response:
            return int(response["status_code"]), response["body"]
        error = line.get("error") or {}
        raise Unfinished(one_line(str(error.get("message") or "no response")))


class AnthropicJobs(Jobs):
    """Anthropic's Message Batches.

    They carry no tag: a listed one is recognised by its size, then by its results.
    """

    MOST_REQUESTS = 100_000
    MOST_BYTES = 256_000_000
    PATH = "/v1/messages/batches"
    NEXT = "after_id"
    BODY = "params"
    # The status of Anthropic's kinds of error, which a result does not have.
    STATUS: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
    }

    async def submit(self, lines: Sequence[bytes], tag: str) -> str:
        """Send all requests as one list."""
        requests = b'{"requests":[\n' + b",\n".join(lines) + b"\n]}\n"
        job = await self._call(
            self._read_job,
            "POST",
            self.PATH,
            data=io.BytesIO(requests),
            headers={"content-type": "application/json"},
        )
        return job.id

    def _read_job(self, fields: Any) -> Job:
        counts = fields.get("request_counts") or {}
        size = sum(counts.values())
        outcome = ""
        if fields["processing_status"] == "ended":
            outcome = "completed"
            if counts.get("canceled"):
                outcome = "cancelled"
            elif counts.get("expired"):
                outcome = "expired"
        name = str(fields["id"])
        path = f"{self.PATH}/{quote(name, safe='')}/results"
        return Job(
            name,
            size,
            outcome,
            size - (counts.get("processing") or 0),
            counts.get("succeeded") or 0,
            (path,) if fields.get("results_url") else (),
        )

    def _read_result(self, line: Any) -> tuple[int, Any]:
        result = line["result"]
        if result["type"] == "succeeded":
            return 200, result["message"]
        if result["type"] != "errored":
            raise Unfinished(f"the request is {result['type']}")
        error = result["error"]
        kind = (error.get("error") or error).get("type")
        return self.STATUS.get(kind, 500), error
