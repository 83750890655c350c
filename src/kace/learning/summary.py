"""What came of a learning run, in a few sentences."""

from __future__ import annotations

from collections import Counter

from kace.cards.card import plain_points
from kace.learning.report import Report
from kace.learning.solutions import SOURCE
from kace.words import counted


def summary(report: Report) -> str:
    """What the run made; of one that made nothing, why."""
    found = report.funnel
    author = "worked solutions" if report.teacher == SOURCE else "the teacher"
    if not found.proposed:
        return (
            f"No card: {why_empty(report)}"
            if report.finished
            else "No card has been proposed yet."
        )
    said = (
        f"From {counted(report.train, 'training problem')} {author} gave {counted(found.proposed, 'card')}. "
        f"{found.admitted} passed the gate; {found.kept} {'is' if found.kept == 1 else 'are'} in the tree, "
        f"{found.validated or 'none'} of them with a lift beyond chance."
    )
    return (
        said
        if found.kept or not report.finished
        else f"{said} The tree is empty: {why_empty(report)}"
    )


def why_empty(report: Report) -> str:
    """Why a finished run has no card to show, and what to do."""
    found = report.funnel
    if found.admitted:
        few = f"{found.retired} that passed the gate could not be shown to help with {report.train} problems"
        others = report.carried.others
        if others and others.effect <= 0:
            worth = f"{plain_points(others.effect)} points of right attempts"
            return f"{few}, nor do they carry over to other problems ({worth}). Give more problems of the same kinds."
        return f"{few}. Keep them with --quick or --set keep=all, or give more problems of the same kinds."
    if found.refused:
        rules = Counter(
            each.refused.rule for each in report.refused if each.what == "card"
        )
        told = ", ".join(f"{rule} {count}" for rule, count in rules.most_common(3))
        return f"every proposal was refused ({told}). `kace learn report TREE` lists each with its reason."
    first = next(iter(report.scores), None)
    if first and first.correct == first.problems:
        return f"the solver got all {first.problems} training problems right. Give harder ones."
    agreed = len(report.epochs[0].beyond) if report.epochs else 0
    wrong = first.problems - first.correct if first else 0
    if wrong and wrong == agreed:
        said = f"on all {wrong} wrong problems both ES attempts agreed, and ES reads no card"
        return f"{said}. --set confident=true learns from them too."
    if report.teacher == SOURCE:
        return f"no training problem that went wrong ({wrong}) has a worked solution to make a card of."
    return f"the teacher saw what went wrong ({counted(wrong, 'problem')}) and wrote no card."


def progress(report: Report) -> str:
    """How far an unfinished run came."""
    planned = f" of {report.planned}" if report.planned else ""
    epoch = f", in epoch {report.epochs[-1].number}{planned}" if report.epochs else ""
    reached = (
        f"The last step done: {report.last}." if report.last else "No step is done yet."
    )
    running = [
        f"Under way: {score.step}, {counted(score.problems, 'problem')} done."
        for score in report.under_way
    ]
    return " ".join(
        (f"Not finished{epoch}.", reached, *running, "The same command resumes it.")
    )
