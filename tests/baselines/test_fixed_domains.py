"""Ladders that are told the domain."""

from __future__ import annotations

from collections import Counter

import pytest

from kace.cards.tree import EpistemicTree
from kace.errors import DataError, UsageError
from kace.problems import Problem
from tests.baselines.arena import DOMAINS, EVERYWHERE, HARD, MEDIUM, PROBLEMS, TREE, Solver, ids, solve


def classifier_calls(model: Solver) -> int:
    return sum(request.attempt.tier.startswith("DOMAIN") for request in model.requests)


def test_without_the_domain_axis_a_tier_reads_its_difficulty_of_every_domain():
    model = Solver()
    solution = solve("kace-no-domain", model)
    assert model.shown["MS"] == {*MEDIUM, EVERYWHERE}
    assert model.shown["HS"] == {*HARD, EVERYWHERE}
    assert classifier_calls(model) == 0
    assert sum(recall.classifier_calls for recall in solution.recalls) == 0


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.label)
def test_the_oracle_reads_the_gold_domain_whatever_the_classifier_would_say(problem: Problem):
    model, told = Solver(domain="counting"), Solver(domain=str(problem.domain))
    solution = solve("kace-oracle", model, problem)
    solve("kace", told, problem)
    assert model.shown == {tier: cards for tier, cards in told.shown.items() if tier != "DOMAIN"}
    assert {recall.domains for recall in solution.recalls} == {(problem.domain,)}
    assert classifier_calls(model) == 0


@pytest.mark.parametrize(("domain", "said"), [(None, "none"), ("algebra", "algebra")])
def test_an_oracle_without_a_matching_domain_is_one_clear_error_before_anything_is_paid(domain: str | None, said: str):
    model = Solver()
    with pytest.raises(DataError, match=rf"kace-oracle.*'p9' has {said}") as caught:
        solve("kace-oracle", model, Problem("What is it?", "1", "p9", domain=domain))
    assert "counting, geometry, rates" in caught.value.fix
    assert "\n" not in str(caught.value)
    assert model.calls == 0


def test_a_random_domain_is_fixed_by_problem_and_seed_and_favours_none():
    def drawn(number: int, seed: int = 0) -> str:
        solution = solve("kace-random", Solver(), Problem(f"Problem {number}?", "1"), seed=seed)
        places = {recall.domains for recall in solution.recalls}
        assert len(places) == 1, "MS and HS read the same domain"
        return places.pop()[0]

    assert [drawn(n) for n in range(5)] == [drawn(n) for n in range(5)]
    assert [drawn(n, 0) for n in range(8)] != [drawn(n, 1) for n in range(8)]
    counts = Counter(drawn(n) for n in range(30))
    assert set(counts) == set(DOMAINS)
    assert min(counts.values()) >= 3


def test_a_random_domain_is_read_and_nobody_is_asked():
    model = Solver()
    solution = solve("kace-random", model)
    (domain,) = solution.recalls[0].domains
    own = {"counting": ids("MEDCOUNT", "MEDSHARED"), "geometry": ids("MEDGEO", "MEDSHARED"), "rates": ids("MEDRATE")}
    assert model.shown["MS"] == {*own[domain], EVERYWHERE}
    assert classifier_calls(model) == 0


@pytest.mark.parametrize("name", ["kace-random", "kace-placebo"])
def test_a_control_that_could_show_no_other_domain_is_refused(name: str):
    only = TREE.domains[0].name
    lonely = EpistemicTree.of(TREE.domains[:1], [card for card in TREE if card.domain_tags == (only,)])
    with pytest.raises(UsageError, match="the tree has 1"):
        solve(name, Solver(), tree=lonely)
