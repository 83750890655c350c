"""A model whose replies somebody else writes: requests are files in a folder, and so are the replies.

For a person, or any program that reads and writes files, in the place of an API. NAME.request.md says what is asked
and which file the reply belongs in. Nothing in the folder is ever deleted, and the name follows from the request, so
that a later run finds the replies that are there.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from kace.errors import DataError, Outstanding
from kace.io import write_atomic
from kace.models.base import Finish, Reply, Request, Usage
from kace.redact import one_line

log = logging.getLogger(__name__)

SETTLED = 0.5
"""Seconds for which a reply must not have changed: whoever writes it may write slowly."""
MAX_REPLY = 8_000_000
"""Bytes of a reply."""
CHARS_PER_TOKEN = 4
SLUG_LENGTH = 60


class Exchange:
    """A folder of requests and replies. Without `wait`, a reply that is not there raises `Outstanding` at once."""

    def __init__(self, folder: Path, *, wait: bool = True, poll: float = 1.0) -> None:
        self.folder = folder
        self.wait = wait
        self.poll = poll

    @property
    def name(self) -> str:
        """`exchange/` and the folder."""
        return f"exchange/{self.folder}"

    @property
    def identity(self) -> str:
        """The same for every folder: who replied is not known, and a folder may be moved."""
        return "exchange"

    async def complete(self, request: Request) -> Reply:
        """The reply that somebody has written, or will write, to this request."""
        name = request_name(request)
        asked = self.folder / f"{name}.request.md"
        answer = self.folder / f"{name}.reply.md"
        _put(asked, _page(request, answer.name))
        said = await _settled(answer)
        if said is None:
            if not self.wait:
                raise Outstanding((str(asked),))
            log.warning("waiting for the reply to %s", asked)
        while said is None:
            await asyncio.sleep(self.poll)
            said = await _settled(answer)
        prompt = sum(len(message.content) for message in request.messages)
        usage = Usage(input=prompt // CHARS_PER_TOKEN, output=len(said) // CHARS_PER_TOKEN)
        return Reply(said, Finish.STOP, usage, 0.0)

    async def aclose(self) -> None:
        """Nothing is held."""


def request_name(request: Request) -> str:
    """The name that a request and its reply share: readable, and different for whatever differs in the request."""
    slug = re.sub(r"[^a-z0-9]+", "-", request.attempt.problem.lower()).strip("-")[:SLUG_LENGTH]
    return f"{slug or 'request'}-{request.attempt.index}-{_mark(request)}"


def _mark(request: Request) -> str:
    return request.digest("exchange")[:8]


def _page(request: Request, reply: str) -> str:
    """The request as a page to read. The ruling lines carry its hash, so that no text inside can imitate them."""
    mark = _mark(request)
    length = f"{request.sampling.max_tokens:,} tokens at most"
    parts = [f"Write the reply, and nothing else, to the file {reply} in this folder ({length})."]
    parts += [f"===== {mark} {message.role.value} =====\n\n{message.content}" for message in request.messages]
    page = "\n\n".join([*parts, f"===== {mark} end ====="]) + "\n"
    return page.encode("utf-8", "replace").decode()


def _put(path: Path, text: str) -> None:
    """Write a request once: a file that is there and right keeps its date, which shows since when it waits."""
    try:
        there = path.read_bytes() == text.encode()
    except OSError:
        there = False
    if not there:
        write_atomic(path, text)


async def _settled(path: Path) -> str | None:
    """What a file says, once it says something and no longer changes; `None` until then."""
    before = _state(path)
    if before is None:
        return None
    await asyncio.sleep(SETTLED)
    while (now := _state(path)) != before:
        before = now
        await asyncio.sleep(SETTLED)
    said = _content(path)
    return said if said and said.strip() else None


def _state(path: Path) -> tuple[int, int, int] | None:
    """What changes with the content of a file; `None` where there is none."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat.st_size else None


def _content(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_REPLY + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    if len(raw) > MAX_REPLY:
        raise _unreadable(path, f"larger than {MAX_REPLY // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"not UTF-8 text (byte {error.start})") from None


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError(one_line(f"{path}: {reason.lower()}"), fix="write the reply there as plain UTF-8 text")
