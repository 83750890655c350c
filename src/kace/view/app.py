"""The viewer as a web application: every answer is a page in the same frame, or a file that pages share.

Only an exchange folder takes anything: `inbox_pages.reply(ask, form)` gives the page to show (what is wrong with the
reply), or the path, with its query, to go on to once it is written. It checks the form's token, so as to lose no text.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kace.errors import UsageError
from kace.view.links import Links
from kace.view.page import Ask, Page
from kace.view.routing import Router, all_routes, error_page, failed_page
from kace.view.shell import assets, assets_mark, document, nav_of
from kace.web.guard import Guard, Hosts, Policy, Refusal, Said

if TYPE_CHECKING:
    from kace.view.shelf import Shelf

MAX_FORM = 12_000_000
"""Bytes of a form as sent, where a letter beyond ASCII takes up to twelve."""
MAX_FIELDS = 20
FOR_EVER = "public, max-age=31536000, immutable"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
HTML = "text/html; charset=utf-8"

Reply = Callable[[Ask, Mapping[str, str]], Page | str]
"""Takes a form."""


class Viewer:
    """Answers requests about a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.links = Links()
        self.router = Router(all_routes())

    async def page(self, request: Request) -> Response:
        """Any page, and the form of an exchange folder."""
        path = _raw_path(request)
        return await run_in_threadpool(
            self._posted if request.method == "POST" else self._asked,
            path,
            dict(request.query_params),
            await request.body(),  # the guard has read it already, and no more than it may be
        )

    async def asset(self, request: Request) -> Response:
        """A file that pages share. With the mark of its content in the address it never changes."""
        name = request.path_params["name"]
        mark, _, rest = name.partition("/")
        kept = mark == assets_mark()
        content = assets().get(rest if kept else name)
        if content is None:
            missing = error_page(self.links, 404, "Not here", "There is no such file.")
            return await run_in_threadpool(self._framed, missing, "/assets")
        headers = {
            "Cache-Control": FOR_EVER if kept else "no-cache",
            "Content-Type": TYPES.get(PurePosixPath(name).suffix, "text/plain; charset=utf-8"),
        }
        return Response(content, headers=headers)

    def _asked(self, path: str, query: Mapping[str, str], _body: bytes) -> Response:
        return self._framed(self.router.page(path, self.shelf, self.links, query), path)

    def _posted(self, path: str, query: Mapping[str, str], body: bytes) -> Response:
        try:
            made = self._taken(path, query, body)
        except Exception as error:
            made = failed_page(error, self.links)
        if isinstance(made, Page):
            return self._framed(made, path)
        return RedirectResponse(made, status_code=303)

    def _taken(self, path: str, query: Mapping[str, str], body: bytes) -> Page | str:
        found = self.router.match(path)
        if found.pattern != "/inbox/{inbox}/{request}":
            return error_page(self.links, 405, "Nothing can be sent here")
        try:
            form = _fields(body)
        except UsageError as error:
            return error_page(self.links, 400, "That cannot be read", error.message, error.fix)
        reply = cast("Reply", importlib.import_module("kace.view.inbox_pages").reply)
        return reply(Ask(self.shelf, self.links, found.parts, query), form)

    def _framed(self, page: Page, path: str) -> Response:
        nav = nav_of(self.shelf, self.links, path)
        return HTMLResponse(document(page, self.links, nav=nav), page.status, {"Cache-Control": "no-store"})


def create_app(shelf: Shelf, *, token: str | None = None, hosts: Hosts | None = None) -> Starlette:
    """The viewer of a shelf, behind the guard that decides who may ask."""
    viewer = Viewer(shelf)
    policy = Policy(max_body=MAX_FORM, speak=refused)
    return Starlette(
        routes=[
            Route("/assets/{name:path}", viewer.asset, methods=["GET"]),
            Route("/{path:path}", viewer.page, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(Guard, hosts=hosts, token=token, policy=policy)],
    )


def refused(refusal: Refusal) -> Said:
    """What the guard turns away, in the frame of the other pages. It says nothing of what is open."""
    links = Links()
    page = error_page(links, refusal.status, "Not allowed" if refusal.status < 500 else "Not now", refusal.message)
    return Said(HTML, document(page, links).encode())


def _raw_path(request: Request) -> str:
    raw = request.scope.get("raw_path")
    return raw.decode("latin-1") if isinstance(raw, bytes) else str(request.scope["path"])


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form. Anything that no browser sends from our page is a `UsageError`."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise UsageError("the form cannot be read", fix="send it from the page it stands on") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise UsageError("a field of the form stands twice", fix="send it from the page it stands on")
    return fields
