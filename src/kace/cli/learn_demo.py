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
from kace.runs.table import open_tables

HARD = ("through_ticket", "under_lantern", "slackage", "hollow_run")
EASY = ("twice",)
"""Families of the starter set: four house conventions, which no model can know, and one
that needs no card."""
PER_FAMILY = 2
SETTINGS = {"wordings": 8}
TEACHER = "scripted/recorded"


class RecordedTeacher(Scripted):
    """A teacher that replies with recorded cards, by what a request asks for."""

    def __init__(self) -> None:
        super().__init__(self.reply, name="recorded")
        text = (files("kace") / "data/demo-letters.toml").read_text("utf-8")
        self.letters = tomllib.loads(text)

    def reply(self, request: Request) -> str:
        """Return the recorded blocks that fit a request."""
        step = request.attempt.problem
        asked = request.messages[1].content
        if step == "partition":
            return "\n".join(self._domains(asked))
        if "propose" in step:
            return "\n".join(self._cards(asked)) or "no cards"
        blocks = []
        for card in self.letters["card"]:
            name = card["id"]
            if f"[{name}]" not in asked:
                continue
            if "illustrate" in step:
                text = "\nExample:\n".join(card["examples"])
                blocks.append(_block("example", f"id: {name}\ntext:\n{text}"))
            elif "wordings" in step:
                text = card["wordings"]
                blocks.append(_block("wordings", f"id: {name}\ntext:{text}"))
            else:
                ruling = f"id: {name}\nverdict: admit\nreason: a general rule"
                blocks.append(_block("ruling", ruling))
        return "\n".join(blocks)

    def _domains(self, asked: str) -> Iterator[str]:
        for domain in self.letters["domain"]:
            numbers = ", ".join(_problems_with(asked, domain["asks"]))
            signals = "\n".join(domain["signals"])
            yield _block(
                "domain",
                f"name: {domain['name']}\ndescription: {domain['description']}\n"
                f"problems: {numbers}\nsignals:\n{signals}",
            )

    def _cards(self, asked: str) -> Iterator[str]:
        for card in self.letters["card"]:
            numbers = ", ".join(_problems_with(asked, [card["asks"]]))
            if numbers and "Difficulty: medium" in asked:
                yield _block(
                    "card",
                    f"id: {card['id']}\nproblems: {numbers}\n"
                    f"payload:{card['payload']}",
                )


def _block(tag: str, fields: str) -> str:
    return f"<{tag}>\n{fields}\n</{tag}>"


def _problems_with(asked: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the numbers of the problems of a request that hold one of the words."""
    parts = re.split(r"^## Problem (\d+)", asked, flags=re.MULTILINE)[1:]
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        shown = re.search(r"<problem>(.*?)</problem>", text, re.DOTALL)
        if shown and any(word in shown[1] for word in words):
            yield number


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


def intro_lines(
    train: Sequence[Problem], held_out: Dataset, config: Config
) -> Iterator[str]:
    """Yield what the command is about to do."""
    hard = sum(problem.family in HARD for problem in train)
    yield (
        f"1. {config.model} solves {len(train)} problems, {hard} of them by rules of "
        "a canal that it cannot know."
    )
    yield (
        "2. Its failures become cards. The teacher's replies are recorded: they were "
        "written"
    )
    yield (
        "   for these kinds of problems and ship with kace. Reruns that hide cards at "
        "random measure them."
    )
    yield (
        "3. Tiered (the ladder alone) and KACE (with the cards) solve "
        f"{len(held_out.problems)} problems held out."
    )
    yield "A few minutes on two cores. Stop it at any time: the same command resumes."
    yield ""


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
    found = evaluation_of(open_tables([without, using]), prices=config.prices)
    write_atomic(out / "report.html", page(found))
    yield ""
    yield from comparison_lines(found)
    yield ""
    yield (
        f"{size} problems are few, and were chosen to show how it works. For the "
        "measured gain see docs/results.md."
    )
    note(f"report       {out / 'report.html'}")
