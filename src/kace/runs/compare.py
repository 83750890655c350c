"""Compares runs: which of two is better, if they are distinguishable at this n."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean

from kace.errors import UsageError, counted, plural, points
from kace.runs.metrics import Clusters, clusters_of
from kace.runs.stats import (
    Interval,
    cluster_interval,
    cluster_wilson,
    holm,
    sign_flip,
)
from kace.runs.table import CardUse, SolveRow, Table, cards_of, uses_of

ALPHA = 0.05
POWER = 0.8
FEWEST = 6  # changed clusters that an exact test needs at 5 %: 2 / 2^6 = 0.03
MCNEMAR = "exact McNemar"
DIFFERENT_SOLVERS = "The arms have different solvers: differences are not those of the systems alone."
DIFFERENT_DATA = "The arms were not run on the same problems: comparisons hold for those they share."


@dataclass(frozen=True, slots=True)
class Harm:
    """What showing cards did, over labelled solves that the base has too."""

    shown: int  # solves that were shown a card
    abstained: int  # solves that were shown none though some were eligible
    gained: int  # of those shown: wrong in the base, right here
    broken: int  # of those shown: right in the base, wrong here
    interval: (
        Interval | None
    )  # 95 % Wilson of the rate, each cluster counted once
    cluster: str
    cards: tuple[CardUse, ...]  # the most harmful first
    # Solves that read a card of their problem's family, and those that read none: known
    # where the run's families and those of the training problems are.
    kinds: tuple[CardUse, ...] = ()

    @property
    def rate(self) -> float | None:
        """The harm rate, broken / shown."""
        return self.broken / self.shown if self.shown else None

    @property
    def flagged(self) -> tuple[CardUse, ...]:
        """The cards that break more than they gain."""
        return tuple(card for card in self.cards if card.flagged)

    @property
    def words(self) -> str:
        """The figures, as they follow the word cards."""
        text = f"shown on {counted(self.shown, 'solve')}, abstained on {self.abstained:,}"
        if self.interval is None:
            return text
        low, high = self.interval
        return (
            f"{text}; of those shown {self.gained:,} gained and {self.broken:,} broken,"
            f" harm rate {self.rate:.1%} of shown solves"
            f" (95 % interval {low:.1%} to {high:.1%},"
            f" each {self.cluster} counted once)"
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
    interval: Interval  # 95 %, cluster bootstrap
    test: str  # the name of the exact test
    p: float  # two-sided
    adjusted: float  # `p` after Holm's correction
    compared: int  # how many runs were compared with the base
    gained: tuple[
        str, ...
    ]  # problems done better by name, largest change first
    lost: tuple[str, ...]
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
        """What it rests on, such as `1,000 problems of 58 families and 3 seeds`."""
        text = counted(self.n, "problem")
        if self.cluster != "problem":
            text += f" of {counted(self.clusters, self.cluster)}"
        if len(self.seeds) > 1:
            text += f" and {len(self.seeds)} seeds"
        return text

    @property
    def sentence(self) -> str:
        """What the figures mean, in one plain sentence."""
        if self.identical:
            both = f"{self.other} and {self.base} are identical"
            return f"{both}: no solve changed on {self.size}."
        if self.distinguishable:
            word = "better" if self.difference > 0 else "worse"
            return f"{self.other} is {word} than {self.base}: {self._figures}."
        least = "no difference can be detected at this n"
        if self.mdd is not None:
            size = f"{100 * self.mdd:.0f} points"
            least = f"differences below about {size} often go undetected"
        both = f"{self.other} and {self.base}"
        return (
            f"{both} are indistinguishable at this n: {self._figures}; {least}."
        )

    @property
    def _figures(self) -> str:
        low, high = self.interval
        text = (
            f"{points(self.difference)} points"
            f" (95 % interval {points(low)} to {points(high)}) on {self.size},"
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
    pairs = pairs_of(base, other)
    if not pairs:
        raise UsageError(
            f"{base.name} and {other.name} have no labelled problem and seed in common",
            fix="compare runs of the same data with the same seeds",
        )
    names: dict[str, str] = {}
    gains: dict[str, list[int]] = {}  # of the seeds, by problem
    flips: Counter[str] = Counter()  # by cluster
    for pair in pairs:
        gain = pair.gained - pair.lost
        names[pair.problem] = pair.name
        gains.setdefault(pair.problem, []).append(gain)
        flips[by.of(pair.problem)] += gain
    shares = {problem: fmean(each) for problem, each in gains.items()}
    found = by.sums(shares.items())
    p = sign_flip(flips.values())
    ordered = sorted(shares, key=lambda name: (-abs(shares[name]), names[name]))
    single = len(pairs) == len(found)
    notes = []
    for table in (base, other):
        alone = table.labelled - len(pairs)
        if alone:
            solves = counted(alone, "labelled solve")
            notes.append(f"{table.name}: {solves} without a partner, left out.")
    notes += warnings_of((base, other))
    return Comparison(
        base=base.name,
        other=other.name,
        n=len(shares),
        cluster=by.field,
        clusters=len(found),
        seeds=tuple(sorted({pair.seed for pair in pairs})),
        pairs=len(pairs),
        difference=fmean(shares.values()),
        interval=cluster_interval(found) or Interval(-1.0, 1.0),
        test=MCNEMAR if single else f"exact sign-flip over {plural(by.field)}",
        p=p,
        adjusted=p,
        compared=1,
        gained=tuple(names[each] for each in ordered if shares[each] > 0),
        lost=tuple(names[each] for each in ordered if shares[each] < 0),
        identical=all(pair.correct is pair.was for pair in pairs),
        mdd=_detectable(found, len(shares), max(map(len, gains.values()))),
        harm=_harm_of(other, pairs, by),
        notes=tuple(notes),
    )


def compare_all(
    base: Table,
    others: Sequence[Table],
    clusters: Clusters,
) -> tuple[Comparison, ...]:
    """Compare several runs with one base, with Holm's correction for their number."""
    found = [compare(base, other, clusters) for other in others]
    adjusted = holm([each.p for each in found])
    return tuple(
        replace(each, adjusted=p, compared=len(found))
        for each, p in zip(found, adjusted, strict=True)
    )


def pairs_of(base: Table, other: Table) -> list[SolveRow]:
    """Return the labelled solves that both runs have, with what the base made of each."""
    rows = other.solves(base=base)
    return [row for row in rows if None not in (row.was, row.correct)]


def _harm_of(
    other: Table, pairs: Sequence[SolveRow], by: Clusters
) -> Harm | None:
    """Return what cards did; `None` for a run that had no card to show."""
    shown = [pair for pair in pairs if pair.cards]
    abstained = sum(pair.abstained for pair in pairs)
    if not shown and not abstained:
        return None
    broken = sum(pair.lost for pair in shown)
    interval = None
    if shown:
        sizes = Counter(by.of(pair.problem) for pair in shown)
        interval = cluster_wilson(broken / len(shown), sizes.values())
    known = other.manifest.part("right_cards")
    found = uses_of(cards_of(shown))
    kinds = []
    for pair in shown if known else ():
        listed = known.get(pair.family or "")
        right = listed if isinstance(listed, list) else []
        wrong = [card for card in pair.cards if card not in right]
        for card in wrong:
            found[card].astray += 1
        fits = len(wrong) < len(pair.cards)
        kinds.append(("a right card" if fits else "only wrong cards", pair))
    uses = sorted(
        found.values(),
        key=lambda use: (use.gained - use.broken, -use.broken),
    )
    return Harm(
        shown=len(shown),
        abstained=abstained,
        gained=sum(pair.gained for pair in shown),
        broken=broken,
        interval=interval,
        cluster=by.field,
        cards=tuple(uses),
        kinds=tuple(uses_of(kinds).values()),
    )


def p_text(value: float) -> str:
    """Format a p-value, such as `p = 0.03`."""
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.{2 if value >= 0.1 else 3}f}"


def _detectable(
    clusters: Sequence[tuple[float, int]],
    problems: int,
    most: int,
) -> float | None:
    """Return the minimum detectable difference.

    It is never less than the fewest changed clusters that the exact tests can call.
    """
    if len(clusters) < FEWEST:
        return None
    # The size of the changes about zero, which flipping signs keeps, and one pair more:
    # the exact tests move in steps.
    squares = math.fsum(change**2 for change, _ in clusters)
    normal = NormalDist()
    reach = normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)
    step = 1 / (problems * most)
    found = max(reach * math.sqrt(squares) / problems + step, FEWEST * step)
    return found if found <= 1 else None


def warnings_of(tables: Sequence[Table]) -> Iterator[str]:
    """Yield where runs differ in what should be alike, and which are incomplete."""
    if len({table.manifest.model for table in tables}) > 1:
        yield DIFFERENT_SOLVERS
    if len({table.manifest.data_hash for table in tables}) > 1:
        yield DIFFERENT_DATA
    for table in tables:
        name = table.name
        if not table.complete:
            yield f"{name} is not complete: some problems are missing on some seeds."
        unlabelled = len(table) - table.labelled
        if 0 < unlabelled < len(table):
            some = f"{unlabelled:,} of {counted(len(table), 'solve')}"
            yield f"{name}: {some} have no known answer and are in no accuracy."
        if table.failed:
            solves = counted(table.failed, "solve")
            yield f"{name}: {solves} lost a call to the provider and count as they are."
        if table.damage:
            lines = counted(len(table.damage), "line")
            yield f"{name}: {lines} of the trace could not be read."
