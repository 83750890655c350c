"""The pages of trees and learners: map, cards, card histories, proposals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    LiftMark,
    Status,
    lift_of,
    read_payload,
)
from kace.cards.store import JournalEntry, TreeStore
from kace.cards.tree import Domain
from kace.config import RetrievalConfig, profile_of
from kace.errors import KaceError
from kace.ladder.prompt import Context, solver_prompt
from kace.ladder.retrieve import estimate
from kace.learning.report import CardReport, Fate, LearningReport, report_of
from kace.models.base import Messages
from kace.report.charts import lift_scale, scale_over
from kace.report.inbox import Inbox
from kace.report.render import (
    BANDS,
    NotHere,
    Page,
    PageRequest,
    slice_of,
)
from kace.report.workspace import OpenTree
from kace.runs.compare import compare
from kace.runs.table import CardUse

PER_PAGE = 50
IN_A_FILE = 2_000  # cards that a list holds in a file
FIRST = 12  # cards on the first page of a list, above the map
RUNS = 12  # runs whose effect or cards are shown
EFFECTS = 3  # data sets on which the effect of a tree is shown
LATEST = 6  # changes on a tree's page
CHANGES = 40  # changes on a card's page
LEARNED = 12  # cards on a learner's page
PROPOSALS = 40  # per page
MAX_QUERY = 200
SORTS = ("worst", "lift", "id")
READ_AT = {
    Difficulty.MEDIUM: "read at MS",
    Difficulty.HARD: "read at HS",
    Difficulty.UNIVERSAL: "read at both",
}
VERDICTS = {
    "good": "It helps: the interval lies above zero.",
    "bad": "It harms: the interval lies below zero.",
    "open": "The interval holds zero: it may help, harm, or do nothing.",
}
STATUS_WORDS = {
    Status.EXPERIMENTAL: "Shown in solves; the learner has not shown it to help.",
    Status.VALIDATED: "Shown in solves; it probably helps.",
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


# Trees


@dataclass(frozen=True, slots=True)
class Cell:
    """The cards of one place of the map, or of a whole tree."""

    cards: Sequence[Card]
    shown: Sequence[Card]  # those that a solve may read
    lifts: Sequence[LiftMark]  # of those shown
    lift: float | None  # the mean of the lifts
    tokens: int  # estimated, of the cards shown
    statuses: Sequence[tuple[str, int]]


def cell_of(cards: Sequence[Card]) -> Cell:
    """Count the cards of a place."""
    shown = []
    lifts = []
    for card in cards:
        if card.status is Status.DEPRECATED:
            continue
        shown.append(card)
        lift = measured_lift(card)
        if lift:
            lifts.append(lift)
    mean = None
    if lifts:
        mean = sum(lift.effect for lift in lifts) / len(lifts)
    statuses = Counter(card.status.value for card in cards)
    tokens = sum(map(estimate, shown))
    return Cell(cards, shown, lifts, mean, tokens, statuses.most_common())


def measured_lift(card: Card) -> LiftMark | None:
    """Return the lift of a card if it was measured on enough problems."""
    found = lift_of(card)
    return None if found is None or found.mark.vague else found.mark


def sorted_cards(
    cards: Iterable[Card], sort: str, counts: Mapping[str, CardUse]
) -> list[Card]:
    """Return cards in one of SORTS: deprecated ones last, then those not measured."""

    def key(card: Card) -> tuple[bool, float, str]:
        value = 0.0
        lift = measured_lift(card)
        use = counts.get(card.card_id)
        if sort == "worst":
            value = use.gained - use.broken if use else math.inf
        elif sort == "lift":
            value = -lift.effect if lift else 2.0
        return card.status is Status.DEPRECATED, value, card.card_id

    return sorted(cards, key=key)


def place_name(domain: str, difficulty: str) -> str:
    """Return the name of a place, such as `Number theory, hard`."""
    plain = domain.replace("_", " ")
    place = f"{plain[:1].upper()}{plain[1:]}"
    return place if domain == difficulty else f"{place}, {difficulty}"


def tree_page(request: PageRequest) -> Page:
    """Show what a tree was measured to do, its cards, its map, and its changes."""
    name = request.parts["tree"]
    opened = request.workspace.tree(name)
    cards = list(opened.tree)
    places: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        for domain in card.domain_tags:
            place = (domain, card.difficulty_tag.value)
            places.setdefault(place, []).append(card)
    cells = {place: cell_of(found) for place, found in places.items()}
    everywhere = Domain(name=UNIVERSAL, description="read with every domain")
    domains = [*opened.tree.domains, everywhere]
    chosen = {
        "q": request.query.get("q", "")[:MAX_QUERY],
        "domain": request.choice("domain", [each.name for each in domains]),
        "difficulty": request.choice("difficulty", list(Difficulty)),
        "status": request.choice("status", list(Status)),
        "sort": request.choice("sort", SORTS),
    }
    filtered = any(value for key, value in chosen.items() if key != "sort")
    listed = [card for card in cards if _is_chosen(card, chosen)]
    counts, in_runs = _counts(request, opened)
    sort = chosen["sort"] or ("worst" if counts else "lift")
    ordered = sorted_cards(listed, sort, counts)
    per_page = PER_PAGE if filtered else FIRST
    changes = (
        TreeStore(opened.path).log()[-LATEST:] if opened.path.is_dir() else ()
    )
    learners = [item.name for item in request.workspace.items("learner")]
    values = {
        "tree": opened,
        "name": name,
        "total": cell_of(cards),
        "cells": cells,
        "most": max((len(cell.shown) for cell in cells.values()), default=0),
        "learned": name in learners,
        "difficulties": READ_AT,
        "domains": domains,
        "bands": BANDS,
        "chosen": chosen,
        "filtered": filtered,
        "sort": sort,
        "sorts": SORTS,
        "uses": counts,
        "in_runs": in_runs,
        "harmful": [use for use in counts.values() if use.flagged],
        "part": slice_of(request, ordered, per_page, IN_A_FILE),
        "to": partial(request.link, "tree", name, **chosen),
        "effects": list(_effects(request, opened)),
        "latest": changes[::-1],
    }
    return Page("tree.html", name, values)


def _is_chosen(card: Card, chosen: dict[str, str]) -> bool:
    """Whether a card is of the place and status, and holds all words."""
    if chosen["domain"] and chosen["domain"] not in card.domain_tags:
        return False
    if chosen["difficulty"] not in ("", card.difficulty_tag):
        return False
    if chosen["status"] not in ("", card.status):
        return False
    parts = [card.card_id, card.payload]
    text = "\n".join([*parts, *card.routing_conditions, *card.wordings]).lower()
    return all(word in text for word in chosen["q"].lower().split())


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


def _counts(
    request: PageRequest, opened: OpenTree
) -> tuple[dict[str, CardUse], bool]:
    """Return what cards gained and broke, and whether the open runs say so.

    Where no open run has a base, it is what their learner counted.
    """
    found: dict[str, CardUse] = {}
    for run, base in _runs_of(request, opened):
        with suppress(KaceError):
            other = request.workspace.table(base) if base else None
            table = request.workspace.table(run)
            for use in table.cards(base=other) if other else ():
                known = found.get(use.card)
                found[use.card] = known + use if known else use
    if found:
        return found, True
    for card in opened.tree:
        record = card.provenance
        if record.n_uses:
            counted = (record.n_uses, 0, 0, record.n_wins, record.n_losses)
            found[card.card_id] = CardUse(card.card_id, *counted)
    return found, False


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
    places = []
    for domain in card.domain_tags:
        address = request.link("tree", name, domain=domain, difficulty=kind)
        places.append((place_name(domain, kind), f"{address}#cards"))
    counts, in_runs = _counts(request, opened)
    values = {
        "card": card,
        "total": counts.get(card_id),
        "in_runs": in_runs,
        "tree_name": name,
        "status_words": STATUS_WORDS[card.status],
        "places": places,
        "parts": read_payload(card.payload),
        "sent": _as_sent(card, opened),
        "lift": lift_of(card),
        "verdicts": VERDICTS,
        "uses": list(_uses(request, opened, card_id)),
        "history": _history(opened, card_id) if opened.path.is_dir() else None,
    }
    return Page("card.html", card_id, values, ("tree", name))


def _as_sent(card: Card, opened: OpenTree) -> Messages:
    """Return what an attempt that reads this card alone is sent."""
    profile: Mapping[str, Mapping[str, object]] = {}
    with suppress(KaceError):
        profile = profile_of(None, opened.path)
    read = RetrievalConfig()
    with suppress(ValidationError):
        read = RetrievalConfig.model_validate(profile.get("retrieval", {}))
    context = Context((card,), placement=read.placement)
    return solver_prompt("(the problem)", None, context).messages


def _uses(
    request: PageRequest, opened: OpenTree, card_id: str
) -> Iterator[dict[str, Any]]:
    """Iterate over the runs of the tree that were shown the card, with their bases."""
    for run, base in _runs_of(request, opened):
        with suppress(KaceError):
            table = request.workspace.table(run)
            other = request.workspace.table(base) if base else None
            # All solves count where the base has none of these problems and seeds.
            uses = [*table.cards(base=other), *table.cards()]
            for use in [use for use in uses if use.card == card_id][:1]:
                yield {
                    "run": run,
                    "base": base,
                    "use": use,
                    "solves": len(table),
                }


def _history(opened: OpenTree, card_id: str) -> list[JournalEntry]:
    """Return the journal's changes of a card, newest first."""
    found = []
    for entry in reversed(TreeStore(opened.path).log()):
        if any(change.card_id == card_id for change in entry.cards):
            found.append(entry)
    return found[:CHANGES]


# Learners


def learner_page(request: PageRequest) -> Page:
    """Show a learning run as it is now."""
    name = request.parts["learner"]
    item = request.workspace.item("learner", name)
    report = report_of(item.path)
    stories = report.cards[:LEARNED]
    waiting = []
    for inbox in request.workspace.items("inbox"):
        waiting += [inbox.name] * len(Inbox(inbox.path).waiting())
    addresses = {}
    for run in request.workspace.items("run"):
        if run.path.parent == item.path / "learn":
            addresses[run.path.name] = request.link("run", run.name)
    values = {
        "name": name,
        "waiting": waiting,
        "stories": stories,
        "addresses": addresses,
        **_report_values(report),
    }
    refresh = LEARNER_REFRESH.get(report.state)
    return Page("learner.html", name, values, refresh=refresh)


def newest_lift(story: CardReport) -> LiftMark | None:
    """Return the newest lift of a card, to be drawn."""
    lift = story.lift
    return LiftMark(lift.effect, lift.low, lift.high) if lift else None


def _report_values(report: LearningReport) -> dict[str, object]:
    """Return a report with the scales of its charts."""
    ends = [end for score in report.scores for end in score.interval]
    lifts = []
    for story in report.cards:
        lift = newest_lift(story)
        if lift and not lift.vague:
            lifts.append(lift)
    return {
        "report": report,
        "lift_of": newest_lift,
        "run_scale": scale_over(min(ends or [0]), max(ends or [1]), about=6),
        "lift_scale": lift_scale(lifts),
    }


def proposals_page(request: PageRequest) -> Page:
    """Show the proposals of a learner, all or those of one outcome."""
    name = request.parts["learner"]
    every = report_of(request.workspace.item("learner", name).path).proposals
    fate = request.choice("fate", list(Fate))
    found = [each for each in every if fate in ("", each.fate)]
    values = {
        "name": name,
        "every": every,
        "fates": FATES,
        "counts": Counter(each.fate for each in every),
        "rules": Counter(each.refused.rule for each in every if each.refused),
        "fate": fate,
        "part": slice_of(request, found, PROPOSALS),
        "to": partial(request.link, "learner", name, "proposals", fate=fate),
    }
    above = ("learner", name)
    return Page("learner_proposals.html", "Proposals", values, above)


ROUTES: dict[str, Callable[[PageRequest], Page]] = {
    "/tree/{tree}": tree_page,
    "/tree/{tree}/card/{card}": card_page,
    "/learner/{learner}": learner_page,
    "/learner/{learner}/proposals": proposals_page,
}
