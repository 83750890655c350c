"""The viewer as a Starlette application: every answer is a page in the same frame, or a file that pages share."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kace.errors import KaceError, redact
from kace.report import pages
from kace.report.guard import Denial, Guard, Hosts, raw_path
from kace.report.page import (
    Links,
    NotHere,
    Page,
    PageRequest,
    StillReading,
    assets,
    assets_mark,
    render,
)
from kace.report.workspace import KINDS, Workspace

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

MAX_FORM = 12_000_000  # bytes of a form as sent, where a letter beyond ASCII takes up to twelve
MAX_FIELDS = 20
MAX_PART = 400
AGAIN = 0.6  # seconds after which the page that waits looks again; without script, the next whole second
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TYPES |= {".woff2": "font/woff2"}
WAITING = "A large item takes a few seconds the first time. The page comes by itself."


class FormError(KaceError):
    """A form that no browser sends from our page. The server answers 400."""


ERRORS = {
    NotHere: (404, "Not here"),
    FormError: (400, "That cannot be read"),
    KaceError: (500, "This cannot be shown"),
}


def create_app(
    workspace: Workspace,
    *,
    token: str | None = None,
    hosts: Hosts | None = None,
    link: Links | None = None,
) -> Starlette:
    """The viewer of a workspace, behind the guard that decides who may ask."""
    routes = [Route("/assets/{name:path}", _asset, methods=["GET"])]
    for area in pages.areas():
        # A form goes before the page of the same path.
        for verb, views in (("POST", getattr(area, "FORMS", {})), ("GET", area.ROUTES)):
            for at, view in views.items():
                routes.append(Route(at, _endpoint(view), methods=[verb]))
    guard = Middleware(
        Guard, hosts=hosts or Hosts(), token=token, max_body=MAX_FORM, render=refused
    )
    middleware = [guard, Middleware(_as_sent)]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: missing},
    )
    app.router.redirect_slashes = False
    app.state.workspace = workspace
    app.state.link = link or Links()
    app.state.left_out = ()
    return app


def _as_sent(app: ASGIApp) -> ASGIApp:
    """Lets routes match the path as it was sent, not as it reads once decoded."""

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": f"/{raw_path(scope).strip('/')}"}, receive, send)

    return asked


def _endpoint(
    view: Callable[..., Page | str],
) -> Callable[[Request], Awaitable[Response]]:
    """Asks a view in a thread. One of a form takes its fields, and may give the address to go on to."""

    def answer(request: Request, *body: bytes) -> Response:
        """The page, or the one that says why there is none: whatever a view trips over becomes an answer."""
        state = request.app.state
        try:
            parts = {name: _decoded(part) for name, part in request.path_params.items()}
            asked = PageRequest(
                state.workspace, state.link, parts, dict(request.query_params)
            )
            page = view(asked, *map(_fields, body))
        except StillReading as waiting:
            told = {
                "status": "One moment",
                "sentences": [WAITING],
                "bars": [("", 0, 0)],
            }
            page = Page("error.html", f"Reading {waiting.message}", told, refresh=AGAIN)
        except KaceError as error:
            status, title = next(
                said for kind, said in ERRORS.items() if isinstance(error, kind)
            )
            page = error_page(status, title, redact(error.message), redact(error.fix))
        except Exception as error:
            log.error("%s", redact("".join(traceback.format_exception(error))))
            page = error_page(
                500,
                "Something went wrong here",
                "The page could not be made. The terminal says more.",
            )
        return (
            _framed(request, page)
            if isinstance(page, Page)
            else RedirectResponse(page, status_code=303)
        )

    async def endpoint(request: Request) -> Response:
        # The guard has read the body already, and no more than it may be.
        return await run_in_threadpool(
            answer,
            request,
            *([await request.body()] if request.method == "POST" else []),
        )

    return endpoint


def _decoded(part: str) -> str:
    """One part of a path as it was sent, decoded once: an encoded slash stays inside its part."""
    try:
        name = unquote_to_bytes(part).decode("utf-8", "strict")
    except UnicodeDecodeError:
        name = ""
    if (
        not name
        or name in {".", ".."}
        or len(name) > MAX_PART
        or not name.isprintable()
    ):
        raise NotHere("there is no such page")
    return name


def error_page(status: int, title: str, *sentences: str) -> Page:
    """A page that says what is wrong, and leads on."""
    said = [
        words[0].upper() + words[1:] + "." * (words[-1] not in ".!?")
        for words in sentences
        if words
    ]
    return Page(
        "error.html", title, {"status": status, "sentences": said}, status=status
    )


def document(
    page: Page,
    link: Links,
    workspace: Workspace | None = None,
    path: str = "/",
    left_out: Sequence[str] = (),
) -> str:
    """A page in its frame."""
    at = "assets" if link.static else f"/assets/{assets_mark()}"
    frame = {"page": page, "link": link, "static": link.static, "left_out": left_out}
    frame |= {
        "refresh": None if link.static else page.refresh,
        "asset": lambda name: f"{at}/{name}",
    }
    return render(
        page.template,
        {
            **page.values,
            **frame,
            "nav": _nav(workspace, link, path) if workspace else (),
        },
    )


def refused(denial: Denial) -> Response:
    """What the guard denies, in the frame of the other pages. It says nothing of what is open."""
    page = error_page(
        denial.status,
        "Not allowed" if denial.status < 500 else "Not now",
        denial.message,
    )
    return HTMLResponse(document(page, Links()))


def _framed(request: Request, page: Page) -> Response:
    state = request.app.state
    html = document(
        page, state.link, state.workspace, request.scope["path"], state.left_out
    )
    return HTMLResponse(html, page.status, {"Cache-Control": "no-store"})


def _nav(
    workspace: Workspace, link: Links, path: str
) -> list[tuple[str, str, str | None]]:
    """The links of the bar: every kind that is open. One item is led to at once, several by the home page's list."""
    places: list[tuple[str, str, str | None]] = [
        ("Home", link(), "page" if path == "/" else None)
    ]
    for kind, name in KINDS.items():
        if items := workspace.items(kind):
            only = len(items) == 1
            here = only and path == f"/{kind}/{items[0].name}"
            current = (
                "page" if here else "true" if path.startswith(f"/{kind}/") else None
            )
            places.append(
                (
                    name,
                    link(kind, items[0].name) if only else f"{link()}#{kind}",
                    current,
                )
            )
    return places


def missing(request: Request, error: Exception) -> Response:
    """The page for a path that no route answers, or that answers no such method."""
    wrong_verb = isinstance(error, HTTPException) and error.status_code == 405
    told = (
        (405, "Nothing can be sent here")
        if wrong_verb
        else (404, "Not here", "There is no such page.")
    )
    return _framed(request, error_page(*told))


def _asset(request: Request) -> Response:
    """A file that pages share. With the mark of its content in the address it never changes."""
    name = request.path_params["name"]
    kept = name.startswith(f"{assets_mark()}/")
    content = assets().get(name.partition("/")[2] if kept else name)
    if content is None:
        return _framed(request, error_page(404, "Not here", "There is no such file."))
    kind = TYPES.get(PurePosixPath(name).suffix, "text/plain; charset=utf-8")
    fresh = "public, max-age=31536000, immutable" if kept else "no-cache"
    return Response(content, headers={"Cache-Control": fresh, "Content-Type": kind})


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form. Anything that no browser sends from our page is a `FormError`."""
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(
            text, True, strict_parsing=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        pairs = []
    if len(fields := dict(pairs)) != len(pairs) or not pairs:
        what = (
            "a field of the form stands twice" if pairs else "the form cannot be read"
        )
        raise FormError(what, fix="send it from the page it stands on")
    return fields
