"""Fire statistics count what was shown, and how it ended."""

from __future__ import annotations

from kace.learner.fires import fires
from kace.solver.attempt import Outcome
from tests.learner.solve_records import HS, MS, a_solve, a_try

RIGHT, WRONG = a_try(True), a_try(False)


def test_each_card_is_counted_once_a_solve_and_once_a_tier():
    records = [
        a_solve("p1", [WRONG, a_try(True, tier=HS)], {MS: ["MED", "UNI"], HS: ["UNI", "HARD"]}),
        a_solve("p2", [WRONG], {MS: ["MED", "UNI"]}, correct=False),
        a_solve("p1", [RIGHT], {MS: ["UNI"]}, seed=1),
    ]
    found = {fire.card_id: fire for fire in fires(records)}
    assert list(found) == ["HARD", "MED", "UNI"]
    uni = found["UNI"]
    assert (uni.n_shown, uni.shown_correct, uni.shown_wrong) == (3, 2, 1)
    assert uni.tiers == {MS: 3, HS: 1}
    assert uni.problems == ("P1", "P2")
    assert found["HARD"].tiers == {HS: 1}


def test_a_solve_without_cards_fires_nothing():
    assert fires([a_solve("p1", [RIGHT])]) == ()


def test_a_solve_without_an_expected_answer_is_neither_won_nor_lost():
    (fire,) = fires([a_solve("p1", [a_try(None)], {MS: ["MED"]}, correct=None)])
    assert (fire.n_shown, fire.shown_correct, fire.shown_wrong) == (1, 0, 0)


def test_a_card_hidden_from_every_attempt_of_a_tier_was_not_shown_there():
    tries = [a_try(True, ["MED"]), a_try(True, ["MED", "UNI"]), a_try(True, ["MED"])]
    (fire,) = fires([a_solve("p1", tries, {MS: ["MED", "UNI"]})])
    assert fire.card_id == "UNI"


def test_an_attempt_that_was_cancelled_saw_nothing():
    tries = [a_try(True, ["MED"]), a_try(False, outcome=Outcome.CANCELLED)]
    assert fires([a_solve("p1", tries, {MS: ["MED"]})]) == ()
