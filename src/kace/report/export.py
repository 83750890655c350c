"""A static export: the pages of a workspace as files that need no server."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from kace.errors import KaceError, UsageError, redact
from kace.files import cannot_write, inside, read_plain
from kace.report import pages
from kace.report.inbox import Inbox
from kace.report.render import (
    LEFT_OUT,
    Links,
    Page,
    assets,
    document,
    error_page,
    file_name,
    path_of,
)
from kace.report.workspace import Workspace

LIST = "kace-view.json"  # names the files of an export, for the next one
CARDS = 5_000  # cards of a tree that have pages
OURS = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._-]*|assets(?:/[A-Za-z0-9_][A-Za-z0-9._-]*){1,3}"
)
CAPS = (
    f"An export holds the pages of at most {pages.IN_FILES:,} solves of a run and"
    f" {CARDS:,} cards of a tree, and nothing that depends on a search or a filter. To"
    " see everything, open the original with: kace view"
)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    index: Path
    paths: list[str]


def export(
    workspace: Workspace,
    folder: Path,
    *,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Exported:
    """Write the pages of a workspace into a folder; the same pages, the same bytes."""
    before = _earlier(folder)
    paths = list(paths_of(workspace))
    link = Links(exported=frozenset(paths))
    names = {file_name(path) for path in paths} | {LEFT_OUT, LIST}
    names |= {f"assets/{name}" for name in assets()}
    # The list comes first, so that an export that is cut short is known as one.
    _write(folder, LIST, json.dumps(sorted(names | before), indent=0) + "\n")
    for name, content in assets().items():
        _write(folder, f"assets/{name}", content)
    for number, path in enumerate(paths, 1):
        page = _page_at(workspace, path, link)
        html = document(page, link, pages.nav(workspace, path, link))
        _write(folder, file_name(path), html)
        if number % 500 == 0:
            on_progress(f"export       {number:,} of {len(paths):,} pages")
    about = Page(
        "error.html", "Left out", {"status": "Left out", "sentences": [CAPS]}
    )
    _write(folder, LEFT_OUT, document(about, link))
    for name in before - names:
        _place(folder, name).unlink(missing_ok=True)
    _write(folder, LIST, json.dumps(sorted(names), indent=0) + "\n")
    return Exported(folder / "index.html", paths)


def paths_of(workspace: Workspace) -> Iterator[str]:
    """Iterate over the paths of the pages that an export writes."""
    yield "/"
    for item in workspace.items("tree"):
        yield path_of("tree", item.name)
        with contextlib.suppress(
            KaceError, OSError
        ):  # its page says what is wrong
            cards = list(workspace.tree(item.name).tree)[:CARDS]
            places = dict.fromkeys(
                (domain, card.difficulty_tag.value)
                for card in cards
                for domain in card.domain_tags
            )
            for place in places:
                yield path_of("tree", item.name, "cell", *place)
            for card in cards:
                yield path_of("tree", item.name, "card", card.card_id)
    for item in workspace.items("run"):
        yield path_of("run", item.name)
        with contextlib.suppress(KaceError, OSError):
            table = workspace.table(item.name)
            base = workspace.base_of(item.name)
            other = workspace.table(base) if base else None
            for name in workspace.related(item.name)[: pages.RELATED]:
                yield path_of("run", item.name, "against", name)
            for row in table.solves(sort="", limit=pages.IN_FILES, base=other):
                yield path_of(
                    "run", item.name, "problem", row.problem, str(row.seed)
                )
    for item in workspace.items("learner"):
        yield path_of("learner", item.name)
        yield path_of("learner", item.name, "proposals")
    for item in workspace.items("inbox"):
        yield path_of("inbox", item.name)
        with contextlib.suppress(KaceError, OSError):
            for entry in Inbox(item.path).entries():
                yield path_of("inbox", item.name, entry.name)


def _page_at(workspace: Workspace, path: str, link: Links) -> Page:
    parts = [unquote(part) for part in path.split("/") if part]
    try:
        return pages.page_at(workspace, parts, link=link)
    except KaceError as error:
        words = (redact(error.message), redact(error.fix))
        return error_page(500, "This cannot be shown", *words)


def _earlier(folder: Path) -> set[str]:
    """Return what an earlier export wrote here, as names that only we write.

    Raises `UsageError` for a folder that holds anything else.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return set()
    with contextlib.suppress(OSError, ValueError, RecursionError):
        names = json.loads(read_plain(folder / LIST))
        if isinstance(names, list):
            return {name for name in map(str, names) if OURS.fullmatch(name)}
    raise UsageError(
        f"{folder} is not empty, and no export of ours",
        fix="choose another folder",
    )


def _place(folder: Path, name: str) -> Path:
    *above, last = name.split("/")
    return inside(folder, *above) / last


def _write(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file in place of any other, without following links.

    It is not synced to the disk: an export can be made again.
    """
    path = _place(folder, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(
                content.encode() if isinstance(content, str) else content
            )
    except OSError as error:
        raise cannot_write(path, error) from None
