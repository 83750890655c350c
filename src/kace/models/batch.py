"""Half price within a day: requests are gathered and sent as jobs of a batch API.

A request waits for the batch that holds it, whichever process submitted that batch. The
same command, from another shell or on another day, collects what is finished and submits
only what is missing. `Batched` is the model, `Jobs` the two APIs, `Spool` the state on
disk, with which a kill at any instant loses nothing and submits nothing twice:

    RUN/batches.jsonl    a line before a batch is submitted, one after, one at its end
    RUN/batches/TAG.in   the requests of a batch, until its results are here
    RUN/batches/TAG.out  its results, until the replies in them are kept calls
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from abc import ABC, abstractmethod
from array import array
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from kace.errors import (
    KaceError,
    Submitted,
    UsageError,
    one_line,
    without_secrets,
)
from kace.files import (
    LineLog,
    Unreadable,
    inside,
    open_plain,
    sync,
    whole_lines,
    write_atomic,
)
from kace.models.base import (
    ChatModel,
    ModelError,
    RateLimited,
    Reply,
    Request,
    Transient,
    Wrapper,
)
from kace.models.budget import Ledger, sent_again
from kace.models.cache import KEY_LENGTH, CallStore, head_of
from kace.models.http import (
    AnthropicModel,
    ErrorReport,
    HttpClient,
    Lost,
    OpenAIModel,
    Remote,
    Response,
    read_body,
)
from kace.words import counted

log = logging.getLogger(__name__)

DAY = 86_400.0  # in which a provider ends a job
TRIES = 3  # of a request in batches, before its attempt fails
LATER = "run the same command later: nothing that was submitted is lost"

T = TypeVar("T")


class Unfinished(Transient):
    """A request that its job did not answer and that costs nothing."""

    billed = False

    def __init__(self, message: str, *, rephrase: bool = False) -> None:
        super().__init__(message)
        self.rephrase = (
            rephrase  # whether to batch it again, without some parameter
        )


# The model


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    quiet: float = 2.0  # without a new request, after which a batch is closed
    first: float = 1.0  # between the first two looks at the jobs
    longest: float = 60.0  # between two looks
    settle: float = 5.0  # until a new job is surely listed
    report: float = 600.0  # between two progress lines while nothing happens
    patience: float = 3600.0  # with a provider that cannot be reached
    overdue: float = 7200.0  # after the day in which a job should end


class Batched(Wrapper):
    """A model that answers through batches, and by a live call what a batch did not.

    Without `wait`, it submits everything, collects what is finished, and raises
    `Submitted` for the rest. One task per batch submits it, waits and collects.
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
        self._ledger = ledger
        self._wait = wait
        self._pace = pace or Pace()
        self._spool = Spool(jobs, calls, size)
        self._waiting: defaultdict[int, list[asyncio.Future[None]]] = (
            defaultdict(list)
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathering = False
        self._arrived = 0
        self._resumed = False
        self._reported = time.monotonic()
        # One at a time, so that at most one job of an untagged API is unknown.
        self._submitting = asyncio.Lock()
        self._foreign: set[str] = set()  # jobs known to be of others
        self._broken: Exception | None = None

    async def complete(self, request: Request) -> Reply:
        """Queue the request, wait for its batch to finish, and return the reply."""
        key = request.digest(self.identity)
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

    async def aclose(self) -> None:
        """Close everything. Jobs under way stay with their provider."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._spool.close()
        await self._jobs.aclose()
        await super().aclose()

    async def _batch(self, key: str, request: Request) -> Reply:
        head = head_of(key)
        spool = self._spool
        if not self._resumed:
            self._resumed = True
            for batch in spool.open:
                self._start(self._run(batch))
        while head not in spool.results:
            if self._broken is not None:
                raise self._broken
            if head not in spool.sent:
                spool.gather(head, self._jobs.encode(key, request))
            self._note_arrival()
            turn = asyncio.get_running_loop().create_future()
            self._waiting[head].append(turn)
            await turn
        return spool.take(head)

    def _release(
        self, heads: Iterable[int], error: Exception | None = None
    ) -> None:
        """Let waiting requests continue, or fail with an error."""
        turns = []
        for head in heads:
            turns += self._waiting.pop(head, [])
        for turn in turns:
            if turn.done():
                continue
            if error:
                turn.set_exception(error)
            else:
                turn.set_result(None)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await work
            except KaceError as error:
                self._broken = error
            except (ModelError, OSError) as error:
                self._broken = KaceError(str(error), fix=LATER)
            except Exception as error:
                self._broken = error
            else:
                return
            self._release(list(self._waiting), self._broken)

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
        for batch in self._spool.close_batches():
            self._start(self._run(batch))
        self._check_hasty()

    def _check_hasty(self) -> None:
        """Stop, if not to wait, once everything is submitted and was looked at."""
        if self._wait or self._gathering or not self._waiting:
            return
        for batch in self._spool.open:
            if (
                not batch.status.id or batch.status.outcome
            ):  # collected just now
                return
        fix = "run the same command later: it collects what is finished"
        raise Submitted(self.progress(), fix=fix)

    async def _run(self, batch: RequestBatch) -> None:
        """Submit a batch if needed, wait for its job, and collect the results."""
        if batch.uncertain and not await self._find(batch):
            self._release(self._spool.drop(batch, "never submitted"))
            return
        while True:
            if not batch.job:
                await self._submit(batch)
            status = await self._poll(batch)
            if status.no_room:
                self._foreign.add(batch.job)
                batch.job = ""
                await self._wait_for_room(batch, status.outcome)
            elif status.refused:
                job = batch.job
                self._release(self._spool.drop(batch, status.outcome))
                what = f"{job} is refused: {status.outcome}"
                raise KaceError(what, fix="change what it names")
            elif await self._collect(batch, status):
                return

    async def _submit(self, batch: RequestBatch) -> None:
        """Submit a batch. If the outcome is unknown, look the job up in the list."""
        spool = self._spool
        wait = self._pace.first
        async with self._submitting:
            batch.since = await self._retry(self._jobs.find_newest)
            spool.note(
                batch,
                "gathered",
                model=self.identity,
                requests=batch.requests,
                since=batch.since,
            )
            while not batch.job:
                try:
                    file = spool.requests_of(batch)
                    batch.job = await self._jobs.submit(file, batch.tag)
                    batch.began = time.time()
                    spool.note(batch, "submitted", job=batch.job)
                except RateLimited as error:
                    await self._wait_for_room(
                        batch, error.message, error.retry_after
                    )
                except Transient as error:
                    warning = "batch: %s; looking whether it was submitted"
                    log.warning(warning, error.message)
                    await asyncio.sleep(wait)
                    wait = min(self._pace.longest, 2 * wait)
                    await self._find(batch)
                except (ModelError, KaceError) as error:
                    self._release(spool.drop(batch, str(error)))
                    raise
        what = counted(batch.requests, "request")
        log.warning(
            "batch: %s submitted as %s%s", what, batch.job, self._spent()
        )

    async def _find(self, batch: RequestBatch) -> bool:
        """Look for the job of a batch that may have been submitted."""
        for wait in (
            0.0,
            self._pace.settle,
        ):  # a new job may not be listed at once
            await asyncio.sleep(wait)
            find = partial(
                self._jobs.find, batch.tag, batch.requests, batch.since
            )
            known = self._foreign | {
                other.job for other in self._spool.batches()
            }
            for job in await self._retry(find):
                if job in known:
                    continue
                batch.job = job
                batch.sure = self._jobs.TAGGED
                if batch.sure:
                    self._spool.note(batch, "submitted", job=job)
                return True
        return False

    async def _wait_for_room(
        self, batch: RequestBatch, why: str, wait: float | None = None
    ) -> None:
        """Pause until a batch may find room at its provider."""
        warning = (
            "batch: %s wait for room, smaller ones with --set batch_size=N (%s)"
        )
        log.warning(warning, counted(batch.requests, "request"), why)
        if time.time() - batch.began > DAY + self._pace.overdue:
            what = f"for a day there was no room for a batch: {why}"
            raise KaceError(what, fix=LATER)
        if not self._wait:
            raise Submitted(self.progress(), fix=LATER)
        await asyncio.sleep(min(DAY, max(wait or 0.0, self._pace.longest)))

    async def _poll(self, batch: RequestBatch) -> JobStatus:
        """Return the status of a job once it has ended."""
        delay = self._pace.first
        while True:
            status = await self._retry(partial(self._jobs.status, batch.job))
            batch.status = status
            if status.outcome:
                return status
            if time.time() > batch.ends + self._pace.overdue:
                hours = (time.time() - batch.began) / 3600
                what = f"{batch.job} has not ended {hours:.0f} h after it was submitted"
                fix = "cancel it at its provider, then run the same command"
                raise KaceError(what, fix=fix)
            self._check_hasty()
            if time.monotonic() - self._reported > self._pace.report:
                self._reported = time.monotonic()
                log.warning("batch: %s", self.progress())
            await asyncio.sleep(delay)
            delay = min(self._pace.longest, 1.5 * delay)

    async def _collect(self, batch: RequestBatch, status: JobStatus) -> bool:
        """Fetch the results of a job; return whether they are those of the batch."""
        spool = self._spool
        part = spool.part_of(batch)
        part.unlink(missing_ok=True)
        with part.open("xb") as file:

            async def fetch() -> None:
                file.seek(0)
                file.truncate()
                await self._jobs.fetch(status, file)

            await self._retry(fetch)
            file.flush()
            sync(file.fileno())
        if not batch.sure and not spool.owns_results(batch):
            self._foreign.add(batch.job)
            batch.job = ""
            if not await self._find(batch):
                self._release(spool.drop(batch, "never submitted"))
                return True
            return False
        heads = list(spool.heads_of(batch))
        missed = spool.collect(batch, status.outcome)
        answered = (
            f"{batch.requests - len(missed):,} of "
            f"{counted(batch.requests, 'request')} answered"
        )
        log.warning("batch: %s %s, %s", batch.job, status.outcome, answered)
        if missed and status.outcome == "cancelled":
            fix = "run the same command to submit the others again"
            self._broken = KaceError(
                f"{batch.job} was cancelled, {answered}", fix=fix
            )
            self._release(missed, self._broken)
        self._release(heads)
        self._note_arrival()  # released callers continue and may request more
        return True

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until there is an answer, at growing intervals, up to `patience`."""
        wait = self._pace.first
        began = time.monotonic()
        while True:
            try:
                return await call()
            except (RateLimited, Transient) as error:
                fault: ModelError = error
            seconds = time.monotonic() - began
            if seconds > self._pace.patience:
                what = f"no answer for {seconds:.0f} s: {fault.message}"
                raise KaceError(what, fix=LATER)
            if wait >= self._pace.longest:
                log.warning(
                    "batch: no answer so far, retrying: %s", fault.message
                )
            pause = max(wait, fault.retry_after or 0.0)
            await asyncio.sleep(min(pause, self._pace.patience))
            wait = min(self._pace.longest, 2 * wait)

    def _spent(self) -> str:
        usd = self._ledger.usd
        return f"; {usd:.2f} USD so far" if usd else ""

    def progress(self) -> str:
        """Describe the jobs, their requests, the money and the latest end."""
        jobs = [batch for batch in self._spool.open if batch.job]
        requests = sum(batch.requests for batch in jobs)
        done = sum(batch.status.done for batch in jobs)
        text = (
            f"{counted(len(jobs), 'job')} under way, "
            f"{done:,} of {counted(requests, 'request')} done{self._spent()}"
        )
        if jobs:
            latest = time.localtime(max(batch.ends for batch in jobs))
            text += f"; at the latest {time.strftime('%a %H:%M', latest)}"
        return text


# The two APIs


HEAD = '{"custom_id":"'
"""How a line of requests begins. Its key follows, and is found without parsing."""
BLOCK = 1 << 18
READ_SECONDS = 120.0  # without a byte
PAGES = 200  # of the list of jobs that are searched
PAGE = 100
MAX_RESULTS = 32_000_000_000  # bytes of a job's results
FAR = 1e11  # seconds since 1970 from which on a time is invalid


class Absent(KaceError):
    """A 404. Of a batch API, only jobs and their results may be missing."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job, as its provider reports it."""

    id: str
    outcome: str = ""  # why it ended: completed, expired, cancelled or an error
    done: int = 0  # requests that are finished
    answered: int = 0  # of those, with a reply
    results: tuple[str, ...] = ()  # the paths of its results
    refused: bool = False  # it ended without having begun
    no_room: bool = False  # refused for now: other jobs fill the queue
    expires: float | None = None  # when the provider gives it up


class Jobs(ABC):
    """The jobs of one model at its provider. Nothing here is retried."""

    MOST_REQUESTS: ClassVar[int]
    MOST_BYTES: ClassVar[int]
    PATH: ClassVar[str]  # where jobs are created, listed and looked up
    NEXT: ClassVar[str]  # the parameter of the next page of the list
    TAGGED: ClassVar[bool]  # whether a listed job carries the tag of its batch

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        headers = {**remote.headers, "accept-encoding": "identity"}
        self._client = HttpClient(
            remote.url, headers, read_seconds=READ_SECONDS
        )

    @abstractmethod
    def _entry(
        self, key: str, body: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return a request as a job holds it, its key first."""

    @abstractmethod
    async def submit(self, requests: Path, tag: str) -> str:
        """Create a job and return its id. After a `Transient`, see `find`."""

    @abstractmethod
    def _read_status(self, job: Any) -> JobStatus: ...

    @abstractmethod
    def _may_be(self, job: Any, tag: str, requests: int) -> bool:
        """Whether a listed job may be the one of a tag."""

    @abstractmethod
    def _read_result(self, line: Any) -> tuple[int, Any]:
        """Return the status and the body of a result."""

    def encode(self, key: str, request: Request) -> bytes:
        """Return a request as a line of a job's file."""
        body = self.remote.build_body(request, self.remote.left_out)
        entry = self._entry(key, body)
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"

    async def status(self, job: str) -> JobStatus:
        """Return the status of a job."""
        path = f"{self.PATH}/{quote(job, safe='')}"
        try:
            status = await self._call("GET", path, self._read_status)
        except Absent:
            what = (
                f"{self.remote.url} has no batch '{one_line(job, 80)}' under this key: "
                "another key or project submitted it"
            )
            fix = (
                f"set {self.remote.KEY} to that one; or remove batches.jsonl, and its "
                "requests are paid again"
            )
            raise KaceError(what, fix=fix) from None
        if status.answered:
            self.remote.answered = True
        return status

    async def find_newest(self) -> str | None:
        """Return the newest job of the account."""
        jobs, _ = await self._list("limit=1")
        return jobs[0]["id"] if jobs else None

    async def find(
        self, tag: str, requests: int, since: str | None
    ) -> list[str]:
        """Return the jobs after `since` that may be the one of a tag, oldest first."""
        found: list[str] = []
        after = ""
        for _ in range(PAGES):
            page, more = await self._list(f"limit={PAGE}{after}")
            for job in page:
                if job["id"] == since:
                    return found[::-1]
                if self._may_be(job, tag, requests):
                    found.append(job["id"])
            if not page or not more:
                break
            after = f"&{self.NEXT}={quote(page[-1]['id'], safe='')}"
        return found[::-1]

    async def _list(self, query: str) -> tuple[list[dict[str, Any]], bool]:
        def read(page: Any) -> tuple[list[dict[str, Any]], bool]:
            jobs = [{**job, "id": _read_id(job)} for job in page["data"]]
            return jobs, bool(page.get("has_more"))

        return await self._call("GET", f"{self.PATH}?{query}", read)

    async def fetch(self, status: JobStatus, file: BinaryIO) -> None:
        """Write the results of a job into a file, except those no longer kept."""
        for path in status.results:
            try:
                async with self._open("GET", path) as response:
                    async for block in response.content.iter_chunked(BLOCK):
                        if file.tell() + len(block) > MAX_RESULTS:
                            what = f"the results of {status.id} are too large"
                            raise KaceError(what, fix="is the base URL right?")
                        file.write(block)
            except Absent:
                warning = "batch: %s no longer keeps the results of %s"
                log.warning(warning, self.remote.url, status.id)

    def read(self, line: bytes) -> Reply:
        """Return the reply in a result, or raise as a live call would.

        `Unfinished` is raised for what may be tried again.
        """
        try:
            status, body = self._read_result(json.loads(line))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
        ):
            raise Unfinished("unreadable result") from None
        data = json.dumps(body).encode()
        if status != 200:
            raise self._fault(Response(status, {}, data))
        try:
            reply = self.remote.read_reply(data, 0.0)
        except ModelError as error:
            raise Unfinished(error.message) from None
        return replace(reply, text=without_secrets(reply.text), batch=True)

    def _fault(self, response: Response) -> Exception:
        report = ErrorReport(response)
        parameter = report.unsupported(self.remote.OPTIONAL, frozenset())
        if parameter:
            self.remote.left_out |= {parameter}
            return Unfinished(f"'{parameter}' is not supported", rephrase=True)
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
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ):
            start = body[:200].decode("utf-8", "replace")
            what = f"unreadable reply of {self.remote.url}: {start}"
            raise Transient(one_line(what)) from None

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
                    what = f"{self.remote.url} has no batch API"
                    raise Absent(what, fix="leave out --batch")
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
    fix = "name an openai/ or anthropic/ model at one address, or leave out --batch"
    raise UsageError(f"'{model.name}' has no batch API", fix=fix)


class OpenAIJobs(Jobs):
    """OpenAI's Batch API, and that of compatible servers."""

    MOST_REQUESTS = 50_000
    MOST_BYTES = 200_000_000
    PATH = "/batches"
    NEXT = "after"
    TAGGED = True
    ENDPOINT = "/v1/chat/completions"
    # Why a job fails that may be sent again later.
    NO_ROOM = ("token_limit_exceeded", "request_limit_exceeded")

    def _entry(
        self, key: str, body: Mapping[str, object]
    ) -> Mapping[str, object]:
        return {
            "custom_id": key,
            "method": "POST",
            "url": self.ENDPOINT,
            "body": body,
        }

    async def submit(self, requests: Path, tag: str) -> str:
        """Upload the file, and create a job of it that carries the tag."""
        field = f"--{tag}\r\ncontent-disposition: form-data; name="
        head = (
            f'{field}"purpose"\r\n\r\nbatch\r\n'
            f'{field}"file"; filename="kace-{tag}.jsonl"\r\n'
            "content-type: application/jsonl\r\n\r\n"
        )
        data = _Upload(requests, head.encode(), f"\r\n--{tag}--\r\n".encode())
        headers = data.headers(f"multipart/form-data; boundary={tag}")
        file = await self._call(
            "POST", "/files", _read_id, data.blocks(), headers
        )
        job = {
            "input_file_id": file,
            "endpoint": self.ENDPOINT,
            "completion_window": "24h",
            "metadata": {"kace": tag},
        }
        headers = {"content-type": "application/json"}
        body = json.dumps(job).encode()
        return await self._call("POST", self.PATH, _read_id, body, headers)

    def _may_be(self, job: Any, tag: str, requests: int) -> bool:
        metadata = job.get("metadata")
        return isinstance(metadata, dict) and metadata.get("kace") == tag

    def _read_status(self, job: Any) -> JobStatus:
        state = job["status"]
        counts = job.get("request_counts") or {}
        answered = counts.get("completed") or 0
        output = job.get("output_file_id")
        # A completed job that has no file of its paid replies yet has not ended.
        ended = state in ("expired", "cancelled", "failed") or (
            state == "completed" and bool(output or not answered)
        )
        refused = state == "failed" and not output
        errors = (job.get("errors") or {}).get("data") or []
        outcome = state if ended else ""
        if refused:
            why = [
                str(each.get("message") or each.get("code"))
                for each in errors[:3]
            ]
            outcome = one_line("; ".join(why)) or state
        files = (output, job.get("error_file_id"))
        return JobStatus(
            id=_read_id(job),
            outcome=outcome,
            done=answered + (counts.get("failed") or 0),
            answered=answered,
            results=tuple(
                f"/files/{quote(file, safe='')}/content"
                for file in files
                if file
            ),
            refused=refused,
            no_room=refused
            and any(e.get("code") in self.NO_ROOM for e in errors),
            expires=_read_time(job.get("expires_at")),
        )

    def _read_result(self, line: Any) -> tuple[int, Any]:
        response = line.get("response")
        if response:
            return int(response["status_code"]), response["body"]
        error = line.get("error") or {}
        why = error.get("message") or error.get("code") or "no response"
        raise Unfinished(one_line(str(why)))


class AnthropicJobs(Jobs):
    """Anthropic's Message Batches.

    They carry no tag: a listed one is recognised by its size, then by its results.
    """

    MOST_REQUESTS = 100_000
    MOST_BYTES = 256_000_000
    PATH = "/v1/messages/batches"
    NEXT = "after_id"
    TAGGED = False
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

    def _entry(
        self, key: str, body: Mapping[str, object]
    ) -> Mapping[str, object]:
        return {"custom_id": key, "params": body}

    async def submit(self, requests: Path, tag: str) -> str:
        """Send all requests as one list."""
        data = _Upload(requests, b'{"requests":[', b"]}", between=b",")
        headers = data.headers("application/json")
        return await self._call(
            "POST", self.PATH, _read_id, data.blocks(), headers
        )

    def _may_be(self, job: Any, tag: str, requests: int) -> bool:
        counts = job.get("request_counts")
        if not isinstance(counts, dict):
            return False
        return sum(n for n in counts.values() if type(n) is int) == requests

    def _read_status(self, job: Any) -> JobStatus:
        counts = job.get("request_counts") or {}
        expires = job.get("expires_at")
        ended = job["processing_status"] == "ended"
        outcome = "completed"
        if counts.get("canceled"):
            outcome = "cancelled"
        elif counts.get("expired"):
            outcome = "expired"
        path = f"{self.PATH}/{quote(_read_id(job), safe='')}/results"
        at = datetime.fromisoformat(expires).timestamp() if expires else None
        return JobStatus(
            id=_read_id(job),
            outcome=outcome if ended else "",
            done=sum(counts.values()) - (counts.get("processing") or 0),
            answered=counts.get("succeeded") or 0,
            results=(path,) if ended and job.get("results_url") else (),
            expires=_read_time(at),
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


class _Upload:
    """A file of lines as a request body, between a head and a tail."""

    def __init__(
        self, path: Path, head: bytes, tail: bytes, between: bytes = b"\n"
    ) -> None:
        self._path = path
        self._head = head
        self._tail = tail
        self._between = between

    def headers(self, kind: str) -> dict[str, str]:
        """Return the headers of the body."""
        size = len(self._head) + self._path.stat().st_size + len(self._tail)
        return {"content-type": kind, "content-length": str(size)}

    async def blocks(self) -> AsyncIterator[bytes]:
        """Yield the body, its lines joined by `between`."""
        yield self._head
        left = self._path.stat().st_size
        with open_plain(self._path) as file:
            while block := file.read(BLOCK):
                left -= len(block)
                if left:
                    yield block.replace(b"\n", self._between)
                else:  # the last newline stays, or the length would be wrong
                    yield block[:-1].replace(b"\n", self._between) + b"\n"
        yield self._tail


def _read_id(job: Any) -> str:
    return str(job["id"])


def _read_time(value: object) -> float | None:
    """Return a time in seconds, if it is one that a calendar has."""
    if isinstance(value, int | float) and 0 < value < FAR:
        return float(value)
    return None


# The state on disk


Tag = Annotated[str, Field(pattern="^[0-9a-f]{24}$")]
OWN_FILE = re.compile(
    r"[0-9a-f]{24}\.(in|out|part)|\.[0-9a-f]{24}\.in\.[0-9a-f]+\.tmp"
)
FULL = 0.98  # of a job's bytes: there is a little around the requests


class BatchEvent(BaseModel):
    """A line of batches.jsonl. The last one of a tag holds."""

    tag: Tag  # names files
    event: Literal["gathered", "submitted", "dropped", "collected", "kept"]
    at: float = 0.0
    model: str = ""
    requests: int = 0
    since: str | None = None  # the newest job at the provider before this one
    job: str = ""  # the provider's id
    why: str = ""


@dataclass(slots=True, eq=False)
class RequestBatch:
    """Requests that are submitted together."""

    tag: str
    requests: int = 0
    size: int = 0  # bytes
    lines: list[bytes] = field(default_factory=list)  # until they are on disk
    job: str = ""
    since: str | None = None
    sure: bool = True  # whether `job` is its job; if not, the results decide
    status: JobStatus = field(default_factory=lambda: JobStatus(""))
    began: float = field(default_factory=time.time)
    uncertain: bool = False  # a killed process may have submitted it
    # Requests that have a result, and those whose result is not a reply.
    heads: array[int] = field(default_factory=lambda: array("Q"))
    failed: set[int] = field(default_factory=set)

    @property
    def ends(self) -> float:
        """When its provider gives it up."""
        return self.status.expires or self.began + DAY


class Spool:
    """The batches of one model in a run. A request is known by the head of its key."""

    def __init__(
        self, jobs: Jobs, calls: CallStore, size: int | None = None
    ) -> None:
        self._jobs = jobs
        self._calls = calls
        self._folder = inside(calls.folder.parent, "batches")
        self._log = LineLog(calls.folder.parent / "batches.jsonl")
        self.most = min(size or jobs.MOST_REQUESTS, jobs.MOST_REQUESTS)
        self._gathered: list[RequestBatch] = []  # not yet on disk
        self.open: list[RequestBatch] = []  # submitted, or about to be
        self.ended: list[RequestBatch] = []
        self.sent: dict[int, RequestBatch] = {}  # requests without a result
        # Where the result of a request is, or why it has none.
        self.results: dict[int, tuple[RequestBatch, int] | str] = {}
        self._resume()

    def requests_of(self, batch: RequestBatch) -> Path:
        """Return the file of a batch's requests."""
        return self._folder / f"{batch.tag}.in"

    def part_of(self, batch: RequestBatch) -> Path:
        """Return the file of a batch's results while they arrive."""
        return self._folder / f"{batch.tag}.part"

    def _results_of(self, batch: RequestBatch) -> Path:
        return self._folder / f"{batch.tag}.out"

    def batches(self) -> Iterator[RequestBatch]:
        """Yield the batches that have a job or had one."""
        yield from self.open
        yield from self.ended

    def note(self, batch: RequestBatch, event: str, **more: object) -> None:
        """Log an event of a batch, durably."""
        at = round(time.time(), 3)
        line = BatchEvent.model_validate(
            {"tag": batch.tag, "event": event, "at": at, **more}
        )
        self._log.append(line.model_dump_json(exclude_defaults=True))
        self._log.sync()

    def gather(self, head: int, line: bytes) -> None:
        """Add a request to the batch that is being gathered."""
        batch = self._gathered[-1] if self._gathered else None
        full = FULL * self._jobs.MOST_BYTES - len(line)
        if batch is None or batch.requests >= self.most or batch.size > full:
            batch = RequestBatch(secrets.token_hex(12))
            self._gathered.append(batch)
        batch.lines.append(line)
        batch.requests += 1
        batch.size += len(line)
        self.sent[head] = batch

    def close_batches(self) -> list[RequestBatch]:
        """Write what was gathered, and return its batches, ready for submission."""
        batches = self._gathered
        self._gathered = []
        for batch in batches:
            write_atomic(self.requests_of(batch), b"".join(batch.lines))
            batch.lines = []
            self.open.append(batch)
        return batches

    def drop(self, batch: RequestBatch, why: str) -> list[int]:
        """Give up a batch that was not submitted or was refused; free its requests."""
        freed = []
        for head in self.heads_of(batch):
            if self.sent.get(head) is batch:
                freed.append(head)
        for head in freed:
            del self.sent[head]
        self.note(batch, "dropped", why=why)
        self._forget(batch)
        return freed

    def owns_results(self, batch: RequestBatch) -> bool:
        """Whether the results that arrived are those of a batch."""
        for _, _, line in whole_lines(self.part_of(batch)):
            head = head_of_result(line)
            if head is not None:
                return self.sent.get(head) is batch
        return False

    def collect(self, batch: RequestBatch, outcome: str) -> list[int]:
        """Take the results that arrived; return the requests without one."""
        self.part_of(batch).replace(self._results_of(batch))
        self.note(batch, "collected", job=batch.job, why=outcome)
        for _, offset, line in whole_lines(self._results_of(batch)):
            head = head_of_result(line)
            if head is not None and self.sent.get(head) is batch:
                self._place(batch, head, offset)
        why = f"its batch is {outcome}"
        if outcome == "completed":
            why = "its batch has no result for it"
        missed = []
        for head in self.heads_of(batch):
            if self.sent.pop(head, None) and head not in self.results:
                self.results[head] = why
                missed.append(head)
        self.requests_of(batch).unlink()
        self.open.remove(batch)
        self.ended.append(batch)
        return missed

    def take(self, head: int) -> Reply:
        """Return the reply in a request's result, or raise what the result means."""
        found = self.results.pop(head)
        if isinstance(found, str):
            raise Unfinished(found)
        batch, offset = found
        try:
            with open_plain(self._results_of(batch)) as file:
                file.seek(offset)
                return self._jobs.read(file.readline())
        except BaseException:
            batch.failed.add(head)
            raise

    def heads_of(self, batch: RequestBatch) -> Iterator[int]:
        """Yield the requests of a batch."""
        path = self.requests_of(batch)
        try:
            for _, _, line in whole_lines(path):
                yield _head_of_request(line)
        except FileNotFoundError:
            fix = "put it back, or remove batches.jsonl: its requests are paid again"
            what = "missing, and its batch is under way"
            raise Unreadable.at(path, what, fix) from None

    def close(self) -> None:
        """Delete results whose replies are all kept calls."""
        for batch in self.ended:
            if all(
                head in self._calls or head in batch.failed
                for head in batch.heads
            ):
                self.note(batch, "kept")
                self._forget(batch)
        self.ended = []
        self._log.close()

    def _resume(self) -> None:
        """Continue from what the log holds."""
        last: dict[str, BatchEvent] = {}
        first: dict[str, BatchEvent] = {}
        for _, _, line in whole_lines(self._log.path):
            with suppress(ValidationError):
                event = BatchEvent.model_validate_json(line)
                last[event.tag] = event
                if event.event == "gathered":
                    first[event.tag] = event
        self._clean(last)
        for tag, begin in first.items():
            end = last[tag]
            over = end.event in ("dropped", "kept")
            if over or begin.model != self._jobs.remote.identity:
                continue
            batch = RequestBatch(
                tag, begin.requests, job=end.job, since=begin.since
            )
            batch.began = end.at
            if end.event == "collected":
                self._recall(batch)
            else:
                batch.uncertain = not batch.job
                self.open.append(batch)
                for head in self.heads_of(batch):
                    self.sent[head] = batch

    def _clean(self, last: Mapping[str, BatchEvent]) -> None:
        """Delete files of batches that are over, or were killed before submission."""
        for path in self._folder.glob("*.*"):
            event = last.get(path.stem)
            over = event is None or event.event in ("dropped", "kept")
            if over and OWN_FILE.fullmatch(path.name):
                path.unlink()

    def _recall(self, batch: RequestBatch) -> None:
        """Find the replies of an earlier process that are not kept calls yet.

        What failed there is requested again.
        """
        self.requests_of(batch).unlink(missing_ok=True)
        for _, offset, line in whole_lines(self._results_of(batch)):
            head = head_of_result(line)
            if head is not None and head not in self._calls:
                with suppress(Exception):
                    self._jobs.read(line)
                    self._place(batch, head, offset)
        self.ended.append(batch)

    def _place(self, batch: RequestBatch, head: int, offset: int) -> None:
        batch.heads.append(head)
        self.results[head] = (batch, offset)

    def _forget(self, batch: RequestBatch) -> None:
        for path in (self.requests_of, self._results_of, self.part_of):
            path(batch).unlink(missing_ok=True)
        if batch in self.open:
            self.open.remove(batch)


def _head_of_request(line: bytes) -> int:
    return head_of(line[len(HEAD) : len(HEAD) + KEY_LENGTH].decode("ascii"))


def head_of_result(line: bytes) -> int | None:
    """Return the head of a result's key, `None` if the line is damaged or foreign."""
    try:
        return head_of(json.loads(line)["custom_id"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
