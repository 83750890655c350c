"""Votes weighted by confidence: what they change, and that the rest stays as it was."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kace import solve
from kace.baselines.systems import System
from kace.config import Config, load_config
from kace.errors import UsageError
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.policies import (
    ConfidenceCalibration,
    ConfidentVote,
    WithLogprobs,
    calibrate_confidence,
    open_vote,
)
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.ladder.tiers import ExitPath
from kace.models.base import Confidence, Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, solve_all
from kace.runs.table import Table
from tests.one_loop import JUDGE, LOOP

SAMPLING = load_config(env={}).tier_sampling()
PLACES = {"ES": 0, "MS": 2, "HS": 5, "FLAT": 0}
AVERAGE = ConfidenceCalibration(problems=1, attempts=2, mean=-1.0, sd=0.5)
VOTE = ConfidentVote(AVERAGE)


def sure(z: float | None, tail: float = 12.0) -> Confidence | None:
    """So many standard deviations above the average."""
    return None if z is None else Confidence(AVERAGE.mean + z * AVERAGE.sd, 11.0, tail, 9.0)


def model_of(answers: Sequence[str | None], told: Mapping[int, Confidence | None]) -> Scripted:
    """Attempt at position i gives `answers[i]`, as sure as `told[i]`, by default averagely."""

    def place(request: Request) -> int:
        return PLACES[request.attempt.tier] + request.attempt.index

    def script(request: Request) -> str:
        answer = answers[place(request)]
        return "no idea" if answer is None else f"so \\boxed{{{answer}}}"

    model = Scripted(script, name="sure")
    model.confidence = lambda request: told.get(place(request), sure(0.0))
    return model


def run(
    answers: Sequence[str | None],
    told: Mapping[int, Confidence | None] | None = None,
    vote: ConfidentVote | None = VOTE,
    system: System | None = None,
) -> Solution:
    kit = Kit(WithLogprobs(model_of(answers, told or {})), JUDGE, SAMPLING, amend=(vote.amend,) if vote else ())
    problem = Problem("What is it?", "1")
    return LOOP.run(system.solve(problem, kit) if system else solve_on_ladder(problem, kit))


# Weighted votes


def test_the_surer_of_the_pooled_answers_wins_at_the_same_exit():
    answers = ["1", "2", "3", "3", "1"]
    counted, weighted = run(answers, vote=None), run(answers, {0: sure(1.0), 2: sure(-1.0)})
    assert (counted.answer, counted.correct) == ("3", False)
    assert (weighted.answer, weighted.correct) == ("1", True)
    assert weighted.exit is counted.exit is ExitPath.MS_MAJORITY
    assert weighted.paper_calls == counted.paper_calls == 5


def test_weights_are_exponential_in_the_standardised_mean():
    answers = ["1", "2", "3", "3", "4"]
    assert run(answers, {0: sure(math.log(2) + 0.01)}).answer == "1", "one that counts more than two"
    assert run(answers, {0: sure(math.log(2) - 0.01)}).answer == "3"
    steeper = ConfidentVote(AVERAGE.model_copy(update={"scale": 2.0}))
    assert run(answers, {0: sure(math.log(2) / 2 + 0.01)}, steeper).answer == "1"


def test_ties_go_as_in_the_vote_of_the_tier():
    answers = ["1", "2", "3", "3", "1"]  # two each
    assert run(answers).answer == "3"
    assert run(["1", "2", "3", "4", "5", "2", "3", "6", "7", "8"]).answer == "2", "the earlier of equals"


def test_attempts_without_confidence_count_as_the_average():
    answers = ["1", "2", "3", "3", "1"]
    assert run(answers, {0: None, 2: sure(-0.1)}).answer == "1"
    assert run(answers, {0: None, 2: sure(0.1)}).answer == "3"


def test_where_no_two_agree_the_surest_attempt_is_believed():
    solution = run([str(n) for n in range(1, 11)], {6: sure(1.0)})
    assert (solution.exit, solution.answer) == (ExitPath.FALLBACK_LAST_HS, "7")


def test_nothing_is_elected_where_nobody_answered():
    solution = run([None] * 10)
    assert (solution.exit, solution.answer) == (ExitPath.FALLBACK_LAST_HS, None)


def test_a_single_attempt_far_off_weighs_no_more_than_five_deviations():
    assert run(["1", "2", "3", "3", "1"], {0: sure(9000.0)}).answer == "1"
    assert VOTE.weight(run(["1", "1"], {0: sure(9000.0)}).attempts[0]) == math.exp(5.0)


def test_a_fixed_sample_is_weighted_too():
    best = System("best-of-3", attempts=3)
    assert run(["2", "2", "1"], {2: sure(1.0)}, system=best).answer == "1"
    assert run(["2", "2", "1"], {2: sure(1.0)}, None, best).answer == "2"


# Records


def test_the_trace_names_policies_and_carries_confidence_only_where_they_are_asked_for():
    weighted = json.loads(run(["1", "1"], {0: None}).model_dump_json())
    assert weighted["policies"] == ["vote=confidence"]
    assert "confidence" not in weighted["attempts"][0]
    assert weighted["attempts"][1]["confidence"] == {"logprob": -1.0, "overall": 11.0, "tail": 12.0, "worst": 9.0}
    plain = LOOP.run(solve_on_ladder(Problem("?", "1"), Kit(model_of(["1", "1"], {}), JUDGE, SAMPLING)))
    assert "policies" not in plain.model_dump() and "confidence" not in plain.attempts[0].model_dump()
    solution = run(["1", "1"])
    assert Solution.model_validate_json(solution.model_dump_json()) == solution


def test_a_model_without_is_named_once(caplog: pytest.LogCaptureFixture):
    model = Scripted(lambda request: "so \\boxed{1}", name="never-sure")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            LOOP.run(solve_on_ladder(Problem("?", "1"), Kit(WithLogprobs(model), JUDGE, SAMPLING)))
    (said,) = caplog.messages
    assert said.startswith("scripted/never-sure gives no usable log-probabilities")


# Calibration


def solved(answers: Sequence[str | None], told: Mapping[int, Confidence | None], problem: str) -> Solution:
    return run(answers, told, None).model_copy(update={"problem": problem})


def test_the_average_is_of_attempts_that_answered():
    found = calibrate_confidence([solved(["1", "2", "3", "3", None], {0: sure(2.0), 1: sure(-2.0), 4: sure(9.0)}, "p")])
    assert found is not None
    assert (found.problems, found.attempts, found.mean) == (1, 4, -1.0)
    assert found.sd == pytest.approx(math.sqrt(0.5))
    assert calibrate_confidence([solved(["1", "1"], {0: None, 1: None}, "p")]) is None


# Runs

PROBLEMS = tuple(Problem(f"Number {n}?", "1", label=f"n{n}") for n in range(6))


def config(**flags: object) -> Config:
    return load_config({"model": "scripted/sure", **flags}, env={})


def solve_in(folder: Path, settings: Config, model: Scripted) -> list[Solution]:
    with Run(folder, manifest_of(settings)) as opened:
        todo = [problem for problem in PROBLEMS if opened.solution(problem.id, settings.seed) is None]

        async def work() -> None:
            async with open_session(settings, calls=opened.calls, model=model) as session:
                await solve_all(todo, session.kit, session.window, opened.keep)

        asyncio.run(work())
    return list(Table.open(folder).solutions(texts=False))


ANSWERED, TELLING = ["1", "2", "3", "3", "1"], {0: sure(1.0), 2: sure(-2.0), 3: sure(-1.0), 4: sure(1.0)}


def test_a_training_run_calibrates_a_test_run_which_resumes_and_replays(tmp_path: Path):
    train, test = tmp_path / "train", tmp_path / "test"
    recorded = solve_in(train, config(logprobs=True), model_of(ANSWERED, TELLING))
    assert {solution.answer for solution in recorded} == {"3"}
    manifest = json.loads((train / "run.json").read_text())
    assert manifest["config"]["logprobs"] is True and "vote" not in manifest["config"]

    confident = config(vote="confidence", confidence_from=train)
    model = model_of(ANSWERED, TELLING)
    weighted = solve_in(test, confident, model)
    assert {(solution.answer, solution.policies) for solution in weighted} == {("1", ("vote=confidence",))}
    calls = model.calls
    assert solve_in(test, confident, model) == weighted and model.calls == calls
    named = json.loads((test / "run.json").read_text())["config"]
    calibration = calibrate_confidence(recorded)
    assert calibration is not None
    assert (named["vote"], named["logprobs"]) == ("confidence", True)
    assert named["confidence"] == calibration.model_dump()

    with pytest.raises(UsageError, match="'vote'"):
        solve_in(test, config(logprobs=True), model)


def test_every_profile_counts_votes_and_names_nothing_more():
    for profile in ("default", "paper"):
        plain = config(profile=profile)
        named = manifest_of(plain)["config"]
        assert open_vote(plain) is None and not plain.asks_logprobs
        assert isinstance(named, dict)
        assert not {"logprobs", "vote", "confidence", "confidence_from"} & named.keys()


def test_without_a_calibration_the_error_says_how_to_get_one(tmp_path: Path):
    policy = {"vote": "confidence"}
    with pytest.raises(UsageError, match="needs a calibration") as refused:
        open_vote(config(**policy))
    assert "confidence_from=RUN" in str(refused.value.fix)
    solve_in(tmp_path, config(), model_of(ANSWERED, {}))
    with pytest.raises(UsageError, match="no confidence to calibrate by"):
        open_vote(config(**policy, confidence_from=tmp_path))
    with pytest.raises(UsageError, match=r"no traces\.jsonl"):
        open_vote(config(**policy, confidence_from=tmp_path / "nowhere"))


def test_one_problem_is_solved_by_the_same_policies(tmp_path: Path):
    solve_in(tmp_path, config(logprobs=True), model_of(ANSWERED, TELLING))
    solution = solve("?", model_of(ANSWERED, TELLING), vote="confidence", confidence_from=tmp_path)
    assert (solution.answer, solution.policies) == ("1", ("vote=confidence",))
