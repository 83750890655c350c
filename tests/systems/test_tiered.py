"""The ladder with and without the tree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from kace.answers.judge import Judge
from kace.problem import Problem
from kace.retrieval.retriever import Library, Recall
from kace.solver.attempt import Attempt
from kace.solver.ladder import Kit, climb
from kace.solver.solution import Solution
from kace.solver.tiers import TierName
from kace.systems.base import open_system
from kace.systems.tiered import Tiered
from tests.systems.arena import CONFIG, EVERYWHERE, PROBLEMS, TREE, Solver, bench, ids, run, solve


def climbed(model: Solver, library: Library | None) -> Solution:
    async def solved() -> Solution:
        async with Judge() as judge:
            return await climb(PROBLEMS[0], Kit(model, judge, CONFIG.tier_sampling(), library=library))

    return asyncio.run(solved())


def asked(model: Solver) -> list[str]:
    return sorted(request.digest("m") for request in model.requests)


def test_kace_is_exactly_the_ladder_with_the_library():
    ours, plain = Solver(), Solver()
    solution = solve("kace", ours)
    same = climbed(plain, Library(TREE, plain))
    assert asked(ours) == asked(plain)
    assert replace(solution, seconds=0.0) == replace(same, seconds=0.0)
    assert ours.shown["MS"] == {*ids("MEDCOUNT", "MEDSHARED"), EVERYWHERE}
    assert ours.shown["HS"] == {*ids("HARDCOUNT"), EVERYWHERE}


def test_tiered_reads_nothing_even_where_the_kit_has_a_library():
    model, plain = Solver(), Solver()

    async def solved() -> Solution:
        async with Judge() as judge:
            kit = Kit(model, judge, CONFIG.tier_sampling(), library=Library(TREE, model))
            return await open_system("tiered", bench(model)).solve(PROBLEMS[0], kit)

    assert asyncio.run(solved()).recalls == ()
    climbed(plain, None)
    assert asked(model) == asked(plain)


def test_the_classifier_is_asked_on_the_benchs_seed():
    model = Solver()
    solve("kace", model, seed=7)
    assert [request.attempt.seed for request in model.requests if request.attempt.tier == "DOMAIN"] == [7]


class Careless:
    """A shelf that would give its notes to any tier."""

    async def read(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Sequence[Recall]
    ) -> Recall | None:
        return Recall(tier, (), (), 0, 3, False, notes="Careless notes.")


def test_no_shelf_whatever_it_does_is_read_at_es():
    model = Solver()
    run(Tiered("careless", Careless()), model)
    assert not any("Careless notes." in text for text in model.texts["ES"])
    assert all("Careless notes." in text for text in (*model.texts["MS"], *model.texts["HS"]))
