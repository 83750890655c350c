"""`kace learn --method` by hand: progress, resume, caps, and bad input in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kace.baselines.ace import read_playbooks
from kace.cards.store import TreeStore
from kace.problems import problem_rows
from tests.baselines.ace_world import REGISTRY
from tests.baselines.test_reflections import learned
from tests.command import Kace
from tests.learning.world import problems
from tests.models.chat_server import Answer, ChatServer, Seen, error, says

pytestmark = pytest.mark.usefixtures("train_file")
ACE = ("learn", "--method", "ace")
SCRIPTED = ("--train", "train.jsonl", "--model", "scripted/dice?sides=9", "--teacher", "scripted/silent")


def test_ace_says_how_it_goes_and_a_second_run_costs_nothing(kace: Kace, tmp_path: Path):
    first = kace(*ACE, *SCRIPTED, "--out", "book")
    assert first.returncode == 0, first.stderr
    assert "epoch 1 ace study 3:" in first.stderr and "bullets" in first.stderr
    assert "solver 18" in first.stdout and "teacher" in first.stdout
    assert read_playbooks(tmp_path / "book", "ace").playbooks["all"].bullets == ()
    again = kace(*ACE, *SCRIPTED, "--out", "book")
    assert "none: everything was kept" in again.stdout and "study" not in again.stderr


def test_reflections_replace_the_cards_of_a_tree(kace: Kace, tmp_path: Path):
    TreeStore.create(tmp_path / "given", REGISTRY, learned(), author="test", note="begin")
    solver = ("--train", "train.jsonl", "--model", "scripted/dice?sides=9")
    done = kace("learn", "--method", "reflections", *solver, "--tree", "given", "--out", "tree")
    assert done.returncode == 0, done.stderr
    assert TreeStore.open(tmp_path / "tree").load().domains == REGISTRY
    assert kace("tree", "show", "tree").returncode == 0


def test_few_shot_demonstrations_are_read_from_the_training_file(kace: Kace, tmp_path: Path):
    solved = [replace(problem, solution=f"It is {problem.answer}.") for problem in problems(2)]
    (tmp_path / "solved.jsonl").write_text("\n".join(problem_rows(solved)) + "\n")
    (tmp_path / "test.jsonl").write_text("\n".join(problem_rows(problems(1, start=50))) + "\n")
    fewshot = ("eval", "--system", "knn-fewshot", "--artefact", "solved.jsonl", *SCRIPTED[2:4], "--seeds", "1")
    run = kace(*fewshot, "--set", "es_policy=skip", "--data", "test.jsonl", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["shown"] == 9
    leak = kace(*fewshot, "--data", "solved.jsonl", "--out", "leak")
    assert leak.returncode == 2 and "18 training problems appear in the evaluated data" in leak.stderr


def test_a_cap_ends_it_in_one_line_and_the_same_command_goes_on(kace: Kace):
    stopped = kace(*ACE, *SCRIPTED, "--out", "book", "--max-calls", "10")
    assert stopped.returncode == 1 and "the cap of 10 calls is reached" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert kace(*ACE, *SCRIPTED, "--out", "book").returncode == 0


def test_a_teacher_with_a_short_context_can_be_asked_for_shorter_replies(kace: Kace):
    def short(asked: Seen) -> Answer:
        most = asked.body["max_tokens"]
        full = error(400, f"max_tokens={most} cannot be greater than max_model_len=8192")
        return says("Nothing to say.") if most < 8192 else full

    with ChatServer(short) as server:
        teacher = ("--teacher", "openai/short", "--set", f"teacher_base_url={server.url}")
        command = (*ACE, *SCRIPTED[:4], *teacher, "--out", "book")
        stopped = kace(*command)
        assert stopped.returncode == 1 and "teacher_max_tokens" in stopped.stderr.replace("-", "_")
        assert kace(*command, "--set", "teacher_max_tokens=4000").returncode == 0, "and it goes on where it stopped"
    assert {seen.body["max_tokens"] for seen in server.requests} == {16_000, 4_000}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing", *SCRIPTED), "'kace', 'ace', 'domain-ace', 'gepa', 'reflections'"),
        (("ace", "--train", "train.jsonl", "--model", "scripted/dice"), "a learner needs a teacher"),
        (("ace", *SCRIPTED, "--limit", "3"), "too few to learn from"),
        (("gepa", *SCRIPTED, "--set", "budget_tokens=500"), "unknown setting 'budget_tokens'"),
        (("ace", *SCRIPTED, "--validation", "train.jsonl"), "--validation is not an option of --method ace"),
        (("ace", *SCRIPTED, "--tree", "train.jsonl"), "--tree is not an option of --method ace"),
        (("reflections", *SCRIPTED), "reflections replace the cards of a tree, and none is named"),
        (("ace", *SCRIPTED, "--dry-run"), "--dry-run is not an option of --method ace"),
        (("ace", *SCRIPTED, "--held-out", "train.jsonl"), "18 training problems appear in train.jsonl too"),
    ],
)
def test_a_wrong_command_is_told_in_one_line(kace: Kace, arguments: tuple[str, ...], said: str):
    done = kace("learn", "--method", *arguments, "--out", "out")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_other_settings_are_refused_in_a_folder_that_was_begun(kace: Kace):
    assert kace(*ACE, *SCRIPTED, "--out", "book").returncode == 0
    other = kace(*ACE, *SCRIPTED, "--out", "book", "--seed", "7")
    assert other.returncode == 2 and "another" in other.stderr


def test_gepa_trains_a_prompt(kace: Kace, tmp_path: Path):
    pytest.importorskip("gepa", reason="the extra gepa is not installed")
    done = kace("learn", "--method", "gepa", *SCRIPTED, "--out", "prompt", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    prompt = json.loads((tmp_path / "prompt" / "prompt.json").read_text())
    assert prompt["instructions"]
    assert "right" in done.stderr
