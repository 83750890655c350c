"""Half price within a day: requests are gathered and sent as jobs of a batch API.

A request waits for the batch that holds it, whichever process submitted that batch. The
same command, from another shell or on another day, collects what is finished and submits
only what is missing. `Batched` is the model and `Jobs` the two APIs. Two files per batch
let a kill at any instant lose nothing and submit nothing twice:

    RUN/batches/TAG.in    the requests, until they are submitted
    RUN/batches/TAG.json  written before the batch is submitted, again with its job, and
                          deleted when every reply is a kept call
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
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
    without_secrets,
)
from kace.files import (
    Unreadable,
    inside,
    open_plain,
    read_plain,
    remove,
    write_atomic,
)
from kace.models.base import (
    AttemptKey,
    ChatModel,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import Ledger, sent_again
from kace.models.cache import CallRecord, CallStore, head_of
from kace.models.http import (
    MAX_BODY,
    AnthropicModel,
    ErrorReport,
    HttpClient,
    Lost,
    OpenAIModel,
    Remote,
    Response,
    read_body,
)

log = logging.getLogger(__name__)

TRIES = 3  # of a request in batches, before its attempt fails
FULL = 0.98  # of a job's bytes: there is a little around the requests
LATER = "run the same command later: nothing that was submitted is lost"
OWN_FILE = re.compile(r"\.?([0-9a-f]{24})\.(in|json)(\.[0-9a-f]+\.tmp)?")

T = TypeVar("T")


class Unfinished(Transient):
    """A request that its job did not answer and that costs nothing."""

    billed = False

    def __init__(self, message: str, *, rephrase: bool = False) -> None:
        super().__init__(message)
        # Whether to batch it again, without some parameter.
        self.rephrase = rephrase


# The model


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    quiet: float = 2.0  # without a new request, after which a batch is closed
    first: float = 1.0  # between the first two looks at a job
    longest: float = 60.0  # between two looks
    settle: float = 5.0  # until a new job is surely listed
    patience: float = 3600.0  # with a provider that cannot be reached


class RequestBatch(BaseModel):
    """Requests that are submitted together. `TAG.json` holds all but the excluded."""

    model: str  # its identity
    attempts: dict[str, AttemptKey]  # of its requests, by their keys
    since: str = ""  # the newest job at the provider before this one
    job: str = ""  # the provider's id
    tag: str = Field(
        default_factory=lambda: secrets.token_hex(12), exclude=True
    )
    # Whether it may have been submitted.
    uncertain: bool = Field(default=False, exclude=True)
    status: JobStatus | None = Field(default=None, exclude=True)

    @property
    def size(self) -> str:
        """The number of its requests, in words."""
        return counted(len(self.attempts), "request")


class Batched(Wrapper):
    """A model that answers through batches, and by a live call what a batch did not.

    Without `wait`, it submits everything, collects what is finished, and raises
    `Submitted` for the rest. One task per batch submits it, waits and keeps its replies.
    """

    def __init__(
        self,
        model: ChatModel,
        jobs: Jobs,
        calls: CallStore,
        *,
        ledger: Ledger,
        wait: bool = True,
        pace: Pace | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(model)
        self._jobs = jobs
        self._calls = calls
        self._ledger = ledger
        self._wait = wait
        self._pace = pace or Pace()
        self._most = min(size or jobs.MOST_REQUESTS, jobs.MOST_REQUESTS)
        self._folder = inside(calls.folder.parent, "batches")
        self._requests: dict[str, Request] = {}  # that wait here, by their keys
        self._gathered: dict[
            str, tuple[bytes, AttemptKey]
        ] = {}  # those in no batch yet
        self._open: list[RequestBatch] = []  # submitted, or about to be
        self._faults: dict[str, Exception] = {}  # of requests without a reply
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = (
            defaultdict(list)
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = 0
        self._gathering = False
        # One at a time, so that at most one job of an untagged API is unknown.
        self._submitting = asyncio.Lock()
        self._foreign: set[str] = set()  # jobs known to be of others
        self._broken: Exception | None = None
        self._left = self._read_left()  # by an earlier process

    async def complete(self, request: Request) -> Reply:
        """Queue the request, wait for its batch to finish, and return the reply."""
        key = request.digest(self.identity)
        self._requests[key] = request
        try:
            for tries_left in reversed(range(TRIES)):
                try:
                    return await self._batch(key, request)
                except Unfinished as error:
                    if not tries_left:
                        raise
                    fault = error
                await sent_again(fault)
                if not fault.rephrase:
                    break
            return await self.model.complete(request)
        finally:
            del self._requests[key]

    async def aclose(self) -> None:
        """Close everything. Jobs under way stay with their provider."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._jobs.aclose()
        await super().aclose()

    async def _batch(self, key: str, request: Request) -> Reply:
        while self._left:
            batch = self._left.pop()
            self._open.append(batch)
            self._start(self._run(batch))
        while True:
            if key in self._faults:
                raise self._faults.pop(key)
            reply = self._calls.get(key)
            if reply:
                return replace(reply, cached=False)
            if self._broken is not None:
                raise self._broken
            if not any(key in batch.attempts for batch in self._open):
                line = self._jobs.encode(key, request)
                self._gathered[key] = (line, request.attempt)
            self._note_arrival()
            turn = asyncio.get_running_loop().create_future()
            self._waiting[key].append(turn)
            await turn

    def _release(self, keys: Iterable[str]) -> None:
        """Let waiting requests continue, or fail if something is broken."""
        for key in list(keys):
            for turn in self._waiting.pop(key, []):
                if turn.done():
                    continue
                if self._broken:
                    turn.set_exception(self._broken)
                else:
                    turn.set_result(None)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task. Its error is that of every request that waits."""

        async def run() -> None:
            try:
                await work
            except (ModelError, OSError) as error:
                self._broken = KaceError(str(error), fix=LATER)
            except Exception as error:
                self._broken = error
            if self._broken:
                self._release(self._waiting)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note_arrival(self) -> None:
        self._arrived += 1
        if not self._gathering:
            self._gathering = True
            self._start(self._gather())

    async def _gather(self) -> None:
        """Wait until no new request comes, then submit what was gathered."""
        seen = -1
        while seen != self._arrived:
            seen = self._arrived
            await asyncio.sleep(self._pace.quiet)
        self._gathering = False
        lines: list[bytes] = []
        attempts: dict[str, AttemptKey] = {}
        size = 0
        for key, (line, attempt) in self._gathered.items():
            size += len(line) + 2
            if lines and (
                len(lines) >= self._most or size > FULL * self._jobs.MOST_BYTES
            ):
                self._write(lines, attempts)
                lines = []
                attempts = {}
                size = len(line) + 2
            lines.append(line)
            attempts[key] = attempt
        self._gathered = {}
        if lines:
            self._write(lines, attempts)
        self._stop_hasty()

    def _write(
        self, lines: list[bytes], attempts: dict[str, AttemptKey]
    ) -> None:
        """Write the requests of a batch, and start it."""
        batch = RequestBatch(model=self.identity, attempts=attempts)
        start, between, end = self._jobs.FRAME
        content = start + between.join(lines) + end
        write_atomic(self._path(batch, "in"), content)
        self._open.append(batch)
        self._start(self._run(batch))

    def _stop_hasty(self) -> None:
        """Raise `Submitted` if not to wait, once every job was looked at."""
        if self._wait or self._gathering or not self._waiting:
            return
        jobs = [batch.status for batch in self._open]
        if all(status and not status.outcome for status in jobs):
            raise Submitted(
                self.progress(),
                fix="run the same command later: it collects what is finished",
            )

    async def _run(self, batch: RequestBatch) -> None:
        """Submit a batch if needed, wait for its job, and keep the replies."""
        if batch.uncertain and not await self._find(batch):
            self._drop(batch)
            return
        while batch in self._open:
            if not batch.job:
                await self._submit(batch)
            status = await self._poll(batch)
            if status.refused:
                self._drop(batch)
                raise KaceError(
                    f"{batch.job} is refused: {status.outcome}",
                    fix="change what it names; if the queue is full, run the same "
                    "command later, or send less with --set batch_size=N",
                )
            await self._collect(batch, status)

    async def _submit(self, batch: RequestBatch) -> None:
        """Submit a batch. If the outcome is unknown, look the job up in the list."""
        file = self._path(batch, "in")
        async with self._submitting:
            batch.since = await self._retry(self._jobs.find_newest)
            self._note(batch)

            async def submit() -> None:
                if batch.uncertain and await self._find(batch):
                    return
                try:
                    batch.job = await self._jobs.submit(file, batch.tag)
                except (ModelError, KaceError) as error:
                    lost = isinstance(error, Transient) and error.sent
                    batch.uncertain = lost
                    raise

            try:
                await self._retry(submit)
            except (ModelError, KaceError):
                if not batch.uncertain:
                    self._drop(batch)
                raise
            self._note(batch)
            file.unlink()
        line = "batch: %s submitted as %s; %.2f USD so far"
        log.warning(line, batch.size, batch.job, self._ledger.usd)

    async def _find(self, batch: RequestBatch) -> bool:
        """Look for the job of a batch that may have been submitted."""
        known = self._foreign | {other.job for other in self._open}
        for wait in (0.0, self._pace.settle):  # it may not be listed at once
            await asyncio.sleep(wait)
            for job in await self._retry(lambda: self._jobs.find(batch)):
                if job not in known:
                    batch.job = job
                    return True
        return False

    async def _poll(self, batch: RequestBatch) -> JobStatus:
        """Return the status of a job once it has ended."""
        delay = self._pace.first
        while True:
            status = await self._retry(lambda: self._jobs.status(batch.job))
            batch.status = status
            if status.outcome:
                return status
            self._stop_hasty()
            log.info("batch: %s", self.progress())
            await asyncio.sleep(delay)
            delay = min(self._pace.longest, 1.5 * delay)

    async def _collect(self, batch: RequestBatch, status: JobStatus) -> None:
        """Keep the replies of a job, unless it is not that of the batch."""
        answered: set[str] = set()
        strange: set[str] = set()

        async def fetch() -> None:
            async for line in self._jobs.results(status):
                result, key = read_result(line)
                attempt = batch.attempts.get(key)
                (answered if attempt else strange).add(key)
                if attempt and head_of(key) not in self._calls:
                    self._keep(key, attempt, result)

        await self._retry(fetch)
        if strange - {""} and not answered:  # an untagged job of somebody else
            self._foreign.add(batch.job)
            batch.job = ""
            if not await self._find(batch):
                self._drop(batch)
            return
        missed = batch.attempts.keys() - answered
        for key in missed:
            what = f"its batch is {status.outcome}, without a result"
            self._faults[key] = Unfinished(what)
        what = (
            f"{batch.job} is {status.outcome}, {len(answered):,} of {batch.size} "
            "answered"
        )
        log.warning("batch: %s", what)
        self._open.remove(batch)
        self._delete(batch)
        self._release(answered)
        if missed and status.outcome == "cancelled":
            self._broken = KaceError(
                what, fix="run the same command to submit the others again"
            )
        self._release(missed)
        self._note_arrival()  # released callers continue and may request more

    def _keep(self, key: str, attempt: AttemptKey, result: Any) -> None:
        """Keep the reply in a result, or its fault until the request is answered."""
        try:
            reply = self._jobs.read(result)
        except (ModelError, KaceError) as error:
            self._faults[key] = error
        else:
            request = self._requests.get(key)
            if request:
                self._calls.keep(key, self.identity, request, reply)
            else:  # asked by an earlier process
                record = CallRecord.of(key, self.identity, attempt, reply)
                self._calls.put(record)

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until there is an answer, at growing intervals, up to `patience`."""
        wait = self._pace.first
        waited = 0.0
        while True:
            try:
                return await call()
            except (RateLimited, Transient) as error:
                if waited > self._pace.patience:
                    raise KaceError(
                        f"no answer for {waited:.0f} s: {error.message}",
                        fix=LATER,
                    ) from None
                log.info("batch: retrying: %s", error.message)
                pause = max(wait, error.retry_after or 0.0)
            pause = min(pause, self._pace.patience)
            await asyncio.sleep(pause)
            waited += pause
            wait = min(self._pace.longest, 2 * wait)

    def progress(self) -> str:
        """Describe the jobs under way, their requests and the money."""
        jobs = [batch for batch in self._open if batch.job]
        done = sum(batch.status.done for batch in jobs if batch.status)
        requests = sum(len(batch.attempts) for batch in jobs)
        return (
            f"{counted(len(jobs), 'job')} under way, {done:,} of "
            f"{counted(requests, 'request')} done; {self._ledger.usd:.2f} USD so far"
        )

    # The files

    def _path(self, batch: RequestBatch, kind: str) -> Path:
        return self._folder / f"{batch.tag}.{kind}"

    def _note(self, batch: RequestBatch) -> None:
        """Write the state of a batch, durably."""
        write_atomic(self._path(batch, "json"), batch.model_dump_json())

    def _drop(self, batch: RequestBatch) -> None:
        """Forget a batch that was not submitted or was refused; free its requests."""
        self._open.remove(batch)
        self._delete(batch)
        self._release(batch.attempts)

    def _delete(self, batch: RequestBatch) -> None:
        for kind in ("json", "in"):
            remove(self._path(batch, kind))

    def _read_left(self) -> list[RequestBatch]:
        """Return the batches that an earlier process left, and delete what is done."""
        left = []
        for path in sorted(self._folder.glob("*")):
            own = OWN_FILE.fullmatch(path.name)
            if not own:
                continue
            if path.suffix != ".json":
                remove(path)
                continue
            try:
                batch = RequestBatch.model_validate_json(read_plain(path))
            except ValidationError:
                raise Unreadable.at(
                    path,
                    "not a batch",
                    "remove it: its requests are paid again",
                ) from None
            if batch.model != self.identity:
                continue
            batch.tag = own[1]
            batch.uncertain = not batch.job
            kept = [head_of(key) in self._calls for key in batch.attempts]
            if all(kept):
                self._delete(batch)
            else:
                left.append(batch)
        return left


# The two APIs


READ_SECONDS = 120.0  # without a byte
PAGES = 20  # of the list of jobs that are searched
PAGE = 100
MAX_RESULTS = 32_000_000_000  # bytes of a job's results
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)


class Absent(KaceError):
    """A 404. Of a batch API, only jobs and their results may be missing."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job, as its provider reports it."""

    outcome: str  # why it ended: completed, expired, cancelled or an error
    done: int = 0  # requests that are finished
    answered: int = 0  # of those, with a reply
    results: tuple[str, ...] = ()  # the paths of its results
    refused: bool = False  # it ended without having begun


class Jobs(ABC):
    """The jobs of one model at its provider. Nothing here is retried."""

    MOST_REQUESTS: ClassVar[int]
    MOST_BYTES: ClassVar[int]
    PATH: ClassVar[str]  # where jobs are created, listed and looked up
    NEXT: ClassVar[str]  # the parameter of the next page of the list
    FRAME: ClassVar[tuple[bytes, bytes, bytes]]  # around and between requests

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self._client = HttpClient(
            remote.url, remote.headers, read_seconds=READ_SECONDS
        )

    @abstractmethod
    def _entry(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a request as a job holds it, without its key."""

    @abstractmethod
    async def submit(self, requests: Path, tag: str) -> str:
        """Create a job and return its id. After a `Transient`, see `find`."""

    @abstractmethod
    def _read_status(self, job: Any) -> JobStatus: ...

    @abstractmethod
    def _may_be(self, job: Any, batch: RequestBatch) -> bool:
        """Whether a listed job may be the one of a batch."""

    @abstractmethod
    def _read_result(self, line: Any) -> tuple[int, Any]:
        """Return the status and the body of a result."""

    def encode(self, key: str, request: Request) -> bytes:
        """Return a request as a line of a job."""
        body = self.remote.build_body(request, self.remote.left_out)
        entry = {"custom_id": key, **self._entry(body)}
        return json.dumps(entry, separators=(",", ":")).encode()

    async def status(self, job: str) -> JobStatus:
        """Return the status of a job."""
        path = f"{self.PATH}/{quote(job, safe='')}"
        try:
            status = await self._call("GET", path, self._read_status)
        except Absent:
            raise KaceError(
                f"{self.remote.url} has no batch '{one_line(job, 80)}' under this key",
                fix=f"set {self.remote.KEY} to the key that submitted it",
            ) from None
        if status.answered:
            self.remote.answered = True
        return status

    async def find_newest(self) -> str:
        """Return the newest job of the account."""
        jobs, _ = await self._list("limit=1")
        return jobs[0]["id"] if jobs else ""

    async def find(self, batch: RequestBatch) -> list[str]:
        """Return the jobs that may be the one of a batch, oldest first."""
        found: list[str] = []
        after = ""
        for _ in range(PAGES):
            page, more = await self._list(f"limit={PAGE}{after}")
            for job in page:
                if job["id"] == batch.since:
                    return found[::-1]
                if self._may_be(job, batch):
                    found.append(job["id"])
            if not page or not more:
                break
            after = f"&{self.NEXT}={quote(page[-1]['id'], safe='')}"
        return found[::-1]

    async def _list(self, query: str) -> tuple[list[dict[str, Any]], bool]:
        def read(page: Any) -> tuple[list[dict[str, Any]], bool]:
            jobs = [{**job, "id": str(job["id"])} for job in page["data"]]
            return jobs, bool(page.get("has_more"))

        return await self._call("GET", f"{self.PATH}?{query}", read)

    async def results(self, status: JobStatus) -> AsyncIterator[bytes]:
        """Yield the lines of a job's results, except those no longer kept."""
        size = 0
        for path in status.results:
            rest = b""
            try:
                async with self._open("GET", path) as response:
                    async for block in response.content.iter_any():
                        size += len(block)
                        *lines, rest = (rest + block).split(b"\n")
                        if size > MAX_RESULTS or len(rest) > MAX_BODY:
                            raise KaceError(
                                "the results of a job are too large",
                                fix="is the base URL right?",
                            )
                        for line in lines:
                            yield line
                    yield rest
            except Absent:
                log.warning("batch: %s no longer has %s", self.remote.url, path)

    def read(self, result: Any) -> Reply:
        """Return the reply in a result, or raise as a live call would.

        `Unfinished` is raised for what may be tried again.
        """
        try:
            status, body = self._read_result(result)
        except MALFORMED:
            raise Unfinished("unreadable result") from None
        data = json.dumps(body).encode()
        if status != 200:
            raise self._fault(ErrorReport(Response(status, {}, data)))
        try:
            reply = self.remote.read_reply(data, 0.0)
        except ModelError as error:
            raise Unfinished(error.message) from None
        return replace(reply, text=without_secrets(reply.text), batch=True)

    def _fault(self, report: ErrorReport) -> Exception:
        name = report.unsupported(self.remote.OPTIONAL, frozenset())
        if name:
            self.remote.left_out |= {name}
            return Unfinished(one_line(report.message), rephrase=True)
        error = self.remote.error_of(report)
        if isinstance(error, RateLimited | Transient):
            return Unfinished(error.message)
        if isinstance(error, ModelError):
            error.billed = False
        return error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Send a request and return what `read` finds in its JSON reply."""
        async with self._open(method, path, data, headers) as response:
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
        self,
        method: str,
        path: str,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield a successful response; a 404 raises `Absent`."""
        try:
            async with self._client.open(
                method, path, data, headers
            ) as response:
                self.remote.reached = True
                if response.status == 404:
                    raise Absent(
                        f"{self.remote.url} has no batch API",
                        fix="leave out --batch",
                    )
                if response.status >= 300:
                    start = await response.content.read(10_000)
                    failed = Response(response.status, response.headers, start)
                    raise self.remote.error_of(ErrorReport(failed))
                yield response
        except Lost as error:
            raise self.remote.connection_error(error) from None


def open_jobs(model: ChatModel) -> Jobs:
    """Return the jobs of a model. Raises `UsageError` if its provider has none."""
    inner = model
    while isinstance(inner, Wrapper):
        inner = inner.model
    if isinstance(inner, OpenAIModel):
        return OpenAIJobs(inner)
    if isinstance(inner, AnthropicModel):
        return AnthropicJobs(inner)
    raise UsageError(
        f"'{model.name}' has no batch API",
        fix="name an openai/ or anthropic/ model at one address, or leave out --batch",
    )


def _read_id(job: Any) -> str:
    return str(job["id"])


class OpenAIJobs(Jobs):
    """OpenAI's Batch API, and that of compatible servers."""

    MOST_REQUESTS = 50_000
    MOST_BYTES = 200_000_000
    PATH = "/batches"
    NEXT = "after"
    FRAME = (b"", b"\n", b"\n")
    ENDPOINT = "/v1/chat/completions"

    def _entry(self, body: Mapping[str, object]) -> Mapping[str, object]:
        return {"method": "POST", "url": self.ENDPOINT, "body": body}

    async def submit(self, requests: Path, tag: str) -> str:
        """Upload the file, and create a job of it that carries the tag."""
        with open_plain(requests) as file:
            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            form.add_field("file", file, filename=f"kace-{tag}.jsonl")
            uploaded = await self._call("POST", "/files", _read_id, form)
        job = {
            "input_file_id": uploaded,
            "endpoint": self.ENDPOINT,
            "completion_window": "24h",
            "metadata": {"kace": tag},
        }
        headers = {"content-type": "application/json"}
        body = json.dumps(job).encode()
        return await self._call("POST", self.PATH, _read_id, body, headers)

    def _may_be(self, job: Any, batch: RequestBatch) -> bool:
        return bool((job.get("metadata") or {}).get("kace") == batch.tag)

    def _read_status(self, job: Any) -> JobStatus:
        state = str(job["status"])
        counts = job.get("request_counts") or {}
        answered = counts.get("completed") or 0
        done = answered + (counts.get("failed") or 0)
        output = job.get("output_file_id")
        refused = state == "failed" and not output
        outcome = ""
        if refused:
            errors = (job.get("errors") or {}).get("data") or [{}]
            outcome = one_line(
                str(errors[0].get("message") or errors[0].get("code") or state)
            )
        # A completed job that has no file of its paid replies yet has not ended.
        elif state in ("expired", "cancelled", "failed") or (
            state == "completed" and (output or not answered)
        ):
            outcome = state
        results = []
        for file in (output, job.get("error_file_id")):
            if file:
                results.append(f"/files/{quote(file, safe='')}/content")
        return JobStatus(outcome, done, answered, tuple(results), refused)

    def _read_result(self, line: Any) -> tuple[int, Any]:
        response = line.get("response")
        if response:
            return int(response["status_code"]), response["body"]
        error = line.get("error") or {}
        raise Unfinished(
            one_line(
                str(error.get("message") or error.get("code") or "no response")
            )
        )


class AnthropicJobs(Jobs):
    """Anthropic's Message Batches.

    They carry no tag: a listed one is recognised by its size, then by its results.
    """

    MOST_REQUESTS = 100_000
    MOST_BYTES = 256_000_000
    PATH = "/v1/messages/batches"
    NEXT = "after_id"
    FRAME = (b'{"requests":[\n', b",\n", b"\n]}\n")
    # The status of Anthropic's kinds of error, which a result does not have.
    STATUS: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "overloaded_error": 529,
    }

    def _entry(self, body: Mapping[str, object]) -> Mapping[str, object]:
        return {"params": body}

    async def submit(self, requests: Path, tag: str) -> str:
        """Send all requests as one list."""
        headers = {"content-type": "application/json"}
        with open_plain(requests) as file:
            return await self._call("POST", self.PATH, _read_id, file, headers)

    def _may_be(self, job: Any, batch: RequestBatch) -> bool:
        counts = job.get("request_counts") or {}
        return bool(sum(counts.values()) == len(batch.attempts))

    def _read_status(self, job: Any) -> JobStatus:
        counts = job.get("request_counts") or {}
        answered = counts.get("succeeded") or 0
        done = sum(counts.values()) - (counts.get("processing") or 0)
        if job["processing_status"] != "ended":
            return JobStatus("", done, answered)
        outcome = "completed"
        if counts.get("canceled"):
            outcome = "cancelled"
        elif counts.get("expired"):
            outcome = "expired"
        path = f"{self.PATH}/{quote(_read_id(job), safe='')}/results"
        results = (path,) if job.get("results_url") else ()
        return JobStatus(outcome, done, answered, results)

    def _read_result(self, line: Any) -> tuple[int, Any]:
        result = line["result"]
        if result["type"] == "succeeded":
            return 200, result["message"]
        if result["type"] != "errored":
            raise Unfinished(f"the request is {result['type']}")
        error = result["error"]
        kind = (error.get("error") or error).get("type")
        return self.STATUS.get(kind, 500), error


def read_result(line: bytes) -> tuple[Any, str]:
    """Return a result and its key, which is empty if the line is damaged."""
    try:
        result = json.loads(line)
        key = result["custom_id"]
    except MALFORMED:
        return None, ""
    return result, key if isinstance(key, str) else ""
