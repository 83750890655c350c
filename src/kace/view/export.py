"""A static export: the same pages as files of one folder, which a browser opens without a server.

Every file is written whole or not at all, the first page last. A later export into the same folder replaces what an
earlier one wrote and touches nothing else there.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kace.errors import KaceError, UsageError
from kace.io import cannot_write
from kace.redact import redact
from kace.view.links import Links, file_name, path_of
from kace.view.page import Crumb, Page
from kace.view.routing import Router, all_routes, areas
from kace.view.shelf import KINDS, Item, Shelf
from kace.view.shell import assets, document, nav_of
from kace.web.markup import Html, join, tag

PAGES_OF_ITEM = 2_500
PAGES = 20_000
TURN = 50
"""Pages of an item before it is the next one's turn."""
LIST = "kace-view.json"
"""Names the files that an export wrote, so that the next one can take away those it does not write again."""
LEFT_OUT = "/left-out"
_OURS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*|assets(?:/[A-Za-z0-9_][A-Za-z0-9._-]*){1,3}")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    index: Path
    pages: int
    left_out: tuple[str, ...]
    """A sentence for each item of which not every page was written."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The pages to write, the home page first."""

    paths: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileLinks(Links):
    """Links among files. A page that was left out is led to by one that says so."""

    known: frozenset[str] = frozenset()

    def to(self, path: str, **query: str | int | None) -> str:
        """The file of a page, or of the page about those that are missing."""
        return file_name(path if path in self.known else LEFT_OUT)


def export(shelf: Shelf, folder: Path, *, say: Say = lambda line: None) -> Exported:
    """Write the pages of the shelf into a folder, up to the caps; what is left out is said, on the pages too."""
    before = _earlier(folder)
    plan = plan_of(shelf)
    links = FileLinks(static=True, known=frozenset((*plan.paths, LEFT_OUT)))
    names = {LIST, *(f"assets/{name}" for name in assets()), *map(file_name, (*plan.paths, LEFT_OUT))}
    _write_list(folder, names | before)  # first, so that an export that is cut short is known as one
    for name, content in assets().items():
        _write(folder, f"assets/{name}", content)
    _write_page(shelf, folder, links, LEFT_OUT, _left_out_page(plan))
    router = Router(all_routes())
    for number, path in enumerate(reversed(plan.paths), start=1):  # the first page last
        page = router.page(path, shelf, links, {})
        page = _with_note(page, plan) if path == "/" else page
        _write_page(shelf, folder, links, path, page)
        if number % 500 == 0:
            say(f"export       {number:,} of {len(plan.paths):,} pages")
    for name in before - names:
        (folder / name).unlink(missing_ok=True)
    _write_list(folder, names)
    return Exported(folder / "index.html", len(plan.paths), plan.left_out)


@dataclass(slots=True)
class _Queue:
    """The pages of an item, taken a few at a time."""

    item: Item
    paths: Iterator[str]
    taken: int = 0
    done: bool = False
    broken: str = ""
    """Why not all of its pages are known."""

    def next(self, most: int) -> list[str]:
        """Some more pages."""
        found: list[str] = []
        try:
            for path in islice(self.paths, min(most, PAGES_OF_ITEM - self.taken)):
                found.append(path)
        except KaceError as error:
            self.broken = error.message
        self.taken += len(found)
        self.done = bool(self.broken) or not found or self.taken == PAGES_OF_ITEM
        return found

    def left_out(self) -> str:
        """What is missing in words; empty where nothing is."""
        name = f"{self.item.kind} {self.item.name}"
        if self.broken:
            return f"{name[0].upper()}{name[1:]} cannot be read in full: {redact(self.broken)}."
        with contextlib.suppress(KaceError):
            if next(self.paths, None) is None:
                return ""
        return f"Of {name}, the first {self.taken:,} pages are here."


def plan_of(shelf: Shelf) -> Plan:
    """Which pages are written: of every item the first ones, in turns, so that a large item leaves room for others."""
    queues = [_Queue(item, _paths(shelf, item)) for kind in KINDS for item in shelf.items(kind)]
    chosen = {"/": None, **{path_of(queue.item.kind, queue.item.name): None for queue in queues}}
    while len(chosen) < PAGES and not all(queue.done for queue in queues):
        for queue in queues:
            if not queue.done:
                chosen.update(dict.fromkeys(queue.next(min(TURN, PAGES - len(chosen)))))
    return Plan(tuple(chosen), tuple(filter(None, (queue.left_out() for queue in queues))))


def _paths(shelf: Shelf, item: Item) -> Iterator[str]:
    if item.kind == "run":
        shelf.run(item.name).wait()
    for area in areas():
        yield from area.paths(shelf, item)


def _earlier(folder: Path) -> set[str]:
    """What an earlier export wrote here; `UsageError` for a folder that holds anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return set()
    try:
        names = json.loads((folder / LIST).read_bytes())
    except (OSError, ValueError):
        names = None
    if not isinstance(names, list):
        raise UsageError(f"{folder} is not empty, and no export of ours", fix="choose another folder")
    # Only names as we write them, so that nothing else is ever taken away.
    return {name for name in names if isinstance(name, str) and _OURS.fullmatch(name)}


def _write_list(folder: Path, names: set[str]) -> None:
    _write(folder, LIST, json.dumps(sorted(names), indent=0).encode() + b"\n")


def _write(folder: Path, name: str, content: bytes) -> None:
    """Put a file in place whole. It is not synced: an export can be made again, and thousands of syncs take minutes."""
    path = folder / name
    temp = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temp.write_bytes(content)
        temp.replace(path)
    except BaseException as error:  # Ctrl-C too: no litter, and the old file untouched
        with contextlib.suppress(OSError):
            temp.unlink()
        raise (cannot_write(path, error) if isinstance(error, OSError) else error) from None


def _write_page(shelf: Shelf, folder: Path, links: Links, path: str, page: Page) -> None:
    text = document(page, links, nav=nav_of(shelf, links, path))
    _write(folder, file_name(path), text.encode())


def _with_note(page: Page, plan: Plan) -> Page:
    if not plan.left_out:
        return page
    note = tag("div", *(tag("p", line) for line in plan.left_out), class_="banner info")
    return Page(page.title, join([note, page.body]), page.crumbs)


def _left_out_page(plan: Plan) -> Page:
    why = (
        f"An export holds at most {PAGES_OF_ITEM:,} pages of one item and {PAGES:,} in all, and nothing that depends "
        "on a search or a filter. To see everything, open the original with: kace view"
    )
    lines = [tag("li", line) for line in plan.left_out]
    body = tag(
        "section",
        tag("h1", "This page was left out"),
        tag("p", why),
        tag("ul", *lines, class_="plain") if lines else Html(""),
        class_="empty",
    )
    return Page("Left out", body, (Crumb("Home", "/"),))
