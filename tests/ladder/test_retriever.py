"""A solve reads the block of its tier and domain and nothing else, and the trace says what it read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kace.cards.card import Example
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.cli.solve import audit_line
from kace.config import RetrievalConfig, load_config
from kace.errors import UsageError
from kace.ladder.ladder import Kit
from kace.ladder.ladder import solve as solve_on_ladder
from kace.ladder.policies import begin_with_cards
from kace.ladder.record import Solution
from kace.ladder.retrieve import Retriever
from kace.ladder.tiers import TierName
from kace.models.base import Reply, Request
from kace.problems import Problem, load_bundled
from tests.baselines.arena import DISTINCT, TREE, Solver
from tests.card_samples import card, named
from tests.one_loop import JUDGE, LOOP
from tests.recorded import published_tree

SAMPLING = load_config(env={}).tier_sampling()


def classified(model: Solver) -> int:
    return sum(request.attempt.tier.startswith("DOMAIN") for request in model.requests)


def reading(**settings: object) -> RetrievalConfig:
    """Whole blocks as text, but for what is given."""
    whole = {"router": "model", "relevance_threshold": 0.0, "placement": "instructions"}
    return RetrievalConfig.model_validate({**whole, **settings})


def solve(model: Solver, tree: EpistemicTree = TREE, **settings: object) -> Solution:
    kit = Kit(model, JUDGE, SAMPLING, source=Retriever(tree, model, reading(**settings)))
    return LOOP.run(solve_on_ladder(Problem("How many ways to count geometry?", "1", "p1"), kit))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["1", "2", "3", None]), min_size=10, max_size=10))
def test_the_easy_tier_is_never_shown_a_card_on_any_path(answers):
    model = Solver(answers)
    solution = solve(model)
    assert not any(card_id in text for card_id in TREE.cards for text in model.texts["ES"])
    assert len(solution.recalls) == len({attempt.tier for attempt in solution.attempts}) - 1


def test_the_domain_is_asked_once_after_es_and_again_only_to_refine():
    at_once = Solver(["1", "1"])
    assert solve(at_once).recalls == () and classified(at_once) == 0
    model = Solver(DISTINCT)
    solution = solve(model)
    assert classified(model) == 1
    assert [recall.classifier_calls for recall in solution.recalls] == [1, 0]
    refined = solve(Solver(DISTINCT), refine_domain=True)
    assert [recall.classifier_calls for recall in refined.recalls] == [1, 1]
    assert solution.real_calls == 10, "classifier calls are counted apart"


class SecondThoughts(Solver):
    """Places a problem in counting, and says something else once it has seen the attempts; 7 tokens are cached."""

    def __init__(self, second: str) -> None:
        super().__init__(DISTINCT)
        first = self.script
        self.script = lambda request: named(second) if request.attempt.tier == "DOMAIN2" else first(request)

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return replace(reply, usage=replace(reply.usage, cached=7))


def test_a_refinement_that_cannot_be_used_keeps_the_domain_there_was():
    model = SecondThoughts("I am not sure any more.")
    recalls = solve(model, refine_domain=True).recalls
    assert [recall.domains for recall in recalls] == [("counting",), ("counting",)]
    assert [recall.classifier_calls for recall in recalls] == [1, 2]
    assert "EXACT_HARDCOUNT_CARD" in model.shown["HS"]
    moved = solve(SecondThoughts("geometry"), refine_domain=True)
    assert [recall.domains for recall in moved.recalls] == [("counting",), ("geometry",)]
    kept = Solution.model_validate_json(moved.model_dump_json())
    assert [recall.classifier_cached for recall in kept.recalls] == [7, 7]
    assert "classifier_cached" not in solve(Solver(DISTINCT)).model_dump_json(), "written only where there is any"


def test_an_unknown_domain_reads_universal_cards_only_and_two_domains_read_both_branches():
    unknown, both = Solver(DISTINCT, domain="cooking"), Solver(DISTINCT, domain="counting, geometry")
    assert solve(unknown).recalls[0].domains == ()
    assert unknown.shown["MS"] == unknown.shown["HS"] == {"EXACT_EVERYWHERE_CARD"}
    solve(both)
    assert {"EXACT_MEDCOUNT_CARD", "EXACT_MEDGEO_CARD"} <= both.shown["MS"]


def test_a_block_over_its_budget_is_cut_and_the_cut_is_recorded():
    model = Solver(DISTINCT)
    recall = solve(model, max_card_tokens=45).recalls[0]
    assert 0 < len(recall.cards) < recall.eligible == 3
    assert recall.tokens <= 45 and recall.estimated
    assert set(recall.cards) == model.shown["MS"]
    recalls = solve(Solver(DISTINCT), max_cards=1).recalls
    assert [(len(recall.cards), recall.eligible) for recall in recalls] == [(1, 3), (1, 2)], "of the same block"


def test_the_audit_line_names_block_and_cards():
    record = solve(Solver(DISTINCT))
    line = audit_line(record)
    assert "MS:counting shown 3 of 3 cards" in line
    assert "HS:counting shown 2 of 2 cards" in line
    assert record.recalls[0].cards == tuple(c.card_id for c in TREE.project(TierName.MS, ["counting"]))


def test_words_route_a_problem_without_a_call():
    model = Solver(DISTINCT, domain="counting")
    assert solve(model, router="words").recalls[0].domains == ("geometry",)
    assert classified(model) == 0
    assert "EXACT_MEDGEO_CARD" in model.shown["MS"]


@pytest.mark.parametrize(
    ("text", "home"),
    [("A geometry class takes the ferry to some islands.", "counting"), ("A geometry class draws a cube.", "geometry")],
)
def test_a_card_that_is_relevant_routes_a_problem_and_else_the_registry(text: str, home: str):
    ferry = card("EXACT_FERRY_CARD", domain_tags=("counting",)).illustrated(
        (Example("The ferry takes a class to five islands.", "\\boxed{5}"),)
    )
    config = reading(router="cards", relevance_threshold=0.3)
    retriever = Retriever(EpistemicTree.of(TREE.domains, [*TREE, ferry]), Solver(()), config)
    found = LOOP.run(retriever.retrieve(Problem(text), TierName.MS, (), None))
    assert found and found.domains == (home,)


def test_a_problem_that_skips_es_always_reads_a_card():
    tree = open_tree(published_tree("starter-1.5b"))
    retriever = Retriever(tree, Solver(()), RetrievalConfig(relevance_threshold=0.353, es_policy="skip"))
    skipped = 0
    for problem in load_bundled("starter", "test"):
        if LOOP.run(retriever.covers(problem)):
            skipped += 1
            found = LOOP.run(retriever.retrieve(problem, TierName.MS, (), None))
            assert found and found.cards, problem.text
    assert skipped > 20


def test_a_policy_beyond_the_locked_ladder_needs_a_gate():
    retriever = Retriever(TREE, Solver(()), reading(es_policy="skip"))
    with pytest.raises(UsageError, match="needs a relevance threshold"):
        begin_with_cards(retriever)


def test_a_card_that_demonstrates_the_problem_alone_is_neither_shown_nor_recorded_as_read():
    asked = Example("How many ways to count\ngeometry?", "\\boxed{1}")
    other = Example("How many ways to count spheres?", "\\boxed{2}")
    own, two = TREE.card("EXACT_MEDCOUNT_CARD"), TREE.card("EXACT_MEDSHARED_CARD")
    tree = EpistemicTree.of(TREE.domains, [own.illustrated((asked,)), two.illustrated((asked, other))])
    read = {"placement": "demonstrations", "relevance_threshold": 0.1}
    recall = solve(Solver(DISTINCT), tree, **read).recalls[0]
    assert recall.cards == ("EXACT_MEDSHARED_CARD",) and recall.eligible == 2
    single = solve(Solver(DISTINCT), EpistemicTree.of(TREE.domains, [two.illustrated((other,))]), **read).recalls[0]
    assert recall.tokens == single.tokens, "what is counted is what is shown"

    problem = Problem("How many ways to count geometry?", "1", "p1")
    for text, covered in ((problem.text, False), (f"{problem.text} In all?", True)):
        tree = EpistemicTree.of(TREE.domains, [own.illustrated((Example(text, "\\boxed{1}"),))])
        config = reading(**read, es_policy="skip")
        assert LOOP.run(Retriever(tree, Solver(DISTINCT), config).covers(problem)) is covered
