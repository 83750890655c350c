"""The scripts in examples/ run as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.command import environment
from tests.serve.running import Running

EXAMPLES = Path(__file__).parents[1] / "examples"
WORDS = ["apple", "brick", "candle", "drum", "eagle", "flute", "grape", "hammer", "iris", "jacket", "kettle", "lemon"]


def run_example(folder: Path, name: str, *arguments: str, model: str = "scripted/dice?sides=40") -> str:
    env = environment(folder, KACE_MODEL=model)
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


def problems(folder: Path) -> Path:
    path = folder / "problems.jsonl"
    rows = [
        {
            "problem": f"A shop marks a {word} of {price} euros up by 20 percent. What does the {word} cost now?",
            "answer": str(price * 6 // 5),
            "solution": f"20 percent of {price} is {price // 5}. Add it to {price}.",
        }
        for price, word in zip(range(50, 650, 50), WORDS, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_solve_prints_a_line_per_tier_and_the_answer(tmp_path: Path):
    lines = run_example(tmp_path, "solve.py", model="scripted/steady").splitlines()
    assert lines == ["ES [('42', 2)]", "es_unanimous 42"]


def test_write_card_makes_a_tree_with_the_card(tmp_path: Path):
    assert run_example(tmp_path, "write_card.py").count("\n") == 2
    assert "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK" in (tmp_path / "my-tree" / "cards.jsonl").read_text()


def test_learn_and_compare_end_with_a_sentence(tmp_path: Path):
    train = problems(tmp_path)
    run_example(tmp_path, "learn.py", str(train), "tree")
    sentence = run_example(tmp_path, "compare.py", str(train), "tree")
    assert sentence.startswith("kace") or "identical" in sentence


def test_serve_prints_the_voted_answer(tmp_path: Path):
    with Running("scripted/steady") as server:
        shown = run_example(tmp_path, "serve.py", server.base_url)
    assert shown.startswith("42 es_unanimous ")
