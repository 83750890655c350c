"""Two runs, or two trees, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from kace.evaluation.compare import Comparison, p_text
from kace.evaluation.metrics import Metrics
from kace.evaluation.plots import NARROW, WIDE, Plot
from kace.plots.picture import inline
from kace.view.compare_table import side_by_side
from kace.view.compare_work import LISTED, Changed, Pair, pair_of
from kace.view.diff_page import diff_page
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.run_index import RunIndex
from kace.view.shelf import Item, Kind, Shelf
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, folded, table, tile
from kace.words import counted, points

PATIENCE = 0.4
"""Seconds that a page waits for runs to be read, so that those of small runs come at once."""
OTHERS = 12
"""Other runs that a page offers, and pages of a run that an export writes."""


def run_against(ask: Ask) -> Page:
    """A run held against another."""
    ours, theirs = ask.parts["run"], ask.parts["other"]
    if ours == theirs:
        raise NotHere("a run is not compared with itself")
    title = f"{ours} against {theirs}"
    crumbs = (Crumb("Home", "/"), Crumb(ours, path_of("run", ours)))
    runs = {name: ask.shelf.run(name) for name in (ours, theirs)}
    if unread := _unread(runs, static=ask.links.static):
        return Page(title, _wait(title, unread), crumbs, refresh=1.0)
    found = pair_of((ours, runs[ours]), (theirs, runs[theirs]), patience=None if ask.links.static else 0.25)
    if found.error:
        raise found.error
    if found.value is None:
        return Page(title, _wait(title, [tag("p", f"{found.words or 'Waiting for a turn'}.")]), crumbs, refresh=1.0)
    growing = any(index.going for index in runs.values())
    refresh = None if found.fresh and not growing else 5.0
    return Page(title, _body(ask, found.value, fresh=found.fresh), crumbs, refresh=refresh)


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """The comparisons of a run or a tree with the others that its page offers."""
    between = {"run": "against", "tree": "diff"}.get(item.kind)
    if between:
        yield from (path_of(item.kind, item.name, between, other) for other in others(shelf, item.kind, item.name))


def others(shelf: Shelf, kind: Kind, name: str) -> tuple[str, ...]:
    """The items that one of a kind is offered to be compared with: a learner's runs with each other, else any."""
    items = shelf.items(kind)
    own = next((item.path.parent for item in items if item.name == name), None)
    near = sorted((item for item in items if item.name != name), key=lambda item: item.path.parent != own)
    return tuple(item.name for item in near[:OTHERS])


def _unread(runs: dict[str, RunIndex], *, static: bool) -> list[Html]:
    """What is still to be read before two runs can be compared."""
    if static:
        for index in runs.values():
            index.wait()
        return []
    until = time.monotonic() + PATIENCE
    waiting = [name for name, index in runs.items() if not index.catch_up(max(0.0, until - time.monotonic()))]
    return [_reading(name, runs[name]) for name in waiting]


def _reading(name: str, index: RunIndex) -> Html:
    read, about = index.progress
    said = f"{name}: {read:,} of about {counted(about, 'solve')} read" if about else f"{name}: its turn comes next"
    bar = tag("progress", value=read if about else None, max=about or None, aria_label=said)
    return tag("p", tag("span", said), bar, class_="under-way")


def _wait(title: str, parts: Iterable[Html]) -> Html:
    return tag(
        "section",
        tag("p", "Two runs side by side", class_="eyebrow"),
        tag("h1", title),
        *parts,
        tag("p", "The page comes by itself as soon as it is there.", class_="note"),
        class_="empty",
        aria_live="polite",
    )


def _body(ask: Ask, pair: Pair, *, fresh: bool) -> Html:
    comparison = pair.comparison
    return join(
        (
            _header(ask, pair, fresh=fresh),
            tag("div", *_tiles(pair), class_="tiles"),
            _figure(pair.plot("difference")) if comparison else Html(""),
            _changes(ask, pair, comparison) if comparison else Html(""),
            tag("section", tag("h2", "Side by side"), side_by_side(pair)),
            _section(pair.plot("accuracy-against-calls")),
            _section(pair.plot("exits-by-difficulty")),
            _made(pair),
            _offers(ask, pair),
        )
    )


def _header(ask: Ask, pair: Pair, *, fresh: bool) -> Html:
    ours, theirs = pair.ours.name, pair.theirs.name
    comparison = pair.comparison
    said = comparison.sentence if comparison else "The two share no solve of a problem whose answer is known."
    notes = [*pair.evaluation.warnings, *(comparison.notes if comparison else ())]
    if not fresh:
        notes.append("More solves have come since; the comparison is being made again.")
    names = [tag("a", name, href=ask.links.to(path_of("run", name))) for name in (ours, theirs)]
    swap = ask.links.to(path_of("run", theirs, "against", ours))
    return tag(
        "header",
        tag("p", "Two runs side by side", class_="eyebrow"),
        tag("h1", names[0], " against ", names[1]),
        tag("p", said.replace(" %", "\u00a0%"), class_="lead"),
        *(
            [tag("ul", *(tag("li", note) for note in dict.fromkeys(notes)), class_="banner warn notes")]
            if notes
            else []
        ),
        tag("p", tag("a", f"Turn round: {theirs} against {ours}", href=swap)),
        class_="lede",
    )


def _tiles(pair: Pair) -> Iterator[Html]:
    for arm in (pair.ours, pair.theirs):
        yield _accuracy(arm)
    comparison = pair.comparison
    if comparison:
        low, high = comparison.interval
        yield tile(points(comparison.difference), f"points of difference, {points(low)} to {points(high)}")
        word = "can be told apart" if comparison.distinguishable else "cannot be told apart at this n"
        yield tile(p_text(comparison.adjusted), f"{comparison.test}: {word}")


def _accuracy(arm: Metrics) -> Html:
    if arm.accuracy is None or arm.wilson is None:
        return tile("–", f"{arm.name}: no answer is known")
    seeds = f" × {len(arm.seeds)}" if len(arm.seeds) > 1 else ""
    return tile(f"{arm.accuracy:.1%}", f"{arm.name}, n = {arm.problems:,}{seeds}, {_percents(arm.wilson)}")


def _changes(ask: Ask, pair: Pair, comparison: Comparison) -> Html:
    """The problems behind the difference, each leading to where it can be seen."""
    gained = _list(ask, pair, "gained", len(comparison.gained), pair.gained)
    lost = _list(ask, pair, "lost", len(comparison.lost), pair.lost)
    return tag(
        "section",
        tag("h2", "Gained and lost"),
        tag(
            "p",
            f"Problems that {pair.ours.name} gets right more often than {pair.theirs.name}, and less.",
            class_="note",
        ),
        tag("div", gained, lost, class_="split"),
    )


def _list(ask: Ask, pair: Pair, change: str, total: int, shown: Sequence[Changed]) -> Html:
    colour = "good" if change == "gained" else "bad"
    title = tag("h3", f"{change[:1].upper()}{change[1:]} ", badge(f"{total:,}", colour if total else "plain"))
    if not total:
        return tag("div", title, tag("p", "None.", class_="note"))
    items = [tag("li", _problem(ask, pair, each), data_row="") for each in shown]
    path = path_of("run", pair.ours.name)
    every = ask.links.to(path, against=pair.theirs.name, change=change)
    words = f"All {total:,} in a table" if total > LISTED else "In a table"
    more = Html("") if ask.links.static else tag("p", tag("a", words, href=every))
    rest = tag("p", f"and {total - len(shown):,} more", class_="note") if total > len(shown) else Html("")
    return tag("div", title, tag("ul", *items, class_="gained-lost"), rest, more)


def _problem(ask: Ask, pair: Pair, each: Changed) -> Html:
    """A problem's name and its two solves."""
    share = f" {points(each.by, digits=0)}" if len(pair.ours.seeds) > 1 else ""
    here, there = (
        ask.links.to(path_of("run", arm.name, "problem", each.problem, str(each.seed)))
        for arm in (pair.ours, pair.theirs)
    )
    return join(
        (
            tag("a", each.name, href=here),
            tag("span", share, class_="muted num"),
            tag("a", pair.theirs.name, href=there, class_="other", title=f"{each.name} in {pair.theirs.name}"),
        )
    )


def _made(pair: Pair) -> Html:
    """How the runs were made, as far as it differs."""
    if not pair.differences:
        return Html("")
    heads = ("Setting", pair.ours.name, pair.theirs.name)
    rows = ((tag("span", each.name, class_="id"), each.ours, each.theirs) for each in pair.differences)
    listed = table(heads, rows)
    return tag(
        "section", tag("h2", "What differs in how they were made"), folded("Settings", listed, len(pair.differences))
    )


def _offers(ask: Ask, pair: Pair) -> Html:
    names = [name for name in others(ask.shelf, "run", pair.ours.name) if name != pair.theirs.name]
    if not names:
        return Html("")
    chips = [
        tag("li", tag("a", name, href=ask.links.to(path_of("run", pair.ours.name, "against", name)), class_="chip"))
        for name in names
    ]
    return tag("section", tag("h2", f"{pair.ours.name} against another run"), tag("ul", *chips, class_="chips"))


def _section(plot: Plot | None) -> Html:
    return tag("section", tag("h2", plot.title), _figure(plot)) if plot else Html("")


def _figure(plot: Plot | None) -> Html:
    """A drawing in two widths, of which the screen shows one."""
    if plot is None:
        return Html("")
    drawn = (inline(plot.draw(width), f"plot {name}") for width, name in ((WIDE, "wide"), (NARROW, "narrow")))
    return tag("figure", *drawn, tag("figcaption", plot.caption.replace(" %", "\u00a0%")))


def _percents(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.1%} to {interval[1]:.1%}"


ROUTES = (Route("/run/{run}/against/{other}", run_against), Route("/tree/{tree}/diff/{other}", diff_page))
