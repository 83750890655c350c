"""A card's page: what it says, what it is worth, where it came from, where it was read, and what it went through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kace.cards.card import Card, LiftCounts, Status, lift_of, read_payload
from kace.cards.store import JournalEntry
from kace.ladder.prompt import card_text
from kace.report.page import HOME, Crumb, Page, PageRequest
from kace.report.pages.diff import DiffLine, card_diff, diff_lines, what_changed
from kace.report.pages.tree import opened, place_name
from kace.report.related import base_of, related_runs
from kace.report.trees import history
from kace.report.workspace import Workspace
from kace.runs.selection import Choice, ChosenSolves
from kace.runs.solves import RunIndex
from kace.runs.stats import wilson
from kace.words import counted

VERDICTS = {
    "good": "It helps: the interval lies above zero.",
    "bad": "It harms: the interval lies below zero.",
    "open": "The interval holds zero: it may help, harm, or do nothing.",
}
STATUS_WORDS = {
    Status.EXPERIMENTAL: "Shown in solves; not yet known to help or to harm.",
    Status.VALIDATED: "Shown in solves; measured to help, after correction for the number of cards tried.",
    Status.DEPRECATED: "Kept in the tree and never shown in a solve.",
}
# changes of a card that are shown, and how many of the newest are open from the start
MOST = 40
OPEN = 3
OFFERED = 8  # runs that are offered to be looked at
_READ = "card_set IN (SELECT card_set FROM set_cards WHERE card = ?)"
_USE = f"""
    SELECT COUNT(*) AS solves, COUNT(*) FILTER (WHERE used) AS reading,
        COUNT(*) FILTER (WHERE used AND correct) AS right, COUNT(correct) FILTER (WHERE used) AS judged
    FROM (SELECT correct, {_READ} AS used FROM solves)
"""


def card_page(request: PageRequest) -> Page:
    """Everything there is to know about a card."""
    name = request.parts["tree"]
    card_id = request.parts["card"]
    tree = opened(request, name)
    card = tree.card(card_id)
    kind = card.difficulty_tag.value
    known = card.provenance
    first = card.domain_tags[0]
    found = lift_of(card)
    lift = found.mark if found and found.counts else None
    judged = known.n_wins + known.n_losses
    parts = read_payload(card.payload)
    values = {
        "card": card,
        "tree_name": name,
        "status_words": STATUS_WORDS[card.status],
        "places": [
            (place_name(domain, kind), ("cell", domain, kind))
            for domain in card.domain_tags
        ],
        # A card that an older version wrote is shown as it is.
        "parts": None if parts.faults else parts,
        "as_read": card_text(card),
        "lift": lift,
        "verdict": lift and VERDICTS[lift.tone],
        "measured": found and found.counts and _measured(found.counts, found.epoch),
        "judged": judged,
        "interval": wilson(known.n_wins, judged) if judged else None,
        "uses": _uses(request, name, tree.facts.hash, card_id),
        "history": _history(tree.journal, card),
    }
    place = Crumb(place_name(first, kind), ("tree", name, "cell", first, kind))
    return Page(
        "card.html", card_id, values, crumbs=(HOME, Crumb(name, ("tree", name)), place)
    )


def _measured(counts: LiftCounts, epoch: int | None) -> str:
    when = f", in epoch {epoch}" if epoch is not None else ""
    return (
        f"Measured by {counts.method}{when}: {counted(counts.shown, 'attempt')} with the card, {counts.hidden:,} "
        f"without, on {counted(counts.problems, 'problem')}."
    )


def _history(journal: Path | None, card: Card) -> Mapping[str, Any]:
    """Everything that happened to a card, newest first, with what is to be said of it."""
    if journal is None:
        return {
            "changes": [],
            "notes": ["This tree is a single file, which keeps no history."],
        }
    steps, damaged = history(journal, card.card_id)
    shown: list[tuple[JournalEntry | None, str, list[DiffLine], bool]] = []
    if steps and not damaged and steps[0][1].after != card:
        shown.append(
            (
                None,
                "edited by hand",
                diff_lines(card_diff(steps[0][1].after, card), heads=False),
                True,
            )
        )
    for place, (entry, change) in enumerate(steps[:MOST]):
        changes = card_diff(change.before, change.after)
        opening = place < OPEN and change.before is not None
        shown.append(
            (entry, what_changed(changes), diff_lines(changes, heads=False), opening)
        )
    notes = {
        f"{counted(len(steps) - MOST, 'earlier change')} not shown; all are in: kace tree log.": len(
            steps
        )
        > MOST,
        f"{counted(damaged, 'change')} of this card cannot be read; see: kace tree verify.": damaged,
        "The journal says nothing of this card.": not shown and not damaged,
    }
    return {"changes": shown, "notes": [note for note, due in notes.items() if due]}


def _uses(
    request: PageRequest, tree: str, digest: str, card_id: str
) -> Mapping[str, object]:
    """Where it was read in the opened runs, what was won or lost beside others, and runs not looked at yet."""
    runs = request.workspace.runs()
    there = [item.name for item in request.workspace.items("run")]
    uses = sorted(
        _reading(card_id, runs), key=lambda use: (-use["reading"], use["run"])
    )
    unopened = sorted(
        (name for name in there if name not in runs),
        key=lambda run: not run.startswith(f"{tree}."),
    )
    return {
        "uses": uses,
        "swings": list(
            _swings(request.workspace, card_id, [use["run"] for use in uses])
        ),
        "opened": len(runs),
        "there": len(there),
        "offered": unopened[:OFFERED],
        "digest": digest,
    }


def _reading(card_id: str, runs: Mapping[str, RunIndex]) -> Iterator[dict[str, Any]]:
    """Every opened run that read the card: how many of its solves did, and how many of those are right."""
    for name, run in runs.items():
        complete = run.look(0)
        found = dict(run.rows(_USE, card_id)[0])
        if found["reading"]:
            interval = wilson(found["right"], found["judged"])
            yield {
                "run": name,
                **found,
                "complete": complete,
                "tree_hash": run.setup.tree_hash,
                "interval": interval,
            }


def _swings(
    workspace: Workspace, card_id: str, using: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Per run that read the card, what changed where it did, against the run it is held against, if that is open."""
    for name in using:
        base = base_of(workspace, name)
        if (theirs := related_runs(workspace, name).get(base)) is None:
            continue
        solves = ChosenSolves(workspace.run(name), Choice(), theirs)
        pairs = solves.found(
            "COUNT(was)", f"WHERE {_READ} AND correct IS NOT NULL", card_id
        )[0][0]
        changed = solves.found(
            "*", f"WHERE {_READ} AND correct <> was ORDER BY position", card_id
        )
        gained, broken = (
            [row for row in changed if row["correct"] == right] for right in (1, 0)
        )
        if pairs:
            yield {
                "run": name,
                "against": base,
                "pairs": pairs,
                "gained": gained,
                "broken": broken,
            }


ROUTES = {"/tree/{tree}/card/{card}": card_page}
