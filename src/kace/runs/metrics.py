"""Every figure that a table, a plot or a page needs of one run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from kace.config import Price
from kace.errors import UsageError, counted
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.models.budget import free_price
from kace.runs.stats import Interval, cluster_interval, effective, wilson
from kace.runs.table import Table

NO_CARDS = "no cards to show"
"""The note of an arm whose system reads a tree that is empty."""


class SeedScore(NamedTuple):
    """The accuracy on one seed. A failed call counts as a wrong answer."""

    seed: int
    right: int
    n: int

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return self.right / self.n


@dataclass(frozen=True, slots=True)
class CardTokens:
    """Tokens of learned text that solves read."""

    mean: float  # in the fullest prompt of a solve, over all solves
    most: int
    read: float  # over all tiers of a solve, over all solves
    estimated: bool  # whether some of it is estimated from the text's length


@dataclass(frozen=True, slots=True)
class RoleCost:
    """One role's calls, tokens and, if the price is known, money."""

    role: str
    calls: int
    usage: Usage
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run cost, or would have cost had nothing been read from disk."""

    roles: tuple[RoleCost, ...]

    @property
    def usd(self) -> float | None:
        """Over all roles; `None` if a role's price is not known."""
        total = 0.0
        for role in self.roles:
            if role.usd is None:
                return None
            total += role.usd
        return total


class Bucket(StrEnum):
    """How hard a problem is, by the share of its attempts that were right."""

    EASY = "EASY"
    MED_EASY = "MED-EASY"
    MED_HARD = "MED-HARD"
    HARD = "HARD"
    VERY_HARD = "VERY-HARD"

    @classmethod
    def of(cls, raw_rate: float) -> Bucket:
        """Return the bucket of a rate."""
        if raw_rate >= 0.8:
            return cls.EASY
        if raw_rate >= 0.5:
            return cls.MED_EASY
        if raw_rate >= 0.2:
            return cls.MED_HARD
        return cls.HARD if raw_rate > 0 else cls.VERY_HARD


@dataclass(slots=True)
class BucketRow:
    """The solves of the problems in one bucket."""

    bucket: Bucket
    problems: int = 0
    solves: int = 0
    right: int = 0
    paper_calls: int = 0
    exits: dict[ExitPath, int] = field(default_factory=dict)
    """Solves by exit; empty for a system without a ladder."""


@dataclass(frozen=True, slots=True)
class Concordance:
    """How well the exit predicts the raw rate, over problems whose raw rates differ."""

    pairs: int
    concordant: (
        float  # pairs whose easier problem left earlier; ties count half
    )
    spearman: float | None  # of rate and rank; `None` if one does not vary

    @property
    def share(self) -> float | None:
        """The share of pairs that are concordant; chance gives a half."""
        return self.concordant / self.pairs if self.pairs else None

    @property
    def words(self) -> str:
        """The share and the rank correlation, as far as they are defined."""
        text = "no pair to compare"
        if self.share is not None:
            text = f"{self.share:.1%} of {counted(self.pairs, 'pair')}"
        if self.spearman is not None:
            text += f", ρ = {self.spearman:.2f}".replace("-", "−")
        return text


@dataclass(frozen=True, slots=True)
class Metrics:
    """One run in figures; calls and tokens are per solve.

    Shares are 0 to 1, and `None` if no answer is known.
    """

    name: str
    model: str
    problems: int
    solves: int
    labelled: int
    complete: bool  # whether every problem was solved on every seed
    seeds: tuple[SeedScore, ...]
    accuracy: float | None  # mean over problems of the share of seeds right
    cluster: str  # what both intervals take as one observation: "family"
    clusters: int  # how many of them have a known answer
    wilson: Interval | None  # 95 %, each cluster counted once
    interval: Interval | None  # 95 %, cluster bootstrap
    failed: int  # solves that lost a call; they count in `accuracy`
    damaged: int  # lines of the trace that could not be read
    retried: int  # solves made again after a failure
    truncated: float | None  # share of the attempts that the token cap cut
    paper_calls: float
    real_calls: float
    classifier_calls: float  # not part of the solver's
    input: float  # prompt tokens of the solver, cached ones included
    cached: float
    output: float
    seconds: float
    cost: RunCost  # over all solves
    exits: Mapping[ExitPath, int]  # empty for a system without a ladder
    buckets: tuple[
        BucketRow, ...
    ]  # all five, easiest first; empty without labels
    concordance: Concordance | None  # `None` without a ladder or without labels
    shown: int  # solves that were shown a card
    abstained: int  # solves that were shown none though some were eligible
    card_tokens: CardTokens | None  # `None` for a run that read nothing
    tree: Mapping[str, object] | None  # its hash and size, as recorded
    note: str = ""  # what a reader must know beside the figures


# Clusters: what counts as one observation


class Clusters(NamedTuple):
    """Groups problems that count as one observation, with all their seeds."""

    field: str  # such as "problem" or "family"
    names: Mapping[str, str]  # by problem; a problem without one is by itself

    def of(self, problem: str) -> str:
        """Return the cluster of a problem."""
        return self.names.get(problem, problem)

    def count(self, tables: Sequence[Table]) -> int:
        """Count the clusters of several runs."""
        return len(set(map(self.of, _problems_of(tables))))

    def sums(
        self, gains: Iterable[tuple[str, float]]
    ) -> list[tuple[float, int]]:
        """Return the sum and the number of the problems' gains, by cluster."""
        totals: dict[str, list[float]] = {}
        for problem, gain in gains:
            totals.setdefault(self.of(problem), []).append(gain)
        return [(math.fsum(each), len(each)) for each in totals.values()]


def clusters_of(tables: Sequence[Table], field: str | None = None) -> Clusters:
    """Return the clusters by a field that every problem has.

    The default is the family if every problem has one, else each problem by itself.
    """
    if field == "problem":
        return Clusters(field, {})
    names: dict[str, str] = {}
    for table in tables:
        names |= table.problem_field(field or "family")
    problems = _problems_of(tables)
    missing = len(problems - names.keys())
    if field is None:
        if missing or not problems:
            return Clusters("problem", {})
        return Clusters("family", names)
    if missing:
        every = counted(len(problems), "problem")
        raise UsageError(
            f"{missing:,} of {every} have no field '{field[:40]}'",
            fix="--cluster problem, family, domain, or a field of the runs' problems.jsonl",
        )
    return Clusters(field, names)


def _problems_of(tables: Sequence[Table]) -> set[str]:
    found = set()
    for table in tables:
        for (problem,) in table.select("SELECT DISTINCT problem FROM solves"):
            found.add(problem)
    return found


# Figures


def metrics_of(
    table: Table,
    price: Price | None = None,
    clusters: Clusters | None = None,
    base: Table | None = None,
) -> Metrics:
    """Return every figure of a run.

    Without a price, the cost is known only for models that are free. With `base`, the
    buckets sort problems by how hard the base run found them.
    """
    by = clusters or clusters_of([table])
    counts = table.counts()
    sums = _sums(table)
    problems = _labelled_problems(table)
    shares = [(row["problem"], row["share"]) for row in problems]
    found = by.sums(shares)
    accuracy = None
    interval = None
    score = None
    if shares:
        accuracy = math.fsum(share for _, share in shares) / len(shares)
        n = effective(size for _, size in found)
        score = wilson(accuracy * n, n)
        interval = cluster_interval(found)
    points = Points()
    for row in problems:
        if row["exit_rank"] is not None:
            points[_raw_rate(row), row["exit_rank"]] += 1
    rates = problems if base is None else _labelled_problems(base)
    exits = _exits(table)
    tree = table.manifest.part("tree")
    sized = table.manifest.tree_hash and table.manifest.tree_cards is not None

    def per_solve(name: str) -> float:
        return float(sums[name]) / (counts.solves or 1)

    return Metrics(
        name=table.name,
        model=table.manifest.model,
        problems=counts.problems,
        solves=counts.solves,
        labelled=counts.labelled,
        complete=counts.complete,
        seeds=_seed_scores(table),
        accuracy=accuracy,
        cluster=by.field,
        clusters=len(found),
        wilson=score,
        interval=interval,
        failed=counts.failed,
        damaged=len(table.damage),
        retried=counts.retried,
        truncated=sums["truncated"] / sums["attempts"]
        if sums["attempts"]
        else None,
        paper_calls=per_solve("paper_calls"),
        real_calls=per_solve("real_calls"),
        classifier_calls=per_solve("classifier_calls"),
        input=per_solve("input"),
        cached=per_solve("cached"),
        output=per_solve("output"),
        seconds=per_solve("seconds"),
        cost=_cost(sums, price or free_price(table.manifest.model)),
        exits=exits,
        buckets=_bucket_rows(table, rates, exits) if shares else (),
        concordance=concordance_of(points),
        shown=counts.shown,
        abstained=counts.abstained,
        card_tokens=_card_tokens(table, counts.solves),
        tree=tree if sized else None,
    )


_SUMMED = (
    "paper_calls",
    "real_calls",
    "seconds",
    "attempts",
    "truncated",
    "input",
    "cached",
    "output",
    "classifier_calls",
    "classifier_input",
    "classifier_cached",
    "classifier_output",
    "batch_input",
    "batch_cached",
    "batch_output",
)


def _sums(table: Table) -> dict[str, Any]:
    columns = ", ".join(f"SUM({name})" for name in _SUMMED)
    row = table.select(f"SELECT {columns} FROM solves")[0]
    return {name: value or 0 for name, value in zip(_SUMMED, row, strict=True)}


def _labelled_problems(table: Table) -> list[Any]:
    """Return one row per problem whose answer is known, pooled over the seeds."""
    return table.select(
        "SELECT problem, AVG(correct) AS share, SUM(right_attempts) AS right,"
        " SUM(attempts) AS made, AVG(NULLIF(exit_rank, -1)) AS exit_rank"
        " FROM solves WHERE correct IS NOT NULL GROUP BY problem"
    )


def _raw_rate(row: Any) -> float:
    """Return the share of a problem's attempts that are right."""
    return float(row["right"] / (row["made"] or 1))


def _seed_scores(table: Table) -> tuple[SeedScore, ...]:
    rows = table.select(
        "SELECT seed, SUM(correct), COUNT(correct) AS n FROM solves"
        " GROUP BY seed HAVING n ORDER BY seed"
    )
    return tuple(SeedScore(*row) for row in rows)


def _cost(sums: Mapping[str, Any], price: Price | None) -> RunCost:
    """Return the cost by role. Traces do not record cache writes: priced as fresh."""

    def tokens(prefix: str) -> Usage:
        names = (f"{prefix}input", f"{prefix}cached", f"{prefix}output")
        return Usage(*(sums[name] for name in names))

    def cost(role: str, calls: int, usage: Usage, batched: Usage) -> RoleCost:
        usd = None if price is None else price.mixed(usage, batched)
        return RoleCost(role, calls, usage, usd)

    roles = [cost("solver", sums["real_calls"], tokens(""), tokens("batch_"))]
    routing = sums["classifier_calls"]
    if routing:
        usage = tokens("classifier_")
        roles.append(cost("classifier", routing, usage, Usage()))
    return RunCost(tuple(roles))


def _exits(table: Table) -> dict[ExitPath, int]:
    """Count the solves by exit, every path in order; none without a ladder."""
    rows = table.select(
        "SELECT exit, COUNT(*) FROM solves WHERE exit <> '' GROUP BY exit"
    )
    found = dict(map(tuple, rows))
    return {path: found.get(path.value, 0) for path in ExitPath if found}


def _card_tokens(table: Table, solves: int) -> CardTokens | None:
    mean, most, read, estimated = table.select(
        "SELECT SUM(card_tokens), MAX(card_tokens), SUM(read_tokens), MAX(estimated)"
        " FROM solves WHERE read_tokens > 0"
    )[0]
    if not read:
        return None
    return CardTokens(mean / solves, most, read / solves, bool(estimated))


def _bucket_rows(
    table: Table, rates: Sequence[Any], exits: Iterable[ExitPath]
) -> tuple[BucketRow, ...]:
    """Return the bucket table, easiest first, with the problems sorted by `rates`."""
    rows = {}
    for bucket in Bucket:
        rows[bucket] = BucketRow(bucket, exits=dict.fromkeys(exits, 0))
    place = {row["problem"]: Bucket.of(_raw_rate(row)) for row in rates}
    solves = table.select(
        "SELECT problem, exit, COUNT(*) AS n, SUM(correct) AS right,"
        " SUM(paper_calls) AS calls FROM solves WHERE correct IS NOT NULL"
        " GROUP BY problem, exit"
    )
    counted_problems = set()
    for solve in solves:
        problem = solve["problem"]
        if problem not in place:
            continue
        row = rows[place[problem]]
        row.problems += problem not in counted_problems
        counted_problems.add(problem)
        row.solves += solve["n"]
        row.right += solve["right"]
        row.paper_calls += solve["calls"]
        if solve["exit"]:
            row.exits[ExitPath(solve["exit"])] += solve["n"]
    return tuple(rows.values())


# Concordance

Points = Counter[tuple[float, float]]
"""How many problems have a raw rate and a mean exit rank, pooled over the seeds."""


def concordance_of(points: Points) -> Concordance | None:
    """Return the concordance over labelled problems; `None` without a ladder."""
    if not points:
        return None
    pairs = 0
    concordant = 0.0
    for (rate, rank), times in points.items():
        for (lower_rate, other_rank), others in points.items():
            if lower_rate < rate:
                pairs += times * others
                if other_rank < rank:
                    concordant += times * others
                elif other_rank == rank:
                    concordant += times * others / 2
    return Concordance(pairs, concordant, spearman(points))


def spearman(points: Points) -> float | None:
    """Return Spearman's rank correlation with ties at their mean rank.

    Returns `None` if rate or rank does not vary.
    """
    import numpy as np

    ranks = []
    for values in zip(*points.elements(), strict=True):
        _, place, times = np.unique(
            values, return_inverse=True, return_counts=True
        )
        if len(times) < 2:
            return None
        ranks.append((np.cumsum(times) - times / 2)[place])
    rates, exits = ranks
    return float(np.corrcoef(rates, exits)[0, 1])
