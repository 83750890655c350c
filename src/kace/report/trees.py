"""The pages of trees and learners: map, cards, card histories, proposals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from pydantic import ValidationError

from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    Status,
    lift_of,
    read_payload,
)
from kace.cards.store import JournalEntry, TreeStore
from kace.cards.tree import Domain
from kace.config import RetrievalConfig, profile_of
from kace.errors import KaceError
from kace.ladder.prompt import Context, solver_prompt
from kace.learning.report import Fate, report_of
from kace.models.base import Messages
from kace.report.charts import scale_over
from kace.report.inbox import Inbox
from kace.report.render import (
    NotHere,
    Page,
    PageRequest,
    measured_lift,
    slice_of,
)
from kace.report.workspace import OpenTree
from kace.runs.compare import compare, pairs_of
from kace.runs.table import CardUse, SolveRow, Table, cards_of, uses_of

PER_PAGE = 50
FIRST = 12  # cards on the first page of a list, above the map
RUNS = 12  # runs whose effect or cards are shown
EFFECTS = 3  # data sets on which the effect of a tree is shown
LATEST = 6  # changes on a tree's page
CHANGES = 40  # changes on a card's page
LEARNED = 12  # cards on a learner's page
PROPOSALS = 40  # per page
MAX_QUERY = 200
LEARNER_REFRESH = {"working": 3.0, "stopped": 15.0}


# Trees


class RunUse(NamedTuple):
    """A run that read a tree, the run it is compared with, and what its cards did."""

    run: Table
    base: Table | None
    shown: list[tuple[str, SolveRow]]
    cards: Mapping[str, CardUse]


def runs_of(request: PageRequest, opened: OpenTree) -> list[RunUse]:
    """Return the runs that read a tree, the system's own first."""
    workspace = request.workspace
    found = []
    for item in workspace.items("run"):
        manifest = workspace.manifest(item.name)
        own = item.path.is_relative_to(opened.path)  # of its learner
        if own or manifest.tree_hash == opened.hash:
            found.append((manifest.system != "kace", item.name))
    uses = []
    for _, name in sorted(found)[:RUNS]:
        with suppress(KaceError):
            run = workspace.table(name).named(name)
            other = workspace.base_of(name)
            base = workspace.table(other).named(other) if other else None
            shown = cards_of(pairs_of(base, run) if base else ())
            if not shown:  # the base has none of these problems and seeds
                base = None
                shown = cards_of(run.solves())
            uses.append(RunUse(run, base, shown, uses_of(shown)))
    return uses


def tree_page(request: PageRequest) -> Page:
    """Show what a tree was measured to do, its cards, its map, and its changes."""
    name = request.parts["tree"]
    opened = request.workspace.tree(name)
    effects = []
    shown = []
    for each in runs_of(request, opened):
        if each.base is not None:
            shown += each.shown
            effects.append((each, compare(each.base, each.run).sentence))
    uses = uses_of(shown)
    for card in () if effects else opened.tree:
        record = card.provenance  # what the learner counted
        if record.n_uses:
            counts = (record.n_uses, 0, 0, record.n_wins, record.n_losses)
            uses[card.card_id] = CardUse(card.card_id, *counts)
    cards = sorted(opened.tree, key=partial(_worst_first, uses))
    places: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        for domain in card.domain_tags:
            place = (domain, card.difficulty_tag.value)
            places.setdefault(place, []).append(card)
    everywhere = Domain(name=UNIVERSAL, description="read with every domain")
    domains = [*opened.tree.domains, everywhere]
    chosen = {
        "q": request.query.get("q", "")[:MAX_QUERY],
        "domain": request.choice("domain", [each.name for each in domains]),
        "difficulty": request.choice("difficulty", list(Difficulty)),
        "status": request.choice("status", list(Status)),
    }
    filtered = any(chosen.values())
    listed = [card for card in cards if _is_chosen(card, chosen)]
    changes = _changes(opened)
    learners = [item.name for item in request.workspace.items("learner")]
    values = {
        "tree": opened,
        "name": name,
        "cards": cards,
        "places": places,
        "learned": name in learners,
        "domains": domains,
        "chosen": chosen,
        "filtered": filtered,
        "uses": uses,
        "harmful": [use for use in uses.values() if use.flagged],
        "part": slice_of(request, listed, PER_PAGE if filtered else FIRST),
        "to": partial(request.link, "tree", name, **chosen),
        "effects": effects[:EFFECTS],
        "latest": changes[:LATEST],
    }
    return Page("tree.html", name, values)


def _worst_first(
    uses: Mapping[str, CardUse], card: Card
) -> tuple[bool, float, float, str]:
    """Return a sort key: most broken first, then by lift, deprecated cards last."""
    use = uses.get(card.card_id)
    lift = measured_lift(card)
    return (
        card.status is Status.DEPRECATED,
        use.gained - use.broken if use else math.inf,
        -lift.effect if lift else math.inf,
        card.card_id,
    )


def _is_chosen(card: Card, chosen: dict[str, str]) -> bool:
    """Whether a card is of the place and status, and holds all words."""
    places = {
        "domain": card.domain_tags,
        "difficulty": (card.difficulty_tag,),
        "status": (card.status,),
    }
    for name, known in places.items():
        if chosen[name] not in ("", *known):
            return False
    parts = (card.card_id, card.payload, *card.routing_conditions)
    text = "\n".join([*parts, *card.wordings]).lower()
    return all(word in text for word in chosen["q"].lower().split())


def _changes(opened: OpenTree) -> list[JournalEntry]:
    """Return the journal of a tree, newest first; a single file has none."""
    if opened.generation is None:
        return []
    return [*reversed(TreeStore(opened.path).log())]


# Cards


def card_page(request: PageRequest) -> Page:
    """Show what a card says, what it is worth, where it was read, and its history."""
    name, card_id = request.parts.values()
    opened = request.workspace.tree(name)
    if card_id not in opened.tree:
        what = f"the tree {name} has no card '{card_id[:64]}'"
        raise NotHere(what, fix="search the tree for what it says")
    card = opened.tree.card(card_id)
    uses = [use for use in runs_of(request, opened) if card_id in use.cards]
    history = []
    for entry in _changes(opened):
        if card_id in [change.card_id for change in entry.cards]:
            history.append(entry)
    values = {
        "card": card,
        "tree": opened,
        "parts": read_payload(card.payload),
        "sent": _as_sent(card, opened),
        "lift": lift_of(card),
        "uses": uses,
        "history": history[:CHANGES],
    }
    return Page("card.html", card_id, values, ("tree", name))


def _as_sent(card: Card, opened: OpenTree) -> Messages:
    """Return what an attempt that reads this card alone is sent."""
    read = RetrievalConfig()
    with suppress(KaceError, ValidationError):
        profile = profile_of(None, opened.path)
        read = RetrievalConfig.model_validate(profile.get("retrieval", {}))
    context = Context((card,), placement=read.placement)
    return solver_prompt("(the problem)", None, context).messages


# Learners


def learner_page(request: PageRequest) -> Page:
    """Show a learning run as it is now."""
    name = request.parts["learner"]
    item = request.workspace.item("learner", name)
    report = report_of(item.path)
    waiting = []
    for inbox in request.workspace.items("inbox"):
        waiting += [inbox.name] * len(Inbox(inbox.path).waiting())
    addresses = {}
    for run in request.workspace.items("run"):
        if run.path.parent == item.path / "learn":
            addresses[run.path.name] = request.link("run", run.name)
    ends = [end for score in report.scores for end in score.interval]
    values = {
        "name": name,
        "report": report,
        "waiting": waiting,
        "cards": report.cards[:LEARNED],
        "addresses": addresses,
        "run_scale": scale_over(
            min(ends, default=0), max(ends, default=1), about=6
        ),
    }
    refresh = LEARNER_REFRESH.get(report.state)
    return Page("learner.html", name, values, refresh=refresh)


def proposals_page(request: PageRequest) -> Page:
    """Show the proposals of a learner, all or those of one outcome."""
    name = request.parts["learner"]
    every = report_of(request.workspace.item("learner", name).path).proposals
    fate = request.choice("fate", list(Fate))
    found = [each for each in every if fate in ("", each.fate)]
    values = {
        "name": name,
        "every": every,
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
