"""The plots of an evaluation: what each shows, and the words beside it. Those without data are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kace.evaluation import charts
from kace.evaluation.charts import Axis, CostChart, ExitRow, ForestRow
from kace.evaluation.compare import p_text
from kace.evaluation.metrics import Metrics
from kace.evaluation.report import Evaluation
from kace.evaluation.svg import Paint, Picture
from kace.evaluation.tradeoff import Spot, front, tradeoff
from kace.tree.card import Status
from kace.web.scale import Scale, scale_over
from kace.words import counted, points

WIDE, NARROW, PRINT = 880.0, 350.0, 500.0
"""Widths in which plots are drawn: for a screen, for a phone, and in points for a paper."""
DRAWN = 40  # cards up to which every lift is drawn; beyond, those that say something
PARTS = 5  # colours there are for roles


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture that can be drawn at any width; its name is its file's."""

    name: str
    title: str
    caption: str
    draw: Callable[[float], Picture]


def plots_of(found: Evaluation) -> tuple[Plot, ...]:
    """Every plot there is data for."""
    makers = (_accuracy, _difference, _tradeoff, _exits, _concordance, _lifts, _cost)
    return tuple(plot for maker in makers for plot in maker(found))


def _accuracy(found: Evaluation) -> Iterator[Plot]:
    alike = len({(arm.problems, len(arm.seeds)) for arm in found.arms}) == 1
    rows = []
    for arm in found.arms:
        if arm.accuracy is not None and arm.wilson is not None:
            about = "" if alike else f"{counted(arm.problems, 'problem')}, {counted(len(arm.seeds), 'seed')}"
            told = f"{arm.accuracy:.1%} {arm.wilson.low:.1%} – {arm.wilson.high:.1%}"
            paint = Paint.OPEN if arm.name == found.base else Paint.GOOD
            rows.append(ForestRow(arm.name, about, arm.accuracy, *arm.wilson, told, paint, paint is Paint.OPEN))
    if not rows:
        return
    title = "Accuracy of each arm"
    base = f" The hollow mark is the base, {found.base}." if found.base else ""
    caption = (
        "Mean over the seeds, with 95 % Wilson intervals in which a problem counts once however many seeds it has. "
        f"A failed call is a wrong answer.{base}"
    )
    scale = scale_over(min(row.low for row in rows), max(row.high for row in rows), about=6)
    axis = Axis(scale, "accuracy", tuple(f"{tick:.0%}" for tick in scale.ticks))
    yield Plot("accuracy", title, caption, lambda width: charts.forest(title, rows, axis, width))


def _difference(found: Evaluation) -> Iterator[Plot]:
    rows = []
    for each in found.comparisons:
        paint = (Paint.GOOD if each.difference > 0 else Paint.BAD) if each.distinguishable else Paint.OPEN
        about = f"{counted(each.n, 'problem')}, {p_text(each.adjusted)}"
        rows.append(_effect_row(each.other, about, (each.difference, *each.interval), paint))
    if not rows:
        return
    title = f"Difference from {found.base}"
    corrected = ", corrected for the number of arms by Holm’s method" if len(rows) > 1 else ""
    caption = (
        f"Paired by problem and seed, with 95 % intervals from resampling whole problems. Filled marks differ from "
        f"{found.base} beyond chance at 5 %{corrected}; hollow ones cannot be told from it at this number of problems."
    )
    axis = _around_zero(rows, f"difference from {found.base}, percentage points")
    yield Plot("difference", title, caption, lambda width: charts.forest(title, rows, axis, width))


def _tradeoff(found: Evaluation) -> Iterator[Plot]:
    known = [(arm, arm.accuracy, arm.wilson) for arm in found.arms]
    spots = [Spot(arm.name, arm.paper_calls, share, *ends) for arm, share, ends in known if share is not None and ends]
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
    panels = []
    for arm in found.ladders:
        rows: list[ExitRow] = [(row.bucket.value, row.problems, row.exits) for row in arm.buckets]
        panels.append((arm.name, [*rows, ("all", arm.problems, arm.exits)]))
    if not panels:
        return
    title = "Where solves leave the ladder"
    caption = "Figures in the bars are solves; those on the right are problems."
    if any(arm.buckets for arm in found.ladders):
        caption = (
            "Problems are sorted by the share of their attempts that are right: EASY from 80 %, MED-EASY from 50 %, "
            "MED-HARD from 20 %, HARD above none, VERY-HARD none. What leaves early in the last row agreed on a wrong "
            f"answer. {caption}"
        )
    yield Plot("exits-by-difficulty", title, caption, lambda width: charts.exit_bars(title, panels, width))


def _concordance(found: Evaluation) -> Iterator[Plot]:
    known = [(arm.name, arm.concordance) for arm in found.ladders if arm.concordance and arm.concordance.points]
    if not known:
        return
    panels = [(name, it.words, [(p.raw_rate, p.exit_rank) for p in it.points]) for name, it in known]
    title = "How well the exit tells how hard a problem is"
    caption = (
        "Each disc stands for the problems at that place, pooled over the seeds; its area is their number. Concordant "
        "are pairs of problems of which the easier one leaves earlier, ties counting half: one half is chance."
    )
    yield Plot("concordance", title, caption, lambda width: charts.scatter(title, panels, width))


def _lifts(found: Evaluation) -> Iterator[Plot]:
    telling = [lift for lift in found.lifts if lift.tells or lift.status is not Status.EXPERIMENTAL]
    drawn = found.lifts if len(found.lifts) <= DRAWN else telling[:DRAWN]
    if not drawn:
        return
    paints = {Status.VALIDATED: Paint.GOOD, Status.DEPRECATED: Paint.BAD, Status.EXPERIMENTAL: Paint.OPEN}
    rows = []
    for lift in drawn:
        about = f"{lift.place}, {counted(lift.problems, 'problem')}"
        rows.append(_effect_row(lift.card_id, about, (lift.effect, lift.low, lift.high), paints[lift.status]))
    title = "What each card is worth"
    rest = len(found.lifts) - len(drawn)
    caption = (
        "The change in the share of right attempts that a card causes, as the learner measured it on training "
        "problems, with 95 % intervals. Filled: validated; hollow: experimental; red: retired."
        + (f" {counted(rest, 'card')} that show less are not drawn." if rest else "")
    )
    axis = _around_zero(rows, "lift, percentage points")
    yield Plot("card-lift", title, caption, lambda width: charts.forest(title, rows, axis, width))


def _cost(found: Evaluation) -> Iterator[Plot]:
    arms = [arm for arm in found.arms if arm.solves]
    if not any(role.calls for arm in arms for role in arm.cost.roles):
        return
    caption = "Tokens, because no price is known or nothing is charged. What was spent to learn is not in it."
    priced = all(arm.cost.usd is not None for arm in arms) and any(arm.cost.usd for arm in arms)
    if priced:
        caption = "As if nothing had been read from disk; what was spent to learn is not in it."
    chart = _dollars(arms) if priced else _tokens(arms)
    yield Plot("cost-by-role", "Cost by role", caption, lambda width: charts.cost_bars("Cost by role", chart, width))


def _dollars(arms: Sequence[Metrics]) -> CostChart:
    roles = tuple(dict.fromkeys(role.role for arm in arms for role in arm.cost.roles))[:PARTS]
    rows = []
    for arm in arms:
        by_role = {role.role: 1000 * (role.usd or 0.0) / arm.solves for role in arm.cost.roles}
        rows.append((arm.name, [by_role.get(role, 0.0) for role in roles]))
    return CostChart("USD per 1,000 solves", roles, rows)


def _tokens(arms: Sequence[Metrics]) -> CostChart:
    parts = ("solver, input", "solver, cached input", "solver, output", "other roles")
    rows = []
    for arm in arms:
        other = sum(r.usage.input + r.usage.output for r in arm.cost.roles if r.role != "solver") / arm.solves
        rows.append((arm.name, (arm.input - arm.cached, arm.cached, arm.output, other)))
    used = [n for n in range(len(parts)) if any(values[n] for _, values in rows)]
    kept = [(name, [values[n] for n in used]) for name, values in rows]
    return CostChart("tokens per solve", tuple(parts[n] for n in used), kept)


def _effect_row(name: str, about: str, effect: tuple[float, float, float], paint: Paint) -> ForestRow:
    """A difference with its interval; the mark of one that cannot be told from none is hollow."""
    value, low, high = map(points, effect)
    return ForestRow(name, about, *effect, f"{value} {low} to {high}", paint, paint is Paint.OPEN)


def _around_zero(rows: Sequence[ForestRow], title: str) -> Axis:
    """An axis that has zero in it. It follows the values: an interval far wider than any of them is cut."""
    ends = [end for row in rows for end in (row.low, row.high)]
    reach = max(0.2, 2.2 * max(abs(row.value) for row in rows))
    low, high = max(-reach, min(0.0, *ends)), min(reach, max(0.0, *ends))
    margin, step = 0.03 * (high - low or 0.1), scale_over(low, high, about=6).step
    scale = Scale(low - margin, high + margin, step)
    return Axis(scale, title, tuple(points(tick, digits=0 if step >= 0.01 else 1) for tick in scale.ticks), zero=0.0)
