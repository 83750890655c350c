"""`kace learn --demo`: solve, learn, evaluate and report with the embedded model alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from kace.baselines.evaluate import Trial
from kace.cards.store import open_tree
from kace.cli.eval import finish_trial
from kace.cli.report import comparison_lines
from kace.cli.terminal import note
from kace.config import Config
from kace.files import DATA
from kace.models.base import Request
from kace.problems import Dataset, load_bundled
from kace.report.evaluation import evaluation_of
from kace.runs.scores import ScoreReader

FAMILIES = (
    "through_ticket",
    "under_lantern",
    "slackage",
    "hollow_run",
    "twice",
)
"""Families of the starter set: four house conventions, which no model can know, and one
that needs no card."""
PER_FAMILY = 2
SETTINGS = {"wordings": 8}
TEACHER = "scripted/recorded"


INTRO = """\
1. {model} solves ten problems, eight of them by rules of a canal that it cannot know.
2. Its failures become cards. The teacher's replies are recorded: they were written for
   these kinds of problems and ship with kace. Reruns that hide cards at random measure
   them.
3. Tiered (the ladder alone) and KACE (with the cards) solve ten problems held out.
A few minutes on two cores. Stop it at any time: the same command resumes.
"""


LETTERS = (DATA / "demo-letters.toml").read_text(encoding="utf-8")


def recorded_reply(request: Request) -> str:
    """Return the recorded blocks that fit a request."""
    asked = request.messages[1].content
    problems = re.findall(
        r"^## Problem (\d+)\n<problem>(.*?)</problem>",
        asked,
        flags=re.MULTILINE | re.DOTALL,
    )
    blocks = []
    for letter in tomllib.loads(LETTERS)["letter"]:
        if letter["step"] not in request.attempt.problem:
            continue
        words = letter.get("asks", [""])
        numbers = []
        for number, text in problems:
            if any(word in text for word in words):
                numbers.append(number)
        if letter.get("when", "") in asked and (numbers or "" in words):
            text = letter["text"].replace("PROBLEMS", ", ".join(numbers))
            blocks.append(text)
    return "\n".join(blocks) or "no cards"


def load_slice(split: str) -> Dataset:
    """Return the first problems of each family in a split of the starter set."""
    problems = load_bundled("starter", split)
    chosen = []
    for family in FAMILIES:
        found = [problem for problem in problems if problem.family == family]
        chosen += found[:PER_FAMILY]
    return Dataset("starter", split, tuple(chosen))


def compare_systems(
    held_out: Dataset, config: Config, out: Path
) -> Iterator[str]:
    """Evaluate both systems, and yield their difference."""
    runs: list[Path] = []
    for system, tree in (("tiered", None), ("kace", open_tree(out / "tree"))):
        note(f"kace: {system}: {len(held_out.problems)} problems held out")
        trial = Trial(system, held_out, config, 1, tree)
        finish_trial(trial, trial.open(out / system, runs))
        runs.append(out / system)
    found = evaluation_of(ScoreReader().open(runs), prices=config.prices)
    yield ""
    yield from comparison_lines(found)
    yield ""
    yield (
        f"{len(held_out.problems)} problems are few, and were chosen to show how it "
        "works. For the measured gain see docs/results.md."
    )
    yield f"Next: kace view {out}"
