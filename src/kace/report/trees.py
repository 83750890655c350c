"""The pages of trees and learners: map, places, cards, search, differences, proposals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import ndiff
from functools import partial
from operator import itemgetter
from pathlib import Path

from markupsafe import Markup

from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    LiftMark,
    Status,
    TextError,
    lift_of,
    read_payload,
)
from kace.cards.store import JournalEntry, TreeStore
from kace.cards.tree import Domain
from kace.errors import KaceError
from kace.ladder.prompt import card_text
from kace.ladder.retrieve import estimate
from kace.learning.report import CardReport, Fate, LearningReport, report_of
from kace.report.charts import lift_scale, scale_over
from kace.report.inbox import Inbox
from kace.report.render import (
    BANDS,
    HOME,
    Crumb,
    NotHere,
    Page,
    PageRequest,
    marked,
    render_document,
    slice_of,
)
from kace.report.workspace import OpenTree
from kace.runs.compare import compare
from kace.runs.stats import wilson

PER_PAGE = 50
IN_A_FILE = 2_000  # cards that a list holds in a file
FIRST = 12  # cards that the tree's page lists
RUNS = 12  # runs whose effect or cards are shown
EFFECTS = 3  # data sets on which the effect of a tree is shown
LATEST = 6  # changes on a tree's page
CHANGES = 40  # changes on a card's page
LEARNED = 12  # cards on a learner's page
PROPOSALS = 40  # per page
MAX_QUERY = 200
MAX_WORDS = 8
QUOTED = 200  # characters of a line that are quoted
SORTS = ("lift", "-lift", "id", "-id", "uses", "-uses")
READ_AT = {
    Difficulty.MEDIUM: "read at MS",
    Difficulty.HARD: "read at HS",
    Difficulty.UNIVERSAL: "read at both",
}
EVERYWHERE = "Cards of every domain: they are read whatever a problem is about."
VERDICTS = {
    "good": "It helps: the interval lies above zero.",
    "bad": "It harms: the interval lies below zero.",
    "open": "The interval holds zero: it may help, harm, or do nothing.",
}
STATUS_WORDS = {
    Status.EXPERIMENTAL: "Shown in solves; not yet known to help or to harm.",
    Status.VALIDATED: "Shown in solves; measured to help.",
    Status.DEPRECATED: "Kept in the tree and never shown in a solve.",
}
FATES = {
    Fate.KEPT: ("in the tree", "good"),
    Fate.RETIRED: ("retired", "plain"),
    Fate.MERGED: ("merged", "info"),
    Fate.ADMITTED: ("admitted", "info"),
    Fate.REFUSED: ("refused", "bad"),
    Fate.WAITING: ("waiting for a ruling", "warn"),
}
"""What becomes of a proposal: its words and their colour."""
LEARNER_REFRESH = {"working": 3.0, "stopped": 15.0}


# Cards in figures


@dataclass(frozen=True, slots=True)
class Cell:
    """The cards of one place of the map, or of a whole tree."""

    cards: Sequence[Card]

    @property
    def shown(self) -> list[Card]:
        """The cards that a solve may read."""
        return [
            card for card in self.cards if card.status is not Status.DEPRECATED
        ]

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """How many cards there are of each status, the best first."""
        found = Counter(card.status for card in self.cards)
        order = (Status.VALIDATED, Status.EXPERIMENTAL, Status.DEPRECATED)
        return [
            (status.value, found[status]) for status in order if found[status]
        ]

    @property
    def tokens(self) -> int:
        """The estimated tokens of the cards that can be shown."""
        return sum(map(estimate, self.shown))

    @property
    def lifts(self) -> list[LiftMark]:
        """The measured lifts of the cards that can be shown."""
        return [lift for card in self.shown if (lift := measured_lift(card))]

    @property
    def lift(self) -> float | None:
        """The mean of those lifts."""
        lifts = self.lifts
        return (
            sum(lift.effect for lift in lifts) / len(lifts) if lifts else None
        )


def measured_lift(card: Card) -> LiftMark | None:
    """Return the lift of a card if enough problems stand behind it."""
    found = lift_of(card)
    return None if found is None or found.mark.vague else found.mark


def cells_of(cards: Iterable[Card]) -> dict[tuple[str, Difficulty], Cell]:
    """Return every place that has cards. A card of two domains lies in both."""
    places: dict[tuple[str, Difficulty], list[Card]] = {}
    for card in cards:
        for domain in card.domain_tags:
            places.setdefault((domain, card.difficulty_tag), []).append(card)
    return {place: Cell(found) for place, found in places.items()}


def sorted_cards(cards: Iterable[Card], sort: str) -> list[Card]:
    """Return cards in one of SORTS: deprecated ones last, then those not measured."""
    name = sort.removeprefix("-")
    sign = -1 if sort.startswith("-") else 1

    def key(card: Card) -> tuple[float, float]:
        if name == "uses":
            return 0, -sign * card.provenance.n_uses
        lift = measured_lift(card)
        return (0, -sign * lift.effect) if lift else (1, 0)

    found = list(cards)
    if name == "id":
        found = found[::sign]
    else:
        found.sort(key=key)
    return sorted(found, key=lambda card: card.status is Status.DEPRECATED)


def place_name(domain: str, difficulty: str) -> str:
    """Return the name of a place, such as `Number theory, hard`."""
    plain = domain.replace("_", " ")
    return f"{plain[:1].upper()}{plain[1:]}, {difficulty}"


# Tree pages


def tree_page(request: PageRequest) -> Page:
    """Show what a tree was measured to do, its cards, its map, and its changes."""
    name = request.parts["tree"]
    opened = request.workspace.tree(name)
    cards = list(opened.tree)
    sort = request.choice("sort", SORTS, "lift")
    ordered = sorted_cards(cards, sort)
    changes = TreeStore(opened.path).log()[-LATEST:] if opened.journal else ()
    everywhere = Domain(name=UNIVERSAL, description="read with every domain")
    domains = [*opened.tree.domains, everywhere]
    total = Cell(cards)
    cells = cells_of(cards)
    learners = []
    for item in request.workspace.items("learner"):
        learners.append(item.name)
    values = {
        "tree": opened,
        "name": name,
        "total": total,
        "cells": cells,
        "most": max((len(cell.shown) for cell in cells.values()), default=0),
        "learned": name in learners,
        "difficulties": READ_AT,
        "domains": domains,
        "bands": BANDS,
        "sort": sort,
        "quoted": lambda card: (card.card_id, [_first_line(card)]),
        "part": slice_of(request, len(ordered), ordered, FIRST, IN_A_FILE),
        "to": lambda **query: (
            request.link("tree", name, **{"sort": sort, **query}) + "#cards"
        ),
        "effects": list(_effects(request, opened)),
        "latest": changes[::-1],
    }
    return Page("tree.html", name, values)


def _first_line(card: Card) -> str:
    """Return the first line of what a card says."""
    return card.body.strip().partition("\n")[0].strip()[:QUOTED]


def _runs_of(
    request: PageRequest, opened: OpenTree
) -> Iterator[tuple[str, str]]:
    """Iterate over the runs that read a tree, with their bases, the system's first."""
    found = []
    for item in request.workspace.items("run"):
        manifest = request.workspace.manifest(item.name)
        own = item.path.is_relative_to(opened.path)  # of its learner
        if own or manifest.tree_hash == opened.hash:
            found.append((manifest.system != "kace", item.name))
    for _, run in sorted(found)[:RUNS]:
        yield run, request.workspace.base_of(run)


def _effects(
    request: PageRequest, opened: OpenTree
) -> Iterator[tuple[str, str, str]]:
    """Iterate over what a tree does against the base, one run per data set."""
    seen: set[tuple[str, str]] = set()
    for run, base in _runs_of(request, opened):
        manifest = request.workspace.manifest(run)
        data = (manifest.data_hash, manifest.model)
        if not base or data in seen or len(seen) == EFFECTS:
            continue
        seen.add(data)
        with suppress(KaceError):
            ours = request.workspace.table(run).named(run)
            theirs = request.workspace.table(base).named(base)
            yield run, base, compare(theirs, ours).sentence


def cell_page(request: PageRequest) -> Page:
    """Show the cards of one difficulty in one domain."""
    name, domain, kind = request.parts.values()
    opened = request.workspace.tree(name)
    known = {each.name: each.description for each in opened.tree.domains}
    known[UNIVERSAL] = EVERYWHERE
    if domain not in known or kind not in set(Difficulty):
        raise NotHere(f"the tree has no place '{domain[:64]}, {kind[:20]}'")
    cell = cells_of(opened.tree).get((domain, Difficulty(kind)), Cell([]))
    status = request.choice("status", list(Status))
    sort = request.choice("sort", SORTS, "lift")
    listed = [card for card in cell.cards if status in ("", card.status)]
    ordered = sorted_cards(listed, sort)
    query = {"sort": request.choice("sort", SORTS), "status": status}
    values = {
        "cell": cell,
        "about": known[domain],
        "status": status,
        "tree_name": name,
        "sort": sort,
        "part": slice_of(request, len(ordered), ordered, PER_PAGE, IN_A_FILE),
        "to": partial(
            request.link, "tree", name, "cell", domain, kind, **query
        ),
    }
    crumbs = (HOME, Crumb(name, ("tree", name)))
    return Page("cell.html", place_name(domain, kind), values, crumbs)


def search_page(request: PageRequest) -> Page:
    """Show the cards in which words begin with all that was asked for."""
    name = request.parts["tree"]
    opened = request.workspace.tree(name)
    asked = request.query.get("q", "")[:MAX_QUERY]
    every = list(dict.fromkeys(asked.lower().split()))
    words = every[:MAX_WORDS]
    cards = list(opened.tree)
    found = find_cards(cards, words)
    pattern = _word_pattern(sorted(words, key=len, reverse=True))
    values = {
        "name": name,
        "asked": asked,
        "words": words,
        "cut": len(every) > MAX_WORDS
        or len(request.query.get("q", "")) > MAX_QUERY,
        "cards": len(cards),
        "found": len(found),
        "missing": [word for word in words if not find_cards(cards, [word])],
        "sort": "",
        "quoted": partial(_quoted, pattern=pattern),
        "part": slice_of(request, len(found), found, PER_PAGE),
        "to": partial(request.link, "tree", name, "search", q=asked),
        "max_words": MAX_WORDS,
        "max_query": MAX_QUERY,
    }
    title = f"{asked[:60]} in {name}" if words else f"Search {name}"
    return Page(
        "search.html", title, values, (HOME, Crumb(name, ("tree", name)))
    )


def find_cards(cards: Iterable[Card], words: Sequence[str]) -> list[Card]:
    """Return the cards that hold all words, best first.

    A word in the id counts most, then one in what says when to use the card.
    """
    scores = []
    for place, card in enumerate(cards):
        header, _, body = card.payload.partition("\n\n")
        use = "\n".join((header, *card.routing_conditions, *card.wordings))
        total = 0
        for word in words:
            pattern = _word_pattern([word])
            if pattern.search(card.card_id):
                total += 100
            elif pattern.search(use):
                total += 10
            elif pattern.search(body):
                total += 1
            else:
                break
        else:
            scores.append((-total, place, card))
    scores.sort(key=itemgetter(0, 1))
    if not words:
        return []
    return list(map(itemgetter(2), scores))


def _word_pattern(words: Sequence[str]) -> re.Pattern[str]:
    r"""Return what finds words where they begin; `\frac` and the like anywhere."""
    parts = []
    for word in words:
        start = (
            "(?<![A-Za-z0-9])"
            if word[0].isascii() and word[0].isalnum()
            else ""
        )
        parts.append(start + re.escape(word))
    return re.compile("|".join(parts), re.IGNORECASE)


def _quoted(
    card: Card, pattern: re.Pattern[str]
) -> tuple[Markup, list[Markup]]:
    """Return a card's id, triggers and first matching line, with the finds marked."""
    triggers = "; ".join(card.triggers)
    lines = [marked(triggers, pattern)]
    texts = [*card.body.split("\n"), *card.routing_conditions, *card.wordings]
    for text in texts:
        found = pattern.search(text)
        if found:
            start = max(0, found.start() - QUOTED // 3)
            end = "…" if start + QUOTED < len(text) else ""
            cut = text[start : start + QUOTED] + end
            lines.append(marked(f"…{cut}" if start else cut, pattern))
            break
    return marked(card.card_id, pattern), lines


# Cards


def card_page(request: PageRequest) -> Page:
    """Show what a card says, what it is worth, where it was read, and its history."""
    name, card_id = request.parts.values()
    opened = request.workspace.tree(name)
    if card_id not in opened.tree:
        what = f"the tree {name} has no card '{card_id[:64]}'"
        raise NotHere(what, fix="search the tree for what it says")
    card = opened.tree.card(card_id)
    kind = card.difficulty_tag.value
    record = card.provenance
    judged = record.n_wins + record.n_losses
    places = []
    for domain in card.domain_tags:
        places.append((place_name(domain, kind), ("cell", domain, kind)))
    try:
        parts = read_payload(card.payload)
    except TextError:  # of an older version: shown as it is
        parts = None
    lift = lift_of(card)
    values = {
        "card": card,
        "tree_name": name,
        "status_words": STATUS_WORDS[card.status],
        "places": places,
        "parts": parts,
        "as_read": card_text(card),
        "lift": lift if lift and lift.counts else None,
        "verdicts": VERDICTS,
        "judged": judged,
        "interval": wilson(record.n_wins, judged) if judged else None,
        "uses": list(_uses(request, opened, card_id)),
        "history": _history(opened, card) if opened.journal else None,
    }
    first, place = places[0]
    crumbs = (
        HOME,
        Crumb(name, ("tree", name)),
        Crumb(first, ("tree", name, *place)),
    )
    return Page("card.html", card_id, values, crumbs)


def _uses(
    request: PageRequest, opened: OpenTree, card_id: str
) -> Iterator[dict[str, object]]:
    """Iterate over the runs of the tree that were shown the card, with their bases."""
    for run, base in _runs_of(request, opened):
        with suppress(KaceError):
            table = request.workspace.table(run)
            other = request.workspace.table(base) if base else None
            for use in table.cards(card_id, base=other):
                judged = use.right + use.wrong
                yield {
                    "run": run,
                    "base": base,
                    "use": use,
                    "solves": len(table),
                    "judged": judged,
                    "interval": wilson(use.right, judged) if judged else None,
                }


def _history(
    opened: OpenTree, card: Card
) -> list[tuple[JournalEntry | None, str, list[str]]]:
    """Return the changes of a card, newest first, with what each did."""
    steps: list[tuple[JournalEntry | None, str, list[str]]] = []
    newest: Card | None = None
    for entry in reversed(TreeStore(opened.path).log()):
        for change in entry.cards:
            if change.card_id != card.card_id:
                continue
            newest = newest or change.after
            lines = card_diff(change.before, change.after)
            steps.append(
                (entry, what_changed(change.before, change.after), lines)
            )
    if newest not in (None, card):
        steps.insert(0, (None, "edited by hand", card_diff(newest, card)))
    return steps[:CHANGES]


def what_changed(before: Card | None, after: Card | None) -> str:
    """Return in words what a change did to a card."""
    if before is None:
        return "created"
    if after is None:
        return "removed"
    if after.status is Status.DEPRECATED is not before.status:
        return "deprecated"
    if before.payload != after.payload:
        return "text edited"
    moved = before.difficulty_tag is not after.difficulty_tag
    if moved or before.domain_tags != after.domain_tags:
        return "relocated"
    return "record updated"


def card_diff(before: Card | None, after: Card | None) -> list[str]:
    """Return the lines that a change of a card took away (`-`) and brought (`+`)."""
    old = _lines_of(before) if before else []
    new = _lines_of(after) if after else []
    found = []
    for line in ndiff(old, new):
        if line[0] in "-+":
            found.append(f"{line[0]}{line[2:]}")
    return found


def _lines_of(card: Card) -> list[str]:
    """Return a card line by line: what is known of it, then its text."""
    record = card.provenance
    return [
        f"status: {card.status.value}",
        f"place: {card.difficulty_tag.value} / {', '.join(card.domain_tags)}",
        f"choose by: {'; '.join(card.routing_conditions)}",
        f"lift: {record.validated_lift or 'none'}",
        f"helpfulness: {card.helpfulness_score:g}",
        f"uses: {record.n_uses}",
        f"right: {record.n_wins}",
        f"wrong: {record.n_losses}",
        f"wordings: {len(card.wordings)}",
        *card.payload.strip("\n").split("\n"),
    ]


# Learners


def learner_page(request: PageRequest) -> Page:
    """Show a learning run as it is now."""
    name = request.parts["learner"]
    item = request.workspace.item("learner", name)
    report = report_of(item.path)
    stories = sorted(report.cards, key=_is_silent)[:LEARNED]
    inbox, waiting = _open_inbox(request, report.teacher)
    steps = item.path / "learn"
    addresses = {}
    for run in request.workspace.items("run"):
        if run.path.parent == steps:
            addresses[run.path.name] = request.link("run", run.name)
    values = {
        "name": name,
        "inbox": inbox,
        "waiting": waiting,
        "stories": stories,
        "addresses": addresses,
        **_report_values(report, stories),
    }
    return Page(
        "learner.html", name, values, refresh=LEARNER_REFRESH.get(report.state)
    )


def _is_silent(story: CardReport) -> tuple[bool, bool]:
    """Whether no solve reads a card, and whether its lift shows nothing."""
    lift = newest_lift(story)
    return story.card.status is Status.DEPRECATED, lift is None or lift.vague


def newest_lift(story: CardReport) -> LiftMark | None:
    """Return the newest lift of a card, to be drawn."""
    lift = story.lift
    return LiftMark(lift.effect, lift.low, lift.high) if lift else None


def _report_values(
    report: LearningReport, stories: Iterable[CardReport]
) -> dict[str, object]:
    """Return a report with the scales of its charts."""
    ends = [end for score in report.scores for end in score.interval] or [
        0.0,
        1.0,
    ]
    lifts = []
    for story in stories:
        lift = newest_lift(story)
        if lift and not lift.vague:
            lifts.append(lift)
    return {
        "report": report,
        "lift_of": newest_lift,
        "run_scale": scale_over(min(ends), max(ends), about=6),
        "lift_scale": lift_scale(lifts),
    }


def _open_inbox(request: PageRequest, teacher: str) -> tuple[str, int]:
    """Return the open exchange folder of a teacher, and how many requests wait in it.

    The teacher's folder was relative to some other folder, so its end is compared.
    """
    provider, _, folder = teacher.partition("/")
    parts = [
        part for part in Path(folder).parts if part not in ("/", ".", "..")
    ]
    for item in request.workspace.items("inbox"):
        if provider == "exchange" and parts == list(
            item.path.parts[-len(parts) :]
        ):
            entries = Inbox(item.path).entries()
            return item.name, sum(entry.answered is None for entry in entries)
    return "", 0


def proposals_page(request: PageRequest) -> Page:
    """Show the proposals of a learner, by epoch and by what became of them."""
    name = request.parts["learner"]
    every = report_of(request.workspace.item("learner", name).path).proposals
    chosen = {}
    for field in ("epoch", "place", "fate", "rule"):
        chosen[field] = (
            "" if request.static else request.query.get(field, "")[:80]
        )
    rules: Counter[tuple[str, str]] = Counter()
    found = []
    for each in every:
        if each.refused:
            rules[each.refused.rule, each.refused.by] += 1
        rule = each.refused.rule if each.refused else ""
        own = (str(each.epoch), each.place, each.fate, rule)
        pairs = zip(chosen.values(), own, strict=True)
        if all(wanted in ("", value) for wanted, value in pairs):
            found.append(each)
    values = {
        "name": name,
        "every": every,
        "fates": FATES,
        "counts": Counter(each.fate for each in every),
        "rules": rules.most_common(),
        "chosen": chosen,
        "part": slice_of(request, len(found), found, PROPOSALS),
        "to": partial(request.link, "learner", name, "proposals", **chosen),
    }
    crumbs = (HOME, Crumb(name, ("learner", name)))
    return Page("learner_proposals.html", "Proposals", values, crumbs)


def learner_document(report: LearningReport) -> str:
    """Return the report of a learning run as one page that needs nothing else."""
    return render_document(
        "report_learner.html",
        title=f"{report.name}: what was learned",
        **_report_values(
            report, [story for story in report.cards if story.lift]
        ),
    )


ROUTES: dict[str, Callable[[PageRequest], Page]] = {
    "/tree/{tree}": tree_page,
    "/tree/{tree}/search": search_page,
    "/tree/{tree}/cell/{domain}/{difficulty}": cell_page,
    "/tree/{tree}/card/{card}": card_page,
    "/learner/{learner}": learner_page,
    "/learner/{learner}/proposals": proposals_page,
}
