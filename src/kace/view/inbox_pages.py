"""An exchange folder as pages: what waits for a reply, a request to read, and a form to write the reply in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kace.errors import DataError, KaceError
from kace.view.form_token import has_token
from kace.view.inbox import Entry, Inbox, Reply, Taken
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.paging import pager, part_of
from kace.view.reply_form import check, form_of
from kace.view.reply_page import Desk, answer, material, reply_form, rules
from kace.view.request_text import RequestText, read_request
from kace.view.shelf import Item, Shelf
from kace.view.when import when
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, table

PER_PAGE = 50
REFRESH = 5.0


def inbox_page(ask: Ask) -> Page:
    """Every request of a folder, those that wait first."""
    item = ask.shelf.item("inbox", ask.parts["inbox"])
    inbox = Inbox(item.path)
    entries = inbox.entries()
    waiting = [entry for entry in entries if entry.answered is None]
    part = part_of(entries, ask, PER_PAGE)
    head = tag(
        "header",
        tag("p", "Exchange folder", class_="eyebrow"),
        tag("h1", item.name),
        tag("p", _lead(len(waiting), len(entries)), class_="lead"),
        *([_first(ask, item, waiting[0])] if waiting and not ask.links.static else []),
        class_="lede",
    )
    shown = (
        _section(ask, item, "Waiting for a reply", [each for each in part.rows if each.answered is None]),
        _section(ask, item, "Answered", [each for each in part.rows if each.answered is not None]),
    )
    body = join((head, *shown, pager(part, ask, path_of("inbox", item.name))))
    return Page(item.name, body, (Crumb("Home", "/"),), refresh=REFRESH)


def request_page(ask: Ask) -> Page:
    """One request, with its reply or the form for it."""
    return _page(ask, Desk())


def reply(ask: Ask, form: Mapping[str, str]) -> Page | str:
    """Take a reply: the path to go on to once it is written, or the page that says why it is not."""
    item, inbox, request = _opened(ask)
    said = form.get("text", "").replace("\r\n", "\n").replace("\r", "\n")
    desk = Desk(text=said, checked=check(said, request))
    if refused := _refused(desk, form):
        return _page(ask, refused)
    if form.get("do") == "check":
        return _page(ask, desk)
    try:
        instead_of = _instead_of(inbox.reply(request.name), form)
        inbox.write(request.name, f"{said.rstrip()}\n", instead_of=instead_of)
    except Taken:
        return _page(ask, desk.refusing(409, _TAKEN))
    except NotHere:
        raise
    except KaceError as error:  # whatever went wrong, what was written stays on the page
        return _page(ask, desk.refusing(422, f"{error}."))
    return path_of("inbox", item.name, request.name)


_TAKEN = (
    "A reply is there already, perhaps since just now: it stands above yours. To put yours in its place, tick the box."
)


def _instead_of(there: Reply | None, form: Mapping[str, str]) -> str:
    """The mark of the reply that may be overwritten: a blank one, or one that was seen and given up by a tick."""
    if there is None:
        return ""
    return there.mark if there.blank else form.get("seen", "") if form.get("replace") == "yes" else ""


def _refused(desk: Desk, form: Mapping[str, str]) -> Desk | None:
    """The desk with the reason why a form is not taken, before anything on disk is looked at."""
    if not has_token(form):
        reason = "This form was made by another start of the viewer. Look through the text and send it again."
        return desk.refusing(403, reason)
    if not (desk.text or "").strip():
        return desk.refusing(422, "The reply is empty.")
    wanting = desk.checked is not None and not desk.checked.usable
    if wanting and form.get("do") != "check" and form.get("anyway") != "yes":
        return desk.refusing(422, "The learner could not use all of it.", anyway=True)
    return None


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """The pages of an exchange folder."""
    if item.kind == "inbox":
        yield path_of("inbox", item.name)
        yield from (path_of("inbox", item.name, entry.name) for entry in Inbox(item.path).entries())


def title_of(request: RequestText) -> str:
    """What a request asks for, and about what."""
    form = form_of(request)
    asks = form.title if form else (request.asks or "Request")
    about = ", ".join(part for part in (request.domain, request.difficulty) if part)
    again = ", second round" if request.again else ""
    return f"{asks[:1].upper()}{asks[1:80]}{again}{f': {about}' if about else ''}"


def _opened(ask: Ask) -> tuple[Item, Inbox, RequestText]:
    item = ask.shelf.item("inbox", ask.parts["inbox"])
    inbox, name = Inbox(item.path), ask.parts["request"]
    return item, inbox, read_request(name, inbox.request(name))


def _page(ask: Ask, desk: Desk) -> Page:
    item, inbox, request = _opened(ask)
    entry = inbox.entry(request.name)
    title = title_of(request)
    head = tag(
        "header",
        tag("p", "Teacher request", class_="eyebrow"),
        tag("h1", title),
        tag("p", *_facts(ask, entry, request), class_="facts"),
        tag("p", tag("a", "To the reply", href="#reply"), class_="to-reply"),
        class_="lede",
    )
    try:
        beside = _beside(ask, inbox.reply(request.name), request, desk)
    except DataError as error:
        beside = tag("p", str(error), class_="banner")
    desk_part = tag("div", beside, id="reply", role="region", aria_label="The reply", class_="reply-desk")
    body = join((head, tag("div", tag("div", material(request), class_="material"), desk_part, class_="exchange")))
    crumbs = (Crumb("Home", "/"), Crumb(item.name, path_of("inbox", item.name)))
    return Page(title, body, crumbs, status=desk.status)


def _beside(ask: Ask, there: Reply | None, request: RequestText, desk: Desk) -> Html:
    """The reply, where there is one, and the form to write it in, where pages are served."""
    written = answer(there, request) if there and not there.blank else Html("")
    if not ask.links.static:
        action = ask.links.to(path_of("inbox", ask.parts["inbox"], request.name)) + "#reply"
        return join((written, reply_form(desk, there, request, action)))
    wanting = tag("p", "It waits for a reply. One can be written where kace view serves this page.", class_="note")
    return join((written or wanting, rules(request)))


def _facts(ask: Ask, entry: Entry, request: RequestText) -> Iterator[Html]:
    yield badge("answered", "good") if entry.answered is not None else badge("waiting", "warn")
    yield tag("span", "asked ", tag("b", when(entry.asked, ask.links)))
    if entry.answered is not None:
        yield tag("span", "answered ", tag("b", when(entry.answered, ask.links)))
    if request.epoch is not None:
        yield tag("span", "epoch ", tag("b", str(request.epoch)))
    yield tag("span", entry.name, class_="id")


def _lead(waiting: int, total: int) -> str:
    if not total:
        return "No request lies in this folder yet."
    if not waiting:
        return f"All {total:,} requests are answered." if total > 1 else "The one request is answered."
    wait = f"{waiting:,} of {total:,} requests wait" if waiting > 1 else f"1 of {total:,} requests waits"
    return f"{wait} for a reply. Whoever asked goes on as soon as it is written."


def _first(ask: Ask, item: Item, entry: Entry) -> Html:
    address = ask.links.to(path_of("inbox", item.name, entry.name))
    return tag("p", tag("a", "Answer the one that waits longest", href=address, class_="button"))


def _section(ask: Ask, item: Item, title: str, entries: Sequence[Entry]) -> Html:
    if not entries:
        return Html("")
    done = entries[0].answered is not None
    heads = ("Request", "About", "Epoch", "Asked", *(("Answered",) if done else ()))
    rows = (_row(ask, item, entry) for entry in entries)
    return tag("section", tag("h2", title), table(heads, rows))


def _row(ask: Ask, item: Item, entry: Entry) -> Sequence[str]:
    request = read_request(entry.name, Inbox(item.path).request(entry.name))
    form = form_of(request)
    asks = form.title if form else (request.asks[:80] or "Request")
    link = tag("a", asks, href=ask.links.to(path_of("inbox", item.name, entry.name)))
    answered = () if entry.answered is None else (when(entry.answered, ask.links),)
    return (
        join(
            (link, " ", badge("second round", "info") if request.again else "", tag("small", entry.name, class_="id"))
        ),
        join((request.about or "–", tag("small", request.holds) if request.domain else "")),
        "–" if request.epoch is None else str(request.epoch),
        when(entry.asked, ask.links),
        *answered,
    )


ROUTES = (Route("/inbox/{inbox}", inbox_page), Route("/inbox/{inbox}/{request}", request_page))
