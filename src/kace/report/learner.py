"""A learning run for pages: its report, what became of every proposal, and whether somebody is at work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kace.cards.card import Card, LiftMark, Status
from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree
from kace.learning.admit import Merge, Merges, Rulings
from kace.learning.propose import Proposals
from kace.learning.report import (
    EMPTY,
    CardReport,
    LearningReport,
    _DoneSteps,
    report_of,
)
from kace.learning.steps import StepLine, read_steps
from kace.learning.study import ROLES, RoleBill
from kace.learning.summary import progress, summary
from kace.learning.teacher import CardRefusal
from kace.models.budget import free_price
from kace.report.later import KeptValue, Later
from kace.report.page import render_document
from kace.report.scale import lift_scale, scale_over
from kace.runs.calls import CallIndex
from kace.runs.index import FileState, is_held

RECENT = 60.0  # seconds since the last sign of life of a learner at work, where its lock cannot be looked at
MANY = 30  # measured cards beyond which those are folded away that show nothing: not ruled on, zero in the interval


class Fate(Enum):
    """What became of a proposal: its words on pages, and their colour."""

    KEPT = "in the tree", "good"
    RETIRED = "retired", "plain"
    MERGED = "merged", "info"
    ADMITTED = "admitted", "info"  # it may enter the tree and has not yet
    REFUSED = "refused", "bad"
    WAITING = "waiting for a ruling", "warn"


class Proposal(NamedTuple):
    """A card proposed for a cell."""

    epoch: int
    place: str
    card_id: str  # as the teacher named it; empty where it gave no name
    card: Card | None  # none where the block could not be read as one
    fate: Fate
    refused: CardRefusal | None = None
    merge: Merge | None = None


class Learner(NamedTuple):
    """A learning run as far as it came."""

    report: LearningReport
    lines: tuple[StepLine, ...]
    proposals: tuple[Proposal, ...]
    billed: bool  # whether the costs are those of its bill; while it works they are counted from its calls


_LEARNERS: Later[Learner] = Later()


def learner_of(folder: Path, patience: float | None) -> KeptValue[Learner]:
    """The learner of a tree's folder, read again when its files changed; without `patience`, as it is now."""
    return _LEARNERS.ask(
        folder, tuple(_stamps(folder).items()), lambda: _read(folder), patience=patience
    )


def _read(folder: Path) -> Learner:
    learn = folder / "learn"
    stamps = _stamps(folder)
    bill = stamps.get(learn / "bill.json")
    calls = [stamps[path] for path in stamps if path.parent.name == "calls"]
    billed = bill is not None and all(state.changed <= bill.changed for state in calls)
    report = report_of(folder)
    store = TreeStore(folder)
    steps = _DoneSteps(learn, read_steps(learn / "steps.jsonl"))
    proposals = tuple(
        _proposals(steps, store.load() if store.cards_path.exists() else EMPTY)
    )
    costs = () if billed else tuple(_counted(learn / "calls", report))
    return Learner(
        replace(report, costs=costs or report.costs), steps.lines, proposals, billed
    )


def _counted(folder: Path, report: LearningReport) -> Iterator[RoleBill]:
    """What the calls so far took, by role. Prices are not recorded with them: only those that are free are known."""
    calls = CallIndex(folder)
    roles = dict[str, Counter[str]]()
    calls.wait()
    for tier, used in calls.used().items():
        roles.setdefault(ROLES.get(tier, "solver"), Counter()).update(used)
    models = {"solver": report.solver, "classifier": report.solver}
    for role, sums in sorted(roles.items()):
        yield RoleBill(
            role=role,
            usd=0.0 if free_price(models.get(role, report.teacher)) else None,
            **sums,
        )


def page(report: LearningReport) -> str:
    """The report as one page that needs nothing else. What came from outside is text in it, whatever it says."""
    folds = len(report.measured) > MANY
    rules = Counter((r.refused.rule, r.refused.by) for r in report.refused)
    unruled = [
        story
        for story in report.measured
        if folds and story.card.status is Status.EXPERIMENTAL
    ]
    return render_document(
        "report_learner.html",
        title=f"{report.name}: what was learned",
        progress="" if report.finished else progress(report),
        silent=[
            story
            for story in unruled
            if (lift := newest_lift(story)) and lift.tone == "open"
        ],
        rules=rules.most_common(),
        **figures(report, report.measured),
    )


def figures(report: LearningReport, stories: Iterable[CardReport]) -> dict[str, object]:
    """The report with its scales: that of the runs' accuracies, and that of some cards' lifts."""
    ends = [end for score in report.scores for end in score.interval] or [0.0, 1.0]
    lifts = (lift for lift in map(newest_lift, stories) if lift and not lift.vague)
    scale = scale_over(min(ends), max(ends), about=6)
    told = {"report": report, "summary": summary(report), "lift_of": newest_lift}
    return {**told, "run_scale": scale, "lift_scale": lift_scale(lifts)}


def newest_lift(story: CardReport) -> LiftMark | None:
    """The newest lift of a card, to be drawn."""
    return (
        LiftMark(story.lift.effect, story.lift.low, story.lift.high)
        if story.lift
        else None
    )


def last_sign(folder: Path) -> float:
    """When the learner last wrote something, in seconds since 1970; 0 where it never did."""
    others = ("cards.jsonl", "bill.json")
    return max(
        (
            state.changed
            for path, state in _stamps(folder).items()
            if path.name not in others
        ),
        default=0.0,
    )


def at_work(folder: Path) -> bool:
    """Whether a learner works on the tree of a folder now."""
    held = is_held(folder / "learn" / "lock")
    return time.time() - last_sign(folder) < RECENT if held is None else held


def _stamps(folder: Path) -> dict[Path, FileState]:
    """The state of each file that pages are made from and that is there."""
    learn = folder / "learn"
    named = (
        folder / "cards.jsonl",
        learn / "learn.json",
        learn / "steps.jsonl",
        learn / "bill.json",
    )
    paths = (
        *named,
        *sorted(learn.glob("*/traces.jsonl")),
        *sorted(learn.glob("calls/*.jsonl")),
    )
    return {path: state for path in paths if (state := FileState.of(path)).inode}


def _proposals(steps: _DoneSteps, tree: EpistemicTree) -> Iterator[Proposal]:
    """All proposals in the order they were made."""
    for epoch in steps.epochs:
        rulings = {
            step.place: ruling
            for step, ruling in steps.of(Rulings, "admit", epoch=epoch)
        }
        merged = [
            (step.place.split("+"), done.merged)
            for step, done in steps.of(Merges, "merge", epoch=epoch)
        ]
        merges = {
            (tier, merge.card_id): merge
            for tiers, done in merged
            for tier in tiers
            for merge in done
        }
        for step, found in steps.of(Proposals, "propose", "imagine", epoch=epoch):
            ruling = rulings.get(step.place)
            unfit, admitted = (
                (list(ruling.refused), ruling.admitted) if ruling else ([], ())
            )
            for card in found.cards:
                refused = next(
                    (
                        r
                        for r in unfit
                        if r.card_id == card.card_id and card not in admitted
                    ),
                    None,
                )
                merge = merges.get((step.place.split(" ")[0], card.card_id))
                if ruling is None:
                    fate = Fate.WAITING
                elif refused:
                    unfit.remove(refused)
                    fate = Fate.REFUSED
                elif merge:
                    fate = Fate.MERGED
                elif (
                    card.card_id not in tree
                ):  # it enters with the rest of its round, or is there under another id
                    fate = Fate.ADMITTED
                else:
                    fate = (
                        Fate.RETIRED
                        if tree.card(card.card_id).status is Status.DEPRECATED
                        else Fate.KEPT
                    )
                yield Proposal(
                    epoch, step.place, card.card_id, card, fate, refused, merge
                )
            yield from (
                Proposal(epoch, step.place, r.card_id, None, Fate.REFUSED, r)
                for r in found.refused
            )
