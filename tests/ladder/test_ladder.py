"""Climbing the ladder on a scripted model: every exit, every failure, every order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.answers.equal import Judge, Verdict
from kace.answers.extract import Answer
from kace.config import load_config
from kace.errors import KaceError
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.prompt import Prompts
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import LOCKED, ExitPath, Tier
from kace.models.base import Failure, Finish, ModelError, Reply, Request, Usage
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.exits import place_of, says
from tests.one_loop import JUDGE, LOOP

SAMPLING = load_config(env={}).tier_sampling()


def run(
    model: object, *, expected: str | None = "1", tiers: Sequence[Tier] = LOCKED, prompts: Prompts = "default"
) -> Solution:
    async def climbed(_: Problem) -> Sequence[Tier]:
        return tiers

    kit = Kit(model, JUDGE, SAMPLING, prompts=prompts, tiers=climbed)  # type: ignore[arg-type]
    return LOOP.run(solve_on_ladder(Problem("What is it?", expected), kit))


@pytest.mark.parametrize(
    ("answers", "path", "winner", "calls"),
    [
        (["1", "1"], ExitPath.ES_UNANIMOUS, "1", 2),
        (["1", "2", "3", "3", "1"], ExitPath.MS_MAJORITY, "3", 5),
        (["1", "2", "3", "4", "5", "6", "7", "6", "8", "9"], ExitPath.HS_PLURALITY, "6", 10),
        # 8 and 9 have two votes each at HS; 9 was also the answer of one MS attempt.
        (["1", "2", "3", "4", "9", "8", "9", "8", "9", "7"], ExitPath.HS_PLURALITY, "9", 10),
        (["1", "2", "3", "4", "5", "1", "6", "7", "8", "9"], ExitPath.FALLBACK_PLURALITY, "1", 10),
        (["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"], ExitPath.FALLBACK_LAST_HS, "10", 10),
        (["1", "2", "3", "4", "5", "6", "7", "8", "9", None], ExitPath.FALLBACK_LAST_HS, "9", 10),
        (["1", "2", None, "4", *[None] * 6], ExitPath.FALLBACK_LAST_HS, None, 10),
        ([None] * 10, ExitPath.FALLBACK_LAST_HS, None, 10),
        (["1", None, None, None, "1", "2", "3", "4", "5", None], ExitPath.FALLBACK_PLURALITY, "1", 10),
    ],
)
def test_every_exit(answers: list[str | None], path: ExitPath, winner: str | None, calls: int):
    model = Scripted(says(answers))
    solution = run(model)
    assert solution.exit is path
    assert solution.answer == winner
    assert solution.paper_calls == solution.real_calls == model.calls == calls


def test_an_unlabelled_problem_has_no_verdict_and_a_missing_answer_is_wrong():
    assert run(Scripted(says(["1", "1"])), expected=None).correct is None
    assert run(Scripted(says([None] * 10))).correct is False


class Faulty(Scripted):
    """A model whose very first attempt fails in a chosen way."""

    def __init__(self, error: Exception) -> None:
        super().__init__(lambda request: "\\boxed{1}")
        self.error = error

    async def complete(self, request: Request) -> Reply:
        if place_of(request) == 0:
            raise self.error
        await asyncio.sleep(0.01)
        return await super().complete(request)


def test_a_failed_call_is_data_and_its_siblings_go_on():
    solution = run(Faulty(ModelError(Failure.TIMEOUT, "too slow")))
    assert solution.exit is ExitPath.MS_MAJORITY
    assert [a.outcome for a in solution.attempts] == [Outcome.TIMEOUT, *[Outcome.ANSWERED] * 4]
    assert solution.attempts[0].detail == "too slow"
    assert not solution.failed, "a timeout is the model's doing"
    assert run(Faulty(ModelError(Failure.PROVIDER_ERROR, "502"))).failed


def test_what_the_operator_must_mend_stops_the_solve_after_paid_siblings_finish():
    model = Faulty(KaceError("no such key"))
    with pytest.raises(KaceError, match="no such key"):
        run(model)
    assert model.calls == 1


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [(Finish.LENGTH, Outcome.TRUNCATED), (Finish.FILTERED, Outcome.REFUSED), (Finish.STOP, Outcome.NO_ANSWER)],
)
def test_why_there_is_no_answer_is_kept(finish: Finish, outcome: Outcome):
    class Mute(Scripted):
        async def complete(self, request: Request) -> Reply:
            return Reply("I would say", finish, Usage(), 0.0)

    assert {a.outcome for a in run(Mute(says([]))).attempts} == {outcome}


class Shuffled(Scripted):
    """A model whose replies arrive in a chosen order: each waits for its turn."""

    def __init__(self, answers: Sequence[str | None], order: Sequence[int]) -> None:
        super().__init__(says(answers))
        self.rank = {position: rank for rank, position in enumerate(order)}

    async def complete(self, request: Request) -> Reply:
        for _ in range(3 * self.rank[place_of(request)]):
            await asyncio.sleep(0)
        return await super().complete(request)


ANSWERS = st.lists(st.sampled_from(["1", "2", "3", "4/2", r"\ln 2", None]), min_size=10, max_size=10)


def key(solution: Solution) -> str | None:
    return None if solution.answer is None else Answer.of(solution.answer).key


def test_the_last_fallback_is_an_attempt_of_the_hard_tier_and_in_the_papers_prompts_the_very_last():
    answers = ["1", "2", "3", "4", "5", "6", "7", "8", "9", None]
    assert run(Scripted(says(answers))).answer == "9"
    last = run(Scripted(says(answers)), prompts="paper")
    assert (last.exit, last.answer, last.correct) == (ExitPath.FALLBACK_LAST_HS, None, False)
    assert run(Scripted(says([*answers[:-1], "10"])), prompts="paper").answer == "10"


@settings(deadline=None, max_examples=100)
@given(answers=ANSWERS, order=st.permutations(range(10)), tiers=st.sampled_from([LOCKED, LOCKED[1:]]))
def test_no_order_of_arrival_changes_an_answer_or_an_exit(answers, order, tiers):
    faithful = run(Scripted(says(answers)), tiers=tiers)
    other = run(Shuffled(answers, order), tiers=tiers)
    assert other.exit is faithful.exit
    assert key(other) == key(faithful)
    assert other.correct == faithful.correct
    assert other.paper_calls == faithful.paper_calls == faithful.real_calls


def test_repeated_samples_have_different_seeds():
    seen: list[int] = []
    run(Scripted(lambda request: seen.append(request.sampling.seed) or "none"))
    assert len(set(seen)) == len(seen) == 10


def test_a_comparison_without_a_verdict_never_merges_two_answers():
    class Doubtful(Judge):
        async def __call__(self, left: object, right: object) -> Verdict:
            return Verdict.TIMEOUT

    async def work() -> Solution:
        async with Doubtful() as judge:
            return await solve_on_ladder(
                Problem("?", "1"), Kit(Scripted(says([r"\ln 2", r"\ln 3"] + [r"\ln 5"] * 8)), judge, SAMPLING)
            )

    solution = asyncio.run(work())
    assert solution.exit is ExitPath.MS_MAJORITY
    assert solution.verdict is Verdict.TIMEOUT
    assert solution.correct is False
