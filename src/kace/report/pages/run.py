"""The page of a run: its figures, where its solves left the ladder, and every solve in a table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from kace.config import Price
from kace.errors import KaceError
from kace.ladder.tiers import ExitPath
from kace.report.evaluation import Evaluation
from kace.report.evaluation_page import DrawnPlot, figure_of
from kace.report.later import KeptValue, Later
from kace.report.page import HOME, Page, PageRequest, slice_of
from kace.report.pages.compare import said_of
from kace.report.plots import plots_of
from kace.report.related import base_of, related_runs, same_problems, tree_of
from kace.report.tradeoff import Spot, front
from kace.runs.index import LARGE
from kace.runs.metrics import Metrics
from kace.runs.selection import NO_LADDER, VIEWS, Choice, ChosenSolves
from kace.runs.solves import RunIndex
from kace.runs.stats import wilson
from kace.runs.timeline import timeline_of

PER_PAGE = 100
IN_FILES = (
    2_000  # solves that a static page lists; each has a page of its own beside it
)
# seconds after which to look again: while the run is read, and while it is going on
NEWS = 2.0
GROWING = 5.0
BESIDE = 7  # runs in one plot: more could not be told apart, and placing their names takes long
GROUPS = 12  # cards that broke problems, those that broke most first
CLEAR = dict.fromkeys(("exit", "right", "cards", "against", "change", "q"), "")
OFFERED = 200  # other runs that the table may be held against
MOST_DOMAINS = 200
WRONG_FIRST = "SUM(correct) - COUNT(correct), family"
# widths in which plots are drawn: two beside each other, or one alone
HALF = 560.0
WHOLE = 880.0
HEADS = {
    "problem": "Problem",
    "seed": "Seed",
    "result": "Result",
    "": "Answer",
    "exit": "Exit",
    "calls": "Calls",
}
HEADS |= {"tokens": "Tokens", "cards": "Cards", "seconds": "Seconds"}
FIRST_DOWN = (
    "calls",
    "tokens",
    "cards",
    "seconds",
)  # columns of which the largest figures are asked for first
_METRICS: Later[Metrics] = Later(keep=64)
_CHARTS: Later[list[DrawnPlot]] = Later(keep=32)


def run_page(request: PageRequest) -> Page:
    """A run."""
    workspace = request.workspace
    name = request.parts["run"]
    run, near = opened_runs(request)
    complete = run.glimpse()
    chosen = chosen_solves(request, run, near)
    facts = run.kept("facts", lambda: _facts(run))
    base = chosen.base if chosen.base and chosen.base.complete and complete else None
    # of a large run, working them out would take the time that the first page needs
    metrics = None
    fresh = False
    if complete or request.static or run.size <= LARGE:
        metrics, fresh = metrics_so_far(run, base, patience=request.patience(0.25))
    table = _table(request, chosen, near, facts)
    charts, drawn = KeptValue[list[DrawnPlot]](None, False)
    if metrics:
        alone = not (metrics.exits or facts["shares"])
        charts, drawn = _charts(
            request, run, metrics, near, base=table["base"] if base else "", alone=alone
        )
    buckets = (
        [
            (row.bucket.value, row.right, row.solves)
            for row in metrics.buckets
            if row.solves
        ]
        if metrics
        else []
    )
    values = {
        "run": run,
        "metrics": metrics,
        "score": run.score(),
        "tree": tree_of(workspace, name),
        "wilson": wilson,
        "charts": charts or [],
        "timeline": timeline_of(run, None if request.static else time.time()),
        "by_card": chosen.by_card(GROUPS) if chosen.base and complete else (),
        **facts,
        "shares": {
            **({"difficulty": buckets} if base and len(buckets) > 1 else {}),
            **facts["shares"],
        },
        **table,
    }
    reading = not (
        complete and fresh and drawn and all(each.complete for each in near.values())
    )
    return Page(
        "run.html",
        name,
        values,
        (HOME,),
        NEWS if reading else GROWING if run.going else None,
    )


def opened_runs(request: PageRequest) -> tuple[RunIndex, Mapping[str, RunIndex]]:
    """The run of a page and those of the same problems; an export waits for them, since it writes once."""
    name = request.parts["run"]
    run = request.workspace.run(name)
    near = related_runs(request.workspace, name)
    for each in (run, *near.values()) if request.static else ():
        each.wait()
    return run, near


def chosen_solves(
    request: PageRequest, run: RunIndex, near: Mapping[str, RunIndex]
) -> ChosenSolves:
    """The solves that were asked for, held against the run that was asked for, or else against the base."""
    choice = Choice() if request.static else Choice.of(request.query)
    if choice.against:
        (base := request.workspace.run(choice.against)).look()
        return ChosenSolves(run, choice, base)
    return ChosenSolves(
        run, choice, near.get(base_of(request.workspace, request.parts["run"]))
    )


def metrics_so_far(
    run: RunIndex, base: RunIndex | None = None, *, patience: float | None = 0.25
) -> KeptValue[Metrics]:
    """The figures of what is read so far, problems sorted by how hard the base found them; perhaps of a moment ago."""
    price = known_prices().get(run.setup.model)

    def make() -> Metrics:
        return run.arm().metrics(price, base=base.arm() if base else None)

    return _METRICS.ask(
        (run, base, price),
        (run.version, base and base.version),
        make,
        patience=patience,
    )


@cache
def known_prices() -> Mapping[str, Price]:
    """The user's prices by model, as the configuration has them."""
    from kace.config import load_config

    try:
        return load_config().prices
    except (
        KaceError
    ):  # a viewer opens whatever the configuration says about other things
        return {}


def _facts(run: RunIndex) -> dict[str, Any]:
    """What all solves say: how many there are, of which seeds and exits, and what is right by exit, domain and seed."""
    kinds = ("retried", "n_cards > 0", "abstained")
    counts = ", ".join(
        (
            "COUNT(*)",
            "COUNT(DISTINCT problem)",
            *(f"COUNT(*) FILTER (WHERE {kind})" for kind in kinds),
        )
    )
    orders = {
        "exit": "exit_rank DESC",
        "domain": "domain",
        "family": WRONG_FIRST,
        "seed": "seed",
    }
    shares = {}
    with run.reading() as db:
        solves, problems, retried, shown, abstained = db.execute(
            f"SELECT {counts} FROM solves"
        ).fetchone()
        seeds = [
            row[0]
            for row in db.execute("SELECT DISTINCT seed FROM solves ORDER BY seed")
        ]
        exits = {
            row[0] or NO_LADDER
            for row in db.execute("SELECT DISTINCT exit FROM solves")
        }
        for column, order in orders.items():
            sql = f"""
                SELECT {column}, SUM(correct), COUNT(correct) FROM solves WHERE correct IS NOT NULL AND {column} <> ''
                    GROUP BY {column} ORDER BY {order} LIMIT {MOST_DOMAINS}
            """
            if len(rows := [tuple(row) for row in db.execute(sql)]) > 1:
                shares[column] = rows
    several = problems < solves or len(seeds) > 1
    told = {
        "solves": solves,
        "retried": retried,
        "shown": shown,
        "abstained": abstained,
    }
    return {
        **told,
        "seeds": seeds,
        "several": several,
        "exits": exits,
        "shares": shares,
    }


def _charts(
    request: PageRequest,
    run: RunIndex,
    metrics: Metrics,
    near: Mapping[str, RunIndex],
    *,
    base: str,
    alone: bool,
) -> KeptValue[list[DrawnPlot]]:
    """Where solves leave, and what accuracy takes beside other runs of the same problems, drawn beside the pages."""
    name = request.parts["run"]
    # Runs that are still being read have no place beside others yet, and their plot would be drawn again and again.
    digest = run.setup.data_hash if run.complete else ""
    alike = {
        other: each
        for other, each in near.items()
        if each.complete and each.setup.data_hash == digest != ""
    }

    def make() -> list[DrawnPlot]:
        asked = (
            (other, metrics_so_far(each, patience=None).value)
            for other, each in alike.items()
        )
        others = [replace(found, name=other) for other, found in asked if found]
        arms = _beside(replace(metrics, name=f"{name} (this run)"), others, base)
        width = HALF if len(arms) > 1 and not alone else WHOLE
        plots = (
            ("exits-by-difficulty", [replace(metrics, name=name)]),
            ("accuracy-against-calls", arms),
        )
        return [
            drawn for plot, shown in plots for drawn in _drawn(plot, shown, width, base)
        ]

    state = (metrics, *(each.version for each in alike.values()))
    return _CHARTS.ask(
        (run, base, *alike), state, make, patience=request.patience(0.25)
    )


def _beside(here: Metrics, others: Sequence[Metrics], against: str) -> list[Metrics]:
    """The run and those drawn beside it: the one it is held against, those that none beats, then the nearest."""
    known = [arm for arm in (here, *others) if arm.accuracy is not None]
    best = {
        spot.name
        for spot in front(
            [Spot(arm.name, arm.paper_calls, arm.accuracy or 0, 0, 0) for arm in known]
        )
    }

    def order(arm: Metrics) -> tuple[object, ...]:
        far = abs((arm.accuracy or 0.0) - (here.accuracy or 0.0))
        return arm is not here, arm.name != against, arm.name not in best, far

    return sorted(known, key=order)[:BESIDE]


def _drawn(
    name: str, arms: Iterable[Metrics], width: float, base: str
) -> list[DrawnPlot]:
    """One plot of runs side by side; nothing where there is no data for it."""
    shown = tuple(replace(arm, concordance=None) for arm in arms)
    found = Evaluation(
        title="", arms=shown, base="", comparisons=(), lifts=(), setups=(), warnings=()
    )
    return [
        figure_of(said_of(plot, base), width)
        for plot in plots_of(found)
        if plot.name == name
    ]


def _table(
    request: PageRequest,
    chosen: ChosenSolves,
    near: Mapping[str, RunIndex],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The filters, the order and the rows of the table."""
    choice = chosen.choice
    name = request.parts["run"]

    def turned(head: str) -> str:
        """The order that a click on a heading asks for."""
        first = f"-{head}" if head in FIRST_DOWN else head
        return {head: f"-{head}", f"-{head}": head}.get(choice.sort, first)

    base = next(
        (other for other, each in near.items() if each is chosen.base), choice.against
    )
    part = slice_of(request, chosen.rows, PER_PAGE, len(chosen.positions), IN_FILES)
    return {
        "choice": choice,
        "part": part,
        "texts": {
            each["problem"]: chosen.run.statement(each["problem"], each["label"])
            for each in part.rows
        },
        "others": [item.name for item in same_problems(request.workspace, name)][
            :OFFERED
        ],
        "base": base,
        "views": [
            (words, n, VIEWS[words]._replace(against=base, sort=choice.sort)._asdict())
            for words, n in chosen.views().items()
        ],
        "clear": CLEAR,
        "exits": [
            path
            for path in (*ExitPath, NO_LADDER)
            if path in {*facts["exits"], choice.exit}
        ],
        "heads": {
            head: words
            for head, words in HEADS.items()
            if head != "seed" or facts["several"]
        },
        "sorts": {}
        if request.static
        else {head: turned(head) for head in HEADS if head},
        "to": lambda **changes: (
            request.link("run", name, **choice.query(**changes)) + "#solves"
        ),
    }


ROUTES = {"/run/{run}": run_page}
