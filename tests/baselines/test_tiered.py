"""The ladder with and without the tree."""

from __future__ import annotations

from collections.abc import Sequence

from kace.baselines.systems import System
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.prompt import Context
from kace.ladder.record import Attempt
from kace.ladder.retrieve import Retriever
from kace.ladder.tiers import TierName
from kace.problems import Problem
from tests.baselines.arena import CONFIG, EVERYWHERE, PROBLEMS, TREE, Solver, ids, run, solve
from tests.one_loop import JUDGE, LOOP


def asked(model: Solver) -> list[str]:
    return sorted(request.digest("m") for request in model.requests)


def test_kace_is_exactly_the_ladder_with_the_retriever():
    ours, plain = Solver(), Solver()
    solution = solve("kace", ours)
    kit = Kit(plain, JUDGE, CONFIG.tier_sampling(), source=Retriever(TREE, plain, CONFIG.retrieval))
    same = LOOP.run(solve_on_ladder(PROBLEMS[0], kit))
    assert asked(ours) == asked(plain)
    assert solution.model_dump(exclude={"seconds"}) == same.model_dump(exclude={"seconds"})
    assert ours.shown["MS"] == {*ids("MEDCOUNT", "MEDSHARED"), EVERYWHERE}
    assert ours.shown["HS"] == {*ids("HARDCOUNT"), EVERYWHERE}


class Careless:
    """A source that would give its notes to any tier."""

    async def retrieve(
        self, problem: Problem, tier: TierName, before: Sequence[Attempt], earlier: Context | None
    ) -> Context | None:
        return Context(notes="Careless notes.")


def test_no_source_whatever_it_does_is_read_at_es():
    model = Solver()
    run(System("careless", Careless()), model)
    assert not any("Careless notes." in text for text in model.texts["ES"])
    assert all("Careless notes." in text for text in (*model.texts["MS"], *model.texts["HS"]))
