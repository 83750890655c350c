"""A tree's changes as lists: the latest ones, and all that one card went through with what each did to it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kace.tree.card import Card
from kace.tree.diff import TreeDiff
from kace.tree.journal import Entry
from kace.view.card_diff import card_diff, diff_html
from kace.view.card_rows import card_name, card_path
from kace.view.journal_index import Step, journal_index, latest_entries
from kace.view.links import Links
from kace.view.page import Ask
from kace.view.when import when
from kace.web.markup import Html, join, tag, text
from kace.words import counted

if TYPE_CHECKING:
    from kace.tree.store import TreeStore
    from kace.tree.tree import EpistemicTree

LATEST = 6
"""Changes named on a tree's page."""
NAMED = 3
"""Cards named of each."""
MOST = 40
"""Changes of one card that are shown, and how many of the newest are open from the start."""
OPEN = 3


def latest_changes(ask: Ask, name: str, tree: EpistemicTree, store: TreeStore) -> Html:
    """What changed last in a tree."""
    found = latest_entries(store.journal_path, LATEST)
    if not found:
        return Html("")
    return tag(
        "section",
        tag("h2", "Latest changes"),
        tag("p", f"{counted(store.generation + 1, 'change')} in all. The page of a card tells its own.", class_="note"),
        tag("ol", *(_latest(ask, name, tree, entry) for entry in found), class_="changes"),
    )


def card_history(ask: Ask, card: Card, store: TreeStore | None) -> Html:
    """Everything that happened to a card, newest first, each change with its difference."""
    title = tag("h2", "History")
    if store is None:
        return tag("section", title, tag("p", "This tree is a single file, which keeps no history.", class_="note"))
    steps, damaged = journal_index(store.journal_path).of(card.card_id)
    items = [_step(ask.links, step, open_=place < OPEN) for place, step in enumerate(steps[:MOST])]
    if steps and not damaged and steps[0].change.after != card:
        items.insert(0, _by_hand(steps[0], card))
    notes = [
        f"{counted(len(steps) - MOST, 'earlier change')} not shown; all are in: kace tree log."
        if len(steps) > MOST
        else "",
        f"{counted(damaged, 'change')} of this card cannot be read; see: kace tree verify." if damaged else "",
        "" if items or damaged else "The journal says nothing of this card.",
    ]
    return tag(
        "section",
        title,
        tag("ol", *items, class_="history") if items else Html(""),
        *(tag("p", note, class_="note") for note in notes if note),
    )


def time_of(entry: Entry, links: Links) -> Html:
    """When a change was made."""
    try:
        return when(datetime.fromisoformat(entry.time).timestamp(), links)
    except (ValueError, OverflowError, OSError):  # a journal that somebody else wrote
        return text(entry.time[:40])


def _latest(ask: Ask, name: str, tree: EpistemicTree, entry: Entry) -> Html:
    cards = [_card_chip(ask, name, tree, change.card_id) for change in entry.cards[:NAMED]]
    if len(entry.cards) > NAMED:
        cards.append(tag("li", f"and {len(entry.cards) - NAMED:,} more", class_="muted"))
    return tag(
        "li",
        tag("span", f"{entry.generation:,}", class_="num generation", title=f"generation {entry.generation}"),
        tag("div", _what(entry), tag("ul", *cards, class_="chips") if cards else Html("")),
        tag("div", entry.author, " ", time_of(entry, ask.links), class_="muted by"),
    )


def _card_chip(ask: Ask, name: str, tree: EpistemicTree, card_id: str) -> Html:
    there = ask.links.to(card_path(name, card_id)) if card_id in tree else None
    return tag("li", tag("a" if there else "span", card_name(card_id), href=there, class_="chip id"))


def _what(entry: Entry) -> Html:
    note = tag("span", f" {entry.note}", class_="muted") if entry.note else Html("")
    return join([tag("b", entry.kind.value.replace("_", " ")), note])


def _step(links: Links, step: Step, *, open_: bool) -> Html:
    entry, (before, after) = step.entry, (step.change.before, step.change.after)
    changes = card_diff(before, after)
    top = tag(
        "summary",
        tag("span", f"{entry.generation:,}", class_="num generation", title=f"generation {entry.generation}"),
        tag("b", _did(changes)),
        tag("span", f" {entry.note}" if entry.note else "", class_="muted"),
        tag("span", entry.author, " ", time_of(entry, links), class_="muted by"),
    )
    shown = diff_html(changes, heads=False) if changes else tag("p", "Nothing that is shown changed.", class_="note")
    return tag("li", tag("details", top, shown, open="" if open_ and before else None))


def _by_hand(last: Step, card: Card) -> Html:
    """What differs from the journal's last word: cards.jsonl was edited, and no change recorded it yet."""
    top = tag(
        "summary",
        tag("span", "now", class_="generation"),
        tag("b", "edited by hand"),
        tag("span", " not in the journal yet", class_="muted"),
    )
    return tag("li", tag("details", top, diff_html(card_diff(last.change.after, card), heads=False), open=""))


def _did(changes: TreeDiff) -> str:
    """What a change did to the one card it is about."""
    if changes.added or changes.removed:
        return "created" if changes.added else "removed"
    said = []
    for before, after in changes.edited:
        texts = [(card.payload, card.routing_conditions) for card in (before, after)]
        said.append("text edited" if texts[0] != texts[1] else "record updated")
    said += ["relocated"] if changes.relocated else []
    said += ["deprecated"] if changes.deprecated else []
    return ", ".join(said) or "changed"
