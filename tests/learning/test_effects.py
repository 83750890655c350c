"""Fires count what was shown; lifts are what a card does: unbiased, honest about doubt, silent without evidence."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

import pytest

from kace.errors import KaceError
from kace.ladder.policies import Dropout
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.learning.measure import MIN_PROBLEMS, CardVotes, Lift, count_fires, dropout_lifts, lift_of
from kace.models.base import AttemptKey
from tests.learning.solve_records import HS, MS, a_solve, a_try

Rate = Callable[[str, frozenset[str]], float]
"""How often attempts at a problem that see these cards are right."""


def dropout_run(cards: list[str], problems: int, rate: Rate, chance: random.Random, seeds: int = 1) -> list[Solution]:
    """The MS records of a dropout run in a world of coin throws."""
    records = []
    for seed in range(seeds):
        dropout = Dropout(seed=chance.getrandbits(30))
        for name in (f"p{n}" for n in range(problems)):
            tries = []
            for index in range(3):
                hidden = dropout.hidden(AttemptKey(name, seed, "MS", index), cards)
                right = chance.random() < rate(name, frozenset(cards).difference(hidden))
                tries.append(a_try(right, hidden, index=index))
            records.append(a_solve(name, tries, {MS: cards}, seed=seed))
    return records


def paired_lift(
    with_card: Sequence[Sequence[bool]], without: Sequence[Sequence[bool]], problems: Sequence[str] = ()
) -> Lift | None:
    votes = []
    for name, one, other in zip(problems or map(str, range(len(with_card))), with_card, without, strict=True):
        counts = {"right": sum(one), "made": len(one), "right_without": sum(other), "made_without": len(other)}
        votes.append(CardVotes(problem=name, **counts))
    return lift_of("A", "leave_one_out", votes)


def only(records: list[Solution], card_id: str = "A") -> Lift:
    return next(lift for lift in dropout_lifts(records) if lift.card_id == card_id)


def test_dropout_finds_known_effects_without_bias():
    effects = {"GOOD": 0.3, "BAD": -0.2, "IDLE": 0.0}
    chance = random.Random(1)

    def rate(name: str, shown: frozenset[str]) -> float:
        return 0.25 + 0.04 * int(name[1:]) + sum(effects[card] for card in shown)

    runs = [dropout_lifts(dropout_run(list(effects), 11, rate, chance)) for _ in range(150)]
    assert [lift.card_id for lift in runs[0]] == sorted(effects)
    for position, card_id in enumerate(sorted(effects)):
        lifts = [run[position] for run in runs]
        errors = [lift.effect - effects[card_id] for lift in lifts]
        assert abs(fmean(errors)) < 3 * stdev(errors) / len(errors) ** 0.5
        covered = sum(lift.low <= effects[card_id] <= lift.high for lift in lifts)
        assert covered >= 0.9 * len(lifts)


def test_pairs_find_a_known_effect_without_bias():
    chance = random.Random(2)

    def attempts(rate: float) -> list[bool]:
        return [chance.random() < rate for _ in range(5)]

    errors, covered = [], 0
    for _ in range(300):
        rates = [chance.uniform(0.1, 0.6) for _ in range(12)]
        lift = paired_lift([attempts(rate + 0.3) for rate in rates], [attempts(rate) for rate in rates])
        assert lift is not None
        errors.append(lift.effect - 0.3)
        covered += lift.low <= 0.3 <= lift.high
    assert abs(fmean(errors)) < 3 * stdev(errors) / len(errors) ** 0.5
    assert covered >= 0.9 * 300


WORLDS: dict[str, Callable[[random.Random], float]] = {
    "hopeless": lambda chance: 0.03,
    "easy": lambda chance: 0.97,
    "even": lambda chance: 0.5,
    "all or nothing": lambda chance: chance.betavariate(0.3, 0.3),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("problems", [MIN_PROBLEMS, 8, 20])
def test_the_interval_of_a_card_without_effect_holds_zero_as_often_as_said(world: str, problems: int):
    chance = random.Random(f"{world} {problems}")
    called = 0
    for _ in range(300):
        rates = [WORLDS[world](chance) for _ in range(problems)]
        arms = [[[chance.random() < rate for _ in range(3)] for rate in rates] for _ in range(2)]
        lift = paired_lift(*arms)
        assert lift is not None
        called += lift.low > 0 or lift.high < 0
    assert called <= 0.05 * 300 + 2 * (300 * 0.05 * 0.95) ** 0.5


def test_few_problems_give_an_effect_but_no_claim():
    right, wrong = [[True] * 5] * 4, [[False] * 5] * 4
    lift = paired_lift(right, wrong)
    assert lift is not None
    assert (lift.effect, lift.low, lift.high) == (1.0, -1.0, 1.0)
    more = paired_lift([*right, [True] * 5], [*wrong, [False] * 5])
    assert more is not None
    assert more.low > 0


def test_one_problem_that_a_card_solves_is_no_evidence_for_others():
    with_card = [[True] * 10] + [[False] * 10] * 9
    lift = paired_lift(with_card, [[False] * 10] * 10)
    assert lift is not None
    assert lift.effect == pytest.approx(0.1)
    assert lift.low < 0


@pytest.mark.parametrize("right", [True, False])
def test_attempts_that_all_agree_leave_room_for_doubt(right: bool):
    lift = paired_lift([[right] * 3] * 10, [[right] * 3] * 10)
    assert lift is not None
    assert lift.effect == 0
    assert lift.low < -0.05 < 0.05 < lift.high


def test_effects_and_bounds_are_those_of_a_table_worked_by_hand():
    # Differences 1/3, 0, 0, 2/3, 0 of equal weight 3/2: with equal weights the jackknife is the plain standard error.
    with_card = [[True, True, False], [True] * 3, [False] * 3, [True, True, False], [True, False, False]]
    without = [[True, False, False], [True] * 3, [False] * 3, [False] * 3, [True, False, False]]
    lift = paired_lift(with_card, without)
    assert lift is not None
    assert lift.effect == pytest.approx(0.2)
    plain = (1 / 9 + 4 / 9 - 5 * 0.2**2) / 4 / 5
    doubt = 0.5 / 7.5**2
    assert lift.high - lift.low == pytest.approx(2 * 2.7764451 * (plain + doubt) ** 0.5, rel=1e-6)
    assert (lift.shown, lift.hidden, lift.problems) == (15, 15, 5)


def test_pairs_of_one_problem_are_one_piece_of_evidence():
    with_card, without = [[True] * 3] * 10, [[False] * 3] * 10
    apart = paired_lift(with_card, without)
    together = paired_lift(with_card, without, problems=["p", "q"] * 5)
    assert apart is not None
    assert together is not None
    assert (apart.problems, together.problems) == (10, 2)
    assert apart.low > 0
    assert together.low < 0


def test_nothing_to_compare_is_no_lift():
    assert paired_lift([[]], [[True]]) is None
    assert dropout_lifts([a_solve("p", [a_try(True)] * 3, {MS: ["A"]})]) == ()


def test_tiers_are_compared_apart():
    # All wrong at MS, all right at HS, whatever is shown. A was shown mostly at HS: pooled, it would seem to help.
    ms = [a_try(False, ["A"]), a_try(False, ["A"]), a_try(False)]
    hs = [a_try(True, tier=HS), a_try(True, tier=HS), a_try(True, ["A"], tier=HS)]
    lift = only([a_solve(f"p{n}", [*ms, *hs], {MS: ["A"], HS: ["A"]}) for n in range(6)])
    assert lift.effect == 0


def test_seeds_of_a_problem_are_compared_with_each_other():
    shown = a_solve("p", [a_try(True)] * 3, {MS: ["A"]})
    hidden = a_solve("p", [a_try(False, ["A"])] * 3, {MS: ["A"]}, seed=1)
    lift = only([shown, hidden])
    assert (lift.effect, lift.shown, lift.hidden, lift.problems) == (1.0, 3, 3, 1)


def test_only_attempts_of_tiers_that_read_the_card_count():
    es = [a_try(True, tier=TierName.ES)] * 2
    lift = only([a_solve("p", [*es, a_try(True), a_try(False, ["A"])], {MS: ["A"]})])
    assert (lift.shown, lift.hidden) == (1, 1)


def test_what_the_provider_failed_and_what_has_no_answer_says_nothing():
    failed = a_try(False, outcome=Outcome.PROVIDER_ERROR)
    timeout = a_try(False, outcome=Outcome.TIMEOUT)
    lift = only([a_solve("p", [a_try(True), failed, timeout, a_try(False, ["A"])], {MS: ["A"]})])
    assert (lift.shown, lift.hidden) == (2, 1), "a timeout is the model's doing and counts as wrong"
    unlabelled = a_solve("q", [a_try(None), a_try(None, ["A"])], {MS: ["A"]}, correct=None)
    assert dropout_lifts([unlabelled]) == ()


def test_a_run_that_stopped_early_is_refused():
    cut = a_solve("p", [a_try(True), a_try(True, ["A"]), a_try(False, outcome=Outcome.CANCELLED)], {MS: ["A"]})
    with pytest.raises(KaceError, match=r"early stop cut off attempts at P.* without early stop"):
        dropout_lifts([cut])


# How often a card was shown


RIGHT, WRONG = a_try(True), a_try(False)


def test_each_card_is_counted_once_a_solve_and_once_a_tier():
    records = [
        a_solve("p1", [WRONG, a_try(True, tier=HS)], {MS: ["MED", "UNI"], HS: ["UNI", "HARD"]}),
        a_solve("p2", [WRONG], {MS: ["MED", "UNI"]}, correct=False),
        a_solve("p1", [RIGHT], {MS: ["UNI"]}, seed=1),
    ]
    found = {fire.card_id: fire for fire in count_fires(records)}
    assert list(found) == ["HARD", "MED", "UNI"]
    uni = found["UNI"]
    assert (uni.n_shown, uni.shown_correct, uni.shown_wrong) == (3, 2, 1)
    assert uni.tiers == {MS: 3, HS: 1}
    assert uni.problems == ("P1", "P2")
    assert found["HARD"].tiers == {HS: 1}


def test_a_solve_without_cards_fires_nothing():
    assert count_fires([a_solve("p1", [RIGHT])]) == ()


def test_a_solve_without_an_expected_answer_is_neither_won_nor_lost():
    (fire,) = count_fires([a_solve("p1", [a_try(None)], {MS: ["MED"]}, correct=None)])
    assert (fire.n_shown, fire.shown_correct, fire.shown_wrong) == (1, 0, 0)


def test_a_card_hidden_from_every_attempt_of_a_tier_was_not_shown_there():
    tries = [a_try(True, ["MED"]), a_try(True, ["MED", "UNI"]), a_try(True, ["MED"])]
    (fire,) = count_fires([a_solve("p1", tries, {MS: ["MED", "UNI"]})])
    assert fire.card_id == "UNI"


def test_an_attempt_that_was_cancelled_saw_nothing():
    tries = [a_try(True, ["MED"]), a_try(False, outcome=Outcome.CANCELLED)]
    assert count_fires([a_solve("p1", tries, {MS: ["MED"]})]) == ()
