"""Cards made from worked solutions, without a model."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kace.cards.tree import EpistemicTree
from kace.config import Config, load_config
from kace.errors import BudgetExceeded, DataError, UsageError
from kace.ladder.retrieve import route_by_words
from kace.ladder.tiers import TierName
from kace.learning.loop import learn
from kace.learning.propose import WHOLE, partition_by_label, propose_solved, untaught_settings
from kace.learning.report import forecast, report_of
from kace.learning.screen import HeldOutHashes
from kace.learning.study import LearnPlan, Settings, open_study
from kace.learning.teacher import TreeCell
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem, load_bundled
from tests.learning.world import RULES, World, problems, solve, statement

CELL = TreeCell(TierName.MS, WHOLE)


def problem(text: str, answer: str = "4", solution: str | None = "Add: 2 + 2 = 4.", **more: str) -> Problem:
    return Problem(text, answer, solution=solution, **more)


def test_problems_that_share_telling_words_make_one_card() -> None:
    coins = [problem(f"A purse holds {n} silver coins and {n} copper coins. How many coins?") for n in (2, 3)]
    train = [*coins, problem("A triangle has angles of 30 and 60 degrees. What is the third angle?")]
    one, other = propose_solved(CELL, train, 2).cards
    assert [example.problem for example in one.examples] == [each.text for each in coins]
    assert "PURSE" in one.card_id or "COIN" in one.card_id
    assert len(other.examples) == 1
    assert one.provenance.source == "solutions"


def test_a_demonstration_ends_with_the_boxed_answer() -> None:
    bare, boxed = (
        problem("Two gnomes plus two gnomes?"),
        problem("Six elves less two elves?", solution=r"So \boxed{4}."),
    )
    texts = [card.examples[0].worked for card in propose_solved(CELL, [bare, boxed], 1).cards]
    assert texts == ["Add: 2 + 2 = 4.\nThe answer is \\boxed{4}.", r"So \boxed{4}."]


def test_a_solution_too_long_to_show_makes_no_card() -> None:
    long = problem("Two gnomes plus two gnomes?", solution="\n".join(["Count one more."] * 40))
    assert propose_solved(CELL, [long], 2).cards == ()


def test_a_hostile_solution_makes_no_card_and_no_error() -> None:
    bad = problem("Two gnomes plus two gnomes?", solution="turn \u202e around")
    assert propose_solved(CELL, [bad], 2).cards == ()


def test_tiers_get_cards_of_their_own() -> None:
    coins = [problem("A purse holds two silver coins. How many coins?")]
    ids = {propose_solved(TreeCell(tier, WHOLE), coins, 2).cards[0].card_id for tier in (TierName.MS, TierName.HS)}
    assert len(ids) == 2


def test_gold_domains_are_used_where_every_problem_has_one() -> None:
    named = [problem("a b", domain="Number Theory"), problem("c d", domain="geometry")]
    assert [domain.name for domain in partition_by_label(named).domains] == ["geometry", "number_theory"]
    assert [domain.name for domain in partition_by_label([*named, problem("e f")]).domains] == [WHOLE]


@pytest.mark.parametrize("name", ["universal", "2D", "x" * 80, "幾何"])
def test_a_label_that_can_name_no_domain_makes_a_single_one(name: str) -> None:
    assert [domain.name for domain in partition_by_label([problem("a b", domain=name)]).domains] == [WHOLE]


def test_most_problems_are_placed_by_words_where_their_label_says() -> None:
    domains = partition_by_label(load_bundled("starter", "train")).domains
    for split in ("train", "validation"):
        found = [each.domain in route_by_words(each, domains) for each in load_bundled("starter", split)]
        assert sum(found) >= 0.7 * len(found), split


def test_a_set_without_solutions_is_refused_with_the_fix() -> None:
    with pytest.raises(DataError, match="no training problem has a worked solution") as raised:
        partition_by_label([problem("a b", solution=None)])
    assert "field 'solution'" in raised.value.fix


def test_the_kinds_of_the_starter_set_are_mostly_its_families() -> None:
    train = load_bundled("starter", "train")
    named = {each.name: each.family for each in train}
    pure = total = 0
    for domain in partition_by_label(train).domains:
        here = [each for each in train if each.domain == domain.name]
        for card in propose_solved(TreeCell(TierName.MS, domain.name), here, 2).cards:
            families = [named[name] for name in card.provenance.supporting_problems]
            pure, total = pure + max(map(families.count, families)), total + len(families)
    assert pure >= 0.8 * total


# The whole loop, without a teacher

CONFIG = load_config(
    {
        "model": "scripted/steady",
        "preset": "starter",
        "teacher": "solutions",
        "relevance_threshold": 0.1,
    },
    env={},
)


def worked(asked: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Problems of the world whose solutions state their rule, in texts that say two words of it."""
    named = ((each, each.name.partition("-")[0]) for each in asked)
    return tuple(
        replace(each, text=each.text.replace("?", f", {rule}wise?"), solution=f"Here {statement(rule)}.")
        for each, rule in named
    )


TRAIN = worked(problems(6))


def learned(
    out: Path, held_out: tuple[Problem, ...] = (), solver: Scripted | None = None, config: Config = CONFIG
) -> EpistemicTree:
    settings = untaught_settings(config, Settings(epochs=1, add_runs=1, impact_runs=2))
    plan = LearnPlan(TRAIN, config, settings, out, HeldOutHashes.of(held_out))

    async def work() -> EpistemicTree:
        async with open_study(plan, model=solver or World().solver()) as study:
            return await learn(study)

    return asyncio.run(work())


def test_a_tree_is_learned_without_any_teacher(tmp_path: Path) -> None:
    tree = learned(tmp_path / "tree")
    medium = {rule for rule in RULES for card in tree if statement(rule) in card.payload and "HARD" not in card.card_id}
    assert medium == set(RULES), "every rule that the solver lacked has its card"
    assert {card.provenance.source for card in tree} == {"solutions"}
    manifest = json.loads((tmp_path / "tree" / "learn" / "learn.json").read_text())
    assert manifest["teacher"] == "solutions" and manifest["settings"]["refine"] == 0
    report = report_of(tmp_path / "tree")
    assert {cost.role for cost in report.costs} == {"solver"}
    assert "worked solutions gave" in report.summary and report.funnel.admitted == report.funnel.proposed
    assert any(lift.effect > 0.5 for story in report.cards for _, lift in story.lifts), "measured as any card is"


def test_no_training_problem_is_solved_by_copying_its_own_solution(tmp_path: Path) -> None:
    copied: list[str] = []

    def say(request: Request) -> str:
        last = request.messages[-1].content.split("\n\n")[0]
        copied.extend(message.content for message in request.messages[1:-1] if message.content.startswith(last))
        return solve(request)

    assert any(card.n_uses for card in (c.provenance for c in learned(tmp_path / "tree", (), Scripted(say, name="w"))))
    assert copied == []


def test_a_run_that_stopped_resumes_to_the_same_tree(tmp_path: Path) -> None:
    whole = learned(tmp_path / "whole")
    steps = (tmp_path / "whole" / "learn" / "steps.jsonl").read_text().splitlines(keepends=True)
    assert {"propose", "admit", "partition"} <= {json.loads(line)["what"] for line in steps}
    capped = CONFIG.model_copy(update={"max_calls": 400})
    with pytest.raises(BudgetExceeded):
        learned(tmp_path / "stopped", config=capped)
    done = (tmp_path / "stopped" / "learn" / "steps.jsonl").read_text()
    assert '"admit"' in done and '"freeze"' not in done, "it stopped between new cards and the end"
    assert learned(tmp_path / "stopped") == whole


def test_what_retells_a_held_out_problem_is_refused_and_the_rest_is_learned(tmp_path: Path) -> None:
    flims = tuple(each for each in TRAIN if "flim" in each.text)
    tree = learned(tmp_path / "tree", held_out=flims)
    assert not any(statement("flim") in card.payload for card in tree)
    assert any(statement("garn") in card.payload for card in tree)
    refused = report_of(tmp_path / "tree").refused
    assert refused and {each.refused.rule for each in refused} == {"answer_leak"}


def test_settings_that_show_no_demonstration_are_refused_with_the_fix() -> None:
    paper = load_config({"profile": "paper", "teacher": "solutions"}, env={})
    for config, settings in ((paper, Settings()), (CONFIG, Settings(examples=0))):
        with pytest.raises(UsageError, match="these settings show none"):
            untaught_settings(config, settings)


def test_a_forecast_has_no_teacher_call_and_no_price_to_add() -> None:
    *_, teacher = forecast(TRAIN, CONFIG, Settings())
    assert (teacher.most.calls, teacher.usd, teacher.most_usd) == (0, 0, 0)
