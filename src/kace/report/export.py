"""A static export: the pages of the app, from the first one along its links, as files that need no server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import starmap
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Match

from kace.errors import KaceError, UsageError
from kace.files import cannot_write, inside, read_plain
from kace.report.app import create_app, document, missing
from kace.report.page import Links, Page, address_of, assets, file_name
from kace.report.workspace import Workspace

if TYPE_CHECKING:
    from starlette.applications import Starlette

LEFT_OUT = "/left-out"  # the page that stands for those that were left out
PAGES_OF_ITEM = 2_500
PAGES = 20_000
# pages that are worth another process, and that are given to one at a time
MANY = 150
CHUNK = 25
CAPS = (
    f"An export holds at most {PAGES_OF_ITEM:,} pages of one item and {PAGES:,} in all, and nothing that depends on a "
    "search or a filter. To see everything, open the original with: kace view"
)
LIST = "kace-view.json"  # names the files that an export wrote, so that the next one takes away those it does not
_FILE = re.compile(rb"([A-Za-z0-9._-]+\.html)(?:#[A-Za-z0-9._~-]+)?")
_OURS = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._-]*|assets(?:/[A-Za-z0-9_][A-Za-z0-9._-]*){1,3}"
)


@dataclass(slots=True)
class Exported:
    """What is written, found by following links. A page counts to the item that its path begins with."""

    index: Path
    paths: list[str] = field(default_factory=lambda: ["/"])
    files: dict[str, list[str]] = field(
        default_factory=dict
    )  # what each file has to hold: a page, or solves
    left_out: list[str] = field(
        default_factory=list
    )  # a sentence for each item of which not every page was written
    _known: dict[str, bool] = field(default_factory=lambda: {"/": True, LEFT_OUT: True})
    _of_item: Counter[str] = field(default_factory=Counter)

    def takes(self, path: str) -> bool:
        """Whether the page that a link leads to is written: those of an item that are linked first are."""
        item = "/".join(path.split("/")[:3])
        if path not in self._known:
            file = self.files.get(file_name(path), [])
            room = self._of_item[item] < PAGES_OF_ITEM
            taken = self._known[path] = len(self.paths) < PAGES and (bool(file) or room)
            self._of_item[item] += taken and not file
            if taken:
                self.paths.append(path)
                self.files.setdefault(file_name(path), file).append(path)
            self.lack(
                ""
                if taken
                else f"Of {_name(item)}, the first {self._of_item[item]:,} pages are here."
            )
        return self._known[path]

    def lack(self, sentence: str) -> None:
        """Something is missing."""
        if sentence and sentence not in self.left_out:
            self.left_out.append(sentence)


def export(
    workspace: Workspace,
    folder: Path,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> Exported:
    """Write the pages of a workspace into a folder, up to the caps; what is left out is said, on the pages too."""
    before = _earlier(folder)
    written = {LIST}
    done = Exported(folder / "index.html")
    draw = _Draw(workspace)

    def write(name: str, content: bytes) -> None:
        _write(folder, name, content)
        written.add(name)

    def write_list(names: set[str]) -> None:
        _write(folder, LIST, json.dumps(sorted(names), indent=0).encode() + b"\n")

    def pages() -> None:
        led(draw("/"))
        at = 1
        while new := dict.fromkeys(
            map(file_name, done.paths[at:])
        ):  # which lead to the next ones
            at = len(done.paths)
            wave = [sorted(done.files[name]) for name in new]
            with _drawing(draw, workspace.roots, len(wave)) as drawings:
                for paths, page in zip(wave, drawings(wave), strict=True):
                    if page.status >= 500:
                        done.lack(
                            f"{_name(paths[0]).capitalize()} cannot be read in full: its page says why."
                        )
                    write(file_name(paths[0]), led(page))
                    if len(written) % 500 == 0:
                        say(f"export       {len(written):,} files so far")
        told = {"status": "Left out", "sentences": [CAPS, *done.left_out]}
        about = Page("error.html", "This page was left out", told)
        write(file_name(LEFT_OUT), document(about, draw.app.state.link).encode())
        draw.app.state.left_out = done.left_out
        write(
            "index.html", led(draw("/"))
        )  # it says what is left out, so it is written last

    def led(page: Drawn) -> bytes:
        """A page with its links to pages that are left out turned to the one that says so."""
        away = {
            address_of(path).encode() for path in page.links if not done.takes(path)
        }
        there = file_name(LEFT_OUT).encode()
        return (
            _FILE.sub(
                lambda at: there if away & {at[0], at[1]} else at[0], page.content
            )
            if away
            else page.content
        )

    write_list(
        written | before
    )  # first, so that an export that is cut short is known as one
    try:
        for name, content in assets().items():
            write(f"assets/{name}", content)
        with draw.runner:
            pages()
    except BaseException:
        write_list(written | before)
        raise
    for name in before - written:
        _place(folder, name).unlink(missing_ok=True)
    write_list(written)
    return done


class Drawn(NamedTuple):
    """A page as it is asked for: its status, its bytes, and the paths it leads to, each once."""

    status: int
    content: bytes
    links: tuple[str, ...]


class _Draw:
    """Draws the pages of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.links = list[str]()
        self.runner = asyncio.Runner()
        self.app = create_app(
            workspace, link=Links(static=True, noted=self.links.append)
        )
        for item in workspace.items("run"):
            with contextlib.suppress(KaceError):  # its page says what is wrong
                workspace.run(item.name).wait()

    def __call__(self, path: str, *others: str) -> Drawn:
        """The page of a path; that of a solve with others of the same problem."""
        self.links.clear()
        also = " ".join(
            f"{run}/{seed}"
            for _, _, run, _, _, seed in (other.split("/") for other in others)
        )
        status, content = self.runner.run(
            _asked(self.app, path, urlencode({"with": also}))
        )
        return Drawn(status, content, tuple(dict.fromkeys(self.links)))


@cache
def _draw_of(roots: tuple[Path, ...]) -> _Draw:
    """The one of a process that draws for another."""
    return _Draw(Workspace(roots))


def _drawn(roots: tuple[Path, ...], paths: Sequence[str]) -> Drawn:
    return _draw_of(roots)(*paths)


@contextlib.contextmanager
def _drawing(
    draw: _Draw, roots: tuple[Path, ...], pages: int
) -> Iterator[Callable[[Sequence[Sequence[str]]], Iterator[Drawn]]]:
    """Draws pages in their order: a few here, many on all cores."""
    workers = min(os.cpu_count() or 1, pages // MANY)
    if workers < 2:
        yield partial(starmap, draw)
        return
    spawned = get_context(
        "spawn"
    )  # threads of ours may hold locks that a fork would keep shut
    ignoring = (
        signal.SIGINT,
        signal.SIG_IGN,
    )  # whoever is asked to stop ends these processes
    with ProcessPoolExecutor(workers, spawned, signal.signal, ignoring) as pool:
        try:
            yield partial(pool.map, partial(_drawn, roots), chunksize=CHUNK)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


async def _asked(app: Starlette, path: str, query: str) -> tuple[int, bytes]:
    """What the app answers to a path, without its guard."""
    scope = {
        "type": "http",
        "app": app,
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [],
    }
    for found, matched in (route.matches(scope) for route in app.routes):
        if found is Match.FULL:
            response = await matched["endpoint"](Request({**scope, **matched}))
            return response.status_code, response.body
    return 404, bytes(
        missing(Request(scope), HTTPException(404)).body
    )  # a name that no address can have


def _name(path: str) -> str:
    """An item as people call it, from a path of its pages."""
    return " ".join(path.split("/")[1:3])


def _earlier(folder: Path) -> set[str]:
    """What an earlier export wrote here; `UsageError` for a folder that holds anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return set()
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if isinstance(names := json.loads(read_plain(folder / LIST)), list):
            # Only names as we write them, so that nothing else is ever taken away.
            return {
                name
                for name in names
                if isinstance(name, str) and _OURS.fullmatch(name)
            }
    raise UsageError(
        f"{folder} is not empty, and no export of ours", fix="choose another folder"
    )


def _place(folder: Path, name: str) -> Path:
    """Where a file of an export lies, which is in the folder."""
    *above, last = name.split("/")
    return inside(folder, *above) / last


def _write(folder: Path, name: str, content: bytes) -> None:
    """Put a file in place whole. It is not synced: an export can be made again, and thousands of syncs take minutes."""
    path = _place(folder, name)
    temp = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temp.unlink(missing_ok=True)
        with temp.open("xb") as file:
            file.write(content)
        temp.replace(path)
    except BaseException as error:  # Ctrl-C too: no litter, and the old file untouched
        with contextlib.suppress(OSError):
            temp.unlink()
        raise (
            cannot_write(path, error) if isinstance(error, OSError) else error
        ) from None
