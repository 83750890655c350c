"""The report of a learning run for pages: its scales and its charts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kace.cards.card import LiftMark, Status
from kace.learning.report import CardReport, LearningReport, report_of
from kace.report.page import render_document
from kace.report.scale import lift_scale, scale_over

MANY = 30  # measured cards beyond which those that show nothing are folded away


def page(report: LearningReport) -> str:
    """Return the report as one page that needs nothing else."""
    silent = []
    for story in report.measured if len(report.measured) > MANY else ():
        lift = newest_lift(story)
        if story.card.status is Status.EXPERIMENTAL and lift and lift.tone == "open":
            silent.append(story)
    return render_document(
        "report_learner.html",
        title=f"{report.name}: what was learned",
        progress=report.progress,
        silent=silent,
        rules=report.rules,
        **figures(report, report.measured),
    )


def figures(report: LearningReport, stories: Iterable[CardReport]) -> dict[str, object]:
    """Return the report with the scales of its accuracies and lifts."""
    ends = [end for score in report.scores for end in score.interval] or [0.0, 1.0]
    lifts = (lift for lift in map(newest_lift, stories) if lift and not lift.vague)
    return {
        "report": report,
        "summary": report.summary,
        "lift_of": newest_lift,
        "run_scale": scale_over(min(ends), max(ends), about=6),
        "lift_scale": lift_scale(lifts),
    }


def newest_lift(story: CardReport) -> LiftMark | None:
    """Return the newest lift of a card, to be drawn."""
    lift = story.lift
    return LiftMark(lift.effect, lift.low, lift.high) if lift else None


def at_work(folder: Path) -> bool:
    """Whether a learner works on the tree of a folder now."""
    return report_of(folder).state == "working"
