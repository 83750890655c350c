"""Which of two arms is better, or that it cannot be told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import merge
from itertools import groupby
from operator import itemgetter

from kace.errors import UsageError
from kace.runs.arm import Arm, Clusters, ClusterSums, SolveRow, clusters_of
from kace.runs.harm import Harm, HarmCounts
from kace.runs.stats import Interval, cluster_interval, holm, sign_flip, t_quantile
from kace.words import counted, plural, points

ALPHA = 0.05
POWER = 0.8
SPAN = Interval(-1.0, 1.0)
FEWEST = 6  # clusters that must change, all the same way, before an exact test calls it at 5 %: 2 / 2^6 = 0.03
MCNEMAR = "exact McNemar"
SIGN_FLIP = "exact sign-flip over {}"


@dataclass(frozen=True, slots=True)
class Change:
    """A problem on which the two arms differ, by the share of its seeds gained, or with a minus sign lost."""

    problem: str
    name: str
    by: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against a base, paired by problem and seed. Differences are shares: 0.1 is ten points."""

    base: str
    other: str
    n: int  # problems with at least one pair
    cluster: str  # what the interval and the test take as one observation: "problem", "family" or another field
    clusters: int  # how many of them
    seeds: tuple[int, ...]
    pairs: int  # solves of both arms with the same problem and seed, and a known answer
    base_only: int  # solves of the base without a partner
    other_only: int
    base_accuracy: float  # over the paired solves only
    other_accuracy: float
    difference: float  # the mean over problems; above zero, the other arm did better than the base
    interval: (
        Interval  # 95 %, cluster bootstrap; it holds zero wherever `p` is above 5 %
    )
    test: str  # which exact test gave `p`, for people
    p: float  # two-sided
    adjusted: float  # `p` after Holm's correction for the number of arms compared with the base
    compared: int  # how many arms were compared with the base
    gained: tuple[
        Change, ...
    ]  # problems on which the other arm did better, largest first
    lost: tuple[Change, ...]
    mdd: float | None
    """The smallest difference that this many clusters would call at 5 % four times in five; `None` where none."""
    harm: Harm | None = (
        None  # what showing cards did; `None` for an arm that had none to show
    )
    notes: tuple[str, ...] = ()  # what a reader must know beside the figures

    def __repr__(self) -> str:
        return f"<Comparison: {self.sentence}>"

    def _repr_html_(self) -> str:
        from kace.markup import tag

        return tag("p", self.sentence)

    @property
    def distinguishable(self) -> bool:
        """Whether the difference may be called, at 5 % over all arms compared."""
        return self.adjusted <= ALPHA

    @property
    def size(self) -> str:
        """On how much it rests, such as `1,000 problems of 58 families`."""
        of = (
            ""
            if self.cluster == "problem"
            else f" of {counted(self.clusters, self.cluster)}"
        )
        return counted(self.n, "problem") + of

    @property
    def sentence(self) -> str:
        """What the figures mean, in one plain sentence."""
        low, high = self.interval
        size = self.size + (
            f" and {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        )
        found = (
            f"{points(self.difference)} points (95 % interval {points(low)} to {points(high)}) on {size},"
            f" {counted(len(self.gained), 'problem')} gained and {len(self.lost):,} lost, {self.test} {p_text(self.p)}"
        )
        if self.compared > 1:
            found += f", after Holm's correction for {self.compared} comparisons {p_text(self.adjusted)}"
        if self.distinguishable:
            return f"{self.other} is {'better' if self.difference > 0 else 'worse'} than {self.base}: {found}."
        blind = f"so few {plural(self.cluster)} could not tell any difference"
        if self.mdd is not None:
            blind = f"a difference below about {100 * self.mdd:.0f} points would often go unnoticed here"
        return f"{self.other} and {self.base} are not distinguishable at this n: {found}; {blind}."


def compare(base: Arm, other: Arm, clusters: Clusters | None = None) -> Comparison:
    """One arm against a base, over the solves that both have. None in common is a `UsageError`."""
    by = clusters or clusters_of((base, other))
    sums = ClusterSums(by)
    harm = HarmCounts(by)
    seeds = set[int]()
    # of problems
    changes = list[Change]()
    shares = Counter[tuple[float, float]]()
    pairs = most = 0
    for problem, paired in pairs_of(base, other):
        n = len(paired)
        first = paired[0][0]
        before, after = (
            sum(pair[side].correct is True for pair in paired) for side in (0, 1)
        )
        shares[before / n, after / n] += 1
        if before != after:
            changes.append(Change(problem, first.name, (after - before) / n))
        sums.add(first, after - before, Fraction(after - before, n), 1)
        harm.add(paired)
        seeds.update(row.seed for row, _ in paired)
        pairs = pairs + n
        most = max(most, n)
    if not pairs:
        said = (
            f"{base.name} and {other.name} have no labelled problem and seed in common"
        )
        raise UsageError(said, fix="compare runs of the same data with the same seeds")
    alike = sums.alike()
    n = shares.total()
    p = flipped([gain for gain, _, _ in alike.elements() if gain])
    moved = Counter[tuple[Fraction | int, int]]()
    for (_, change, size), times in alike.items():
        moved[change, size] += times
    low, high = cluster_interval(moved, SPAN)
    if (
        p > ALPHA
    ):  # with few changes the exact test is stricter than resampling; the two must not be at odds
        low = min(low, 0.0)
        high = max(high, 0.0)
    alone = [
        (arm.name, len(arm.rows) - arm.counts.unlabelled - pairs)
        for arm in (base, other)
    ]
    notes = [
        f"{name}: {counted(k, 'labelled solve')} without a partner, left out."
        for name, k in alone
        if k
    ]
    ordered = sorted(changes, key=lambda change: (-abs(change.by), change.name))
    return Comparison(
        base=base.name,
        other=other.name,
        n=n,
        cluster=by.field,
        clusters=moved.total(),
        seeds=tuple(sorted(seeds)),
        pairs=pairs,
        base_only=alone[0][1],
        other_only=alone[1][1],
        base_accuracy=math.fsum(share for share, _ in shares.elements()) / n,
        other_accuracy=math.fsum(share for _, share in shares.elements()) / n,
        difference=math.fsum(change.by for change in changes) / n,
        interval=Interval(low, high),
        # McNemar's is the sign-flip of single pairs.
        test=SIGN_FLIP.format(plural(by.field)) if pairs > moved.total() else MCNEMAR,
        p=p,
        adjusted=p,
        compared=1,
        gained=tuple(change for change in ordered if change.by > 0),
        lost=tuple(change for change in ordered if change.by < 0),
        mdd=_detectable(moved, n, most),
        harm=harm.found(),
        notes=(*notes, *warnings_of((base, other))),
    )


def pairs_of(
    base: Arm, other: Arm
) -> Iterator[tuple[str, list[tuple[SolveRow, SolveRow]]]]:
    """Of each problem that has some, the solves of both arms with the same seed and a known answer."""
    either = merge(base.by_problem(), other.by_problem(), key=itemgetter(0))
    for problem, both in groupby(either, key=itemgetter(0)):
        ours, *theirs = (solves for _, solves in both)
        partners = (
            {row.seed: row for row in theirs[0] if row.correct is not None}
            if theirs
            else {}
        )
        paired = [
            (row, partners[row.seed])
            for row in ours
            if row.seed in partners and row.correct is not None
        ]
        if paired:
            yield problem, paired


def compare_all(
    base: Arm, others: Sequence[Arm], clusters: Clusters | None = None
) -> tuple[Comparison, ...]:
    """Several arms against one base, with Holm's correction for their number."""
    by = clusters or clusters_of((base, *others))
    found = [compare(base, other, by) for other in others]
    adjusted = holm([each.p for each in found])
    return tuple(
        replace(each, adjusted=p, compared=len(found))
        for each, p in zip(found, adjusted, strict=True)
    )


def flipped(differences: Sequence[int]) -> float:
    """The two-sided exact sign-flip p-value of a sum of differences, at any size."""
    return min(
        1.0,
        2
        * sign_flip(differences if sum(differences) > 0 else [-d for d in differences]),
    )


def p_text(value: float) -> str:
    """A p-value for people, such as `p = 0.03`."""
    return (
        f"p = {value:.2f}"
        if value >= 0.1
        else f"p = {value:.3f}"
        if value >= 0.001
        else "p < 0.001"
    )


def _detectable(
    moved: Counter[tuple[Fraction | int, int]], problems: int, most: int
) -> float | None:
    """The minimum detectable difference, never less than the fewest changed clusters that the exact tests can call."""
    if (n := moved.total()) < FEWEST:
        return None
    # The changes' size about zero, which flipping signs keeps, and one pair more: the exact tests move in steps.
    size = (
        math.sqrt(math.fsum(float(change) ** 2 for change, _ in moved.elements()))
        / problems
    )
    reach = t_quantile(1 - ALPHA / 2, n - 1) + t_quantile(POWER, n - 1)
    found = max(reach * size + 1 / (problems * most), FEWEST / (problems * most))
    return found if found <= 1 else None


def warnings_of(arms: Sequence[Arm]) -> Iterator[str]:
    """Where arms are not alike in what should be alike, and which are not whole."""
    if len({arm.model for arm in arms}) > 1:
        yield "The arms have different solvers: differences are not those of the systems alone."
    if len({arm.data for arm in arms}) > 1:
        yield "The arms were not run on the same problems: comparisons hold for those they share."
    for arm in arms:
        name = arm.name
        solves = len(arm.rows)
        counts = arm.counts
        if not arm.complete:
            yield f"{name} is not complete: some problems are missing on some seeds."
        if 0 < counts.unlabelled < solves:
            some = f"{counts.unlabelled:,} of {counted(solves, 'solve')}"
            yield f"{name}: {some} have no known answer and are in no accuracy."
        if counts.failed:
            yield f"{name}: {counted(counts.failed, 'solve')} lost a call to the provider and count as they are."
        if arm.damage:
            yield f"{name}: {counted(len(arm.damage), 'line')} of the trace could not be read."
