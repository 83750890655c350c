"""Search in a tree: the cards in which words begin with all that was asked for, in whatever case, marked."""

from __future__ import annotations

import re
import sqlite3

from kace.tree.card import TRUSTED, Card
from kace.web.page import HOME, Crumb, Page, PageRequest, slice_of
from kace.web.pages.tree import PER_PAGE, CardRow, listing, opened, told
from kace.web.text import marked
from kace.web.trees import TreeIndex, fields_of

MAX_QUERY = 200
MAX_WORDS = 8
WEIGHTS = {"id": 100, "header": 10, "body": 1}  # what a word counts where; the header has the routing conditions
QUOTED_LINES = 2  # lines of a card's text that are quoted beside its triggers
QUOTED = 200  # characters of a line that are quoted
_EDGE = "\"'“”‘’,;:!?()[]"
_RUNS = re.compile(r"[A-Za-z0-9]+")


def words_of(asked: str) -> tuple[tuple[str, ...], bool]:
    """The words of what somebody typed, in lower case, each once; and whether something was left off as too much."""
    found = tuple(dict.fromkeys(word.strip(_EDGE) or word for word in asked[:MAX_QUERY].lower().split()))
    return found[:MAX_WORDS], len(asked) > MAX_QUERY or len(found) > MAX_WORDS


def find(tree: TreeIndex, words: tuple[str, ...]) -> list[int]:
    """The positions of the cards that hold all words, best first."""
    with tree.reading() as db:
        scores: dict[int, int] | None = None
        for word in sorted(words, key=len, reverse=True):  # the longest is likely the rarest
            found = _scores(db, word)
            scores = found if scores is None else {at: scores[at] + found[at] for at in scores.keys() & found.keys()}
            if not scores:
                return []
    ranked = scores or {}
    return sorted(ranked, key=lambda at: (-ranked[at], at))


def search_page(request: PageRequest) -> Page:
    """The cards that hold all words of a query."""
    name, asked = request.parts["tree"], request.query.get("q", "")
    tree, (words, cut) = opened(request, name), words_of(asked)
    found = tree.kept(("search", words), lambda db: find(tree, words)) if words else []
    pattern = _pattern(words)

    def to(**changes: str | int | None) -> str:
        return request.link("tree", name, "search", q=asked[:MAX_QUERY], **changes)

    def rows(limit: int, offset: int) -> list[CardRow]:
        return [_row(card, pattern) for card in tree.at(found[offset : offset + limit])]

    values = {
        "name": name,
        "asked": asked[:MAX_QUERY],
        "words": words,
        "cut": cut,
        "cards": tree.total().cards,
        "found": len(found),
        "missing": [] if found else [word for word in words if not find(tree, (word,))],
        **listing(slice_of(request, len(found), PER_PAGE, rows), to),
        "max_words": MAX_WORDS,
        "max_query": MAX_QUERY,
    }
    title = f"{asked[:60]} in {name}" if words else f"Search {name}"
    return Page("search.html", title, values, crumbs=(HOME, Crumb(name, ("tree", name))))


def _scores(db: sqlite3.Connection, word: str) -> dict[int, int]:
    """The cards that hold a word, each with what its best find counts."""
    phrase = " ".join(_RUNS.findall(word)) if word.isascii() else ""
    if phrase == word:
        scores: dict[int, int] = {}
        for column, weight in reversed(WEIGHTS.items()):
            sql = "SELECT rowid FROM words WHERE words MATCH ?"
            scores |= dict.fromkeys((row[0] for row in db.execute(sql, (f'{column} : "{phrase}" *',))), weight)
        return scores
    # A word with other signs: the index finds where its letters stand, and the texts themselves tell.
    where = "WHERE position IN (SELECT rowid FROM words WHERE words MATCH ?)" if phrase else ""
    texts = db.execute(f"SELECT position, json FROM texts {where}", (f'"{phrase}" *',) if phrase else ())
    pattern = _pattern((word,))
    found = ((at, fields_of(Card.model_validate_json(text, context=TRUSTED))) for at, text in texts)
    weights = ((at, [*map(bool, map(pattern.search, map(str.lower, fields)))]) for at, fields in found)
    return {at: [*WEIGHTS.values()][hits.index(True)] for at, hits in weights if any(hits)}


def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    r"""Finds words where they begin; one that begins with no letter, such as `\frac`, anywhere."""
    longest = sorted(words, key=len, reverse=True)
    starts = ("(?<![A-Za-z0-9])" if word[:1].isascii() and word[:1].isalnum() else "" for word in longest)
    return re.compile("|".join(start + re.escape(word) for start, word in zip(starts, longest, strict=True)), re.I)


def _row(card: Card, pattern: re.Pattern[str]) -> CardRow:
    """A card by its id, its triggers, and the lines that say most of what was looked for."""
    texts = [*card.body.split("\n"), *card.header.split("\n"), *card.routing_conditions]
    triggers = {f"- {trigger}" for trigger in card.triggers}
    others = ((at, line) for at, line in enumerate(texts) if line.strip() not in triggers)
    hits = {at: n for at, line in others if (n := len({hit.lower() for hit in pattern.findall(line)}))}
    best = sorted(sorted(hits, key=lambda at: (-hits[at], at))[:QUOTED_LINES])
    lines = ["; ".join(card.triggers), *(_around(texts[at].strip(), pattern) for at in best)]
    return told(card, marked(card.card_id, pattern), tuple(marked(line, pattern) for line in lines))


def _around(line: str, pattern: re.Pattern[str]) -> str:
    """A long line cut to what stands around the first find."""
    if len(line) <= QUOTED:
        return line
    found = pattern.search(line)
    start = max(0, min(found.start() - QUOTED // 3 if found else 0, len(line) - QUOTED))
    end = start + QUOTED
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")


ROUTES = {"/tree/{tree}/search": search_page}
