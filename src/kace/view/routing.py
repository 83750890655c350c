"""Which view answers which path. Needs no server, so that an export makes the very pages that are served.

A path is matched part by part as it was sent, so that an encoded slash stays inside its part.
"""

from __future__ import annotations

import importlib
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from kace.errors import KaceError
from kace.redact import redact
from kace.view.home import ROUTES as HOME
from kace.view.links import Links
from kace.view.page import Ask, Crumb, NotHere, Page, Route, View
from kace.web.markup import tag

if TYPE_CHECKING:
    from kace.view.shelf import Shelf

log = logging.getLogger(__name__)

AREAS = ("tree_pages", "run_pages", "compare_pages", "problem_page", "learner_pages", "inbox_pages")
"""In the order in which an export takes their pages."""
MAX_PART = 400
NO_PAGE = "There is no such page."


@dataclass(frozen=True, slots=True)
class Match:
    """A view, and the parts of the path that its pattern names."""

    pattern: str
    view: View
    parts: Mapping[str, str]


class Router:
    """Patterns and their views. A part that is spelled out goes before one that is named."""

    def __init__(self, routes: Sequence[Route]) -> None:
        split = [([part for part in route.pattern.split("/") if part], route) for route in routes]
        self._routes = sorted(split, key=lambda each: [part.startswith("{") for part in each[0]])

    def match(self, path: str) -> Match:
        """The view of a path as it was sent; `NotHere` where no pattern fits."""
        parts = path_parts(path)
        for pattern, route in self._routes:
            pairs = list(zip(pattern, parts, strict=False))
            if len(pattern) == len(parts) and all(want.startswith("{") or want == part for want, part in pairs):
                named = {want[1:-1]: part for want, part in pairs if want.startswith("{")}
                return Match(route.pattern, route.view, named)
        raise NotHere(NO_PAGE)

    def page(self, path: str, shelf: Shelf, links: Links, query: Mapping[str, str]) -> Page:
        """The page of a path, or the page that says why there is none."""
        try:
            found = self.match(path)
            return found.view(Ask(shelf, links, found.parts, query))
        except Exception as error:  # whatever a view trips over becomes an answer here
            return failed_page(error, links)


def all_routes() -> tuple[Route, ...]:
    """The routes of every area."""
    return (*HOME, *(route for area in areas() for route in area.ROUTES))


def areas() -> Iterator[ModuleType]:
    """The modules that make pages."""
    for name in AREAS:
        yield importlib.import_module(f"kace.view.{name}")


def path_parts(path: str) -> list[str]:
    """The parts of a path as sent, each decoded once; `NotHere` for what no page of ours is called."""
    parts = []
    for piece in path.strip("/").split("/") if path.strip("/") else []:
        try:
            part = unquote_to_bytes(piece).decode("utf-8", "strict")
        except UnicodeDecodeError:
            raise NotHere(NO_PAGE) from None
        if not part or part in {".", ".."} or len(part) > MAX_PART or not part.isprintable():
            raise NotHere(NO_PAGE)
        parts.append(part)
    return parts


def failed_page(error: Exception, links: Links) -> Page:
    """The page for what a view raised."""
    if isinstance(error, NotHere):
        return error_page(links, 404, "Not here", error.message, error.fix)
    if isinstance(error, KaceError):
        return error_page(links, 500, "This cannot be shown", redact(error.message), redact(error.fix))
    log.error("%s", redact("".join(traceback.format_exception(error))))
    return error_page(links, 500, "Something went wrong here", "The page could not be made. The terminal says more.")


def error_page(links: Links, status: int, title: str, *sentences: str) -> Page:
    """A page that says what is wrong, and leads on."""
    body = tag(
        "section",
        tag("p", str(status), class_="eyebrow"),
        tag("h1", title),
        *(tag("p", _sentence(words)) for words in sentences if words),
        tag("p", tag("a", "What is open", href=links.to("/"))),
        class_="empty",
    )
    return Page(title, body, (Crumb("Home", "/"),), status=status)


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")
