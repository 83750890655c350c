"""A learning run, opened from a plan and closed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kace.budget import Ledger
from kace.config import Config
from kace.errors import DataError, UsageError
from kace.learn.bill import bill, keep_bill
from kace.learn.growth import Growth
from kace.learn.leak import Leaks
from kace.learn.notebook import Notebook
from kace.learn.practice import Audience, Practice
from kace.learn.settings import Settings
from kace.learn.study import Study
from kace.learn.teacher import Teacher
from kace.models.base import ChatModel
from kace.models.cached import CallStore
from kace.models.provider import open_model
from kace.models.replay import Replay
from kace.overlap import overlaps
from kace.problem import Problem
from kace.prompt import template_hashes
from kace.run import manifest_of
from kace.session import in_role, open_session

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
    # Every attempt is made: what is left of a tier that stopped early is a biased sample of it.
    config = plan.config.model_copy(update={"early_stop": False})
    async with AsyncExitStack() as opened:
        if teacher is None:
            teacher = open_teacher(config)
            opened.push_async_callback(teacher.aclose)
        tell = audience.noted if audience else None
        notebook = opened.enter_context(Notebook(plan.folder, learn_manifest(plan), tell=tell))
        calls = CallStore(plan.folder / "calls")
        opened.callback(lambda: keep_bill(plan.folder, bill(calls.folder, config)))
        opened.callback(calls.close)
        session = await opened.enter_async_context(open_session(config, calls=calls, model=model, observer=audience))
        asked = in_role("teacher", teacher, session.ledger, calls)
        study = Study(
            train=plan.train,
            settings=plan.settings,
            practice=Practice(plan.folder, config, session, calls, audience=audience),
            teacher=Teacher(asked, seed=config.seed, max_tokens=config.teacher_max_tokens),
            notebook=notebook,
            growth=Growth(plan.out, notebook, author=AUTHOR),
            leaks=Leaks.of(plan.train),
        )
        yield study, session.ledger


def open_teacher(config: Config) -> ChatModel:
    """The teacher that a configuration names."""
    if not config.teacher:
        raise UsageError(
            "a learner needs a teacher",
            fix="name one: --teacher anthropic/NAME, openai/NAME, exchange/DIR (a person answers files), or replay/RUN",
        )
    Ledger(config.caps(), config.price_table()).require_price(config.teacher)
    provider, _, name = config.teacher.partition("/")
    if provider == "replay":
        return Replay.open(Path(name), teacher=True)
    return open_model(config.for_teacher())


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
