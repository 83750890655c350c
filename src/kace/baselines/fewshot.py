"""Few-shot demonstrations of solved training problems: gold solutions, or the solver's own right attempts.

In memory a demonstration is a card, so that gate, budget, prompt and record treat it as a tree's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kace.baselines.training import MethodSettings, Training, TrainPlan, read_artefact
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
from kace.ladder.retrieve import Ranking, text_scorer
from kace.learning.propose import worked_example
from kace.learning.steps import StepName, StepResult
from kace.learning.study import RunReading
from kace.models.base import after_thinking
from kace.problems import Problem

FILE = "demonstrations.json"
Indexed = Literal["problem", "solution"]
"""What nearness is measured over: the problem, or the problem with its solution."""


class FewshotSettings(MethodSettings):
    """How demonstrations are gathered. Epochs are passes of the ladder over problems not yet solved."""

    EXTENT: ClassVar[frozenset[str]] = frozenset({"epochs", "index"})

    index: Indexed = "problem"


class SolvedProblem(StepResult):
    """A training problem. Without a solution it is no demonstration, and still must not be evaluated on."""

    problem: Annotated[str, Field(min_length=1)]
    worked: str = ""
    label: str = ""


class FewshotPool(StepResult):
    """The training problems that demonstrations are picked from, in the order of their file."""

    v: Literal[1] = 1
    kind: str  # the method that made it
    index: Indexed
    problems: tuple[SolvedProblem, ...]

    @property
    def train(self) -> tuple[Problem, ...]:
        """The training problems."""
        return tuple(Problem(each.problem, label=each.label) for each in self.problems)

    @cached_property
    def tree(self) -> EpistemicTree:
        """A card for each demonstration, numbered as in the file. They are no part of any tree on disk."""
        solved = [
            (number, each)
            for number, each in enumerate(self.problems, 1)
            if each.worked
        ]
        return EpistemicTree.of(
            (),
            [
                _card(number, Example(each.problem, each.worked))
                for number, each in solved
            ],
        )

    def ranking(self, by: str) -> Ranking:
        """Demonstrations by nearness to a problem, nearest first: BM25 (`words`) or embeddings (`meaning`)."""
        whole = self.index == "solution"
        texts = {
            card.card_id: f"{told.problem}\n{told.worked}" if whole else told.problem
            for card in self.tree
            for told in card.examples
        }
        scores = text_scorer(by, list(texts.values()))

        def nearest_first(problem: str, cards: Sequence[Card]) -> tuple[Card, ...]:
            found = dict(zip(texts, scores(problem), strict=True))
            return tuple(sorted(cards, key=lambda card: -found[card.card_id]))

        return nearest_first


def _card(number: int, example: Example) -> Card:
    """Not validated: it has no rule and no trigger, and a solution may be longer than an example of a tree's card."""
    return Card.model_construct(
        card_id=f"DEMO_NO_{number:05d}",
        payload=with_examples("", (example,)),
        routing_conditions=(),
        difficulty_tag=Difficulty.MEDIUM,
        domain_tags=(UNIVERSAL,),
        helpfulness_score=0.0,
        provenance=Provenance(source="a solved training problem"),
    )


def train_knn(plan: TrainPlan) -> FewshotPool:
    """The training problems with their gold solutions, in the plan's folder. No model is asked."""
    if not any(problem.solution for problem in plan.train):
        fix = "add the field 'solution', or use --method bootstrap-fewshot"
        raise DataError("no training problem has a worked solution", fix=fix)
    return _kept(plan, [problem.solution or "" for problem in plan.train])


async def train_bootstrap(training: Training) -> FewshotPool:
    """The training problems with the first right attempt of the ladder at each, in the plan's folder."""
    plan = training.plan
    right = dict[str, str]()
    for epoch in range(1, plan.settings.epochs + 1):
        if todo := [problem for problem in plan.train if problem.id not in right]:
            records = await training.run(
                StepName("bootstrap", "run", epoch),
                todo,
                RunReading(),
                training.seed(epoch),
            )
            for record in records:
                texts = (
                    training.text_of(attempt)
                    for attempt in record.attempts
                    if attempt.correct
                )
                if worked := next(
                    (said for text in texts if (said := after_thinking(text).strip())),
                    "",
                ):
                    right[record.problem] = worked
    return _kept(plan, [right.get(problem.id, "") for problem in plan.train])


def _kept(plan: TrainPlan, solutions: Sequence[str]) -> FewshotPool:
    assert isinstance(plan.settings, FewshotSettings)
    found = []
    for problem, solution in zip(plan.train, solutions, strict=True):
        told = worked_example(problem, solution)
        found.append(
            SolvedProblem(
                problem=told.problem,
                worked=told.worked if solution else "",
                label=problem.label,
            )
        )
    pool = FewshotPool(
        kind=plan.method, index=plan.settings.index, problems=tuple(found)
    )
    write_atomic(plan.out / FILE, pool.model_dump_json(indent=1) + "\n")
    return pool


def read_pool(path: Path, method: str) -> FewshotPool:
    """The demonstrations of a file, or of the folder that training made."""
    return read_artefact(path, FILE, FewshotPool, "set of demonstrations", method)
