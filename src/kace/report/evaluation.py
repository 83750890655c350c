"""The report of an evaluation: arms in figures, each compared with a base, and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from kace.baselines.systems import spec_of
from kace.cards.card import Card, Status, lift_of
from kace.cards.tree import EpistemicTree
from kace.config import Price
from kace.errors import UsageError
from kace.markup import seen
from kace.report.charts import (
    EXIT_NAMES,
    ExitRow,
    ForestRow,
    Paint,
    Picture,
    Spot,
    exit_bars,
    forest,
    front,
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
from kace.words import counted, points

PRINT = 500.0  # width of a plot in a file, in points
OWN = "their attempts"
DRAWN = 40  # cards up to which every lift is drawn
SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_{}[]#|~!$"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
"""Characters that Markdown or HTML reads."""


@dataclass(frozen=True, slots=True)
class LiftRow:
    """The measured lift of a card."""

    card_id: str
    place: str
    status: Status
    effect: float
    low: float
    high: float
    shown: int  # attempts with the card
    hidden: int  # attempts without it
    problems: int
    method: str

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Arms side by side."""

    title: str
    arms: tuple[Metrics, ...]  # in the order given
    base: (
        str  # the arm that the others are compared with; empty for a single arm
    )
    comparisons: tuple[Comparison, ...]
    lifts: tuple[LiftRow, ...]  # of the cards of the tree that was given
    setups: tuple[Mapping[str, object], ...]  # what produced each arm
    warnings: tuple[str, ...]
    cluster: str = "problem"  # what intervals and tests take as one observation
    clusters: int = 0

    @property
    def best(self) -> Metrics | None:
        """The arm with the highest accuracy, the cheaper of equals."""
        known = [arm for arm in self.arms if arm.accuracy is not None]
        if not known:
            return None
        return max(
            known, key=lambda arm: (arm.accuracy or 0.0, -arm.paper_calls)
        )

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
        whole = (
            "the seeds"
            if self.cluster == "problem"
            else "all problems and seeds"
        )
        many = counted(self.clusters, self.cluster)
        together = f"{whole} of one {self.cluster} stay together"
        return f"Intervals resample {many}: {together}."

    @property
    def ladders(self) -> list[Metrics]:
        """The arms that have a ladder."""
        return [arm for arm in self.arms if arm.exits]

    @property
    def harms(self) -> list[tuple[str, Harm]]:
        """What showing cards did in each arm that had some to show."""
        return [
            (each.other, each.harm) for each in self.comparisons if each.harm
        ]

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
    tree: EpistemicTree | None = None,
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
    for table in tables:
        manifest = table.manifest
        metrics = table.metrics((prices or {}).get(manifest.model), clusters)
        if _reads_tree(manifest.system) and not manifest.part("tree"):
            metrics = replace(metrics, note=NO_CARDS)
        arms.append(metrics)
        folder = _place(table.folder)
        setups.append(
            {"name": table.name, "folder": folder, **manifest.facts()}
        )
        if table is not chosen and any(pairs_of(chosen, table)):
            others.append(table)
        elif table is not chosen and metrics.labelled:
            alone = f"{table.name} has no problem and seed in common with {chosen.name}"
            warnings.append(f"{alone}: the two are not compared.")
    return Evaluation(
        _title(tables),
        tuple(arms),
        base=chosen.name if len(tables) > 1 else "",
        comparisons=compare_all(chosen, others, clusters),
        lifts=card_lifts(tree) if tree else (),
        setups=tuple(setups),
        warnings=tuple(warnings),
        cluster=clusters.field,
        clusters=clusters.count(tables),
    )


def _named(tables: Sequence[Table], name: str) -> Table:
    for table in tables:
        if table.name == name:
            return table
    names = ", ".join(table.name for table in tables)
    raise UsageError(
        f"no arm is called '{name[:60]}'", fix=f"choose --base from {names}"
    )


def _title(tables: Sequence[Table]) -> str:
    """Return the data set that all arms are of, or what else there is to say."""
    names = set()
    for table in tables:
        known = (table.manifest.data, table.manifest.split)
        names.add(", ".join(filter(None, known)))
    if len(names) == 1 and names != {""}:
        return names.pop()
    return tables[0].name if len(tables) == 1 else counted(len(tables), "arm")


def _reads_tree(system: str) -> bool:
    """Whether a system reads cards."""
    with suppress(UsageError):
        return spec_of(system).source == "tree"
    return False


def _about(system: str) -> str:
    """Return a system in a line."""
    with suppress(UsageError):
        return spec_of(system).about.partition(";")[0].rpartition(": ")[2]
    return ""


def _place(folder: Path | None) -> str:
    """Return where a run is, from the folder that the reader is in."""
    if folder is None or not folder.is_absolute():
        return str(folder or "")
    if folder.is_relative_to(Path.cwd()):
        return str(folder.relative_to(Path.cwd()))
    return str(Path("…", *folder.parts[-2:]))


def card_lifts(cards: Iterable[Card]) -> tuple[LiftRow, ...]:
    """Return the lift of every measured card, highest first."""
    found = []
    for card in cards:
        lift = lift_of(card)
        if lift and lift.counts:
            place = (
                f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"
            )
            counts = lift.counts._asdict()
            row = LiftRow(
                card.card_id, place, card.status, *lift.mark, **counts
            )
            found.append(row)
    return tuple(sorted(found, key=lambda lift: (-lift.effect, lift.card_id)))


def lead(found: Evaluation) -> str:
    """Return what came of it, in a sentence or two."""
    best = found.best
    if best is None or best.wilson is None:
        arms = counted(len(found.arms), "arm")
        return f"{arms}, and no known answer to measure an accuracy by."
    seeds = (
        f" over {counted(len(best.seeds), 'seed')}"
        if len(best.seeds) > 1
        else ""
    )
    share = f"{best.accuracy:.1%} of {counted(best.problems, 'problem')}{seeds}"
    interval = "({:.1%} to {:.1%})".format(*best.wilson)
    calls = f"with {best.paper_calls:.2f} calls per problem"
    if len(found.arms) == 1:
        return f"{best.name} answered {share} correctly {interval}, {calls}."
    highest = f"Highest is {best.name}: {share} {interval}, {calls}."
    against = found.against_base(best.name)
    if against:
        verdict = f"It is indistinguishable from {against.base} at this n"
        if against.distinguishable:
            verdict = f"It does better than {against.base}"
        ends = " to ".join(map(points, against.interval))
        size = f"{points(against.difference)} points, {ends}"
        return f"{highest} {verdict} ({size}, {p_text(against.adjusted)})."
    if found.comparisons:
        clear = 0
        for each in found.comparisons:
            clear += each.distinguishable
        verdict = (
            f"{clear} of {len(found.comparisons)} other arms differ from it"
        )
        if len(found.comparisons) == 1:
            verdict = "the other arm is indistinguishable from it at this n"
            if clear:
                verdict = "the other arm differs from it"
        return f"{highest} It is the base; {verdict}."
    return highest


def evaluation_json(found: Evaluation) -> str:
    """Return the evaluation as one line of JSON."""
    return TypeAdapter(Evaluation).dump_json(found).decode()


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
        lift_plot(found.lifts),
    )
    return {plot.name: plot for plot in plots if plot}


def accuracy_plot(found: Evaluation) -> Plot | None:
    """Plot the accuracy of each arm."""
    systems = {
        setup["name"]: str(setup.get("system", "")) for setup in found.setups
    }
    rows = []
    for arm in found.ordered:
        if arm.accuracy is not None and arm.wilson is not None:
            paint = Paint.OPEN if arm.name == found.base else Paint.GOOD
            about = _about(systems[arm.name])
            rows.append(
                ForestRow(arm.name, about, arm.accuracy, *arm.wilson, paint)
            )
    if not rows:
        return None
    title = "Accuracy of each arm"
    base = f" The hollow mark is the base, {found.base}." if found.base else ""
    caption = (
        "Mean over the seeds, with 95 % Wilson intervals in which one"
        f" {found.cluster} counts once however many solves it has. A failed call is a"
        f" wrong answer.{base}"
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
        about = (
            f"{counted(each.clusters, each.cluster)}, {p_text(each.adjusted)}"
        )
        row = ForestRow(arm.name, about, each.difference, *each.interval, paint)
        rows.append(row)
    if not rows:
        return None
    title = f"Difference from {found.base}"
    holm = ", corrected for the number of arms by Holm’s method"
    caption = (
        f"Paired by problem and seed. {found.resampled} Filled marks differ from"
        f" {found.base} beyond chance at 5 %{holm if len(rows) > 1 else ''}; hollow"
        " ones are indistinguishable from it at this number of problems."
    )
    unit = f"difference from {found.base}, percentage points"
    return Plot(
        "difference", title, caption, partial(forest, title, unit, rows)
    )


def tradeoff_plot(arms: Iterable[Metrics]) -> Plot | None:
    """Plot accuracy against calls."""
    spots = []
    for arm in arms:
        if arm.accuracy is not None and arm.wilson is not None:
            spots.append(
                Spot(arm.name, arm.paper_calls, arm.accuracy, *arm.wilson)
            )
    if len(spots) < 2:
        return None
    title = "Accuracy against calls"
    joined = "; the line joins them" if len(front(spots)) > 1 else ""
    caption = (
        "Solver calls by the paper’s count: every attempt of the tiers a solve reached,"
        " which is 2, 5 or 10 on the locked ladder; calls to route a problem are"
        " counted apart. Bars are 95 % Wilson intervals. Filled arms are those that no"
        f" other beats on both{joined}."
    )
    draw = partial(tradeoff, title, spots)
    return Plot("accuracy-against-calls", title, caption, draw)


def exits_plot(arms: Iterable[Metrics], by: str = OWN) -> Plot | None:
    """Plot where solves leave the ladder; `by` is whose attempts sort the problems."""
    panels = []
    sorted_by = ""
    for arm in arms:
        if arm.exits:
            rows = []
            for row in arm.buckets:
                rows.append(ExitRow(row.bucket.value, row.problems, row.exits))
            rows.append(ExitRow("all", arm.problems, arm.exits))
            panels.append((arm.name, rows))
            if arm.buckets:
                sorted_by = (
                    f"Problems are sorted by the share of {by} that are right:"
                    " EASY from 80 %, MED-EASY from 50 %, MED-HARD from 20 %, HARD"
                    " above none, VERY-HARD none. What leaves early in the last row"
                    " agreed on a wrong answer. "
                )
    if not panels:
        return None
    title = "Where solves leave the ladder"
    figures = "Figures in the bars are solves; those on the right are problems."
    draw = partial(exit_bars, title, panels)
    return Plot("exits-by-difficulty", title, sorted_by + figures, draw)


def lift_plot(lifts: Sequence[LiftRow]) -> Plot | None:
    """Plot what each card is worth."""
    drawn = list(lifts)
    if len(drawn) > DRAWN:
        drawn = []
        for lift in lifts:
            if lift.is_clear or lift.status is not Status.EXPERIMENTAL:
                drawn.append(lift)
        drawn = drawn[:DRAWN]
    if not drawn:
        return None
    paints = {
        Status.VALIDATED: Paint.GOOD,
        Status.DEPRECATED: Paint.BAD,
        Status.EXPERIMENTAL: Paint.OPEN,
    }
    rows = []
    for lift in drawn:
        about = f"{lift.place}, {counted(lift.problems, 'problem')}"
        estimate = (lift.effect, lift.low, lift.high)
        rows.append(
            ForestRow(lift.card_id, about, *estimate, paints[lift.status])
        )
    title = "What each card is worth"
    left = len(lifts) - len(drawn)
    rest = (
        f" {counted(left, 'card')} that show less are not drawn."
        if left
        else ""
    )
    caption = (
        "The change in the share of right attempts that a card causes, as the learner"
        " measured it on training problems, with 95 % intervals. Filled: validated;"
        f" hollow: experimental; red: retired.{rest}"
    )
    draw = partial(forest, title, "lift, percentage points", rows)
    return Plot("card-lift", title, caption, draw)


# Files


def page(found: Evaluation) -> str:
    """Return the report as one HTML page that needs nothing else."""
    return render_document(
        "report_evaluation.html",
        title=f"{found.title}: evaluation",
        found=found,
        lead=lead(found),
        plots=plots_of(found),
        exits=EXIT_NAMES,
        p_text=p_text,
    )


def markdown(
    found: Evaluation, pictures: Mapping[str, str] | None = None
) -> str:
    """Return the report as Markdown; `pictures` are links to the plots by title.

    Nothing that came from outside is markup in it.
    """
    made = Environment(
        loader=PackageLoader("kace.report"),
        undefined=StrictUndefined,
        finalize=lambda value: (
            value if isinstance(value, Markup) else plain(str(value))
        ),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "percent": lambda share: "–" if share is None else f"{share:.1%}",
        "percents": lambda ends: (
            "–" if ends is None else "{:.1%} to {:.1%}".format(*ends)
        ),
        "points": points,
        "whole": "{:,.0f}".format,
        "usd": lambda value: "–" if value is None else f"{value:,.2f}",
        "chance": lambda p: Markup(
            p_text(p).removeprefix("p ").removeprefix("= ")
        ),
    }
    return made.get_template("report.md").render(
        found=found, lead=lead(found), exits=EXIT_NAMES, pictures=pictures or {}
    )


def plain(text: str) -> str:
    """Return text on one line with everything escaped that Markdown or HTML reads."""
    return " ".join(seen(text).split()).translate(SPECIAL)
