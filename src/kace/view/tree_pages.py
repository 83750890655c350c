"""The pages of a tree: its map, and the cards of one of its places."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kace.errors import KaceError
from kace.tree.card import UNIVERSAL, Difficulty, Status
from kace.view import card_page, search_page
from kace.view.atlas import Atlas, Cell, atlas_of, known_hash
from kace.view.card_rows import Listing, card_path, card_table, chosen_sort, mini_list, part_of_cards
from kace.view.change_list import latest_changes
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.paging import pager
from kace.view.patience import large, patient
from kace.view.search_page import search_form
from kace.view.tree_map import cell_path, map_legend, place_name, short, status_words, tree_map
from kace.web.markup import Html, join, tag
from kace.web.parts import tile
from kace.words import counted, points

if TYPE_CHECKING:
    from kace.tree.store import TreeStore
    from kace.tree.tree import EpistemicTree
    from kace.view.shelf import Item, Shelf

OTHERS = 12
"""Other trees that the page offers to compare with."""
NEWS, AGAIN = 60.0, 5.0
"""Seconds since the last change within which a tree counts as growing, and after which its page is renewed then."""


@patient
def tree_view(ask: Ask) -> Page:
    """A tree's map, its best and worst cards, and what changed last."""
    name = ask.parts["tree"]
    tree, store = ask.shelf.tree(name), ask.shelf.store(name)
    atlas = atlas_of(tree)
    body = [_head(ask, name, tree, store), search_form(ask.links, name, "") if len(tree) else Html("")]
    if len(tree):
        body += [_tiles(atlas), _map(ask, name, tree, atlas), _extremes(ask, name, atlas)]
    else:
        body += [_empty(), _map(ask, name, tree, atlas) if tree.domains else Html("")]
    if store is not None:
        body.append(latest_changes(ask, name, tree, store))
    body.append(_others(ask, name))
    return Page(name, join(body), (Crumb("Home", "/"),), refresh=AGAIN if store and _growing(store) else None)


@patient
def cell_view(ask: Ask) -> Page:
    """The cards of one difficulty in one domain."""
    name = ask.parts["tree"]
    tree = ask.shelf.tree(name)
    atlas = atlas_of(tree)
    cell = _cell(ask, atlas)
    status = next((status for status in Status if status.value == ask.query.get("status")), None)
    sort = chosen_sort(ask.query.get("sort"))
    chosen = [card for card in cell.cards if status is None or card.status is status]
    part, cut = part_of_cards(atlas.ordered(chosen, sort), ask)
    query = {"sort": sort if "sort" in ask.query else None, "status": status.value if status else None}
    listing = Listing(ask.links, name, cell_path(name, cell), {key: value for key, value in query.items() if value})
    title = place_name(cell.domain, cell.difficulty)
    body = [
        _cell_head(cell, tree, title),
        _statuses(cell, listing, status),
        card_table(part.rows, listing, sort=sort) if part.rows else _nothing(cell),
        pager(part, ask, listing.path, **listing.query),
        cut,
    ]
    return Page(title, join(body), (Crumb("Home", "/"), Crumb(name, path_of("tree", name))))


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """Every page of a tree that can be a file: the map, the places with cards, the cards. Search needs a server."""
    if item.kind != "tree":
        return
    tree = shelf.tree(item.name)
    yield path_of("tree", item.name)
    yield from (cell_path(item.name, cell) for cell in atlas_of(tree).cells.values() if cell.cards)
    yield from (card_path(item.name, card.card_id) for card in tree)


def warm(shelf: Shelf) -> None:
    """Read and count the large trees, for a thread beside a server that has just begun: their first pages come sooner.

    A tree that cannot be read is left for its own page to tell.
    """
    for item in shelf.items("tree"):
        if large(item):
            with suppress(KaceError):
                atlas_of(shelf.tree(item.name))


ROUTES = (
    Route("/tree/{tree}", tree_view),
    Route("/tree/{tree}/cell/{domain}/{difficulty}", cell_view),
    *card_page.ROUTES,
    *search_page.ROUTES,
)


def _head(ask: Ask, name: str, tree: EpistemicTree, store: TreeStore | None) -> Html:
    facts = [
        tag("li", tag("b", counted(len(tree), "card")), " in ", tag("b", counted(len(tree.domains), "domain"))),
        tag("li", "a file, without history")
        if store is None
        else tag("li", "generation ", tag("b", str(store.generation))),
    ]
    if store is not None:
        frozen = store.frozen_hash
        facts.append(
            tag("li", "frozen at ", tag("code", frozen[:12], title=frozen)) if frozen else tag("li", "open to change")
        )
    if digest := known_hash(tree):
        facts.append(tag("li", "content ", tag("code", digest[:12], title=digest)))
    if any(item.name == name for item in ask.shelf.items("learner")):
        facts.append(tag("li", tag("a", "how it was learned", href=ask.links.to(path_of("learner", name)))))
    return tag(
        "header", tag("p", "Tree", class_="eyebrow"), tag("h1", name), tag("ul", *facts, class_="facts"), class_="lede"
    )


def _tiles(atlas: Atlas) -> Html:
    whole = atlas.whole
    gone = whole.status[Status.DEPRECATED]
    mean = "not measured" if whole.lift is None else f"{points(whole.lift)} points"
    of = "no card has a lift yet" if whole.lift is None else f"mean lift of the {whole.measured:,} measured"
    tells = f"{atlas.helping:,} helping, {atlas.harming:,} harming"
    return tag(
        "div",
        tile(f"{whole.shown:,}", "cards that a solve may read" + (f"; {gone:,} more are deprecated" if gone else "")),
        tile(mean, of),
        tile(tells, "as far as intervals tell: those that leave zero out"),
        tile(f"{whole.status[Status.VALIDATED]:,}", "validated: shown to help, after correction for many cards"),
        tile(f"~{short(whole.tokens)}", "tokens if read whole; a solve reads one place of the map"),
        class_="tiles",
    )


def _map(ask: Ask, name: str, tree: EpistemicTree, atlas: Atlas) -> Html:
    several = sum(len(cell.cards) for cell in atlas.cells.values()) > len(tree)
    note = (
        "A square is as large as its place has cards, and coloured by their mean lift: the change in the share of "
        "right attempts."
    )
    return tag(
        "section",
        tag("h2", "Map"),
        tag("p", note, " A card of several domains is counted in each." if several else "", class_="note"),
        tree_map(tree, atlas, ask.links, name),
        map_legend(atlas),
    )


def _extremes(ask: Ask, name: str, atlas: Atlas) -> Html:
    if not atlas.highest:
        return Html("")
    tells = atlas.helping + atlas.harming
    leave = "leaves" if tells == 1 else "leave"
    note = (
        f"{tells:,} of {counted(len(atlas.lifts), 'interval')} {leave} zero out; the others may be chance."
        if tells
        else "No interval leaves zero out yet: each of these may be chance."
    )
    return tag(
        "section",
        tag("h2", "Highest and lowest lift"),
        tag("p", "In points, with 95 % intervals. ", note, class_="note"),
        tag(
            "div",
            tag("div", tag("h3", "Highest"), mini_list(atlas.highest, ask.links, name)),
            tag("div", tag("h3", "Lowest"), mini_list(atlas.lowest, ask.links, name)),
            class_="split",
        ),
    )


def _empty() -> Html:
    return tag(
        "section",
        tag("h2", "No cards yet"),
        tag(
            "p",
            *("This tree has places for cards and none in them. Learn some with ", tag("code", "kace learn")),
            *(", or bring cards in with ", tag("code", "kace tree add"), " or ", tag("code", "kace tree import"), "."),
        ),
        class_="empty",
    )


def _others(ask: Ask, name: str) -> Html:
    others = [item.name for item in ask.shelf.items("tree") if item.name != name][:OTHERS]
    if not others:
        return Html("")
    chips = [
        tag("li", tag("a", other, href=ask.links.to(path_of("tree", name, "diff", other)), class_="chip"))
        for other in others
    ]
    return tag("section", tag("h2", "Compare with another tree"), tag("ul", *chips, class_="chips"))


def _growing(store: TreeStore) -> bool:
    try:
        return time.time() - store.journal_path.stat().st_mtime < NEWS
    except OSError:
        return False


def _cell(ask: Ask, atlas: Atlas) -> Cell:
    domain, asked = ask.parts["domain"], ask.parts["difficulty"]
    kind = next((kind for kind in Difficulty if kind.value == asked), None)
    found = atlas.cells.get((domain, kind)) if kind else None
    if found is None:
        raise NotHere(f"the tree has no place '{domain[:64]}, {asked[:20]}'")
    return found


def _cell_head(cell: Cell, tree: EpistemicTree, title: str) -> Html:
    about = next((domain.description for domain in tree.domains if domain.name == cell.domain), "")
    if cell.domain == UNIVERSAL:
        about = "Cards of every domain: they are read whatever a problem is about."
    mean = (
        "no lift measured"
        if cell.lift is None
        else f"mean lift {points(cell.lift)} points over {counted(cell.measured, 'card')}"
    )
    facts = [counted(len(cell.cards), "card"), status_words(cell), mean, f"~{short(cell.tokens)} tokens if read whole"]
    return tag(
        "header",
        tag("p", "Cards", class_="eyebrow"),
        tag("h1", title),
        tag("p", about, class_="lead") if about else Html(""),
        tag("ul", *(tag("li", fact) for fact in facts if fact), class_="facts") if cell.cards else Html(""),
        class_="lede",
    )


def _statuses(cell: Cell, listing: Listing, chosen: Status | None) -> Html:
    """Links to the cards of one status, where there are several."""
    known = [status for status in Status if cell.status[status]]
    if listing.links.static or (len(known) < 2 and chosen is None):
        return Html("")
    choices = [(None, "all", len(cell.cards)), *((status, status.value, cell.status[status]) for status in known)]
    chips = [
        tag(
            "li",
            tag(
                "a",
                f"{words} {count:,}",
                href=listing.to(status=status.value if status else None),
                class_="chip",
                aria_current="true" if status is chosen else None,
            ),
        )
        for status, words, count in choices
    ]
    return tag("ul", *chips, class_="chips", aria_label="Status")


def _nothing(cell: Cell) -> Html:
    words = "No card of this status here." if cell.cards else "No cards here yet."
    return tag("p", words, class_="empty")
