"""Every figure that a table, a plot or a page needs of one run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from kace.config import Price
from kace.errors import UsageError
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.models.budget import free_price
from kace.runs.stats import (
    SHARES,
    Interval,
    cluster_interval,
    effective,
    wilson_of_share,
)
from kace.runs.table import SolveRow, Table
from kace.words import counted

NO_CARDS = "no cards to show"
"""The note of an arm whose system reads a tree that is empty."""


@dataclass(frozen=True, slots=True)
class SeedScore:
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
    mean_when_read: float
    most: int
    read: float  # over all tiers of a solve, over all solves
    solves: int  # solves that read anything
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

    points: tuple[tuple[float, float, int], ...]
    """Raw rate, mean exit rank (both pooled over seeds), and the number of problems."""
    pairs: int
    concordant: (
        float  # pairs whose easier problem left earlier; ties count half
    )
    spearman: (
        float | None
    )  # of raw rate and exit rank; `None` if one does not vary

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
    accuracy: (
        float | None
    )  # mean over problems of the share of seeds that are right
    cluster: (
        str  # what both intervals take as one observation, such as "family"
    )
    clusters: int  # how many of them have a known answer
    wilson: Interval | None  # 95 %, each cluster counted once
    interval: Interval | None  # 95 %, cluster bootstrap
    failed: (
        int  # solves that lost a call to the provider; they count in `accuracy`
    )
    accuracy_without_failed: float | None
    """Over the other solves: a selection, and never the headline."""
    damaged: int  # lines of the trace that could not be read
    retried: int  # solves made again after a failure
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
    tree: (
        Mapping[str, object] | None
    )  # its hash and size, as the run recorded them
    note: str = ""  # what a reader must know beside the figures


# Clusters: what counts as one observation


@dataclass(frozen=True)
class Clusters:
    """Groups problems that count as one observation, with all their seeds."""

    field: str  # such as "problem" or "family"
    names: Mapping[str, str] | None = (
        None  # by problem, if rows do not have the field
    )

    def of(self, row: SolveRow | Solution) -> str:
        """Return the cluster of a solve."""
        if self.names is not None:
            return self.names[row.problem]
        return str(getattr(row, self.field))

    def count(self, tables: Sequence[Table]) -> int:
        """Count the clusters of several runs."""
        if self.field == "problem" and len(tables) == 1:
            return tables[0].counts().problems
        found: set[str] = set()
        for table in tables:
            found.update(map(self.of, table))
        return len(found)


class ClusterSums:
    """Adds up values by cluster, problem by problem."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._named: dict[str, tuple[Any, ...]] = {}
        self._alike: Counter[tuple[Any, ...]] = Counter()

    def add(self, row: SolveRow, *values: Any) -> None:
        """Add the values of the problem that `row` is a solve of."""
        if (
            self._clusters.field == "problem"
        ):  # each comes once: no name to remember
            self._alike[values] += 1
            return
        name = self._clusters.of(row)
        before = self._named.get(name)
        if before:
            values = tuple(map(sum, zip(before, values, strict=True)))
        self._named[name] = values

    def alike(self) -> Counter[tuple[Any, ...]]:
        """Return how many clusters have the same sums."""
        return self._alike or Counter(self._named.values())


def clusters_of(tables: Sequence[Table], field: str | None = None) -> Clusters:
    """Return the clusters by a field that every problem has.

    The default is the family if every solve has one, else each problem by itself.
    """
    if field is None:
        solves = 0
        without = 0
        for table in tables:
            counts = table.counts()
            solves += counts.solves
            without += counts.without_family
        return Clusters("family" if solves and not without else "problem")
    if field == "problem":
        return Clusters(field)
    names: dict[str, str] = {}
    problems: set[str] = set()
    for table in tables:
        if field not in ("label", "family", "domain"):
            names |= table.problem_field(field)
        for row in table:
            problems.add(row.problem)
            value = getattr(row, field, None)
            if value:
                names[row.problem] = str(value)
    missing = len(problems - names.keys())
    if missing:
        every = counted(len(problems), "problem")
        raise UsageError(
            f"{missing:,} of {every} have no field '{field[:40]}'",
            fix="--cluster problem, family, domain, or a field of the runs' problems.jsonl",
        )
    return Clusters(field, names)


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
    solves = counts.solves or 1
    labelled = _Labelled(by, None if base is None else _buckets_of(base))
    for _, rows in table.by_problem():
        known = [row for row in rows if row.correct is not None]
        if known:
            labelled.add(known)
    clustered = labelled.clusters.alike()
    accuracy = _mean(labelled.shares)
    wilson = None
    if accuracy is not None:
        sizes = (size for _, size in clustered.elements())
        wilson = wilson_of_share(accuracy, effective(sizes))
    exits = _exits(table)
    return Metrics(
        name=table.name,
        model=table.manifest.model,
        problems=counts.problems,
        solves=counts.solves,
        labelled=counts.labelled,
        complete=counts.complete,
        seeds=labelled.seed_scores(),
        accuracy=accuracy,
        cluster=by.field,
        clusters=clustered.total(),
        wilson=wilson,
        interval=cluster_interval(clustered, SHARES) if clustered else None,
        failed=counts.failed,
        accuracy_without_failed=_mean(labelled.without_failed),
        damaged=len(table.damage),
        retried=counts.retried,
        paper_calls=sums["paper_calls"] / solves,
        real_calls=sums["real_calls"] / solves,
        classifier_calls=sums["classifier_calls"] / solves,
        input=sums["input"] / solves,
        cached=sums["cached"] / solves,
        output=sums["output"] / solves,
        seconds=sums["seconds"] / solves,
        cost=_cost(sums, price or free_price(table.manifest.model)),
        exits=exits,
        buckets=labelled.bucket_rows(),
        concordance=concordance_of(labelled.points),
        shown=counts.shown,
        abstained=counts.abstained,
        card_tokens=_card_tokens(table, counts.solves),
        tree=_tree_facts(table),
    )


_SUMMED = (
    "paper_calls",
    "real_calls",
    "seconds",
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


def _cost(sums: Mapping[str, Any], price: Price | None) -> RunCost:
    """Return the cost by role. Traces do not record cache writes: priced as fresh."""

    def tokens(prefix: str) -> Usage:
        names = (f"{prefix}input", f"{prefix}cached", f"{prefix}output")
        return Usage(*(sums[name] for name in names))

    roles = []
    for role, calls, usage, batched in (
        ("solver", sums["real_calls"], tokens(""), tokens("batch_")),
        (
            "classifier",
            sums["classifier_calls"],
            tokens("classifier_"),
            Usage(),
        ),
    ):
        if calls or role == "solver":
            usd = None if price is None else price.mixed(usage, batched)
            roles.append(RoleCost(role, calls, usage, usd))
    return RunCost(tuple(roles))


def _exits(table: Table) -> dict[ExitPath, int]:
    """Count the solves by exit, every path in order; none without a ladder."""
    rows = table.select("SELECT exit, COUNT(*) FROM solves GROUP BY exit")
    found = dict(map(tuple, rows))
    found.pop(None, None)
    if not found:
        return {}
    return {path: found.get(path.value, 0) for path in ExitPath}


def _card_tokens(table: Table, solves: int) -> CardTokens | None:
    row = table.select(
        "SELECT COUNT(*), SUM(card_tokens), MAX(card_tokens), SUM(read_tokens),"
        " MAX(estimated) FROM solves WHERE read_tokens > 0"
    )[0]
    read, active, most, total, estimated = row
    if not read:
        return None
    return CardTokens(
        mean=active / solves,
        mean_when_read=active / read,
        most=most,
        read=total / solves,
        solves=read,
        estimated=bool(estimated),
    )


def _tree_facts(table: Table) -> Mapping[str, object] | None:
    tree = table.manifest.part("tree")
    sized = isinstance(tree.get("hash"), str) and isinstance(
        tree.get("cards"), int
    )
    return tree if sized else None


def _buckets_of(table: Table) -> dict[str, Bucket]:
    """Return the bucket of every labelled problem of a run."""
    rows = table.select(
        "SELECT problem, SUM(right_attempts), SUM(attempts) FROM solves"
        " WHERE correct IS NOT NULL GROUP BY problem"
    )
    return {
        problem: Bucket.of(right / (made or 1)) for problem, right, made in rows
    }


def raw_rate(solves: Sequence[SolveRow]) -> float:
    """Return the share of a problem's attempts that are right, pooled over seeds."""
    right = 0
    made = 0
    for row in solves:
        right += row.right_attempts
        made += row.attempts
    return right / (made or 1)


class _Labelled:
    """Adds up the problems whose answers are known."""

    def __init__(
        self, clusters: Clusters, buckets: Mapping[str, Bucket] | None
    ) -> None:
        self.clusters = ClusterSums(clusters)
        self.shares: Counter[float] = (
            Counter()
        )  # of seeds that are right, by problem
        self.without_failed: Counter[float] = Counter()  # the same
        self.points: Points = Counter()
        self._bucket_of = buckets
        self._buckets = {bucket: BucketRow(bucket) for bucket in Bucket}
        self._right: Counter[int] = Counter()  # by seed
        self._n: Counter[int] = Counter()

    def add(self, solves: Sequence[SolveRow]) -> None:
        """Add the solves of one problem."""
        right = 0
        whole = 0
        for row in solves:
            right += row.correct is True
            whole += not row.failed
            self._right[row.seed] += row.correct is True
            self._n[row.seed] += 1
        self.shares[right / len(solves)] += 1
        if whole:
            right_whole = 0
            for row in solves:
                right_whole += row.correct is True and not row.failed
            self.without_failed[right_whole / whole] += 1
        self.clusters.add(solves[0], Fraction(right, len(solves)), 1)
        rate = raw_rate(solves)
        ranks = [row.exit.rank for row in solves if row.exit]
        if ranks:
            self.points[rate, sum(ranks) / len(ranks)] += 1
        bucket: Bucket | None = Bucket.of(rate)
        if self._bucket_of is not None:
            bucket = self._bucket_of.get(solves[0].problem)
        if bucket:
            self._add_to_bucket(self._buckets[bucket], solves, right)

    def _add_to_bucket(
        self,
        bucket: BucketRow,
        solves: Sequence[SolveRow],
        right: int,
    ) -> None:
        bucket.problems += 1
        bucket.solves += len(solves)
        bucket.right += right
        for row in solves:
            bucket.paper_calls += row.paper_calls
            if row.exit:
                bucket.exits[row.exit] = bucket.exits.get(row.exit, 0) + 1

    def bucket_rows(self) -> tuple[BucketRow, ...]:
        """Return the bucket table, easiest first; empty if no answer is known."""
        if not self._n:
            return ()
        if self.points:
            for row in self._buckets.values():
                row.exits = {path: row.exits.get(path, 0) for path in ExitPath}
        return tuple(self._buckets.values())

    def seed_scores(self) -> tuple[SeedScore, ...]:
        """Return the accuracy of every seed, in order."""
        seeds = sorted(self._n)
        return tuple(
            SeedScore(seed, self._right[seed], self._n[seed]) for seed in seeds
        )


def _mean(shares: Counter[float]) -> float | None:
    """Return the mean of shares, each counted as often as it occurs."""
    if not shares:
        return None
    return math.fsum(shares.elements()) / shares.total()


# Concordance


Points = Counter[tuple[float, float]]
"""How many problems have a raw rate and a mean exit rank, pooled over the seeds."""


def concordance_of(points: Points) -> Concordance | None:
    """Return the concordance over labelled problems; `None` without a ladder."""
    if not points:
        return None
    ordered = sorted(points.items())
    pairs = 0
    concordant = 0.0
    for (rate, rank), times in ordered:
        for (lower_rate, other_rank), others in ordered:
            if lower_rate >= rate:
                break
            pairs += times * others
            if other_rank < rank:
                concordant += times * others
            elif other_rank == rank:
                concordant += times * others / 2
    every = tuple((rate, rank, times) for (rate, rank), times in ordered)
    return Concordance(every, pairs, concordant, spearman(points))


def spearman(points: Points) -> float | None:
    """Return Spearman's rank correlation with ties at their mean rank.

    Returns `None` if rate or rank does not vary.
    """
    rates = _centred_ranks(points, 0)
    ranks = _centred_ranks(points, 1)
    across = 0
    rate_squares = 0
    rank_squares = 0
    for (rate, rank), times in points.items():
        across += times * rates[rate] * ranks[rank]
        rate_squares += times * rates[rate] ** 2
        rank_squares += times * ranks[rank] ** 2
    if not rate_squares or not rank_squares:
        return None
    return across / math.sqrt(rate_squares * rank_squares)


def _centred_ranks(points: Points, axis: int) -> dict[float, int]:
    """Return twice the rank of each value less the mean rank, in whole numbers."""
    counts: Counter[float] = Counter()
    for point, times in points.items():
        counts[point[axis]] += times
    found = {}
    below = 0
    for value, times in sorted(counts.items()):
        found[value] = 2 * below + times - points.total()
        below += times
    return found
