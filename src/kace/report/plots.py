"""The plots of an evaluation: what each shows, and the words beside it. Those without data are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import compress

from kace.cards.card import Status
from kace.report.charts import ExitRow, ForestRow, cost_bars, exit_bars, forest, scatter
from kace.report.evaluation import Evaluation
from kace.report.svg import Paint, Picture
from kace.report.tradeoff import Spot, front, tradeoff
from kace.runs.compare import p_text
from kace.runs.metrics import Metrics
from kace.words import counted

WIDE = 880.0
NARROW = 350.0
PRINT = 500.0
"""Widths in which plots are drawn: for a screen, for a phone, and in points for a paper."""
DRAWN = 40  # cards up to which every lift is drawn; beyond, those that say something
PARTS = 5  # colours there are for roles
OWN = "their attempts"  # by which a caption says that problems are sorted
FEW = 6  # arms up to which groups need no headings


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture that can be drawn at any width; its name is its file's."""

    name: str
    title: str
    caption: str
    draw: Callable[[float], Picture]


def plots_of(found: Evaluation) -> tuple[Plot, ...]:
    """Every plot there is data for."""
    makers = (
        _accuracy,
        _difference,
        _tradeoff,
        _exits,
        _concordance,
        _lifts,
        _cost,
    )
    return tuple(plot for maker in makers for plot in maker(found))


def _heading(found: Evaluation, name: str) -> str:
    """The group of an arm; none for the base, and where arms are few."""
    return (
        found.setup(name).group if len(found.arms) > FEW and name != found.base else ""
    )


def _accuracy(found: Evaluation) -> Iterator[Plot]:
    rows = []
    sizes = [
        (counted(arm.problems, "problem"), counted(len(arm.seeds), "seed"))
        for arm in found.ordered
    ]
    telling = [len({*kind}) > 1 for kind in zip(*sizes, strict=True)]
    for arm, size in zip(found.ordered, sizes, strict=True):
        if arm.accuracy is not None and arm.wilson is not None:
            about = "; ".join(
                filter(None, (found.setup(arm.name).about, *compress(size, telling)))
            )
            paint = Paint.OPEN if arm.name == found.base else Paint.GOOD
            rows.append(
                ForestRow(
                    arm.name,
                    about,
                    arm.accuracy,
                    *arm.wilson,
                    paint,
                    _heading(found, arm.name),
                )
            )
    if not rows:
        return
    title = "Accuracy of each arm"
    base = f" The hollow mark is the base, {found.base}." if found.base else ""
    caption = (
        f"Mean over the seeds, with 95 % Wilson intervals in which one {found.cluster} counts once however many solves "
        f"it has. A failed call is a wrong answer.{base}"
    )
    yield Plot(
        "accuracy",
        title,
        caption,
        partial(forest, title, "accuracy", rows, change=False),
    )


def _difference(found: Evaluation) -> Iterator[Plot]:
    rows = []
    for arm in found.ordered:
        if (each := found.against_base(arm.name)) is None:
            continue
        paint = (
            (Paint.GOOD if each.difference > 0 else Paint.BAD)
            if each.distinguishable
            else Paint.OPEN
        )
        about = f"{counted(each.clusters, each.cluster)}, {p_text(each.adjusted)}"
        heading = _heading(found, arm.name)
        rows.append(
            ForestRow(arm.name, about, each.difference, *each.interval, paint, heading)
        )
    if not rows:
        return
    title = f"Difference from {found.base}"
    corrected = (
        ", corrected for the number of arms by Holm’s method" if len(rows) > 1 else ""
    )
    caption = (
        f"Paired by problem and seed. {found.resampled} Filled marks differ from "
        f"{found.base} beyond chance at 5 %{corrected}; hollow ones cannot be told from it at this number of problems."
    )
    unit = f"difference from {found.base}, percentage points"
    yield Plot("difference", title, caption, partial(forest, title, unit, rows))


def _tradeoff(found: Evaluation) -> Iterator[Plot]:
    known = [(arm, arm.accuracy, arm.wilson) for arm in found.arms]
    spots = [
        Spot(arm.name, arm.paper_calls, share, *ends)
        for arm, share, ends in known
        if share is not None and ends
    ]
    if len(spots) < 2:
        return
    title = "Accuracy against calls"
    caption = (
        "Solver calls by the paper’s count: every attempt of the tiers a solve reached, which is 2, 5 or 10 on the "
        "locked ladder; calls to route a problem are counted apart. Bars are 95 % Wilson intervals. Filled arms are "
        f"those that no other beats on both{'; the line joins them.' if len(front(spots)) > 1 else '.'}"
    )
    yield Plot(
        "accuracy-against-calls", title, caption, partial(tradeoff, title, spots)
    )


def _exits(found: Evaluation) -> Iterator[Plot]:
    panels = []
    for arm in found.ordered:
        if not arm.exits:
            continue
        rows: list[ExitRow] = [
            (row.bucket.value, row.problems, row.exits) for row in arm.buckets
        ]
        panels.append((arm.name, [*rows, ("all", arm.problems, arm.exits)]))
    if not panels:
        return
    title = "Where solves leave the ladder"
    caption = "Figures in the bars are solves; those on the right are problems."
    if any(arm.buckets for arm in found.ladders):
        caption = (
            f"Problems are sorted by the share of {OWN} that are right: EASY from 80 %, MED-EASY from 50 %, "
            "MED-HARD from 20 %, HARD above none, VERY-HARD none. What leaves early in the last row agreed on a wrong "
            f"answer. {caption}"
        )
    yield Plot("exits-by-difficulty", title, caption, partial(exit_bars, title, panels))


def _concordance(found: Evaluation) -> Iterator[Plot]:
    panels = [
        (arm.name, it.words, it.points)
        for arm in found.ordered
        if (it := arm.concordance)
    ]
    if not panels:
        return
    title = "How well the exit tells how hard a problem is"
    caption = (
        "Each disc stands for the problems at that place, pooled over the seeds; its area is their number. Concordant "
        "are pairs of problems of which the easier one leaves earlier, ties counting half: one half is chance."
    )
    yield Plot("concordance", title, caption, partial(scatter, title, panels))


def _lifts(found: Evaluation) -> Iterator[Plot]:
    telling = [
        lift
        for lift in found.lifts
        if lift.tells or lift.status is not Status.EXPERIMENTAL
    ]
    drawn = found.lifts if len(found.lifts) <= DRAWN else telling[:DRAWN]
    if not drawn:
        return
    paints = {
        Status.VALIDATED: Paint.GOOD,
        Status.DEPRECATED: Paint.BAD,
        Status.EXPERIMENTAL: Paint.OPEN,
    }
    rows = []
    for lift in drawn:
        about = f"{lift.place}, {counted(lift.problems, 'problem')}"
        rows.append(
            ForestRow(
                lift.card_id,
                about,
                lift.effect,
                lift.low,
                lift.high,
                paints[lift.status],
            )
        )
    title = "What each card is worth"
    rest = len(found.lifts) - len(drawn)
    caption = (
        "The change in the share of right attempts that a card causes, as the learner measured it on training "
        "problems, with 95 % intervals. Filled: validated; hollow: experimental; red: retired."
        + (f" {counted(rest, 'card')} that show less are not drawn." if rest else "")
    )
    yield Plot(
        "card-lift",
        title,
        caption,
        partial(forest, title, "lift, percentage points", rows),
    )


def _cost(found: Evaluation) -> Iterator[Plot]:
    arms = [arm for arm in found.ordered if arm.solves]
    if not any(role.calls for arm in arms for role in arm.cost.roles):
        return
    caption = "Tokens, because no price is known or nothing is charged. What was spent to learn is not in it."
    unit = "tokens per solve"
    by_part = [_tokens(arm) for arm in arms]
    if all(arm.cost.usd is not None for arm in arms) and any(
        arm.cost.usd for arm in arms
    ):
        caption = "As if nothing had been read from disk; what was spent to learn is not in it."
        unit = "USD per 1,000 solves"
        by_part = [_dollars(arm) for arm in arms]
    parts = [*dict.fromkeys(part for each in by_part for part in each)]
    used = [
        part
        for part in parts
        if unit.startswith("USD") or any(each.get(part) for each in by_part)
    ][:PARTS]
    rows = [
        (arm.name, [each.get(part, 0.0) for part in used], _heading(found, arm.name))
        for arm, each in zip(arms, by_part, strict=True)
    ]
    yield Plot(
        "cost-by-role",
        "Cost by role",
        caption,
        partial(cost_bars, "Cost by role", unit, used, rows),
    )


def _dollars(arm: Metrics) -> dict[str, float]:
    return {role.role: 1000 * (role.usd or 0.0) / arm.solves for role in arm.cost.roles}


def _tokens(arm: Metrics) -> dict[str, float]:
    other = (
        sum(
            r.usage.input + r.usage.output for r in arm.cost.roles if r.role != "solver"
        )
        / arm.solves
    )
    solver = {
        "solver, input": arm.input - arm.cached,
        "solver, cached input": arm.cached,
        "solver, output": arm.output,
    }
    return {**solver, "other roles": other}
