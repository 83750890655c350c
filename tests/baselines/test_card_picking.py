"""Ladders that read single cards out of one pool."""

from __future__ import annotations

import pytest

from kace.ladder.record import Solution
from kace.ladder.retrieve import rank
from kace.problems import Problem
from tests.baselines.arena import POOL, POOL_CARDS, PROBLEMS, Solver, ids, lost, reading, solve


def read(solution: Solution) -> list[str]:
    return list(solution.recalls[0].cards)


def routed(model: Solver) -> int:
    return sum(request.attempt.tier == "ROUTE" for request in model.requests)


def test_the_monolith_reads_every_card_at_both_tiers():
    model = Solver()
    solution = solve("kace-monolithic", model)
    assert model.shown["MS"] == model.shown["HS"] == POOL
    assert [recall.eligible for recall in solution.recalls] == [len(POOL)] * 2
    assert model.calls == 10, "nobody is asked for a domain"


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.label)
def test_the_retriever_reads_the_nearest_cards_nearest_first(problem: Problem):
    model = Solver()
    solution = solve("kace-retriever", model, problem, k=3)
    assert read(solution) == [card.card_id for card in rank(problem.text, POOL_CARDS, "meaning")[:3]]
    assert model.shown["MS"] == model.shown["HS"] == set(read(solution))
    assert model.calls == 10


def test_the_router_reads_what_the_model_picks_in_its_order_once_for_both_tiers():
    model = Solver(picks=("EXACT_HARDGEO_CARD, EXACT_NO_SUCH_CARD, EXACT_MEDCOUNT_CARD",))
    solution = solve("kace-router", model)
    assert read(solution) == ["EXACT_HARDGEO_CARD", "EXACT_MEDCOUNT_CARD"]
    assert model.shown["MS"] == model.shown["HS"] == ids("HARDGEO", "MEDCOUNT")
    assert [recall.classifier_calls for recall in solution.recalls] == [1, 0] and routed(model) == 1
    assert solution.recalls[0].classifier_input > 0
    assert solution.recalls[1].classifier_input == 0
    assert solution.real_calls == 10, "its calls are counted apart"


def test_the_router_sees_ids_and_triggers_of_the_pool_and_no_bodies():
    model = Solver()
    solve("kace-router", model)
    (prompt,) = model.texts["ROUTE"]
    for card in POOL_CARDS:
        assert f"{card.card_id}: {card.triggers[0]}" in prompt
    assert "EXACT_GONE_CARD" not in prompt
    assert "Do this with care." not in prompt
    assert prompt.index("EXACT_MEDCOUNT_CARD") < prompt.index("handshakes do 5 people"), "what is shared comes first"


def test_a_router_that_cannot_be_read_leaves_the_ladder_bare():
    model, plain = Solver(picks=("The first card.", "I said the first.")), Solver()
    solution = solve("kace-router", model)
    solve("tiered", plain)
    assert model.texts["MS"] == plain.texts["MS"]
    assert solution.recalls[0].classifier_calls == routed(model) == 2
    lost_call = solve("kace-router", Solver(picks=(lost(),)))
    assert (read(lost_call), lost_call.recalls[0].classifier_calls) == ([], 1)


def test_the_reranker_picks_among_the_nearest():
    model = Solver(picks=("EXACT_EVERYWHERE_CARD",))
    assert read(solve("kace-reranked", model, PROBLEMS[1])) == ["EXACT_EVERYWHERE_CARD"]
    listed = [line.split(":")[0] for line in model.texts["ROUTE"][0].split("\n") if line.startswith("EXACT_")]
    assert listed == [card.card_id for card in rank(PROBLEMS[1].text, POOL_CARDS, "meaning")]


def test_what_does_not_fit_is_cut_from_the_end_of_the_choice():
    tight = reading(max_card_tokens=40)
    names = ("EXACT_MEDRATE_CARD", "EXACT_HARDGEO_CARD", "EXACT_MEDCOUNT_CARD")
    solution = solve("kace-router", Solver(picks=(", ".join(names),)), config=tight)
    assert read(solution) == list(names[: len(read(solution))])
    assert 0 < len(read(solution)) < 3
    assert solution.recalls[0].tokens <= 40
