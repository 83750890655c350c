"""The inbox: teacher requests in an exchange folder, and a form to reply to them.

Names come from addresses, so they only ever name plain files of the opened folder; no
link is followed. A reply is written whole or not at all, and never over another one.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kace.errors import DataError, KaceError
from kace.files import read_plain, write_atomic
from kace.ladder.prompt import TAGS
from kace.report.render import HOME, Crumb, NotHere, Page, PageRequest, slice_of

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
        waiting: list[RequestFile] = []
        answered: list[RequestFile] = []
        for path in self.folder.glob(f"*{REQUEST}"):
            if _is_plain(path):
                entry = self._entry(path.name.removesuffix(REQUEST))
                (answered if entry.answered else waiting).append(entry)
        waiting.sort(key=lambda entry: (entry.asked, entry.name))
        answered.sort(key=lambda entry: -(entry.answered or 0))
        return waiting + answered

    def read(self, name: str) -> tuple[RequestFile, str]:
        """Return a request and its text; `NotHere` if there is none of that name."""
        path = self.folder / f"{name}{REQUEST}"
        if not NAME.fullmatch(name) or not _is_plain(path):
            where = self.folder.name
            raise NotHere(f"there is no request '{name[:80]}' in {where}")
        text = read_plain(path, MAX_REQUEST).decode("utf-8", "replace")
        return self._entry(name), text

    def reply(self, name: str) -> str:
        """Return the reply to a request; empty if there is none."""
        path = self.folder / f"{name}{REPLY}"
        if not os.path.lexists(path):
            return ""
        text = read_plain(path, MAX_REQUEST).decode("utf-8-sig", "replace")
        return text if text.strip() else ""

    def write(self, name: str, text: str) -> None:
        """Write a reply durably, never over another one."""
        self.read(name)
        if not 0 < len(text.strip().encode()) <= MAX_REPLY:
            what = f"the reply is empty or larger than {MAX_REPLY:,} bytes"
            raise DataError(what, fix="write one of another size")
        with WRITING:
            if self.reply(name) not in ("", text):
                what = f"{name}{REPLY} holds another reply by now"
                raise DataError(what, fix="remove that file to write your own")
            write_atomic(self.folder / f"{name}{REPLY}", text)

    def _entry(self, name: str) -> RequestFile:
        asked = os.lstat(self.folder / f"{name}{REQUEST}").st_mtime
        path = self.folder / f"{name}{REPLY}"
        answered = None
        if _is_plain(path) and self.reply(name):
            answered = path.stat().st_mtime
        return RequestFile(name, asked, answered)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


# Requests and the form of their replies


class Turn(NamedTuple):
    """One message of a request: tags, empty for its own words, with their texts."""

    role: str
    parts: list[tuple[str, str]]


class TeacherRequest(NamedTuple):
    """A request taken apart for reading. What it does not hold is empty."""

    name: str
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
    messages = [piece.strip("\n") for piece in pieces[1::2]]
    rules = ""
    turns = []
    for role, words in zip(pieces[::2], messages, strict=True):
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
        name,
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
    found = []
    end = 0
    for quote in QUOTE.finditer(text):
        found.append(("", text[end : quote.start()]))
        found.append((quote[1], quote[2]))
        end = quote.end()
    found.append(("", text[end:]))
    return [(tag, words.strip("\n")) for tag, words in found if words.strip()]


# Pages


def inbox_page(request: PageRequest) -> Page:
    """Show every request of a folder, those that wait first."""
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    entries = inbox.entries()
    part = slice_of(request, entries, PER_PAGE)
    requests = []
    for entry in part.rows:
        _, text = inbox.read(entry.name)
        requests.append((entry, parse_request(entry.name, text)))
    values = {
        "item": item.name,
        "waiting": [entry for entry in entries if entry.answered is None],
        "part": part,
        "requests": requests,
        "to": partial(request.link, "inbox", item.name),
    }
    return Page("inbox.html", item.name, values, refresh=REFRESH)


def request_page(
    request: PageRequest, status: int = 200, sent: str = "", refusal: str = ""
) -> Page:
    """Show one request with its reply, or the form for one.

    `sent` is the text of a form that was not written, for the reason `refusal`.
    """
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    entry, text = inbox.read(request.parts["request"])
    asked = parse_request(entry.name, text)
    values = {
        "item": item.name,
        "entry": entry,
        "asked": asked,
        "reply": inbox.reply(entry.name),
        "limit": MAX_REPLY,
        "sent": sent,
        "refusal": refusal,
    }
    again = ", second round" if asked.again else ""
    about = f": {asked.about}" if asked.about else ""
    crumbs = (HOME, Crumb(item.name, ("inbox", item.name)))
    title = f"{asked.title}{again}{about}"
    return Page("inbox_request.html", title, values, crumbs, status=status)


def send_reply(request: PageRequest, form: Mapping[str, str]) -> Page | str:
    """Write a reply: the address to go on to, or the page with what is wrong."""
    item = request.workspace.item("inbox", request.parts["inbox"])
    name = request.parts["request"]
    text = form.get("text", "").replace("\r\n", "\n").replace("\r", "\n")
    try:
        Inbox(item.path).write(name, f"{text.rstrip()}\n")
    except NotHere:
        raise
    except (OSError, KaceError) as error:  # the text stays on the page
        return request_page(request, 422, text, f"{error}.")
    return request.link("inbox", item.name, name)


ROUTES = {
    "/inbox/{inbox}": inbox_page,
    "/inbox/{inbox}/{request}": request_page,
}
