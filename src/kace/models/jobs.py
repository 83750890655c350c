"""Jobs of a batch API: a file of requests goes in, results come out in any order, within a day.

On disk a job's requests are lines that begin with their `custom_id`, whichever API they go to.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from kace.errors import KaceError, one_line, without_secrets
from kace.models.base import ModelError, RateLimited, Reply, Request, Transient
from kace.models.cache import head_of
from kace.models.http import MAX_BODY, ErrorReport, HttpClient, Lost, Remote, Response

log = logging.getLogger(__name__)

HEAD = '{"custom_id":"'  # how a line of requests begins: its key follows, and is found without parsing
PIECE = 1 << 18
# the first for all of a call, a large upload too
CALL_SECONDS = 3600.0
READ_SECONDS = 120.0
# of the list of jobs: how many are looked through, and how many jobs one holds
PAGES = 200
PAGE = 100
MOST_RESULTS = 32_000_000_000  # bytes that a job's results may have
T = TypeVar("T")


class Absent(KaceError):
    """A 404. Of all that is asked for, only jobs and their results may be missing from a batch API."""


class Unfinished(Transient):
    """A request that its job did not answer, for which nothing is charged. `anew`: it can be put in another way."""

    billed = False

    def __init__(self, message: str, anew: bool = False) -> None:
        super().__init__(message)
        self.anew = anew


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as its provider tells it."""

    id: str
    outcome: str = ""  # why it ended: completed, expired, cancelled, or what is wrong with all of it; else nothing
    done: int = 0  # of its requests, those that are through
    answered: int = 0  # and of those, the ones with a reply
    results: tuple[str, ...] = ()  # the paths they are fetched from
    refused: bool = False  # it ended without having begun
    no_room: bool = False  # for now: other jobs hold all that may be enqueued
    expires: float | None = None  # when the provider gives it up


class Jobs(ABC):
    """The jobs of one model. Nothing here tries again: whoever asks does."""

    MOST_REQUESTS: int
    MOST_BYTES: int
    PATH: str  # where jobs are made, listed and looked up
    NEXT: str  # what asks for the next page of the list
    TAGGED: bool  # whether a listed job says which batch it is

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self._url = remote.url
        headers = {**remote.headers, "accept-encoding": "identity"}
        self._client = HttpClient(remote.url, headers, read_seconds=READ_SECONDS)

    @abstractmethod
    def _entry(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """A request as a job holds it, its key first."""

    @abstractmethod
    async def submit(self, requests: Path, tag: str) -> str:
        """Make a job and return its id. After a `Transient` nobody knows whether it was made: see `find`."""

    @abstractmethod
    def _status(self, found: Any) -> JobStatus: ...

    @abstractmethod
    def _may_be(self, found: Any, tag: str, requests: int) -> bool:
        """Whether a listed job is the one of a tag, as far as a list can tell."""

    @abstractmethod
    def _result(self, line: Any) -> tuple[int, Any]:
        """The status and the body of a result."""

    def line(self, key: str, request: Request) -> bytes:
        """A request as a line of a job's file."""
        entry = self._entry(key, self.remote.build_body(request, self.remote.left_out))
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"

    async def status(self, job: str) -> JobStatus:
        """How a job goes."""
        try:
            status = await self._call("GET", f"{self.PATH}/{job}", self._status)
            self.remote.answered |= status.answered > 0
            return status
        except Absent:
            said = f"{self._url} knows no batch '{job}' under this key: another key or project submitted it"
            fix = f"set {self.remote.KEY} to that one; or remove batches.jsonl, and its requests are paid again"
            raise KaceError(said, fix=fix) from None

    async def newest(self) -> str | None:
        """The job made last, by whomever."""
        return next((each["id"] for each in (await self._list("limit=1"))[0]), None)

    async def find(self, tag: str, requests: int, since: str | None) -> list[str]:
        """The jobs that may be the one of a tag, of those made after `since`, the oldest first."""
        found = list[str]()
        after = ""
        for _ in range(PAGES):
            page, more = await self._list(f"limit={PAGE}{after}")
            for each in page:
                if each["id"] == since:
                    return found[::-1]
                found += [each["id"]] if self._may_be(each, tag, requests) else []
            if not (page and more):
                break
            after = f"&{self.NEXT}={page[-1]['id']}"
        return found[::-1]

    async def _list(self, query: str) -> tuple[list[dict[str, Any]], bool]:
        def read(page: Any) -> tuple[list[dict[str, Any]], bool]:
            return [{**each, "id": id_of(each)} for each in page["data"]], bool(
                page.get("has_more")
            )

        return await self._call("GET", f"{self.PATH}?{query}", read)

    async def fetch(self, status: JobStatus, file: BinaryIO) -> None:
        """Write the results of a job into a file; results that the provider keeps no longer are left out."""
        for path in status.results:
            try:
                async with self._stream("GET", path) as pieces:
                    async for piece in pieces:
                        if file.tell() + len(piece) > MOST_RESULTS:
                            raise KaceError(
                                f"the results of {status.id} have no end",
                                fix="is the base URL right?",
                            )
                        file.write(piece)
            except Absent:
                log.warning(
                    "batch: %s keeps the results of %s no longer", self._url, status.id
                )

    def read(self, line: bytes) -> Reply:
        """The reply of a result. Raises what a live call would, and `Unfinished` for what may be tried again."""
        try:
            status, body = self._result(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unfinished("unreadable result") from None
        text = json.dumps(body)
        if status != 200:
            raise self._fault(status, text)
        try:
            reply = self.remote.read_reply(text.encode(), 0.0)
        except ModelError as fault:
            raise Unfinished(fault.message) from None
        return replace(reply, text=without_secrets(reply.text), batch=True)

    def _fault(self, status: int, text: str) -> Exception:
        report = ErrorReport(Response(status, {}, text.encode()))
        if parameter := report.unsupported(self.remote.OPTIONAL, frozenset()):
            self.remote.left_out |= {parameter}
            return Unfinished(f"'{parameter}' is not taken", anew=True)
        fault = self.remote.error_of(report)
        if isinstance(fault, RateLimited | Transient):
            return Unfinished(fault.message)
        if isinstance(fault, ModelError):
            fault.billed = False
        return fault

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        content: Any = None,
        **headers: str,
    ) -> T:
        """What is read from a JSON reply."""
        body = bytearray()
        async with self._stream(method, path, content, **headers) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_BODY:
                    raise Transient(
                        f"{self._url} says more than {MAX_BODY // 1_000_000} MB"
                    )
        try:
            return read(json.loads(body))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise Transient(
                f"unreadable words from {self._url}: {one_line(body[:200].decode('utf-8', 'replace'))}"
            ) from None

    @asynccontextmanager
    async def _stream(
        self, method: str, path: str, content: Any = None, **headers: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A response, piece by piece. What goes wrong on the way has a name; a 404 is `Absent`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        sending = self._client.open(method, path, data=content, headers=more)
        try:
            async with asyncio.timeout(CALL_SECONDS), sending as response:
                self.remote.reached = True
                if response.status == 404:
                    raise Absent(
                        f"{self._url} has no batch API", fix="leave out --batch"
                    )
                if response.status >= 300:
                    body = bytearray()
                    async for piece in response.content.iter_chunked(PIECE):
                        body += piece[: 10_000 - len(body)]
                    failed = Response(response.status, response.headers, bytes(body))
                    raise self.remote.error_of(ErrorReport(failed))
                yield response.content.iter_chunked(PIECE)
        except Lost as error:
            raise self.remote.connection_error(error) from None
        except TimeoutError as error:
            late = Lost(str(error) or "no answer in time", sent=True)
            raise self.remote.connection_error(late) from None


def id_of(found: Any) -> str:
    """What a provider calls a thing it has made."""
    return str(found["id"])


def head_of_result(line: bytes) -> int | None:
    """Whose result a line is; nothing where it is damaged, or not one of ours."""
    try:
        return head_of(json.loads(line)["custom_id"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
