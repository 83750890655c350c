"""A learner: what it is at, what it has learned, and every card it was offered, with what became of each."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

from kace.cards.card import Status
from kace.errors import DataError
from kace.learning.report import (
    CardReport,
    Fate,
    LearningReport,
    Proposal,
    RunScore,
    report_of,
)
from kace.report.learner import figures, newest_lift
from kace.report.page import (
    HOME,
    Crumb,
    NotHere,
    Page,
    PageRequest,
    slice_of,
)
from kace.report.replies import Inbox
from kace.report.workspace import Item

REFRESH = {
    "working": 3.0,
    "stopped": 15.0,
}  # seconds between two looks; a stopped one may be started again
LISTED = 12  # cards that are shown here; the tree's pages have the rest
PER_PAGE = 40
PATIENCE = 0.3  # seconds that a page waits for a learner to be read
FILTERS = ("epoch", "cell", "verdict", "rule")
DONE = "done"
DOING = "under way"
TO_COME = "to come"


def learner_page(request: PageRequest) -> Page:
    """Show a learning run as it is now."""
    item, tree = _opened(request)
    try:
        report = report_of(item.path)
    except DataError as error:
        return Page(
            "error.html",
            item.name,
            {"status": "Learning run", "sentences": [str(error)]},
            refresh=15.0,
        )
    stories = sorted(report.cards, key=_last)[:LISTED]
    runs = []
    for each in request.workspace.items("run"):
        if each.path.parent == item.path / "learn":
            runs.append(each)
    inbox = _inbox(request, report.teacher)
    waiting = 0
    with suppress(NotHere):
        entries = Inbox(inbox.path).entries() if inbox else ()
        waiting = sum(entry.answered is None for entry in entries)
    values = {
        "item": item,
        "tree": tree,
        "state": report.state,
        "inbox": inbox,
        "waiting": waiting,
        "billed": report.billed,
        "last_sign": report.last_sign,
        "stages": report.stages,
        "under_way": [
            (each.step.what, each.problems, *_solving(each, report))
            for each in report.under_way
        ],
        "stories": stories,
        "addresses": {each.path.name: request.link("run", each.name) for each in runs},
    }
    return Page(
        "learner.html",
        item.name,
        values | figures(report, stories),
        refresh=REFRESH.get(report.state),
    )


def _solving(score: RunScore, report: LearningReport) -> tuple[str, int]:
    """Return how far a run under way is, and of how many problems, 0 if not known."""
    total = 0 if {"verify", "unseen"} & set(score.step.what.split()) else report.train
    of = f" of {total:,}" if total else ""
    done = f"{score.problems:,}{of} problems solved, {score.correct:,} right"
    return done, total


def _last(story: CardReport) -> tuple[bool, bool]:
    """Cards that no solve reads come last, and before them those whose lift says nothing."""
    lift = newest_lift(story)
    return story.card.status is Status.DEPRECATED, lift is None or lift.vague


def proposal_page(request: PageRequest) -> Page:
    """The proposals of a learner, by epoch, cell and verdict."""
    item, tree = _opened(request)
    report = report_of(item.path)
    every = report.proposals
    chosen = {
        name: "" if request.static else request.query.get(name, "")[:80]
        for name in FILTERS
    }

    def fits(each: Proposal) -> bool:
        own = (
            str(each.epoch),
            each.place,
            each.fate.value,
            each.refused.rule if each.refused else "",
        )
        return all(
            wanted in ("", value)
            for wanted, value in zip(chosen.values(), own, strict=True)
        )

    fates = Counter(each.fate for each in every)
    values = {
        "item": item,
        "tree": tree,
        "every": every,
        "words": FATES,
        "fates": [(fate, fates[fate]) for fate in Fate if fates[fate]],
        "rules": Counter(
            (each.refused.rule, each.refused.by) for each in every if each.refused
        ).most_common(),
        "chosen": chosen,
        "verdicts": {fate.value: FATES[fate][0] for fate in Fate},
        "part": slice_of(request, [each for each in every if fits(each)], PER_PAGE),
        "to": partial(request.link, "learner", item.name, "proposals", **chosen),
    }
    refresh = None if report.finished else 10.0
    crumbs = (HOME, Crumb(item.name, ("learner", item.name)))
    return Page("learner_proposals.html", "Proposals", values, crumbs, refresh)


FATES = {
    Fate.KEPT: ("in the tree", "good"),
    Fate.RETIRED: ("retired", "plain"),
    Fate.MERGED: ("merged", "info"),
    Fate.ADMITTED: ("admitted", "info"),
    Fate.REFUSED: ("refused", "bad"),
    Fate.WAITING: ("waiting for a ruling", "warn"),
}
"""What becomes of a proposal: its words and their colour."""
ROUTES = {
    "/learner/{learner}": learner_page,
    "/learner/{learner}/proposals": proposal_page,
}


def _opened(request: PageRequest) -> tuple[Item, str | None]:
    """The learner of a page, and the name of its tree where that is open."""
    item = request.workspace.item("learner", request.parts["learner"])
    request.workspace.inside(item.path)
    return item, next(
        (
            each.name
            for each in request.workspace.items("tree")
            if each.path == item.path
        ),
        None,
    )


def _inbox(request: PageRequest, teacher: str) -> Item | None:
    """The exchange folder that the teacher's requests go to, if it is open. Its path was relative to some folder."""
    provider, _, folder = teacher.partition("/")
    parts = tuple(part for part in Path(folder).parts if part not in ("/", ".", ".."))
    found = [
        each
        for each in request.workspace.items("inbox")
        if each.path.parts[-len(parts) :] == parts
    ]
    return found[0] if provider == "exchange" and parts and len(found) == 1 else None
