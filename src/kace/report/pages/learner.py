"""A learner: what it is at, what it has learned, and every card it was offered, with what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kace.errors import DataError
from kace.learning.report import CardReport, Epoch, LearningReport, RunScore, is_shown
from kace.learning.steps import StepLine, StepName
from kace.learning.study import Settings
from kace.report.learner import (
    Fate,
    Proposal,
    at_work,
    figures,
    last_sign,
    learner_of,
    newest_lift,
)
from kace.report.page import (
    HOME,
    Crumb,
    NotHere,
    Page,
    PageRequest,
    StillReading,
    slice_of,
)
from kace.report.replies import Inbox
from kace.report.workspace import Item
from kace.words import counted

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
    """A learning run as it is now."""
    item, tree = _opened(request)
    held = at_work(
        item.path
    )  # before it is read: let go and not finished, it has stopped for good
    try:
        found, fresh = learner_of(item.path, request.patience(PATIENCE))
    except DataError as error:
        return Page(
            "error.html",
            item.name,
            {"status": "Learning run", "sentences": [str(error)]},
            refresh=15.0,
        )
    if found is None:
        raise StillReading(item.name)
    report = found.report
    state = (
        "finished" if report.finished else "working" if held or not fresh else "stopped"
    )
    stories = sorted(report.cards, key=_last)[:LISTED]
    runs = (
        each
        for each in request.workspace.items("run")
        if each.path.parent == item.path / "learn"
    )
    inbox = _inbox(request, report.teacher)
    waiting = 0
    with suppress(NotHere):
        waiting = (
            sum(entry.answered is None for entry in Inbox(inbox.path).entries())
            if inbox
            else 0
        )
    values = {
        "item": item,
        "tree": tree,
        "state": state,
        "inbox": inbox,
        "waiting": waiting,
        "billed": found.billed,
        "last_sign": last_sign(item.path),
        "stages": stages(report, found.lines),
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
        refresh=REFRESH.get(state),
    )


def _last(story: CardReport) -> tuple[bool, bool]:
    """Cards that no solve reads come last, and before them those whose lift says nothing."""
    lift = newest_lift(story)
    return not is_shown(story.card), lift is None or lift.vague


def proposal_page(request: PageRequest) -> Page:
    """The proposals of a learner, by epoch, cell and verdict."""
    item, tree = _opened(request)
    learner = learner_of(item.path, request.patience(PATIENCE)).value
    if learner is None:
        raise StillReading(item.name)
    every = learner.proposals
    chosen = {
        name: "" if request.static else request.query.get(name, "")[:80]
        for name in FILTERS
    }

    def fits(each: Proposal) -> bool:
        own = (
            str(each.epoch),
            each.place,
            each.fate.name.lower(),
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
        "fates": [(fate, fates[fate]) for fate in Fate if fates[fate]],
        "rules": Counter(
            (each.refused.rule, each.refused.by) for each in every if each.refused
        ).most_common(),
        "chosen": chosen,
        "verdicts": {fate.name.lower(): fate.value[0] for fate in Fate},
        "part": slice_of(request, [each for each in every if fits(each)], PER_PAGE),
        "to": partial(request.link, "learner", item.name, "proposals", **chosen),
    }
    refresh = None if learner.report.finished else 10.0
    crumbs = (HOME, Crumb(item.name, ("learner", item.name)))
    return Page("learner_proposals.html", "Proposals", values, crumbs, refresh)


ROUTES = {
    "/learner/{learner}": learner_page,
    "/learner/{learner}/proposals": proposal_page,
}


class LearnerStage(NamedTuple):
    """A part of the run, the step that ends it, and what came of it or is going on in it."""

    epoch: int  # 0 for what comes before the epochs or after them
    title: str
    last: StepName
    words: str
    state: str = TO_COME


def stages(report: LearningReport, lines: Sequence[StepLine]) -> list[LearnerStage]:
    """All stages, in order. The first one that is not done is under way, until the run is finished."""
    ended = {line.step for line in lines}
    planned = list(_planned(report, lines))
    left = [
        stage for stage in planned if not report.finished and stage.last not in ended
    ]
    return [
        s._replace(state=DONE if s not in left else DOING if s == left[0] else TO_COME)
        for s in planned
    ]


def _planned(
    report: LearningReport, lines: Sequence[StepLine]
) -> Iterator[LearnerStage]:
    words = counted(len(report.branches) - 1, "domain")
    words = (
        words
        if len(report.branches) > 1
        else "the teacher sorts the problems into domains"
    )
    yield LearnerStage(0, "Domains", StepName("plan", "plant"), words)
    now = "; ".join(_solving(score, report)[0] for score in report.under_way)
    given = dict(report.settings)
    known = (
        (given.get(name, ""), getattr(Settings(), name))
        for name in ("add_runs", "refine")
    )
    runs, revises = (
        int(value) if value.isdigit() else default for value, default in known
    )
    rounds = (
        {"MS+HS": "New cards"}
        if runs == 1
        else {"MS": "New medium cards", "HS": "New hard cards"}
    )
    epochs = {epoch.number: epoch for epoch in report.epochs}
    for number in range(1, max(report.planned, *epochs, 1) + 1):
        here = [line for line in lines if line.epoch == number]
        epoch = epochs.get(number)
        for tiers, title in rounds.items():
            yield LearnerStage(
                number,
                title,
                StepName("add", "commit", number, tiers),
                _adding(tiers, here, now),
            )
        credit = StepName("refine", "credit", number)
        end = StepName("close", "snapshot", number)
        yield LearnerStage(
            number,
            "Measurement",
            credit if revises else end,
            _measuring(epoch, here, now),
        )
        if revises:
            looks = epoch.looks if epoch else ()
            done = {line.what for line in here}
            tried = f"{counted(len(looks), 'change')} tried, {sum(look.accepted for look in looks):,} kept"
            doing = (
                "the curator's changes are tried"
                if "revise" in done
                else "the curator is asked"
            )
            words = (
                tried
                if looks
                else "nothing was changed"
                if "snapshot" in done
                else doing
            )
            yield LearnerStage(number, "Revision", end, words)
    words = f"{counted(report.size.shown, 'card')} in the tree"
    yield LearnerStage(0, "Frozen tree", StepName("close", "freeze"), words)


def _adding(tiers: str, here: Sequence[StepLine], now: str) -> str:
    """What a round of new cards came to: its run, then what was proposed, then what was admitted."""
    added = [line for line in here if line.phase == "add"]
    if not any(line.what == "run" and line.place == tiers for line in added):
        return now or "the solver works on the problems"
    asked = [
        line
        for line in added
        if line.place.split(" ")[0] in tiers.split("+") and " " in line.place
    ]
    cells, ruled = (
        len({line.place for line in asked if line.what == what})
        for what in ("propose", "admit")
    )
    proposed = sum(
        _count(line, "cards", "refused")
        for line in asked
        if line.what in ("propose", "imagine")
    )
    admitted = sum(_count(line, "admitted") for line in asked if line.what == "admit")
    waiting = (
        f", {counted(cells - ruled, 'place')} not ruled on" if cells > ruled else ""
    )
    return (
        f"{proposed:,} proposed, {admitted:,} admitted{waiting}"
        if cells
        else "the teacher is asked for cards"
    )


def _measuring(epoch: Epoch | None, here: Sequence[StepLine], now: str) -> str:
    base = next(
        (
            score
            for score in (epoch.scores if epoch else ())
            if score.step.what == "base"
        ),
        None,
    )
    if base is None:
        return now or "the solver works with the new cards"
    impact = next(
        (
            counted(_count(line, "lifts"), "lift")
            for line in here
            if line.what == "impact"
        ),
        "",
    )
    after = (
        f", {impact} measured"
        if impact
        else f"; {now or 'what each card is worth is measured'}"
    )
    return f"{base.correct:,} of {base.problems:,} right{after}"


def _count(line: StepLine, *names: str) -> int:
    values = (
        [line.value.get(name) for name in names] if isinstance(line.value, dict) else []
    )
    return sum(len(value) for value in values if isinstance(value, list))


def _solving(score: RunScore, report: LearningReport) -> tuple[str, int]:
    """How far a run under way is, and of how many problems, 0 where not known: its step is its folder's name."""
    total = 0 if {"verify", "unseen"} & set(score.step.what.split()) else report.train
    return (
        f"{score.problems:,}{f' of {total:,}' if total else ''} problems solved, {score.correct:,} right",
        total,
    )


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
