"""Few-shot demonstrations of solved training problems: gold solutions, or the solver's own right attempts.

In memory a demonstration is a card, so that relevance, budget, prompt and record treat it like a tree's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kace.answers.extract import last_boxed
from kace.baselines.evaluate import TrainPlan, read_artefact
from kace.cards.card import (
    UNIVERSAL,
    Card,
    Difficulty,
    Example,
    Provenance,
    with_examples,
)
from kace.cards.tree import EpistemicTree
from kace.errors import DataError
from kace.files import write_atomic
from kace.learning import StepResult
from kace.problems import Problem

FILE = "demonstrations.json"


class SolvedProblem(StepResult):
    """A training problem. Without a solution it is no demonstration, but must not be evaluated on either."""

    problem: Annotated[str, Field(min_length=1)]
    worked: str = ""
    label: str = ""


class FewshotSet(StepResult):
    """The training problems that demonstrations are picked from, in the order of their file."""

    v: Literal[1] = 1
    kind: str  # the method that made it
    problems: tuple[SolvedProblem, ...]

    @property
    def train(self) -> tuple[Problem, ...]:
        """The training problems."""
        return tuple(
            Problem(each.problem, label=each.label) for each in self.problems
        )

    @cached_property
    def tree(self) -> EpistemicTree:
        """A tree in memory with a card per demonstration, numbered as in the file."""
        cards = []
        for number, each in enumerate(self.problems, 1):
            if each.worked:
                cards.append(_card(number, Example(each.problem, each.worked)))
        return EpistemicTree.of((), cards)


def _card(number: int, example: Example) -> Card:
    """Return a card without validation: it has no rule and no trigger, and its solution may be long."""
    return Card.model_construct(
        card_id=f"DEMO_NO_{number:05d}",
        payload=with_examples("", (example,)),
        routing_conditions=(),
        difficulty_tag=Difficulty.MEDIUM,
        domain_tags=(UNIVERSAL,),
        helpfulness_score=0.0,
        provenance=Provenance(source="a solved training problem"),
    )


def read_demonstrations(path: Path, method: str) -> FewshotSet:
    """Read the demonstrations of a file, or of the folder that training made."""
    return read_artefact(
        path, FILE, FewshotSet, "set of demonstrations", method
    )


def train_knn(plan: TrainPlan) -> FewshotSet:
    """Write the training problems with their gold solutions to the plan's folder. No model is called."""
    if not any(problem.solution for problem in plan.train):
        raise DataError(
            "no training problem has a worked solution",
            fix="add the field 'solution'",
        )
    return _write(plan, [problem.solution or "" for problem in plan.train])


def _write(plan: TrainPlan, solutions: Sequence[str]) -> FewshotSet:
    found = []
    for problem, solution in zip(plan.train, solutions, strict=True):
        example = _worked_example(problem, solution)
        worked = example.worked if solution else ""
        made = SolvedProblem(
            problem=example.problem,
            worked=worked,
            label=problem.label,
        )
        found.append(made)
    fewshot = FewshotSet(kind=plan.method, problems=tuple(found))
    write_atomic(plan.out / FILE, fewshot.model_dump_json(indent=1) + "\n")
    return fewshot


def _worked_example(problem: Problem, solution: str) -> Example:
    """Return a problem with a solution that ends in its answer, without blank lines."""
    worked = solution.strip()
    if not last_boxed(worked):
        worked = f"{worked}\nThe answer is \\boxed{{{problem.answer}}}."
    text = re.sub(r"\n\s*\n", "\n", problem.text.strip())
    return Example(text, re.sub(r"\n\s*\n", "\n", worked))
