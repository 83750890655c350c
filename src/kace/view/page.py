"""What a page is before it is a document: a title, where it stands, and what it says.

Views make pages; only the shell turns one into HTML, for the server and for a static export alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kace.errors import KaceError
from kace.web.markup import Html

if TYPE_CHECKING:
    from kace.view.links import Links
    from kace.view.shelf import Shelf


class NotHere(KaceError):
    """A page, or what it is about, that does not exist. The server answers 404."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step of the way to a page: its name, and its canonical path."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page without its frame."""

    title: str
    body: Html
    crumbs: tuple[Crumb, ...] = ()
    """From the home page down, without the page itself."""
    refresh: float | None = None
    """Seconds after which a served page looks for news; a static one never does."""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Ask:
    """What was asked for: the parts of the path that a pattern names, the query, and how links are made."""

    shelf: Shelf
    links: Links
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


View = Callable[[Ask], Page]


@dataclass(frozen=True, slots=True)
class Route:
    """A pattern such as `/tree/{tree}/card/{card}` and the view that answers it."""

    pattern: str
    view: View
