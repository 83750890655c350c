"""The report of an evaluation: arms in figures, each compared with a base, and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from pydantic import TypeAdapter

from kace.baselines.systems import spec_of
from kace.config import Price
from kace.errors import UsageError, counted
from kace.report.charts import (
    EXIT_NAMES,
    ExitRow,
    ForestRow,
    Paint,
    Picture,
    Spot,
    exit_bars,
    forest,
    tradeoff,
)
from kace.report.render import render_document
from kace.runs.compare import (
    Comparison,
    Harm,
    compare_all,
    p_text,
    pairs_of,
    warnings_of,
)
from kace.runs.metrics import NO_CARDS, Metrics, clusters_of
from kace.runs.table import Table

PRINT = 500.0  # width of a plot in a file, in points
OWN = "their attempts"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Arms side by side."""

    title: str
    arms: tuple[Metrics, ...]  # in the order given
    base: (
        str  # the arm that the others are compared with; empty for a single arm
    )
    comparisons: tuple[Comparison, ...]
    setups: tuple[Mapping[str, object], ...]  # what produced each arm
    warnings: tuple[str, ...]
    cluster: str = "problem"  # what intervals and tests take as one observation
    clusters: int = 0

    @property
    def best(self) -> Metrics | None:
        """The arm with the highest accuracy, the cheaper of equals."""
        known = [arm for arm in self.arms if arm.accuracy is not None]
        known.sort(key=lambda arm: (-(arm.accuracy or 0.0), arm.paper_calls))
        return known[0] if known else None

    @property
    def ordered(self) -> list[Metrics]:
        """The arms as plots have them: the base, then the most accurate first."""
        return sorted(
            self.arms,
            key=lambda arm: (arm.name != self.base, -(arm.accuracy or 0.0)),
        )

    @property
    def resampled(self) -> str:
        """What the cluster is and how many there are, in a sentence."""
        many = counted(self.clusters, self.cluster)
        if self.cluster == "problem":
            return f"Intervals resample {many}: the seeds of one problem stay together."
        together = f"all problems and seeds of one {self.cluster} stay together"
        each = "--cluster problem counts each problem by itself"
        return f"Intervals resample {many}: {together}; {each}."

    @property
    def ladders(self) -> list[Metrics]:
        """The arms that have a ladder."""
        return [arm for arm in self.arms if arm.exits]

    @property
    def harms(self) -> list[tuple[str, Harm]]:
        """What showing cards did in each arm that had some to show."""
        found = []
        for each in self.comparisons:
            if each.harm:
                found.append((each.other, each.harm))
        return found

    def against_base(self, name: str) -> Comparison | None:
        """Return how an arm compares with the base."""
        for each in self.comparisons:
            if each.other == name:
                return each
        return None


def evaluation_of(
    tables: Sequence[Table],
    *,
    base: str | None = None,
    prices: Mapping[str, Price] | None = None,
    cluster: str | None = None,
) -> Evaluation:
    """Compare runs with a base, the first unless one is named.

    Prices are by model. The cluster is a field of problems; by default the family if
    every solve has one, else the problem.
    """
    if not tables:
        raise UsageError("no run to report on", fix="kace report RUN [RUN ...]")
    chosen = tables[0]
    if base is not None:
        chosen = _named(tables, base)
    clusters = clusters_of(tables, cluster)
    arms = []
    setups = []
    warnings = list(warnings_of(tables))
    others = []
    titles = set()
    for table in tables:
        manifest = table.manifest
        metrics = table.metrics((prices or {}).get(manifest.model), clusters)
        if _reads_tree(manifest.system) and not manifest.part("tree"):
            metrics = replace(metrics, note=NO_CARDS)
        arms.append(metrics)
        titles.add(f"{manifest.data} {manifest.split}".strip())
        made = {"name": table.name, "folder": str(table.folder or "")}
        setups.append({**made, **manifest.facts()})
        if table is not chosen and any(pairs_of(chosen, table)):
            others.append(table)
        elif table is not chosen and metrics.labelled:
            alone = f"{table.name} has no problem and seed in common with {chosen.name}"
            warnings.append(f"{alone}: the two are not compared.")
    title = titles.pop() if len(titles) == 1 else ""
    return Evaluation(
        title or ", ".join(table.name for table in tables[:3]),
        tuple(arms),
        base=chosen.name if len(tables) > 1 else "",
        comparisons=compare_all(chosen, others, clusters),
        setups=tuple(setups),
        warnings=tuple(warnings),
        cluster=clusters.field,
        clusters=clusters.count(tables),
    )


def _reads_tree(system: str) -> bool:
    """Whether a system reads the cards of a tree."""
    with suppress(UsageError):
        return spec_of(system).reads_tree
    return False


def _named(tables: Sequence[Table], name: str) -> Table:
    for table in tables:
        if table.name == name:
            return table
    names = ", ".join(table.name for table in tables)
    raise UsageError(
        f"no arm is called '{name[:60]}'", fix=f"choose --base from {names}"
    )


def lead(found: Evaluation) -> str:
    """Return the result in a sentence or two."""
    best = found.best
    if best is None or best.wilson is None:
        arms = counted(len(found.arms), "arm")
        return f"{arms}, and no known answer to measure an accuracy by."
    size = counted(best.problems, "problem")
    if len(best.seeds) > 1:
        size = f"{size} over {counted(len(best.seeds), 'seed')}"
    low, high = best.wilson
    share = f"{best.accuracy:.1%} of {size} ({low:.1%} to {high:.1%})"
    calls = ""
    if best.paper_calls:
        calls = f", with {best.paper_calls:.2f} calls per problem"
    if len(found.arms) == 1:
        return f"{best.name} answered {share} correctly{calls}."
    highest = f"Highest is {best.name}: {share}{calls}."
    against = found.against_base(best.name)
    if len(found.comparisons) == 1:
        against = found.comparisons[0]
    return f"{highest} {against.sentence}" if against else highest


def evaluation_json(found: Evaluation) -> str:
    """Return the evaluation as one line of JSON."""
    return TypeAdapter(Evaluation).dump_json(found).decode()


def page(
    found: Evaluation,
    sections: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> str:
    """Return the report as one HTML page that needs nothing else.

    Sections are tables by their title, heads first.
    """
    return render_document(
        "report_evaluation.html",
        title=f"{found.title}: evaluation",
        found=found,
        sections=sections or {},
        lead=lead(found),
        plots=plots_of(found),
        exits=EXIT_NAMES,
        p_text=p_text,
    )


# Plots


class Plot(NamedTuple):
    """A chart that can be drawn at any width; its name is its file's."""

    name: str
    title: str
    caption: str
    draw: Callable[[float], Picture]


def plots_of(found: Evaluation) -> dict[str, Plot]:
    """Return every plot that there is data for, by name."""
    plots = (
        accuracy_plot(found),
        difference_plot(found),
        tradeoff_plot(found.arms),
        exits_plot(found.ordered),
    )
    return {plot.name: plot for plot in plots if plot}


def accuracy_plot(found: Evaluation) -> Plot | None:
    """Plot the accuracy of each arm."""
    systems = {}
    for setup in found.setups:
        systems[setup["name"]] = str(setup.get("system", ""))
    rows = []
    for arm in found.ordered:
        if arm.accuracy is not None and arm.wilson is not None:
            paint = Paint.OPEN if arm.name == found.base else Paint.GOOD
            about = ""
            with suppress(UsageError):
                about = spec_of(systems[arm.name]).about.partition(";")[0]
            rows.append(
                ForestRow(arm.name, about, arm.accuracy, *arm.wilson, paint)
            )
    if not rows:
        return None
    title = "Accuracy of each arm"
    caption = (
        "Mean over the seeds, with 95 % Wilson intervals in which one"
        f" {found.cluster} counts once however many solves it has. A failed call is a"
        " wrong answer. A hollow mark is the base."
    )
    draw = partial(forest, title, "accuracy", rows, change=False)
    return Plot("accuracy", title, caption, draw)


def difference_plot(found: Evaluation) -> Plot | None:
    """Plot the difference of each arm from the base."""
    rows = []
    for arm in found.ordered:
        each = found.against_base(arm.name)
        if each is None:
            continue
        paint = Paint.OPEN
        if each.distinguishable:
            paint = Paint.GOOD if each.difference > 0 else Paint.BAD
        size = counted(each.clusters, each.cluster)
        about = f"{size}, {p_text(each.adjusted)}"
        row = ForestRow(arm.name, about, each.difference, *each.interval, paint)
        rows.append(row)
    if not rows:
        return None
    title = f"Difference from {found.base}"
    holm = " after Holm’s correction" if len(rows) > 1 else ""
    caption = (
        f"Paired by problem and seed. {found.resampled} Filled marks differ from"
        f" {found.base} beyond chance at 5 %{holm}; hollow ones are indistinguishable"
        " from it at this number of problems."
    )
    unit = f"difference from {found.base}, percentage points"
    draw = partial(forest, title, unit, rows)
    return Plot("difference", title, caption, draw)


def tradeoff_plot(arms: Iterable[Metrics]) -> Plot | None:
    """Plot accuracy against calls."""
    spots = []
    for arm in arms:
        if arm.accuracy is None or arm.wilson is None:
            continue
        if arm.paper_calls:  # unknown for scores of other tools
            place = (arm.paper_calls, arm.accuracy, *arm.wilson)
            spots.append(Spot(arm.name, *place))
    if len(spots) < 2:
        return None
    title = "Accuracy against calls"
    caption = (
        "Solver calls by the paper’s count: every attempt of the tiers a solve reached,"
        " which is 2, 5 or 10 on the locked ladder; calls to route a problem are"
        " counted apart. Bars are 95 % Wilson intervals. No other arm beats a filled"
        " one on both."
    )
    draw = partial(tradeoff, title, spots)
    return Plot("accuracy-against-calls", title, caption, draw)


def exits_plot(arms: Iterable[Metrics], by: str = OWN) -> Plot | None:
    """Plot where solves leave the ladder; `by` is whose attempts sort the problems."""
    panels = []
    caption = (
        "Figures in the bars are solves; those on the right are problems,"
        f" sorted by the share of {by} that are right: EASY from 80 %, MED-EASY from"
        " 50 %, MED-HARD from 20 %, HARD above none, VERY-HARD none. What leaves early"
        " in the last row agreed on a wrong answer."
    )
    for arm in arms:
        if arm.exits:
            rows = []
            for row in arm.buckets:
                rows.append(ExitRow(row.bucket.value, row.problems, row.exits))
            rows.append(ExitRow("all", arm.problems, arm.exits))
            panels.append((arm.name, rows))
    if not panels:
        return None
    title = "Where solves leave the ladder"
    draw = partial(exit_bars, title, panels)
    return Plot("exits-by-difficulty", title, caption, draw)
