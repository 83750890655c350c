"""What the solves of a run add up to, kept as they are read: every figure is there at any moment, for nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from kace.evaluation.arm import Row
from kace.evaluation.concordance import Bucket, BucketRow, raw_rate
from kace.evaluation.cost import Cost, role_cost
from kace.evaluation.metrics import CardTokens, Metrics, SeedScore
from kace.evaluation.stats import Interval, wilson_of_share
from kace.models.base import Usage
from kace.models.budget import Price, free_price
from kace.solver.tiers import ExitPath

SUMS = (
    *("paper_calls", "real_calls", "input", "cached", "output", "seconds", "failed"),
    *("classifier_calls", "classifier_input", "classifier_output", "card_tokens", "read_tokens"),
)
"""Figures of a row that are added up."""
MOST_DOMAINS = 200
_SUMMED = attrgetter(*SUMS)


@dataclass(slots=True)
class _BucketSum:
    problems: int = 0
    solves: int = 0
    right: int = 0
    paper_calls: int = 0
    exits: Counter[ExitPath] = field(default_factory=Counter)


class Share(NamedTuple):
    """How many are right, and of how many."""

    right: int = 0
    n: int = 0


@dataclass(slots=True)
class Tally:
    """Running totals over solves. A problem counts once in an accuracy, however many seeds it has."""

    solves: int = 0
    problems: int = 0
    labelled: int = 0
    right: int = 0
    exits: Counter[ExitPath] = field(default_factory=Counter)
    exits_known: dict[ExitPath, Share] = field(default_factory=dict)
    """Of the labelled solves of each exit, how many are right, and how many there are."""
    domains: dict[str, Share] = field(default_factory=dict)
    """The same of each gold domain, unless there are very many."""
    sums: Counter[str] = field(default_factory=Counter)
    most_card_tokens: int = 0
    readers: int = 0
    """Solves that read learned text."""
    estimated: int = 0
    clusters: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Problems by how many of their labelled solves are right, and of how many."""
    clear: Counter[tuple[int, int]] = field(default_factory=Counter)
    """The same without solves that lost a call."""
    seeds: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Of each seed, how many solves are right, how many are labelled, and how many there are."""
    buckets: dict[Bucket, _BucketSum] = field(default_factory=lambda: {bucket: _BucketSum() for bucket in Bucket})

    def take(self, row: Row, others: Sequence[Row], replaced: Row | None = None) -> None:
        """Count a solve. `others` are those of the same problem, without one that this solve replaces."""
        if replaced is not None:
            self._count(replaced, -1)
        self._count(row, 1)
        before = others if replaced is None else (*others, replaced)
        self.problems += not before
        self._count_problem([other for other in before if other.correct is not None], -1)
        self._count_problem([other for other in (*others, row) if other.correct is not None], 1)

    @property
    def accuracy(self) -> float | None:
        """The mean over problems of the share of seeds that were right."""
        return _mean(self.clusters)

    @property
    def interval(self) -> Interval | None:
        """The 95 % Wilson interval of the accuracy, each problem counted once."""
        share = self.accuracy
        return None if share is None else wilson_of_share(share, self.clusters.total())

    def each(self, name: str) -> float:
        """A figure a solve."""
        return self.sums[name] / self.solves if self.solves else 0.0

    def cost(self, price: Price | None) -> Cost:
        """What it cost by role, or would have had nothing been read from disk."""
        sums = self.sums
        solver = Usage(sums["input"], sums["cached"], sums["output"])
        roles = [role_cost("solver", sums["real_calls"], solver, price)]
        if sums["classifier_calls"]:
            usage = Usage(sums["classifier_input"], 0, sums["classifier_output"])
            roles.append(role_cost("classifier", sums["classifier_calls"], usage, price))
        return Cost(tuple(roles))

    def metrics(self, name: str, model: str, price: Price | None = None) -> Metrics:
        """The figures as plots take them; without those that need every row at once."""
        laddered = bool(self.exits.total())
        return Metrics(
            name=name,
            model=model,
            problems=self.problems,
            solves=self.solves,
            labelled=self.labelled,
            complete=self.solves == self.problems * len(self.seeds),
            seeds=tuple(SeedScore(seed, c[0], c[1]) for seed, c in sorted(self.seeds.items()) if c[1]),
            accuracy=self.accuracy,
            wilson=self.interval,
            interval=None,
            failed=self.sums["failed"],
            accuracy_without_failed=_mean(self.clear),
            damaged=0,
            retried=0,
            paper_calls=self.each("paper_calls"),
            real_calls=self.each("real_calls"),
            classifier_calls=self.each("classifier_calls"),
            input=self.each("input"),
            cached=self.each("cached"),
            output=self.each("output"),
            seconds=self.each("seconds"),
            cost=self.cost(price or free_price(model)),
            exits={path: self.exits[path] for path in ExitPath} if laddered else {},
            buckets=self._bucket_rows(laddered) if self.labelled else (),
            concordance=None,
            card_tokens=self._card_tokens(),
            tree=None,
        )

    def _count(self, row: Row, sign: int) -> None:
        self.solves += sign
        sums = self.sums
        for name, value in zip(SUMS, _SUMMED(row), strict=True):
            sums[name] += sign * value
        if row.exit:
            self.exits[row.exit] += sign
        if row.read_tokens:
            self.readers += sign
            self.estimated += sign * row.estimated
            self.most_card_tokens = max(self.most_card_tokens, row.card_tokens)
        right, labelled, solves = self.seeds.get(row.seed, (0, 0, 0))
        if row.correct is not None:
            right, labelled = right + sign * row.correct, labelled + sign
            self.right += sign * row.correct
            self.labelled += sign
            self._count_kinds(row, sign * row.correct, sign)
        self.seeds[row.seed] = (right, labelled, solves + sign)

    def _count_kinds(self, row: Row, right: int, n: int) -> None:
        if row.exit:
            was = self.exits_known.get(row.exit, Share())
            self.exits_known[row.exit] = Share(was.right + right, was.n + n)
        if row.domain and (row.domain in self.domains or len(self.domains) < MOST_DOMAINS):
            was = self.domains.get(row.domain, Share())
            self.domains[row.domain] = Share(was.right + right, was.n + n)

    def _count_problem(self, rows: Sequence[Row], sign: int) -> None:
        """What counts once a problem: its place among clusters and in a bucket."""
        if not rows:
            return
        right = sum(bool(row.correct) for row in rows)
        self.clusters[right, len(rows)] += sign
        if clear := [row for row in rows if not row.failed]:
            self.clear[sum(bool(row.correct) for row in clear), len(clear)] += sign
        bucket = self.buckets[Bucket.of(raw_rate(rows))]
        bucket.problems += sign
        bucket.solves += sign * len(rows)
        bucket.right += sign * right
        for row in rows:
            bucket.paper_calls += sign * row.paper_calls
            if row.exit:
                bucket.exits[row.exit] += sign

    def _bucket_rows(self, laddered: bool) -> tuple[BucketRow, ...]:
        return tuple(
            BucketRow(
                bucket,
                found.problems,
                found.solves,
                found.right,
                found.paper_calls,
                {path: found.exits[path] for path in ExitPath} if laddered else {},
            )
            for bucket, found in self.buckets.items()
        )

    def _card_tokens(self) -> CardTokens | None:
        if not self.readers:
            return None
        return CardTokens(
            mean=self.sums["card_tokens"] / self.solves,
            mean_when_read=self.sums["card_tokens"] / self.readers,
            most=self.most_card_tokens,
            read=self.sums["read_tokens"] / self.solves,
            solves=self.readers,
            estimated=self.estimated > 0,
        )


def _mean(clusters: Counter[tuple[int, int]]) -> float | None:
    n = clusters.total()
    return math.fsum(count * right / of for (right, of), count in clusters.items()) / n if n else None
