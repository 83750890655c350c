"""The inbox: teacher requests in an exchange folder, and a form to reply to them.

Names come from addresses, so they only ever name plain files of the opened folder; no
link is followed. A reply is written whole or not at all, and never over another one.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kace.errors import DataError, KaceError
from kace.files import read_plain, write_atomic
from kace.ladder.prompt import TAGS
from kace.report.render import NotHere, Page, PageRequest, slice_of

REQUEST = ".request.md"
REPLY = ".reply.md"
MAX_REQUEST = 8_000_000  # bytes that are read
MAX_REPLY = 1_000_000  # bytes that are written; learners read no more
NAME = re.compile(r"[^./\\][^/\\]{0,239}")
PER_PAGE = 50
REFRESH = 5.0
WRITING = threading.Lock()
"""Held while a reply is looked for and written."""
BLOCK = re.compile(r"^<(\w+)>\n(.*?)^</\1>", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^([a-z]+:).*\n", re.MULTILINE)
CARD_ID = re.compile(r"^<card>\n(?:id: |\[)([A-Z0-9_]{1,80})", re.MULTILINE)
ABOUT = re.compile(
    r"^(?:Domain|Difficulty): (\w{1,80})|<problem>\n(.{1,90})", re.MULTILINE
)
QUOTE = re.compile(
    rf"^<({'|'.join(TAGS)})>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL
)
"""Text from outside. It cannot hold a tag of ours: see `ladder.fence`."""


# The folder


class RequestFile(NamedTuple):
    """A request by its name, and when it and its reply were written, since 1970."""

    name: str
    asked: float
    answered: float | None  # `None` while the reply is missing or blank


class Inbox:
    """An exchange folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[RequestFile]:
        """List the requests: waiting ones first, then the newest replies."""
        found = []
        for path in self.folder.glob(f"*{REQUEST}"):
            with suppress(NotHere):
                found.append(self.entry(path.name.removesuffix(REQUEST)))
        return sorted(
            found, key=lambda e: (-(e.answered or math.inf), e.asked, e.name)
        )

    def waiting(self) -> list[RequestFile]:
        """List the requests without a reply, oldest first."""
        return [entry for entry in self.entries() if not entry.answered]

    def entry(self, name: str) -> RequestFile:
        """Return a request; `NotHere` if there is none of that name."""
        path = self.folder / f"{name}{REQUEST}"
        if not NAME.fullmatch(name) or not _is_plain(path):
            where = self.folder.name
            raise NotHere(f"there is no request '{name[:80]}' in {where}")
        reply = self.folder / f"{name}{REPLY}"
        answered = None
        if _is_plain(reply) and self.reply(name):
            answered = reply.stat().st_mtime
        return RequestFile(name, path.stat().st_mtime, answered)

    def read(self, name: str) -> str:
        """Return the text of a request; `NotHere` if there is none of that name."""
        self.entry(name)
        path = self.folder / f"{name}{REQUEST}"
        return read_plain(path, MAX_REQUEST).decode("utf-8", "replace")

    def reply(self, name: str) -> str:
        """Return the reply to a request; empty if there is none."""
        try:
            data = read_plain(self.folder / f"{name}{REPLY}", MAX_REQUEST)
        except FileNotFoundError:
            return ""
        text = data.decode("utf-8-sig", "replace")
        return text if text.strip() else ""

    def write(self, name: str, text: str) -> None:
        """Write a reply durably, never over another one."""
        self.entry(name)
        if not 0 < len(text.strip().encode()) <= MAX_REPLY:
            what = f"the reply is empty or larger than {MAX_REPLY:,} bytes"
            raise DataError(what, fix="write one of another size")
        with WRITING:
            if self.reply(name) not in ("", text):
                what = f"{name}{REPLY} holds another reply by now"
                raise DataError(what, fix="remove that file to write your own")
            write_atomic(self.folder / f"{name}{REPLY}", text)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


# Requests and the form of their replies


class Turn(NamedTuple):
    """One message of a request: tags, empty for its own words, with their texts."""

    role: str
    parts: list[tuple[str, str]]


class TeacherRequest(NamedTuple):
    """A request taken apart for reading. What it does not hold is empty."""

    opening: str  # what is before the messages; all of a text in another form
    turns: list[Turn]  # the messages but those of the system
    about_replies: str  # what replies are like, of every request
    task: str  # what this request needs
    title: str
    about: str  # the domain and difficulty, or the beginning of its problem
    again: bool  # whether it is about a reply of no use as it was
    whole: str  # all messages, to copy
    draft: str  # what a reply begins as


def parse_request(name: str, text: str) -> TeacherRequest:
    """Take a request apart."""
    # The lines between turns carry the hash that the name ends with: no text inside
    # can imitate them.
    mark = rf"^===== {re.escape(name[-8:])} (system|user|assistant|end) =====$"
    opening, *pieces = re.split(mark, text, flags=re.MULTILINE)
    rules = ""
    messages = []
    turns = []
    for role, piece in zip(pieces[::2], pieces[1::2], strict=True):
        words = piece.strip("\n")
        messages.append(words)
        if role == "system":
            rules = words
        elif role != "end":
            turns.append(Turn(role, _parts(words)))
    first = messages[1] if turns else ""
    about_replies, _, task = rules.partition("## This request")
    heading, _, task = task.partition("\n")
    title = heading.rpartition(":")[2].strip()[:80]
    found = [one or two for one, two in ABOUT.findall(first)]
    again = len(turns) > 1
    return TeacherRequest(
        opening=opening.strip(),
        turns=turns,
        about_replies=about_replies.strip(),
        task=task.strip(),
        title=title.capitalize() or "Request",
        about=", ".join(found[:2]),
        again=again,
        whole="\n\n".join(messages).strip(),
        draft="" if again else _draft(task + rules, CARD_ID.findall(first)),
    )


def _draft(rules: str, cards: Sequence[str]) -> str:
    """Return the block that the rules show, to fill in, or one for each card."""
    shown = BLOCK.search(rules)
    if shown is None:
        return ""
    tag = shown[1]
    lines = "\n".join(FIELD.findall(shown[2]))
    found = []
    for card in cards if tag != "card" and cards else [""]:
        named = lines.replace("id:", f"id: {card}", 1)
        found.append(f"<{tag}>\n{named}\n</{tag}>")
    return "\n\n".join(found)


def _parts(text: str) -> list[tuple[str, str]]:
    """Return the words and the quotes of a message, in order."""
    words, *quotes = QUOTE.split(text)
    found = [("", words)]
    for tag, quote, words in zip(*[iter(quotes)] * 3, strict=True):
        found += [(tag, quote), ("", words)]
    return [(tag, words.strip("\n")) for tag, words in found if words.strip()]


# Pages


def inbox_page(request: PageRequest) -> Page:
    """Show every request of a folder, those that wait first."""
    name = request.parts["inbox"]
    inbox = Inbox(request.workspace.item("inbox", name).path)
    entries = inbox.entries()
    part = slice_of(request, entries, PER_PAGE)
    requests = []
    for entry in part.rows:
        asked = parse_request(entry.name, inbox.read(entry.name))
        requests.append((entry, asked))
    values = {
        "item": name,
        "waiting": inbox.waiting(),
        "part": part,
        "requests": requests,
        "to": partial(request.link, "inbox", name),
    }
    return Page("inbox.html", name, values, refresh=REFRESH)


def request_page(request: PageRequest) -> Page:
    """Show one request with its reply, or the form for one.

    A reply that was sent is written. If that fails, it stays in the form.
    """
    item, name = request.parts.values()
    inbox = Inbox(request.workspace.item("inbox", item).path)
    asked = parse_request(name, inbox.read(name))
    status = 200
    sent = ""
    refusal = ""
    if request.reply is not None:
        sent = request.reply.replace("\r\n", "\n").replace("\r", "\n")
        status = 303
        try:
            inbox.write(name, f"{sent.rstrip()}\n")
        except (OSError, KaceError) as error:
            status = 422
            refusal = f"{error}."
    values = {
        "item": item,
        "entry": inbox.entry(name),
        "asked": asked,
        "reply": inbox.reply(name),
        "limit": MAX_REPLY,
        "sent": sent,
        "refusal": refusal,
    }
    again = ", second round" if asked.again else ""
    about = f": {asked.about}" if asked.about else ""
    title = f"{asked.title}{again}{about}"
    return Page(
        "inbox_request.html", title, values, ("inbox", item), status=status
    )


ROUTES = {
    "/inbox/{inbox}": inbox_page,
    "/inbox/{inbox}/{request}": request_page,
}
