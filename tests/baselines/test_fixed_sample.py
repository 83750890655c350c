"""Systems without a ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from kace.baselines.systems import System
from kace.ladder.prompt import Context
from kace.ladder.record import Attempt, Outcome, Solution
from kace.ladder.tiers import TierName
from kace.problems import Problem
from tests.baselines.arena import CONFIG, Solver, lost, run, solve


def answer(solution: Solution) -> str | None:
    return solution.answer


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
    assert answer(solve("best-of-5", Solver(answers))) == winner


@pytest.mark.parametrize("attempts", [2, 5, 16])
def test_every_attempt_is_one_sample_of_its_own(attempts: int):
    model = Solver()
    solution = solve(f"best-of-{attempts}", model)
    assert solution.paper_calls == model.calls == attempts
    assert len({request.sampling.seed for request in model.requests}) == attempts
    assert len({request.messages for request in model.requests}) == 1, "they differ by sampling only"


def test_failed_attempts_count_and_vote_for_nothing():
    solution = solve("best-of-5", Solver([lost(), lost(), lost(), "9", "10"]))
    assert (answer(solution), solution.correct, solution.paper_calls, solution.failed) == ("9", False, 5, True)
    assert [a.outcome for a in solution.attempts].count(Outcome.PROVIDER_ERROR) == 3
    assert [n for n, a in enumerate(solution.attempts) if a.correct] == [4]


@dataclass
class Notes:
    """A source of learned text that remembers what it was asked for."""

    asked: list[TierName]

    async def retrieve(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Context | None
    ) -> Context | None:
        self.asked.append(tier)
        return Context(notes="Count pairs once.")


def test_a_source_is_asked_once_and_every_attempt_reads_what_it_gave():
    source, model = Notes([]), Solver()
    solution = run(System("noted", source, 3), model)
    assert source.asked == [TierName.FLAT]
    assert all("Count pairs once." in text for text in model.texts["FLAT"])
    assert [recall.tokens for recall in solution.recalls] == [4]
