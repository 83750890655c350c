"""What learning and training are done with: the solver, the teacher, and one folder that keeps all they said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kace.config import Config
from kace.errors import UsageError
from kace.learner.bill import bill, keep_bill
from kace.learner.notebook import Notebook, Tell
from kace.learner.teacher import Teacher
from kace.models.base import ChatModel
from kace.models.budget import Ledger
from kace.models.cache import CallStore
from kace.models.provider import open_model
from kace.models.replay import Replay
from kace.solver.ladder import Observer
from kace.solver.session import Session, in_role, open_session


@dataclass(frozen=True, slots=True)
class Hired:
    """Who works: models that are given stay the caller's to close, others are opened from the configuration."""

    solver: ChatModel | None = None
    teacher: ChatModel | None = None
    taught: bool = True
    """Whether a teacher takes part at all."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """An open workshop."""

    config: Config
    session: Session
    """Solver and teacher share its ledger."""
    notebook: Notebook
    calls: CallStore
    asked: Teacher | None
    """None where no teacher takes part."""

    @property
    def teacher(self) -> Teacher:
        """The teacher, where one takes part."""
        assert self.asked is not None, "a workshop without a teacher was asked for one"
        return self.asked


@asynccontextmanager
async def open_workshop(
    folder: Path,
    config: Config,
    manifest: dict[str, object],
    hired: Hired,
    *,
    tell: Tell | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Workshop]:
    """Open the folder, which must hold the same work or none, and everybody who works in it."""
    # Every attempt is made: what is left of a tier that stopped early is a biased sample of it.
    config = config.model_copy(update={"early_stop": False})
    async with AsyncExitStack() as opened:
        teacher = hired.teacher
        if teacher is None and hired.taught:
            teacher = open_teacher(config)
            opened.push_async_callback(teacher.aclose)
        notebook = opened.enter_context(Notebook(folder, manifest, tell=tell))
        calls = CallStore(folder / "calls")
        opened.callback(lambda: keep_bill(folder, bill(calls.folder, config)))
        opened.callback(calls.close)
        session = await opened.enter_async_context(
            open_session(config, calls=calls, model=hired.solver, observer=observer)
        )
        asked = None
        if teacher is not None:
            model = in_role("teacher", teacher, session.ledger, calls)
            asked = Teacher(model, seed=config.seed, max_tokens=config.teacher_max_tokens)
        yield Workshop(config, session, notebook, calls, asked)


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
