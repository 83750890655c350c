"""The report of an evaluation: arms in figures, each compared with a base, and plots."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from string import Template

from kace.baselines.systems import spec_of
from kace.config import Price
from kace.errors import UsageError, counted
from kace.files import DATA, write_atomic
from kace.report.charts import (
    ForestRow,
    Picture,
    exit_bars,
    forest,
)
from kace.report.render import render_document
from kace.runs.compare import (
    Comparison,
    compare_all,
    p_text,
    pairs_of,
    warnings_of,
)
from kace.runs.metrics import NO_CARDS, Metrics, clusters_of
from kace.runs.table import Table

RECORD = DATA / "eee-record.txt"


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
    def ordered(self) -> list[Metrics]:
        """The arms as plots have them: the base, then the most accurate first."""
        return sorted(
            self.arms,
            key=lambda arm: (arm.name != self.base, -(arm.accuracy or 0.0)),
        )

    @property
    def best(self) -> Metrics | None:
        """The arm with the highest accuracy, the cheaper of equals."""
        return max(
            [arm for arm in self.arms if arm.wilson],
            key=lambda arm: (arm.accuracy or 0.0, -arm.paper_calls),
            default=None,
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
    def lead(self) -> str:
        """The result in a sentence or two."""
        best = self.best
        if best is None or best.wilson is None:
            arms = counted(len(self.arms), "arm")
            return f"{arms}, and no known answer to measure an accuracy by."
        size = counted(best.problems, "problem")
        if len(best.seeds) > 1:
            size += f" over {len(best.seeds)} seeds"
        low, high = best.wilson
        share = f"{best.accuracy:.1%} of {size} ({low:.1%} to {high:.1%})"
        if best.paper_calls:
            share += f", with {best.paper_calls:.2f} calls per problem"
        if len(self.arms) == 1:
            return f"{best.name} answered correctly {share}."
        against = self.against_base(best.name)
        if len(self.comparisons) == 1:
            against = self.comparisons[0]
        sentence = f" {against.sentence}" if against else ""
        return f"Highest is {best.name}: {share}.{sentence}"

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
    named = {table.name: table for table in tables}
    chosen = named.get(base or tables[0].name)
    if chosen is None:
        raise UsageError(
            f"no arm is called '{str(base)[:60]}'",
            fix=f"choose --base from {', '.join(named)}",
        )
    clusters = clusters_of(tables, cluster)
    arms = []
    setups = []
    warnings = list(warnings_of(tables))
    others = []
    titles: dict[str, None] = {}
    groups: set[str] = set()
    for table in tables:
        manifest = table.manifest
        metrics = table.metrics((prices or {}).get(manifest.model), clusters)
        with suppress(UsageError):  # a system of another version
            reads = spec_of(manifest.system).reads_tree
            if reads and not manifest.part("tree"):
                metrics = replace(metrics, note=NO_CARDS)
        arms.append(metrics)
        groups.update(map(clusters.of, table.solved))
        titles[f"{manifest.data} {manifest.split}".strip()] = None
        made = {"name": table.name, "folder": str(table.folder or "")}
        setups.append({**made, **manifest.facts()})
        if table is not chosen and any(pairs_of(chosen, table)):
            others.append(table)
        elif table is not chosen and metrics.labelled:
            alone = f"{table.name} has no problem and seed in common with {chosen.name}"
            warnings.append(f"{alone}: the two are not compared.")
    return Evaluation(
        ", ".join(filter(None, titles)) or chosen.name,
        tuple(arms),
        base=chosen.name if len(tables) > 1 else "",
        comparisons=compare_all(chosen, others, clusters),
        setups=tuple(setups),
        warnings=tuple(warnings),
        cluster=clusters.field,
        clusters=len(groups),
    )


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
        plots=plots_of(found),
    )


# Plots


Draw = Callable[[float], Picture]
"""Draws a chart at a width."""


def plots_of(found: Evaluation) -> dict[str, Draw]:
    """Return every plot that there is data for, by name."""
    accuracies = []
    differences = []
    for arm in found.ordered:
        if arm.wilson:
            paint = "open" if arm.name == found.base else "good"
            share = arm.accuracy or 0.0
            accuracies.append(
                ForestRow(arm.name, "", share, *arm.wilson, paint)
            )
        each = found.against_base(arm.name)
        if each:
            paint = "open"
            if each.distinguishable:
                paint = "good" if each.difference > 0 else "bad"
            size = counted(each.clusters, each.cluster)
            about = f"{size}, {p_text(each.adjusted)}"
            ends = (each.difference, *each.interval)
            differences.append(ForestRow(arm.name, about, *ends, paint))
    plots: dict[str, Draw] = {}
    if accuracies:
        title = "Accuracy of each arm"
        draw = partial(forest, title, "accuracy", accuracies, change=False)
        plots["accuracy"] = draw
    if differences:
        title = f"Difference from {found.base}"
        unit = f"difference from {found.base}, percentage points"
        plots["difference"] = partial(forest, title, unit, differences)
    exits = exits_plot(found.ordered)
    if exits:
        plots["exits"] = exits
    return plots


def exits_plot(arms: Iterable[Metrics]) -> Draw | None:
    """Plot where solves leave the ladder, by how hard problems are."""
    panels = []
    for arm in arms:
        if arm.exits:
            every = ("all", arm.problems, arm.exits)
            panels.append((arm.name, [*arm.buckets, every]))
    title = "Where solves leave the ladder"
    return partial(exit_bars, title, panels) if panels else None


# Records of Every Eval Ever


def write_records(
    tables: Sequence[Table], arms: Sequence[Metrics], out: Path
) -> list[Path]:
    """Write a record for each arm that has an accuracy, and return the files.

    A run that is written again replaces its record.
    """
    paths = []
    for table, arm in zip(tables, arms, strict=True):
        if arm.wilson is None:
            continue
        manifest = table.manifest
        model = manifest.model or arm.name
        benchmark = _part(f"{manifest.data} {manifest.split}")
        developer, _, name = model.rpartition("/")
        model_id = f"{_part(developer)}/{_part(name)}"
        now = f"{time.time():.3f}"
        values = {
            "id": f"{benchmark}.{_part(arm.name)}/{model_id}/{now}",
            "now": now,
            "version": manifest.kace or version("kace"),
            "model": model,
            "model_id": model_id,
            "benchmark": benchmark,
            "system": arm.name,
            "score": arm.accuracy,
            "low": arm.wilson.low,
            "high": arm.wilson.high,
            "method": f"Wilson, each {arm.cluster} counted once",
            "samples": arm.clusters,
        }
        quoted = {key: json.dumps(value) for key, value in values.items()}
        record = Template(RECORD.read_text("utf-8")).substitute(quoted)
        facts = json.dumps([manifest.content, arm.name, arm.solves])
        unique = uuid.uuid5(uuid.NAMESPACE_URL, facts)
        path = out / "data" / benchmark / model_id / f"{unique}.json"
        write_atomic(path, record)
        paths.append(path)
    return paths


def _part(text: str) -> str:
    """Return a text as one portable part of a path."""
    part = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return "unknown" if part in ("", "data") else part
