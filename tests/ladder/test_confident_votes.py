"""Votes weighted by confidence and ES exits that need it: what they change, and that the rest stays as it was."""

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
    ConfidencePolicy,
    WithLogprobs,
    best_threshold,
    calibrate_confidence,
    make_policies,
    open_policy,
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
AVERAGE = ConfidenceCalibration(problems=1, attempts=2, mean=-1.0, sd=0.5, scale=1.0, es_exits=2, es_threshold=10.0)
VOTE, ES_EXIT = ConfidencePolicy(AVERAGE, vote=True), ConfidencePolicy(AVERAGE, es_exit=True)


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
    policy: ConfidencePolicy | None = VOTE,
    system: System | None = None,
) -> Solution:
    kit = Kit(WithLogprobs(model_of(answers, told or {})), JUDGE, SAMPLING, policies=make_policies(policy))
    problem = Problem("What is it?", "1")
    return LOOP.run(system.solve(problem, kit) if system else solve_on_ladder(problem, kit))


# Weighted votes


def test_the_surer_of_the_pooled_answers_wins_at_the_same_exit():
    answers = ["1", "2", "3", "3", "1"]
    counted, weighted = run(answers, policy=None), run(answers, {0: sure(1.0), 2: sure(-1.0)})
    assert (counted.answer, counted.correct) == ("3", False)
    assert (weighted.answer, weighted.correct) == ("1", True)
    assert weighted.exit is counted.exit is ExitPath.MS_MAJORITY
    assert weighted.paper_calls == counted.paper_calls == 5


def test_weights_are_exponential_in_the_standardised_mean():
    answers = ["1", "2", "3", "3", "4"]
    assert run(answers, {0: sure(math.log(2) + 0.01)}).answer == "1", "one that counts more than two"
    assert run(answers, {0: sure(math.log(2) - 0.01)}).answer == "3"
    steeper = ConfidencePolicy(AVERAGE.model_copy(update={"scale": 2.0}), vote=True)
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


# The ES exit


def test_an_agreed_answer_leaves_es_only_where_both_attempts_are_sure():
    answers = ["2", "2", "1", "1", "2"]
    assert run(answers, {0: sure(0, tail=10.0), 1: sure(0, tail=15.0)}, ES_EXIT).exit is ExitPath.ES_UNANIMOUS
    climbed = run(answers, {0: sure(0, tail=9.9), 1: sure(0, tail=15.0)}, ES_EXIT)
    assert (climbed.exit, climbed.answer, climbed.paper_calls) == (ExitPath.MS_MAJORITY, "1", 5)


def test_agreement_alone_decides_where_confidence_is_not_known_and_above_es():
    unsure = sure(0, tail=1.0)
    assert run(["1", "1"], {0: None, 1: unsure}, ES_EXIT).exit is ExitPath.ES_UNANIMOUS
    untold = ConfidencePolicy(AVERAGE.model_copy(update={"es_threshold": None}), es_exit=True)
    assert run(["1", "1"], {0: unsure, 1: unsure}, untold).exit is ExitPath.ES_UNANIMOUS
    everywhere = dict.fromkeys(range(10), unsure)
    assert run(["1", "2", "1", "1", "2"], everywhere, ES_EXIT).exit is ExitPath.MS_MAJORITY


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


def test_the_threshold_separates_right_from_wrong_agreed_answers():
    tails = {"a": ("1", 20.0), "b": ("1", 18.0), "c": ("2", 12.0), "d": ("1", 11.0), "e": ("2", 5.0)}
    solutions = [
        solved([answer, answer], {0: sure(0.1, tail), 1: sure(0, 30.0)}, name) for name, (answer, tail) in tails.items()
    ]
    found = calibrate_confidence(solutions)
    assert found is not None
    assert (found.es_exits, found.es_threshold) == (5, 18.0)


@pytest.mark.parametrize(
    ("told", "threshold"),
    [
        ([], None),
        ([(3.0, True), (2.0, True)], None),
        ([(3.0, False), (2.0, False)], None),
        ([(3.0, False), (2.0, True)], None),  # the surer are wrong: no threshold helps
        ([(3.0, True), (2.0, False)], 3.0),
        ([(5.0, True), (4.0, False), (4.0, True), (1.0, False)], 4.0),  # of equals the lowest
        ([(4.0, True), (4.0, False)], None),
    ],
)
def test_a_threshold_is_set_only_where_it_tells_right_from_wrong(
    told: list[tuple[float, bool]], threshold: float | None
):
    assert best_threshold(told) == threshold


# Runs

PROBLEMS = tuple(Problem(f"Number {n}?", "1", label=f"n{n}") for n in range(6))


def config(**flags: object) -> Config:
    return load_config({"model": "scripted/sure", **flags}, env={})


def solve_in(folder: Path, settings: Config, model: Scripted) -> list[Solution]:
    with Run(folder, manifest_of(settings)) as opened:
        todo = [problem for problem in PROBLEMS if opened.finished(problem, settings.seed) is None]

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

    confident = config(vote="confidence", es_exit="confident", confidence_from=train)
    model = model_of(ANSWERED, TELLING)
    weighted = solve_in(test, confident, model)
    assert {(solution.answer, solution.policies) for solution in weighted} == {
        ("1", ("vote=confidence", "es_exit=confident"))
    }
    calls = model.calls
    assert solve_in(test, confident, model) == weighted and model.calls == calls
    named = json.loads((test / "run.json").read_text())["config"]
    calibration = calibrate_confidence(recorded)
    assert calibration is not None
    assert (named["vote"], named["es_exit"], named["logprobs"]) == ("confidence", "confident", True)
    assert named["confidence"] == calibration.model_dump()

    with pytest.raises(UsageError, match="'vote'"):
        solve_in(test, config(logprobs=True), model)


def test_a_manifest_without_policies_is_as_it_was(tmp_path: Path):
    named = manifest_of(config())["config"]
    assert isinstance(named, dict)
    assert not {"logprobs", "vote", "es_exit", "confidence", "confidence_from"} & named.keys()


def test_every_profile_has_them_off():
    for profile in ("default", "paper"):
        assert open_policy(config(profile=profile)) is None and not config(profile=profile).asks_logprobs


@pytest.mark.parametrize("policy", [{"vote": "confidence"}, {"es_exit": "confident"}])
def test_a_policy_without_a_calibration_says_how_to_get_one(policy: dict[str, str], tmp_path: Path):
    with pytest.raises(UsageError, match="needs a calibration") as refused:
        open_policy(config(**policy))
    assert "confidence_from=RUN" in str(refused.value.fix)
    solve_in(tmp_path, config(), model_of(ANSWERED, {}))
    with pytest.raises(UsageError, match="no confidence to calibrate by"):
        open_policy(config(**policy, confidence_from=tmp_path))
    with pytest.raises(UsageError, match=r"no traces\.jsonl"):
        open_policy(config(**policy, confidence_from=tmp_path / "nowhere"))


def test_one_problem_is_solved_by_the_same_policies(tmp_path: Path):
    solve_in(tmp_path, config(logprobs=True), model_of(ANSWERED, TELLING))
    solution = solve("?", model_of(ANSWERED, TELLING), vote="confidence", confidence_from=tmp_path)
    assert (solution.answer, solution.policies) == ("1", ("vote=confidence",))
