"""Leave-one-out makes the same attempts again without one card, and stays within its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kace.cards.card import Card, Difficulty, Status
from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.errors import KaceError
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_problem
from kace.ladder.policies import Dropout, DropoutSource
from kace.ladder.record import Outcome, Solution
from kace.ladder.retrieve import Retriever
from kace.learning.measure import Impact, LeaveOneOut, dropout_lifts
from kace.models.base import Failure, ModelError, Reply, Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.card_examples import DOMAINS, a_card
from tests.one_loop import JUDGE, LOOP

CONFIG = load_config({"profile": "paper", "prompts": "default"}, env={})
SAMPLING = CONFIG.tier_sampling()
HELP, IDLE, HARM, DEEP = "EXACT_HELP_CARD", "EXACT_IDLE_CARD", "EXACT_HARM_CARD", "RUBRIC_DEEP_CARD"
PROBLEMS = tuple(Problem(f"Problem number {n}?", "1", f"P{n}") for n in range(12))
BY_ID = {problem.id: problem for problem in PROBLEMS}


def card(card_id: str, difficulty: Difficulty = Difficulty.MEDIUM) -> Card:
    return a_card(card_id, difficulty_tag=difficulty, domain_tags=("algebra",), status=Status.EXPERIMENTAL)


TREE = EpistemicTree.of(DOMAINS, [card(HELP), card(IDLE), card(HARM), card(DEEP, Difficulty.HARD)])


def unique(request: Request) -> str:
    """An answer that no other attempt gives."""
    key = request.attempt
    return rf"\boxed{{{1_000 + 10 * len(key.tier) + key.index + (100 if key.tier == 'HS' else 0)}}}"


def script(request: Request) -> str:
    """Right where the helpful card is read and the harmful one is not; half the attempts right where both are."""
    key, text = request.attempt, request.messages[-1].content + request.messages[0].content
    if key.tier not in ("ES", "MS", "HS"):
        return "algebra"
    right = HELP in text and (HARM not in text or key.index == 0)
    return r"\boxed{1}" if right else unique(request)


class Remembering(Scripted):
    """A scripted model that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(script)
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return await super().complete(request)


def a_kit(model: Scripted, **fields: object) -> Kit:
    kit = Kit(model, JUDGE, SAMPLING, source=Retriever(TREE, model, CONFIG.retrieval))
    return replace(kit, **fields)  # type: ignore[arg-type]


def solve(kit: Kit, problems: Sequence[Problem] = PROBLEMS) -> list[Solution]:
    return [LOOP.run(solve_problem(problem, kit)) for problem in problems]


def hiding(kit: Kit, seed: int = 0) -> Kit:
    return replace(kit, source=DropoutSource(kit.source, Dropout(seed=seed)))


def measure(base: Sequence[Solution], kit: Kit, max_calls: int = 10_000) -> Impact:
    return LOOP.run(LeaveOneOut(TREE, BY_ID, kit, max_calls=max_calls).measure(base))


def test_each_card_is_measured_beside_all_the_others():
    model = Remembering()
    kit = a_kit(model)
    base = solve(kit)
    impact = measure(base, kit)
    effects = {lift.card_id: lift for lift in impact.lifts}
    # With all cards one MS attempt in three is right; without the harmful card all are, without the helpful none.
    assert {name: round(lift.effect, 6) for name, lift in effects.items()} == {
        HARM: round(-2 / 3, 6),
        HELP: round(1 / 3, 6),
        IDLE: 0.0,
        DEEP: 0.0,
    }
    assert list(effects) == sorted(effects)
    assert effects[HARM].high < 0 < effects[HELP].low
    assert effects[IDLE].problems == len(PROBLEMS)
    assert {lift.method for lift in impact.lifts} == {"leave_one_out"}
    assert impact.unmeasured == ()
    assert [fire.card_id for fire in impact.fires] == sorted(effects)


def test_the_same_attempts_are_made_again_and_counted():
    model = Remembering()
    kit = a_kit(model)
    base = solve(kit, PROBLEMS[:2])
    before = len(model.asked)
    impact = measure(base, kit)
    again = model.asked[before:]
    first = {request.attempt for request in model.asked[:before]}
    assert impact.calls == len(again) == 2 * (3 * 3 + 5)
    assert {request.attempt for request in again} <= first
    for request in again:
        names = HARM, HELP, IDLE, DEEP
        eligible = 1 if request.attempt.tier == "HS" else 3
        assert sum(name in "".join(m.content for m in request.messages) for name in names) == eligible - 1


def test_cards_that_do_not_fit_into_the_calls_are_left_unmeasured_and_a_cheaper_one_may_fit():
    kit = a_kit(Remembering())
    base = solve(kit, PROBLEMS[:6])
    impact = measure(base, kit, max_calls=6 * 3 * 2 + 5)
    assert [lift.card_id for lift in impact.lifts] == [HARM, HELP]
    assert impact.unmeasured == (IDLE, DEEP)
    assert impact.calls == 36
    assert measure(base, kit, max_calls=0).lifts == ()


def test_the_same_run_measures_the_same():
    kit = a_kit(Remembering())
    base = solve(kit, PROBLEMS[:3])
    assert measure(base, kit) == measure(base, replace(hiding(kit), seed=9, early_stop=True))


def test_an_attempt_that_the_provider_fails_is_left_out_of_the_rerun():
    kit = a_kit(Remembering())
    base = solve(kit, PROBLEMS[:1])

    class Down(Remembering):
        async def complete(self, request: Request) -> Reply:
            if request.attempt.index == 2:
                raise ModelError(Failure.PROVIDER_ERROR, "502")
            return await super().complete(request)

    lift = next(lift for lift in measure(base, a_kit(Down())).lifts if lift.card_id == HELP)
    assert (lift.shown, lift.hidden) == (3, 2)


def test_what_the_operator_must_mend_is_raised_as_it_is():
    kit = a_kit(Remembering())
    base = solve(kit, PROBLEMS[:2])

    class Refused(Remembering):
        async def complete(self, request: Request) -> Reply:
            raise KaceError("no such key")

    with pytest.raises(KaceError, match="no such key"):
        measure(base, a_kit(Refused()))


def test_a_base_run_with_hidden_cards_or_cut_off_attempts_is_refused():
    kit = a_kit(Remembering())
    with pytest.raises(KaceError, match="without dropout"):
        measure(solve(hiding(kit), PROBLEMS[:3]), kit)
    (whole,) = solve(kit, PROBLEMS[:1])
    cancelled = whole.attempts[-1].model_copy(update={"outcome": Outcome.CANCELLED})
    cut = whole.model_copy(update={"attempts": (*whole.attempts[:-1], cancelled)})
    with pytest.raises(KaceError, match="without early stop"):
        measure([cut], kit)


def test_a_dropout_run_through_the_ladder_finds_the_same_signs():
    model = Remembering()
    base = [record for seed in range(3) for record in solve(hiding(a_kit(model, seed=seed), seed))]
    effects = {lift.card_id: lift for lift in dropout_lifts(base)}
    assert effects[HELP].low > 0 > effects[HARM].high
    assert effects[IDLE].low < 0 < effects[IDLE].high


def test_solves_without_an_expected_answer_measure_nothing():
    kit = a_kit(Remembering())
    unlabelled = Problem("Who knows?", None, "P")
    base = solve(kit, [unlabelled])
    impact = LOOP.run(LeaveOneOut(TREE, {unlabelled.id: unlabelled}, kit, max_calls=100).measure(base))
    assert (impact.lifts, impact.calls) == ((), 0)
    assert impact.unmeasured == (HARM, HELP, IDLE, DEEP)
