"""What every training shares: its plan, and the solver, teacher and record that it is opened with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from kace.config import Config
from kace.learner.notebook import Notebook, Step, Tell
from kace.learner.opening import check_training
from kace.learner.partition import Partition, partition
from kace.learner.teacher import Teacher
from kace.learner.verdicts import Kept
from kace.learner.workshop import Hired, Workshop, open_workshop
from kace.models.base import ChatModel
from kace.problem import Problem
from kace.retrieval.prompt import template_hashes
from kace.solver.run import manifest_of
from kace.solver.session import Session
from kace.tree.tree import Domain

SEEDS_PER_EPOCH = 100


class Dials(Kept):
    """The settings of a training. Those in `EXTENT` may grow when a training goes on; the others are held to."""

    EXTENT: ClassVar[frozenset[str]] = frozenset()

    epochs: Annotated[int, Field(ge=1, le=20)] = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be trained, on what, and where the result goes."""

    what: str
    """As `kace train` calls it."""
    train: tuple[Problem, ...]
    config: Config
    dials: Dials
    out: Path
    domains: tuple[Domain, ...] = ()
    """A registry to begin with; where there is none, the teacher is asked for one if the training needs it."""
    validation: tuple[Problem, ...] = ()
    """Problems that choose between candidates by score alone. No teacher ever reads them."""

    @property
    def taught(self) -> bool:
        """Whether a teacher takes part: reflections are the solver's own, and need one only for the domains."""
        return self.what != "reflections" or not self.domains

    @property
    def folder(self) -> Path:
        """Where the training keeps its own record, inside what it makes."""
        return self.out / "train"


@dataclass(frozen=True, slots=True)
class Ground:
    """An open training."""

    plan: Plan
    shop: Workshop

    @property
    def session(self) -> Session:
        """The solver, and the ledger that the teacher shares."""
        return self.shop.session

    @property
    def notebook(self) -> Notebook:
        """What was done before."""
        return self.shop.notebook

    @property
    def teacher(self) -> Teacher:
        """The teacher of a training that has one."""
        return self.shop.teacher

    def seed(self, epoch: int) -> int:
        """The seed of an epoch's samples."""
        return self.plan.config.seed * SEEDS_PER_EPOCH + epoch


@asynccontextmanager
async def open_training(
    plan: Plan, *, model: ChatModel | None = None, teacher: ChatModel | None = None, tell: Tell | None = None
) -> AsyncIterator[Ground]:
    """Everything a training works with, under one ledger. Models that are given stay the caller's to close."""
    check_training(plan.train)
    hired = Hired(model, teacher, plan.taught)
    async with open_workshop(plan.folder, plan.config, train_manifest(plan), hired, tell=tell) as shop:
        yield Ground(plan, shop)


async def registry(ground: Ground) -> tuple[Domain, ...]:
    """The domains of a training: those given, else those that the teacher proposes, asked for once."""
    plan = ground.plan
    if plan.domains:
        return plan.domains
    step = Step("plan", "partition")
    return (await ground.notebook.once(step, Partition, lambda: partition(plan.train, ground.teacher))).domains


def train_manifest(plan: Plan) -> dict[str, object]:
    """What a training depends on, free of secrets. How far it goes is not held to: it may go on further."""
    return {
        **manifest_of(plan.config),
        "teacher": plan.config.teacher,
        "settings": {
            "what": plan.what,
            **plan.dials.model_dump(mode="json", exclude=set(plan.dials.EXTENT)),
            "domains": [domain.model_dump(mode="json") for domain in plan.domains],
        },
        "prompts": {part: template_hashes(part) for part in ("", "teacher", "ace", "reflections")},
        "train": {"problems": _identity(plan.train), "validation": _identity(plan.validation)},
    }


def _identity(problems: tuple[Problem, ...]) -> dict[str, object]:
    pairs = [[problem.id, problem.answer] for problem in problems]
    return {"count": len(pairs), "hash": hashlib.sha256(json.dumps(pairs).encode()).hexdigest()}
