"""What an arm's solves add up to: every figure a table or a plot of one system needs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from kace.evaluation.arm import Arm, SolveRow
from kace.evaluation.stats import Interval, cluster_interval, wilson_of_share
from kace.models.base import Usage
from kace.models.budget import Price, free_price
from kace.solver.manifest import manifest_part
from kace.solver.tiers import ExitPath
from kace.words import counted

WHOLE = Interval(0.0, 1.0)
_MEANS = ("paper_calls", "real_calls", "classifier_calls", "input", "cached", "output", "seconds")


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
class TreeSize:
    """The tree an arm read from; its tokens where the run recorded them."""

    hash: str
    cards: int
    tokens: int | None


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
        floors = ((0.8, cls.EASY), (0.5, cls.MED_EASY), (0.2, cls.MED_HARD))
        lowest = cls.HARD if raw_rate > 0 else cls.VERY_HARD
        return next((bucket for floor, bucket in floors if raw_rate >= floor), lowest)


@dataclass(frozen=True, slots=True)
class Point:
    """One problem, pooled over the seeds."""

    problem: str
    name: str
    raw_rate: float  # the share of its attempts that were right
    exit_rank: float  # the mean rank of its exits: 4 where every solve left at ES, 0 where none ever found agreement


@dataclass(frozen=True, slots=True)
class Concordance:
    """How well the exit predicts the raw rate, over pairs of problems whose raw rates differ."""

    points: tuple[Point, ...]
    pairs: int
    concordant: float  # pairs in which the easier problem left earlier; one that left at the same place counts half
    spearman: float | None  # Spearman's rho of raw rate and exit rank; `None` where either does not vary

    @property
    def share(self) -> float | None:
        """The share of pairs that are concordant; a half is what chance gives."""
        return self.concordant / self.pairs if self.pairs else None

    @property
    def words(self) -> str:
        """The share and the rank correlation, as far as they are defined."""
        share = f"{self.share:.1%} of {counted(self.pairs, 'pair')}" if self.pairs else "no pair to compare"
        return share + ("" if self.spearman is None else f", ρ = {self.spearman:.2f}".replace("-", "−"))


@dataclass(frozen=True, slots=True)
class BucketRow:
    """The solves of the problems in one bucket."""

    bucket: Bucket
    problems: int
    solves: int
    right: int
    paper_calls: int
    exits: Mapping[ExitPath, int]  # solves by where they left; empty for a system without a ladder


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
    accuracy: float | None
    """The mean over problems of the share of seeds that were right; for a complete arm, the mean over the seeds."""
    wilson: Interval | None
    """95 %, each problem counted once: several seeds of a problem say little about other problems."""
    interval: Interval | None  # 95 %, cluster bootstrap by problem
    failed: int  # solves that lost a call to the provider; in `accuracy` they stand as they are
    accuracy_without_failed: float | None
    """The accuracy over the other solves, which is a selection and never the headline."""
    damaged: int  # lines of the trace that could not be read
    retried: int  # solves made again after a failure
    paper_calls: float
    real_calls: float
    classifier_calls: float
    """Counted apart from the solver's."""
    input: float  # the solver's prompt tokens, cached ones included
    cached: float
    output: float
    seconds: float
    cost: RunCost  # over all solves
    exits: Mapping[ExitPath, int]  # solves by exit, every path in order; empty for a system without a ladder
    buckets: tuple[BucketRow, ...]  # all five, easiest first; empty where nothing is labelled
    concordance: Concordance | None  # `None` without a ladder or without labels
    card_tokens: CardTokens | None  # `None` for an arm that read nothing
    tree: TreeSize | None


def metrics_of(arm: Arm, price: Price | None = None) -> Metrics:
    """Every figure of an arm. Without a price, cost is known only for models that nobody sends a bill for."""
    rows = arm.rows
    clusters = _clusters(rows)
    accuracy = _mean_of(clusters)
    problems = len({row.problem for row in rows})
    known: defaultdict[int, list[bool]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            known[row.seed].append(row.correct)
    return Metrics(
        name=arm.name, model=arm.model, problems=problems, solves=len(rows), labelled=sum(map(len, known.values())),
        complete=len(rows) == problems * len({row.seed for row in rows}),
        seeds=tuple(SeedScore(seed, sum(right), len(right)) for seed, right in sorted(known.items())),
        accuracy=accuracy,
        wilson=None if accuracy is None else wilson_of_share(accuracy, len(clusters)),
        interval=cluster_interval(clusters, WHOLE) if clusters else None,
        failed=sum(row.failed for row in rows),
        accuracy_without_failed=_mean_of(_clusters([row for row in rows if not row.failed])),
        damaged=len(arm.damage), retried=arm.retried,
        **{name: math.fsum(getattr(row, name) for row in rows) / (len(rows) or 1) for name in _MEANS},
        cost=cost_of(rows, price or free_price(arm.model)),
        exits=exit_counts(rows), buckets=bucket_rows(rows), concordance=concordance_of(rows),
        card_tokens=_card_tokens(rows), tree=_tree(arm),
    )  # fmt: skip


def _clusters(rows: Sequence[SolveRow]) -> list[tuple[int, int]]:
    """Of every labelled problem, how many of its solves are right, and how many there are."""
    return [(sum(bool(row.correct) for row in solves), len(solves)) for solves in by_problem(rows).values()]


def _mean_of(clusters: Sequence[tuple[int, int]]) -> float | None:
    return math.fsum(right / n for right, n in clusters) / len(clusters) if clusters else None


def cost_of(rows: Iterable[SolveRow], price: Price | None) -> RunCost:
    """The solver's and the classifier's part. Of the latter and of cache writes, traces know no share: priced fresh."""
    found = tuple(rows)

    def total(figure: str) -> int:
        return sum(getattr(row, figure) for row in found)

    roles = [role_cost("solver", total("real_calls"), Usage(total("input"), total("cached"), total("output")), price)]
    if calls := total("classifier_calls"):
        usage = Usage(total("classifier_input"), 0, total("classifier_output"))
        roles.append(role_cost("classifier", calls, usage, price))
    return RunCost(tuple(roles))


def role_cost(role: str, calls: int, usage: Usage, price: Price | None) -> RoleCost:
    """What a role's tokens cost at a price."""
    return RoleCost(role, calls, usage, None if price is None else price.cost(usage))


def _card_tokens(rows: Sequence[SolveRow]) -> CardTokens | None:
    read = [row for row in rows if row.read_tokens]
    if not read:
        return None
    active, most = sum(row.card_tokens for row in read), max(row.card_tokens for row in read)
    every, estimated = sum(row.read_tokens for row in read), any(row.estimated for row in read)
    return CardTokens(active / len(rows), active / len(read), most, every / len(rows), len(read), estimated)


def _tree(arm: Arm) -> TreeSize | None:
    digest, cards, tokens = map(manifest_part(arm.manifest, "tree").get, ("hash", "cards", "tokens"))
    if not isinstance(digest, str) or not isinstance(cards, int):
        return None
    return TreeSize(digest, cards, tokens if isinstance(tokens, int) else None)


def concordance_of(rows: Iterable[SolveRow]) -> Concordance | None:
    """Over the problems with an expected answer; `None` where no such solve climbed a ladder."""
    points = tuple(
        Point(problem, solves[0].name, raw_rate(solves), sum(places) / len(places))
        for problem, solves in by_problem(rows).items()
        if (places := [row.exit.rank for row in solves if row.exit])
    )
    rates, ranks = [point.raw_rate for point in points], [point.exit_rank for point in points]
    found = Concordance(points, pairs(rates), concordant(rates, ranks), spearman(rates, ranks))
    return found if points else None


def bucket_rows(rows: Iterable[SolveRow]) -> tuple[BucketRow, ...]:
    """The bucket table, easiest first; empty where no answer is expected."""
    found: dict[Bucket, list[list[SolveRow]]] = {bucket: [] for bucket in Bucket}
    for solves in by_problem(rows).values():
        found[Bucket.of(raw_rate(solves))].append(solves)
    every = {bucket: [row for solves in problems for row in solves] for bucket, problems in found.items()}
    ladder = any(row.exit for solves in every.values() for row in solves)
    table = []
    for bucket, solves in every.items():
        right, calls = sum(bool(row.correct) for row in solves), sum(row.paper_calls for row in solves)
        exits = exit_counts(solves, ladder=ladder)
        table.append(BucketRow(bucket, len(found[bucket]), len(solves), right, calls, exits))
    return tuple(table) if any(every.values()) else ()


def by_problem(rows: Iterable[SolveRow]) -> dict[str, list[SolveRow]]:
    """The solves of every problem with an expected answer, over the seeds."""
    found: defaultdict[str, list[SolveRow]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            found[row.problem].append(row)
    return dict(found)


def raw_rate(solves: Sequence[SolveRow]) -> float:
    """The share of a problem's attempts that were right, pooled over the seeds."""
    return sum(row.right_attempts for row in solves) / (sum(row.attempts for row in solves) or 1)


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
            found += times * (sum(count for other, count in below.items() if other < rank) + below[rank] / 2)
        below += here
    return found


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; `None` where a side does not vary."""
    import numpy as np

    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    ranks = []
    for values in (left, right):
        _, places, ties = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(ties) - (ties - 1) / 2)[places])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def exit_counts(rows: Iterable[SolveRow], *, ladder: bool = False) -> Mapping[ExitPath, int]:
    """Solves by exit, every path in order; empty for a system without a ladder, unless one is said to be there."""
    found = Counter(row.exit for row in rows if row.exit)
    return {path: found[path] for path in ExitPath} if found or ladder else {}
