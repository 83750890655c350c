"""The report of a learning run: every figure comes from what was kept, and nothing in it can act on a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from kace.cards.card import UNIVERSAL, Card, Difficulty, Provenance, Status
from kace.cards.tree import Change, Domain, Edit, EpistemicTree
from kace.cli.learn import report_lines
from kace.config import Price, load_config
from kace.errors import DataError
from kace.files import write_atomic
from kace.ladder.tiers import TierName
from kace.learning import StepResult
from kace.learning.admit import Rulings, consolidate
from kace.learning.measure import Comparison, Fire, Impact, Lift
from kace.learning.propose import Proposals
from kace.learning.report import LearningReport, report_json, report_of
from kace.learning.revise import Action, Revision, Revisions
from kace.learning.study import RunTotals, StepLog, StepName, TreeWriter, bill_of
from kace.learning.teacher import CardRefusal, Partition
from kace.models.base import AttemptKey, Finish, Reply, Usage
from kace.models.cache import CallRecord, CallStore, read_calls
from kace.runs.stats import wilson
from tests.card_samples import a_card
from tests.recorded import recorded

HELPS, HARMS, QUIET = "EXACT_IT_HELPS", "RUBRIC_IT_HARMS", "MICRO_IT_SLEEPS"
TWIN = "EXACT_THE_TWIN"


def text(n: int) -> str:
    bodies = (
        "Complete the square and read off the vertex.",
        "Count the handshakes twice, then halve the total.",
        "Write the sum backwards below itself.",
    )
    return f"Useful when:\n- case number {n}\n\n{bodies[n]}"


class Learner:
    """Writes the steps of a learning run with the real parts, without a model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebook = StepLog(folder / "learn", self.manifest())
        self.growth = TreeWriter(folder, self.notebook)

    def manifest(self) -> dict[str, object]:
        settings = {"epochs": 2, "impact": "dropout"}
        config = {"model": "solver"}
        train = {"problems": 10, "hash": "0"}
        said = {"config": config, "teacher": "teacher", "settings": settings}
        return {"v": 1, **said, "prompts": {}, "train": train}

    def card(self, card_id: str, n: int, difficulty: Difficulty, domain: str) -> Card:
        return a_card(
            card_id,
            payload=f"{text(n)}",
            routing_conditions=("first",),
            difficulty_tag=difficulty,
            domain_tags=(domain,),
            provenance=Provenance(source="teacher", supporting_problems=("P1",), epoch_introduced=1),
        )

    def keep(
        self, phase: str, what: str, value: StepResult, *, epoch: int = 1, place: str = "", number: int = 0
    ) -> None:
        self.notebook.write(StepName(phase, what, epoch, place, number), value)

    def plant(self) -> None:
        domains = tuple(Domain(name=name, description=f"about {name}", share=0.5) for name in ("algebra", "geometry"))
        self.notebook.write(StepName("plan", "partition"), Partition(domains=domains))
        self.growth.plant(EpistemicTree.of(domains, ()))

    def run(
        self, what: str, right: int, *, epoch: int = 1, phase: str = "refine", place: str = "", number: int = 0
    ) -> None:
        step = StepName(phase, what, epoch, place, number)
        folder = str(step).replace(" ", "-")
        run = RunTotals(folder=folder, problems=10, correct=right, escalated=4, paper_calls=35)
        self.notebook.write(step, run)

    def refused(self, name: str, by: str, rule: str) -> CardRefusal:
        return CardRefusal.model_validate({"card_id": f"{name}", "by": by, "rule": f"{rule}", "reason": "why"})

    def add_medium(self) -> None:
        """Three proposals become one card: one is no block, one is refused, two say the same."""
        self.run("run", 3, phase="add", place="MS")
        cell, cards = (
            "MS algebra",
            (
                self.card(HELPS, 0, Difficulty.MEDIUM, "algebra"),
                self.card(TWIN, 0, Difficulty.MEDIUM, "algebra"),
            ),
        )
        leaky = self.card("EXACT_IT_LEAKS", 2, Difficulty.MEDIUM, "algebra")
        unread = self.refused("", "parser", "bad_block")
        self.keep("add", "propose", Proposals(cards=(*cards, leaky), refused=(unread,)), place=cell)
        leaked = self.refused("", "code", "answer_leak").model_copy(update={"card_id": leaky.card_id})
        ruled = Rulings(admitted=cards, refused=(leaked,))
        self.keep("add", "admit", ruled, place=cell)
        changes, merges = consolidate(self.growth.tree, cards)
        self.keep("add", "merge", merges, place="MS")
        self.commit("add", "commit", changes, "MS")

    def add_hard(self) -> None:
        self.run("run", 4, phase="add", place="HS")
        cards = (
            self.card(HARMS, 1, Difficulty.HARD, "geometry"),
            self.card(QUIET, 2, Difficulty.UNIVERSAL, UNIVERSAL),
        )
        self.keep("add", "propose", Proposals(cards=cards), place="HS geometry")
        self.keep("add", "admit", Rulings(admitted=cards), place="HS geometry")
        self.commit("add", "commit", consolidate(self.growth.tree, cards)[0], "HS")

    def commit(self, phase: str, what: str, changes: tuple[Change, ...], place: str = "") -> None:
        self.growth.commit(StepName(phase, what, 1, place), changes)

    def measure(self) -> None:
        self.run("base", 6)
        self.run("dropout", 5, number=1)
        fire = Fire(
            card_id=HELPS,
            n_shown=5,
            shown_correct=4,
            shown_wrong=1,
            tiers={TierName.MS: 5},
            problems=("P1",),
        )
        lifts = [self.lift(HELPS, 0.25, 0.05, 0.45), self.lift(HARMS, -0.2, -0.9, -0.1)]
        self.keep("refine", "impact", Impact(fires=(fire,), lifts=tuple(lifts)))
        tree = self.growth.tree
        credited = (
            Edit(tree.card(HELPS).with_status(Status.VALIDATED)),
            Edit(tree.card(HARMS).with_status(Status.DEPRECATED)),
        )
        self.commit("refine", "credit", credited)

    @staticmethod
    def lift(card_id: str, effect: float, low: float, high: float) -> Lift:
        return Lift(
            card_id=card_id,
            effect=effect,
            low=low,
            high=high,
            shown=20,
            hidden=18,
            problems=6,
        )

    def revise(self) -> None:
        revision = Revision(action=Action.EDIT, card_id=HELPS, reason="too vague", payload="x")
        revisions = Revisions(
            revisions=(revision,),
            gaps=("nothing on circles",),
            refused=(self.refused(HELPS, "code", "vague"),),
        )
        self.keep("refine", "revise", revisions, place="algebra", number=1)
        self.run("verify", 4, place="algebra", number=1)
        look = Comparison(
            domain="algebra",
            number=1,
            n=5,
            lift=0.2,
            gained=("P3",),
            lost=("P4",),
            accepted=False,
            reason="below the threshold",
        )
        self.keep("refine", "compare", look, place="algebra", number=1)
        self.commit("refine", "commit", (), "algebra")

    def finish(self) -> None:
        self.growth.snapshot(1)
        self.growth.freeze()
        used = {"calls": 12, "input": 1000, "cached": 400, "output": 500, "usd": 1.25}
        free = {"calls": 3, "input": 10, "output": 5, "usd": 0.0}
        roles = [{"role": "solver", **used}, {"role": "teacher", **free}]
        bill = {"roles": roles}
        write_atomic(self.folder / "learn" / "bill.json", json.dumps(bill))


def learned(folder: Path) -> LearningReport:
    learner = Learner(folder)
    with learner.notebook:
        learner.plant()
        learner.add_medium()
        learner.add_hard()
        learner.measure()
        learner.revise()
        learner.finish()
    return report_of(folder)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> LearningReport:
    return learned(tmp_path_factory.mktemp("runs") / "tree")


def test_a_finished_run_says_so(report: LearningReport):
    assert report.state == "finished"
    assert report.frozen
    assert (report.name, report.solver, report.teacher, report.train) == ("tree", "solver", "teacher", 10)


def test_every_run_has_its_accuracy_and_interval(report: LearningReport):
    scores = report.runs
    assert [score.totals.correct for score in scores] == [3, 4, 6, 5, 4]
    assert scores[0].accuracy == 0.3
    assert scores[0].interval == wilson(3, 10)
    assert report.scores == tuple(scores[:3]), "a rerun with hidden cards or of fewer problems is not to be compared"


def test_the_funnel_adds_up(report: LearningReport):
    found = report.funnel
    expected = {"proposed": 6, "refused": 2, "waiting": 0, "admitted": 4, "merged": 1, "kept": 2, "retired": 1}
    assert found == {**expected, "unmeasured": 2, "validated": 1, "tokens": found["tokens"]}
    assert found["admitted"] - found["merged"] == found["kept"] + found["retired"]


def test_refusals_say_by_whom_and_why(report: LearningReport):
    told = [(each.step.place, each.refused.by, each.refused.rule) for each in report.proposals if each.refused]
    assert told == [("MS algebra", "parser", "bad_block"), ("MS algebra", "code", "answer_leak")]


def test_a_card_without_demonstrations_is_refused_for_them(tmp_path: Path):
    learner = Learner(tmp_path / "tree")
    card = learner.card(HELPS, 0, Difficulty.MEDIUM, "algebra")
    with learner.notebook:
        learner.plant()
        learner.keep("add", "propose", Proposals(cards=(card,)), place="MS algebra")
        bare = learner.refused(HELPS, "parser", "bad_block")
        learner.keep("add", "illustrate", Proposals(cards=(card,), refused=(bare,)), place="MS algebra")
    (proposal,) = report_of(tmp_path / "tree").proposals
    assert (proposal.fate, proposal.refused) == ("refused", bare)


def test_a_merged_card_names_the_one_that_stays(report: LearningReport):
    (merge,) = [each.merge for each in report.proposals if each.merge]
    assert (merge.card_id, merge.into) == (TWIN, HELPS)


def test_costs_are_by_role_and_add_up(report: LearningReport):
    assert [(cost.role, cost.calls) for cost in report.bill.roles] == [("solver", 12), ("teacher", 3)]
    assert report.bill.usd == 1.25


STEPS = ("teacher: partition", "teacher: propose", "teacher: propose, second round")


def test_the_bill_of_calls_is_by_role_by_phase_and_by_step(tmp_path: Path):
    calls = CallStore(tmp_path / "calls")
    asked = [("partition", 0), ("epoch 1 add MS algebra propose", 0), ("epoch 1 add MS algebra propose 1", 1)]
    for name, index in asked:
        key = AttemptKey(name, 0, "TEACHER", index)
        reply = Reply("text", Finish.STOP, Usage(input=100, output=10, cached=40), 1.0)
        calls.put(CallRecord.of(sha256(name.encode()).hexdigest(), "openai/big", key, reply))
    calls.close()
    config = load_config({"teacher": "openai/big"}, env={})
    price = {"openai/big": Price(input=1.0, output=10.0)}
    bill = bill_of(read_calls(calls.folder), config.model_copy(update={"prices": price}))
    rows = [(cost.role, cost.calls, cost.input, cost.cached, cost.output) for cost in (*bill.roles, *bill.parts)]
    assert rows == [
        ("teacher", 3, 300, 120, 30),
        ("epoch 1 add: teacher", 2, 200, 80, 20),
        ("partition: teacher", 1, 100, 40, 10),
    ]
    steps = {cost.role: (cost.calls, cost.input) for cost in bill.steps}
    assert steps == dict.fromkeys(STEPS, (1, 100))
    assert bill.usd == pytest.approx(6e-4)
    learned(tmp_path / "tree")
    write_atomic(tmp_path / "tree" / "learn" / "bill.json", bill.model_dump_json())
    lines = [" ".join(line.split()) for line in report_lines(report_of(tmp_path / "tree"))]
    assert any(line.startswith("epoch 1 add: teacher 2 200 80 ") for line in lines), lines
    for name in STEPS:
        assert any(line.startswith(f"{name} 1 100 40 ") for line in lines), name


def test_an_unknown_price_makes_no_total(tmp_path: Path):
    learned(tmp_path / "tree")
    (tmp_path / "tree" / "learn" / "bill.json").write_text('{"roles": [{"role": "solver", "calls": 1, "usd": null}]}')
    assert report_of(tmp_path / "tree").bill.usd is None


def test_the_report_is_json_with_whole_cards(report: LearningReport):
    told = json.loads(report_json(report))
    assert {card["card_id"] for card in told["cards"]} == {HELPS, HARMS, QUIET}
    assert told["comparisons"][0][1]["accepted"] is False
    assert told["funnel"]["kept"] == 2 and told["summary"]


@pytest.mark.parametrize(
    ("right", "proposals", "reason"),
    [
        (10, Proposals(), "got all training problems right"),
        (3, Proposals(), "saw what went wrong (7 problems) and wrote no card"),
        (3, "refused", "every proposal was refused (bad_block 1)"),
    ],
)
def test_a_run_that_ends_without_a_card_says_why(tmp_path: Path, right: int, proposals: Proposals, reason: str):
    learner = Learner(tmp_path / "tree")
    if proposals == "refused":
        proposals = Proposals(refused=(learner.refused("", "parser", "bad_block"),))
    with learner.notebook:
        learner.plant()
        learner.run("run", right, phase="add", place="MS")
        learner.keep("add", "propose", proposals, place="MS algebra")
        learner.growth.freeze()
    assert reason in report_of(tmp_path / "tree").summary


def test_a_tree_whose_cards_were_all_retired_says_so(tmp_path: Path):
    learner = Learner(tmp_path / "tree")
    with learner.notebook:
        learner.plant()
        learner.add_medium()
        card = learner.growth.tree.card(HELPS)
        learner.commit("close", "prune", (Edit(card.with_status(Status.DEPRECATED)),))
        learner.growth.freeze()
    assert "1 that passed admission could not be shown to help" in report_of(tmp_path / "tree").summary


def test_a_folder_without_a_run_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="holds no learning run"):
        report_of(tmp_path)


def test_a_run_that_did_nothing_yet_has_a_report(tmp_path: Path):
    Learner(tmp_path / "tree").notebook.__exit__()
    found = report_of(tmp_path / "tree")
    assert found.state == "stopped" and found.runs == () and found.cards == ()
    assert "No card has been proposed yet." in found.summary


def test_an_unfinished_run_says_how_far_it_came(tmp_path: Path):
    learner = Learner(tmp_path / "tree")
    with learner.notebook:
        learner.plant()
        learner.add_medium()
        learner.keep(
            "add",
            "propose",
            Proposals(cards=(learner.card(HARMS, 1, Difficulty.HARD, "geometry"),)),
            place="HS geometry",
        )
    found = report_of(tmp_path / "tree")
    assert found.state == "stopped" and found.frozen is None
    assert (found.funnel["proposed"], found.funnel["waiting"], found.funnel["kept"]) == (5, 1, 1)
    told = " ".join(" ".join(report_lines(found)).split())
    assert "The last step done: epoch 1 add HS geometry propose." in told


def test_the_terminal_shows_it_in_80_columns(report: LearningReport):
    lines = list(report_lines(report))
    assert not [line for line in lines if len(line) > 80]
    told = "\n".join(lines)
    for part in ("refused      2", "kept         2", "3 of 10 right, 30.0% [10.8%, 60.3%]", "1.25 USD"):
        assert part in told, part


def test_no_text_can_move_the_cursor(tmp_path: Path):
    found = replace(learned(tmp_path / "tree"), name="\x1b[2J\x1b]0;owned\x07\u202e\u200ename\r")
    told = "".join(report_lines(found))
    assert not re.search("[\x00-\x1f\x7f\u202e\u200e]", told)
    assert "owned" not in told


def test_the_report_names_the_teacher_of_a_published_run():
    published = recorded("learning_run") / "tree"
    assert report_of(published).teacher == "exchange/exchange"
