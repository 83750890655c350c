"""The frame of every page: head, bar, way to the page, content. The same for the server and for files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from kace.view.links import Links
from kace.view.page import Page
from kace.web.markup import Html, join, tag

if TYPE_CHECKING:
    from kace.view.shelf import Kind, Shelf

FILE_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; font-src 'self' file:; "
    "img-src 'self' file: data:; form-action 'none'; base-uri 'none'"
)
"""What a page in a file may do: load what lies beside it, ask no server and send nothing.

Browsers differ in whether a file is itself (`'self'`) to another file, hence `file:`, which an HTTP page cannot use.
`frame-ancestors` means nothing inside a page.
"""

STYLE, SCRIPT = "kace.css", "view.js"
"""On every page. The style is made of all style files, so that it is asked for once."""
FIRST_STYLE = "view.css"
"""The styles of areas build on it."""
MATHS_STYLE, MATHS_SCRIPTS = "katex/katex.min.css", ("katex/katex.min.js", "math.js")
"""Where there is maths to set: they are ten times as large as everything else."""
NAMES: Mapping[Kind, str] = {"tree": "Trees", "run": "Runs", "learner": "Learners", "inbox": "Inbox"}

NO_NAV = Html("")


def document(page: Page, links: Links, *, nav: Html = NO_NAV) -> str:
    """The page as an HTML document."""
    live = page.refresh if not links.static else None
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("a", "kace", href=links.to("/"), class_="brand"), nav, class_="top"),
        tag("main", _crumbs(page, links), page.body, id="content", tabindex="-1"),
        tag("footer", _foot(links), class_="foot"),
        data_refresh=live,
    )
    return f"<!doctype html>\n{tag('html', _head(page, links, live), body, lang='en')}\n"


def nav_of(shelf: Shelf, links: Links, path: str) -> Html:
    """The links of the bar: every kind that is open. One item is led to at once, several by the home page's list."""
    places = [_nav_link("Home", links.to("/"), "page" if path == "/" else None)]
    for kind, name in NAMES.items():
        items = shelf.items(kind)
        if not items:
            continue
        only = f"/{kind}/{items[0].name}" if len(items) == 1 else None
        address = links.to(only) if only else f"{links.to('/')}#{kind}"
        inside = path.startswith(f"/{kind}/")
        places.append(_nav_link(name, address, "page" if path == only else "true" if inside else None))
    return tag("nav", tag("ul", *places), aria_label="Open items")


def asset(links: Links, name: str) -> str:
    """The address of a shared file; served, it carries a mark of the content, so that it may be kept for ever."""
    return links.asset(name if links.static else f"{assets_mark()}/{name}")


@cache
def assets() -> Mapping[str, bytes]:
    """Every shared file by its name. What is not in here cannot be asked for."""
    found: dict[str, bytes] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{prefix}{entry.name}/")
            else:
                found[prefix + entry.name] = entry.read_bytes()

    walk(files("kace.view").joinpath("assets"), "")
    styles = sorted(
        (name for name in found if name.endswith(".css") and "/" not in name), key=lambda n: n != FIRST_STYLE
    )
    found[STYLE] = b"\n".join(found.pop(name) for name in styles)
    return dict(sorted(found.items()))


@cache
def assets_mark() -> str:
    """Changes whenever a shared file does."""
    digest = hashlib.sha256()
    for name, content in assets().items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def _head(page: Page, links: Links, live: float | None) -> Html:
    maths = 'class="math"' in page.body
    styles = [*([MATHS_STYLE] if maths else []), STYLE]
    scripts = [*(MATHS_SCRIPTS if maths else ()), SCRIPT]
    policy = tag("meta", http_equiv="Content-Security-Policy", content=FILE_POLICY) if links.static else Html("")
    again = tag("noscript", tag("meta", http_equiv="refresh", content=math.ceil(live))) if live else Html("")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        policy,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="same-origin"),
        tag("title", f"{page.title} · kace"),
        tag("link", rel="icon", href=asset(links, "icon.svg"), type="image/svg+xml"),
        *(tag("link", rel="stylesheet", href=asset(links, name)) for name in styles),
        *(tag("script", src=asset(links, name), defer="") for name in scripts),
        again,
    )


def _nav_link(name: str, address: str, current: str | None) -> Html:
    return tag("li", tag("a", name, href=address, aria_current=current))


def _crumbs(page: Page, links: Links) -> Html:
    if not page.crumbs:
        return Html("")
    steps = [tag("li", tag("a", crumb.name, href=links.to(crumb.path))) for crumb in page.crumbs]
    return tag(
        "nav", tag("ol", *steps, tag("li", page.title, aria_current="page")), class_="crumbs", aria_label="Way here"
    )


def _foot(links: Links) -> Html:
    keys = tag("span", "Press ", tag("kbd", "?"), " for the keys.", class_="keys-hint", hidden="")
    kind = "Written by kace view." if links.static else "Served by kace view."
    return join([tag("span", kind), keys])
