"""Cards in a list: one row each, with what it says, what it is worth and how often it was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kace.retrieval.retriever import estimate
from kace.tree.card import Card, Status
from kace.view.atlas import SORTS, Figures, figures_of
from kace.view.lift_mark import lift_mark, lift_scale, lift_words
from kace.view.links import Links, path_of
from kace.view.page import Ask
from kace.view.paging import Part, part_of
from kace.web.markup import Html, join, tag, text
from kace.web.parts import badge

PER_PAGE = 50
IN_A_FILE = 2_000
"""Rows that a list holds in a file, which cannot be asked for the next page."""
STATUS_COLOURS: Mapping[Status, str] = {
    Status.VALIDATED: "good",
    Status.EXPERIMENTAL: "plain",
    Status.DEPRECATED: "bad",
}
HEADS = {"id": "Card", "lift": "Lift", "uses": "Uses"}


@dataclass(frozen=True, slots=True)
class Listing:
    """Where a list stands and how it was asked for, so that links keep what was chosen."""

    links: Links
    tree: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    """What was chosen, without the page."""

    def to(self, **changes: str | None) -> str:
        """The list with something else chosen, from its first page on."""
        return self.links.to(self.path, **{**self.query, **changes})


@dataclass(frozen=True, slots=True)
class Told:
    """How a card is told in a list: its name, and what is quoted of it."""

    name: Html
    quoted: Html

    @classmethod
    def of(cls, card: Card) -> Told:
        """By its id and its triggers."""
        return cls(card_name(card.card_id), text("; ".join(card.triggers)))


def part_of_cards(cards: Sequence[Card], ask: Ask) -> tuple[Part[Card], Html]:
    """The cards of the page that was asked for, and what is to be said where a file cannot hold them all."""
    if not ask.links.static or len(cards) <= IN_A_FILE:
        return part_of(cards, ask, PER_PAGE), Html("")
    words = f"The first {IN_A_FILE:,} of {len(cards):,} cards. To see the others, open the tree with: kace view"
    return part_of(cards[:IN_A_FILE], ask, PER_PAGE), tag("p", words, class_="note")


def card_path(tree: str, card_id: str) -> str:
    """The canonical path of a card's page."""
    return path_of("tree", tree, "card", card_id)


def card_name(card_id: str) -> Html:
    """An id that may be broken after its underscores, so that it fits a phone."""
    return breakable(text(card_id))


def breakable(name: Html) -> Html:
    """A name, marked or not, that may be broken after its underscores."""
    return Html(name.replace("_", "_<wbr>"))


def status_badge(status: Status) -> Html:
    """How far a card has come."""
    return badge(status.value, STATUS_COLOURS[status])


def card_table(
    cards: Sequence[Card], listing: Listing, *, sort: str | None = None, told: Mapping[str, Told] | None = None
) -> Html:
    """A table of cards. With `sort`, its heads lead to other orders; `told` says how cards are told otherwise."""
    lifts = {card.card_id: figures_of(card) for card in cards}
    scale = lift_scale(lifts.values())
    rows = []
    for card in cards:
        lift = lifts[card.card_id]
        mark = lift_mark(lift, scale, card.card_id) if lift else Html("")
        rows.append(_row(card, _worth(lift, mark), told[card.card_id] if told else Told.of(card), listing))
    plain = (tag("th", "Tokens", scope="col", class_="right"), tag("th", "Status", scope="col"))
    top = tag("tr", *(_head(name, listing, sort) for name in HEADS), *plain)
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="rows card-table")
    return join([_orders(listing, sort), table]) if sort and not listing.links.static else table


def mini_list(cards: Iterable[Card], links: Links, tree: str) -> Html:
    """A few cards with their lifts on one scale."""
    chosen = [(card, lift) for card in cards if (lift := figures_of(card))]
    scale = lift_scale(lift for _, lift in chosen)
    items = [
        tag(
            "li",
            tag("a", card_name(card.card_id), href=links.to(card_path(tree, card.card_id)), class_="id"),
            lift_mark(lift, scale, card.card_id),
            tag("span", lift_words(lift), class_="num"),
            data_row="",
        )
        for card, lift in chosen
    ]
    return tag("ol", *items, class_="mini-cards")


def chosen_sort(asked: str | None) -> str:
    """The order that was asked for, if there is such a one."""
    return asked if asked and asked.removeprefix("-") in SORTS else SORTS[0]


def _row(card: Card, worth: Html, told: Told, listing: Listing) -> Html:
    known = card.provenance
    record = tag("small", f"{known.n_wins:,} right, {known.n_losses:,} wrong") if known.n_uses else Html("")
    name = tag("a", told.name, href=listing.links.to(card_path(listing.tree, card.card_id)), class_="id")
    return tag(
        "tr",
        tag("td", name, tag("div", told.quoted, class_="said"), class_="what"),
        tag("td", worth, data_label="Lift", class_="worth"),
        tag("td", f"{known.n_uses:,}", record, data_label="Uses", class_="right num"),
        tag("td", f"~{estimate(card):,}", data_label="Tokens", class_="right num"),
        tag("td", status_badge(card.status), data_label="Status"),
        class_="gone" if card.status is Status.DEPRECATED else None,
    )


def _worth(lift: Figures | None, mark: Html) -> Html:
    if lift is None:
        return tag("small", "not measured", class_="muted")
    return join([mark, tag("small", lift_words(lift), class_="num")])


def _head(name: str, listing: Listing, sort: str | None) -> Html:
    right = "right" if name == "uses" else None
    if sort is None or listing.links.static:
        return tag("th", HEADS[name], scope="col", class_=right)
    chosen, rising = sort.removeprefix("-") == name, sort.startswith("-") != (name == "id")
    return tag(
        "th",
        _order(name, listing, sort),
        scope="col",
        class_=right,
        aria_sort=("ascending" if rising else "descending") if chosen else None,
    )


def _orders(listing: Listing, sort: str) -> Html:
    """The orders once more, for a phone, where the table has no heads."""
    chips = [tag("li", _order(name, listing, sort, class_="chip")) for name in HEADS]
    return tag("ul", tag("li", "Order by", class_="muted"), *chips, class_="chips orders")


def _order(name: str, listing: Listing, sort: str, *, class_: str | None = None) -> Html:
    """A link to an order; to its opposite where it is the one in use."""
    chosen, back = sort.removeprefix("-") == name, sort.startswith("-")
    arrow = "↑" if back != (name == "id") else "↓"
    return tag(
        "a",
        HEADS[name],
        tag("span", arrow, aria_hidden="true", class_="arrow") if chosen else Html(""),
        href=listing.to(sort=f"-{name}" if chosen and not back else name),
        class_=class_,
        aria_current="true" if chosen and class_ else None,
    )
