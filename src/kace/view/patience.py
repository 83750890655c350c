"""Pages of large trees: drawn in a thread, with a page in between where that takes longer than a reader should wait.

Reading a tree of a hundred thousand cards takes two seconds. Whoever asks for it sees at once that it is being read,
and then the page itself. A page that was asked for again while it is drawn is drawn once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Hashable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING

from kace.view.page import Ask, Crumb, Page, View
from kace.web.markup import tag

if TYPE_CHECKING:
    from kace.view.shelf import Item

SMALL = 8_000_000
"""Bytes of a tree that is read in no time: six thousand cards or so."""
PATIENCE = 0.1
"""Seconds that a reader waits for the page itself."""
AGAIN = 0.6
"""Seconds after which the page in between looks again; without script, the next whole second."""
KEPT = 10.0
"""Seconds that a page, once drawn, waits for its reader; later it is drawn anew, since the tree may have changed."""


@dataclass(slots=True)
class _Drawn:
    """A page that is being drawn, or that waits to be fetched."""

    page: Future[Page] = field(default_factory=Future)
    fetch_until: float = math.inf
    """Until then it waits for its reader."""


_waiting: dict[Hashable, _Drawn] = {}
_lock = threading.Lock()


def large(tree: Item) -> bool:
    """Whether reading a tree may take longer than a reader should wait."""
    try:
        return (tree.path / "cards.jsonl" if tree.path.is_dir() else tree.path).stat().st_size > SMALL
    except OSError:  # the view says what is wrong
        return False


def patient(view: View) -> View:
    """The view of a tree, which gives a page in between where its own takes too long. An export waits for its own."""

    @wraps(view)
    def asked(ask: Ask) -> Page:
        if ask.links.static or not large(ask.shelf.item("tree", ask.parts["tree"])):
            return view(ask)
        key = (view, id(ask.shelf), tuple(sorted(ask.parts.items())), tuple(sorted(ask.query.items())))
        drawn = _drawn(key, view, ask)
        if not wait([drawn.page], PATIENCE).done:
            return _between(ask)  # what is being drawn waits for the next look
        with _lock:
            _waiting.pop(key, None)
        return drawn.page.result()

    return asked


def _drawn(key: Hashable, view: View, ask: Ask) -> _Drawn:
    now = time.monotonic()
    with _lock:
        for old in [name for name, each in _waiting.items() if each.fetch_until < now]:
            del _waiting[old]
        found = _waiting.get(key)
        if found is None:
            found = _waiting[key] = _Drawn()
            threading.Thread(target=_draw, args=(found, view, ask), name="kace-page", daemon=True).start()
        return found


def _draw(drawn: _Drawn, view: View, ask: Ask) -> None:
    try:
        page = view(ask)
    except BaseException as error:  # whoever asked hears of it
        drawn.fetch_until = time.monotonic() + KEPT
        drawn.page.set_exception(error)
    else:
        drawn.fetch_until = time.monotonic() + KEPT
        drawn.page.set_result(page)


def _between(ask: Ask) -> Page:
    name = ask.parts["tree"]
    body = tag(
        "section",
        tag("p", "One moment", class_="eyebrow"),
        tag("h1", f"Reading {name}"),
        tag("p", "A large tree takes a few seconds the first time. The page comes by itself.", role="status"),
        tag("progress"),
        class_="empty",
    )
    return Page(f"Reading {name}", body, (Crumb("Home", "/"),), refresh=AGAIN)
