"""Every figure that a table, a plot or a page needs of one run."""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from statistics import StatisticsError, correlation
from typing import NamedTuple

from kace.config import Price
from kace.errors import UsageError, counted
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage, total
from kace.models.budget import free_price
from kace.runs.stats import Interval, cluster_interval, cluster_wilson
from kace.runs.table import Share, SolveRow, Table

NO_CARDS = "no cards to show"
"""The note of an arm whose system reads a tree that is empty."""


@dataclass(frozen=True, slots=True)
class CardTokens:
    """Tokens of learned text in the fullest prompt of a solve."""

    mean: float  # over all solves
    most: int
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
        return list(cls)[4 - bisect((1e-9, 0.2, 0.5, 0.8), raw_rate)]


class BucketRow(NamedTuple):
    """The problems of a run in one bucket, and the exits of their solves."""

    bucket: Bucket
    problems: int
    exits: Mapping[ExitPath, int]  # empty for a system without a ladder


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
    seeds: tuple[Share, ...]
    accuracy: float | None  # mean over problems of the share of seeds right
    cluster: str  # what both intervals take as one observation: "family"
    clusters: int  # how many of them have a known answer
    wilson: Interval | None  # 95 %, each cluster counted once
    interval: Interval | None  # 95 %, cluster bootstrap
    failed: int  # solves that lost a call; they count in `accuracy`
    damaged: int  # lines of the trace that could not be read
    retried: int  # solves made again after a failure
    paper_calls: float
    real_calls: float
    classifier_calls: float  # not part of the solver's
    input: float  # prompt tokens of the solver, cached ones included
    cached: float
    output: float
    truncated: float | None  # share of the attempts that the token cap cut off
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
    problems: set[str] = set()
    for table in tables:
        names |= table.problem_field(field or "family")
        problems |= table.solved
    missing = len(problems - names.keys())
    if field and missing:
        every = counted(len(problems), "problem")
        raise UsageError(
            f"{missing:,} of {every} have no field '{field[:40]}'",
            fix="--cluster problem, family or domain",
        )
    if missing or not problems:
        return Clusters("problem", {})
    return Clusters(field or "family", names)


# Figures


class ProblemScore:
    """A problem whose answer is known, pooled over its seeds."""

    def __init__(self, rows: Sequence[SolveRow]) -> None:
        """Pool the labelled solves of one problem."""
        made = _sum(rows, "attempts")
        ranks = [row.exit.rank for row in rows if row.exit]
        self.problem = rows[0].problem
        self.share = _sum(rows, "correct") / len(rows)
        self.raw_rate = _sum(rows, "right_attempts") / (made or 1)
        self.exit_rank = sum(ranks) / len(ranks) if ranks else None
        self.exits = Counter(row.exit for row in rows if row.exit)


def problem_scores(table: Table) -> list[ProblemScore]:
    """Return the scores of the problems whose answer is known."""
    by_problem: dict[str, list[SolveRow]] = {}
    for row in table:
        if row.correct is not None:
            by_problem.setdefault(row.problem, []).append(row)
    return list(map(ProblemScore, by_problem.values()))


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
    rows = list(table)
    scores = problem_scores(table)
    shares = {score.problem: score.share for score in scores}
    found = by.sums(shares.items())
    accuracy = None
    proportion = None
    if scores:
        accuracy = math.fsum(shares.values()) / len(scores)
        proportion = cluster_wilson(accuracy, [size for _, size in found])
    points = Points()
    for score in scores:
        if score.exit_rank is not None:
            points[score.raw_rate, score.exit_rank] += 1
    rates = scores if base is None else problem_scores(base)
    left = Counter(row.exit for row in rows)
    exits = {path: left[path] for path in ExitPath if any(left)}
    attempts = _sum(rows, "attempts")
    manifest = table.manifest
    sized = manifest.tree_hash and manifest.tree_cards is not None

    def per_solve(name: str) -> float:
        return _sum(rows, name) / (len(rows) or 1)

    return Metrics(
        name=table.name,
        model=manifest.model,
        problems=len(table.solved),
        solves=len(rows),
        labelled=table.labelled,
        complete=table.complete,
        seeds=tuple(table.shares("seed")),
        accuracy=accuracy,
        cluster=by.field,
        clusters=len(found),
        wilson=proportion,
        interval=cluster_interval(found),
        failed=table.failed,
        damaged=len(table.damage),
        retried=len(table.retried),
        paper_calls=per_solve("paper_calls"),
        real_calls=per_solve("real_calls"),
        classifier_calls=per_solve("classifier_calls"),
        input=per_solve("usage.input"),
        cached=per_solve("usage.cached"),
        output=per_solve("usage.output"),
        truncated=_sum(rows, "truncated") / attempts if attempts else None,
        cost=_cost(rows, price or free_price(manifest.model)),
        exits=exits,
        buckets=_bucket_rows(scores, rates, exits) if scores else (),
        concordance=concordance_of(points),
        shown=sum(bool(row.cards) for row in rows),
        abstained=_sum(rows, "abstained"),
        card_tokens=_card_tokens(rows),
        tree=manifest.part("tree") if sized else None,
    )


def _sum(rows: Iterable[SolveRow], name: str) -> int:
    return sum(map(attrgetter(name), rows))


def _cost(rows: Sequence[SolveRow], price: Price | None) -> RunCost:
    """Return the cost by role. Traces do not record cache writes: priced as fresh."""

    def cost(role: str, calls: int, usage: Usage, batched: Usage) -> RoleCost:
        usd = None
        if price is not None:
            saved = price.cost(batched) - price.cost(batched, batch=True)
            usd = price.cost(usage) - saved
        return RoleCost(role, calls, usage, usd)

    usage = total(row.usage for row in rows)
    batched = total(row.batch for row in rows)
    roles = [cost("solver", _sum(rows, "real_calls"), usage, batched)]
    calls = _sum(rows, "classifier_calls")
    if calls:
        usage = total(row.classifier for row in rows)
        roles.append(cost("classifier", calls, usage, Usage()))
    return RunCost(tuple(roles))


def _card_tokens(rows: Sequence[SolveRow]) -> CardTokens | None:
    most = max((row.card_tokens for row in rows), default=0)
    if not most:
        return None
    estimated = any(row.estimated for row in rows)
    return CardTokens(_sum(rows, "card_tokens") / len(rows), most, estimated)


def _bucket_rows(
    scores: Sequence[ProblemScore],
    rates: Sequence[ProblemScore],
    exits: Iterable[ExitPath],
) -> tuple[BucketRow, ...]:
    """Return the bucket table, easiest first, with the problems sorted by `rates`."""
    places = {score.problem: Bucket.of(score.raw_rate) for score in rates}
    rows = []
    for bucket in Bucket:
        here = [each for each in scores if places.get(each.problem) is bucket]
        left = {path: sum(each.exits[path] for each in here) for path in exits}
        rows.append(BucketRow(bucket, len(here), left))
    return tuple(rows)


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
                steps = (other_rank < rank) + (other_rank <= rank)
                concordant += times * others * steps / 2
    return Concordance(pairs, concordant, spearman(points))


def spearman(points: Points) -> float | None:
    """Return Spearman's rank correlation with ties at their mean rank.

    Returns `None` if rate or rank does not vary.
    """
    ranks = []
    for values in zip(*points.elements(), strict=True):
        places = sorted(values)
        ranks.append(
            [bisect(places, x) + bisect_left(places, x) for x in values]
        )
    with suppress(StatisticsError):
        return correlation(*ranks)
    return None
