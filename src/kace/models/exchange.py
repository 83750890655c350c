"""A model whose replies a person, or any program, writes: requests are files in a folder, and so are the replies."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from pathlib import Path

from kace.errors import DataError, Outstanding, one_line
from kace.files import read_plain, write_atomic
from kace.models.base import Finish, Reply, Request, Usage

log = logging.getLogger(__name__)

SETTLED = 0.5  # seconds for which a reply must not have changed: whoever writes it may write slowly
MAX_REPLY = 8_000_000  # bytes
CHARS_PER_TOKEN = 4
SLUG_LENGTH = 60


class Exchange:
    """A folder of requests and replies. Without `wait`, a reply that is not there raises `Outstanding` at once."""

    def __init__(self, folder: Path, *, wait: bool = True, poll: float = 1.0) -> None:
        self.folder = folder
        self.wait = wait
        self.poll = poll
        self.name = f"exchange/{folder}"
        self.identity = "exchange"  # of every folder: who replied is not known, and a folder may be moved

    async def complete(self, request: Request) -> Reply:
        """The reply that somebody has written, or will write, to this request."""
        name = request_name(request)
        asked, answer = (
            self.folder / f"{name}.{kind}.md" for kind in ("request", "reply")
        )
        page = _page(request, answer.name)
        with suppress(
            OSError
        ):  # one that is there and right keeps its date, which shows since when it waits
            page = "" if read_plain(asked) == page.encode() else page
        if page:
            write_atomic(asked, page)
        said = await _settled(answer)
        if said is None:
            if not self.wait:
                raise Outstanding((str(asked),))
            log.warning("waiting for the reply to %s", asked)
        while said is None:
            await asyncio.sleep(self.poll)
            said = await _settled(answer)
        prompt = sum(len(message.content) for message in request.messages)
        usage = Usage(
            input=prompt // CHARS_PER_TOKEN, output=len(said) // CHARS_PER_TOKEN
        )
        return Reply(said, Finish.STOP, usage, 0.0)

    async def aclose(self) -> None:
        """Nothing is held."""


def request_name(request: Request) -> str:
    """The name that a request and its reply share: readable, and different for whatever differs in the request."""
    slug = re.sub(r"[^a-z0-9]+", "-", request.attempt.problem.lower()).strip("-")[
        :SLUG_LENGTH
    ]
    return (
        f"{slug or 'request'}-{request.attempt.index}-{request.digest('exchange')[:8]}"
    )


def _page(request: Request, reply: str) -> str:
    """The request as a page to read. The ruling lines carry its hash, so that no text inside can imitate them."""
    mark = request.digest("exchange")[:8]
    limit = f"{request.sampling.max_tokens:,} tokens at most"
    parts = [
        f"Write the reply, and nothing else, to the file {reply} in this folder ({limit})."
    ]
    parts += [
        f"===== {mark} {message.role.value} =====\n\n{message.content}"
        for message in request.messages
    ]
    page = "\n\n".join([*parts, f"===== {mark} end ====="]) + "\n"
    return page.encode("utf-8", "replace").decode()


async def _settled(path: Path) -> str | None:
    """What a file says, once it says something and no longer changes; `None` until then."""
    try:
        before = None
        while (stat := path.lstat()).st_size and (
            now := (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        ) != before:
            before = now
            await asyncio.sleep(SETTLED)
        said = read_plain(path, MAX_REPLY).decode("utf-8-sig") if stat.st_size else ""
        return said if said.strip() else None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            error.strerror or str(error)
            if isinstance(error, OSError)
            else f"not UTF-8 text (byte {error.start})"
        )
        fix = "write the reply there as plain UTF-8 text"
        raise DataError(one_line(f"{path}: {reason.lower()}"), fix=fix) from None
