"""Which of two arms is better, or that it cannot be told."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kace.errors import UsageError
from kace.evaluation.arm import Arm, Row
from kace.evaluation.bootstrap import cluster_interval
from kace.evaluation.lattice import LatticeSum, Terms
from kace.evaluation.stats import Interval, holm, mcnemar, sign_flip, t_quantile
from kace.words import counted, points

ALPHA = 0.05
POWER = 0.8
SPAN = Interval(-1.0, 1.0)
FEWEST = 6
"""Problems that must change, all the same way, before an exact two-sided test calls it at 5 %: 2 / 2^6 = 0.03."""
ENUMERATED = 200
"""Changed problems up to which a p-value is counted in whole numbers; beyond, it is exact to about 1e-13."""
MCNEMAR, SIGN_FLIP = "exact McNemar", "exact sign-flip over problems"


@dataclass(frozen=True, slots=True)
class Change:
    """A problem on which the two arms differ."""

    problem: str
    name: str
    by: float
    """The share of its seeds gained, or with a minus sign lost."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against a base, paired by problem and seed. Differences are shares: 0.1 is ten points."""

    base: str
    other: str
    n: int
    """Problems with at least one pair."""
    seeds: tuple[int, ...]
    pairs: int
    """Solves of both arms with the same problem and seed, and a known answer."""
    base_only: int
    """Solves of the base without a partner."""
    other_only: int
    base_accuracy: float
    """Over the paired solves only."""
    other_accuracy: float
    difference: float
    """The mean over problems; above zero, the other arm did better than the base."""
    interval: Interval
    """95 %, cluster bootstrap by problem, for this comparison alone; it holds zero wherever `p` is above 5 %."""
    test: str
    """Which exact test gave `p`, for people."""
    p: float
    """Two-sided."""
    adjusted: float
    """`p` after Holm's correction for the number of arms compared with the base; `p` itself where it is one."""
    compared: int
    """How many arms were compared with the base."""
    gained: tuple[Change, ...]
    """Problems on which the other arm did better, largest first."""
    lost: tuple[Change, ...]
    mdd: float | None
    """The smallest difference that this many problems would call at 5 % four times in five, given how much problems
    vary here; `None` where no difference could be called."""
    notes: tuple[str, ...] = ()
    """What a reader must know beside the figures."""

    @property
    def distinguishable(self) -> bool:
        """Whether the difference may be called, at 5 % over all arms compared."""
        return self.adjusted <= ALPHA

    @property
    def sentence(self) -> str:
        """What the figures mean, in one plain sentence."""
        found = self._found()
        if not self.distinguishable:
            return f"{self.other} and {self.base} are not distinguishable at this n: {found}{self._blind()}."
        word = "better" if self.difference > 0 else "worse"
        return f"{self.other} is {word} than {self.base}: {found}."

    def _found(self) -> str:
        low, high = self.interval
        size = counted(self.n, "problem") + (f" and {len(self.seeds)} seeds" if len(self.seeds) > 1 else "")
        p = f"{self.test} {p_text(self.p)}"
        if self.compared > 1:
            p += f", after Holm's correction for {self.compared} comparisons {p_text(self.adjusted)}"
        return (
            f"{points(self.difference)} points (95 % interval {points(low)} to {points(high)}) on {size},"
            f" {counted(len(self.gained), 'problem')} gained and {len(self.lost):,} lost, {p}"
        )

    def _blind(self) -> str:
        if self.mdd is None:
            return "; so few problems could not tell any difference"
        return f"; a difference below about {100 * self.mdd:.0f} points would often go unnoticed here"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A problem's paired solves."""

    problem: str
    name: str
    pairs: int
    base: int
    """How many of them the base has right."""
    other: int

    @property
    def gain(self) -> int:
        """Pairs gained less pairs lost."""
        return self.other - self.base

    @property
    def change(self) -> Change:
        """How the problem fared."""
        return Change(self.problem, self.name, self.gain / self.pairs)


def compare(base: Arm, other: Arm) -> Comparison:
    """One arm against a base, over the solves that both have. None in common is a `UsageError`."""
    ours, theirs = _labelled(base), _labelled(other)
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        raise UsageError(
            f"{base.name} and {other.name} have no labelled problem and seed in common",
            fix="compare runs of the same data with the same seeds",
        )
    clusters = _clusters(both, ours, theirs)
    n = len(clusters)
    changes = sorted((c.change for c in clusters if c.gain), key=lambda change: (-abs(change.by), change.name))
    test, p = _tested(clusters)
    return Comparison(
        base=base.name,
        other=other.name,
        n=n,
        seeds=tuple(sorted({seed for _, seed in both})),
        pairs=len(both),
        base_only=len(ours) - len(both),
        other_only=len(theirs) - len(both),
        base_accuracy=math.fsum(c.base / c.pairs for c in clusters) / n,
        other_accuracy=math.fsum(c.other / c.pairs for c in clusters) / n,
        difference=math.fsum(c.gain / c.pairs for c in clusters) / n,
        interval=_interval(clusters, p),
        test=test,
        p=p,
        adjusted=p,
        compared=1,
        gained=tuple(change for change in changes if change.by > 0),
        lost=tuple(change for change in changes if change.by < 0),
        mdd=_detectable(clusters),
        notes=_notes(base, other, len(ours) - len(both), len(theirs) - len(both)),
    )


def compare_all(base: Arm, others: Sequence[Arm]) -> tuple[Comparison, ...]:
    """Several arms against one base, with Holm's correction for their number."""
    found = [compare(base, other) for other in others]
    adjusted = holm([comparison.p for comparison in found])
    return tuple(
        replace(comparison, adjusted=p, compared=len(found)) for comparison, p in zip(found, adjusted, strict=True)
    )


def flipped(differences: Sequence[int]) -> float:
    """The two-sided exact sign-flip p-value of a sum of differences, at any size."""
    changed = Counter(abs(d) for d in differences if d)
    observed, total = abs(sum(differences)), sum(size * times for size, times in changed.items())
    if changed.total() <= ENUMERATED:
        tail = sign_flip(differences if sum(differences) > 0 else [-d for d in differences])
    else:  # flipping signs halves and shifts a sum of terms that are there or not
        terms = [Terms(times, {0: 0.5, size: 0.5}) for size, times in sorted(changed.items())]
        tail = LatticeSum.of(terms).at_most((total - observed) // 2)
    return min(1.0, 2 * tail)


def p_text(value: float) -> str:
    """A p-value for people, such as `p = 0.03`."""
    return f"p = {value:.2f}" if value >= 0.1 else f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def _labelled(arm: Arm) -> dict[tuple[str, int], Row]:
    return {(row.problem, row.seed): row for row in arm.rows if row.correct is not None}


def _clusters(
    both: Sequence[tuple[str, int]], ours: dict[tuple[str, int], Row], theirs: dict[tuple[str, int], Row]
) -> list[Cluster]:
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for key in both:
        found[key[0]].append(key)
    return [
        Cluster(
            problem=problem,
            name=ours[keys[0]].name,
            pairs=len(keys),
            base=sum(bool(ours[key].correct) for key in keys),
            other=sum(bool(theirs[key].correct) for key in keys),
        )
        for problem, keys in found.items()
    ]


def _tested(clusters: Sequence[Cluster]) -> tuple[str, float]:
    """With one pair a problem, McNemar's test, which is the sign-flip of single pairs; else problems flip whole."""
    gains = [cluster.gain for cluster in clusters]
    if any(cluster.pairs > 1 for cluster in clusters):
        return SIGN_FLIP, flipped(gains)
    gained, lost = gains.count(1), gains.count(-1)
    return MCNEMAR, mcnemar(gained, lost) if gained + lost <= ENUMERATED else flipped(gains)


def _interval(clusters: Sequence[Cluster], p: float) -> Interval:
    """With few changes the exact test is stricter than resampling; no reader should find the two at odds."""
    low, high = cluster_interval([(cluster.gain, cluster.pairs) for cluster in clusters], SPAN)
    return Interval(low, high) if p <= ALPHA else Interval(min(low, 0.0), max(high, 0.0))


def _detectable(clusters: Sequence[Cluster]) -> float | None:
    """The minimum detectable difference.

    The usual formula, with the changes' size about zero since that is what flipping signs keeps, and one pair more
    since the exact tests move in steps; never less than the fewest changes that they can call.
    """
    n, most = len(clusters), max(cluster.pairs for cluster in clusters)
    if n < FEWEST:
        return None
    size = math.sqrt(math.fsum((cluster.gain / cluster.pairs) ** 2 for cluster in clusters) / n)
    reach = t_quantile(1 - ALPHA / 2, n - 1) + t_quantile(POWER, n - 1)
    found = max(reach * size / math.sqrt(n) + 1 / (n * most), FEWEST / (n * most))
    return found if found <= 1 else None


def _notes(base: Arm, other: Arm, base_only: int, other_only: int) -> tuple[str, ...]:
    said = [
        f"{counted(alone, 'labelled solve')} of {arm.name} without a partner in {rival.name}: left out"
        for arm, rival, alone in ((base, other, base_only), (other, base, other_only))
        if alone
    ]
    for arm in (base, other):
        if failed := sum(row.failed for row in arm.rows):
            said.append(f"{counted(failed, 'solve')} of {arm.name} lost a call to the provider and count as they are")
        if unlabelled := sum(row.correct is None for row in arm.rows):
            said.append(f"{counted(unlabelled, 'solve')} of {arm.name} without an expected answer: left out")
        if arm.damage:
            said.append(f"{counted(len(arm.damage), 'line')} of {arm.name}'s trace cannot be read")
    if base.model != other.model:
        said.append(f"the solvers differ: {base.model or 'unknown'} and {other.model or 'unknown'}")
    if base.data and other.data and base.data != other.data:
        said.append("the two were run on different data; only problems of both are compared")
    return tuple(said)
