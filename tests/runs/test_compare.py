"""Two arms that do not differ are not called different more often than said; two that do, are; and it says which."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats as reference

from kace.errors import UsageError
from kace.ladder.record import Damage
from kace.runs.compare import MCNEMAR, compare, compare_all
from kace.runs.metrics import clusters_of
from tests.runs.few_rows import MANIFEST, a_row, an_arm, answered, changed, drawn


def columns(*counts: tuple[int, int, int]) -> tuple[list[list[int]], list[list[int]]]:
    """Tables of two arms: so many problems on which the base and the other are right or not."""
    base = [[a] for a, _, n in counts for _ in range(n)]
    other = [[b] for _, b, n in counts for _ in range(n)]
    return base, other


def test_one_seed_is_the_exact_mcnemar_test():
    base, other = columns((0, 1, 9), (1, 0, 2), (1, 1, 12), (0, 0, 7))
    found = compare(answered("tiered", base), answered("kace", other))
    assert (found.n, found.pairs, found.seeds, found.test) == (30, 30, (0,), MCNEMAR)
    assert found.p == found.adjusted == pytest.approx(reference.binomtest(9, 11).pvalue, rel=1e-9)
    assert found.difference == pytest.approx(7 / 30)
    assert found.lost == ("P009", "P010")
    assert found.gained == tuple(f"P00{number}" for number in range(9))
    assert found.interval.low < found.difference < found.interval.high


def test_several_seeds_flip_together():
    chance = random.Random(8)
    base = drawn(chance, [0.4] * 12, 3)
    other = drawn(chance, [0.6] * 12, 3)
    found = compare(answered("tiered", base), answered("kace", other))
    gains = np.array([sum(b) - sum(a) for a, b in zip(base, other, strict=True)])
    known = reference.permutation_test((gains,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert found.test == "exact sign-flip over problems"
    assert found.p == pytest.approx(known.pvalue, rel=1e-9)
    assert found.difference == pytest.approx(gains.sum() / 36)
    assert len(found.seeds) == 3
    assert found.pairs == 36


def test_swapping_the_arms_turns_everything_round():
    chance = random.Random(10)
    left, right = answered("a", drawn(chance, [0.5] * 40, 3)), answered("b", drawn(chance, [0.6] * 40, 3))
    there, back = compare(left, right), compare(right, left)
    assert back.difference == -there.difference
    assert back.interval == pytest.approx((-there.interval.high, -there.interval.low), abs=0.02)
    assert (back.p, back.mdd) == (there.p, there.mdd)
    assert back.gained == there.lost


def test_what_has_no_partner_is_left_out_and_said():
    base = an_arm("tiered", [a_row("a"), a_row("a", seed=1), a_row("b"), a_row("only-here", False)])
    other = an_arm("kace", [a_row("a", False), a_row("b"), a_row("c", None), a_row("b", seed=7, failed=True)])
    found = compare(base, other)
    assert (found.n, found.pairs) == (2, 2)
    said = " / ".join(found.notes)
    assert "tiered: 2 labelled solves without a partner, left out." in said
    assert "kace: 1 labelled solve without a partner, left out." in said
    assert "kace: 1 solve lost a call" in said
    assert "kace: 1 of 4 solves have no known answer" in said
    assert "tiered is not complete" in said


def test_other_solvers_other_data_and_damage_are_said():
    base = an_arm("a", [a_row("a")], {**MANIFEST, "data": {"hash": "x"}})
    other = an_arm("b", [a_row("a")], {"config": {"model": "scripted/other"}, "data": {"hash": "y"}})
    said = " / ".join(compare(base, changed(other, damage=(Damage(2, "bad"),))).notes)
    assert "different solvers" in said
    assert "not run on the same problems" in said
    assert "b: 1 line of the trace could not be read" in said
    assert compare(base, base.named("c")).notes == ()


def test_nothing_in_common_is_an_error_that_says_so():
    with pytest.raises(UsageError, match="no labelled problem and seed in common"):
        compare(an_arm("a", [a_row("a")]), an_arm("b", [a_row("a", seed=1)]))


def test_the_sentence_says_which_is_better():
    base, other = columns((0, 1, 12), (1, 0, 1), (1, 1, 17))
    found = compare(answered("tiered", base), answered("kace", other))
    assert found.distinguishable
    assert found.sentence.startswith("kace is better than tiered: +36.7 points (95 % interval ")
    assert "on 30 problems, 12 problems gained and 1 lost, exact McNemar p = 0.003." in found.sentence
    assert compare(answered("kace", other), answered("tiered", base)).sentence.startswith(
        "tiered is worse than kace: −36.7 points"
    )


def test_the_sentence_says_when_it_cannot_be_told_and_what_would_be_missed():
    base, other = columns((0, 1, 4), (1, 0, 2), (1, 1, 24))
    found = compare(answered("tiered", base), answered("kace", other))
    assert not found.distinguishable
    assert found.sentence.startswith("kace and tiered are indistinguishable at this n: +6.7 points")
    assert found.sentence.endswith("differences below about 26 points often go undetected.")
    assert compare(answered("a", [[1]] * 3), answered("b", [[1]] * 3)).mdd is None


def test_identical_arms_say_so_and_have_no_width():
    table = [[1], [0]] * 15
    found = compare(answered("a", table), answered("b", table))
    assert (found.difference, found.p, found.gained, found.lost) == (0.0, 1.0, (), ())
    assert found.identical and found.interval == (0.0, 0.0)
    assert found.sentence == "b and a are identical: no solve changed on 30 problems."
    swapped = compare(answered("a", [[1, 0], *table]), answered("b", [[0, 1], *table]))
    assert not swapped.identical and "indistinguishable at this n" in swapped.sentence
    assert found.mdd == pytest.approx(6 / 30), "fewer than six changes are never called"


def test_harm_is_not_made_milder_by_the_interval():
    """Four lost of 45 and none gained: the interval ends at zero, and the exact test does not call it."""
    base, other = columns((1, 0, 4), (1, 1, 41))
    found = compare(answered("tiered", base), answered("kace", other))
    assert found.p == pytest.approx(0.125) and not found.distinguishable
    assert found.interval.low < -0.1 and found.interval.high < 0.0


def test_holm_holds_several_arms_to_one_level():
    base, other = columns((0, 1, 7), (1, 0, 0), (1, 1, 23))
    arms = [answered(f"kace-{n}", other) for n in range(4)]
    alone = compare(answered("tiered", base), arms[0])
    assert alone.distinguishable
    found = compare_all(answered("tiered", base), arms, clusters_of(arms))
    assert [c.adjusted for c in found] == pytest.approx([4 * alone.p] * 4)
    assert not found[0].distinguishable
    assert "after Holm's correction for 4 comparisons p = 0.062" in found[0].sentence
    assert compare_all(answered("tiered", base), [], clusters_of([])) == ()


@pytest.mark.parametrize("seeds", [1, 3])
def test_two_runs_of_one_system_are_called_different_at_most_five_times_in_a_hundred(seeds: int):
    chance, called, times = random.Random(12), 0, 300
    for _ in range(times):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(30)]
        arms = [answered(name, drawn(chance, rates, seeds)) for name in "ab"]
        called += compare(*arms).distinguishable
    assert 0 < called / times <= 0.05


def test_the_detectable_difference_is_detected_about_four_times_in_five():
    """Half of the problems gain 0.236 of their seeds on average, which is what the formula names for such runs."""
    chance, called, named, truth, times = random.Random(14), 0, 0.0, 0.0, 150
    for _ in range(times):
        rates = [chance.betavariate(0.6, 0.6) for _ in range(100)]
        better = [min(1.0, rate + 0.236) if chance.random() < 0.5 else rate for rate in rates]
        truth += sum(b - a for a, b in zip(rates, better, strict=True)) / 100 / times
        found = compare(answered("a", drawn(chance, rates, 3)), answered("b", drawn(chance, better, 3)))
        called += found.distinguishable
        named += (found.mdd or 1.0) / times
    assert named == pytest.approx(truth, abs=0.01)
    assert 0.74 <= called / times <= 0.88
