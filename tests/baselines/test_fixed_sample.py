"""Systems without a ladder."""

from __future__ import annotations

import pytest

from kace.ladder.record import Outcome
from kace.ladder.tiers import TierName
from tests.baselines.arena import CONFIG, Solver, lost, solve


def test_one_attempt_without_a_lens_is_drawn_as_the_medium_tier_draws():
    model = Solver(["10"])
    solution = solve("single", model)
    assert (solution.correct, solution.exit, solution.paper_calls, model.calls) == (True, None, 1, 1)
    (request,) = model.requests
    medium = CONFIG.tier_sampling()[TierName.MS]
    assert (request.sampling.temperature, request.sampling.max_tokens) == (medium.temperature, medium.max_tokens)
    assert request.attempt.tier == "FLAT"
    assert solution.attempts[0].lens is None


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["1", "2", "2", "3", "1"], "1"),
        (["3", "2", "2", "1", "1"], "2"),
        ([None, "7", "8", "9", "4"], "7"),
        (["1", "2", "3", "0.5", "1/2"], "0.5"),
        ([None, None, None, None, "4"], "4"),
        ([None] * 5, None),
    ],
)
def test_the_plurality_wins_and_ties_go_to_the_lowest_index(answers: list[str | None], winner: str | None):
    assert solve("best-of-5", Solver(answers)).answer == winner


@pytest.mark.parametrize("attempts", [2, 5, 16])
def test_every_attempt_is_one_sample_of_its_own(attempts: int):
    model = Solver()
    solution = solve(f"best-of-{attempts}", model)
    assert solution.paper_calls == model.calls == attempts
    assert len({request.sampling.seed for request in model.requests}) == attempts
    assert len({request.messages for request in model.requests}) == 1, "they differ by sampling only"


def test_failed_attempts_count_and_vote_for_nothing():
    solution = solve("best-of-5", Solver([lost(), lost(), lost(), "9", "10"]))
    assert (solution.answer, solution.correct, solution.paper_calls, solution.failed) == ("9", False, 5, True)
    assert [a.outcome for a in solution.attempts].count(Outcome.PROVIDER_ERROR) == 3
    assert [n for n, a in enumerate(solution.attempts) if a.correct] == [4]
