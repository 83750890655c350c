"""The harm rate: of the solves that were shown cards, how many are wrong that were right without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kace.runs.arm import Clusters, ClusterSums, SolveRow
from kace.runs.stats import (
    SHARES,
    Interval,
    cluster_interval,
    effective,
    wilson_of_share,
)
from kace.words import counted, plural


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
    """What showing cards did. Counts are solves with a known answer that the base has, too, by problem and seed."""

    shown: int  # solves that read a card
    abstained: int  # solves that read none though there were eligible ones
    gained: int  # of those shown: the base is wrong, the arm right
    broken: int  # of those shown: the base is right, the arm wrong
    rate: float | None  # the harm rate, broken / shown; `None` where nothing was shown
    interval: Interval | None
    """Of the rate, 95 % Wilson, each problem counted once however many seeds it has. Where clusters are more than a
    problem they are resampled, and it is as wide as that, too."""
    cluster: str  # what was resampled
    cards: tuple[CardHarm, ...]  # that were shown, the most harmful first

    @property
    def flagged(self) -> tuple[CardHarm, ...]:
        """The cards that break more than they gain."""
        return tuple(card for card in self.cards if card.flagged)

    @property
    def how(self) -> str:
        """How the interval was made."""
        more = (
            ""
            if self.cluster == "problem"
            else f" and {plural(self.cluster)} resampled"
        )
        return f"each problem counted once{more}"

    @property
    def words(self) -> str:
        """The figures, as they follow the word cards."""
        found = (
            f"shown on {counted(self.shown, 'solve')}, abstained on {self.abstained:,}"
        )
        if self.rate is None or self.interval is None:
            return found
        low, high = self.interval
        rate = f"{self.rate:.1%} of shown solves (95 % interval {low:.1%} to {high:.1%}, {self.how})"
        return f"{found}; of those shown {self.gained:,} gained and {self.broken:,} broken, harm rate {rate}"


class HarmCounts:
    """What showing cards did, counted problem by problem."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self.sums = ClusterSums(clusters)
        self.abstained = 0
        # solves shown cards, by problem and by what changed
        self.sizes = Counter[int]()
        self.changes = Counter[int]()
        self.cards = {change: Counter[str]() for change in (-1, 0, 1)}

    def add(self, paired: Sequence[tuple[SolveRow, SolveRow]]) -> None:
        """Add the solves of a base and of an arm, paired, of one problem."""
        self.abstained += sum(row.abstained for _, row in paired)
        changes = [
            (bool(row.correct) - bool(base.correct), row)
            for base, row in paired
            if row.cards
        ]
        for change, row in changes:
            self.changes[change] += 1
            self.cards[change].update(row.cards)
        if changes:
            self.sizes[len(changes)] += 1
            self.sums.add(
                paired[0][0], sum(change < 0 for change, _ in changes), len(changes)
            )

    def found(self) -> Harm | None:
        """The figures; `None` for an arm that had no card to show."""
        if not self.changes and not self.abstained:
            return None
        broken, same, gained = self.cards.values()
        shown = broken + same + gained
        n = self.changes.total()
        rate = None
        interval = None
        if n:
            rate = self.changes[-1] / n
            # Solves of a problem may break together: one observation, less where some are shown more often.
            interval = wilson_of_share(rate, effective(self.sizes.elements()))
            if self.clusters.field != "problem":
                wider = cluster_interval(self.sums.alike(), SHARES)
                interval = Interval(
                    min(interval.low, wider.low), max(interval.high, wider.high)
                )
        cards = (
            CardHarm(card, shown[card], gained[card], broken[card]) for card in shown
        )
        return Harm(
            shown=n,
            abstained=self.abstained,
            gained=self.changes[1],
            broken=self.changes[-1],
            rate=rate,
            interval=interval,
            cluster=self.clusters.field,
            cards=tuple(
                sorted(
                    cards,
                    key=lambda each: (
                        each.gained - each.broken,
                        -each.broken,
                        each.card_id,
                    ),
                )
            ),
        )
