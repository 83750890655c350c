"""The inbox: teacher requests in an exchange folder, and a form to reply to them.

Names come from addresses, so they only ever name plain files of the opened folder; no
link is followed. A reply is written whole or not at all, and never over another one
that the writer has not seen.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from kace.baselines import ace
from kace.errors import DataError, KaceError
from kace.files import cannot_write, opened, sync
from kace.ladder.prompt import TAGS, template
from kace.learning import admit, propose, revise
from kace.learning.teacher import DOMAIN, BadBlock, Grammar, read_blocks
from kace.report.render import HOME, Crumb, NotHere, Page, PageRequest, slice_of

REQUEST = ".request.md"
REPLY = ".reply.md"
MAX_REQUEST = 8_000_000  # bytes that are read
MAX_REPLY = 1_000_000  # bytes that are written; learners read no more
BLANK = 256  # bytes of a reply that tell whether it is blank
MAX_NAME = 240
PER_PAGE = 50
REFRESH = 5.0
GIST = 90  # characters of a problem that stand for a request
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
TOKEN = secrets.token_urlsafe(32)
"""In every form of this process, where no other origin can read it."""
OTHER_START = (
    "This form was made by another start of the viewer. Look through the text and send"
    " it again."
)
TAKEN = (
    "A reply is there already, perhaps since just now: it is above yours. To put yours"
    " in its place, tick the box."
)


# The folder


class RequestFile(NamedTuple):
    """A request by its name, and when it and its reply were written, since 1970."""

    name: str
    asked: float
    answered: float | None  # `None` while the reply is missing or blank


class ReplyTaken(KaceError):
    """The reply in the folder is not the one that the writer has seen."""


class Inbox:
    """An exchange folder. Threads and processes may read and write it together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[RequestFile]:
        """List the requests: waiting ones first, then the newest replies."""
        with self._open() as folder:
            with os.scandir(folder) as listed:
                names = [
                    each.name for each in listed if each.name.endswith(REQUEST)
                ]
            found = [
                _entry(folder, name.removesuffix(REQUEST)) for name in names
            ]
        return sorted(filter(None, found), key=_waiting_first)

    def read(self, name: str) -> tuple[RequestFile, str]:
        """Return a request and its text; `NotHere` if there is none of that name."""
        with self._open() as folder:
            entry = _entry(folder, name)
            if entry is None:
                missing = (
                    f"there is no request '{name[:80]}' in {self.folder.name}"
                )
                raise NotHere(missing)
            raw = _read(folder, f"{name}{REQUEST}", MAX_REQUEST)
            return entry, raw.decode("utf-8", "replace")

    def reply(self, name: str) -> tuple[str, str]:
        """Return the reply to a request and its digest, both empty if there is none."""
        with self._open() as folder:
            return _reply(folder, f"{name}{REPLY}")

    def write(self, name: str, text: str, *, instead_of: str = "") -> None:
        """Write a reply durably. The same reply twice is no error.

        `instead_of` is the digest of the reply that it may replace; any other that is
        there raises `ReplyTaken`.
        """
        self.read(name)
        file = f"{name}{REPLY}"
        data = text.encode()
        if not text.strip():
            raise DataError("the reply is empty", fix="write something")
        if len(data) > MAX_REPLY:
            what = f"the reply is larger than {MAX_REPLY:,} bytes"
            raise DataError(what, fix="write less")
        with self._open() as folder:
            with contextlib.suppress(
                OSError
            ):  # a file system may have no locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            digest = _reply(folder, file)[1]
            if digest == hashlib.sha256(data).hexdigest():
                return
            try:
                if digest != instead_of:
                    raise FileExistsError
                _put(folder, file, data, replace=bool(digest))
            except FileExistsError:
                what = f"{file} holds another reply by now"
                raise ReplyTaken(what, fix="read it, then decide") from None
            except OSError as error:
                raise cannot_write(self.folder / file, error) from None

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        """Open the folder, so that names are only ever looked up in it."""
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            folder = os.open(self.folder, flags)
            try:
                yield folder
            finally:
                os.close(folder)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise NotHere(
                f"{self.folder.name} cannot be read: {reason}"
            ) from None


def _waiting_first(entry: RequestFile) -> tuple[float, float, str]:
    if entry.answered is None:
        return -math.inf, entry.asked, entry.name
    return -entry.answered, 0.0, entry.name


def _entry(folder: int, name: str) -> RequestFile | None:
    """Return the request of a name that leads nowhere but to a file of the folder."""
    if name[:1] in ("", ".") or "/" in name or "\\" in name:
        return None
    if len(name) > MAX_NAME or not name.isprintable():
        return None
    asked = _stat(folder, f"{name}{REQUEST}")
    if asked is None or not stat.S_ISREG(asked.st_mode):
        return None
    reply = _stat(folder, f"{name}{REPLY}")
    start = _read(folder, f"{name}{REPLY}", BLANK + 1)
    answered = bool(start.strip()) or len(start) > BLANK
    return RequestFile(
        name, asked.st_mtime, reply.st_mtime if reply and answered else None
    )


def _stat(folder: int, file: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(file, dir_fd=folder, follow_symlinks=False)
    return None


def _read(folder: int, file: str, limit: int) -> bytes:
    """Read the beginning of a plain file; empty if there is none."""
    with contextlib.suppress(OSError):
        with os.fdopen(opened(file, folder=folder), "rb") as found:
            return found.read(limit)
    return b""


def _reply(folder: int, file: str) -> tuple[str, str]:
    info = _stat(folder, file)
    if info is None:
        return "", ""
    if not stat.S_ISREG(info.st_mode):
        fix = "remove it, so that a reply can be written there"
        raise DataError(f"{file} is no plain file", fix=fix)
    raw = _read(folder, file, MAX_REQUEST)
    return raw.decode("utf-8-sig", "replace"), hashlib.sha256(raw).hexdigest()


def _put(folder: int, file: str, data: bytes, *, replace: bool) -> None:
    """Write a file beside, then give it its name at once.

    Without `replace`, raise `FileExistsError` if the name is taken.
    """
    temp = f".{secrets.token_hex(8)}.tmp"
    handle = os.open(temp, NEW_FILE, 0o644, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(data)
            written.flush()
            sync(handle)
        if not replace:
            try:
                os.link(temp, file, src_dir_fd=folder, dst_dir_fd=folder)
                return
            except FileExistsError:
                raise
            except (
                OSError
            ):  # no hard links here: an empty file takes the name first
                os.close(os.open(file, NEW_FILE, 0o644, dir_fd=folder))
        os.replace(temp, file, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temp, dir_fd=folder)
        sync(folder)


# Requests and the form of their replies


class ReplyForm(NamedTuple):
    """What replies to a prompt are made of, and the fields of an empty block."""

    title: str = ""
    blocks: tuple[Grammar, ...] = ()
    fields: str = ""


FORMS = {
    "teacher/propose": ReplyForm(
        "New cards", (propose.CARD,), "id difficulty problems payload"
    ),
    "teacher/imagine": ReplyForm(
        "Further cards", (propose.CARD,), "id difficulty payload"
    ),
    "teacher/illustrate": ReplyForm(
        "Worked examples", (revise.EXAMPLES,), "id text"
    ),
    "teacher/wordings": ReplyForm("Wordings", (revise.WORDINGS,), "id text"),
    "teacher/judge": ReplyForm(
        "Rulings", (admit.RULING,), "id verdict rule reason"
    ),
    "teacher/revise": ReplyForm(
        "Revisions", (revise.REVISION, revise.GAP), "id action reason"
    ),
    "teacher/partition": ReplyForm(
        "Domains", (DOMAIN,), "name description problems signals"
    ),
    "ace/reflect": ReplyForm("Notes", (ace.NOTES,), "mistake helpful lesson"),
    "ace/curate": ReplyForm(
        "Changes to the playbook", (ace.REVISION,), "action section reason text"
    ),
}
"""The forms by prompt."""
CARD_ID = re.compile(r"^<card>\n(?:id: |\[)([A-Z0-9_]{1,80})", re.MULTILINE)
HEADING = r"^## This request(?: once more)?: *(.*\S)"
QUOTE = re.compile(
    rf"^<({'|'.join(TAGS)})>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL
)
"""Text from outside. It cannot hold a tag of ours: see `ladder.fence`."""


class Turn(NamedTuple):
    """One message of a request: tags, empty for its own words, with their texts."""

    role: str
    parts: list[tuple[str, str]]


class TeacherRequest(NamedTuple):
    """A request taken apart for reading. What it does not say is empty."""

    name: str
    opening: str  # what is before the messages; all of a text in another form
    turns: list[Turn]  # the messages but those of the system
    about_replies: str  # what replies are like, of every request
    task: str  # what this request asks for
    title: str
    place: str  # the domain and difficulty it is about
    about: str  # the place, or the beginning of its problem
    epoch: str
    again: bool  # whether it is about a reply of no use as it was
    whole: str  # all messages, to copy
    form: ReplyForm
    cards: list[str]  # the ids of the cards that a reply is about
    draft: str  # what a reply begins as


class ReplyCheck(NamedTuple):
    """The blocks of a reply that have the form, by name or number, and the others."""

    found: list[str]
    faults: list[BadBlock]

    @property
    def usable(self) -> bool:
        """Whether a learner could use all of it, as far as its form goes."""
        return bool(self.found) and not self.faults


def parse_request(name: str, text: str) -> TeacherRequest:
    """Take a request apart."""
    # The lines between turns carry the hash that the name ends with: no text inside
    # can imitate them.
    mark = rf"^===== {re.escape(name[-8:])} (system|user|assistant|end) =====$"
    opening, *pieces = re.split(mark, text, flags=re.MULTILINE)
    messages = {"system": "", "user": ""}
    turns = []
    for role, piece in zip(pieces[::2], pieces[1::2], strict=True):
        words = piece.strip("\n")
        messages.setdefault(role, words)
        messages[role] = messages[role] or words
        if role in ("user", "assistant"):
            turns.append(Turn(role, _parts(words)))
    rules = messages["system"]
    first = messages["user"]
    heading = _first(HEADING, rules)
    about_replies, _, task = rules.partition("## This request")
    form = _forms().get(heading, ReplyForm())
    cards = [] if propose.CARD in form.blocks else CARD_ID.findall(first)
    again = "assistant" in messages
    domain = _first(r"\ADomain: (\S{1,80})$", first)
    difficulty = _first(r"^Difficulty: (\w{1,20})", first) if domain else ""
    place = ", ".join(filter(None, (domain, difficulty)))
    problem = " ".join(_first(r"<problem>\n(.{1,400})", first).split())
    return TeacherRequest(
        name,
        opening=opening.strip(),
        turns=turns,
        about_replies=about_replies.strip(),
        task=task.partition("\n")[2].strip(),
        title=form.title or heading[:80].capitalize() or "Request",
        place=place,
        about=place or problem[:GIST],
        epoch=_first(r"^epoch-(\d{1,3})-", name),
        again=again,
        whole="\n\n".join(piece.strip("\n") for piece in pieces[1::2]).strip(),
        form=form,
        cards=cards,
        draft="" if again else _draft(form, cards),
    )


def _parts(text: str) -> list[tuple[str, str]]:
    """Return the words and the quotes of a message, in order."""
    pieces = QUOTE.split(text)
    found = [("", pieces[0].strip("\n"))]
    for tag, quote, words in zip(
        pieces[1::3], pieces[2::3], pieces[3::3], strict=True
    ):
        found += [(tag, quote), ("", words.strip("\n"))]
    return [(tag, words) for tag, words in found if words.strip()]


def _draft(form: ReplyForm, cards: Sequence[str]) -> str:
    """Return an empty block to fill in, or one for each card."""
    found = []
    for card in (cards or [""]) if form.blocks else ():
        lines = [f"{name}: \n" for name in form.fields.split()]
        if card:
            lines[0] = f"id: {card}\n"
        tag = form.blocks[0].tag
        found.append(f"<{tag}>\n{''.join(lines)}</{tag}>")
    return "\n\n".join(found)


@cache
def _forms() -> dict[str, ReplyForm]:
    """Return the forms by the headings of their prompts."""
    return {
        _first(HEADING, template(name)): form for name, form in FORMS.items()
    }


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def check(reply: str, request: TeacherRequest) -> ReplyCheck | None:
    """Read a reply as a learner does; `None` if the form is not known."""
    if not request.form.blocks:
        return None
    found = []
    faults: list[BadBlock] = []
    for grammar in request.form.blocks:
        blocks, bad = read_blocks(reply, grammar)
        faults += bad
        for number, block in enumerate(blocks, 1):
            found.append(
                block.fields.get(grammar.name) or f"{grammar.tag} {number}"
            )
    if admit.RULING in request.form.blocks and not faults and not request.again:
        faults = list(admit.read_rulings(reply, request.cards).bad)
    return ReplyCheck(found, sorted(faults, key=lambda fault: fault.line))


# Pages


def inbox_page(request: PageRequest) -> Page:
    """Show every request of a folder, those that wait first."""
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    entries = inbox.entries()
    part = slice_of(request, len(entries), entries, PER_PAGE)
    values = {
        "item": item.name,
        "waiting": [entry for entry in entries if entry.answered is None],
        "part": part,
        "requests": [
            (entry, parse_request(entry.name, inbox.read(entry.name)[1]))
            for entry in part.rows
        ],
        "to": partial(request.link, "inbox", item.name),
    }
    return Page("inbox.html", item.name, values, refresh=REFRESH)


def request_page(
    request: PageRequest, status: int = 200, **form: object
) -> Page:
    """Show one request with its reply, or the form for one.

    After a form was sent, `form` holds what came of it.
    """
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    entry, text = inbox.read(request.parts["request"])
    asked = parse_request(entry.name, text)
    problem = ""
    reply = ""
    seen = ""
    try:
        reply, seen = inbox.reply(entry.name)
    except DataError as error:
        problem = str(error)
    values = {
        "item": item.name,
        "entry": entry,
        "asked": asked,
        "problem": problem,
        "reply": reply.strip() and reply,
        "seen": seen,
        "found": check(reply, asked) if reply.strip() else None,
        "token": TOKEN,
        "limit": MAX_REPLY,
        "sent": None,
        "checked": None,
        "refusal": "",
        "anyway": False,
        **form,
    }
    again = ", second round" if asked.again else ""
    title = f"{asked.title}{again}{': ' if asked.place else ''}{asked.place}"
    crumbs = (HOME, Crumb(item.name, ("inbox", item.name)))
    return Page("inbox_request.html", title, values, crumbs, status=status)


def send_reply(request: PageRequest, form: Mapping[str, str]) -> Page | str:
    """Take a reply: the address to go on to, or the page that says what is wrong."""
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    name = request.parts["request"]
    text = form.get("text", "").replace("\r\n", "\n").replace("\r", "\n")
    checked = check(text, parse_request(name, inbox.read(name)[1]))
    token = form.get("token", "").encode("utf-8", "replace")
    status = 422
    refusal = ""
    anyway = False
    if not hmac.compare_digest(token, TOKEN.encode()):
        status = 403
        refusal = OTHER_START
    elif not text.strip():
        refusal = "The reply is empty."
    elif form.get("do") == "check":
        status = 200
    elif checked and not checked.usable and form.get("anyway") != "yes":
        anyway = True
        refusal = "The learner could not use all of it."
    else:
        try:
            there, digest = inbox.reply(name)
            if (
                there.strip()
            ):  # only the reply that was seen, and only if ticked
                digest = (
                    form.get("seen", "") if form.get("replace") == "yes" else ""
                )
            inbox.write(name, f"{text.rstrip()}\n", instead_of=digest)
            return request.link("inbox", item.name, name)
        except ReplyTaken:
            status = 409
            refusal = TAKEN
        except NotHere:
            raise
        except KaceError as error:
            refusal = f"{error}."  # what was written stays on the page
    return request_page(
        request,
        status,
        sent=text,
        checked=checked,
        refusal=refusal,
        anyway=anyway,
    )


ROUTES = {
    "/inbox/{inbox}": inbox_page,
    "/inbox/{inbox}/{request}": request_page,
}
