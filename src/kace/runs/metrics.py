"""What an arm's solves add up to: every figure a table or a plot of one system needs."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from kace.config import Price
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.models.budget import AHEAD, free_price
from kace.runs.arm import TOKENS, Arm, Clusters, ClusterSums, SolveRow, clusters_of
from kace.runs.concordance import Concordance, Points, concordance_of
from kace.runs.manifest import manifest_part
from kace.runs.stats import (
    SHARES,
    Interval,
    cluster_interval,
    effective,
    wilson_of_share,
)

NO_CARDS = "no cards to show"  # the tree of such an arm is empty, and it solved as the ladder alone does
_MEANS = ("paper_calls", "real_calls", "classifier_calls", "input", "cached", "output")
_PRICED = tuple(
    f"{role}_{kind}" for role in ("classifier", "batch", "ahead") for kind in TOKENS
)
_SUMMED = (*_MEANS, *_PRICED, "ahead_calls", "read_tokens", "abstained")


@dataclass(frozen=True, slots=True)
class SeedScore:
    """One seed's accuracy; a failed call is a wrong answer."""

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

    mean: float  # of the fullest prompt of a solve, over all solves; one that left at ES read nothing
    mean_when_read: float
    most: int
    read: float  # over all tiers of a solve, over all solves
    solves: int  # solves that read anything
    estimated: bool  # whether some of it is an estimate from the length of the text


@dataclass(frozen=True, slots=True)
class RoleCost:
    """One role's calls, tokens and, where the price is known, money."""

    role: str
    calls: int
    usage: Usage
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunCost:
    """What an arm cost, or would have cost had nothing been read from disk."""

    roles: tuple[RoleCost, ...]

    @property
    def usd(self) -> float | None:
        """Over all roles; `None` where a role's price is not known."""
        known = [role.usd for role in self.roles if role.usd is not None]
        return sum(known) if len(known) == len(self.roles) else None

    @property
    def ahead(self) -> int:
        """Calls sent ahead and not needed."""
        return sum(role.calls for role in self.roles if role.role == AHEAD)


class Bucket(StrEnum):
    """How hard a problem is for a system, by the share of its attempts that were right; see `of`."""

    EASY = "EASY"
    MED_EASY = "MED-EASY"
    MED_HARD = "MED-HARD"
    HARD = "HARD"
    VERY_HARD = "VERY-HARD"

    @classmethod
    def of(cls, raw_rate: float) -> Bucket:
        """Where a rate falls."""
        floors = zip((0.8, 0.5, 0.2, math.ulp(0.0), 0.0), cls, strict=True)
        return next(bucket for floor, bucket in floors if raw_rate >= floor)


@dataclass(frozen=True, slots=True)
class BucketRow:
    """The solves of the problems in one bucket."""

    bucket: Bucket
    problems: int
    solves: int
    right: int
    paper_calls: int
    exits: Mapping[
        ExitPath, int
    ]  # solves by where they left; empty for a system without a ladder


@dataclass(frozen=True, slots=True)
class Metrics:
    """One arm in figures, calls and tokens a solve. Shares are 0 to 1, and `None` where nothing is labelled."""

    name: str
    model: str
    problems: int
    solves: int
    labelled: int
    complete: bool  # whether every problem was solved on every seed
    seeds: tuple[SeedScore, ...]
    accuracy: (
        float | None
    )  # the mean over problems of the share of seeds that were right
    cluster: str  # what both intervals take as one observation: "problem", "family" or another field
    clusters: int  # how many of them have a known answer
    wilson: (
        Interval | None
    )  # 95 %, each cluster counted once: its problems and seeds say little about others
    interval: Interval | None  # 95 %, cluster bootstrap
    failed: int  # solves that lost a call to the provider; in `accuracy` they stand as they are
    accuracy_without_failed: (
        float | None
    )  # over the other solves, which is a selection and never the headline
    damaged: int  # lines of the trace that could not be read
    retried: int  # solves made again after a failure
    paper_calls: float
    real_calls: float
    classifier_calls: float  # counted apart from the solver's
    input: float  # the solver's prompt tokens, cached ones included
    cached: float
    output: float
    seconds: float
    cost: RunCost  # over all solves
    exits: Mapping[
        ExitPath, int
    ]  # solves by exit, every path in order; empty for a system without a ladder
    buckets: tuple[
        BucketRow, ...
    ]  # all five, easiest first; empty where nothing is labelled
    concordance: Concordance | None  # `None` without a ladder or without labels
    shown: int  # solves that read a card
    abstained: int  # solves that read none though there were eligible ones
    card_tokens: CardTokens | None  # `None` for an arm that read nothing
    tree: (
        Mapping[str, object] | None
    )  # the hash, the number of cards and, where the run recorded them, the tokens
    note: str = ""  # what a reader must know of the arm; mostly nothing


class _Totals:
    """What all solves add up to."""

    def __init__(self) -> None:
        self.sums = Counter[str]()
        self.seconds = array("d")
        self.exits = Counter[ExitPath | None]()
        self.shown = self.read = self.active = self.most = 0
        self.estimated = False

    def add(self, row: SolveRow) -> None:
        for name in _SUMMED:
            self.sums[name] += getattr(row, name)
        self.seconds.append(row.seconds)
        self.exits[row.exit] += 1
        self.shown += bool(row.cards)
        if row.read_tokens:
            self.read += 1
            self.active += row.card_tokens
            self.most = max(self.most, row.card_tokens)
            self.estimated |= row.estimated

    def card_tokens(self, solves: int) -> CardTokens | None:
        if not self.read:
            return None
        means = (self.active / solves, self.active / self.read)
        return CardTokens(
            *means,
            self.most,
            self.sums["read_tokens"] / solves,
            self.read,
            self.estimated,
        )

    def cost(self, price: Price | None) -> RunCost:
        """Every role's part. Of what was written to a cache, traces know no share: priced as fresh."""
        roles = []
        for role, calls, prefix, in_batches in (
            ("solver", "real_calls", "", "batch_"),
            ("classifier", "classifier_calls", "classifier_", None),
            (AHEAD, "ahead_calls", "ahead_", "ahead_"),
        ):
            usage = self._tokens(prefix)
            batched = Usage() if in_batches is None else self._tokens(in_batches)
            if self.sums[calls] or role == "solver":
                usd = None if price is None else price.mixed(usage, batched)
                roles.append(RoleCost(role, self.sums[calls], usage, usd))
        return RunCost(tuple(roles))

    def _tokens(self, prefix: str) -> Usage:
        return Usage(*(self.sums[prefix + kind] for kind in TOKENS))


class _Problems:
    """What the problems with an expected answer add up to."""

    def __init__(
        self, clusters: Clusters, buckets: Mapping[str, Bucket] | None = None
    ) -> None:
        self.clusters = ClusterSums(clusters)
        self.bucket_of = buckets
        self.shares = Counter[float]()
        self.without_failed = Counter[float]()
        # of each seed
        self.right = Counter[int]()
        self.n = Counter[int]()
        self.points = Points()
        self.buckets = {bucket: Counter[str | ExitPath | None]() for bucket in Bucket}

    def add(self, solves: Sequence[SolveRow]) -> None:
        """Add the solves of one problem."""
        right = sum(row.correct is True for row in solves)
        self.shares[right / len(solves)] += 1
        self.clusters.add(solves[0], Fraction(right, len(solves)), 1)
        if whole := [row for row in solves if not row.failed]:
            self.without_failed[
                sum(row.correct is True for row in whole) / len(whole)
            ] += 1
        rate = raw_rate(solves)
        if ranks := [row.exit.rank for row in solves if row.exit]:
            self.points[rate, sum(ranks) / len(ranks)] += 1
        place = (
            Bucket.of(rate)
            if self.bucket_of is None
            else self.bucket_of.get(solves[0].problem)
        )
        bucket = self.buckets[place] if place else Counter()
        bucket.update({"problems": 1, "solves": len(solves), "right": right})
        for row in solves:
            self.right[row.seed] += row.correct is True
            self.n[row.seed] += 1
            bucket["paper_calls"] += row.paper_calls
            bucket[row.exit] += 1

    def bucket_rows(self) -> tuple[BucketRow, ...]:
        """The bucket table, easiest first; empty where no answer is expected."""
        if not self.n:
            return ()
        counts = ("problems", "solves", "right", "paper_calls")
        ladder = bool(self.points)
        return tuple(
            BucketRow(
                bucket,
                **{each: found[each] for each in counts},
                exits=_exits(found, ladder=ladder),
            )
            for bucket, found in self.buckets.items()
        )


def metrics_of(
    arm: Arm, price: Price | None = None, clusters: Clusters | None = None
) -> Metrics:
    """Every figure of an arm. Without a price, cost is known only for models that nobody sends a bill for."""
    by = clusters or clusters_of([arm])
    n = len(arm.rows)
    found = _Totals()
    known = _Problems(by)
    for _, solves in arm.by_problem():
        for row in solves:
            found.add(row)
        if labelled := [row for row in solves if row.correct is not None]:
            known.add(labelled)
    alike = known.clusters.alike()
    accuracy = _mean(known.shares)
    tree = manifest_part(arm.manifest, "tree")
    sized = isinstance(tree.get("hash"), str) and isinstance(tree.get("cards"), int)
    return Metrics(
        name=arm.name,
        model=arm.model,
        problems=arm.counts.problems,
        solves=n,
        labelled=n - arm.counts.unlabelled,
        complete=arm.complete,
        seeds=tuple(
            SeedScore(seed, known.right[seed], known.n[seed])
            for seed in sorted(known.n)
        ),
        accuracy=accuracy,
        cluster=by.field,
        clusters=alike.total(),
        wilson=None
        if accuracy is None
        else wilson_of_share(accuracy, effective(size for _, size in alike.elements())),
        interval=cluster_interval(alike, SHARES) if alike else None,
        failed=arm.counts.failed,
        accuracy_without_failed=_mean(known.without_failed),
        damaged=len(arm.damage),
        retried=arm.retried,
        **{name: found.sums[name] / (n or 1) for name in _MEANS},
        seconds=math.fsum(found.seconds) / (n or 1),
        cost=found.cost(price or free_price(arm.model)),
        exits=_exits(found.exits, ladder=n > found.exits[None]),
        buckets=known.bucket_rows(),
        concordance=concordance_of(known.points),
        shown=found.shown,
        abstained=found.sums["abstained"],
        card_tokens=found.card_tokens(n),
        tree=tree if sized else None,
        note=NO_CARDS if arm.spec and arm.spec.source == "tree" and not tree else "",
    )


def bucket_rows(
    rows: Iterable[SolveRow], base: Iterable[SolveRow]
) -> tuple[BucketRow, ...]:
    """The bucket table of solves whose problems are sorted by how hard another system found them."""
    buckets = {
        problem: Bucket.of(raw_rate(solves))
        for problem, solves in _by_problem(base).items()
    }
    found = _Problems(Clusters("problem", {}), buckets)
    for solves in _by_problem(rows).values():
        found.add(solves)
    return found.bucket_rows()


def raw_rate(solves: Sequence[SolveRow]) -> float:
    """The share of a problem's attempts that were right, pooled over the seeds."""
    return sum(row.right_attempts for row in solves) / (
        sum(row.attempts for row in solves) or 1
    )


def _by_problem(rows: Iterable[SolveRow]) -> Mapping[str, list[SolveRow]]:
    found: dict[str, list[SolveRow]] = {}
    for row in rows:
        if row.correct is not None:
            found.setdefault(row.problem, []).append(row)
    return found


def _mean(values: Counter[float]) -> float | None:
    return math.fsum(values.elements()) / values.total() if values else None


def _exits(found: Mapping[Any, int], *, ladder: bool) -> Mapping[ExitPath, int]:
    return {path: found[path] for path in ExitPath} if ladder else {}
