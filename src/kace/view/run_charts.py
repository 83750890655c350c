"""The middle of a run's page: its plots, and the accuracy by exit, domain and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kace.evaluation.metrics import Metrics
from kace.evaluation.plots import NARROW, Plot, plots_of
from kace.evaluation.report import Evaluation
from kace.evaluation.stats import wilson
from kace.plots.picture import inline
from kace.plots.tradeoff import Spot, front
from kace.solver.tiers import ExitPath
from kace.view.marks import EXITS, percent, spread
from kace.view.neighbours import Neighbour, same_data
from kace.view.run_table import Sheet
from kace.view.run_tally import Share
from kace.web.markup import Html, join, tag
from kace.web.parts import table

BESIDE = 7
"""Runs in one plot: more could not be told apart, and placing their names takes long."""
_NOTHING = Html("")
HALF, WHOLE = 560.0, 880.0
"""Widths in which plots are drawn: two beside each other, or one alone."""


@dataclass(frozen=True, slots=True)
class _Chart:
    """A plot, known by what it shows, so that one that shows the same is not drawn again."""

    shows: tuple[object, ...]
    plot: Plot = field(compare=False)


def charts(sheet: Sheet, near: Sequence[Neighbour]) -> Html:
    """Where solves leave and what is right there, and what accuracy takes beside other runs of the same problems."""
    index = sheet.index
    here = sheet.tally.metrics(sheet.run, index.model)
    if not here.solves:
        return _NOTHING
    # Runs that are still being read have no place beside others yet, and their plot would be drawn again and again.
    alike = [each for each in near if same_data(index, each.index)] if index.complete else []
    arms = _beside(replace(here, name=f"{sheet.run} (this run)"), alike, sheet.choice.against)
    exits, calls = _chart("exits-by-difficulty", (here,)), _chart("accuracy-against-calls", arms)
    shares = _parts(sheet)
    width = HALF if calls and (exits or shares) else WHOLE
    columns = [_drawn(exits, width, shares), _drawn(calls, width)] if exits else [_drawn(calls, width), shares]
    drawn = [column for column in columns if column]
    return tag("div", *drawn, class_="split charts") if len(drawn) > 1 else join(drawn)


def _drawn(chart: _Chart | None, width: float, below: Html = _NOTHING) -> Html:
    if chart is None:
        return below
    return tag("section", tag("h2", chart.plot.title), _figure(chart, width), below)


def _beside(here: Metrics, near: Sequence[Neighbour], against: str) -> tuple[Metrics, ...]:
    """The run and those drawn beside it: the one it is held against, those that none beats, then the nearest."""
    others = [each.index.tally.metrics(each.name, each.index.model) for each in near if each.index.complete]
    known = [arm for arm in (here, *others) if arm.accuracy is not None]
    best = {spot.name for spot in front([Spot(arm.name, arm.paper_calls, arm.accuracy or 0, 0, 0) for arm in known])}
    own = here.accuracy or 0.0
    known.sort(
        key=lambda arm: (arm is not here, arm.name != against, arm.name not in best, abs((arm.accuracy or 0.0) - own))
    )
    return tuple(known[:BESIDE])


def _chart(name: str, arms: tuple[Metrics, ...]) -> _Chart | None:
    found = Evaluation(title="", arms=arms, base="", comparisons=(), lifts=(), setups=(), warnings=())
    plot = next((plot for plot in plots_of(found) if plot.name == name), None)
    if plot is None:
        return None
    figures = tuple((arm.name, arm.accuracy, arm.wilson, arm.paper_calls, tuple(arm.exits.values())) for arm in arms)
    buckets = tuple((row.problems, tuple(row.exits.values())) for arm in arms for row in arm.buckets)
    return _Chart((name, figures, buckets), plot)


@lru_cache(maxsize=64)
def _figure(chart: _Chart, width: float) -> Html:
    """A plot in two widths, of which the screen shows one."""
    return tag(
        "figure",
        inline(chart.plot.draw(width), "plot wide"),
        inline(chart.plot.draw(NARROW), "plot narrow"),
        tag("figcaption", chart.plot.caption.replace(" %", "\u00a0%")),
    )


def _parts(sheet: Sheet) -> Html:
    """The accuracy by exit, by domain and by seed."""
    tally = sheet.tally
    exits = {EXITS[path]: tally.exits_known[path] for path in ExitPath if path in tally.exits_known}
    links = {EXITS[path]: sheet.to(exit=path.value) for path in ExitPath}
    domains = dict(sorted(tally.domains.items()))
    seeds = {f"seed {seed}": Share(counts[0], counts[1]) for seed, counts in sorted(tally.seeds.items()) if counts[1]}
    drawn = (
        _shares("Right by exit", exits, links, sheet),
        _shares("Right by domain", domains, {each: sheet.to(q=each) for each in domains}, sheet),
        _shares("Right by seed", seeds, {}, sheet),
    )
    if not any(drawn):
        return _NOTHING
    # Beside a plot they stand below its caption; without exits they are a column of their own.
    if exits:
        return tag("div", *drawn, class_="where")
    return tag("section", tag("h2", "What is right where"), *drawn, class_="where")


def _shares(title: str, shares: Mapping[str, Share], links: Mapping[str, str], sheet: Sheet) -> Html:
    if len(shares) < 2:
        return _NOTHING
    noun = title.split()[-1].capitalize()
    heads = (noun, "Right", "95\u00a0% interval", "Solves")
    rows = (
        (
            tag("a", name, href=links[name]) if name in links and not sheet.links.static else name,
            percent(share.right / share.n),
            spread(*wilson(share.right, share.n)),
            f"{share.n:,}",
        )
        for name, share in shares.items()
        if share.n
    )
    drawn = table(heads, rows, right=frozenset(heads[1:]))
    return tag("details", tag("summary", title), drawn, open=None if sheet.tally.exits else "")
