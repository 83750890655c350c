"""Compares runs: which of two is better, if they are distinguishable at this n."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from kace.errors import UsageError, counted, plural, points
from kace.runs.metrics import Clusters, clusters_of
from kace.runs.stats import (
    Interval,
    cluster_interval,
    effective,
    holm,
    sign_flip,
    wilson,
)
from kace.runs.table import CardUse, Table

ALPHA = 0.05
POWER = 0.8
FEWEST = 6  # changed clusters that an exact test needs at 5 %: 2 / 2^6 = 0.03
MCNEMAR = "exact McNemar"
DIFFERENT_SOLVERS = "The arms have different solvers: differences are not those of the systems alone."
DIFFERENT_DATA = "The arms were not run on the same problems: comparisons hold for those they share."


@dataclass(frozen=True, slots=True)
class Change:
    """A problem on which two runs differ."""

    problem: str
    name: str
    by: float  # the share of its seeds gained; below zero, lost


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
    # Solves that read a card of their problem's family, and those that read none:
    # known where the run's families and those of the training problems are.
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
    def how(self) -> str:
        """How the interval was made."""
        return f"each {self.cluster} counted once"

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
    interval: Interval  # 95 %, cluster bootstrap
    test: str  # the name of the exact test
    p: float  # two-sided
    adjusted: float  # `p` after Holm's correction
    compared: int  # how many runs were compared with the base
    gained: tuple[Change, ...]  # problems done better, largest first
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
    times = Counter(pair["problem"] for pair in pairs)
    names = {pair["problem"]: pair["label"] for pair in pairs}
    gains = Counter(dict.fromkeys(times, 0))
    flips: Counter[str] = Counter()  # by cluster
    for pair in pairs:
        gain = pair["correct"] - pair["was"]
        gains[pair["problem"]] += gain
        flips[by.of(pair["problem"])] += gain
    shares = {problem: gain / times[problem] for problem, gain in gains.items()}
    found = by.sums(shares.items())
    difference = math.fsum(shares.values()) / len(shares)
    p = sign_flip(flips.values())
    changes = []
    for problem, share in shares.items():
        if share:
            name = names[problem] or problem[:8]
            changes.append(Change(problem, name, share))
    changes.sort(key=lambda change: (-abs(change.by), change.name))
    single = len(pairs) == len(found)
    notes = []
    for table in (base, other):
        alone = table.counts().labelled - len(pairs)
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
        seeds=tuple(sorted({pair["seed"] for pair in pairs})),
        pairs=len(pairs),
        difference=difference,
        interval=cluster_interval(found) or Interval(-1.0, 1.0),
        test=MCNEMAR if single else f"exact sign-flip over {plural(by.field)}",
        p=p,
        adjusted=p,
        compared=1,
        gained=tuple(change for change in changes if change.by > 0),
        lost=tuple(change for change in changes if change.by < 0),
        identical=all(pair["correct"] == pair["was"] for pair in pairs),
        mdd=_detectable(found, len(shares), max(times.values())),
        harm=_harm_of(base, other, pairs, by),
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


def pairs_of(base: Table, other: Table) -> list[Any]:
    """Return the labelled solves that both runs have, with what the base made of each."""
    return other.select(
        "SELECT problem, seed, ours.label, ours.correct, theirs.correct AS was,"
        " ours.cards, ours.abstained"
        " FROM solves AS ours JOIN other.solves AS theirs USING (problem, seed)"
        " WHERE ours.correct IS NOT NULL AND theirs.correct IS NOT NULL"
        " ORDER BY problem, seed",
        base=base,
    )


def _harm_of(
    base: Table, other: Table, pairs: Sequence[Any], by: Clusters
) -> Harm | None:
    """Return what cards did; `None` for a run that had no card to show."""
    sizes: Counter[str] = Counter()  # solves that read a card, by cluster
    gained = 0
    broken = 0
    for pair in pairs:
        if pair["cards"] != "[]":
            sizes[by.of(pair["problem"])] += 1
            gained += pair["correct"] > pair["was"]
            broken += pair["correct"] < pair["was"]
    abstained = sum(pair["abstained"] for pair in pairs)
    shown = sizes.total()
    if not shown and not abstained:
        return None
    cards = sorted(
        other.cards(base=base),
        key=lambda card: (card.gained - card.broken, -card.broken, card.card),
    )
    interval = None
    if shown:
        n = effective(sizes.values())
        interval = wilson(broken / shown * n, n)
    return Harm(
        shown=shown,
        abstained=abstained,
        gained=gained,
        broken=broken,
        interval=interval,
        cluster=by.field,
        cards=tuple(cards),
        kinds=tuple(_kinds_of(other, pairs)),
    )


def _kinds_of(other: Table, pairs: Sequence[Any]) -> Iterator[CardUse]:
    """Yield what right cards did, and what wrong ones did, where families are known."""
    known = other.manifest.part("right_cards")
    if not known:
        return
    families = other.problem_field("family")
    for kind in ("a right card", "only wrong cards"):
        counts: Counter[str] = Counter()
        for pair in pairs:
            cards = json.loads(pair["cards"])
            right = known.get(families.get(pair["problem"], ""))
            fits = isinstance(right, list) and any(c in right for c in cards)
            if not cards or fits != (kind == "a right card"):
                continue
            counts["shown"] += 1
            counts["right" if pair["correct"] else "wrong"] += 1
            counts["gained"] += pair["correct"] > pair["was"]
            counts["broken"] += pair["correct"] < pair["was"]
        names = ("shown", "right", "wrong", "gained", "broken")
        yield CardUse(kind, *(counts[name] for name in names))


def p_text(value: float) -> str:
    """Format a p-value, such as `p = 0.03`."""
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.2f}" if value >= 0.1 else f"p = {value:.3f}"


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
        counts = table.counts()
        if not counts.complete:
            yield f"{name} is not complete: some problems are missing on some seeds."
        unlabelled = counts.solves - counts.labelled
        if 0 < unlabelled < counts.solves:
            some = f"{unlabelled:,} of {counted(counts.solves, 'solve')}"
            yield f"{name}: {some} have no known answer and are in no accuracy."
        if counts.failed:
            solves = counted(counts.failed, "solve")
            yield f"{name}: {solves} lost a call to the provider and count as they are."
        damaged = len(table.damage)
        if damaged:
            lines = counted(damaged, "line")
            yield f"{name}: {lines} of the trace could not be read."
