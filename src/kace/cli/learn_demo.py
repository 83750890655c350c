"""`kace learn --demo`: solve, learn, evaluate and report with the embedded model alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from kace.baselines.evaluate import Trial
from kace.cards.store import open_tree
from kace.cli.data import load_data
from kace.cli.eval import finish_trial
from kace.cli.report import comparison_lines
from kace.cli.terminal import note
from kace.config import Config
from kace.files import write_atomic
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Dataset, Problem, load_bundled
from kace.report.evaluation import evaluation_of, page
from kace.runs.scores import ScoreReader

HARD = ("through_ticket", "under_lantern", "slackage", "hollow_run")
EASY = ("twice",)
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


class RecordedTeacher(Scripted):
    """A teacher that replies with recorded blocks, by what a request asks for."""

    def __init__(self) -> None:
        super().__init__(self.reply, name="recorded")
        text = (files("kace") / "data/demo-letters.toml").read_text("utf-8")
        self.letters = tomllib.loads(text)["letter"]

    def reply(self, request: Request) -> str:
        """Return the recorded blocks that fit a request."""
        asked = request.messages[1].content
        problems = re.findall(
            r"^## Problem (\d+)\n<problem>(.*?)</problem>",
            asked,
            flags=re.MULTILINE | re.DOTALL,
        )
        blocks = []
        for letter in self.letters:
            words = letter.get("asks", ())
            numbers = []
            for number, text in problems:
                if any(word in text for word in words):
                    numbers.append(number)
            fits = letter["step"] in request.attempt.problem
            if (
                fits
                and letter.get("when", "") in asked
                and (numbers or not words)
            ):
                text = letter["text"].replace("PROBLEMS", ", ".join(numbers))
                blocks.append(text)
        return "\n".join(blocks) or "no cards"


def load_slices(config: Config) -> tuple[tuple[Problem, ...], Dataset]:
    """Return problems to learn from, and others of the same families to evaluate on."""
    train = _first_per_family(load_bundled("starter", "train"))
    data = load_data("starter", "validation", config)
    held_out = _first_per_family(data.problems)
    return train, replace(data, problems=held_out)


def _first_per_family(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    chosen = []
    for family in (*HARD, *EASY):
        found = [problem for problem in problems if problem.family == family]
        chosen += found[:PER_FAMILY]
    return tuple(chosen)


def compare_systems(
    held_out: Dataset, config: Config, out: Path
) -> Iterator[str]:
    """Evaluate both systems, write the page, and yield their difference."""
    tree = open_tree(out / "tree")
    without = out / "tiered"
    using = out / "kace"
    size = len(held_out.problems)
    note(f"kace: tiered: {size} problems held out")
    finish_trial(Trial("tiered", held_out, config, 1), without)
    note(f"kace: kace: the same {size} problems")
    finish_trial(Trial("kace", held_out, config, 1, tree), using, [without])
    tables = ScoreReader().open([without, using])
    found = evaluation_of(tables, prices=config.prices)
    write_atomic(out / "report.html", page(found))
    yield ""
    yield from comparison_lines(found)
    yield ""
    yield (
        f"{size} problems are few, and were chosen to show how it works. For the "
        "measured gain see docs/results.md."
    )
    note(f"report       {out / 'report.html'}")
