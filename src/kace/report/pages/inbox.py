"""An exchange folder: what waits for a reply, a request to read, and a form to write the reply in."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from functools import partial

from kace.errors import DataError, KaceError
from kace.report.page import HOME, Crumb, NotHere, Page, PageRequest, slice_of
from kace.report.replies import MAX_REPLY, Inbox, ReplyTaken
from kace.report.requests import RequestText, check
from kace.report.workspace import Item

PER_PAGE = 50
REFRESH = 5.0
OTHER_START = "This form was made by another start of the viewer. Look through the text and send it again."
TAKEN = "A reply is there already, perhaps since just now: it is above yours. To put yours in its place, tick the box."
_TOKEN = secrets.token_urlsafe(32)
"""In every form of this process, where no other origin can read it: it holds where a browser sends no Origin."""


def inbox_page(request: PageRequest) -> Page:
    """Every request of a folder, those that wait first."""
    item = request.workspace.item("inbox", request.parts["inbox"])
    entries = (inbox := Inbox(item.path)).entries()
    part = slice_of(request, entries, PER_PAGE)
    values = {
        "item": item,
        "total": len(entries),
        "waiting": [entry for entry in entries if entry.answered is None],
        "part": part,
        "requests": {
            entry.name: RequestText(entry.name, inbox.request(entry.name))
            for entry in part.rows
        },
        "to": partial(request.link, "inbox", item.name),
    }
    return Page("inbox.html", item.name, values, refresh=REFRESH)


def reply(request: PageRequest, form: Mapping[str, str]) -> Page | str:
    """Take a reply: the address to go on to once it is written, or the page that says why it is not."""
    item, inbox, asked = _opened(request)
    text = form.get("text", "").replace("\r\n", "\n").replace("\r", "\n")
    checked = check(text, asked)
    only_check = form.get("do") == "check"
    anyway = False
    status = 422
    refusal = ""
    if not hmac.compare_digest(
        form.get("token", "").encode("utf-8", "replace"), _TOKEN.encode()
    ):
        status = 403
        refusal = OTHER_START
    elif not text.strip():
        refusal = "The reply is empty."
    elif (
        checked
        and not checked.usable
        and not only_check
        and form.get("anyway") != "yes"
    ):
        anyway = True
        refusal = "The learner could not use all of it."
    elif not only_check:
        try:
            there, digest = inbox.reply(asked.name) or ("", "")
            given_up = (
                form.get("seen", "") if digest and form.get("replace") == "yes" else ""
            )  # was seen, and ticked
            inbox.write(
                asked.name,
                f"{text.rstrip()}\n",
                instead_of=given_up if there.strip() else digest,
            )
            return request.link("inbox", item.name, asked.name)
        except ReplyTaken:
            status = 409
            refusal = TAKEN
        except NotHere:
            raise
        except (
            KaceError
        ) as error:  # whatever went wrong, what was written stays on the page
            refusal = f"{error}."
    came = {"sent": text, "checked": checked, "refusal": refusal, "anyway": anyway}
    return request_page(request, status if refusal else 200, **came)


def request_page(request: PageRequest, status: int = 200, **came: object) -> Page:
    """One request, with its reply or the form for it; after a form was sent, with what came of it."""
    item, inbox, asked = _opened(request)
    problem = ""
    reply = ""
    seen = ""
    limit = asked.limit or f"{MAX_REPLY:,} bytes at most"
    try:
        reply, seen = inbox.reply(asked.name) or ("", "")
    except DataError as error:
        problem = str(error)
    reply = reply if reply.strip() else ""
    found = check(reply, asked) if reply else None
    values = {
        "item": item,
        "asked": asked,
        "problem": problem,
        "reply": reply,
        "found": found,
        "seen": seen,
    }
    values |= {"entry": inbox.entry(asked.name), "token": _TOKEN, "limit": limit}
    values |= {"sent": None, "checked": None, "refusal": "", "anyway": False} | came
    again = ", second round" if asked.again else ""
    place = f": {asked.place}" if asked.place else ""
    title = f"{asked.title[:1].upper()}{asked.title[1:]}{again}{place}"
    return Page(
        "inbox_request.html",
        title,
        values,
        (HOME, Crumb(item.name, ("inbox", item.name))),
        status=status,
    )


def _opened(request: PageRequest) -> tuple[Item, Inbox, RequestText]:
    item = request.workspace.item("inbox", request.parts["inbox"])
    inbox = Inbox(item.path)
    name = request.parts["request"]
    return item, inbox, RequestText(name, inbox.request(name))


ROUTES = {"/inbox/{inbox}": inbox_page, "/inbox/{inbox}/{request}": request_page}
FORMS = {"/inbox/{inbox}/{request}": reply}
