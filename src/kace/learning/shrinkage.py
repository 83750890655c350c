"""What few problems can say of a card: its lift as one draw from the lifts of the whole tree.

A card does nothing (with probability `idle`), or its lift is drawn from a normal distribution. The three numbers that
describe the tree (idle share, mean, spread) are unknown too: all their combinations on a grid are weighed by how well
they explain every measured lift. So cards measured on two problems borrow from the others, and where no card of a tree
does anything, the idle share takes them all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kace.learning.effects import CardVotes, ProblemVotes, by_problem, effect_of

IDLE = np.linspace(0.05, 0.95, 10)
MEANS = np.linspace(-0.6, 0.9, 31)
SPREADS = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.45])
MEAN_SCALE = 0.3
SPREAD_SCALE = 0.3
"""Before any data, lifts of more than 60 points either way are rare."""
LEVEL = 1.959964
DIGITS = 4
"""The last bits of a sum differ between machines, and a replayed run must give the identical tree."""


class Posterior(NamedTuple):
    """What is believed of a card's lift after measuring the whole tree."""

    effect: float
    low: float
    high: float
    """The middle 95 %, by mean and standard deviation."""
    helps: float
    """The probability that the lift is above zero."""
    harms: float
    """The probability that it is below."""


def shrink(
    measured: Mapping[str, Iterable[CardVotes]], also: Sequence[str] = ()
) -> dict[str, Posterior]:
    """The posterior of every measured card, and of the unmeasured ones in `also`, which know only their tree."""
    fair = {
        name: [vote for vote in votes if vote.table.weight]
        for name, votes in measured.items()
    }
    cards = {
        name: (effect_of(votes), by_problem(votes).values())
        for name, votes in fair.items()
        if votes
    }
    between = _between_problems(cards.values())
    lifts = np.array([lift for lift, _ in cards.values()])
    errors = np.array([_variance(problems, between) for _, problems in cards.values()])
    grid = np.array(list(product(IDLE, MEANS, SPREADS)))
    idle, mean, spread = grid.T[:, :, None]
    total = spread**2 + errors
    none = np.log(idle) + _log_normal(lifts, 0.0, errors)
    some = np.log1p(-idle) + _log_normal(lifts, mean, total)
    both = np.logaddexp(none, some)
    prior = _log_normal(grid[:, 1], 0.0, MEAN_SCALE**2) + _log_normal(
        grid[:, 2], 0.0, SPREAD_SCALE**2
    )
    weight = prior + both.sum(axis=1)
    weight = np.exp(weight - weight.max())
    weight = (weight / weight.sum())[:, None]
    active = np.exp(some - both)
    centre = (mean * errors + lifts * spread**2) / total
    variance = spread**2 * errors / total
    found = dict(zip(cards, _summaries(weight, active, centre, variance), strict=True))
    blank = np.ones((len(grid), 1))
    [unknown] = _summaries(weight, (1 - idle) * blank, mean * blank, spread**2 * blank)
    return {**dict.fromkeys(also, unknown), **found}


def _summaries(
    weight: NDArray[np.float64],
    active: NDArray[np.float64],
    centre: NDArray[np.float64],
    variance: NDArray[np.float64],
) -> list[Posterior]:
    """By column: moments and the share above zero, averaged over the grid."""
    mean = (weight * active * centre).sum(axis=0)
    square = (weight * active * (centre**2 + variance)).sum(axis=0)
    half = LEVEL * np.sqrt(np.maximum(square - mean**2, 0.0))
    above = np.vectorize(_normal_above, otypes=[float])(centre / np.sqrt(variance))
    helps, harms = ((weight * active * part).sum(axis=0) for part in (above, 1 - above))
    rows = np.stack(
        [mean, np.maximum(mean - half, -1), np.minimum(mean + half, 1), helps, harms],
        axis=1,
    ).round(DIGITS)
    return [Posterior(*(float(value) + 0.0 for value in row)) for row in rows]


def _normal_above(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _log_normal(
    x: NDArray[np.float64],
    mean: NDArray[np.float64] | float,
    variance: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    found: NDArray[np.float64] = -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)
    return found


def _variance(problems: Collection[ProblemVotes], between: float) -> float:
    """Of a card's lift: chance within problems, and what differs from problem to problem."""
    within = math.fsum(each.chance for each in problems)
    spread = math.fsum(each.weight * each.weight for each in problems)
    return (within + between * spread) / sum(each.weight for each in problems) ** 2


def _between_problems(cards: Iterable[tuple[float, Collection[ProblemVotes]]]) -> float:
    """How much a lift varies from problem to problem beyond chance: one figure for the tree, by moments."""
    spread = scale = 0.0
    for centre, problems in cards:
        total = sum(each.weight for each in problems)
        for excess, w, chance in problems:
            # E[w (d - centre)^2] = (chance / w) (1 - w / total) + between w (1 - w / total), to first order.
            spread += w * (excess / w - centre) ** 2 - chance / w * (1 - w / total)
            scale += w * (1 - w / total)
    return max(0.0, spread / scale) if scale else 0.0
