"""The pages of a tree: its map, the cards of one of its places, and search.

Search finds the cards in which words begin with all that was asked for, in whatever case, and marks them.
"""

from __future__ import annotations

import re
import sqlite3
from functools import partial

from markupsafe import Markup

from kace.cards.card import TRUSTED, UNIVERSAL, Card, Difficulty, Status
from kace.report.page import HOME, Crumb, NotHere, Page, PageRequest, slice_of
from kace.report.pages.compare import PATIENCE, pair_of
from kace.report.related import base_of, runs_of
from kace.report.scale import BANDS, UNMEASURED
from kace.report.text import marked
from kace.report.trees import ORDERS, Cell, TreeIndex, fields_of, latest
from kace.runs.index import FileState

PER_PAGE = 50
IN_A_FILE = (
    2_000  # rows that a list holds in a file, which cannot be asked for the next page
)
FIRST = 12  # cards that the tree's page lists at a time
EFFECTS = 3  # data sets on which its effect is told
OTHERS = 12  # other trees that the page offers to compare with
LATEST = 6  # changes named on a tree's page
# seconds since a change within which a tree is growing, and after which to look again
NEWS = 60.0
AGAIN = 5.0
READ_AT = {
    Difficulty.MEDIUM: "read at MS",
    Difficulty.HARD: "read at HS",
    Difficulty.UNIVERSAL: "read at both",
}
ALWAYS = "read with every domain"
EVERYWHERE = "Cards of every domain: they are read whatever a problem is about."
MAX_QUERY = 200
MAX_WORDS = 8
WEIGHTS = {
    "id": 100,
    "header": 10,
    "body": 1,
}  # what a word counts where; the header has the routing conditions
QUOTED_LINES = 2  # lines of a card's text that are quoted beside its triggers
QUOTED = 200  # characters of a line that are quoted
_EDGE = "\"'“”‘’,;:!?()[]"
_RUNS = re.compile(r"[A-Za-z0-9]+")


def tree_page(request: PageRequest) -> Page:
    """What a tree was measured to do, its cards, its map, and what changed last."""
    name = request.parts["tree"]
    tree = opened(request, name)
    total = tree.total()
    cells = tree.cells()
    journal = tree.journal
    changes = latest(journal, LATEST) if journal else []
    sort = request.choice("sort", list(ORDERS), "lift")
    facts = tree.facts
    effects, waiting = _effects(request, facts.hash)
    values = {
        "tree": tree,
        "facts": facts,
        "name": name,
        "total": total,
        "cells": cells,
        "most": max((cell.shown for cell in cells.values()), default=0),
        "learned": any(
            item.name == name for item in request.workspace.items("learner")
        ),
        "difficulties": READ_AT,
        "domains": [
            *((each.name, each.description, each.share) for each in tree.domains),
            (UNIVERSAL, ALWAYS, 0.0),
        ],
        "legend": [
            *((colour, words) for _, colour, words in BANDS if total.measured),
            (UNMEASURED, "not measured"),
        ],
        "sort": sort,
        "told": lambda card: (card.card_id, [_rule(card)]),
        "part": slice_of(
            request, partial(tree.ordered, sort), FIRST, total.cards, IN_A_FILE
        ),
        "to": lambda **query: (
            request.link("tree", name, **{"sort": sort, **query}) + "#cards"
        ),
        "effects": effects,
        "latest": changes,
        "there": tree.has(
            change.card_id for entry in changes for change in entry.cards[:3]
        ),
        "others": [
            item.name for item in request.workspace.items("tree") if item.name != name
        ][:OTHERS],
    }
    growing = waiting or (journal and FileState.of(journal).within(NEWS))
    return Page("tree.html", name, values, refresh=AGAIN if growing else None)


def _effects(
    request: PageRequest, digest: str
) -> tuple[list[tuple[str, str, str]], bool]:
    """What open runs that read the tree came to against the base, one run a data set; and whether more may come."""
    found = list[tuple[str, str, str]]()
    waiting = False
    seen = set[tuple[str, str]]()
    for name, setup in runs_of(request.workspace, digest) if digest else ():
        base = base_of(request.workspace, name)
        if not base or len(seen) >= EFFECTS or (setup.data_hash, setup.model) in seen:
            continue
        seen.add((setup.data_hash, setup.model))
        runs = {each: request.workspace.run(each) for each in (name, base)}
        ready = [run.look(request.patience(PATIENCE)) for run in runs.values()]
        pair, fresh = (
            pair_of(runs, request.patience(0.25)) if all(ready) else (None, False)
        )
        waiting |= not fresh
        if pair and pair["found"]:
            found.append((name, base, pair["found"].sentence))
    return found, waiting


def _rule(card: Card) -> str:
    """The first line of what a card says."""
    return next((line.strip() for line in card.body.split("\n") if line.strip()), "")[
        :QUOTED
    ]


def cell_page(request: PageRequest) -> Page:
    """The cards of one difficulty in one domain."""
    name, domain, kind = (
        request.parts[part] for part in ("tree", "domain", "difficulty")
    )
    tree = opened(request, name)
    known = {each.name: each.description for each in tree.domains} | {
        UNIVERSAL: EVERYWHERE
    }
    if domain not in known or kind not in set(Difficulty):
        raise NotHere(f"the tree has no place '{domain[:64]}, {kind[:20]}'")
    cell = tree.cells().get((domain, Difficulty(kind)), Cell())
    status = request.choice("status", list(Status))
    sort = request.choice("sort", list(ORDERS), "lift")
    count = dict(cell.statuses).get(status, 0) if status else cell.cards
    asked = {"sort": sort if "sort" in request.query else None, "status": status}
    values = {
        "cell": cell,
        "about": known[domain],
        "status": status,
        "tree_name": name,
        "sort": sort,
        "part": slice_of(
            request,
            partial(tree.listed, domain, kind, status, sort),
            PER_PAGE,
            count,
            IN_A_FILE,
        ),
        "to": partial(request.link, "tree", name, "cell", domain, kind, **asked),
    }
    return Page(
        "cell.html",
        place_name(domain, kind),
        values,
        crumbs=(HOME, Crumb(name, ("tree", name))),
    )


def opened(request: PageRequest, name: str) -> TreeIndex:
    """The tree of a page, read whole; an export waits for it."""
    return request.workspace.tree(name).whole(wait=request.static)


def place_name(domain: str, difficulty: str) -> str:
    """A place, for people."""
    plain = domain.replace("_", " ")
    return f"{plain[:1].upper()}{plain[1:]}, {difficulty}"


def words_of(asked: str) -> tuple[tuple[str, ...], bool]:
    """The words of what somebody typed, in lower case, each once; and whether something was left off as too much."""
    found = tuple(
        dict.fromkeys(
            word.strip(_EDGE) or word for word in asked[:MAX_QUERY].lower().split()
        )
    )
    return found[:MAX_WORDS], len(asked) > MAX_QUERY or len(found) > MAX_WORDS


def find(tree: TreeIndex, words: tuple[str, ...]) -> list[int]:
    """The positions of the cards that hold all words, best first."""
    with tree.reading() as db:
        scores: dict[int, int] | None = None
        for word in sorted(
            words, key=len, reverse=True
        ):  # the longest is likely the rarest
            found = _scores(db, word)
            scores = (
                found
                if scores is None
                else {at: scores[at] + found[at] for at in scores.keys() & found.keys()}
            )
            if not scores:
                return []
    ranked = scores or {}
    return sorted(ranked, key=lambda at: (-ranked[at], at))


def search_page(request: PageRequest) -> Page:
    """The cards that hold all words of a query."""
    name = request.parts["tree"]
    asked = request.query.get("q", "")
    tree, (words, cut) = opened(request, name), words_of(asked)
    found = tree.kept(("search", words), lambda: find(tree, words)) if words else []
    pattern = _pattern(words)

    def rows(limit: int, offset: int) -> list[Card]:
        return tree.at(found[offset : offset + limit])

    values = {
        "name": name,
        "asked": asked[:MAX_QUERY],
        "words": words,
        "cut": cut,
        "cards": tree.total().cards,
        "found": len(found),
        "missing": [] if found else [word for word in words if not find(tree, (word,))],
        "sort": "",
        "told": partial(_told, pattern=pattern),
        "part": slice_of(request, rows, PER_PAGE, len(found)),
        "to": partial(request.link, "tree", name, "search", q=asked[:MAX_QUERY]),
        "max_words": MAX_WORDS,
        "max_query": MAX_QUERY,
    }
    title = f"{asked[:60]} in {name}" if words else f"Search {name}"
    return Page(
        "search.html", title, values, crumbs=(HOME, Crumb(name, ("tree", name)))
    )


def _scores(db: sqlite3.Connection, word: str) -> dict[int, int]:
    """The cards that hold a word, each with what its best find counts."""
    phrase = " ".join(_RUNS.findall(word)) if word.isascii() else ""
    if phrase == word:
        scores: dict[int, int] = {}
        for column, weight in reversed(WEIGHTS.items()):
            sql = "SELECT rowid FROM words WHERE words MATCH ?"
            scores |= dict.fromkeys(
                (row[0] for row in db.execute(sql, (f'{column} : "{phrase}" *',))),
                weight,
            )
        return scores
    # A word with other signs: the index finds where its letters stand, and the texts themselves tell.
    where = (
        "WHERE position IN (SELECT rowid FROM words WHERE words MATCH ?)"
        if phrase
        else ""
    )
    texts = db.execute(
        f"SELECT position, json FROM texts {where}",
        (f'"{phrase}" *',) if phrase else (),
    )
    pattern = _pattern((word,))
    found = (
        (at, fields_of(Card.model_validate_json(text, context=TRUSTED)))
        for at, text in texts
    )
    weights = (
        (at, [*map(bool, map(pattern.search, map(str.lower, fields)))])
        for at, fields in found
    )
    return {
        at: [*WEIGHTS.values()][hits.index(True)] for at, hits in weights if any(hits)
    }


def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    r"""Finds words where they begin; one that begins with no letter, such as `\frac`, anywhere."""
    longest = sorted(words, key=len, reverse=True)
    starts = (
        "(?<![A-Za-z0-9])" if word[:1].isascii() and word[:1].isalnum() else ""
        for word in longest
    )
    return re.compile(
        "|".join(
            start + re.escape(word) for start, word in zip(starts, longest, strict=True)
        ),
        re.I,
    )


def _told(card: Card, pattern: re.Pattern[str]) -> tuple[Markup, list[Markup]]:
    """A card by its id, its triggers, and the lines that say most of what was looked for, all marked."""
    texts = [
        *card.body.split("\n"),
        *card.header.split("\n"),
        *card.routing_conditions,
        *card.wordings,
    ]
    triggers = {f"- {trigger}" for trigger in card.triggers}
    others = (
        (at, line) for at, line in enumerate(texts) if line.strip() not in triggers
    )
    hits = {
        at: n
        for at, line in others
        if (n := len({hit.lower() for hit in pattern.findall(line)}))
    }
    best = sorted(sorted(hits, key=lambda at: (-hits[at], at))[:QUOTED_LINES])
    lines = [
        "; ".join(card.triggers),
        *(_around(texts[at].strip(), pattern) for at in best),
    ]
    return marked(card.card_id, pattern), [marked(line, pattern) for line in lines]


def _around(line: str, pattern: re.Pattern[str]) -> str:
    """A long line cut to what stands around the first find."""
    if len(line) <= QUOTED:
        return line
    found = pattern.search(line)
    start = max(0, min(found.start() - QUOTED // 3 if found else 0, len(line) - QUOTED))
    end = start + QUOTED
    return (
        ("…" if start else "")
        + line[start:end].strip()
        + ("…" if end < len(line) else "")
    )


ROUTES = {
    "/tree/{tree}": tree_page,
    "/tree/{tree}/cell/{domain}/{difficulty}": cell_page,
    "/tree/{tree}/search": search_page,
}
