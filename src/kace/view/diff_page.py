"""What turns one tree into another, as a page to review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kace.tree.card import Card
from kace.tree.diff import Pair, TreeDiff, diff, place
from kace.tree.tree import EpistemicTree
from kace.view.atlas import Same
from kace.view.card_diff import card_diff, diff_html
from kace.view.card_rows import card_name, card_path
from kace.view.later import Found, Later
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, NotHere, Page
from kace.view.paging import pager, part_of
from kace.web.markup import Html, join, tag
from kace.web.parts import badge, tile

PER_PAGE = 25
KINDS: Mapping[str, tuple[str, str]] = {
    "added": ("added", "good"),
    "edited": ("edited", "info"),
    "relocated": ("relocated", "info"),
    "deprecated": ("deprecated", "bad"),
    "removed": ("removed", "bad"),
    "figures": ("with other figures", "plain"),
}
"""What happened to a card, in the order of a reviewer's interest. The last say what they did, and fared differently."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A card that is not the same in both trees."""

    kind: str
    before: Card | None
    after: Card | None

    @property
    def card(self) -> Card:
        """The card as it is, or as it was."""
        found = self.after or self.before
        assert found is not None, "a change has a card"
        return found


_DIFFS: Later[TreeDiff] = Later(keep=8)


def diff_page(ask: Ask) -> Page:
    """From one tree to the other."""
    names = ask.parts["tree"], ask.parts["other"]
    if names[0] == names[1]:
        raise NotHere("a tree does not differ from itself")
    title = f"From {names[0]} to {names[1]}"
    crumbs = (Crumb("Home", "/"), Crumb(names[0], path_of("tree", names[0])))
    before, after = ask.shelf.tree(names[0]), ask.shelf.tree(names[1])
    found = diff_of(names, before, after, patience=None if ask.links.static else 0.25)
    if found.value is None or not found.fresh:
        said = f"Comparing {len(before) + len(after):,} cards."
        return Page(title, tag("section", tag("h1", title), tag("p", said), class_="empty"), crumbs, refresh=1.0)
    changes = found.value
    kind = ask.query.get("kind", "")
    every = _changes(changes)
    shown = [each for each in every if kind not in KINDS or each.kind == kind]
    path = path_of("tree", names[0], "diff", names[1])
    part = part_of(shown, ask, PER_PAGE)
    body = join(
        (
            _header(ask, names, changes, every),
            _tiles(before, after, every) if changes else Html(""),
            _domains(changes),
            _chips(ask, path, every, kind) if every and not ask.links.static else Html(""),
            tag("ol", *(_change(ask, names, each) for each in part.rows), class_="changed-cards"),
            pager(part, ask, path, kind=kind if kind in KINDS else None),
        )
    )
    return Page(title, body, crumbs)


def diff_of(
    names: tuple[str, str], before: EpistemicTree, after: EpistemicTree, *, patience: float | None = 0.4
) -> Found[TreeDiff]:
    """What turns one tree into the other, worked out once for two trees and kept."""
    return _DIFFS.ask(names, (Same(before), Same(after)), lambda tell: diff(before, after), patience=patience)


def _changes(changes: TreeDiff) -> tuple[Changed, ...]:
    """Every changed card once, under the most telling thing that happened to it."""
    moved, retired = ({pair.after.card_id for pair in pairs} for pairs in (changes.relocated, changes.deprecated))
    found = {pair.after.card_id: pair for pair in (*changes.edited, *changes.relocated, *changes.deprecated)}
    every = [
        *(Changed("added", None, card) for card in changes.added),
        *(Changed(_kind(pair, moved, retired), pair.before, pair.after) for pair in found.values()),
        *(Changed("removed", card, None) for card in changes.removed),
    ]
    order = list(KINDS)
    return tuple(sorted(every, key=lambda each: order.index(each.kind)))


def _kind(pair: Pair, moved: set[str], retired: set[str]) -> str:
    name, (before, after) = pair.after.card_id, pair
    if name in retired:
        return "deprecated"
    if name in moved:
        return "relocated"
    said = before.payload != after.payload or before.routing_conditions != after.routing_conditions
    return "edited" if said else "figures"


def _header(ask: Ask, names: tuple[str, str], changes: TreeDiff, every: Sequence[Changed]) -> Html:
    links = [tag("a", name, href=ask.links.to(path_of("tree", name))) for name in names]
    swap = ask.links.to(path_of("tree", names[1], "diff", names[0]))
    counts = [f"{n:,} {KINDS[kind][0]}" for kind, n in _counts(every).items() if n]
    if changes.domains_before != changes.domains_after:
        counts.append("and other domains")
    said = f"Cards of {names[1]} beside those of {names[0]}: {', '.join(counts)}." if counts else "They are the same."
    return tag(
        "header",
        tag("p", "Two trees", class_="eyebrow"),
        tag("h1", "From ", links[0], " to ", links[1]),
        tag("p", said, class_="lead"),
        tag("p", tag("a", f"Turn round: from {names[1]} to {names[0]}", href=swap)),
        class_="lede",
    )


def _tiles(before: EpistemicTree, after: EpistemicTree, every: Sequence[Changed]) -> Html:
    same = len(after) - sum(each.after is not None for each in every)
    told = ((len(before), "cards before"), (len(after), "cards after"), (same, "cards that are the same in both"))
    return tag("div", *(tile(f"{count:,}", words) for count, words in told), class_="tiles")


def _counts(every: Sequence[Changed]) -> dict[str, int]:
    return {kind: sum(each.kind == kind for each in every) for kind in KINDS}


def _domains(changes: TreeDiff) -> Html:
    if changes.domains_before == changes.domains_after:
        return Html("")
    only = replace(changes, added=(), edited=(), relocated=(), deprecated=(), removed=())
    return tag("section", tag("h2", "Domains"), diff_html(only))


def _chips(ask: Ask, path: str, every: Sequence[Changed], kind: str) -> Html:
    named = ((name, f"{n:,} {KINDS[name][0]}") for name, n in _counts(every).items() if n)
    chips = [("", f"All {len(every):,}"), *named]
    chosen = kind if kind in KINDS else ""
    made = [
        tag(
            "li",
            tag(
                "a",
                words,
                href=ask.links.to(path, kind=name or None),
                class_="chip",
                aria_current="true" if name == chosen else None,
            ),
        )
        for name, words in chips
    ]
    return tag("section", tag("h2", "Cards"), tag("ul", *made, class_="chips"))


def _change(ask: Ask, names: tuple[str, str], each: Changed) -> Html:
    card, (title, colour) = each.card, KINDS[each.kind]
    tree = names[0] if each.after is None else names[1]
    name = tag("a", card_name(card.card_id), href=ask.links.to(card_path(tree, card.card_id)), class_="id")
    if each.before is None or each.after is None:
        content = tag("pre", card.payload.strip("\n"), class_="code")
    else:
        content = diff_html(card_diff(each.before, each.after), heads=False)
    head = tag("h3", name, " ", badge(title, colour))
    return tag("li", head, tag("p", f"{place(card)} · {card.status.value}", class_="muted"), content, data_row="")
