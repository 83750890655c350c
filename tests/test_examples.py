"""The scripts in examples/ run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kace
from kace.problems import problem_rows
from tests.command import environment
from tests.learning.world import World, problems
from tests.serve.running import Running

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(folder: Path, name: str, *arguments: str, model: str = "scripted/dice?sides=40") -> str:
    env = environment(folder, KACE_MODEL=model)
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_solve_prints_a_line_per_attempt_and_the_answer(tmp_path: Path):
    lines = run_example(tmp_path, "solve.py", model="scripted/steady").splitlines()
    assert lines == ["ES 42", "ES 42", "es_unanimous 42"]


def test_write_card_makes_a_tree_with_the_card(tmp_path: Path):
    assert run_example(tmp_path, "write_card.py").count("\n") == 2
    assert "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK" in (tmp_path / "my-tree" / "cards.jsonl").read_text()


def test_learn_and_compare_end_with_a_sentence(tmp_path: Path):
    train = tmp_path / "train.jsonl"
    train.write_text("\n".join(problem_rows(problems(2))) + "\n")
    model = "scripted/dice?sides=40"
    kace.learn(train, tmp_path / "first", World().teacher(), model, quick=True, cache_dir=tmp_path / "cache")
    run_example(tmp_path, "learn.py", str(train), "tree", "replay/first/learn")
    sentence = run_example(tmp_path, "compare.py", str(train), "tree")
    assert sentence.startswith("kace") or "identical" in sentence


def test_serve_prints_the_voted_answer(tmp_path: Path):
    with Running("scripted/steady") as server:
        shown = run_example(tmp_path, "serve.py", server.base_url)
    assert shown.startswith("42 es_unanimous ")
