"""The plots of an evaluation: what each shows, and the words beside it. Those without data are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kace.evaluation.card_lifts import CardLift
from kace.evaluation.compare import p_text
from kace.evaluation.concordance import Concordance
from kace.evaluation.metrics import Metrics
from kace.evaluation.report import Evaluation
from kace.plots.cost_bars import CostChart, CostRow, cost_bars
from kace.plots.exit_bars import ExitPanel, ExitRow, exit_bars
from kace.plots.forest import Axis, ForestRow, forest
from kace.plots.picture import Paint, Picture
from kace.plots.scatter import ScatterPanel, scatter
from kace.plots.tradeoff import Spot, front, tradeoff
from kace.tree.card import Status
from kace.web.scale import Scale, scale_over
from kace.words import counted, points

WIDE, NARROW, PRINT = 880.0, 350.0, 500.0
"""Widths in which plots are drawn: for a screen, for a phone, and in points for a paper."""
DRAWN = 40
"""Cards up to which every lift is drawn; beyond, those that say something."""
PARTS = 5
"""Colours there are for roles."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture that can be drawn at any width."""

    name: str
    """Of its file."""
    title: str
    caption: str
    draw: Callable[[float], Picture]


def plots_of(found: Evaluation) -> tuple[Plot, ...]:
    """Every plot there is data for."""
    makers = (_accuracy, _difference, _tradeoff, _exits, _concordance, _lifts, _cost)
    return tuple(plot for maker in makers for plot in maker(found))


def _accuracy(found: Evaluation) -> Iterator[Plot]:
    alike = len({(arm.problems, len(arm.seeds)) for arm in found.arms}) == 1
    rows = [
        ForestRow(
            name=arm.name,
            about="" if alike else f"{counted(arm.problems, 'problem')}, {counted(len(arm.seeds), 'seed')}",
            value=arm.accuracy,
            low=arm.wilson.low,
            high=arm.wilson.high,
            told=f"{arm.accuracy:.1%} {arm.wilson.low:.1%} – {arm.wilson.high:.1%}",
            paint=Paint.OPEN if arm.name == found.base else Paint.GOOD,
            hollow=arm.name == found.base,
        )
        for arm in found.arms
        if arm.accuracy is not None and arm.wilson is not None
    ]
    if not rows:
        return
    title = "Accuracy of each arm"
    base = f" The hollow mark is the base, {found.base}." if found.base else ""
    caption = (
        "Mean over the seeds, with 95 % Wilson intervals in which a problem counts once however many seeds it has. "
        f"A failed call is a wrong answer.{base}"
    )
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    scale = scale_over(low, high, about=6)
    axis = Axis(scale, "accuracy", tuple(f"{tick:.0%}" for tick in scale.ticks))
    yield Plot("accuracy", title, caption, lambda width: forest(title, rows, axis, width))


def _difference(found: Evaluation) -> Iterator[Plot]:
    rows = [
        ForestRow(
            name=each.other,
            about=f"{counted(each.n, 'problem')}, {p_text(each.adjusted)}",
            value=each.difference,
            low=each.interval.low,
            high=each.interval.high,
            told=f"{points(each.difference)} {points(each.interval.low)} to {points(each.interval.high)}",
            paint=(Paint.GOOD if each.difference > 0 else Paint.BAD) if each.distinguishable else Paint.OPEN,
            hollow=not each.distinguishable,
        )
        for each in found.comparisons
    ]
    if not rows:
        return
    title = f"Difference from {found.base}"
    corrected = ", corrected for the number of arms by Holm’s method" if len(rows) > 1 else ""
    caption = (
        f"Paired by problem and seed, with 95 % intervals from resampling whole problems. Filled marks differ from "
        f"{found.base} beyond chance at 5 %{corrected}; hollow ones cannot be told from it at this number of problems."
    )
    axis = _around_zero(rows, f"difference from {found.base}, percentage points")
    yield Plot("difference", title, caption, lambda width: forest(title, rows, axis, width))


def _tradeoff(found: Evaluation) -> Iterator[Plot]:
    spots = [
        Spot(arm.name, arm.paper_calls, arm.accuracy, arm.wilson.low, arm.wilson.high)
        for arm in found.arms
        if arm.accuracy is not None and arm.wilson is not None
    ]
    if len(spots) < 2:
        return
    title = "Accuracy against calls"
    caption = (
        "Solver calls by the paper’s count: every attempt of the tiers a solve reached, which is 2, 5 or 10 on the "
        "locked ladder; placing a problem is counted apart. Bars are 95 % Wilson intervals. Filled arms are those "
        f"that no other beats on both{'; the line joins them.' if len(front(spots)) > 1 else '.'}"
    )
    yield Plot("accuracy-against-calls", title, caption, lambda width: tradeoff(title, spots, width))


def _exits(found: Evaluation) -> Iterator[Plot]:
    panels = [ExitPanel(arm.name, tuple(_exit_rows(arm))) for arm in found.ladders]
    if not panels:
        return
    title = "Where solves leave the ladder"
    caption = "Figures in the bars are solves; those on the right are problems."
    if any(len(panel.rows) > 1 for panel in panels):
        caption = (
            "Problems are sorted by the share of their attempts that are right: EASY from 80 %, MED-EASY from 50 %, "
            "MED-HARD from 20 %, HARD above none, VERY-HARD none. What leaves early in the last row agreed on a wrong "
            f"answer. {caption}"
        )
    yield Plot("exits-by-difficulty", title, caption, lambda width: exit_bars(title, panels, width))


def _exit_rows(arm: Metrics) -> Iterator[ExitRow]:
    for row in arm.buckets:
        yield ExitRow(row.bucket.value, row.problems, row.exits)
    yield ExitRow("all", arm.problems, arm.exits)


def _concordance(found: Evaluation) -> Iterator[Plot]:
    panels = [
        ScatterPanel(arm.name, concordance_words(arm.concordance), _places(arm.concordance))
        for arm in found.ladders
        if arm.concordance and arm.concordance.points
    ]
    if not panels:
        return
    title = "How well the exit tells how hard a problem is"
    caption = (
        "Each disc stands for the problems at that place, pooled over the seeds; its area is their number. Concordant "
        "are pairs of problems of which the easier one leaves earlier, ties counting half: one half is chance."
    )
    yield Plot("concordance", title, caption, lambda width: scatter(title, panels, width))


def concordance_words(found: Concordance) -> str:
    """The share of concordant pairs and the rank correlation, as far as they are defined."""
    share = f"{found.share:.1%} of {counted(found.pairs, 'pair')}" if found.share is not None else "no pair to compare"
    return share + (f", ρ = {found.spearman:.2f}".replace("-", "−") if found.spearman is not None else "")


def _places(found: Concordance) -> tuple[tuple[float, float], ...]:
    return tuple((point.raw_rate, point.exit_rank) for point in found.points)


def _lifts(found: Evaluation) -> Iterator[Plot]:
    drawn = [lift for lift in found.lifts if len(found.lifts) <= DRAWN or _says_something(lift)][:DRAWN]
    if not drawn:
        return
    paints = {Status.VALIDATED: Paint.GOOD, Status.DEPRECATED: Paint.BAD, Status.EXPERIMENTAL: Paint.OPEN}
    rows = [
        ForestRow(
            name=lift.card_id,
            about=f"{lift.place}, {counted(lift.problems, 'problem')}",
            value=lift.effect,
            low=lift.low,
            high=lift.high,
            told=f"{points(lift.effect)} {points(lift.low)} to {points(lift.high)}",
            paint=paints[lift.status],
            hollow=lift.status is Status.EXPERIMENTAL,
        )
        for lift in drawn
    ]
    title = "What each card is worth"
    rest = len(found.lifts) - len(drawn)
    caption = (
        "The change in the share of right attempts that a card causes, as the learner measured it on training "
        "problems, with 95 % intervals. Filled: validated; hollow: experimental; red: retired."
        + (f" {counted(rest, 'card')} that show less are not drawn." if rest else "")
    )
    axis = _around_zero(rows, "lift, percentage points")
    yield Plot("card-lift", title, caption, lambda width: forest(title, rows, axis, width))


def _says_something(lift: CardLift) -> bool:
    return lift.tells or lift.status is not Status.EXPERIMENTAL


def _cost(found: Evaluation) -> Iterator[Plot]:
    arms = [arm for arm in found.arms if arm.solves]
    if not any(role.calls for arm in arms for role in arm.cost.roles):
        return
    priced = all(arm.cost.usd is not None for arm in arms) and any(arm.cost.usd for arm in arms)
    chart = _dollars(arms) if priced else _tokens(arms)
    title = "Cost by role"
    caption = (
        "As if nothing had been read from disk; what was spent to learn is not in it."
        if priced
        else "Tokens, because no price is known or nothing is charged. What was spent to learn is not in it."
    )
    yield Plot("cost-by-role", title, caption, lambda width: cost_bars(title, chart, width))


def _dollars(arms: Sequence[Metrics]) -> CostChart:
    roles = tuple(dict.fromkeys(role.role for arm in arms for role in arm.cost.roles))[:PARTS]
    rows = []
    for arm in arms:
        by_role = {role.role: 1000 * (role.usd or 0.0) / arm.solves for role in arm.cost.roles}
        rows.append(CostRow(arm.name, tuple(by_role.get(role, 0.0) for role in roles)))
    return CostChart("USD per 1,000 solves", roles, tuple(rows), dollars=True)


def _tokens(arms: Sequence[Metrics]) -> CostChart:
    parts = ("solver, input", "solver, cached input", "solver, output", "other roles")
    rows = []
    for arm in arms:
        other = sum(r.usage.input + r.usage.output for r in arm.cost.roles if r.role != "solver") / arm.solves
        rows.append(CostRow(arm.name, (arm.input - arm.cached, arm.cached, arm.output, other)))
    used = [n for n in range(len(parts)) if any(row.parts[n] for row in rows)]
    kept = tuple(CostRow(row.name, tuple(row.parts[n] for n in used)) for row in rows)
    return CostChart("tokens per solve", tuple(parts[n] for n in used), kept, dollars=False)


def _around_zero(rows: Sequence[ForestRow], title: str) -> Axis:
    """An axis that has zero in it. It follows the values: an interval far wider than any of them is cut."""
    ends = [end for row in rows for end in (row.low, row.high)]
    reach = max(0.2, 2.2 * max(abs(row.value) for row in rows))
    low, high = max(-reach, min(0.0, *ends)), min(reach, max(0.0, *ends))
    margin = 0.03 * (high - low or 0.1)
    step = scale_over(low, high, about=6).step
    scale = Scale(low - margin, high + margin, step)
    return Axis(scale, title, tuple(points(tick, digits=0 if step >= 0.01 else 1) for tick in scale.ticks), zero=0.0)
