"""Compares runs: which of two is better, if they are distinguishable at this n."""

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
from kace.runs.metrics import Clusters, ClusterSums, clusters_of
from kace.runs.stats import (
    SHARES,
    Interval,
    cluster_interval,
    effective,
    holm,
    sign_flip,
    t_quantile,
    wilson_of_share,
)
from kace.runs.table import SolveRow, Table
from kace.words import counted, plural, points

ALPHA = 0.05
POWER = 0.8
SPAN = Interval(-1.0, 1.0)
FEWEST = 6  # changed clusters that an exact test needs at 5 %: 2 / 2^6 = 0.03
MCNEMAR = "exact McNemar"
SIGN_FLIP = "exact sign-flip over {}"
DIFFERENT_SOLVERS = "The arms have different solvers: differences are not those of the systems alone."
DIFFERENT_DATA = "The arms were not run on the same problems: comparisons hold for those they share."

Pair = tuple[SolveRow, SolveRow]
"""The same solve in the base and in the other run."""


@dataclass(frozen=True, slots=True)
class Change:
    """A problem on which two runs differ."""

    problem: str
    name: str
    by: float  # the share of its seeds gained; below zero, lost


@dataclass(frozen=True, slots=True)
class CardHarm:
    """The solves that were shown one card, whatever else they were shown."""

    card_id: str
    shown: int
    gained: int
    broken: int

    @property
    def flagged(self) -> bool:
        """Whether it breaks more than it gains."""
        return self.broken > self.gained


@dataclass(frozen=True, slots=True)
class Harm:
    """What showing cards did, over labelled solves that the base has too."""

    shown: int  # solves that were shown a card
    abstained: int  # solves that were shown none though some were eligible
    gained: int  # of those shown: wrong in the base, right here
    broken: int  # of those shown: right in the base, wrong here
    rate: float | None  # the harm rate, broken / shown
    interval: Interval | None
    """95 % Wilson of the rate, each problem counted once. It is widened to the cluster
    bootstrap if clusters are more than a problem."""
    cluster: str  # what was resampled
    cards: tuple[CardHarm, ...]  # the most harmful first

    @property
    def flagged(self) -> tuple[CardHarm, ...]:
        """The cards that break more than they gain."""
        return tuple(card for card in self.cards if card.flagged)

    @property
    def how(self) -> str:
        """How the interval was made."""
        if self.cluster == "problem":
            return "each problem counted once"
        return f"each problem counted once and {plural(self.cluster)} resampled"

    @property
    def words(self) -> str:
        """The figures, as they follow the word cards."""
        text = f"shown on {counted(self.shown, 'solve')}, abstained on {self.abstained:,}"
        if self.rate is None or self.interval is None:
            return text
        low, high = self.interval
        return (
            f"{text}; of those shown {self.gained:,} gained and {self.broken:,} broken,"
            f" harm rate {self.rate:.1%} of shown solves"
            f" (95 % interval {low:.1%} to {high:.1%}, {self.how})"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run against a base, paired by problem and seed.

    Differences are shares: 0.1 is ten points.
    """

    base: str
    other: str
    n: int  # problems with at least one pair
    cluster: str  # what the interval and the test take as one observation
    clusters: int  # how many of them
    seeds: tuple[int, ...]
    pairs: int  # labelled solves that both runs have
    difference: float  # mean over problems; above zero, better than the base
    interval: (
        Interval  # 95 %, cluster bootstrap; holds zero if `p` is above 5 %
    )
    test: str  # the name of the exact test
    p: float  # two-sided
    adjusted: float  # `p` after Holm's correction
    compared: int  # how many runs were compared with the base
    gained: tuple[
        Change, ...
    ]  # problems the other run did better on, largest first
    lost: tuple[Change, ...]
    identical: bool  # whether every paired solve is equally right
    mdd: float | None
    """The smallest difference that this many clusters would call at 5 % four times in
    five; `None` if none."""
    harm: Harm | None = None  # `None` for a run that had no cards to show
    notes: tuple[str, ...] = ()  # what a reader must know beside the figures

    def __repr__(self) -> str:
        return f"<Comparison: {self.sentence}>"

    @property
    def distinguishable(self) -> bool:
        """Whether the difference may be called at 5 % over all runs compared."""
        return self.adjusted <= ALPHA

    @property
    def size(self) -> str:
        """What it rests on, such as `1,000 problems of 58 families`."""
        problems = counted(self.n, "problem")
        if self.cluster == "problem":
            return problems
        return f"{problems} of {counted(self.clusters, self.cluster)}"

    @property
    def sentence(self) -> str:
        """What the figures mean, in one plain sentence."""
        if self.distinguishable:
            word = "better" if self.difference > 0 else "worse"
            return f"{self.other} is {word} than {self.base}: {self._figures}."
        blind = f"so few {plural(self.cluster)} could not tell any difference"
        if self.mdd is not None:
            least = f"{100 * self.mdd:.0f} points"
            blind = f"a difference below about {least} would often go unnoticed here"
        both = f"{self.other} and {self.base}"
        if self.identical:
            return f"{both} are identical: no solve changed on {self._rests_on}; {blind}."
        return (
            f"{both} are indistinguishable at this n: {self._figures}; {blind}."
        )

    @property
    def _rests_on(self) -> str:
        seeds = f" and {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        return self.size + seeds

    @property
    def _figures(self) -> str:
        low, high = self.interval
        text = (
            f"{points(self.difference)} points"
            f" (95 % interval {points(low)} to {points(high)}) on {self._rests_on},"
            f" {counted(len(self.gained), 'problem')} gained"
            f" and {len(self.lost):,} lost, {self.test} {p_text(self.p)}"
        )
        if self.compared > 1:
            text += (
                f", after Holm's correction for {self.compared} comparisons"
                f" {p_text(self.adjusted)}"
            )
        return text


def compare(
    base: Table,
    other: Table,
    clusters: Clusters | None = None,
) -> Comparison:
    """Compare a run with a base over the solves that both have.

    Raises `UsageError` if they have none in common.
    """
    by = clusters or clusters_of((base, other))
    found = _Paired(by)
    for problem, paired in pairs_of(base, other):
        found.add(problem, paired)
    if not found.pairs:
        what = f"{base.name} and {other.name} have no labelled problem and seed in common"
        raise UsageError(
            what, fix="compare runs of the same data with the same seeds"
        )
    moved = found.moved()
    p = found.p_value()
    low, high = cluster_interval(moved, SPAN)
    if p > ALPHA:  # with few changes the exact test is stricter than resampling
        low = min(low, 0.0)
        high = max(high, 0.0)
    n = found.problems
    # McNemar's test is the sign-flip of single pairs.
    test = MCNEMAR
    if found.pairs > moved.total():
        test = SIGN_FLIP.format(plural(by.field))
    changes = sorted(
        found.changes, key=lambda change: (-abs(change.by), change.name)
    )
    notes = []
    for table in (base, other):
        alone = table.counts().labelled - found.pairs
        if alone:
            solves = counted(alone, "labelled solve")
            notes.append(f"{table.name}: {solves} without a partner, left out.")
    notes += warnings_of((base, other))
    return Comparison(
        base=base.name,
        other=other.name,
        n=n,
        cluster=by.field,
        clusters=moved.total(),
        seeds=tuple(sorted(found.seeds)),
        pairs=found.pairs,
        difference=math.fsum(change.by for change in changes) / n,
        interval=Interval(low, high),
        test=test,
        p=p,
        adjusted=p,
        compared=1,
        gained=tuple(change for change in changes if change.by > 0),
        lost=tuple(change for change in changes if change.by < 0),
        identical=not found.differing,
        mdd=_detectable(moved, n, found.most),
        harm=found.harm.result(),
        notes=tuple(notes),
    )


def compare_all(
    base: Table,
    others: Sequence[Table],
    clusters: Clusters | None = None,
) -> tuple[Comparison, ...]:
    """Compare several runs with one base, with Holm's correction for their number."""
    by = clusters or clusters_of((base, *others))
    found = [compare(base, other, by) for other in others]
    adjusted = holm([each.p for each in found])
    return tuple(
        replace(each, adjusted=p, compared=len(found))
        for each, p in zip(found, adjusted, strict=True)
    )


def pairs_of(base: Table, other: Table) -> Iterator[tuple[str, list[Pair]]]:
    """Iterate over problems with the labelled solves that both runs have."""
    either = merge(base.by_problem(), other.by_problem(), key=itemgetter(0))
    for problem, both in groupby(either, key=itemgetter(0)):
        (_, ours), *others = both
        partners = {row.seed: row for _, rows in others for row in rows}
        paired = []
        for row in ours:
            partner = partners.get(row.seed)
            if (
                partner
                and row.correct is not None
                and partner.correct is not None
            ):
                paired.append((row, partner))
        if paired:
            yield problem, paired


class _Paired:
    """Adds up the pairs of two runs, problem by problem."""

    def __init__(self, clusters: Clusters) -> None:
        self.sums = ClusterSums(clusters)
        self.harm = _HarmCounts(clusters)
        self.changes: list[Change] = []
        self.seeds: set[int] = set()
        self.problems = 0
        self.pairs = 0
        self.most = 0  # pairs of one problem
        self.differing = 0  # pairs of which one is right

    def add(self, problem: str, paired: Sequence[Pair]) -> None:
        """Add the pairs of one problem."""
        n = len(paired)
        first = paired[0][0]
        before = 0
        after = 0
        for base, other in paired:
            before += base.correct is True
            after += other.correct is True
            self.differing += base.correct != other.correct
            self.seeds.add(base.seed)
        if before != after:
            change = Change(problem, first.name, (after - before) / n)
            self.changes.append(change)
        self.sums.add(first, after - before, Fraction(after - before, n), 1)
        self.harm.add(paired)
        self.problems += 1
        self.pairs += n
        self.most = max(self.most, n)

    def moved(self) -> Counter[tuple[Fraction | int, int]]:
        """Count the clusters by their change and the number of their problems."""
        found: Counter[tuple[Fraction | int, int]] = Counter()
        for (_, change, size), times in self.sums.alike().items():
            found[change, size] += times
        return found

    def p_value(self) -> float:
        """Return the p-value of the exact test, which flips clusters as a whole."""
        clusters = self.sums.alike().elements()
        return flipped([gain for gain, _, _ in clusters if gain])


class _HarmCounts:
    """Counts what showing cards did, problem by problem."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self.sums = ClusterSums(clusters)
        self.abstained = 0
        self.shown: Counter[str] = Counter()  # by card; "" is any
        self.gained: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.sizes: Counter[int] = (
            Counter()
        )  # problems by solves that show cards

    def add(self, paired: Sequence[Pair]) -> None:
        """Add the pairs of one problem."""
        shown = 0
        broken = 0
        for base, row in paired:
            self.abstained += row.abstained
            if not row.cards:
                continue
            cards = ("", *row.cards)
            shown += 1
            self.shown.update(cards)
            if row.correct and not base.correct:
                self.gained.update(cards)
            elif base.correct and not row.correct:
                broken += 1
                self.broken.update(cards)
        if shown:
            self.sizes[shown] += 1
            self.sums.add(paired[0][0], broken, shown)

    def result(self) -> Harm | None:
        """Return the figures; `None` for a run that had no card to show."""
        shown = self.shown.pop("", 0)
        if not shown and not self.abstained:
            return None
        cards = []
        for card, times in self.shown.items():
            cards.append(
                CardHarm(card, times, self.gained[card], self.broken[card])
            )
        cards.sort(
            key=lambda each: (
                each.gained - each.broken,
                -each.broken,
                each.card_id,
            )
        )
        broken = self.broken[""]
        rate = broken / shown if shown else None
        return Harm(
            shown=shown,
            abstained=self.abstained,
            gained=self.gained[""],
            broken=broken,
            rate=rate,
            interval=None if rate is None else self._interval(rate),
            cluster=self.clusters.field,
            cards=tuple(cards),
        )

    def _interval(self, rate: float) -> Interval:
        # Solves of a problem may break together: each problem is one observation.
        interval = wilson_of_share(rate, effective(self.sizes.elements()))
        if self.clusters.field == "problem":
            return interval
        wider = cluster_interval(self.sums.alike(), SHARES)
        return Interval(
            min(interval.low, wider.low), max(interval.high, wider.high)
        )


def flipped(differences: Sequence[int]) -> float:
    """Return the two-sided exact sign-flip p-value of a sum of differences."""
    if sum(differences) <= 0:
        differences = [-change for change in differences]
    return min(1.0, 2 * sign_flip(differences))


def p_text(value: float) -> str:
    """Format a p-value, such as `p = 0.03`."""
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.2f}" if value >= 0.1 else f"p = {value:.3f}"


def _detectable(
    moved: Counter[tuple[Fraction | int, int]],
    problems: int,
    most: int,
) -> float | None:
    """Return the minimum detectable difference.

    It is never less than the fewest changed clusters that the exact tests can call.
    """
    n = moved.total()
    if n < FEWEST:
        return None
    # The size of the changes about zero, which flipping signs keeps, and one pair more:
    # the exact tests move in steps.
    squares = [float(change) ** 2 for change, _ in moved.elements()]
    size = math.sqrt(math.fsum(squares)) / problems
    reach = t_quantile(1 - ALPHA / 2, n - 1) + t_quantile(POWER, n - 1)
    step = 1 / (problems * most)
    found = max(reach * size + step, FEWEST * step)
    return found if found <= 1 else None


def warnings_of(tables: Sequence[Table]) -> Iterator[str]:
    """Yield where runs differ in what should be alike, and which are incomplete."""
    models = set()
    data = set()
    for table in tables:
        models.add(table.manifest.model)
        data.add(table.manifest.data_hash)
    if len(models) > 1:
        yield DIFFERENT_SOLVERS
    if len(data) > 1:
        yield DIFFERENT_DATA
    for table in tables:
        name = table.name
        counts = table.counts()
        damaged = len(table.damage)
        if not counts.complete:
            yield f"{name} is not complete: some problems are missing on some seeds."
        if 0 < counts.unlabelled < counts.solves:
            some = f"{counts.unlabelled:,} of {counted(counts.solves, 'solve')}"
            yield f"{name}: {some} have no known answer and are in no accuracy."
        if counts.failed:
            solves = counted(counts.failed, "solve")
            yield f"{name}: {solves} lost a call to the provider and count as they are."
        if damaged:
            lines = counted(damaged, "line")
            yield f"{name}: {lines} of the trace could not be read."
