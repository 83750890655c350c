"""What every other method's training shares: its plan, what it works with, and how what it made is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, ValidationError

from kace.cards.tree import Domain
from kace.config import Config
from kace.errors import DataError
from kace.files import inside, read_plain
from kace.ladder.prompt import template_hashes
from kace.learning.steps import OnStep, StepName, StepResult
from kace.learning.study import (
    SEEDS_PER_EPOCH,
    Workbench,
    check_training,
    open_workbench,
    require_answers,
)
from kace.learning.teacher import Partition, open_teacher, partition
from kace.models.base import ChatModel
from kace.problems import Problem
from kace.runs.manifest import manifest_of, solver_prompts

PROMPTS = (
    "teacher",
    "ace",
    "reflections",
)  # parts of the folder that a training may use beside the solver's
RECORD = "train"  # where a training keeps its own record, inside what it makes

K = TypeVar("K", bound=StepResult)


class MethodSettings(StepResult):
    """The settings of a training. Those in `EXTENT` may grow when it is resumed; the others are held to."""

    EXTENT: ClassVar[frozenset[str]] = frozenset()

    epochs: Annotated[int, Field(ge=1, le=20)] = 1


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """What is to be trained, on what, and where the result goes."""

    method: str  # as `kace learn --method` calls it
    train: tuple[Problem, ...]
    config: Config
    settings: MethodSettings
    out: Path
    domains: tuple[
        Domain, ...
    ] = ()  # a registry to begin with; else the teacher is asked for one where it is needed
    validation: tuple[
        Problem, ...
    ] = ()  # they choose between candidates by score alone; no teacher reads them

    def manifest(self) -> dict[str, object]:
        """What a training depends on, free of secrets. How far it goes is not held to: it may go on further."""
        domains = [domain.model_dump(mode="json") for domain in self.domains]
        held = self.settings.model_dump(mode="json", exclude=set(self.settings.EXTENT))
        return {
            **manifest_of(self.config),
            "teacher": self.config.teacher,
            "settings": {"what": self.method, **held, "domains": domains},
            "prompts": solver_prompts(self.config)
            | {
                name: of
                for part in PROMPTS
                for name, of in template_hashes(part).items()
            },
            "train": {
                "problems": _identity(self.train),
                "validation": _identity(self.validation),
            },
        }


@dataclass(frozen=True, kw_only=True)
class Training(Workbench):
    """An open training: its plan, and what it works with."""

    plan: TrainPlan

    def seed(self, epoch: int) -> int:
        """The seed of an epoch's samples."""
        return self.plan.config.seed * SEEDS_PER_EPOCH + epoch

    async def domains(self) -> tuple[Domain, ...]:
        """The domains given, else those that the teacher proposes, asked for once."""
        if self.plan.domains:
            return self.plan.domains
        step = StepName("plan", "partition")
        return (
            await self.log.once(
                step, Partition, lambda: partition(self.plan.train, self.teacher)
            )
        ).domains


@asynccontextmanager
async def open_training(
    plan: TrainPlan,
    *,
    model: ChatModel | None = None,
    teacher: ChatModel | None = None,
    on_step: OnStep | None = None,
) -> AsyncIterator[Training]:
    """Open everything a training works with, under one ledger.

    Models that are given stay the caller's to close.
    """
    check_training(plan.train)
    require_answers(plan.validation, "validation")
    # Reflections and right attempts are the solver's own; reflections need a teacher for
    # the domains only.
    own = plan.method == "bootstrap-fewshot" or (
        plan.method == "reflections" and plan.domains
    )
    async with AsyncExitStack() as opened:
        if teacher is None and not own:
            teacher = open_teacher(plan.config)
            opened.push_async_callback(teacher.aclose)
        workbench = await opened.enter_async_context(
            open_workbench(
                inside(plan.out, RECORD),
                plan.config,
                plan.manifest(),
                model=model,
                teacher=teacher,
                on_step=on_step,
            )
        )
        yield Training(**vars(workbench), plan=plan)


def read_artefact(path: Path, name: str, kind: type[K], what: str, method: str) -> K:
    """What a training made, from its file or the folder that holds it; of this method, where it says which."""
    file = path / name if path.is_dir() else path
    fix = f"name what kace learn --method {method} made"
    try:
        found = kind.model_validate_json(read_plain(file))
    except OSError as error:
        raise DataError(
            f"{file}: {(error.strerror or str(error)).lower()}", fix=fix
        ) from None
    except ValidationError as error:
        raise DataError(
            f"{file}: not a {what} ({error.errors()[0]['msg'].lower()})", fix=fix
        ) from None
    if (made := getattr(found, "kind", method)) != method:
        raise DataError(
            f"{file}: made by kace learn --method {made}, not by kace learn --method {method}",
            fix=fix,
        )
    return found


def _identity(problems: tuple[Problem, ...]) -> dict[str, object]:
    pairs = [[problem.id, problem.answer] for problem in problems]
    return {
        "count": len(pairs),
        "hash": hashlib.sha256(json.dumps(pairs).encode()).hexdigest(),
    }
