"""`kace lift` shows a text to attempts at random, and what it finds is what the text does."""

from __future__ import annotations

import asyncio
import importlib
import json
import random
from pathlib import Path
from types import ModuleType

import pytest

from kace.baselines.evaluate import Trial, run_trial
from kace.baselines.lift import Effect, lift_of, open_lift, read_skill
from kace.cards.card import CardError
from kace.config import load_config
from kace.errors import DataError
from kace.ladder.prompt import NOTES
from kace.models.base import Request
from kace.models.scripted import Script, Scripted
from kace.problems import Dataset, Problem
from kace.runs.metrics import Clusters
from kace.runs.run import Run
from tests.command import run_kace

ROOT = Path(__file__).parents[2]
CARD = (ROOT / "docs" / "examples" / "average-speed.md").read_text()
PROBLEMS = tuple(Problem(f"How many are {n} and one?", str(n + 1)) for n in range(30))
EACH = Clusters("problem", {})


def measured(folder: Path, text: str, script: Script, run: str = "run") -> tuple[Effect, Effect]:
    """What a text does to a model that is scripted."""
    skill_file = folder / "skill.md"
    skill_file.write_text(text)
    skill = read_skill(skill_file)
    config = load_config({"model": "scripted/custom", "seed": 7}, env={"HOME": "/nonexistent"})
    with Run(folder / run, {"v": 1}) as made:
        trial = Trial("tiered", Dataset("numbers", "test", PROBLEMS), config, 1)
        system = open_lift(skill, config, 3)
        asyncio.run(run_trial(trial, made, model=Scripted(script), system=system))
        made.table.refresh()
        return lift_of(skill, made.table.solutions(), EACH)


def answers(share_right: float, told: float) -> Script:
    """A model that is right so often, and more often if its prompt has the hint."""

    def reply(request: Request) -> str:
        hint = "ADD ONE" in request.messages[0].content
        text = request.messages[-1].content
        right = int(text.split(" and one")[0].rpartition(" ")[2]) + 1
        chance = random.Random(request.sampling.seed).random()
        return f"\\boxed{{{right if chance < (told if hint else share_right) else -1}}}"

    return reply


def test_a_text_that_helps_is_found_and_by_how_much(tmp_path: Path):
    lift, sham = measured(tmp_path, "Always ADD ONE.", answers(0.3, 0.8))
    assert lift.p < 0.001 and lift.verdict.startswith("It helps here: +")
    assert lift.difference == pytest.approx(0.5, abs=0.15)
    assert 0 < lift.interval.low < lift.difference < lift.interval.high
    assert sham.p > 0.05
    assert lift.made == lift.made_without == 3 * len(PROBLEMS)


def test_a_text_that_harms_is_found_and_one_that_does_nothing_is_not(tmp_path: Path):
    lift, _ = measured(tmp_path, "Never ADD ONE.", answers(0.9, 0.3))
    assert lift.verdict.startswith("It harms here: -")
    lift, _ = measured(tmp_path, "Think.", answers(0.5, 0.9), run="idle")
    assert lift.verdict.startswith("With it and without it are indistinguishable: ")
    assert lift.words.endswith("on 30 problems")


def test_hidden_attempts_get_the_prompt_without_the_text(tmp_path: Path):
    seen: list[bool] = []

    def reply(request: Request) -> str:
        seen.append("ADD ONE" in request.messages[0].content)
        return "\\boxed{1}" if seen[-1] else "none"

    lift, _ = measured(tmp_path, "ADD ONE", reply)
    assert seen.count(True) == seen.count(False) == lift.made == lift.made_without
    run = (tmp_path / "run" / "traces.jsonl").read_text().splitlines()
    first = set()
    for line in run:
        attempts = json.loads(line)["attempts"]
        for attempt in attempts:
            assert (attempt["answer"] is None) == (attempt["hidden"] == [NOTES])
        hidden = [bool(attempt["hidden"]) for attempt in attempts]
        assert [hidden[0] != hidden[1], hidden[2] != hidden[3], hidden[4] != hidden[5]] == [True] * 3
        first.add(tuple(hidden[::2]))
    assert len(first) > 4, "which of a pair is shown the text is drawn"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("bench_lift")


@pytest.mark.parametrize("family", [1, 3])
def test_false_alarms_are_at_most_nominal_in_simulations(bench: ModuleType, family: int):
    chance = random.Random(5)
    runs = [bench.simulate(bench.World(12, family, 0.0), chance) for _ in range(400)]
    most = 20 + 2.33 * (400 * 0.05 * 0.95) ** 0.5  # 1 % of worlds at exactly 5 % have more
    assert sum(lift.p <= 0.05 for lift, sham in runs) <= most
    assert sum(sham.p <= 0.05 for lift, sham in runs) <= most
    assert abs(sum(lift.difference for lift, sham in runs)) / 400 < 0.02


def test_the_sham_finds_nothing_where_the_text_does_a_lot(bench: ModuleType):
    chance = random.Random(5)
    runs = [bench.simulate(bench.World(24, 1, 0.4), chance) for _ in range(100)]
    assert sum(lift.p <= 0.05 for lift, sham in runs) > 90
    assert sum(sham.p <= 0.05 for lift, sham in runs) < 12


def test_a_skill_is_read_without_its_front_matter_and_a_card_as_a_card(tmp_path: Path):
    (tmp_path / "SKILL.md").write_text("---\nname: x\ndescription: y\n---\n\n# Dates\n\nCount from one.\n")
    assert read_skill(tmp_path).notes == "# Dates\n\nCount from one."
    assert not read_skill(tmp_path).cards
    (tmp_path / "card.md").write_text(CARD)
    (card,) = read_skill(tmp_path / "card.md").cards
    assert card.card_id == "RUBRIC_AVERAGE_SPEED_THERE_AND_BACK"
    (tmp_path / "bad.md").write_text(CARD.split("Example:")[0])
    with pytest.raises(CardError, match="needs whole examples"):
        read_skill(tmp_path / "bad.md")
    (tmp_path / "empty.md").write_text("\n")
    with pytest.raises(DataError, match="no text in it"):
        read_skill(tmp_path / "empty.md")


def test_the_verb_resumes_and_says_both_figures(tmp_path: Path):
    (tmp_path / "card.md").write_text(CARD)
    rows = [{"problem": f"Throw {n}.", "answer": "1", "family": f"f{n // 2}"} for n in range(8)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    arguments = ("lift", "--skill", "card.md", "--data", "d.jsonl", "--model", "scripted/dice?sides=2")
    plan = run_kace(tmp_path, *arguments, "--dry-run")
    assert plan.returncode == 0 and "64 calls" in plan.stderr
    assert not (tmp_path / "runs").exists()
    done = run_kace(tmp_path, *arguments, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "A/A" in done.stdout and "With it and without it are indistinguishable: " in done.stdout
    again = run_kace(tmp_path, *arguments, "--out", "run", "--json", "--max-calls", "1")
    found = json.loads(again.stdout)
    assert (found["lift"]["cluster"], found["lift"]["clusters"]) == ("family", 4)
    assert "on 4 families" in done.stdout
    assert found["lift"]["made"] == found["lift"]["made_without"] == 32
    other = run_kace(tmp_path, *arguments, "--out", "run", "--pairs", "2")
    assert other.returncode == 2 and "holds a run with another system" in other.stderr
    missing = run_kace(tmp_path, "lift", "--skill", "nothing.md", "--data", "d.jsonl")
    assert missing.returncode == 2 and missing.stderr.startswith("kace: nothing.md: no such file")
