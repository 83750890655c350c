"""The map of a tree: domains across difficulties, every place sized by its cards and coloured by their mean lift."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kace.tree.card import UNIVERSAL, Difficulty, Status
from kace.tree.tree import EpistemicTree
from kace.view.atlas import Atlas, Cell
from kace.view.lift_mark import BANDS, UNMEASURED, band
from kace.view.links import Links, path_of
from kace.web.markup import Html, join, tag
from kace.words import counted, points

READ_AT = {
    Difficulty.MEDIUM: "read at MS",
    Difficulty.HARD: "read at HS",
    Difficulty.UNIVERSAL: "read at both",
}
STATUSES = (Status.VALIDATED, Status.EXPERIMENTAL, Status.DEPRECATED)
"""From best to worst."""
LEAST = 14.0
"""Side of the smallest square, in hundredths of the largest: a single card among thousands is still seen."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What every place of a map is drawn with."""

    atlas: Atlas
    links: Links
    tree: str
    most: int
    """Cards in the fullest place."""


def tree_map(tree: EpistemicTree, atlas: Atlas, links: Links, name: str) -> Html:
    """The map as a table whose places lead to their cards."""
    chart = Chart(atlas, links, name, max((cell.shown for cell in atlas.cells.values()), default=0))
    heads = [tag("th", kind.value, tag("small", READ_AT[kind]), scope="col") for kind in Difficulty]
    rows = [_row(chart, domain.name, domain.description, domain.share) for domain in tree.domains]
    rows.append(_row(chart, UNIVERSAL, "read with every domain", 0.0))
    top = tag("tr", tag("th", tag("span", "Domain", class_="hide"), scope="col"), *heads)
    return tag("table", tag("thead", top), tag("tbody", *rows), class_="map")


def map_legend(atlas: Atlas) -> Html:
    """What colours and sizes mean."""
    if not atlas.whole.cards:
        return Html("")
    lifts = [(name, words) for _, name, words in BANDS] if atlas.whole.measured else []
    statuses = [status for status in STATUSES if atlas.whole.status[status]]
    return tag(
        "ul",
        tag("li", "Mean lift, in points:", class_="legend-title"),
        *(tag("li", _square(100, name, "swatch"), words) for name, words in (*lifts, (UNMEASURED, "not measured"))),
        tag("li", "Line below:", class_="legend-title"),
        *(tag("li", _square(100, f"is-{status.value}", "swatch"), status.value) for status in statuses),
        class_="legend map-legend",
    )


def cell_path(tree: str, cell: Cell) -> str:
    """The canonical path of a cell's page."""
    return path_of("tree", tree, "cell", cell.domain, cell.difficulty.value)


def place_name(domain: str, difficulty: Difficulty) -> str:
    """A place, for people."""
    plain = domain.replace("_", " ")
    return f"{plain[:1].upper()}{plain[1:]}, {difficulty.value}"


def short(number: int) -> str:
    """A large number in few digits."""
    if number < 100_000:
        return f"{number:,}"
    return f"{number / 1e6:.1f}\u00a0M" if number >= 999_500 else f"{number / 1e3:.0f}\u00a0k"


def status_bar(cell: Cell) -> Html:
    """How far the cards of a place have come, as parts of one bar."""
    total, at = max(1, len(cell.cards)), 0.0
    parts = []
    for status in STATUSES:
        width = 100 * cell.status[status] / total
        if width:
            parts.append(tag("rect", x=round(at, 2), y=0, width=round(width, 2), height=4, class_=f"is-{status.value}"))
        at += width
    said = status_words(cell)
    return tag(
        "svg",
        tag("title", said),
        *parts,
        viewBox="0 0 100 4",
        preserveAspectRatio="none",
        class_="status-bar",
        role="img",
    )


def status_words(cell: Cell) -> str:
    """The statuses there are, with their numbers."""
    return ", ".join(f"{cell.status[status]:,} {status.value}" for status in STATUSES if cell.status[status])


def _row(chart: Chart, domain: str, about: str, share: float) -> Html:
    part = tag("span", f" {share:.0%} of problems", class_="muted") if share else Html("")
    head = tag("th", tag("b", domain.replace("_", " ")), part, tag("small", about), scope="row")
    return tag(
        "tr",
        head,
        *(tag("td", _place(chart, chart.atlas.cells[domain, kind]), data_label=kind.value) for kind in Difficulty),
    )


def _place(chart: Chart, cell: Cell) -> Html:
    if not cell.cards:
        return tag(
            "div",
            tag("span", "no cards", class_="hide"),
            tag("span", "·", aria_hidden="true"),
            class_="map-cell empty-cell",
        )
    side = max(LEAST, 100 * math.sqrt(cell.shown / chart.most)) if cell.shown else 0.0
    figures = [tag("b", counted(cell.shown, "card"))]
    if cell.shown:
        figures += [tag("span", _worth(cell), class_="map-lift"), *_measured(cell)]
        figures.append(tag("span", f"~{short(cell.tokens)} tokens"))
    if gone := cell.status[Status.DEPRECATED]:
        figures.append(tag("span", f"{gone:,} deprecated"))
    return tag(
        "a",
        _square(side, band(cell.lift), "map-mark"),
        tag("span", join(figures), class_="map-figures"),
        status_bar(cell),
        href=chart.links.to(cell_path(chart.tree, cell)),
        class_="map-cell",
        data_row="",
    )


def _worth(cell: Cell) -> str:
    return "not measured" if cell.lift is None else f"{points(cell.lift)} points"


def _measured(cell: Cell) -> list[Html]:
    """How many cards the mean is over, where it is not over all."""
    partly = 0 < cell.measured < cell.shown
    return [tag("span", f"{cell.measured:,} measured")] if partly else []


def _square(side: float, colour: str, class_: str) -> Html:
    corner = round((100 - side) / 2, 1)
    square = tag("rect", x=corner, y=corner, width=round(side, 1), height=round(side, 1), rx=6) if side else Html("")
    return tag("svg", square, viewBox="0 0 100 100", class_=f"{class_} {colour}", aria_hidden="true")
