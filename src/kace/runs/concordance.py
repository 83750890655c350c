"""Concordance: how well the exit of a solve tells how hard its problem is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from kace.words import counted

Points = Counter[tuple[float, float]]
"""How many problems, pooled over the seeds, have a raw rate and a mean exit rank."""


@dataclass(frozen=True, slots=True)
class Concordance:
    """How well the exit predicts the raw rate, over pairs of problems whose raw rates differ."""

    points: tuple[tuple[float, float, int], ...]
    """Raw rate and mean exit rank, both pooled over the seeds, and how many problems have them."""
    pairs: int
    concordant: float  # pairs in which the easier problem left earlier; one that left at the same place counts half
    spearman: (
        float | None
    )  # Spearman's rho of raw rate and exit rank; `None` where either does not vary

    @property
    def share(self) -> float | None:
        """The share of pairs that are concordant; a half is what chance gives."""
        return self.concordant / self.pairs if self.pairs else None

    @property
    def words(self) -> str:
        """The share and the rank correlation, as far as they are defined."""
        share = (
            f"{self.share:.1%} of {counted(self.pairs, 'pair')}"
            if self.pairs
            else "no pair to compare"
        )
        return share + (
            ""
            if self.spearman is None
            else f", ρ = {self.spearman:.2f}".replace("-", "−")
        )


def concordance_of(points: Points) -> Concordance | None:
    """Over the problems with an expected answer; `None` where no such solve climbed a ladder."""
    if not points:
        return None
    every = tuple((rate, rank, times) for (rate, rank), times in sorted(points.items()))
    return Concordance(every, pairs(points), concordant(points), spearman(points))


def pairs(points: Points) -> int:
    """Pairs of problems whose raw rates differ: all pairs less those tied at some rate."""
    return math.comb(points.total(), 2) - sum(
        math.comb(tied, 2) for tied in _along(points, 0).values()
    )


def _along(points: Points, axis: int) -> Counter[float]:
    """How many problems have each rate, or each rank."""
    found = Counter[float]()
    for point, times in points.items():
        found[point[axis]] += times
    return found


def concordant(points: Points) -> float:
    """Pairs of problems whose rates and exit ranks have the same order; equal ranks count half."""
    below = Counter[float]()
    found = 0.0
    for _, tied in groupby(sorted(points.items()), key=lambda point: point[0][0]):
        here = Counter({rank: times for (_, rank), times in tied})
        for rank, times in here.items():
            found += times * (
                sum(count for other, count in below.items() if other < rank)
                + below[rank] / 2
            )
        below += here
    return found


def spearman(points: Points) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; `None` where a side does not vary."""
    places = [
        dict[float, int](),
        dict[float, int](),
    ]  # twice the rank of each value less the mean rank: whole numbers
    for axis, place in enumerate(places):
        below = 0
        for value, times in sorted(_along(points, axis).items()):
            place[value] = 2 * below + times - points.total()
            below += times
    told = [
        (places[0][rate], places[1][rank], times)
        for (rate, rank), times in points.items()
    ]
    across, one, other = (
        sum(t * d[i] * d[j] for *d, t in told) for i, j in ((0, 1), (0, 0), (1, 1))
    )
    return across / math.sqrt(one * other) if one and other else None
