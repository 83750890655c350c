"""Where solves leave the ladder against how hard the problems are: the paper's counts, and scipy's."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kace.ladder.tiers import ExitPath
from kace.runs.metrics import Bucket, Metrics, Points, concordance_of, metrics_of, spearman
from kace.runs.table import SolveRow
from tests.runs.few_rows import a_row, an_arm

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), min_size=2, max_size=30)


def counts(points: Points) -> tuple[int, float]:
    found = concordance_of(points)
    return (found.pairs, found.concordant) if found else (0, 0.0)


def at(rates: list[float]) -> Points:
    """Problems at these rates, all of which left at the same place."""
    return Points((rate, 4.0) for rate in rates)


def figures(*rows: SolveRow) -> Metrics:
    return metrics_of(an_arm("a", rows))


def different(n: int) -> list[float]:
    return [(number + 1) / (n + 1) for number in range(n)]


def test_the_papers_386_pairs_are_all_but_8_problems_tied_at_0_and_7_at_1():
    rates = [0.0] * 8 + [1.0] * 7 + different(15)
    assert counts(at(rates))[0] == math.comb(30, 2) - 28 - 21 == 386


def test_the_papers_923_pairs_need_five_ties_between_0_and_1():
    """Its 21 cells never solved are 7 problems at rate 0; with 24 at rate 1, five pairs more must be tied.

    The paper does not say which: here a triple and two pairs of equal rates.
    """
    between = different(19)
    rates = [0.0] * 7 + [1.0] * 24 + between
    assert counts(at(rates))[0] == math.comb(50, 2) - 21 - 276 == 928
    between[1] = between[2] = between[0]
    between[4], between[6] = between[3], between[5]
    assert counts(at([0.0] * 7 + [1.0] * 24 + between))[0] == 923


@given(POINTS)
def test_the_share_is_somers_d_moved_to_between_0_and_1(points: list[tuple[int, int]]):
    rates, ranks = [rate / 4 for rate, _ in points], [rank / 3 for _, rank in points]
    counted = [
        1.0 if (a[0] < b[0]) == (a[1] < b[1]) and a[1] != b[1] else 0.5 if a[1] == b[1] else 0.0
        for place, a in enumerate(points)
        for b in points[:place]
        if a[0] != b[0]
    ]
    pairs, concordant = counts(Points(zip(rates, ranks, strict=True)))
    assert (pairs, concordant) == (len(counted), sum(counted))
    if counted and len(set(ranks)) > 1:
        with np.errstate(all="ignore"):  # its p-value may be none
            d = reference.somersd(rates, ranks).statistic
        assert concordant / pairs == pytest.approx((1 + d) / 2)


@given(POINTS)
def test_spearman_is_scipys(points: list[tuple[int, int]]):
    left, right = [float(a) for a, _ in points], [float(b) for _, b in points]
    found = spearman(Points(zip(left, right, strict=True)))
    if len(set(left)) > 1 and len(set(right)) > 1:
        assert found == pytest.approx(reference.spearmanr(left, right).statistic, abs=1e-12)
    else:
        assert found is None


def test_a_problem_is_pooled_over_its_seeds():
    found = figures(
        a_row("a", seed=0, attempts=2, right=2),
        a_row("a", seed=1, attempts=10, right=1, exit=ExitPath.FALLBACK_LAST_HS, correct=False),
        a_row("b", seed=0, attempts=5, right=0, exit=ExitPath.MS_MAJORITY, correct=False),
        a_row("c", seed=0, attempts=5, right=0, exit=ExitPath.MS_MAJORITY, correct=False),
    ).concordance
    assert found is not None
    assert (found.pairs, found.concordant, found.share) == (2, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rate", "bucket"),
    [
        *((1.0, "EASY"), (0.8, "EASY"), (0.79, "MED-EASY"), (0.5, "MED-EASY"), (0.49, "MED-HARD")),
        *((0.2, "MED-HARD"), (0.19, "HARD"), (0.001, "HARD"), (0.0, "VERY-HARD")),
    ],
)
def test_every_rate_has_its_bucket(rate: float, bucket: str):
    assert Bucket.of(rate) == bucket


def test_the_bucket_table_counts_every_labelled_solve_once():
    chance = random.Random(1)
    rows = [
        a_row(f"p{n}", seed=s, attempts=10, right=chance.randint(0, 10), exit=chance.choice(list(ExitPath)))
        for n in range(40)
        for s in range(3)
    ]
    table = figures(*rows).buckets
    assert [row.bucket for row in table] == list(Bucket)
    assert sum(row.problems for row in table) == 40
    assert sum(sum(row.exits.values()) for row in table) == 120
