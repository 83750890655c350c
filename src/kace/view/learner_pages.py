"""A learner as pages: what it is at, what its runs came to, what it has learned, and every card it was offered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kace.learner.report import summary
from kace.view.inbox import Inbox
from kace.view.learner import Learner, Pulse, at_work, last_sign, learner_at, pulse
from kace.view.learner_course import Mark, course, solving, whole
from kace.view.learner_parts import Ways, funnel, runs, the_course, tiles, unread
from kace.view.learner_tables import costs, learned, revisions, settings
from kace.view.links import path_of
from kace.view.page import Ask, Crumb, NotHere, Page, Route
from kace.view.proposal_page import proposal_page
from kace.view.shelf import Item, Shelf
from kace.view.when import when
from kace.web.markup import Html, join, tag
from kace.web.parts import badge
from kace.words import counted

REFRESH = 3.0
"""Seconds between two looks while it works; a stopped one may be started again."""
SLOW = 15.0


def learner_page(ask: Ask) -> Page:
    """A learning run as it is now."""
    item = ask.shelf.item("learner", ask.parts["learner"])
    held = at_work(item.path)
    found = learner_at(item.path, patience=None if ask.links.static else 0.3)
    crumbs = (Crumb("Home", "/"),)
    if found.value is None:
        why = str(found.error) if found.error else ""
        return Page(item.name, unread(item.name, why, found.words), crumbs, refresh=SLOW if why else 1.0)
    learner, ways = found.value, ways_of(ask, item)
    beat = pulse(learner.report, held or not found.fresh)  # what is not up to date may have come to its end since
    body = join(
        (
            _header(ask, item, learner, beat),
            _stale(str(found.error)) if found.error else Html(""),
            tiles(learner),
            the_course(learner),
            learned(learner.report, ways),
            funnel(learner.report, ways),
            runs(learner, ways),
            revisions(learner.report, ways),
            costs(learner),
            settings(learner),
        )
    )
    refresh = {Pulse.WORKING: REFRESH, Pulse.STOPPED: SLOW, Pulse.FINISHED: None}[beat]
    return Page(item.name, body, crumbs, refresh=refresh)


def paths(shelf: Shelf, item: Item) -> Iterator[str]:
    """The pages of a learner."""
    if item.kind == "learner":
        yield path_of("learner", item.name)
        yield path_of("learner", item.name, "proposals")


def ways_of(ask: Ask, item: Item) -> Ways:
    """Where the learner's tree, cards and runs have pages."""
    tree = next((each.name for each in ask.shelf.items("tree") if each.path == item.path), None)
    learn = item.path / "learn"
    names = {each.path.name: each.name for each in ask.shelf.items("run") if each.path.parent == learn}
    return Ways(ask.links, item.name, tree, names)


def _header(ask: Ask, item: Item, learner: Learner, beat: Pulse) -> Html:
    report = learner.report
    facts = [
        tag("span", "solver ", tag("b", report.solver or "unknown")),
        tag("span", "teacher ", tag("b", learner.teacher or "unknown")),
        tag("span", tag("b", f"{report.train:,}"), " training problems"),
    ]
    return tag(
        "header",
        tag("p", "Learning run", class_="eyebrow"),
        tag("h1", item.name),
        tag("p", summary(report), class_="lead"),
        tag("p", *facts, class_="facts"),
        _now(ask, item, learner, beat),
        *([_unread_steps(report.unread)] if report.unread else []),
        class_="lede",
    )


def _now(ask: Ask, item: Item, learner: Learner, beat: Pulse) -> Html:
    """What it is at, and whom it waits for."""
    if beat is Pulse.FINISHED:
        said = f"Finished. The tree is frozen{f' under {learner.report.frozen[:12]}' if learner.report.frozen else ''}."
        return tag("p", badge("finished", "good"), " ", said, class_="now")
    inbox = _inbox(ask.shelf, learner.teacher)
    waiting = _waiting(inbox)
    sign = when(last_sign(item.path), ask.links)
    if beat is Pulse.WORKING:
        state = badge("waiting for the teacher", "warn") if waiting else badge("at work", "info")
        signed = tag("span", "last sign of life ", sign, class_="muted")
    else:
        state = badge("stopped", "plain")
        signed = tag("span", "since ", sign, ". The same command goes on from here.", class_="muted")
    return tag(
        "div",
        tag("p", state, " ", _stage(learner), " ", signed),
        *_bars(learner),
        *_link(ask, inbox, waiting),
        class_="now",
    )


def _stage(learner: Learner) -> str:
    for lap in course(learner.report, learner.lines):
        for stage in lap.stages:
            if stage.mark is Mark.DOING:
                of = f" of {learner.report.planned}" if learner.report.planned else ""
                epoch = f"Epoch {lap.number}{of}, " if lap.number else ""
                title = f"{stage.title[:1].lower()}{stage.title[1:]}" if epoch else stage.title
                return f"{epoch}{title}: {stage.words}."
    return "All stages are done."


def _bars(learner: Learner) -> Iterator[Html]:
    """A bar for every run under way; the line above says what it is where there is one only."""
    under_way, report = learner.report.under_way, learner.report
    for score in under_way:
        said = f"{score.step.what}: {solving(score, report)}"
        most = max(report.train, score.problems) if whole(score) and report.train else None
        bar = tag("progress", value=score.problems if most else None, max=most, aria_label=said)
        yield tag("p", *([tag("span", said)] if len(under_way) > 1 else []), bar, class_="under-way")


def _link(ask: Ask, inbox: Item | None, waiting: int) -> Iterator[Html]:
    if inbox is not None and waiting:
        address = ask.links.to(path_of("inbox", inbox.name))
        yield tag("p", tag("a", f"{counted(waiting, 'request')} to answer", href=address, class_="button"))


def _inbox(shelf: Shelf, teacher: str) -> Item | None:
    """The exchange folder that the teacher's requests go to, if it is open. Its path was relative to some folder."""
    provider, _, folder = teacher.partition("/")
    parts = tuple(part for part in Path(folder).parts if part not in ("/", ".", ".."))
    if provider != "exchange" or not parts:
        return None
    found = [each for each in shelf.items("inbox") if each.path.parts[-len(parts) :] == parts]
    return found[0] if len(found) == 1 else None


def _waiting(inbox: Item | None) -> int:
    try:
        return sum(entry.answered is None for entry in Inbox(inbox.path).entries()) if inbox else 0
    except NotHere:
        return 0


def _stale(why: str) -> Html:
    return tag("p", "What follows is from a moment ago. ", why, class_="banner warn")


def _unread_steps(steps: tuple[str, ...]) -> Html:
    said = f"{counted(len(steps), 'step')} could not be read by this version: {'; '.join(steps[:5])}"
    return tag("p", said, class_="banner warn")


ROUTES = (
    Route("/learner/{learner}", learner_page),
    Route("/learner/{learner}/proposals", proposal_page),
)
