"""Thresholds of the gate: what other techniques' cards cost, and the loosest threshold that costs little enough."""

from __future__ import annotations

import asyncio
import json
import random
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from kace.cards.card import Card, Difficulty, Example, Provenance, Status
from kace.cards.store import CALIBRATION, TreeStore
from kace.cards.tree import Add, Batch, Domain, EpistemicTree
from kace.config import load_config
from kace.ladder.record import Solution
from kace.ladder.relevance import RelevanceScore
from kace.ladder.tiers import ExitPath
from kace.learning.calibrate import (
    CHANCE,
    LEAST,
    Calibration,
    calibrate,
    keep_calibration,
    loosest,
    nearest_others,
    own_cards,
    set_thresholds,
)
from kace.learning.study import LearnPlan, Settings, open_workbench
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem, problem_rows
from tests.command import run_kace

ROOT = Path(__file__).resolve().parents[2]

FERRY = "A ferry crosses the fjord with {} crates of herring, and every gull steals {} crates. How many crates land?"
LOOM = "A weaver threads a loom with {} spools of crimson yarn, and each shuttle tangles {}. How many spools hold?"


def card(name: str, told: str, *sources: str, difficulty: Difficulty = Difficulty.MEDIUM) -> Card:
    made = Card(
        card_id=f"EXACT_{name}_RULE",
        payload=f"Useful when:\n- {name.lower()}\n\nSubtract.",
        routing_conditions=(),
        difficulty_tag=difficulty,
        domain_tags=("taking",),
        helpfulness_score=0.0,
        provenance=Provenance(source="test", supporting_problems=sources),
    )
    return made.illustrated([Example(told.format(9, 4), "9 - 4 = 5, so \\boxed{5}")])


TREE = EpistemicTree.of(
    [Domain(name="taking", description="what is left")], [card("FERRY", FERRY, "ferry-1"), card("LOOM", LOOM, "loom-1")]
)
TRAIN = tuple(
    Problem(told.format(20 + n, 3), str(17 + n), f"{name}-{n}", family=family)
    for name, told, family in (("ferry", FERRY, "subtracting"), ("loom", LOOM, None))
    for n in (1, 2, 3)
)


def test_a_loss_at_a_high_score_closes_the_gate_above_it_and_one_below_the_least_does_not():
    assert loosest([], 1000, 0.5) == (LEAST, pytest.approx(0.1))
    assert loosest([(0.6, 1.0), (0.5, 1.0), (0.4, 1.0)], 100, 0.5)[0] == 0.601
    assert loosest([(0.6, 0.0), (0.5, 1.0)], 100, 0.5)[0] == 0.501
    assert loosest([(0.6, CHANCE)], 50, 0.5)[0] == LEAST, "half a problem is chance"


def test_few_problems_may_lose_what_is_allowed_and_many_what_the_bound_allows():
    losses = [(0.8, 1.0), (0.7, 1.0), (0.6, 1.0)]
    assert loosest(losses, 199, 0.5) == (0.801, 0.5) and loosest(losses, 200, 0.5) == (0.701, 1.0)
    assert loosest(losses, 399, 0.5) == (0.701, 0.5) and loosest(losses, 599, 0.5) == (0.601, 0.5)


def test_what_a_wrong_card_gains_makes_up_for_no_loss():
    assert loosest([(0.6, -1.0), (0.5, 1.0)], 100, 0.5)[0] == 0.501
    assert loosest([(0.6, 1.0), (0.5, -1.0)], 100, 0.5)[0] == 0.601


def test_the_bound_says_what_so_many_problems_can_show():
    assert loosest([(0.6, 0.0)], 99, 0.5)[1] == pytest.approx(1.0), "a hundredth at best, in points"
    assert loosest([(0.6, 1.0)], 999, 0.5)[1] == pytest.approx(0.2)


def test_the_bound_holds_where_cards_break_at_random():
    """Drawn anew many times: the mean loss of a fresh problem at the threshold found stays under the harm allowed."""
    draw, allowed, size, lost = random.Random(5), 2.0, 200, []
    for _ in range(400):
        scores = [draw.random() for _ in range(size + 1)]
        losses = [float(draw.random() < 0.3 * score) for score in scores]  # nearer cards break more
        threshold, bound = loosest(list(zip(scores, losses, strict=True))[:size], size, allowed)
        lost.append(losses[-1] * (scores[-1] >= threshold))
        assert bound <= allowed
    assert 100 * sum(lost) / len(lost) <= allowed + 1.4, "two standard errors of 400 draws"


def test_the_cards_of_a_technique_are_those_of_its_family_and_of_whoever_shares_a_card():
    own = own_cards(TREE, TRAIN)
    by_name = {problem.name: own[problem.id] for problem in TRAIN}
    assert by_name["ferry-1"] == by_name["ferry-2"] == {"EXACT_FERRY_RULE"}, "one family"
    assert by_name["loom-1"] == {"EXACT_LOOM_RULE"} and by_name["loom-2"] == frozenset()
    shared = EpistemicTree.of(TREE.domains, [card("FERRY", FERRY, "ferry-1", "loom-1"), card("LOOM", LOOM, "loom-1")])
    assert own_cards(shared, TRAIN)[TRAIN[0].id] == {"EXACT_FERRY_RULE", "EXACT_LOOM_RULE"}


def test_a_problem_is_left_with_the_most_relevant_card_of_another_technique():
    nearest = nearest_others(TREE, TRAIN)
    assert set(nearest) == {TRAIN[4].text, TRAIN[5].text}, "whose own card nobody knows to be theirs"
    assert [*nearest[TRAIN[4].text]] == ["EXACT_LOOM_RULE"]
    gone = EpistemicTree.of(TREE.domains, [each.with_status(Status.DEPRECATED) for each in TREE])
    assert nearest_others(gone, TRAIN) == {}


def solution(problem: Problem, exit: ExitPath, correct: bool) -> Solution:
    return Solution.model_construct(problem=problem.id, exit=exit, correct=correct)


def calibrated(alone: bool, shown: bool, exit: ExitPath) -> Calibration:
    async def solve(problems: Sequence[Problem], relevance: RelevanceScore | None, number: int) -> list[Solution]:
        if relevance:
            assert all(relevance(problem.text) for problem in problems)
        return [solution(problem, exit, shown if relevance else alone) for problem in problems]

    return asyncio.run(calibrate(TREE, TRAIN, solve, runs=2, max_harm=0.5))


def test_what_leaves_at_es_loses_only_where_es_is_skipped():
    broken = calibrated(alone=True, shown=False, exit=ExitPath.ES_UNANIMOUS)
    assert [(each.loss, each.skip_loss) for each in broken.left_out] == [(0.0, 1.0)] * 2
    assert broken.threshold == LEAST < broken.left_out[0].score < broken.skip_threshold
    climbing = calibrated(alone=True, shown=False, exit=ExitPath.MS_MAJORITY)
    assert LEAST < climbing.left_out[0].score < climbing.threshold == climbing.skip_threshold
    harmless = calibrated(alone=False, shown=True, exit=ExitPath.MS_MAJORITY)
    assert harmless.threshold == harmless.skip_threshold == LEAST


def breaks(request: Request) -> str:
    """Knows every answer at MS, unless it is shown a demonstration about looms."""
    read, asked = "\n".join(each.content for each in request.messages[:-1]), request.messages[-1].content
    number = int(re.search(r"with (\d+)", asked)[1])
    sure = request.attempt.tier == "MS" and "loom" not in read
    return rf"\boxed{{{number - 3 if sure else request.sampling.seed + 1_000}}}"


def test_a_learner_calibrates_the_tree_that_it_freezes_and_the_tree_remembers(tmp_path: Path):
    config = load_config({"model": "scripted/steady"}, env={})
    settings = Settings(calibration_runs=2)
    plan = LearnPlan(TRAIN * 2, config, settings, tmp_path)

    async def work() -> Calibration:
        async with open_workbench(tmp_path / "learn", config, plan.manifest(), model=Scripted(breaks)) as found:
            first = await set_thresholds(TREE, TRAIN, found, settings)
            assert first == await set_thresholds(TREE, TRAIN, found, settings), "done once"
            return first

    found = asyncio.run(work())
    assert [each.loss for each in found.left_out] == [1.0, 1.0] and {each.card for each in found.left_out} == {
        "EXACT_LOOM_RULE"
    }
    keep_calibration(tmp_path, found, config.retrieval, {})
    reading = load_config({"tree": tmp_path}, env={}).retrieval
    assert reading.relevance_threshold == found.threshold > found.left_out[0].score
    assert json.loads((tmp_path / CALIBRATION).read_text())["left_out"][0]["card"] == "EXACT_LOOM_RULE"


def test_the_command_calibrates_any_tree(tmp_path: Path):
    store = TreeStore.create(tmp_path / "tree", TREE.domains, author="me", note="a small tree")
    store.apply(Batch(tuple(map(Add, TREE))), author="me")
    more = tuple(Problem(f"What is {n} plus {n}?", str(2 * n), f"plus-{n}") for n in range(20, 30))
    (tmp_path / "train.jsonl").write_text("\n".join(problem_rows((*TRAIN, *more))) + "\n")
    command = ("learn", "calibrate", "tree", "--train", "train.jsonl", "--model", "scripted/steady")
    done = run_kace(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert "a card is shown from 0.460 on" in done.stdout
    assert "shows from 0.460, skips ES from 0.460, calibrated" in run_kace(tmp_path, "tree", "show", "tree").stdout
    assert tomllib.loads((tmp_path / "tree" / "profile.toml").read_text())["retrieval"]["relevance_threshold"] == LEAST
    assert run_kace(tmp_path, *command, "--limit", "3").returncode == 2, "three problems say nothing"
