"""Search in a tree: a form, and the cards that hold the words, with the words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kace.tree.card import Card
from kace.tree.tree import EpistemicTree
from kace.view.card_index import MAX_QUERY, MAX_WORDS, Query, card_index
from kace.view.card_rows import PER_PAGE, Listing, Told, breakable, card_table
from kace.view.links import Links, path_of
from kace.view.page import Ask, Crumb, Page, Route
from kace.view.paging import pager, part_of
from kace.view.patience import patient
from kace.web.markup import Html, join, tag
from kace.words import counted

QUOTED_LINES = 2
"""Lines of a card's text that are quoted beside its triggers."""
QUOTED = 200
"""Characters of a line that are quoted."""


@patient
def search_view(ask: Ask) -> Page:
    """The cards that hold all words of a query."""
    name, asked = ask.parts["tree"], ask.query.get("q", "")
    tree, query = ask.shelf.tree(name), Query.of(asked)
    head = tag("header", tag("p", "Search", class_="eyebrow"), tag("h1", f"Cards of {name}"), class_="lede")
    results = _results(ask, tree, query) if query.words else _advice(tree)
    title = f"{asked[:60]} in {name}" if query.words else f"Search {name}"
    body = join([head, search_form(ask.links, name, asked[:MAX_QUERY]), results])
    return Page(title, body, (Crumb("Home", "/"), Crumb(name, path_of("tree", name))))


ROUTES = (Route("/tree/{tree}/search", search_view),)


def search_form(links: Links, tree: str, asked: str) -> Html:
    """The form. A file has nobody to ask, so there it is left out."""
    if links.static:
        return Html("")
    field = tag(
        "input",
        type="search",
        name="q",
        value=asked,
        maxlength=MAX_QUERY,
        placeholder="Words of an id, a trigger or a body",
        aria_label="Search the cards of this tree",
        autocomplete="off",
        spellcheck="false",
    )
    return tag(
        "form",
        field,
        tag("button", "Search", type="submit"),
        action=links.to(path_of("tree", tree, "search")),
        method="get",
        role="search",
        class_="search-form",
    )


def marked(line: str, pattern: re.Pattern[str]) -> Html:
    """A text with what was found marked. Both are escaped: only the marks are markup."""
    parts: list[str] = []
    at = 0
    for found in pattern.finditer(line):
        parts += [line[at : found.start()], tag("mark", found[0])]
        at = found.end()
    return join([*parts, line[at:]])


def _results(ask: Ask, tree: EpistemicTree, query: Query) -> Html:
    name = ask.parts["tree"]
    found = card_index(tree).find(query)
    cut = (
        f"Only the first {MAX_WORDS} words, of at most {MAX_QUERY} characters in all, were looked for."
        if query.cut
        else ""
    )
    warning = tag("p", cut, class_="note") if cut else Html("")
    if not found:
        return join([warning, _none(tree, query)])
    listing = Listing(ask.links, name, path_of("tree", name, "search"), {"q": ask.query.get("q", "")[:MAX_QUERY]})
    part, pattern = part_of(found, ask, PER_PAGE), query.pattern()
    told = {card.card_id: _told(card, pattern) for card in part.rows}
    count = f"{counted(len(found), 'card')} of {len(tree):,}. Words in an id count most, then those in triggers."
    return join(
        [
            warning,
            tag("p", count, class_="note", role="status"),
            card_table(part.rows, listing, told=told),
            pager(part, ask, listing.path, **listing.query),
        ]
    )


def _told(card: Card, pattern: re.Pattern[str]) -> Told:
    """A card by its id, its triggers, and the lines that say most of what was looked for."""
    lines = ["; ".join(card.triggers), *(_around(line, pattern) for line in _best_lines(card, pattern))]
    quoted = join(tag("div", marked(line, pattern)) for line in lines)
    return Told(breakable(marked(card.card_id, pattern)), quoted)


def _best_lines(card: Card, pattern: re.Pattern[str]) -> Iterator[str]:
    texts = [*card.body.split("\n"), *card.header.split("\n"), *card.routing_conditions]
    spoken = {f"- {trigger}" for trigger in card.triggers}
    hits = {
        place: len({hit.lower() for hit in pattern.findall(line)})
        for place, line in enumerate(texts)
        if line.strip() not in spoken
    }
    best = sorted((place for place in hits if hits[place]), key=lambda place: (-hits[place], place))[:QUOTED_LINES]
    return (texts[place].strip() for place in sorted(best))


def _around(line: str, pattern: re.Pattern[str]) -> str:
    """A long line cut to what stands around the first find."""
    if len(line) <= QUOTED:
        return line
    found = pattern.search(line)
    start = max(0, min(found.start() - QUOTED // 3 if found else 0, len(line) - QUOTED))
    end = start + QUOTED
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")


def _none(tree: EpistemicTree, query: Query) -> Html:
    """Why nothing was found: a word that no card holds, or words that no card holds together."""
    index = card_index(tree)
    missing = [word for word in query.words if not index.holds(word)]
    if missing:
        words = join(
            [
                f"No card holds {'a word that begins with ' if len(missing) == 1 else 'words that begin with '}",
                *_listed(missing),
                ".",
            ]
        )
    else:
        words = join(["Every word is somewhere, but no card holds all of ", *_listed(list(query.words)), "."])
    return tag("section", tag("h2", "Nothing found"), tag("p", words), class_="empty")


def _listed(words: list[str]) -> list[Html | str]:
    return [part for place, word in enumerate(words) for part in (" or " if place else "", tag("mark", word))]


def _advice(tree: EpistemicTree) -> Html:
    return tag(
        "p",
        f"Finds the cards, of {len(tree):,}, that hold all words you give: in the id, the triggers, the routing "
        "conditions or the body. The beginning of a word is enough, and capitals do not matter.",
        class_="note",
    )
