"""The course of a learning run: its stages in order, which are done, and where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kace.learner.epoch import Epoch
from kace.learner.findings import Score
from kace.learner.notebook import Line, Step
from kace.learner.report import Report
from kace.learner.settings import Settings
from kace.words import counted


class Mark(StrEnum):
    """How far a stage is."""

    DONE = "done"
    DOING = "doing"
    TO_COME = "to come"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the course."""

    title: str
    mark: Mark
    words: str
    """What came of it, or what is going on in it; empty for one to come."""


@dataclass(frozen=True, slots=True)
class Lap:
    """The stages of an epoch; of what comes before the epochs or after them, where `number` is 0."""

    number: int
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A stage as it is planned: the step that ends it, and the words for it."""

    title: str
    last: Step
    words: str


def course(report: Report, lines: Sequence[Line]) -> tuple[Lap, ...]:
    """The whole course, in order. The first stage that is not done is the one under way, until the run is finished."""
    done = {line.step for line in lines}
    laps, under_way = list[Lap](), not report.finished
    for number, plans in _plans(report, lines):
        stages = []
        for plan in plans:
            over = plan.last in done or report.finished
            mark = Mark.DONE if over else Mark.DOING if under_way else Mark.TO_COME
            under_way = under_way and over
            stages.append(Stage(plan.title, mark, plan.words if mark is not Mark.TO_COME else ""))
        laps.append(Lap(number, tuple(stages)))
    return tuple(laps)


def _plans(report: Report, lines: Sequence[Line]) -> Iterator[tuple[int, list[_Plan]]]:
    domains = len(report.branches) - 1 if report.branches else 0
    said = counted(domains, "domain") if domains else "the teacher sorts the problems into domains"
    yield 0, [_Plan("Domains", Step("plan", "plant"), said)]
    begun = {epoch.number: epoch for epoch in report.epochs}
    for number in range(1, max(report.planned, *begun, 1) + 1):
        yield number, list(_epoch_plans(number, begun.get(number), report, lines))
    yield 0, [_Plan("Frozen tree", Step("close", "freeze"), f"{counted(report.size.shown, 'card')} in the tree")]


def _epoch_plans(number: int, epoch: Epoch | None, report: Report, lines: Sequence[Line]) -> Iterator[_Plan]:
    here = [line for line in lines if line.epoch == number]
    rounds = ("MS+HS",) if _setting(report, "add_runs") == 1 else ("MS", "HS")
    names = {"MS+HS": "New cards", "MS": "New medium cards", "HS": "New hard cards"}
    for place in rounds:
        last = Step("add", "commit", number, place)
        yield _Plan(names[place], last, _adding(place, here, report))
    revises = _setting(report, "refine") != 0
    measured = Step("refine", "credit", number) if revises else Step("close", "snapshot", number)
    yield _Plan("Measurement", measured, _measuring(here, epoch, report))
    if revises:
        yield _Plan("Revision", Step("close", "snapshot", number), _revising(epoch, here))


def _adding(place: str, here: Sequence[Line], report: Report) -> str:
    """What a round of new cards came to: its run, then what was proposed, then what was let in."""
    tiers = place.split("+")
    run = next((line for line in here if line.phase == "add" and line.what == "run" and line.place == place), None)
    if run is None:
        return _solving(report) or "the solver works on the problems"
    asked = [line for line in here if line.phase == "add" and line.place.split(" ")[0] in tiers and " " in line.place]
    proposed = sum(
        _count(line, "cards") + _count(line, "refused") for line in asked if line.what in ("propose", "imagine")
    )
    admitted = sum(_count(line, "admitted") for line in asked if line.what == "admit")
    cells = len({line.place for line in asked if line.what == "propose"})
    ruled = len({line.place for line in asked if line.what == "admit"})
    if not cells:
        return "the teacher is asked for cards"
    waiting = f", {counted(cells - ruled, 'place')} not ruled on" if cells > ruled else ""
    return f"{proposed:,} proposed, {admitted:,} admitted{waiting}"


def _measuring(here: Sequence[Line], epoch: Epoch | None, report: Report) -> str:
    base = next((score for score in (epoch.scores if epoch else ()) if score.step.what == "base"), None)
    if base is None:
        return _solving(report) or "the solver works with the new cards"
    impact = next((line for line in here if line.what == "impact"), None)
    right = f"{base.correct:,} of {base.problems:,} right"
    if impact is None:
        return f"{right}; {_solving(report) or 'what each card is worth is measured'}"
    return f"{right}, {counted(_count(impact, 'lifts'), 'lift')} measured"


def _revising(epoch: Epoch | None, here: Sequence[Line]) -> str:
    looks = epoch.looks if epoch else ()
    if not looks:
        asked = any(line.what == "revise" for line in here)
        over = any(line.what == "snapshot" for line in here)
        return "nothing was changed" if over else "the curator's changes are tried" if asked else "the curator is asked"
    kept = sum(look.accepted for look in looks)
    return f"{counted(len(looks), 'change')} tried, {kept:,} kept"


def _solving(report: Report) -> str:
    """The run under way in words."""
    return "; ".join(solving(score, report) for score in report.under_way)


def solving(score: Score, report: Report) -> str:
    """How far a run under way is."""
    of = f" of {report.train:,}" if whole(score) and report.train else ""
    return f"{score.problems:,}{of} problems solved, {score.correct:,} right"


def whole(score: Score) -> bool:
    """Whether a run under way is over all training problems; its step is known by its folder's name only."""
    return " verify " not in f" {score.step.what} " and " unseen " not in f" {score.step.what} "


def _count(line: Line, name: str) -> int:
    value = line.value.get(name) if isinstance(line.value, dict) else None
    return len(value) if isinstance(value, list) else 0


def _setting(report: Report, name: str) -> int:
    """A setting of the run; the default where the run does not say."""
    given = dict(report.settings).get(name, "")
    return int(given) if given.isdigit() else int(getattr(Settings(), name))
