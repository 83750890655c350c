"""What holds for all systems alike, each run end to end."""

from __future__ import annotations

import pytest

from kace.baselines.systems import SYSTEMS
from kace.cards.card import Status
from kace.cards.tree import EpistemicTree
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.problems import Problem
from tests.baselines.arena import BARE, FLAT, LADDERS, PROBLEMS, TREE, UNTRAINED, Solver, lost, reading, solve

PICKS = ("EXACT_MEDCOUNT_CARD, EXACT_HARDGEO_CARD",)
READERS = tuple(name for name in LADDERS if name not in (*BARE, "kace-empty-prompt"))


@pytest.mark.parametrize("name", UNTRAINED)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.label)
def test_it_solves_a_problem_and_its_record_survives_the_disk(name: str, problem: Problem):
    model = Solver(picks=PICKS)
    solution = solve(name, model, problem)
    assert Solution.model_validate_json(solution.model_dump_json()) == solution
    assert solution.paper_calls == solution.real_calls == len(solution.attempts)
    assert solution.correct is not None
    assert (solution.exit is None) == (name in FLAT)
    assert {a.tier for a in solution.attempts} == ({"FLAT"} if name in FLAT else {"ES", "MS", "HS"})


@pytest.mark.parametrize("name", LADDERS)
def test_the_easy_tier_reads_nothing(name: str):
    plain, model = Solver(), Solver(picks=PICKS)
    solve("tiered", plain)
    solution = solve(name, model)
    assert model.texts["ES"] == plain.texts["ES"], "word for word the prompts of the bare ladder"
    assert [recall.tier for recall in solution.recalls] == ([] if name in BARE else [TierName.MS, TierName.HS])


@pytest.mark.parametrize("name", READERS)
def test_a_deprecated_card_is_never_shown(name: str):
    model = Solver(picks=("EXACT_GONE_CARD, EXACT_MEDGEO_CARD",))
    solve(name, model)
    assert model.shown["MS"]
    assert not any("EXACT_GONE_CARD" in text for texts in model.texts.values() for text in texts)


BARREN = {
    "no cards": EpistemicTree.of(TREE.domains, []),
    "no domains": EpistemicTree.of([], []),
    "none to show": EpistemicTree.of(TREE.domains, [card for card in TREE if card.status is Status.DEPRECATED]),
}


@pytest.mark.parametrize("tree", BARREN.values(), ids=BARREN.keys())
@pytest.mark.parametrize("name", READERS)
def test_where_a_tree_has_no_card_to_show_it_is_the_ladder_alone(name: str, tree: EpistemicTree):
    plain, model = Solver(), Solver()
    solve("tiered", plain)
    assert solve(name, model, tree=tree).recalls == ()
    assert model.texts == plain.texts, "nobody is asked for a domain or for cards"


@pytest.mark.parametrize("name", READERS)
def test_what_is_recorded_is_what_was_shown(name: str):
    model = Solver(picks=PICKS)
    solution = solve(name, model)
    for recall in solution.recalls:
        assert set(recall.cards) == model.shown[recall.tier.value]
        assert len(recall.cards) <= recall.eligible
        assert recall.estimated and recall.tokens > 0


@pytest.mark.parametrize("name", READERS)
def test_the_token_budget_holds_but_where_the_ablation_shows_every_card(name: str):
    tight = reading(max_card_tokens=30)
    everything = ", ".join(("EXACT_MEDCOUNT_CARD", "EXACT_HARDGEO_CARD", "EXACT_MEDGEO_CARD"))
    recalls = solve(name, Solver(picks=(everything,)), config=tight).recalls
    assert all(recall.cards for recall in recalls)
    if name in ("kace-monolithic", "kace-no-domain"):
        assert all(recall.tokens > 30 and len(recall.cards) == recall.eligible for recall in recalls)
        assert "max_card_tokens" in SYSTEMS[name].about
    else:
        assert all(recall.tokens <= 30 and len(recall.cards) < recall.eligible for recall in recalls)


@pytest.mark.parametrize("name", UNTRAINED)
def test_failed_calls_stay_in_the_denominator(name: str):
    solution = solve(name, Solver([lost() for _ in range(10)], domain=lost(), picks=(lost(),)))
    assert {a.outcome for a in solution.attempts} == {Outcome.PROVIDER_ERROR}
    assert solution.correct is False, "a failed call is a wrong answer, never a dropped one"
    assert solution.failed
    assert [attempt.correct for attempt in solution.attempts] == [False] * solution.paper_calls
