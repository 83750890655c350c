"""A learning run, opened from a plan and closed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kace.config import Config
from kace.datasets.overlap import overlaps
from kace.errors import DataError
from kace.learner.growth import Growth
from kace.learner.guarded import NOTHING, Guarded
from kace.learner.leak import Leaks
from kace.learner.practice import Audience, Practice
from kace.learner.settings import Settings
from kace.learner.study import Study
from kace.learner.workshop import Hired, open_workshop
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.problem import Problem
from kace.retrieval.prompt import template_hashes
from kace.solver.run import manifest_of

AUTHOR = "kace learn"
LEAST_PROBLEMS = 10
"""Three domains of a tenth each cannot be told from fewer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be learned, from what, and where the tree goes."""

    train: tuple[Problem, ...]
    config: Config
    settings: Settings
    out: Path
    held_out: Guarded = NOTHING
    """What examples must not retell, besides the training problems."""

    @property
    def folder(self) -> Path:
        """Where the learner keeps its own record, inside the tree it makes."""
        return self.out / "learn"


@asynccontextmanager
async def open_study(
    plan: Plan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    audience: Audience | None = None,
) -> AsyncIterator[tuple[Study, Ledger]]:
    """Everything a learning run works with, and the one ledger that solver and teacher share.

    Models that are given stay the caller's to close.
    """
    check_training(plan.train)
    tell = audience.noted if audience else None
    opened = open_workshop(
        plan.folder, plan.config, learn_manifest(plan), Hired(model, teacher), tell=tell, observer=audience
    )
    async with opened as shop:
        study = Study(
            train=plan.train,
            settings=plan.settings,
            practice=Practice(plan.folder, shop.config, shop.session, shop.calls, audience=audience),
            teacher=shop.teacher,
            notebook=shop.notebook,
            growth=Growth(plan.out, shop.notebook, author=AUTHOR),
            leaks=Leaks.of(plan.train, plan.held_out),
        )
        yield study, shop.session.ledger


def check_training(train: tuple[Problem, ...]) -> None:
    """Refuse a training set that nothing can be learned from."""
    bare = next((problem for problem in train if problem.answer is None), None)
    if bare is not None:
        raise DataError(f"training problem {bare.name!r} has no answer", fix="every training problem needs its answer")
    if len(train) < LEAST_PROBLEMS:
        raise DataError(
            f"{len(train)} training problems are too few to learn from", fix=f"give at least {LEAST_PROBLEMS}"
        )


def refuse_overlap(train: tuple[Problem, ...], held_out: tuple[Problem, ...], source: str) -> None:
    """Refuse to learn from problems that an evaluation split holds too."""
    found = overlaps(train, held_out)
    if found:
        first = found[0]
        raise DataError(
            f"{len(found)} training problems stand in {source} too: {first.ours.name!r} is {first.theirs.name!r} there",
            fix="remove them from the training file: what is learned from them would flatter the evaluation",
        )


def learn_manifest(plan: Plan) -> dict[str, object]:
    """What a learning run depends on, free of secrets."""
    ids = [problem.id for problem in plan.train]
    answers = [problem.answer for problem in plan.train]
    return {
        **manifest_of(plan.config),
        "teacher": plan.config.teacher,
        "settings": plan.settings.model_dump(mode="json"),
        "prompts": {**template_hashes(), **template_hashes("teacher")},
        "train": {
            "problems": len(ids),
            "hash": hashlib.sha256(json.dumps([ids, answers]).encode()).hexdigest(),
            "ids": ids,
        },
    }
