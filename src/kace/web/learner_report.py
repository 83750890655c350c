"""The report of a learning run as one page that needs nothing else, and the figures that the viewer's page shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kace.learner.report import CardStory, Report, progress, summary
from kace.tree.card import Status
from kace.web.page import render_document
from kace.web.scale import LiftMark, lift_scale, scale_over

MANY = 30  # measured cards beyond which those are folded away that show nothing: not ruled on, zero in the interval


def page(report: Report) -> str:
    """The whole page. Everything that came from outside is text in it, whatever it says."""
    folds, rules = len(report.measured) > MANY, Counter((r.refused.rule, r.refused.by) for r in report.refused)
    unruled = [story for story in report.measured if folds and story.card.status is Status.EXPERIMENTAL]
    return render_document(
        "report_learner.html",
        title=f"{report.name}: what was learned",
        progress="" if report.finished else progress(report),
        silent=[story for story in unruled if (lift := lift_of(story)) and lift.tone == "open"],
        rules=rules.most_common(),
        **figures(report, report.measured),
    )


def figures(report: Report, stories: Iterable[CardStory]) -> dict[str, object]:
    """The report with its scales: that of the runs' accuracies, and that of some cards' lifts."""
    ends = [end for score in report.scores for end in score.interval] or [0.0, 1.0]
    scale = scale_over(min(ends), max(ends), about=6)
    lifts = lift_scale(map(lift_of, stories))
    return {"report": report, "summary": summary(report), "run_scale": scale, "lift_scale": lifts, "lift_of": lift_of}


def lift_of(story: CardStory) -> LiftMark | None:
    """The newest lift of a card, to be drawn."""
    return LiftMark(story.lift.lift.effect, story.lift.lift.low, story.lift.lift.high) if story.lift else None
