"""A model whose replies are files: requests and replies lie in a folder.

A person, or any program, writes the replies.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from kace.errors import DataError, Outstanding, one_line
from kace.files import read_plain, write_atomic
from kace.models.base import Finish, Reply, Request, Usage

log = logging.getLogger(__name__)

SETTLED = (
    0.5  # seconds without a change, after which a reply counts as complete
)
POLL = 1.0  # seconds between two looks for a reply
MAX_REPLY = 8_000_000  # bytes
CHARS_PER_TOKEN = 4
SLUG_LENGTH = 60


class Exchange:
    """A folder of requests and replies.

    Without `wait`, a missing reply raises `Outstanding`.
    """

    def __init__(self, folder: Path, *, wait: bool = True) -> None:
        self.folder = folder
        self.wait = wait
        self.name = f"exchange/{folder}"
        self.identity = "exchange"  # of every folder: one may be moved

    async def complete(self, request: Request) -> Reply:
        """Write the request, and return the reply when it is there."""
        name = request_name(request)
        question = self.folder / f"{name}.request.md"
        answer = self.folder / f"{name}.reply.md"
        if not question.exists():  # else it keeps its date
            write_atomic(question, _page(request, answer.name))
        text = await _read_settled(answer)
        if not text:
            if not self.wait:
                raise Outstanding((str(question),))
            log.warning(
                "waiting for the reply to %s; answer there, or in a browser: "
                "kace view %s",
                question,
                self.folder,
            )
        while not text:
            await asyncio.sleep(POLL)
            text = await _read_settled(answer)
        prompt = sum(len(message.content) for message in request.messages)
        output = len(text) // CHARS_PER_TOKEN
        usage = Usage(prompt // CHARS_PER_TOKEN, output=output)
        return Reply(text, Finish.STOP, usage, 0.0)

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


def request_name(request: Request) -> str:
    """Return the readable name that a request and its reply share."""
    slug = re.sub(r"[^a-z0-9]+", "-", request.attempt.problem.lower())
    slug = slug.strip("-")[:SLUG_LENGTH] or "request"
    return f"{slug}-{request.attempt.index}-{request.digest('exchange')[:8]}"


def _page(request: Request, reply: str) -> str:
    """Return the request as a page.

    The ruling lines carry its hash, so that no text inside can imitate them.
    """
    mark = request.digest("exchange")[:8]
    page = (
        f"Write the reply, and nothing else, to the file {reply} in this folder "
        f"({request.sampling.max_tokens:,} tokens at most).\n\n"
    )
    for message in request.messages:
        page += f"===== {mark} {message.role.value} =====\n\n"
        page += f"{message.content}\n\n"
    page += f"===== {mark} end =====\n"
    return page.encode("utf-8", "replace").decode()


async def _read_settled(path: Path) -> str:
    """Return the text of a file that no longer changes, empty until it has one."""
    before = b""
    while (now := _read(path)) != before:
        await asyncio.sleep(SETTLED)
        before = now
    try:
        text = now.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            one_line(f"{path}: not UTF-8 text (byte {error.start})"),
            fix="write the reply there as plain UTF-8 text",
        ) from None
    return text if text.strip() else ""


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, MAX_REPLY)
    except FileNotFoundError:
        return b""
