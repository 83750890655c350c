"""Which of two arms is better, or that it cannot be told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import truediv

from kace.errors import UsageError
from kace.evaluation.arm import Arm, SolveRow
from kace.evaluation.stats import Interval, cluster_interval, holm, mcnemar, sign_flip, sum_law, t_quantile
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
    seeds: tuple[int, ...]
    pairs: int  # solves of both arms with the same problem and seed, and a known answer
    base_only: int  # solves of the base without a partner
    other_only: int
    base_accuracy: float  # over the paired solves only
    other_accuracy: float
    difference: float  # the mean over problems; above zero, the other arm did better than the base
    interval: Interval
    """95 %, cluster bootstrap by problem, for this comparison alone; it holds zero wherever `p` is above 5 %."""
    test: str  # which exact test gave `p`, for people
    p: float  # two-sided
    adjusted: float
    """`p` after Holm's correction for the number of arms compared with the base; `p` itself where it is one."""
    compared: int  # how many arms were compared with the base
    gained: tuple[Change, ...]  # problems on which the other arm did better, largest first
    lost: tuple[Change, ...]
    mdd: float | None
    """The smallest difference that this many problems would call at 5 % four times in five, given how much problems
    vary here; `None` where no difference could be called."""
    notes: tuple[str, ...] = ()  # what a reader must know beside the figures

    @property
    def distinguishable(self) -> bool:
        """Whether the difference may be called, at 5 % over all arms compared."""
        return self.adjusted <= ALPHA

    @property
    def sentence(self) -> str:
        """What the figures mean, in one plain sentence."""
        low, high = self.interval
        size = counted(self.n, "problem") + (f" and {len(self.seeds)} seeds" if len(self.seeds) > 1 else "")
        found = (
            f"{points(self.difference)} points (95 % interval {points(low)} to {points(high)}) on {size},"
            f" {counted(len(self.gained), 'problem')} gained and {len(self.lost):,} lost, {self.test} {p_text(self.p)}"
        )
        if self.compared > 1:
            found += f", after Holm's correction for {self.compared} comparisons {p_text(self.adjusted)}"
        if self.distinguishable:
            return f"{self.other} is {'better' if self.difference > 0 else 'worse'} than {self.base}: {found}."
        blind = "so few problems could not tell any difference"
        if self.mdd is not None:
            blind = f"a difference below about {100 * self.mdd:.0f} points would often go unnoticed here"
        return f"{self.other} and {self.base} are not distinguishable at this n: {found}; {blind}."


def compare(base: Arm, other: Arm) -> Comparison:
    """One arm against a base, over the solves that both have. None in common is a `UsageError`."""
    ours, theirs = labelled(base), labelled(other)
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        said = f"{base.name} and {other.name} have no labelled problem and seed in common"
        raise UsageError(said, fix="compare runs of the same data with the same seeds")
    names, base_right, other_right, gains, sizes = [], [], [], [], []  # of each problem
    for _, found in groupby(both, key=lambda key: key[0]):
        keys = list(found)
        before, after = (sum(bool(arm[key].correct) for key in keys) for arm in (ours, theirs))
        names.append((keys[0][0], ours[keys[0]].name))
        base_right.append(before / len(keys))
        other_right.append(after / len(keys))
        gains.append(after - before)
        sizes.append(len(keys))
    n, alone, shares = len(names), (len(ours) - len(both), len(theirs) - len(both)), [*map(truediv, gains, sizes)]
    changes = [Change(*name, by) for name, by in zip(names, shares, strict=True) if by]
    changes.sort(key=lambda change: (-abs(change.by), change.name))
    test, p = _tested(gains, sizes)
    low, high = cluster_interval(zip(gains, sizes, strict=True), SPAN)
    if p > ALPHA:  # with few changes the exact test is stricter than resampling; the two must not be at odds
        low, high = min(low, 0.0), max(high, 0.0)
    return Comparison(
        base=base.name, other=other.name, n=n, seeds=tuple(sorted({seed for _, seed in both})), pairs=len(both),
        base_only=alone[0], other_only=alone[1],
        base_accuracy=math.fsum(base_right) / n,
        other_accuracy=math.fsum(other_right) / n,
        difference=math.fsum(shares) / n,
        interval=Interval(low, high), test=test, p=p, adjusted=p, compared=1,
        gained=tuple(change for change in changes if change.by > 0),
        lost=tuple(change for change in changes if change.by < 0),
        mdd=_detectable(shares, max(sizes)), notes=tuple(_notes(base, other, alone)),
    )  # fmt: skip


def compare_all(base: Arm, others: Sequence[Arm]) -> tuple[Comparison, ...]:
    """Several arms against one base, with Holm's correction for their number."""
    found = [compare(base, other) for other in others]
    adjusted = holm([each.p for each in found])
    return tuple(replace(each, adjusted=p, compared=len(found)) for each, p in zip(found, adjusted, strict=True))


def flipped(differences: Sequence[int]) -> float:
    """The two-sided exact sign-flip p-value of a sum of differences, at any size."""
    changed = Counter(abs(d) for d in differences if d)
    observed, total = abs(sum(differences)), sum(size * times for size, times in changed.items())
    if changed.total() <= ENUMERATED:
        tail = sign_flip(differences if sum(differences) > 0 else [-d for d in differences])
    else:  # flipping signs halves and shifts a sum of terms that are there or not
        terms = [(times, {0: 0.5, size: 0.5}) for size, times in sorted(changed.items())]
        tail = sum_law(terms).at_most((total - observed) // 2)
    return min(1.0, 2 * tail)


def p_text(value: float) -> str:
    """A p-value for people, such as `p = 0.03`."""
    return f"p = {value:.2f}" if value >= 0.1 else f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def labelled(arm: Arm) -> dict[tuple[str, int], SolveRow]:
    """The solves whose answer is known, by problem and seed."""
    return {(row.problem, row.seed): row for row in arm.rows if row.correct is not None}


def _tested(gains: Sequence[int], sizes: Sequence[int]) -> tuple[str, float]:
    """With one pair a problem, McNemar's test, which is the sign-flip of single pairs; else problems flip whole."""
    if max(sizes) > 1:
        return SIGN_FLIP, flipped(gains)
    gained, lost = gains.count(1), gains.count(-1)
    return MCNEMAR, mcnemar(gained, lost) if gained + lost <= ENUMERATED else flipped(gains)


def _detectable(changes: Sequence[float], most: int) -> float | None:
    """The minimum detectable difference, never less than the fewest changes that the exact tests can call."""
    if (n := len(changes)) < FEWEST:
        return None
    # The changes' size about zero, which flipping signs keeps, and one pair more: the exact tests move in steps.
    size = math.sqrt(math.fsum(change**2 for change in changes) / n)
    reach = t_quantile(1 - ALPHA / 2, n - 1) + t_quantile(POWER, n - 1)
    found = max(reach * size / math.sqrt(n) + 1 / (n * most), FEWEST / (n * most))
    return found if found <= 1 else None


def _notes(base: Arm, other: Arm, alone: tuple[int, int]) -> Iterator[str]:
    for arm, rival, left in ((base, other, alone[0]), (other, base, alone[1])):
        if left:
            yield f"{counted(left, 'labelled solve')} of {arm.name} without a partner in {rival.name}: left out"
    for arm in (base, other):
        if failed := sum(row.failed for row in arm.rows):
            yield f"{counted(failed, 'solve')} of {arm.name} lost a call to the provider and count as they are"
        if unlabelled := sum(row.correct is None for row in arm.rows):
            yield f"{counted(unlabelled, 'solve')} of {arm.name} without an expected answer: left out"
        if arm.damage:
            yield f"{counted(len(arm.damage), 'line')} of {arm.name}'s trace cannot be read"
    if base.model != other.model:
        yield f"the solvers differ: {base.model or 'unknown'} and {other.model or 'unknown'}"
    if base.data and other.data and base.data != other.data:
        yield "the two were run on different data; only problems of both are compared"
