"""Copies are no evidence: what is alike is resampled together, and every figure says what that was."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from kace.errors import UsageError
from kace.problems import Problem
from kace.report.evaluation import evaluation_of, page
from kace.runs.compare import MCNEMAR, compare
from kace.runs.metrics import clusters_of, metrics_of
from kace.runs.stats import cluster_interval, wilson
from kace.runs.table import Table
from tests.learning.solve_records import a_solve
from tests.report.samples import a_run
from tests.runs.few_rows import a_row, an_arm


def families(name: str, *right: tuple[str, int, int]) -> Table:
    """An arm from the name of each family, how many of its problems are right, and how many there are."""
    rows = ((family, number, number < k) for family, k, n in right for number in range(n))
    return an_arm(name, [a_row(f"{family}-{number:02}", one, family=family) for family, number, one in rows])


def test_one_of_two_families_has_all_the_gain():
    """Resampling the two gives 0, 1/2 or 1."""
    base, other = families("tiered", ("a", 0, 20), ("b", 0, 20)), families("kace", ("a", 20, 20), ("b", 0, 20))
    found = compare(base, other)
    assert (found.difference, found.n, found.cluster, found.clusters) == (0.5, 40, "family", 2)
    assert found.interval == pytest.approx((0.0, 1.0))
    assert (found.test, found.p) == ("exact sign-flip over families", 1.0), "two signs, each as likely"
    assert not found.distinguishable
    assert "on 40 problems of 2 families, 20 problems gained" in found.sentence
    assert found.sentence.endswith("no difference can be detected at this n.")
    copies = compare(base, other, clusters_of((base, other), "problem"))
    assert (copies.difference, copies.cluster, copies.clusters, copies.test) == (0.5, "problem", 40, MCNEMAR)
    assert 0.3 < copies.interval.low < 0.4 < 0.6 < copies.interval.high < 0.7
    assert copies.p == pytest.approx(2 / 2**20)
    assert copies.distinguishable


def test_intervals_by_family_hold_the_truth_and_those_by_problem_do_not():
    """Families have a lift of their own, 0.1 on average; problems of one family are alike."""
    chance, times, held, copied = random.Random(2), 80, 0, 0
    for _ in range(times):
        clusters = []
        for _ in range(40):
            lift, size = chance.choice((-0.6, 0.0, 0.0, 0.3, 0.8)), chance.randint(2, 12)
            clusters.append([(chance.random() < abs(lift)) * (1 if lift > 0 else -1) for _ in range(size)])
        low, high = cluster_interval((sum(gains), len(gains)) for gains in clusters)
        held += low <= 0.1 <= high
        low, high = cluster_interval((gain, 1) for gains in clusters for gain in gains)
        copied += low <= 0.1 <= high
    assert 0.88 <= held / times <= 0.99
    assert copied / times < 0.75


def test_accuracy_and_harm_count_copies_together():
    arm = families("tiered", *((f"f{n}", 10 * (n < 4), 10) for n in range(8)))
    found = metrics_of(arm)
    assert (found.accuracy, found.cluster, found.clusters) == (0.5, "family", 8)
    assert found.wilson == pytest.approx(wilson(4, 8))
    assert found.interval is not None and found.interval.high - found.interval.low > 0.6
    alone = metrics_of(arm, clusters=clusters_of([arm], "problem"))
    assert alone.wilson == pytest.approx(wilson(40, 80))
    shown = [a_row(row.problem, row.family != "f0", cards=("CARD",), family=row.family) for row in arm]
    right = an_arm("tiered", [a_row(row.problem, True, family=row.family) for row in arm])
    by = {field: compare(right, an_arm("kace", shown), clusters_of([arm], field)).harm for field in ("problem", None)}
    harm, copied = by[None], by["problem"]
    assert harm is not None and harm.interval and copied is not None and copied.interval
    assert harm.rate == copied.rate == 1 / 8
    assert copied.interval == pytest.approx(wilson(10, 80))
    assert harm.interval == pytest.approx(wilson(1, 8))
    assert "each family counted once" in harm.words


def test_domains_may_be_the_cluster(tmp_path: Path):
    problems = [Problem(f"What is {n} + {n}?", str(2 * n), domain="sums" if n < 3 else "more") for n in range(6)]
    solves = [a_solve(each.id).model_copy(update={"problem": each.id, "domain": each.domain}) for each in problems]
    folder = a_run(tmp_path / "run", solves)
    arm = Table.open(folder)
    assert clusters_of([arm]).field == "problem", "no solve has a family"
    domains = clusters_of([arm], "domain")
    assert Counter(domains.of(row.problem) for row in arm) == {"sums": 3, "more": 3}
    with pytest.raises(UsageError, match="6 of 6 problems have no field 'family'"):
        clusters_of([arm], "family")
    with pytest.raises(UsageError, match="6 of 6 problems have no field 'source'"):
        clusters_of([arm], "source")
    found = evaluation_of([arm], cluster="domain")
    assert (found.cluster, found.clusters) == ("domain", 2)
    together = "all problems and seeds of one domain stay together"
    assert f"Intervals resample 2 domains: {together}; --cluster problem counts each problem by itself." in page(found)


def test_one_solve_without_a_family_leaves_every_problem_by_itself():
    arm = families("tiered", ("a", 2, 4), ("b", 1, 4))
    more = an_arm("kace", [*arm, a_row("z")])
    assert clusters_of([arm]).field == "family"
    assert clusters_of([arm, more]).field == "problem"
