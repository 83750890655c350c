"""Two runs side by side, as the evaluation sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kace.errors import redact
from kace.report.evaluation import evaluation_of
from kace.report.evaluation_page import figure_of
from kace.report.later import KeptValue, Later
from kace.report.page import HOME, Crumb, NotHere, Page, PageRequest
from kace.report.plots import OWN, Plot, plots_of
from kace.report.related import same_problems
from kace.runs.compare import p_text
from kace.runs.metrics import Metrics
from kace.runs.solves import RunIndex
from kace.runs.table import Table
from kace.words import counted

PATIENCE = 0.4  # seconds that a page waits for runs to be read, so that those of small runs come at once
OTHERS = 12  # other runs that a page offers, and pages of a run that an export writes
LISTED = 60  # problems gained or lost that a page names; the run's page lists them all
MAX_VALUE = 200
MAX_DEPTH = 5
AGAIN = 1.0
GROWING = 5.0
COMES = "The page comes by itself as soon as it is there."
FIGURES = (
    ("Solver calls a problem", "by the paper's count", "paper_calls", 2),
    ("Calls really made", "a problem", "real_calls", 2),
    ("Calls to route a problem", "", "classifier_calls", 2),
    ("Input tokens", "a problem", "input", 0),
    ("of it cached", "", "cached", 0),
    ("Output tokens", "a problem", "output", 0),
    (
        "Active tokens",
        "of learned text in the fullest prompt of a solve",
        "card_tokens",
        0,
    ),
    ("Seconds", "a solve, waiting included", "seconds", 1),
)
SOMETIMES = (
    "classifier_calls",
    "cached",
    "card_tokens",
)  # left out where neither run has any
_VERSIONS = ("v", "sources")
_PAIRS: Later[Mapping[str, Any]] = Later(keep=24)


def compare_page(request: PageRequest) -> Page:
    """A run held against another."""
    ours = request.parts["run"]
    theirs = request.parts["other"]
    if ours == theirs:
        raise NotHere("a run is not compared with itself")
    title = f"{ours} against {theirs}"
    crumbs = (HOME, Crumb(ours, ("run", ours)))
    runs = {name: request.workspace.run(name) for name in (ours, theirs)}
    until = time.monotonic() + PATIENCE
    read = [
        run.look(request.patience(until - time.monotonic())) for run in runs.values()
    ]
    pair, fresh = (
        pair_of(runs, request.patience(0.25)) if all(read) else KeptValue(None, False)
    )
    if pair is None:
        solves = counted(sum(run.count() for run in runs.values()), "solve")
        bars = [
            _bar(name, *run.progress)
            for (name, run), done in zip(runs.items(), read, strict=True)
            if not done
        ]
        sentences = (
            [COMES] if bars else [f"comparing {solves}, problem by problem.", COMES]
        )
        waiting = {
            "status": "Two runs side by side",
            "sentences": sentences,
            "bars": bars,
        }
        return Page("error.html", title, waiting, crumbs, AGAIN)
    offers = [
        item.name
        for item in same_problems(request.workspace, ours)
        if item.name != theirs
    ][:OTHERS]
    settled = fresh and not any(run.going for run in runs.values())
    values = {**pair, "fresh": fresh, "listed": LISTED, "others": offers}
    return Page("compare.html", title, values, crumbs, None if settled else GROWING)


def _bar(name: str, done: int, about: int) -> tuple[str, int, int]:
    """How far a run is read."""
    told = (
        f"{done:,} of about {counted(about, 'solve')} read"
        if about
        else "its turn comes next"
    )
    return f"{name}: {told}", done, about


def pair_of(
    runs: Mapping[str, RunIndex], patience: float | None
) -> KeptValue[Mapping[str, Any]]:
    """Two runs compared, made beside the pages."""

    def make() -> Mapping[str, Any]:
        return compared(*(run.arm().named(called) for called, run in runs.items()))

    state = tuple(run.version for run in runs.values())
    return _PAIRS.ask((*runs.items(),), state, make, patience=patience)


def compared(ours: Table, theirs: Table) -> Mapping[str, Any]:
    """All that a page says of two runs."""
    found = evaluation_of([ours, theirs], base=theirs.name)
    sorted_arms = [
        replace(arm, buckets=each.metrics(base=theirs).buckets)
        for arm, each in zip(found.arms, (ours, theirs), strict=True)
    ]
    plots = plots_of(replace(found, arms=tuple(sorted_arms)))
    comparison = next(iter(found.comparisons), None)
    changed = (
        {"gained": comparison.gained, "lost": comparison.lost} if comparison else {}
    )
    listed = {each.problem for changes in changed.values() for each in changes[:LISTED]}
    return {
        "arms": found.arms,
        "found": comparison,
        "chance": p_text(comparison.adjusted) if comparison else "",
        "notes": list(
            dict.fromkeys((*found.warnings, *(comparison.notes if comparison else ())))
        ),
        "changed": changed,
        "seeds": _telling_seeds(ours, theirs, listed),
        "lines": list(_lines(*found.arms)),
        "differences": list(
            _differences(ours.manifest.content, theirs.manifest.content)
        ),
        "plots": {plot.name: figure_of(said_of(plot, theirs.name)) for plot in plots},
    }


def said_of(plot: Plot, base: str) -> Plot:
    """A plot that says by whose attempts its problems are sorted."""
    return (
        replace(plot, caption=plot.caption.replace(OWN, f"attempts of {base}"))
        if base
        else plot
    )


def _telling_seeds(ours: Table, theirs: Table, problems: set[str]) -> dict[str, int]:
    """Of each problem, the first seed on which the two runs differ."""
    right = {
        (row.problem, row.seed): row.correct
        for row in theirs
        if row.problem in problems
    }
    rows = [
        row
        for row in ours
        if right.get((row.problem, row.seed), row.correct) is not row.correct
    ]
    return {row.problem: row.seed for row in reversed(rows)}


def _lines(*arms: Metrics) -> Iterator[tuple[str, str, list[str], str]]:
    """The table of figures a problem or a solve: name, about, the values of both, the difference."""
    for name, about, field, digits in FIGURES:
        found = [getattr(arm, field) for arm in arms]
        same = field == "real_calls" and found == [arm.paper_calls for arm in arms]
        if same or (field in SOMETIMES and not any(found)):
            continue
        ours, theirs = values = [
            float(getattr(each, "mean", each) or 0) for each in found
        ]
        change = f"{ours - theirs:+,.{digits}f}".replace("-", "−")
        change = (
            change.lstrip("+−") if not float(f"{ours - theirs:.{digits}f}") else change
        )
        ratio = (
            f" ({100 * (ours / theirs - 1):+.0f}\u00a0%)".replace("-", "−")
            if theirs and ours != theirs
            else ""
        )
        yield (
            name,
            about,
            [f"{value:,.{digits}f}" for value in values],
            f"{change}{ratio}",
        )
    if any(arm.failed for arm in arms):
        yield (
            "Lost calls",
            "solves that lost a call to the provider",
            [f"{arm.failed:,}" for arm in arms],
            "",
        )


def _differences(
    ours: Mapping[str, object], theirs: Mapping[str, object]
) -> Iterator[tuple[str, ...]]:
    left = dict(_leaves(ours))
    right = dict(_leaves(theirs))
    for name in dict.fromkeys((*left, *right)):
        told = [redact(part.get(name, "")) or "–" for part in (left, right)]
        if left.get(name, "") != right.get(name, ""):
            yield (
                name,
                *(
                    f"{value[:MAX_VALUE]}…" if len(value) > MAX_VALUE else value
                    for value in told
                ),
            )


def _leaves(
    part: Mapping[str, object], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """The values of a manifest by their names, without what says nothing about the solves."""
    for name, value in part.items():
        if not above and name in _VERSIONS:
            continue
        if isinstance(value, dict) and len(above) < MAX_DEPTH:
            yield from _leaves(value, (*above, name))
        elif value is not None:
            yield " ".join((*above, name)), str(value)


ROUTES = {"/run/{run}/against/{other}": compare_page}
