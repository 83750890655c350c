"""The pages of a tree: its map, and the cards of one of its places."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from kace.retrieval.selector import estimate
from kace.tree.card import UNIVERSAL, Card, Difficulty, Status
from kace.web.index import FileState
from kace.web.journal import JournalIndex, ListedChange
from kace.web.page import HOME, Crumb, NotHere, Page, PageRequest, Slice, slice_of
from kace.web.scale import BANDS, UNMEASURED, LiftMark, lift_of, lift_scale
from kace.web.trees import ORDERS, Cell, TreeIndex

PER_PAGE = 50
IN_A_FILE = 2_000  # rows that a list holds in a file, which cannot be asked for the next page
EXTREMES = 5  # cards named as those of highest and lowest lift
OTHERS = 12  # other trees that the page offers to compare with
LATEST, NAMED = 6, 3  # changes named on a tree's page, and cards named of each
NEWS, AGAIN = 60.0, 5.0  # seconds since a change within which a tree is growing, and after which to look again
READ_AT = {Difficulty.MEDIUM: "read at MS", Difficulty.HARD: "read at HS", Difficulty.UNIVERSAL: "read at both"}
LEAST = 14.0  # side of the smallest square, in hundredths of the largest: one card among thousands is still seen


class CardRow(NamedTuple):
    """A card in a list: how it is told, what it is worth, and about how long it is."""

    card: Card
    name: str  # its id, perhaps with words marked
    quoted: tuple[str, ...]  # what is quoted of it, line by line
    lift: LiftMark | None
    tokens: int


def told(card: Card, name: str = "", quoted: tuple[str, ...] = ()) -> CardRow:
    """A card by its id and its triggers, if not otherwise."""
    return CardRow(card, name or card.card_id, quoted or ("; ".join(card.triggers),), lift_of(card), estimate(card))


def listing(part: Slice, to: Callable[..., str], sort: str = "") -> dict[str, object]:
    """What the table of cards is drawn from: its rows, one scale for all lifts, and the addresses of other choices."""
    return {"part": part, "to": to, "sort": sort, "scale": lift_scale(row.lift for row in part.rows)}


def tree_page(request: PageRequest) -> Page:
    """A tree's map, its best and worst cards, and what changed last."""
    name = request.parts["tree"]
    tree, journal = opened(request, name), request.workspace.journal(name)
    total = tree.total()
    cards = [[told(card) for card in side] for side in tree.extremes(EXTREMES)]
    sides = [(side, lift_scale(row.lift for row in side)) for side in cards]
    values = {
        "tree": tree,
        "name": name,
        "total": total,
        "learned": any(item.name == name for item in request.workspace.items("learner")),
        "several": sum(cell.cards for cell in tree.cells().values()) > total.cards,
        "difficulties": READ_AT,
        "map": _map(tree),
        "legend": [*((colour, words) for _, colour, words in BANDS if total.measured), (UNMEASURED, "not measured")],
        "extremes": [(word, *side) for word, side in zip(("Highest", "Lowest"), sides, strict=True)],
        "latest": _latest(request, tree, journal),
        "others": [item.name for item in request.workspace.items("tree") if item.name != name][:OTHERS],
    }
    growing = journal and FileState.of(journal.source).within(NEWS)
    return Page("tree.html", name, values, refresh=AGAIN if growing else None)


def cell_page(request: PageRequest) -> Page:
    """The cards of one difficulty in one domain."""
    name, domain, kind = (request.parts[part] for part in ("tree", "domain", "difficulty"))
    tree = opened(request, name)
    known = {each.name: each.description for each in tree.domains}
    known[UNIVERSAL] = "Cards of every domain: they are read whatever a problem is about."
    if domain not in known or kind not in set(Difficulty):
        raise NotHere(f"the tree has no place '{domain[:64]}, {kind[:20]}'")
    cell = tree.cells().get((domain, Difficulty(kind)), Cell())
    status = request.choice("status", list(Status))
    sort = request.choice("sort", list(ORDERS), "lift")
    count = dict(cell.statuses).get(status, 0) if status else cell.cards

    def rows(limit: int, offset: int) -> list[CardRow]:
        return [told(card) for card in tree.listed(domain, kind, status, sort, limit, offset)]

    def to(**changes: str | int | None) -> str:
        now: dict[str, str | int | None] = {"sort": sort if "sort" in request.query else None, "status": status}
        return request.link("tree", name, "cell", domain, kind, **(now | changes))

    part = slice_of(request, count, PER_PAGE, rows, IN_A_FILE)
    values = {"cell": cell, "about": known[domain], "status": status, "tree_name": name, **listing(part, to, sort)}
    return Page("cell.html", place_name(domain, kind), values, crumbs=(HOME, Crumb(name, ("tree", name))))


def opened(request: PageRequest, name: str) -> TreeIndex:
    """The tree of a page, read whole; an export waits for it."""
    return request.workspace.tree(name).whole(wait=request.static)


def place_name(domain: str, difficulty: str) -> str:
    """A place, for people."""
    plain = domain.replace("_", " ")
    return f"{plain[:1].upper()}{plain[1:]}, {difficulty}"


def _map(tree: TreeIndex) -> list[tuple[str, str, float, list[tuple[str, Cell, float]]]]:
    """Rows: a domain, its words, its share, and its places, each with its figures and its square's side."""
    cells = tree.cells()
    most = max((cell.shown for cell in cells.values()), default=0)

    def place(domain: str, kind: Difficulty) -> tuple[str, Cell, float]:
        cell = cells.get((domain, kind), Cell())
        return kind.value, cell, round(max(LEAST, 100 * math.sqrt(cell.shown / most)), 1) if cell.shown else 0.0

    rows = [(each.name, each.description, each.share) for each in tree.domains]
    rows.append((UNIVERSAL, "read with every domain", 0.0))
    return [(*row, [place(row[0], kind) for kind in Difficulty]) for row in rows]


def _latest(
    request: PageRequest, tree: TreeIndex, journal: JournalIndex | None
) -> list[tuple[ListedChange, list[tuple[str, bool]]]] | None:
    """The latest changes, each with some of its cards and whether they are there; `None` while they are read."""
    if journal is None or not journal.look(None if request.static else 0.25):
        return [] if journal is None else None
    named = [(change, journal.cards_of(change, NAMED)) for change in journal.latest(LATEST)]
    there = tree.has(card for _, cards in named for card in cards)
    return [(change, [(card, card in there) for card in cards]) for change, cards in named]


ROUTES = {"/tree/{tree}": tree_page, "/tree/{tree}/cell/{domain}/{difficulty}": cell_page}
