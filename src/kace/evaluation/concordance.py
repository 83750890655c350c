"""Whether the place where solves leave the ladder says how hard the problems are."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from kace.evaluation.arm import Row
from kace.solver.tiers import ExitPath


class Bucket(StrEnum):
    """How hard a problem is for a system, by the share of its attempts that were right."""

    EASY = "EASY"
    """At least 80 %."""
    MED_EASY = "MED-EASY"
    """50 % to under 80 %."""
    MED_HARD = "MED-HARD"
    """20 % to under 50 %."""
    HARD = "HARD"
    """More than none, under 20 %."""
    VERY_HARD = "VERY-HARD"
    """None."""

    @classmethod
    def of(cls, raw_rate: float) -> Bucket:
        """Where a rate falls."""
        for floor, bucket in ((0.8, cls.EASY), (0.5, cls.MED_EASY), (0.2, cls.MED_HARD)):
            if raw_rate >= floor:
                return bucket
        return cls.HARD if raw_rate > 0 else cls.VERY_HARD


@dataclass(frozen=True, slots=True)
class Point:
    """One problem, pooled over the seeds."""

    problem: str
    name: str
    raw_rate: float
    """The share of its attempts that were right."""
    exit_rank: float
    """The mean rank of its exits: 4 where every solve left at ES, 0 where none ever found agreement."""


@dataclass(frozen=True, slots=True)
class Concordance:
    """How well the exit predicts the raw rate, over pairs of problems whose raw rates differ."""

    points: tuple[Point, ...]
    pairs: int
    concordant: float
    """Pairs in which the easier problem left earlier; one that left at the same place counts half."""
    spearman: float | None
    """Spearman's rho of raw rate and exit rank; `None` where either does not vary."""

    @property
    def share(self) -> float | None:
        """The share of pairs that are concordant; a half is what chance gives."""
        return self.concordant / self.pairs if self.pairs else None


@dataclass(frozen=True, slots=True)
class BucketRow:
    """The solves of the problems in one bucket."""

    bucket: Bucket
    problems: int
    solves: int
    right: int
    paper_calls: int
    exits: Mapping[ExitPath, int]
    """Solves by where they left; empty for a system without a ladder."""


def concordance_of(rows: Iterable[Row]) -> Concordance | None:
    """Over the problems with an expected answer; `None` where no such solve climbed a ladder."""
    points = tuple(
        Point(problem, solves[0].name, raw_rate(solves), sum(places) / len(places))
        for problem, solves in by_problem(rows).items()
        if (places := [row.exit.rank for row in solves if row.exit])
    )
    if not points:
        return None
    rates, ranks = [point.raw_rate for point in points], [point.exit_rank for point in points]
    return Concordance(points, pairs(rates), concordant(rates, ranks), spearman(rates, ranks))


def bucket_rows(rows: Iterable[Row]) -> tuple[BucketRow, ...]:
    """The bucket table, easiest first; empty where no answer is expected."""
    found: defaultdict[Bucket, list[list[Row]]] = defaultdict(list)
    for solves in by_problem(rows).values():
        found[Bucket.of(raw_rate(solves))].append(solves)
    ladder = any(row.exit for problems in found.values() for solves in problems for row in solves)
    return tuple(_bucket_row(bucket, found[bucket], ladder) for bucket in Bucket) if found else ()


def by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The solves of every problem with an expected answer, over the seeds."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            found[row.problem].append(row)
    return dict(found)


def raw_rate(solves: Sequence[Row]) -> float:
    """The share of a problem's attempts that were right, pooled over the seeds."""
    attempts = sum(row.attempts for row in solves)
    return sum(row.right_attempts for row in solves) / attempts if attempts else 0.0


def pairs(rates: Sequence[float]) -> int:
    """Pairs of problems whose raw rates differ: all pairs less those tied at some rate."""
    return math.comb(len(rates), 2) - sum(math.comb(tied, 2) for tied in Counter(rates).values())


def concordant(rates: Sequence[float], ranks: Sequence[float]) -> float:
    """Of those pairs, the ones whose exit ranks have the same order; equal ranks count half."""
    below: Counter[float] = Counter()
    found = 0.0
    for _, tied in groupby(sorted(zip(rates, ranks, strict=True)), key=lambda pair: pair[0]):
        here = Counter(rank for _, rank in tied)
        for rank, times in here.items():
            found += times * sum(count for other, count in below.items() if other < rank)
            found += times * below[rank] / 2
        below += here
    return found


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; `None` where a side does not vary."""
    a, b = _ranks(left), _ranks(right)
    centre = (len(a) + 1) / 2
    spread = math.fsum((x - centre) ** 2 for x in a) * math.fsum((y - centre) ** 2 for y in b)
    if not spread:
        return None
    return math.fsum((x - centre) * (y - centre) for x, y in zip(a, b, strict=True)) / math.sqrt(spread)


def _ranks(values: Sequence[float]) -> list[float]:
    ranks, before = [0.0] * len(values), 0
    order = sorted(range(len(values)), key=values.__getitem__)
    for _, tied in groupby(order, key=values.__getitem__):
        places = list(tied)
        for place in places:
            ranks[place] = before + (len(places) + 1) / 2
        before += len(places)
    return ranks


def _bucket_row(bucket: Bucket, problems: Sequence[Sequence[Row]], ladder: bool) -> BucketRow:
    solves = [row for rows in problems for row in rows]
    return BucketRow(
        bucket=bucket,
        problems=len(problems),
        solves=len(solves),
        right=sum(bool(row.correct) for row in solves),
        paper_calls=sum(row.paper_calls for row in solves),
        exits=exit_counts(solves, ladder=ladder),
    )


def exit_counts(rows: Iterable[Row], *, ladder: bool = False) -> Mapping[ExitPath, int]:
    """Solves by exit, every path in order; empty for a system without a ladder, unless one is said to be there."""
    found = Counter(row.exit for row in rows if row.exit)
    return {path: found[path] for path in ExitPath} if found or ladder else {}
