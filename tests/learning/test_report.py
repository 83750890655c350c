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
from kace.learning import StepResult
from kace.learning.admit import consolidate
from kace.learning.measure import Comparison
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


BODIES = (
    "Complete the square and read off the vertex.",
    "Count the handshakes twice, then halve the total.",
    "Write the sum backwards below itself.",
)


def card(card_id: str, n: int, difficulty: Difficulty = Difficulty.MEDIUM, domain: str = "algebra") -> Card:
    return a_card(
        card_id,
        payload=f"Useful when:\n- case number {n}\n\n{BODIES[n]}",
        difficulty_tag=difficulty,
        domain_tags=(domain,),
        provenance=Provenance(source="teacher", supporting_problems=("P1",), epoch_introduced=1),
    )


def refused(name: str, by: str, rule: str) -> CardRefusal:
    return CardRefusal.model_validate({"card_id": name, "by": by, "rule": rule, "reason": "why"})


class Learner:
    """Writes the steps of a learning run with the real parts, without a model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        train = {"problems": 10, "hash": "0"}
        manifest = {"v": 1, "config": {"model": "solver"}, "teacher": "teacher", "settings": {}, "prompts": {}}
        self.notebook = StepLog(folder / "learn", {**manifest, "train": train})
        self.growth = TreeWriter(folder, self.notebook)

    def keep(self, phase: str, what: str, value: StepResult, place: str = "", number: int = 0) -> None:
        self.notebook.write(StepName(phase, what, 1, place, number), value)

    def commit(self, phase: str, what: str, changes: tuple[Change, ...], place: str = "") -> None:
        self.growth.commit(StepName(phase, what, 1, place), changes)

    def plant(self) -> None:
        domains = tuple(Domain(name=name, description=f"about {name}", share=0.5) for name in ("algebra", "geometry"))
        self.notebook.write(StepName("plan", "partition"), Partition(domains=domains))
        self.growth.plant(EpistemicTree.of(domains, ()))

    def run(self, what: str, right: int, phase: str = "refine", place: str = "", number: int = 0) -> None:
        self.keep(phase, what, RunTotals(problems=10, correct=right, escalated=4, paper_calls=35), place, number)

    def add_medium(self) -> None:
        """Three proposals become one card: one is no block, one is refused, two say the same."""
        self.run("run", 3, "add", "MS")
        cards = (card(HELPS, 0), card(TWIN, 0))
        leaky = card("EXACT_IT_LEAKS", 2)
        unread, leaked = refused("", "parser", "bad_block"), refused(leaky.card_id, "code", "answer_leak")
        self.keep("add", "propose", Proposals(cards=(*cards, leaky), refused=(unread,)), "MS algebra")
        self.keep("add", "admit", Proposals(cards=cards, refused=(leaked,)), "MS algebra")
        changes, merges = consolidate(self.growth.tree, cards)
        self.keep("add", "merge", merges, "MS")
        self.commit("add", "commit", changes, "MS")

    def add_hard(self) -> None:
        self.run("run", 4, "add", "HS")
        cards = (card(HARMS, 1, Difficulty.HARD, "geometry"), card(QUIET, 2, Difficulty.UNIVERSAL, UNIVERSAL))
        self.keep("add", "propose", Proposals(cards=cards), "HS geometry")
        self.keep("add", "admit", Proposals(cards=cards), "HS geometry")
        self.commit("add", "commit", consolidate(self.growth.tree, cards)[0], "HS")

    def measure(self) -> None:
        self.run("base", 6)
        self.run("dropout", 5, number=1)
        found = {HELPS: Status.VALIDATED, HARMS: Status.DEPRECATED}
        edits = (Edit(self.growth.tree.card(name).with_status(status)) for name, status in found.items())
        self.commit("refine", "credit", tuple(edits))

    def revise(self) -> None:
        revision = Revision(action=Action.EDIT, card_id=HELPS, reason="too vague")
        vague = refused(HELPS, "code", "vague")
        revisions = Revisions(revisions=(revision,), gaps=("nothing on circles",), refused=(vague,))
        self.keep("refine", "revise", revisions, "algebra", 1)
        self.run("verify", 4, place="algebra", number=1)
        reason = "below the threshold"
        look = Comparison(n=5, lift=0.2, gained=("P3",), lost=("P4",), accepted=False, reason=reason)
        self.keep("refine", "compare", look, "algebra", 1)
        self.commit("refine", "commit", (), "algebra")

    def finish(self) -> None:
        self.growth.snapshot(1)
        self.growth.freeze()
        solver = {"role": "solver", "calls": 12, "input": 1000, "cached": 400, "output": 500, "usd": 1.25}
        teacher = {"role": "teacher", "calls": 3, "input": 10, "output": 5, "usd": 0.0}
        write_atomic(self.folder / "learn" / "bill.json", json.dumps({"roles": [solver, teacher]}))


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


def test_a_finished_run_says_so_and_what_each_role_cost(report: LearningReport):
    assert report.state == "finished"
    assert report.frozen
    assert (report.name, report.solver, report.teacher, report.train) == ("tree", "solver", "teacher", 10)
    assert [(cost.role, cost.calls) for cost in report.bill.roles] == [("solver", 12), ("teacher", 3)]
    assert report.bill.usd == 1.25


def test_every_run_has_its_accuracy_and_interval(report: LearningReport):
    scores = report.runs
    assert [score.totals.correct for score in scores] == [3, 4, 6, 5, 4]
    assert scores[0].accuracy == 0.3
    assert scores[0].interval == wilson(3, 10)
    assert report.scores == tuple(scores[:3]), "a rerun with hidden cards or of fewer problems is not to be compared"


def test_the_funnel_adds_up_and_a_merged_card_names_the_one_that_stays(report: LearningReport):
    found = report.funnel
    expected = {"proposed": 6, "refused": 2, "waiting": 0, "admitted": 4, "merged": 1, "kept": 2, "retired": 1}
    assert found == {**expected, "unmeasured": 2, "validated": 1}
    assert found["admitted"] - found["merged"] == found["kept"] + found["retired"]
    assert [(each.card_id, each.into) for each in report.proposals if each.into] == [(TWIN, HELPS)]


def test_refusals_say_by_whom_and_why(report: LearningReport):
    told = [(each.step.place, each.refused.by, each.refused.rule) for each in report.proposals if each.refused]
    assert told == [("MS algebra", "parser", "bad_block"), ("MS algebra", "code", "answer_leak")]


def test_a_card_without_demonstrations_is_refused_for_them(tmp_path: Path):
    learner = Learner(tmp_path / "tree")
    proposed = card(HELPS, 0)
    with learner.notebook:
        learner.plant()
        learner.keep("add", "propose", Proposals(cards=(proposed,)), "MS algebra")
        bare = refused(HELPS, "parser", "bad_block")
        learner.keep("add", "illustrate", Proposals(cards=(proposed,), refused=(bare,)), "MS algebra")
    (proposal,) = report_of(tmp_path / "tree").proposals
    assert (proposal.fate, proposal.refused) == ("refused", bare)


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
    bill = bill_of(read_calls(tmp_path / "calls"), config.model_copy(update={"prices": price}))
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
    assert any(line.startswith("epoch 1 add: teacher 2 200 80 0 20") for line in lines)
    for name in STEPS:
        assert any(line.startswith(f"{name} 1 100 40 0 10") for line in lines)


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
        (3, Proposals(refused=(refused("", "parser", "bad_block"),)), "every proposal was refused"),
    ],
)
def test_a_run_that_ends_without_a_card_says_why(tmp_path: Path, right: int, proposals: Proposals, reason: str):
    learner = Learner(tmp_path / "tree")
    with learner.notebook:
        learner.plant()
        learner.run("run", right, "add", "MS")
        learner.keep("add", "propose", proposals, "MS algebra")
        learner.growth.freeze()
    assert reason in report_of(tmp_path / "tree").summary


def test_a_tree_whose_cards_were_all_retired_says_so(tmp_path: Path):
    learner = Learner(tmp_path / "tree")
    with learner.notebook:
        learner.plant()
        learner.add_medium()
        kept = learner.growth.tree.card(HELPS)
        learner.commit("close", "prune", (Edit(kept.with_status(Status.DEPRECATED)),))
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
        late = card(HARMS, 1, Difficulty.HARD, "geometry")
        learner.keep("add", "propose", Proposals(cards=(late,)), "HS geometry")
    found = report_of(tmp_path / "tree")
    assert found.state == "stopped" and found.frozen is None
    assert (found.funnel["proposed"], found.funnel["waiting"], found.funnel["kept"]) == (5, 1, 1)
    told = " ".join(" ".join(report_lines(found)).split())
    assert "The last step done: epoch 1 add HS geometry propose." in told


def test_the_terminal_shows_it(report: LearningReport):
    told = "\n".join(report_lines(report))
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
