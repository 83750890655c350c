"""What an arm's solves add up to: every figure a table or a plot of one system needs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import groupby

from kace.evaluation.arm import Arm, Clusters, SolveRow, clusters_of
from kace.evaluation.stats import Interval, cluster_interval, effective, wilson_of_share
from kace.models.base import Usage
from kace.models.budget import AHEAD, Price, free_price
from kace.solver.manifest import manifest_part
from kace.solver.tiers import ExitPath
from kace.words import counted

WHOLE = Interval(0.0, 1.0)
NO_CARDS = "no cards to show"  # the tree of such an arm is empty, and it solved as the ladder alone does
ProblemSolves = Mapping[str, Sequence[SolveRow]]  # by problem
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
class Concordance:
    """How well the exit predicts the raw rate, over pairs of problems whose raw rates differ."""

    points: tuple[tuple[float, float], ...]  # of each problem, pooled over the seeds: raw rate and mean exit rank
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
    accuracy: float | None  # the mean over problems of the share of seeds that were right
    cluster: str  # what both intervals take as one observation: "problem", "family" or another field
    clusters: int  # how many of them have a known answer
    wilson: Interval | None  # 95 %, each cluster counted once: its problems and seeds say little about others
    interval: Interval | None  # 95 %, cluster bootstrap
    failed: int  # solves that lost a call to the provider; in `accuracy` they stand as they are
    accuracy_without_failed: float | None  # over the other solves, which is a selection and never the headline
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
    exits: Mapping[ExitPath, int]  # solves by exit, every path in order; empty for a system without a ladder
    buckets: tuple[BucketRow, ...]  # all five, easiest first; empty where nothing is labelled
    concordance: Concordance | None  # `None` without a ladder or without labels
    shown: int  # solves that read a card
    abstained: int  # solves that read none though there were eligible ones
    card_tokens: CardTokens | None  # `None` for an arm that read nothing
    tree: Mapping[str, object] | None  # the hash, the number of cards and, where the run recorded them, the tokens
    note: str = ""  # what a reader must know of the arm; mostly nothing


def metrics_of(arm: Arm, price: Price | None = None, clusters: Clusters | None = None) -> Metrics:
    """Every figure of an arm. Without a price, cost is known only for models that nobody sends a bill for."""
    rows, groups, by = arm.rows, by_problem(arm.rows), clusters or clusters_of([arm])
    sizes, right = by.sizes(groups), defaultdict[str, Fraction](Fraction)
    for problem, solves in groups.items():
        right[by.names[problem]] += Fraction(sum(bool(row.correct) for row in solves), len(solves))
    accuracy, problems = _accuracy(arm.rows), len({row.problem for row in rows})
    known: defaultdict[int, list[bool]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            known[row.seed].append(row.correct)
    tree = manifest_part(arm.manifest, "tree")
    sized = isinstance(tree.get("hash"), str) and isinstance(tree.get("cards"), int)
    return Metrics(
        name=arm.name,
        model=arm.model,
        problems=problems,
        solves=len(rows),
        labelled=sum(map(len, known.values())),
        complete=len(rows) == problems * len({row.seed for row in rows}),
        seeds=tuple(SeedScore(seed, sum(right), len(right)) for seed, right in sorted(known.items())),
        accuracy=accuracy,
        cluster=by.field,
        clusters=len(sizes),
        wilson=None if accuracy is None else wilson_of_share(accuracy, effective(sizes.values())),
        interval=cluster_interval([(right[name], size) for name, size in sizes.items()], WHOLE) if sizes else None,
        failed=sum(row.failed for row in rows),
        accuracy_without_failed=_accuracy(row for row in rows if not row.failed),
        damaged=len(arm.damage),
        retried=arm.retried,
        **{name: math.fsum(getattr(row, name) for row in rows) / (len(rows) or 1) for name in _MEANS},
        cost=cost_of(rows, price or free_price(arm.model)),
        exits=_exits(rows, ladder=any(row.exit for row in rows)),
        buckets=bucket_rows(groups),
        concordance=concordance_of(groups),
        shown=sum(bool(row.cards) for row in rows),
        abstained=sum(row.abstained for row in rows),
        card_tokens=_card_tokens(rows),
        tree=tree if sized else None,
        note=NO_CARDS if arm.reads_tree and not tree else "",
    )


def by_problem(rows: Iterable[SolveRow]) -> ProblemSolves:
    """The solves of every problem with an expected answer, over the seeds."""
    found: defaultdict[str, list[SolveRow]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            found[row.problem].append(row)
    return found


def _accuracy(rows: Iterable[SolveRow]) -> float | None:
    shares = [sum(bool(row.correct) for row in solves) / len(solves) for solves in by_problem(rows).values()]
    return math.fsum(shares) / len(shares) if shares else None


def cost_of(rows: Sequence[SolveRow], price: Price | None) -> RunCost:
    """Every role's part. Of what was written to a cache, traces know no share: priced as fresh."""

    def tokens(prefix: str) -> Usage:
        kinds = (f"{prefix}{kind}" for kind in ("input", "cached", "output"))
        return Usage(*(sum(getattr(row, kind) for row in rows) for kind in kinds))

    roles = []
    for role, calls, prefix, in_batches in (
        ("solver", "real_calls", "", "batch_"),
        ("classifier", "classifier_calls", "classifier_", None),
        (AHEAD, "ahead_calls", "ahead_", "ahead_"),
    ):
        made, usage = sum(getattr(row, calls) for row in rows), tokens(prefix)
        batched = Usage() if in_batches is None else tokens(in_batches)
        if made or role == "solver":
            roles.append(RoleCost(role, made, usage, None if price is None else price.mixed(usage, batched)))
    return RunCost(tuple(roles))


def _card_tokens(rows: Sequence[SolveRow]) -> CardTokens | None:
    if not (read := [row for row in rows if row.read_tokens]):
        return None
    active, every = sum(row.card_tokens for row in read), sum(row.read_tokens for row in read)
    most, estimated = max(row.card_tokens for row in read), any(row.estimated for row in read)
    return CardTokens(active / len(rows), active / len(read), most, every / len(rows), len(read), estimated)


def concordance_of(groups: ProblemSolves) -> Concordance | None:
    """Over the problems with an expected answer; `None` where no such solve climbed a ladder."""
    found = []
    for solves in groups.values():
        if places := [row.exit.rank for row in solves if row.exit]:
            found.append((raw_rate(solves), sum(places) / len(places)))
    if not found:
        return None
    rates, ranks = zip(*found, strict=True)
    return Concordance(tuple(found), pairs(rates), concordant(found), spearman(rates, ranks))


def bucket_rows(groups: ProblemSolves, base: ProblemSolves | None = None) -> tuple[BucketRow, ...]:
    """The bucket table, easiest first for `base` or else for the arm itself; empty where no answer is expected."""
    ladder, found = any(row.exit for solves in groups.values() for row in solves), []
    buckets = {problem: Bucket.of(raw_rate(solves)) for problem, solves in (base or groups).items()}
    for bucket in Bucket:
        inside = [solves for problem, solves in groups.items() if buckets.get(problem) is bucket]
        rows = [row for solves in inside for row in solves]
        right, calls = sum(bool(row.correct) for row in rows), sum(row.paper_calls for row in rows)
        found.append(BucketRow(bucket, len(inside), len(rows), right, calls, _exits(rows, ladder=ladder)))
    return tuple(found) if groups else ()


def raw_rate(solves: Sequence[SolveRow]) -> float:
    """The share of a problem's attempts that were right, pooled over the seeds."""
    return sum(row.right_attempts for row in solves) / (sum(row.attempts for row in solves) or 1)


def pairs(rates: Sequence[float]) -> int:
    """Pairs of problems whose raw rates differ: all pairs less those tied at some rate."""
    return math.comb(len(rates), 2) - sum(math.comb(tied, 2) for tied in Counter(rates).values())


def concordant(points: Iterable[tuple[float, float]]) -> float:
    """Pairs of problems whose rates and exit ranks have the same order; equal ranks count half."""
    below: Counter[float] = Counter()
    found = 0.0
    for _, tied in groupby(sorted(points), key=lambda point: point[0]):
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


def _exits(rows: Iterable[SolveRow], *, ladder: bool) -> Mapping[ExitPath, int]:
    found = Counter(row.exit for row in rows)
    return {path: found[path] for path in ExitPath} if ladder else {}
