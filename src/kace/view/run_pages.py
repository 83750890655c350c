"""The page of a run: its figures, where its solves left the ladder, and every solve in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kace.evaluation.arm import Row
from kace.view.links import path_of
from kace.view.neighbours import Neighbour, neighbours
from kace.view.page import Ask, Crumb, Page, Route
from kace.view.run_changes import Changes, changes_of
from kace.view.run_charts import charts
from kace.view.run_header import header
from kace.view.run_index import RunIndex
from kace.view.run_query import Choice, chosen, selected
from kace.view.run_table import Sheet, filters, solves_table
from kace.web.markup import Html, join, tag

if TYPE_CHECKING:
    from kace.view.shelf import Item, Shelf

IN_FILES = 2_000
"""Solves that a static page lists; each has a page of its own beside it."""
NEWS, GROWING = 2.0, 5.0
"""Seconds after which a page looks again: while the run is being read, and while it is going on."""


def run_page(ask: Ask) -> Page:
    """A run."""
    name = ask.parts["run"]
    index = ask.shelf.run(name)
    near = neighbours(ask.shelf, name)
    if ask.links.static:
        wait_for(index, near)
    complete = index.catch_up()
    choice = Choice() if ask.links.static else Choice.of(ask.query)
    sheet = _sheet(ask, name, index, choice)
    body = join((header(ask, name, index), charts(sheet, near), _solves(ask, sheet, near)))
    reading = not complete or not all(each.index.complete for each in near)
    refresh = NEWS if reading else GROWING if index.going else None
    return Page(name, body, (Crumb("Home", "/"),), refresh)


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """The pages of a run that a static export writes; those of its solves are another area's."""
    if item.kind == "run":
        yield path_of("run", item.name)


def static_rows(index: RunIndex) -> Sequence[Row]:
    """The solves that a static page lists: wrong ones first, since nobody can ask a file for them."""
    return chosen(index.rows, Choice(sort="result"), None)[:IN_FILES]


def wait_for(index: RunIndex, near: Sequence[Neighbour]) -> None:
    """Until a run and those beside it are read: what is written once must be whole."""
    for each in (index, *(other.index for other in near)):
        each.wait()


def _sheet(ask: Ask, name: str, index: RunIndex, choice: Choice) -> Sheet:
    if ask.links.static:
        return Sheet(name, index, index.tally, choice, static_rows(index), None, ask.links)
    base = None
    if choice.against:
        base = ask.shelf.run(choice.against)
        base.catch_up()
    changes = changes_of(index, base) if base is not None else None
    return Sheet(name, index, index.tally, choice, selected(index, choice, base), changes, ask.links)


def _solves(ask: Ask, sheet: Sheet, near: Sequence[Neighbour]) -> Html:
    others = [each.name for each in near]
    others += [item.name for item in ask.shelf.items("run") if item.name not in {*others, sheet.run}][:200]
    count = f"{len(sheet.rows):,}"
    if sheet.choice.filtered:
        count += f" of {sheet.tally.solves:,}"
    note = Html("")
    if sheet.links.static and len(sheet.rows) < sheet.tally.solves:
        note = tag("p", f"The first {IN_FILES:,} are in these files, wrong ones first.", class_="note")
    elif sheet.changes is not None:
        note = tag("p", _against(ask, sheet, sheet.changes), class_="note")
    return tag(
        "section",
        tag("h2", "Solves ", tag("span", count, class_="muted num")),
        Html("") if sheet.links.static else filters(sheet, others),
        note,
        solves_table(sheet),
        id="solves",
    )


def _against(ask: Ask, sheet: Sheet, changes: Changes) -> Html:
    whole = tag("a", "Compare the two", href=ask.links.to(path_of("run", sheet.run, "against", sheet.choice.against)))
    up = tag("a", f"{len(changes.gained):,} gained", href=sheet.to(change="gained"))
    down = tag("a", f"{len(changes.lost):,} lost", href=sheet.to(change="lost"))
    return join(("Against ", tag("b", sheet.choice.against), ": ", up, ", ", down, ". ", whole, "."))


ROUTES = (Route("/run/{run}", run_page),)
