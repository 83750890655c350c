"""In a world whose every rule is known, the learner finds what is missing, keeps what helps, and drops the rest."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kace.cards.card import Difficulty, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.config import Config, load_config, profile_of
from kace.ladder.record import Solution
from kace.ladder.relevance import everyday_problems, open_index
from kace.ladder.session import open_session
from kace.ladder.tiers import TierName
from kace.learning.loop import learn
from kace.learning.measure import Impact
from kace.learning.report import report_of
from kace.learning.study import QUICK, LearnPlan, RunTotals, Settings, open_study, read_bill, read_steps
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from kace.runs.run import solve_all
from tests.learning.world import IDLE, MISLEADING, PLAIN, RULES, World, _card, problems, solve, statement, told_again

DEFAULTS = load_config({"model": "scripted/steady", "preset": "starter"}, env={})
CONFIG = load_config({"model": DEFAULTS.model, "profile": "paper"}, env={})
"""The whole block, as text."""
TRAIN, TEST = problems(8), problems(4, start=50)
RULE_CARDS = {f"EXACT_{rule.upper()}_RULE" for rule in RULES}
TEXT = {"examples": 0, "wordings": 0, "max_harm": 0, "add_runs": 2, "confident": False}
"""Settings of cards that are text alone."""
REVISED = {"epochs": 2, "refine": 2}
pytestmark = pytest.mark.usefixtures("few_everyday_problems")


def learned(
    world: World,
    out: Path,
    *,
    config: Config = CONFIG,
    train: tuple[Problem, ...] = TRAIN,
    start: EpistemicTree | None = None,
    **settings: object,
) -> EpistemicTree:
    plan = LearnPlan(train, config, Settings.model_validate(settings), out, start=start)

    async def work() -> EpistemicTree:
        async with open_study(plan, model=world.solver(), teacher=world.teacher()) as study:
            return await learn(study)

    return asyncio.run(work())


def accuracy(
    world: World, tree: EpistemicTree | None, test: tuple[Problem, ...] = TEST, config: Config = CONFIG
) -> float:
    solved: list[Solution] = []

    async def work() -> None:
        async with open_session(config, model=world.solver(), tree=tree) as session:
            await solve_all(test, session.kit, 8, solved.append)

    asyncio.run(work())
    return sum(bool(s.correct) for s in solved) / len(solved)


def shown(tree: EpistemicTree) -> set[str]:
    return {card.card_id for card in tree if card.status is not Status.DEPRECATED}


def test_a_quick_run_keeps_every_card_and_judges_a_domain_in_one_letter_for_both_tiers(tmp_path: Path):
    tree = learned(World(), tmp_path / "tree", config=DEFAULTS, train=problems(2), **QUICK)
    assert len(tree) and shown(tree) == {card.card_id for card in tree}
    assert any(MISLEADING in card.rule for card in tree)
    steps = [line.step for line in read_steps(tmp_path / "tree" / "learn" / "steps.jsonl")]
    for what in ("illustrate", "admit"):
        places = sorted(step.place for step in steps if step.what == what)
        assert places == ["MS+HS paving", "MS+HS tuning", "MS+HS weaving"], what
    assert sum(step.what == "propose" for step in steps) == 6


def test_a_classifier_that_cannot_be_read_is_warned_of_and_named_as_the_reason(tmp_path: Path):
    class Mute(World):
        def solver(self) -> Scripted:
            return Scripted(lambda request: "hm" if request.choices else solve(request), name="world")

    config = DEFAULTS.model_copy(update={"retrieval": CONFIG.retrieval})
    settings = {**TEXT, **QUICK, "add_runs": 1}
    assert not len(learned(Mute(), tmp_path / "tree", config=config, train=problems(2), **settings))
    steps = [line for line in read_steps(tmp_path / "tree" / "learn" / "steps.jsonl") if line.what == "run"]
    assert "warning: 12 of 12 problems past ES were placed in no domain" in steps[0].read(RunTotals).summary
    assert "replies of the classifier could not be read" in report_of(tmp_path / "tree").summary


def test_the_default_profile_keeps_the_rules_that_help_and_retires_the_rest(tmp_path: Path):
    """All of it with a teacher: demonstrations, dropout, posterior, wordings and thresholds."""
    world, train, test = World(), told_again(TRAIN), told_again(TEST)
    out = tmp_path / "tree"
    tree = learned(world, out, config=DEFAULTS, train=train)
    assert {card.card_id for card in tree} >= RULE_CARDS
    assert any(card.body == MISLEADING for card in tree) and any(card.body == IDLE for card in tree), "all were tried"
    others = shown(tree) - RULE_CARDS
    assert shown(tree) >= RULE_CARDS and not any(tree.card(name).body == MISLEADING for name in others)
    assert not any(tree.card(name).status is Status.VALIDATED for name in others)
    for name in RULE_CARDS:
        card = tree.card(name)
        assert card.status is Status.VALIDATED and "probably helps (P = 1.00)" in card.provenance.validated_lift
        assert len(card.examples) == 2 and len(card.wordings) == 18, "its own two problems, and as many as asked for"
    assert TreeStore.open(out).read().frozen == tree.content_hash()
    assert open_tree(out / "snapshots" / "epoch-1.jsonl").domains == tree.domains
    read = load_config({"model": DEFAULTS.model, "preset": "starter", "tree": out}, env={})
    calibrated = json.loads((out / "calibration.json").read_text())
    assert read.retrieval.relevance_threshold == calibrated["threshold"], "the tree is read by its own threshold"
    assert accuracy(world, None, test) == pytest.approx(1 / 3), "only the sums need no rule"
    assert accuracy(world, tree, test, read) == 1.0
    unrelated = tuple(problem for problem in TEST if problem.name.startswith(PLAIN))
    assert accuracy(world, tree, unrelated, read) == 1.0, "where no rule applies no card is shown that misleads"
    bill = read_bill(out / "learn")
    parts = ("epoch 1 add: solver", "epoch 1 add: teacher", "epoch 1 refine: solver", "partition: teacher")
    assert tuple(part.role for part in bill.parts) == parts
    assert sum(part.calls for part in bill.parts) == sum(role.calls for role in bill.roles)
    remembered = profile_of(None, out)["learning"]
    assert Settings.model_validate(remembered) == Settings(), "the class defaults are what ran"


def test_under_the_default_profile_a_world_with_nothing_to_know_keeps_nothing(tmp_path: Path):
    world, train, test = World(knowledge=()), told_again(TRAIN), told_again(TEST)
    tree = learned(world, tmp_path / "tree", config=DEFAULTS, train=train)
    assert len(tree) > 0 and Status.VALIDATED not in {card.status for card in tree}
    assert accuracy(world, tree, test, DEFAULTS) == pytest.approx(1 / 3)


def test_the_paper_profile_learns_the_rules_of_the_world(tmp_path: Path):
    """Leave-one-out, the threshold and the curator's revisions, with cards as text."""
    world, settings = World(misleading=False), profile_of("paper")["learning"]
    tree = learned(world, tmp_path / "tree", train=problems(4), **settings)
    assert shown(tree) >= RULE_CARDS
    assert accuracy(world, None) == pytest.approx(1 / 3) and accuracy(world, tree) == 1.0
    assert not any(card.examples or card.wordings for card in tree)
    assert not (tmp_path / "tree" / "calibration.json").exists()
    lines = [json.loads(line) for line in (tmp_path / "tree" / "learn" / "steps.jsonl").read_text().splitlines()]
    impacts = [line["value"] for line in lines if line["what"] == "impact"]
    marks = [card.provenance.validated_lift for card in tree if card.card_id in RULE_CARDS]
    assert all("leave-one-out" in mark for mark in marks)
    assert len(impacts) == 2 and any(line["what"] == "revise" for line in lines), "two epochs, each revised"


def test_a_learned_card_is_found_in_other_words_and_not_by_other_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()  # all everyday problems: they are the other kinds
    world, train, test = World(misleading=False), told_again(TRAIN), told_again(TEST)
    tree = learned(world, tmp_path / "tree", config=DEFAULTS, train=train, max_harm=0)
    assert accuracy(world, tree, test, DEFAULTS) == 1.0
    assert accuracy(world, tree, TEST, DEFAULTS) == 1.0
    index = open_index(open_tree(tmp_path / "tree"))
    best = [max(index(text).values(), default=0.0) for text in everyday_problems()[::10]]
    assert max(best) < DEFAULTS.retrieval.relevance_threshold


def test_every_admitted_card_is_measured_whatever_the_gate_says(tmp_path: Path):
    """The gate is closed; half of the attempts hide a card from its own problems and their nearest neighbours."""
    train = told_again(TRAIN)
    ids = {problem.name: problem.id for problem in train}
    closed = load_config({"model": DEFAULTS.model, "preset": "starter", "relevance_threshold": 0.99}, env={})
    tree = learned(World(misleading=False), tmp_path / "tree", config=closed, train=train, max_harm=0)
    steps = read_steps(tmp_path / "tree" / "learn" / "steps.jsonl")
    (impact,) = (line.read(Impact) for line in steps if line.what == "impact")
    assert impact.lifts.keys() >= RULE_CARDS
    assert all(tree.card(name).status is Status.VALIDATED for name in RULE_CARDS)
    for name, lift in impact.lifts.items():
        sources = tree.card(name).provenance.supporting_problems
        assert {vote.problem for vote in lift.votes} & {ids[source] for source in sources}, "its own problems"


seen: list[str] = []


class Watched(World):
    """A teacher who keeps what it was shown."""

    def teach(self, request: Request) -> str:
        seen.append(f"{request.attempt.problem}: {request.messages[-1].content}")
        return super().teach(request)


class Gapped(Watched):
    """A curator that reports a gap."""

    def teach(self, request: Request) -> str:
        told = super().teach(request)
        return (
            f"{told}\n<gap>\ntext: no card says what a lunt is\n</gap>" if "revise" in request.attempt.problem else told
        )


def test_a_gap_reaches_the_next_epochs_new_cards_and_the_curator_sees_the_final_answer(tmp_path: Path):
    seen.clear()
    learned(Gapped(knowledge=("flim",)), tmp_path / "tree", train=problems(4), **TEXT, **REVISED)
    asked = [each for each in seen if "propose" in each.partition(":")[0] and "## Problem" in each]
    gap = "Gaps that no card covers:\n- no card says what a lunt is"
    assert not any(gap in each for each in asked if each.startswith("epoch 1"))
    assert all(gap in each for each in asked if each.startswith("epoch 2")) and len(asked) > 6
    revised = [each for each in seen if "revise" in each.partition(":")[0]]
    assert re.search(r"^Final answer: \d+$", "\n".join(revised), re.MULTILINE)


class Twice(World):
    """A teacher that proposes one rule for both tiers."""

    def teach(self, request: Request) -> str:
        told = super().teach(request)
        name, asked = request.attempt.problem, request.messages[-1].content
        if "propose" not in name or "HS weaving" not in name or "the flim of" not in asked:
            return told
        return f"{told}\n{_card('EXACT_FLIM_RULE', 'flim', statement('flim'), ['1'], True)}"


def test_a_rule_proposed_for_both_tiers_is_one_card_that_both_read(tmp_path: Path):
    world = Twice(misleading=False, idle=False, knowledge=("flim",))
    tree = learned(world, tmp_path / "tree", train=problems(4), **{**TEXT, "add_runs": 1})
    card = tree.card("EXACT_FLIM_RULE")
    assert card.difficulty_tag is Difficulty.UNIVERSAL
    assert [each.card_id for each in tree if "FLIM" in each.card_id] == ["EXACT_FLIM_RULE"]
    steps = read_steps(tmp_path / "tree" / "learn" / "steps.jsonl")
    (impact,) = (line.read(Impact) for line in steps if line.what == "impact")
    votes = Counter(vote.problem for vote in impact.lifts[card.card_id].votes)
    assert 2 in votes.values(), "evidence of both tiers counts together"


def test_what_no_card_is_shown_to_is_not_solved_again_to_measure_cards(tmp_path: Path):
    train = told_again(TRAIN)
    world = World(misleading=False, idle=False)
    learned(world, tmp_path / "tree", config=DEFAULTS, train=train, wordings=0, max_harm=0)

    def solved(run: str) -> set[str]:
        traces = tmp_path / "tree" / "learn" / f"epoch-1-refine-{run}" / "traces.jsonl"
        return {json.loads(line)["label"] for line in traces.read_text().splitlines()}

    everything = {problem.name for problem in train}
    assert not (tmp_path / "tree" / "learn" / "epoch-1-refine-base").exists(), "nothing is compared with it"
    sums = {name for name in everything if name.startswith("sum-")}
    assert {frozenset(solved(f"dropout-{number}")) for number in range(1, 5)} == {frozenset(everything - sums)}


class Sure(Watched):
    """A solver that agrees with itself on a wrong answer to every flim."""

    def solver(self) -> Scripted:
        def say(request: Request) -> str:
            easy = request.attempt.tier == TierName.ES.value
            return "\\boxed{1}" if easy and "the flim of" in request.messages[-1].content else solve(request)

        return Scripted(say, name="world")


@pytest.mark.parametrize("confident", [False, True])
def test_a_rule_that_es_is_confidently_wrong_about_is_learned_only_on_demand(tmp_path: Path, confident: bool):
    seen.clear()
    tree = learned(Sure(), tmp_path / "tree", **{**TEXT, "add_runs": 1, "confident": confident})
    assert any("Exit: es_unanimous" in asked for asked in seen) is confident
    assert ("EXACT_FLIM_RULE" in tree) is confident


class Late(Watched):
    """A solver that finds every flim out at HS, and agrees with nobody before."""

    def solver(self) -> Scripted:
        def say(request: Request) -> str:
            asked = request.messages[-1].content
            if request.attempt.tier != TierName.HS.value or "the flim of" not in asked:
                return solve(request)
            a, b = map(int, re.findall(r"[0-9]+", asked)[:2])
            return f"\\boxed{{{RULES['flim'](a, b)}}}"

        return Scripted(say, name="world")


@pytest.mark.parametrize("failures", ["tier", "final"])
def test_what_only_an_earlier_tier_failed_is_no_failure_where_the_final_answer_counts(tmp_path: Path, failures: str):
    seen.clear()
    world = Late(misleading=False)
    tree = learned(world, tmp_path / "tree", train=problems(4), **TEXT, failures=failures)
    proposed = [asked for asked in seen if "Wrong attempt" in asked]
    assert any("the flim of" in asked for asked in proposed) is (failures == "tier")
    assert any("the garn of" in asked for asked in proposed), "what was never solved is shown either way"
    assert ("EXACT_FLIM_RULE" in tree) is (failures == "tier")
    assert accuracy(world, tree) == 1.0


def test_imagination_goes_in_rounds_over_the_cards_of_a_tree(tmp_path: Path):
    world = World(misleading=False, idle=False)
    tree = learned(world, tmp_path / "tree", train=problems(4), **TEXT)
    settings = {**TEXT, "epochs": 0, "imagine": 2}
    more = learned(world, tmp_path / "more", train=problems(4), start=tree, **settings)
    assert all(more.card(card.card_id) == card for card in tree), "what was there stays"
    rounds = [
        {card.card_id for card in open_tree(tmp_path / "more" / "snapshots" / f"epoch-{n}.jsonl")} for n in (1, 2)
    ]
    assert "RUBRIC_ALSO_1_MS_WEAVING" in rounds[0] < rounds[1] == {card.card_id for card in more}
    assert more.card("RUBRIC_ALSO_2_MS_WEAVING").provenance.supporting_problems == ()
    steps = read_steps(tmp_path / "more" / "learn" / "steps.jsonl")
    assert {line.what for line in steps if line.phase == "add"} <= {"imagine", "admit", "merge", "commit"}


def test_many_failures_are_asked_about_in_parts_and_the_same_rules_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kace.learning.loop.FAILURES_AT_ONCE", 6)
    tree = learned(World(), tmp_path / "tree", **TEXT, **REVISED)
    assert shown(tree) == RULE_CARDS
    assert any(card.body == MISLEADING for card in tree) and any(card.body == IDLE for card in tree), "both were tried"
    assert accuracy(World(), tree) == 1.0
    assert open_tree(tmp_path / "tree" / "snapshots" / "epoch-2.jsonl") == tree
    steps = {str(line.step) for line in read_steps(tmp_path / "tree" / "learn" / "steps.jsonl")}
    assert {"epoch 1 add MS weaving propose", "epoch 1 add MS weaving propose 1"} <= steps
