"""Long lists a page at a time; in a file, where nothing can be asked for, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kace.view.page import Ask
from kace.web.markup import Html, tag

T = TypeVar("T")

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """The rows of one page of a list."""

    rows: Sequence[T]
    number: int
    """Of the page, from 1."""
    pages: int
    start: int
    """Rows before these."""
    total: int


def part_of(rows: Sequence[T], ask: Ask, size: int) -> Part[T]:
    """The page that the query asks for; the nearest one there is, where it asks for another."""
    if ask.links.static:
        return Part(rows, 1, 1, 0, len(rows))
    pages = max(1, -(-len(rows) // size))
    asked = ask.query.get("page", "1")
    number = min(pages, max(1, int(asked))) if asked.isascii() and asked.isdigit() and len(asked) <= _DIGITS else 1
    start = (number - 1) * size
    return Part(rows[start : start + size], number, pages, start, len(rows))


def pager(part: Part[T], ask: Ask, path: str, **query: str | None) -> Html:
    """Links to the pages beside this one; nothing where there is one page only."""
    if part.pages == 1:
        return Html("")
    before = tag("a", "Previous", href=_to(ask, path, part.number - 1, query), rel="prev") if part.number > 1 else None
    after = (
        tag("a", "Next", href=_to(ask, path, part.number + 1, query), rel="next") if part.number < part.pages else None
    )
    said = f"{part.start + 1:,} to {part.start + len(part.rows):,} of {part.total:,}"
    return tag("nav", *filter(None, (before, tag("span", said), after)), class_="pager", aria_label="Pages")


def _to(ask: Ask, path: str, number: int, query: dict[str, str | None]) -> str:
    return ask.links.to(path, **query, page=number if number > 1 else None)
