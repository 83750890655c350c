"""Votes weighted by confidence: what they change, and that the rest stays as it was."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kace import solve
from kace.baselines.systems import System
from kace.config import Config, load_config
from kace.errors import UsageError
from kace.ladder.ladder import Amend, Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.policies import WithLogprobs, confidence_weights, vote_by_confidence
from kace.ladder.record import Solution
from kace.ladder.session import open_session
from kace.ladder.tiers import ExitPath
from kace.models.base import Confidence, Reply, Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.manifest import manifest_of
from kace.runs.run import Run, solve_all
from kace.runs.table import Table
from tests.exits import place_of, says
from tests.one_loop import JUDGE, LOOP

SAMPLING = load_config(env={}).tier_sampling()
ANSWERED = ["1", "2", "3", "3", "1"]  # by counts 3, whose votes are of the last tier
WEIGHTED = (vote_by_confidence,)


TELLING = {0: Confidence(-0.5), 2: Confidence(-2.0), 3: Confidence(-1.5), 4: Confidence(-0.5)}


def model_of(answers: Sequence[str | None], told: Mapping[int, Confidence | None]) -> Scripted:
    """Attempt at position i gives `answers[i]`, as sure as `told[i]`, by default averagely."""

    class Sure(Scripted):
        async def complete(self, request: Request) -> Reply:
            reply = await super().complete(request)
            sureness = told.get(place_of(request), Confidence(-1.0)) if request.logprobs else None
            return replace(reply, confidence=sureness)

    return Sure(says(answers), name="sure")


def run(
    answers: Sequence[str | None],
    told: Mapping[int, Confidence | None] | None = None,
    amend: tuple[Amend, ...] = WEIGHTED,
    system: System | None = None,
) -> Solution:
    kit = Kit(WithLogprobs(model_of(answers, told or {})), JUDGE, SAMPLING, amend=amend)
    problem = Problem("What is it?", "1")
    return LOOP.run(system.solve(problem, kit) if system else solve_on_ladder(problem, kit))


def test_the_surer_of_the_pooled_answers_wins_at_the_same_exit():
    counted, weighted = run(ANSWERED, TELLING, ()), run(ANSWERED, TELLING)
    assert (counted.answer, counted.correct) == ("3", False)
    assert (weighted.answer, weighted.correct) == ("1", True)
    assert weighted.exit is counted.exit is ExitPath.MS_MAJORITY
    assert weighted.paper_calls == counted.paper_calls == 5


def test_weights_are_exponential_in_the_logprob_standardised_over_the_solve():
    told = {0: Confidence(-0.5), 1: Confidence(-1.5), 2: None, 3: Confidence(-9.0), 4: Confidence(-1.5)}
    attempts = run(["1", "2", "3", None, "4"] + ["5"] * 5, told).attempts[:5]
    middle, spread = -7 / 6, math.sqrt(2) / 3
    right = [math.exp((logprob - middle) / spread) for logprob in (-0.5, -1.5)]
    assert confidence_weights(attempts)[:3] == pytest.approx([*right, 1.0]), "without confidence, the average"
    assert confidence_weights(run(["1", "1"]).attempts) == [1.0, 1.0], "without differences, counts"


def test_ties_go_as_in_the_vote_of_the_tier():
    assert run(ANSWERED).answer == "3"
    assert run(["1", "2", "3", "4", "5", "2", "3", "6", "7", "8"]).answer == "2", "the earlier of equals"


def test_where_no_two_agree_the_surest_attempt_is_believed():
    solution = run([str(n) for n in range(1, 11)], {6: Confidence(-0.5)})
    assert (solution.exit, solution.answer) == (ExitPath.FALLBACK_LAST_HS, "7")
    assert run([None] * 10).answer is None


def test_a_fixed_sample_is_weighted_too():
    best = System("best-of-3", attempts=3)
    assert run(["2", "2", "1"], {2: Confidence(-0.1)}, system=best).answer == "1"
    assert run(["2", "2", "1"], {2: Confidence(-0.1)}, (), best).answer == "2"


def test_the_trace_names_policies_and_carries_confidence_only_where_they_are_asked_for():
    weighted = json.loads(run(["1", "1"], {0: None}).model_dump_json())
    assert weighted["policies"] == ["vote=confidence"]
    assert "confidence" not in weighted["attempts"][0]
    assert weighted["attempts"][1]["confidence"] == {"logprob": -1.0}
    assert Solution.model_validate(weighted).attempts[1].confidence == Confidence(-1.0)
    plain = LOOP.run(solve_on_ladder(Problem("?", "1"), Kit(model_of(["1", "1"], {}), JUDGE, SAMPLING)))
    assert "policies" not in plain.model_dump() and "confidence" not in plain.attempts[0].model_dump()


def test_a_model_without_is_named_once(caplog: pytest.LogCaptureFixture):
    model = Scripted(lambda request: "so \\boxed{1}", name="never-sure")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            LOOP.run(solve_on_ladder(Problem("?", "1"), Kit(WithLogprobs(model), JUDGE, SAMPLING)))
    (said,) = caplog.messages
    assert said.startswith("scripted/never-sure gives no usable log-probabilities")


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


def test_a_weighted_run_resumes_and_is_no_run_that_counts(tmp_path: Path):
    confident = config(vote="confidence")
    model = model_of(ANSWERED, TELLING)
    weighted = solve_in(tmp_path, confident, model)
    assert {(solution.answer, solution.policies) for solution in weighted} == {("1", ("vote=confidence",))}
    calls = model.calls
    assert solve_in(tmp_path, confident, model) == weighted and model.calls == calls
    named = json.loads((tmp_path / "run.json").read_text())["config"]
    assert (named["vote"], named["logprobs"]) == ("confidence", True)
    with pytest.raises(UsageError, match="'vote'"):
        solve_in(tmp_path, config(logprobs=True), model)
    one = solve("?", model_of(ANSWERED, TELLING), vote="confidence")
    assert (one.answer, one.policies) == ("1", ("vote=confidence",))
