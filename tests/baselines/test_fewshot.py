"""Few-shot demonstrations of solved training problems: which are shown, at which tier, with a gate or without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kace.baselines.controls import worked_example
from kace.baselines.systems import open_system
from kace.config import load_config
from kace.errors import DataError
from kace.ladder.tiers import ExitPath, TierName
from kace.models.base import Role
from kace.problems import Problem, problem_rows
from tests.baselines.ace_world import TRAIN as WORLD
from tests.baselines.ace_world import accuracy, solved
from tests.baselines.arena import DEFAULTS, DISTINCT, Solver, bench
from tests.baselines.arena import solve as solve_one
from tests.learning.world import RULES, statement

TRAIN = (
    Problem("A frog leaps 3 stones at a time. How many leaps over 12 stones?", "4", "frog", solution="12/3 is 4."),
    Problem("A heron visits 6 ponds in turn. Which pond is its tenth?", "4", "heron", solution="10 - 6 is 4, leaps."),
    Problem("How many edges does an octahedron have?", "12", "edges", solution="Every\n\nvertex has \\boxed{12}."),
    *(Problem(f"What is {n} plus {n}?", str(2 * n), f"sum-{n}", solution=f"It is {2 * n}.") for n in range(10, 18)),
    Problem("Nobody knows this one?", "1", "unsolved"),
)
NEAR = Problem("A frog leaps 5 stones at a time. How many leaps over 35 stones?", "7", "near")
FAR = Problem("Simplify the fraction of the tangent.", "7", "far")
FIRST = "DEMO_NO_00001"


def written(file: Path, train: Sequence[Problem] = TRAIN) -> Path:
    file.write_text("".join(line + "\n" for line in problem_rows(train)))
    return file


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written(tmp_path / "train.jsonl")


def test_gold_solutions_are_shown_whole_and_end_in_their_answer():
    assert worked_example(TRAIN[0]).worked == "12/3 is 4.\nThe answer is \\boxed{4}."
    assert worked_example(TRAIN[2]).worked == "Every\nvertex has \\boxed{12}."


def test_the_nearest_are_shown_as_turns_from_ms_on_and_es_reads_nothing(pool: Path):
    model, plain = Solver(), Solver()
    solution = solve_one("knn-fewshot", model, NEAR, artefact=pool, tree=None, config=DEFAULTS)
    solve_one("tiered", plain, NEAR, config=DEFAULTS)
    assert model.texts["ES"] == plain.texts["ES"]
    above = [request for request in model.requests if request.attempt.tier in ("MS", "HS")]
    assert len(above) == 8
    for request in above:
        asked, worked, *rest = request.messages[1:-1]
        assert (asked.role, worked.role, len(rest)) == (Role.USER, Role.ASSISTANT, 2)
        assert asked.content.startswith(TRAIN[0].text) and worked.content.endswith("\\boxed{4}.")
    assert [(recall.tier, recall.cards[0], len(recall.cards), recall.eligible) for recall in solution.recalls] == [
        (tier, FIRST, 2, 11) for tier in (TierName.MS, TierName.HS)
    ], "numbered as in the training file; the one without a solution is none"
    assert sum(recall.classifier_calls for recall in solution.recalls) == 0


@pytest.mark.parametrize("problem", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("name", ["knn-fewshot", "knn-fewshot-gated"])
def test_the_gate_shows_only_what_is_relevant_and_skips_es_only_there(
    name: str, skips: bool, problem: Problem, pool: Path
):
    settings = {"model": "scripted/custom", "es_policy": "skip" if skips else "locked", "relevance_threshold": 0.46}
    config = load_config(settings, env={})
    fits = problem is NEAR or name == "knn-fewshot"
    model = Solver(["1"] * 3 if skips and fits else DISTINCT)
    solution = solve_one(name, model, problem, artefact=pool, tree=None, config=config)
    assert ("ES" in model.texts) == (not skips or not fits)
    assert solution.exit is (ExitPath.MS_MAJORITY if skips and fits else ExitPath.FALLBACK_LAST_HS)
    for recall in solution.recalls:
        if name == "knn-fewshot":
            assert len(recall.cards) == 2
        else:
            assert recall.cards == ((FIRST,) if fits else ())
        assert recall.abstained == (not fits)


def test_a_problem_is_never_its_own_demonstration(pool: Path):
    spaced = replace(TRAIN[0], text=TRAIN[0].text.replace(" ", "\n"))
    system = open_system("knn-fewshot", bench(Solver(), artefact=pool, tree=None, config=DEFAULTS))
    found = asyncio.run(system.source.retrieve(spaced, TierName.MS, (), ()))
    assert found is not None and [card.card_id == FIRST for card in found.cards] == [False]


def test_training_problems_are_not_evaluated_on_solved_or_not(pool: Path):
    model, spaced = Solver(), replace(TRAIN[0], text=TRAIN[0].text.replace(" ", "\n"))
    with pytest.raises(DataError, match="1 training problems appear in the evaluated data too: 'frog'") as caught:
        solve_one("knn-fewshot", model, spaced, artefact=pool, tree=None, config=DEFAULTS)
    assert model.calls == 0 and "training file" in caught.value.fix
    with pytest.raises(DataError, match="'unsolved'"):
        solve_one("knn-fewshot", Solver(), TRAIN[-1], artefact=pool, tree=None, config=DEFAULTS)


def test_without_a_worked_solution_there_is_nothing_to_show(tmp_path: Path):
    bare = written(tmp_path / "bare.jsonl", [replace(problem, solution=None) for problem in TRAIN])
    with pytest.raises(DataError, match="no training problem has a worked solution"):
        solve_one("knn-fewshot", Solver(), NEAR, artefact=bare, tree=None, config=DEFAULTS)


def test_a_solver_that_can_read_gains_by_the_nearest_solved_problem(tmp_path: Path):
    taught = []
    for problem in WORLD:
        rule = next((rule for rule in RULES if rule in problem.text), "")
        taught.append(replace(problem, solution=f"Here {statement(rule)}."))
    assert accuracy(solved("tiered")) == pytest.approx(1 / 3)
    assert accuracy(solved("knn-fewshot", artefact=written(tmp_path / "train.jsonl", taught))) == 1.0
